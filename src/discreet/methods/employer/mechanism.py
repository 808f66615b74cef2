"""The mechanism of a table of jobs, and how its ε is divided among worker cells."""

from __future__ import annotations

from fractions import Fraction

from discreet.errors import GuaranteeError, ParameterError
from discreet.methods.employer.mechanisms import Mechanism
from discreet.methods.employer.mechanisms.discrete import Truncated
from discreet.methods.employer.mechanisms.laplace_pareto import LaplacePareto
from discreet.methods.employer.mechanisms.log_laplace import LogLaplace
from discreet.methods.employer.mechanisms.parameters import TooSmallEpsilon
from discreet.methods.employer.mechanisms.smooth_gamma import SmoothGamma
from discreet.methods.employer.mechanisms.smooth_laplace import SmoothLaplace
from discreet.methods.employer.spec import (
    Employer,
    LaplaceParetoSpec,
    LogLaplaceSpec,
    SmoothGammaSpec,
    SmoothLaplaceSpec,
    TruncatedSpec,
)
from discreet.privacy.exact import format_exact
from discreet.privacy.guarantee import Establishment, Unit, WholeEstablishment

MOST_TERM = 10**6  # of α's numerator and denominator


def share_per_cell(unit: Unit, cells: int) -> Fraction:
    """The part of a table's ε and δ that one worker cell may spend: under weak privacy cells compose sequentially."""
    weak = isinstance(unit, Establishment) and unit.adversary == "weak"
    return Fraction(1, cells) if weak else Fraction(1)


def build_mechanism(spec: Employer, unit: Unit, cells: int, by_worker: bool) -> Mechanism:
    """The mechanism of a table; refused, with the smallest admissible ε, if ε is too small."""
    where = f"table {spec.name}"
    _refuse_unit(spec, unit, where)
    if isinstance(unit, Establishment) and max(unit.alpha.numerator, unit.alpha.denominator) > MOST_TERM:
        # α times any count must fit into 62 bits: checked here, as it would otherwise fail after the reservation.
        raise ParameterError(
            f"alpha {format_exact(unit.alpha)} has too many digits", where="unit", do="write it with at most six"
        )
    share = share_per_cell(unit, cells)
    try:
        return _mechanism(spec, unit, share, cells if share == 1 else 1, by_worker, where)
    except ParameterError as error:
        if not isinstance(error, TooSmallEpsilon) or not isinstance(unit, Establishment):
            raise ParameterError(f"{spec.mechanism.name}: {error.what}", where=where, do=error.do) from None
        least = error.smallest / share
        each = f" for {cells} worker cells" if share < 1 else ""
        raise ParameterError(
            f"epsilon {format_exact(spec.epsilon)}{each} is too small for {spec.mechanism.name} at alpha "
            f"{format_exact(unit.alpha)}",
            where=where,
            do=f"the smallest admissible epsilon is {format_exact(least)}, where errors are very large; or lower alpha",
        ) from None


def _refuse_unit(spec: Employer, unit: Unit, where: str) -> None:
    truncated = isinstance(spec.mechanism, TruncatedSpec)
    if truncated and not isinstance(unit, WholeEstablishment):
        raise GuaranteeError(
            "truncated protects whole establishments",
            where=where,
            do="state the unit as {establishment: COLUMN, whole: true, max_records: N}",
        )
    if not truncated and not isinstance(unit, Establishment):
        raise GuaranteeError(
            f"{spec.mechanism.name} protects the size of an establishment within a factor 1+α, not {unit.in_words()}",
            where=where,
            do="state the unit as {establishment: COLUMN, alpha: …, adversary: strong|weak}"
            + ("; or use `mechanism: truncated`" if isinstance(unit, WholeEstablishment) else ""),
        )


def _mechanism(spec: Employer, unit: Unit, share: Fraction, cells: int, by_worker: bool, where: str) -> Mechanism:
    epsilon, chosen = spec.epsilon * share, spec.mechanism
    if isinstance(chosen, TruncatedSpec):
        return Truncated(epsilon, unit.records + 1, chosen.noise)
    alpha = unit.alpha if isinstance(unit, Establishment) else Fraction(0)
    match chosen:
        case LaplaceParetoSpec():
            return LaplacePareto(alpha, epsilon, chosen.g, cells)
        case SmoothGammaSpec():
            gamma = None if chosen.gamma == "best" else chosen.gamma
            return SmoothGamma(alpha, epsilon, chosen.constants, gamma, cells)
        case SmoothLaplaceSpec():
            return SmoothLaplace(alpha, epsilon, chosen.delta * share, chosen.constants, cells)
        case LogLaplaceSpec():
            if by_worker and share == 1 and isinstance(unit, Establishment) and unit.adversary == "strong":
                raise GuaranteeError(
                    "log-laplace cannot protect worker attributes against a strong adversary: an establishment may "
                    f"gain a share {format_exact(alpha)} of all its workers in a cell where it had none",
                    where=where,
                    do="use laplace-pareto, or state the unit with `adversary: weak`",
                )
            return LogLaplace(alpha, epsilon, chosen.scale, chosen.unbiased)
