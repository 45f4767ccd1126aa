"""Maps with one and two parameters that are best in the worst case, by a search that proves how near it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import positive
from certcal.calibrators._base import number
from certcal.calibrators._certified_map import CertifiedMap
from certcal.calibrators._logistic import log_odds, rounding, sigmoid
from certcal.calibrators._points import Points
from certcal.calibrators._search import Found, search

Floats = NDArray[np.float64]

# The steepest map that is looked for: log-odds that differ by 0.01 are 10 apart after it.
STEEPEST = 1000.0
# Log-odds beyond which a sigmoid differs from 0 or 1 by less than 1e-17.
_SATURATED = 40.0


class CertifiedTemperature(CertifiedMap):
    """g(z) = sigmoid(logit(z) / T) with the least (1 - λ)·clean + λ·certified Brier score.

    What is claimed of the samples it is fitted to: no temperature from 0.001 up, infinity included (g = ½), has a score
    smaller by more than ``gap_``. The score is that of :class:`CertifiedIsotonic`, and it may have several local
    minima; :func:`certcal.calibrators._search.search` says why the gap is proved. This is a temperature of the log-odds
    of the confidence, which is all that a certificate is about; for more than two classes it differs from dividing all
    logits, and draws confidences to ½. Confidences nearer to 0 or 1 than 2^-24 are taken as that far away, so that an
    interval that reaches 1 can be moved at all.

    Parameters
    ----------
    tradeoff
        λ from 0 (clean) to 1 (certified).
    tolerance
        The gap that ends the search.

    Attributes
    ----------
    temperature_
        T, infinite where the best map is ½ for all.
    objective_
        Score of the map on the samples of the fit.
    gap_
        No other T has a score below ``objective_ - gap_``. At most the tolerance, unless the search would have taken
        more than some ten seconds.

    Examples
    --------
    >>> z = np.array([0.7, 0.8, 0.9, 0.95])
    >>> fitted = CertifiedTemperature(tradeoff=1).fit(z - 0.1, z + 0.05, [1, 0, 1, 1])
    >>> round(fitted.temperature_, 2), fitted.gap_ <= 1e-7
    (2.0, True)
    """

    def __init__(self, tradeoff: float = 0.5, tolerance: float = 1e-7) -> None:
        self.tradeoff = tradeoff
        self.tolerance = tolerance

    def _fit_points(self, points: Points) -> None:
        tolerance = positive(self.tolerance, "tolerance")
        low, high = log_odds(points.x)
        found = search(
            low + high, points.right, points.wrong, np.array([0.0, 0.0]), np.array([STEEPEST, 0.0]), tolerance
        )
        self._slope = found.slope
        self.objective_, self.gap_ = _judged(points, self._apply(points.x), found)

    @property
    def temperature_(self) -> float:
        """T, infinite where the best map is ½ for all."""
        self._require_fitted()
        return 1 / self._slope if self._slope > 0 else float("inf")

    def _apply(self, values: Floats) -> Floats:
        low, high = log_odds(values)
        return sigmoid(self._slope * (low + high))

    def _interval(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        return _outward(self._apply(lower), self._apply(upper), self._slope, 0.0)

    def _state(self) -> dict[str, Any] | None:
        if not hasattr(self, "_slope"):
            return None
        return {"slope": self._slope, "objective": self.objective_, "gap": self.gap_}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self._slope = number(state, "slope", 0.0, STEEPEST)
        self.objective_, self.gap_ = number(state, "objective", 0.0, 1.0), number(state, "gap", 0.0, 1.0)


class CertifiedBeta(CertifiedMap):
    """g(z) = sigmoid(a·logit(z) + c) with a >= 0 and the least (1 - λ)·clean + λ·certified Brier score.

    This is the beta map of Kull et al. (2017) with a = b. Of the families with two parameters it is the one that has
    the identity (a = 1, c = 0), every temperature (c = 0) and every constant (a = 0) in it, so on the samples of the
    fit it is not worse than any of those by more than ``gap_``; with c = 0 and two slopes there would be no constant
    but ½. The third parameter of the full beta map would cost a search in three dimensions.

    What is claimed of the samples it is fitted to: no a from 0 to 1000 and no c has a score smaller by more than
    ``gap_``; see :class:`CertifiedTemperature`, also for confidences of 0 and 1.

    Parameters
    ----------
    tradeoff
        λ from 0 (clean) to 1 (certified).
    tolerance
        The gap that ends the search.

    Attributes
    ----------
    slope_, intercept_
        a and c.
    objective_, gap_
        Score of the map on the samples of the fit, and how much lower another could be at most.

    Examples
    --------
    >>> z = np.array([0.7, 0.8, 0.9, 0.95])
    >>> fitted = CertifiedBeta(tradeoff=1).fit(z - 0.1, z + 0.05, [1, 0, 1, 1])
    >>> round(fitted.slope_, 2), fitted.transform([0.9]).round(3).tolist()
    (0.0, [0.75])
    """

    def __init__(self, tradeoff: float = 0.5, tolerance: float = 1e-7) -> None:
        self.tradeoff = tradeoff
        self.tolerance = tolerance

    def _fit_points(self, points: Points) -> None:
        tolerance = positive(self.tolerance, "tolerance")
        low, high = log_odds(points.x)
        weight = points.right + points.wrong
        centre = float(weight @ (low + high) / weight.sum())
        places = low + high - centre
        # Beyond this offset every place is saturated, whatever the slope, and nothing changes any more.
        far = STEEPEST * float(np.abs(places).max()) + _SATURATED
        corners = np.array([0.0, -far]), np.array([STEEPEST, far])
        found = search(places, points.right, points.wrong, *corners, tolerance)
        self.slope_, self.intercept_ = found.slope, found.offset - found.slope * centre
        self.objective_, self.gap_ = _judged(points, self._apply(points.x), found)

    def _apply(self, values: Floats) -> Floats:
        low, high = log_odds(values)
        return sigmoid(self.slope_ * (low + high) + self.intercept_)

    def _interval(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        return _outward(self._apply(lower), self._apply(upper), self.slope_, self.intercept_)

    def _state(self) -> dict[str, Any] | None:
        if not hasattr(self, "slope_"):
            return None
        names = ("slope", "intercept", "objective", "gap")
        return {name: getattr(self, f"{name}_") for name in names}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.slope_, self.intercept_ = number(state, "slope", 0.0, STEEPEST), number(state, "intercept", -1e6, 1e6)
        self.objective_, self.gap_ = number(state, "objective", 0.0, 1.0), number(state, "gap", 0.0, 1.0)


def _judged(points: Points, values: Floats, found: Found) -> tuple[float, float]:
    """Score of the map as it is applied, and how much lower that of another could be."""
    score = points.score(values)
    return score, max(0.0, score - max(found.least, 0.0))


def _outward(lower: Floats, upper: Floats, slope: float, intercept: float) -> tuple[Floats, Floats]:
    """Ends moved by what computing them may have rounded. A constant has one value, however it was rounded."""
    if slope == 0:
        return lower, upper
    room = rounding(slope, intercept)
    return np.maximum(lower - room, 0.0), np.minimum(upper + room, 1.0)
