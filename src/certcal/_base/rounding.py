"""Rounding has a direction: what is claimed moves outward, in memory and in print."""

from __future__ import annotations

import math
import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from typing import Any

from certcal._base.checks import choice

SIDES = ("upper", "lower")
# A p-value below the least number is not 0.
LEAST_P = 2.0**-1022
# Numbers that people say in percent.
_SHARES = re.compile(
    r"(?!.*(difference|gain|brier|_ratio|cost|squared|standard|width))(.*_)?(m?ce|\w*ece|error|accuracy|rate|confidence|mean_score)(_.*)?"
)


def round_outward(value: float, side: str, digits: int = 4) -> str:
    """Decimal text that is on the safe side of ``value``: never below an upper bound, never above a lower one."""
    choice(side, SIDES, "side")
    if not math.isfinite(value):
        return str(value)
    with localcontext() as context:
        context.prec = 1100  # exact for any float64
        step = Decimal(1).scaleb(-digits)
        rounded = Decimal(value).quantize(step, ROUND_CEILING if side == "upper" else ROUND_FLOOR)
        return f"{abs(rounded) if rounded == 0 else rounded:f}"


def is_p_value(name: str) -> bool:
    """Whether a number is a p-value, which is printed rounded up: it must not look smaller than it is."""
    return name.endswith("_p")


def is_share(name: str) -> bool:
    """Whether a number is an error of calibration, or a share, which are said in percent.

    Examples
    --------
    >>> [is_share(name) for name in ("ece", "calibration error", "auroc", "difference ece", "rate ratio")]
    [True, True, False, False, False]
    """
    return _SHARES.fullmatch(name.casefold().replace(" ", "_")) is not None


def number_text(text: str, *, percent: bool) -> str:
    """The text of a number as it stands in a sentence, perhaps in percent, with no digit lost.

    Examples
    --------
    >>> number_text("0.0713", percent=True), number_text("-1.5", percent=False)
    ('7.13%', '−1.5')
    """
    if text in ("nan", "undefined"):
        return "undefined"
    return minus(f"{Decimal(text).scaleb(2):f}%" if percent and Decimal(text).is_finite() else text)


def claim_text(claim: Any) -> str:
    """The number of a claim, or both of a bound on both sides, as it stands in a sentence: a share in percent."""
    ends = getattr(claim, "lower", None), getattr(claim, "upper", None)
    if all(hasattr(end, "text") for end in ends):
        return " to ".join(map(claim_text, ends))
    percent = is_share(claim.name) and not abs(claim.value) > 1
    return number_text(getattr(claim, "text", "") or decimals(claim), percent=percent)


def share_text(value: float, side: str | None = None) -> str:
    """A share in percent, with two decimals, rounded to the side that is claimed.

    Examples
    --------
    >>> share_text(0.05921), share_text(0.05921, "upper")
    ('5.92%', '5.93%')
    """
    return number_text(f"{value:.4f}" if side is None else round_outward(value, side), percent=True)


def decimals(claim: Any, digits: int = 4) -> str:
    """The value of an estimate with so many decimals."""
    if is_p_value(getattr(claim, "name", "")):
        return round_outward(claim.value, "upper", digits)
    return f"{claim.value:.{digits}f}"


def minus(text: str) -> str:
    """A number's text with a minus sign in place of a leading hyphen, as people read it."""
    return f"−{text[1:]}" if text.startswith("-") else text


def signed(value: float, digits: int = 4) -> str:
    """A difference as people read it, with a plus or a minus sign."""
    return minus(f"{value:+.{digits}f}")


def short_text(value: float, side: str) -> str:
    """A radius or a level as it stands in a sentence: six significant digits, rounded to the safe side.

    Parameters
    ----------
    value
        The number in memory.
    side
        "upper" rounds up (a level that is claimed), "lower" rounds down (a radius that is claimed).

    Examples
    --------
    >>> short_text(0.5, "lower"), short_text(2 / 3, "lower"), short_text(2 / 3, "upper")
    ('0.5', '0.666666', '0.666667')
    """
    choice(side, SIDES, "side")
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    exact = Decimal(repr(float(value)))
    step = Decimal(1).scaleb(exact.adjusted() - 5)
    return f"{exact.quantize(step, ROUND_CEILING if side == 'upper' else ROUND_FLOOR).normalize():f}"


def percent_text(level: float) -> str:
    """The level of an interval in per cent, never more than it is.

    Examples
    --------
    >>> percent_text(0.95), percent_text(0.975), percent_text(0.99999999)
    ('95%', '97.5%', '99.9999%')
    """
    return f"{short_text(float(Decimal(repr(float(level))).scaleb(2)), 'lower')}%"


def sure_text(failure: float | Decimal) -> str:
    """How sure a claim is that fails with this probability: in as many digits as that needs, never more than it is.

    Examples
    --------
    >>> sure_text(0.05), sure_text(0.0005), sure_text(1 / 3), sure_text(1e-300)
    ('95% sure', '99.95% sure', '66.66% sure', '99.9999999999% sure')
    """
    chance = max(failure if isinstance(failure, Decimal) else Decimal(repr(float(failure))), Decimal("1e-12"))
    exact = 100 * (1 - chance)
    places = max(2, -min(chance.adjusted(), exact.adjusted()) - 1)
    return f"{exact.quantize(Decimal(1).scaleb(-places), ROUND_FLOOR).normalize():f}% sure"


def times_text(failure: float | Decimal) -> str:
    """How often at most a claim fails that does so with this probability.

    Examples
    --------
    >>> times_text(0.05), times_text(0.001), times_text(0.03)
    ('at most 1 time in 20', 'at most 1 time in 1,000', 'at most 1 time in 33')
    """
    chance = max(failure if isinstance(failure, Decimal) else Decimal(repr(float(failure))), Decimal("1e-12"))
    return f"at most 1 time in {int(1 / chance):,}"


def about(n: float) -> int:
    """A number of samples, rounded up to two digits.

    Examples
    --------
    >>> about(10_730.2), about(3.1), about(0.2)
    (11000, 4, 1)
    """
    unit = 10 ** max(0, math.floor(math.log10(max(n, 1))) - 1)
    return math.ceil(n / unit - 1e-6) * unit


def move_outward(value: float, side: str, relative: float = 2.0**-52) -> float:
    """A float on the safe side of ``value`` by at least ``relative`` of its size: room for the rounding behind it."""
    choice(side, SIDES, "side")
    away = math.inf if side == "upper" else -math.inf
    return math.nextafter(value + math.copysign(abs(value) * relative, away), away)
