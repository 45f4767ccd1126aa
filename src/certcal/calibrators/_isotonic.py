"""Isotonic regression of outcomes on confidences, and the monotone curve that it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError
from certcal.calibrators._base import MOST_ADDED, OutcomeMap, number, numbers
from certcal.calibrators._formulas import ScoreFormula, lines
from certcal.calibrators.scores import Floats
from certcal.metrics.isotonic import IsotonicFit, isotonic, pool


@dataclass(frozen=True, eq=False)
class MonotoneCurve:
    """Straight lines between knots, constant outside them.

    Why it is monotone as computed, not only as written: the subtraction, division, multiplication and addition below
    are each rounded to the nearest number, which keeps the order, and the result is cut off at the segment's ends. At a
    knot the value is the knot's own.
    """

    x: Floats
    y: Floats

    def __post_init__(self) -> None:
        x, y = np.asarray(self.x, np.float64), np.asarray(self.y, np.float64)
        if x.ndim != 1 or x.shape != y.shape or x.size == 0:
            raise InputError("the knots of a curve must be as many values as places, at least one; refit the map")
        if not ((x >= 0).all() and (x <= 1).all() and (np.diff(x) > 0).all()):
            raise InputError("the knots of a curve must be in [0, 1] and strictly ascending; refit the map")
        if not ((y >= 0).all() and (y <= 1).all() and (np.diff(y) >= 0).all()):
            raise InputError("the values of a curve must be in [0, 1] and not descend; refit the map")
        object.__setattr__(self, "x", x)
        object.__setattr__(self, "y", y)

    def __call__(self, values: Floats) -> Floats:
        """The function at values without NaN."""
        if self.x.size == 1:
            return np.full(values.shape, self.y[0])
        left = np.clip(np.searchsorted(self.x, values, side="right") - 1, 0, self.x.size - 2)
        x0, x1, y0, y1 = self.x[left], self.x[left + 1], self.y[left], self.y[left + 1]
        part = (np.clip(values, x0, x1) - x0) / (x1 - x0)
        return np.where(values >= x1, y1, np.clip(y0 + part * (y1 - y0), y0, y1))


class CurveMap:
    """What maps that are a monotone curve share, for classes that fit it."""

    curve_: MonotoneCurve
    _kept: ClassVar = {"curve": None}

    def _apply(self, values: Floats) -> Floats:
        return self.curve_(values)

    def _interval(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        return self.curve_(lower), self.curve_(upper)  # the curve is monotone as computed

    def _formula(self) -> ScoreFormula:
        words = f"straight lines between {self.curve_.x.size} knots, constant outside"
        return ScoreFormula(lines(self.curve_.x, self.curve_.y), words)

    def _state(self) -> dict[str, Any]:
        return {"x": self.curve_.x.tolist(), "y": self.curve_.y.tolist()}

    def _restore(self, state: Mapping[str, Any]) -> None:
        x = numbers(state, "x", (None,))
        self.curve_ = MonotoneCurve(x, numbers(state, "y", (x.size,)))


class IsotonicCalibration(CurveMap, OutcomeMap):
    """The monotone map with the least Brier score on the samples, straight between them (Zadrozny and Elkan 2002).

    The map of scikit-learn's ``IsotonicRegression``, which is not needed for it, and :class:`CertifiedIsotonic` with
    tradeoff=0. On the samples it is fitted to it looks better than it is: judge it on others.

    Parameters
    ----------
    smoothing
        How many samples with the mean outcome are added to each flat part. The default, 0, leaves values of 0 and 1,
        and with them infinite log losses; with any above 0 none is.

    Attributes
    ----------
    curve_
        The map: knots and values.

    Examples
    --------
    >>> fitted = IsotonicCalibration().fit([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1])
    >>> fitted.transform([0.1, 0.3, 0.5, 0.9]).round(6).tolist()
    [0.0, 0.25, 0.5, 1.0]
    """

    def __init__(self, smoothing: float = 0.0) -> None:
        self.smoothing = smoothing

    def _fit(self, z: Floats, c: NDArray[np.uint8], w: Floats | None) -> None:
        added = number(self.get_params(), "smoothing", 0.0, MOST_ADDED)
        if w is not None:
            some = w > 0
            z, c, w = z[some], c[some], w[some]
        fitted = isotonic(z, c.astype(np.float64), w)
        self.curve_ = curve_through(_add_mean_outcomes(fitted, added) if added else fitted)


def _add_mean_outcomes(fitted: IsotonicFit, added: float) -> IsotonicFit:
    """The fit with samples of the mean outcome added to every flat part; parts that then fall are pooled again."""
    first = fitted.blocks[:-1]
    mass, total = np.add.reduceat(fitted.mass, first), np.add.reduceat(fitted.total, first)
    mean = (total.sum() + 0.5) / (mass.sum() + 1)
    again = pool(fitted.x[first], mass + added, total + added * mean)
    value = np.repeat(again.value, np.diff(fitted.blocks))
    return IsotonicFit(fitted.x, fitted.mass, fitted.total, value, fitted.blocks[again.blocks])


def curve_through(fitted: IsotonicFit) -> MonotoneCurve:
    """The regression at its places, and straight between the flat parts, where any monotone function would do."""
    begin, end = fitted.blocks[:-1], fitted.blocks[1:] - 1
    knots = np.stack([begin, end], axis=1).ravel()  # ends of flat parts; a part of one place has one knot
    knots = knots[np.concatenate(([True], knots[1:] > knots[:-1]))]
    return MonotoneCurve(fitted.x[knots], np.maximum.accumulate(np.clip(fitted.value[knots], 0.0, 1.0)))
