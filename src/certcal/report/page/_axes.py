"""Axes of charts: where values lie, and round places to mark with their texts."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal


def ticks(low: float, high: float, count: int = 5) -> tuple[tuple[float, str], ...]:
    """Round places between two values with their texts: about ``count`` of them.

    Examples
    --------
    >>> ticks(0, 0.31)
    ((0.0, '0'), (0.1, '0.1'), (0.2, '0.2'), (0.3, '0.3'))
    """
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return ()
    step = _step(low, high, count)
    first, last = math.ceil(low / float(step) - 1e-9), math.floor(high / float(step) + 1e-9)
    return tuple((float(step * index), _plain(step * index)) for index in range(first, last + 1))


def _step(low: float, high: float, count: int = 5) -> Decimal:
    """The smallest round step that gives at most ``count`` intervals."""
    exponent = math.floor(math.log10((high - low) / count))
    steps = [Decimal(factor).scaleb(exponent) for factor in ("1", "2", "2.5", "5", "10")]
    return next((step for step in steps if (high - low) / float(step) <= count + 1e-9), steps[-1])


def _plain(value: Decimal) -> str:
    if value == 0:
        return "0"
    text = f"{value:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


@dataclass(frozen=True)
class Axis:
    """What one direction of a chart shows: its ends, its ticks with their texts, and its name.

    Examples
    --------
    >>> unit("confidence").at(0.25), unit("confidence").at(7.0)
    (0.25, 1.0)
    """

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    label: str
    log: bool = False

    def at(self, value: float) -> float:
        """Where a value lies, as a share of the axis; what lies beyond an end is put there."""
        if self.log:
            low, high = math.log(self.low), math.log(self.high)
            place = (math.log(max(value, self.low)) - low) / (high - low)
        else:
            place = (value - self.low) / (self.high - self.low)
        return min(1.0, max(0.0, place))


def unit(label: str) -> Axis:
    """An axis from 0 to 1 with ticks at fifths."""
    return Axis(0.0, 1.0, ticks(0, 1), label)


def covering(values: Iterable[float], label: str, *, low: float | None = 0.0, most: float = math.inf) -> Axis:
    """An axis that holds all finite values and ends on a tick.

    Parameters
    ----------
    values
        What is drawn; what is not finite is not.
    label
        The axis' name.
    low
        Where the axis starts; None to start near the smallest value.
    most
        The axis never reaches further than this.

    Examples
    --------
    >>> covering([0.03, 0.27, float("nan")], "error").high
    0.3
    """
    finite = [float(value) for value in values if math.isfinite(value)] or [0.0, 1.0]
    start = min(finite) if low is None else low
    end = max(max(finite), start)
    end = end if end - start > 1e-200 else start + 1.0
    step = _step(start, end)
    top = float(step * math.ceil(end / float(step) - 1e-6))
    bottom = start if low is not None else float(step * math.floor(start / float(step) + 1e-6))
    top = min(most, top)
    return Axis(bottom, top, ticks(bottom, top), label)


def counts(values: Iterable[int], label: str = "samples") -> Axis:
    """An axis for numbers of samples; logarithmic where the smallest bars would not be seen otherwise.

    Examples
    --------
    >>> [text for _, text in counts([3, 80_000]).ticks], counts([0, 9]).log
    (['1', '100', '10k'], False)
    """
    present = [int(value) for value in values if value > 0] or [1]
    high, low = max(present), min(present)
    if high <= 50 * low:
        marked = tuple((place, _engineering(place)) for place, _ in ticks(0, high, 3) if place == int(place))
        return Axis(0.0, float(high), marked, label)
    decades = math.ceil(math.log10(high))
    step = max(1, math.ceil(decades / 3))
    marked = tuple((10.0**power, _engineering(10**power)) for power in range(0, decades + 1, step) if 10**power <= high)
    return Axis(0.5, float(high), marked, f"{label} (log)", log=True)


def _engineering(value: float) -> str:
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"
