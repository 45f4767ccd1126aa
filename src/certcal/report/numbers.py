"""Estimates as text, the same in the terminal and on pages."""

from __future__ import annotations

import math
from typing import Any

from certcal._base.rounding import is_share, number_text
from certcal._base.rounding import minus as minus
from certcal._base.rounding import signed as signed
from certcal.claims import Estimate, round_outward

# What intervals say, and what they do not.
INTERVALS = "They are for the population that the samples are drawn from, at the same bins and bandwidths."
_DIGITS = 4
# Differences of sums that are equal but for rounding are smaller than this: they are shown as zero.
_NOTHING = 1e-13


def number(value: float) -> str:
    """An estimate as text: four decimals, or two significant digits in powers of ten when that would show nothing."""
    if math.isnan(value):
        return "undefined"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if abs(value) < _NOTHING:
        value = 0.0
    elif abs(value) < 0.5 * 10**-_DIGITS:
        return minus(f"{value:.1e}")
    return minus(f"{value:.{_DIGITS}f}")


def percent_of(share: float) -> str:
    """A share as text in per cent, with as many digits as :func:`number` gives it.

    Examples
    --------
    >>> percent_of(0.2231), percent_of(0.0), percent_of(3e-6)
    ('22.31', '0.00', '3.0e-04')
    """
    return f"{100 * share:.2f}" if share == 0 or share >= 0.5 * 10**-_DIGITS else f"{100 * share:.1e}"


def p_value(value: float) -> str:
    """A p-value as text, rounded up; small ones are said to be small.

    Examples
    --------
    >>> p_value(0.000149), p_value(0.00009), p_value(0.0501)
    ('0.0002', '< 0.0001', '0.0501')
    """
    if math.isnan(value):
        return number(value)
    return "< 0.0001" if value < 1e-4 else round_outward(value, "upper", _DIGITS)


def interval(estimate: Estimate, *, in_sentence: bool = False) -> str:
    """An interval as text, rounded outward, with a word where it excludes the estimate; empty without one.

    In a sentence shares are in percent.
    """
    spread = estimate.interval
    if spread is None or math.isnan(spread.lower) or math.isnan(spread.upper) or math.isinf(spread.lower):
        return ""
    percent = in_sentence and is_share(estimate.name)
    ends = [
        "∞" if math.isinf(end) else number_text(round_outward(end, side, _DIGITS), percent=percent)
        for end, side in ((spread.lower, "lower"), (spread.upper, "upper"))
    ]
    return " – ".join(ends) + (" (excludes the estimate)" if spread.excludes(estimate.value) else "")


def brief(value: float, digits: int = 3) -> str:
    """A rank correlation, a share or a ratio as text: three decimals, none where there are thousands."""
    if math.isnan(value):
        return "undefined"
    if abs(value) >= 1000:
        return minus(f"{value:,.0f}")
    if 1e-6 < abs(value) < 0.5 * 10**-digits:
        return minus(f"{value:.1e}")
    return minus(f"{round(value, digits) + 0.0:.{digits}f}")


def between(low: float, high: float, digits: int = 3) -> str:
    """An interval as text, rounded outward; empty where there is none."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return ""
    return f"{minus(round_outward(low, 'lower', digits))} – {minus(round_outward(high, 'upper', digits))}"


def bins_text(row: Any) -> str:
    """The number of bins of a row, or nothing."""
    return str(row.settings.get("bins", ""))
