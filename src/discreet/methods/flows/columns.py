"""Published columns of tables of flows, with their codebook descriptions."""

from __future__ import annotations

from discreet.domain import Attribute, Domain
from discreet.formatting import plural
from discreet.methods.flows.destinations import Destinations
from discreet.methods.flows.spec import Flows
from discreet.privacy.guarantee import Unit
from discreet.publish.description import Column, code_columns

FACTS = ("job_flows", "employment", "industry_flows", "groups_zeroed", "units_subtracted")
_KEYS = tuple((fact,) for fact in FACTS)
REPORT = Domain((Attribute("fact", ("fact",), ("fact",), _KEYS, {key: i for i, key in enumerate(_KEYS)}),))
REPORT_COLUMNS = (
    Column("fact", "code", "a component of the weights, groups without a positive total, or units subtracted"),
    Column(
        "count", "integer", "number; of a component, the values that were not positive and count as 1; empty if unused"
    ),
    Column("of", "integer", "out of this number"),
)


def flow_columns(unit: Unit, groups: Domain, destinations: Destinations, *, corrected: bool) -> list[Column]:
    """Columns: codes, the corrected flow, the noisy measurement and its margin of error."""
    bound = "" if unit.entity is None else f"at most {unit.records} per unit, "
    codes = code_columns(groups)
    for attribute, code in (
        (destinations.industry, destinations.marginal.industry),
        (destinations.state, destinations.marginal.state),
    ):
        about = (
            f"{attribute.name}: {plural(attribute.size, 'category', 'categories')}; {code}: not or marginally employed"
        )
        codes.append(Column(attribute.columns[0], "code", about))
    flow = (
        [Column("flow", "integer", "corrected flow, above 0; biased downwards where the true flow is small")]
        if corrected
        else []
    )
    return [
        *codes,
        *flow,
        Column(
            "measured",
            "integer",
            f"noisy count: the records used ({bound}none with a dropped code), plus noise; may be negative. Unbiased "
            "over all cells, listed or not; not among the listed ones, which are selected by it",
        ),
        Column(
            "moe90",
            "integer",
            "90% margin of error of `measured`, for each cell, listed or not, and for the noise only",
        ),
    ]


def _from(given: object) -> str:
    provenance = getattr(given, "provenance", "")
    return f" ({provenance})" if provenance else ""


def flows_about(spec: Flows, destinations: Destinations) -> str:
    """Description of the table for the codebook: destinations, correction, controls."""
    sources = {
        "moves between states": spec.correction.job_flows,
        "employment": spec.correction.employment,
        "the protected flows by industry": spec.correction.industry_flows,
    }
    used = [name + _from(given) for name, given in sources.items() if given is not None]
    controls = f" with weights from {', '.join(used)}" if used else ""
    return (
        f"Flows into {destinations.industry.name} × {destinations.state.name} and one cell "
        f"{destinations.marginal.industry}/{destinations.marginal.state} for not or marginally employed. Corrected "
        f"(rule {spec.correction.rule}){controls}: no flow is negative, and a group's flows add up to its noisy total, "
        "or are all 0 if that is not positive. Cells without a row are 0."
    )
