"""The monotone map that is best in the worst case: one isotonic regression."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal.calibrators._base import numbers
from certcal.calibrators._certified_map import CertifiedMap
from certcal.calibrators._curve import MonotoneCurve
from certcal.calibrators._points import Points
from certcal.calibrators._pooled import isotonic_curve

Floats = NDArray[np.float64]


class CertifiedIsotonic(CertifiedMap):
    """The exact minimiser of (1 - λ)·clean + λ·certified Brier score over all monotone maps into [0, 1].

    What is claimed of the samples it is fitted to: no monotone (never falling) map g of them into [0, 1] has a smaller
    (1 - λ) mean (c - g(z))² + λ mean max over [l, u] of (c - g)², the second mean over the certified samples (with
    several radii, their weighted mean). Why: the maximum is at l for a correct sample and at u for an incorrect one,
    whatever g is, so the sum is the squared error of an isotonic regression of c on known places; pooling adjacent
    violators minimises it exactly. It determines g at these places only; between them g is a straight line. So at
    λ = 0 other maps with the same clean Brier score may have a smaller certified one, and at λ = 1 the other way round.
    About other samples nothing is claimed by the fit: judge the map on samples that it was not fitted to
    (:func:`certcal.recalibrate` does).

    Parameters
    ----------
    tradeoff
        λ from 0 (plain isotonic regression on the clean confidences) to 1 (the certified Brier score alone).

    Attributes
    ----------
    curve_
        The map: knots and values.

    Examples
    --------
    >>> lower, upper, correct = [0.1, 0.4, 0.7, 0.8], [0.3, 0.6, 0.9, 0.95], [0, 1, 0, 1]
    >>> fitted = CertifiedIsotonic(tradeoff=1).fit(lower, upper, correct)
    >>> fitted.transform([0.2, 0.5, 0.85]).round(6).tolist()
    [0.0, 0.666667, 0.666667]
    """

    def __init__(self, tradeoff: float = 0.5) -> None:
        self.tradeoff = tradeoff

    def _fit_points(self, points: Points) -> None:
        self.curve_ = isotonic_curve(points)

    def _apply(self, values: Floats) -> Floats:
        return self.curve_(values)

    def _interval(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        return self.curve_(lower), self.curve_(upper)  # the curve is monotone as computed

    def _state(self) -> dict[str, Any] | None:
        return self.curve_.to_dict() if hasattr(self, "curve_") else None

    def _restore(self, state: Mapping[str, Any]) -> None:
        x = numbers(state, "x", (None,))
        self.curve_ = MonotoneCurve(x, numbers(state, "y", (x.size,)))
