"""What certified maps share: they are fitted to intervals, and to confidences beside them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

from certcal.calibrators._base import ConfidenceMap
from certcal.calibrators._points import Parts, Points, check_tradeoff
from certcal.calibrators._samples import CertifiedSamples


class CertifiedMap(ConfidenceMap):
    """A monotone map that makes (1 - λ)·clean + λ·certified Brier score small on the samples it is fitted to."""

    tradeoff: float

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
        check_tradeoff(self.tradeoff)
        samples = CertifiedSamples.from_intervals(lower, upper, correct, confidence, certified=certified)
        return self.fit_samples(samples, radius_weight)

    def fit_samples(self, samples: CertifiedSamples, radius_weight: Sequence[float] | None = None) -> Self:
        """Fit to certified samples, at all their radii."""
        return self._fit_parts(Parts.of(samples, radius_weight))

    def _fit_parts(self, parts: Parts) -> Self:
        """Fit to parts that other trade-offs may share."""
        self._fit_points(parts.at(check_tradeoff(self.tradeoff)))
        return self

    @abstractmethod
    def _fit_points(self, points: Points) -> None:
        """Minimise the squared error at the points."""
