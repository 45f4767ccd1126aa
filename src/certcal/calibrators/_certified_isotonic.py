"""The monotone map that is best in the worst case: one isotonic regression."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from certcal.calibrators._base import ConfidenceMap, numbers
from certcal.calibrators._curve import MonotoneCurve
from certcal.calibrators._points import Parts, check_tradeoff
from certcal.calibrators._pooled import isotonic_curve
from certcal.calibrators._samples import CertifiedSamples

Floats = NDArray[np.float64]


class CertifiedIsotonic(ConfidenceMap):
    """The exact minimiser of (1 - λ)·clean + λ·certified Brier score over all monotone maps.

    What is claimed of the samples it is fitted to: no monotone map g of the confidences has a smaller (1 - λ) mean
    (c - g(z))² + λ mean max over [l, u] of (c - g)², the second mean over the certified samples (with several radii,
    their weighted mean). Why: the maximum of a monotone g is at l for a correct sample and at u for an incorrect one,
    whatever g is, so the sum is the squared error of an isotonic regression of c on known places; pooling adjacent
    violators minimises it exactly. About other samples nothing is claimed by the fit: judge the map on samples that it
    was not fitted to (:func:`certcal.calibrators.recalibrate` does).

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

    def fit(
        self,
        lower: Any,
        upper: Any,
        correct: Any,
        confidence: Any = None,
        *,
        certified: Any = None,
        radius_weight: Sequence[float] | None = None,
    ) -> Self:
        """Fit to intervals of confidences at one radius, or at several (one column each).

        Parameters
        ----------
        lower, upper, correct, confidence, certified
            As for :meth:`CertifiedSamples.from_intervals`. ``confidence`` is needed unless the trade-off is 1.
        radius_weight
            Weights of the radii, equal when not given.
        """
        samples = CertifiedSamples.from_intervals(lower, upper, correct, confidence, certified=certified)
        return self.fit_samples(samples, radius_weight)

    def fit_samples(self, samples: CertifiedSamples, radius_weight: Sequence[float] | None = None) -> Self:
        """Fit to certified samples, at all their radii."""
        return self._fit_parts(Parts.of(samples, radius_weight))

    def _fit_parts(self, parts: Parts) -> Self:
        points = parts.at(check_tradeoff(self.tradeoff))
        self.curve_ = isotonic_curve(points.x, points.c, points.w)
        return self

    def _apply(self, values: Floats) -> Floats:
        return self.curve_(values)

    def _interval(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        return self.curve_(lower), self.curve_(upper)  # the curve is monotone as computed

    def _state(self) -> dict[str, Any] | None:
        return self.curve_.to_dict() if hasattr(self, "curve_") else None

    def _restore(self, state: Mapping[str, Any]) -> None:
        x = numbers(state, "x", (None,))
        self.curve_ = MonotoneCurve(x, numbers(state, "y", (x.size,)))
