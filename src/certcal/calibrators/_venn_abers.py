"""Venn-Abers prediction: two probabilities for each confidence, of which one is calibrated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError, confidences
from certcal._base.json import PlainValues
from certcal.calibrators._base import OutcomeMap, numbers
from certcal.calibrators._formulas import ScoreFormula, constant, steps
from certcal.calibrators.scores import Floats
from certcal.metrics.isotonic import isotonic

_ROUNDING = 2.0**-50


class VennAbers(OutcomeMap):
    """Isotonic regression with the new sample added, once with outcome 0 and once with 1 (Vovk and Petej 2014).

    What is proved: if the samples of the fit and a new one are exchangeable (independent draws are), the probability
    that belongs to the outcome that occurs, p₁ for 1 and p₀ for 0, is calibrated: E[y | p_y] = p_y exactly, whatever
    the scores are worth and however few samples there are. Why: p_y is the isotonic fit to all n + 1 samples at the
    new one; each value of that fit is the mean outcome of the samples that have it, and the new one is equally likely
    to be any of them. Which of the two it is nobody knows beforehand, so the interval between them says how far the
    map can be relied on. Nothing of this is proved about the one number that :meth:`transform` gives, nor with weights.

    :meth:`transform` gives p₁/(1 - p₀ + p₁), whose log loss exceeds that of p_y by least in the worse of the two cases.
    It is never 0 or 1. All samples of the fit are kept as steps, found in one sort and one walk along two hulls.

    Attributes
    ----------
    starts_, low_
        p₀ is low_[k] from starts_[k] on, up to the next; 0 before the first.
    ends_, high_
        p₁ is high_[k] up to ends_[k], from above the one before; 1 after the last.

    Examples
    --------
    >>> fitted = VennAbers().fit([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1])
    >>> [each.round(3).tolist() for each in fitted.probabilities([0.3, 0.5])]
    [[0.0, 0.333], [0.667, 0.667]]
    >>> fitted.transform([0.3, 0.5]).round(3).tolist()
    [0.4, 0.5]
    """

    starts_: Floats
    low_: Floats
    ends_: Floats
    high_: Floats
    _kept: ClassVar = dict.fromkeys(("starts", "low", "ends", "high"))

    def _fit(self, z: Floats, c: NDArray[np.uint8], w: Floats | None) -> None:
        from certcal._kernels.venn_abers import with_one_more

        if w is not None:
            some = w > 0
            z, c, w = z[some], c[some], w[some]
        fitted = isotonic(z, c.astype(np.float64), w)
        low, high = np.empty(fitted.x.size), np.empty(fitted.x.size)
        with_one_more(fitted.mass, fitted.total, 0.0, low)
        with_one_more(fitted.mass, fitted.total, 1.0, high)
        low, high = (np.maximum.accumulate(np.clip(each, 0.0, 1.0)) for each in (low, high))
        first = np.concatenate(([True], low[1:] > low[:-1]))
        last = np.concatenate((high[1:] > high[:-1], [True]))
        self.starts_, self.low_ = fitted.x[first], low[first]
        self.ends_, self.high_ = fitted.x[last], high[last]

    def probabilities(self, confidence: Any) -> tuple[Floats, Floats]:
        """p₀ and p₁ of each confidence; p₀ is not above p₁.

        Parameters
        ----------
        confidence
            In [0, 1], one per sample.
        """
        self._require_fitted()
        return self._pair(confidences(confidence).astype(np.float64))

    def _pair(self, values: Floats) -> tuple[Floats, Floats]:
        below = np.searchsorted(self.starts_, values, side="right")
        up_to = np.searchsorted(self.ends_, values, side="left")
        last = self.high_.size - 1
        return (
            np.where(below > 0, self.low_[below - 1], 0.0),
            np.where(up_to <= last, self.high_[np.minimum(up_to, last)], 1.0),
        )

    def _apply(self, values: Floats) -> Floats:
        low, high = self._pair(values)
        return high / (1 - low + high)

    def _formula(self) -> ScoreFormula:
        low = steps(self.starts_, np.append(0.0, self.low_), "left")
        high = steps(self.ends_, np.append(self.high_, 1.0), "right")
        value = constant(1.0) / (constant(1.0) + (constant(1.0) - low) / high)
        return ScoreFormula(value, f"p1 / (1 - p0 + p1), of {self.low_.size + 1} and {self.high_.size + 1} steps")

    def _interval(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        return np.maximum(self._apply(lower) - _ROUNDING, 0.0), np.minimum(self._apply(upper) + _ROUNDING, 1.0)

    def _restore(self, state: Mapping[str, Any]) -> None:
        for place, value in (("starts", "low"), ("ends", "high")):
            x = numbers(state, place, (None,))
            y = numbers(state, value, (x.size,))
            for each in (x, y):
                if each[0] < 0 or each[-1] > 1 or not (np.diff(each) > 0).all():
                    raise InputError(f"{place} and {value} are damaged; expected ascending numbers from 0 to 1")
            setattr(self, f"{place}_", x)
            setattr(self, f"{value}_", y)
        if self.high_[0] == 0 or self.low_[-1] == 1:
            raise InputError("low or high is damaged; expected low below 1 and high above 0")


@dataclass(frozen=True, eq=False)
class TwoProbabilities(PlainValues):
    """Both probabilities of a :class:`VennAbers` map, at deciles of scores, and how far apart they are."""

    score: tuple[float, ...]
    p0: tuple[float, ...]
    p1: tuple[float, ...]
    value: tuple[float, ...]
    """The one number between them."""
    mean_width: float
    """Of the intervals of all scores."""
    largest_width: float
    claim: str
    """What is proved about them."""

    @staticmethod
    def of(fitted: VennAbers, scores: Floats, *, weighted: bool) -> TwoProbabilities:
        """At some of the scores that the map is judged on."""
        low, high = fitted.probabilities(scores)
        places = np.unique(np.quantile(scores, np.arange(11) / 10, method="lower"))
        width, at = high - low, fitted.probabilities(places)
        return TwoProbabilities(
            tuple(places.tolist()),
            p0=tuple(at[0].tolist()),
            p1=tuple(at[1].tolist()),
            value=tuple(fitted.transform(places).tolist()),
            mean_width=float(width.mean()),
            largest_width=float(width.max()),
            claim=_WEIGHTED if weighted else _PROVED,
        )


_PROVED = (
    "If these samples and a new one are exchangeable, the one of p0 and p1 that belongs to its outcome is calibrated: "
    "E[y | p_y] = p_y. Which one that is shows only afterwards; nothing is proved about the number between them."
)
_WEIGHTED = "With weights nothing is proved about p0 and p1."
