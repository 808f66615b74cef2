"""Which mechanism a table of jobs is protected with, and how its ε is shared out among worker cells."""

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


def own_share(unit: Unit, cells: int) -> Fraction:
    """The part of a table's ε and δ that one worker cell may spend: under weak privacy each pays for itself."""
    weak = isinstance(unit, Establishment) and unit.adversary == "weak"
    return Fraction(1, cells) if weak else Fraction(1)


def made(spec: Employer, unit: Unit, cells: int, by_worker: bool) -> Mechanism:
    """The mechanism of a table, or a refusal that names the smallest ε that would do."""
    where = f"table {spec.name}"
    _refuse_unit(spec, unit, where)
    if isinstance(unit, Establishment) and max(unit.alpha.numerator, unit.alpha.denominator) > MOST_TERM:
        # α times a count must fit into 62 bits, whatever the count: it would fail after the reservation.
        raise ParameterError(f"alpha {format_exact(unit.alpha)} has too many digits", where="unit", do="six will do")
    share = own_share(unit, cells)
    try:
        return _made(spec, unit, share, cells if share == 1 else 1, by_worker, where)
    except ParameterError as error:
        if not isinstance(error, TooSmallEpsilon) or not isinstance(unit, Establishment):
            raise ParameterError(f"{spec.mechanism.name}: {error.what}", where=where, do=error.do) from None
        least = error.smallest / share
        each = f" for {cells} worker cells" if share < 1 else ""
        raise ParameterError(
            f"epsilon {format_exact(spec.epsilon)}{each} is too small for {spec.mechanism.name} at alpha "
            f"{format_exact(unit.alpha)}",
            where=where,
            do=f"the smallest epsilon here is {format_exact(least)}, at which errors are very large; or lower alpha",
        ) from None


def _refuse_unit(spec: Employer, unit: Unit, where: str) -> None:
    truncated = isinstance(spec.mechanism, TruncatedSpec)
    if truncated and not isinstance(unit, WholeEstablishment):
        raise GuaranteeError(
            "truncated hides whole establishments",
            where=where,
            do="state the unit as {establishment: COLUMN, whole: true, max_records: N}",
        )
    if not truncated and not isinstance(unit, Establishment):
        raise GuaranteeError(
            f"{spec.mechanism.name} hides the size of an establishment within a factor 1+α, not {unit.in_words()}",
            where=where,
            do="state the unit as {establishment: COLUMN, alpha: …, adversary: strong|weak}"
            + ("; or use `mechanism: truncated`" if isinstance(unit, WholeEstablishment) else ""),
        )


def _made(spec: Employer, unit: Unit, share: Fraction, cells: int, by_worker: bool, where: str) -> Mechanism:
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
                    "log-laplace cannot hide workers' attributes from a strong adversary: an establishment may gain a "
                    f"share {format_exact(alpha)} of all its workers in a cell where it had none",
                    where=where,
                    do="use laplace-pareto, or state the unit with `adversary: weak`",
                )
            return LogLaplace(alpha, epsilon, chosen.scale, chosen.unbiased)
