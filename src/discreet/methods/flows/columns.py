"""The columns of tables of flows, in words: what the codebook says."""

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
        "count", "integer", "how many; of a component, values that were not positive and count as 1; empty if unused"
    ),
    Column("of", "integer", "of how many"),
)


def flow_columns(unit: Unit, groups: Domain, destinations: Destinations, *, corrected: bool) -> list[Column]:
    """Codes, the corrected flow, its measurement and that one's margin."""
    most = "" if unit.entity is None else f"at most {unit.records} of each unit, "
    codes = code_columns(groups)
    for attribute, code in (
        (destinations.industry, destinations.marginal.industry),
        (destinations.state, destinations.marginal.state),
    ):
        about = (
            f"{attribute.name}: {plural(attribute.size, 'category', 'categories')}, and {code} for no or hardly any job"
        )
        codes.append(Column(attribute.columns[0], "code", about))
    flow = (
        [Column("flow", "integer", "corrected flow, more than 0; too low where the true flow is small")]
        if corrected
        else []
    )
    return [
        *codes,
        *flow,
        Column(
            "measured",
            "integer",
            f"protected count: the records used ({most}none with a dropped code), plus noise; may be negative. Over "
            "all cells, listed or not, it is unbiased; among those listed it is not, for they were chosen by it",
        ),
        Column(
            "moe90",
            "integer",
            "margin of error of `measured` at 90%, in every cell, listed or not: about the noise and nothing else",
        ),
    ]


def _from(given: object) -> str:
    provenance = getattr(given, "provenance", "")
    return f" ({provenance})" if provenance else ""


def flows_about(spec: Flows, destinations: Destinations) -> str:
    """What the numbers are about, in a paragraph."""
    sources = {
        "moves between states": spec.correction.job_flows,
        "employment": spec.correction.employment,
        "the protected flows by industry": spec.correction.industry_flows,
    }
    used = [name + _from(given) for name, given in sources.items() if given is not None]
    likely = f" by what is likely from {', '.join(used)}" if used else ""
    return (
        f"Flows into {destinations.industry.name} × {destinations.state.name} and one cell "
        f"{destinations.marginal.industry}/{destinations.marginal.state} of the not or marginally employed. Corrected "
        f"({spec.correction.rule}){likely}: none is negative, and a group's flows add up to its measured total, or are "
        "all 0 if that is not positive. Cells without a row are 0."
    )
