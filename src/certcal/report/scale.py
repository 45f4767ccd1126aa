"""Where a number that was judged stands against its limits, as data: an axis, what is known of it, and texts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from certcal._base.rounding import round_outward

if TYPE_CHECKING:
    from certcal.verdict import Judgement


@dataclass(frozen=True)
class Scale:
    """Limits, the estimate and the interval on one line, as shares of its length."""

    limits: tuple[float, ...]
    interval: tuple[float, float]
    estimate: float | None
    limit_text: str
    text: str
    """The estimate and its interval; where these are not known the number that decided."""

    @classmethod
    def of(cls, one: Judgement) -> Scale | None:
        """That of a judgement; None where its number is undefined or infinite."""
        limits = [end for end in one.limits if end is not None]
        low, high = one.interval or (None, None)
        known = [each for each in (*limits, one.value, one.estimate, low, high) if each is not None]
        if not all(map(math.isfinite, known)):
            return None
        start, room = min(known), max(known) - min(known)
        start = 0.0 if 0 <= start <= 2 * room else start - 0.15 * room
        size = (max(known) + 0.15 * room - start) or 1.0

        def at(value: float) -> float:
            return (value - start) / size

        # Of a bound on one side nothing is known on the other.
        ends = (one.value, one.value) if one.interval is None else (start if low is None else low, high)
        estimate = None if one.estimate is None else at(one.estimate)
        return cls(
            tuple(map(at, limits)),
            (at(ends[0]), at(start + size if ends[1] is None else ends[1])),
            estimate,
            one.limit_text,
            _estimate_text(one),
        )


def _estimate_text(one: Judgement) -> str:
    digits, percent = len(one.number.rstrip("%").partition(".")[2]), one.number.endswith("%")
    size, unit = (100, "%") if percent else (1, "")
    low, high = one.interval or (None, None)
    if one.estimate is None or low is None or high is None:
        return one.found
    ends = f"{round_outward(size * low, 'lower', digits)}{unit} to {round_outward(size * high, 'upper', digits)}{unit}"
    return f"{size * one.estimate:.{digits}f}{unit} ({ends})"
