"""Smooth monotone curves of the log-odds: quadratic between knots, straight outside them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError
from certcal._base.text import counted
from certcal.calibrators._base import OutcomeMap, numbers
from certcal.calibrators._formulas import ScoreFormula, pieces
from certcal.calibrators._logistic import MANY, LogisticMap, LogisticProblem, groups_of, inside, log_odds_terms, sigmoid
from certcal.calibrators.scores import Floats

# Weights of the squared differences of neighbouring slopes, in log losses of one sample; the smoothest first.
_ROUGHNESS = (1000.0, 100.0, 10.0, 1.0)
_STEEPEST = 1e6  # of what a file may hold


class SplineScaling(LogisticMap, OutcomeMap):
    """g(z) = sigmoid(s(logit z)), where the slope of s is >= 0 and linear between knots: smooth and monotone.

    So s is quadratic between two knots, and straight outside all. It has the least log loss with a penalty on the
    differences of neighbouring slopes, whose weight is lowered while Akaike's criterion falls (the number of parameters
    being the trace of H⁻¹H₀, the Hessians with and without the penalty). Knots are six quantiles of the
    log-odds. Confidences of 0 and 1 are pulled in as by :class:`PlattScaling`.

    Attributes
    ----------
    knots_, slopes_, level_
        Knots in log-odds, the slopes of s there, and s at the first knot.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> z = rng.random(20_000)
    >>> fitted = SplineScaling().fit(z, rng.random(z.size) < (z + z**3) / 2)
    >>> fitted.transform([0.2, 0.5, 0.8]).round(1).tolist()
    [0.1, 0.3, 0.7]
    """

    knots_: Floats
    slopes_: Floats
    level_: float
    _kept: ClassVar = {"knots": None, "slopes": None, "level": (-1e8, 1e8)}
    _shares: ClassVar[tuple[float, ...]] = (0.01, 0.2, 0.4, 0.6, 0.8, 0.99)

    def _fit(self, z: Floats, c: NDArray[np.uint8], w: Floats | None) -> None:
        x = np.add(*self._pull_in(z))
        self.knots_ = np.unique(_quantiles(x, w, self._shares))
        if self.knots_.size == 1:
            self.knots_ = self.knots_[0] + np.array([0.0, 1.0])
        count = self.knots_.size
        differences = np.diff(np.eye(count, count + 1), axis=0)
        size = float(x.size if w is None else w.sum() ** 2 / (w @ w))
        rough = differences.T @ differences / size
        problem = self._problem(x, c.astype(np.float64), w)
        theta, weight = problem.start, 0.0
        if count > 2:
            theta, weight = self._roughness(problem if x.size <= MANY else self._of_groups(z, c, w), rough, size)
        theta = problem.minimise(problem.begin() if count == 2 else theta, weight * rough)
        self.slopes_, self.level_ = theta[:-1], float(theta[-1])

    def _problem(self, x: Floats, outcomes: Floats, w: Floats | None) -> LogisticProblem:
        identity = [*np.ones(self.knots_.size), float(self.knots_[0])]
        return LogisticProblem([*self._integrals(x).T, np.ones(x.size)], outcomes, w, identity, self.knots_.size)

    def _of_groups(self, z: Floats, c: NDArray[np.uint8], w: Floats | None) -> LogisticProblem:
        """The problem of groups of neighbouring scores of one outcome, which is all but the same."""
        places, group = groups_of(np.clip(z, self.nearest_, 1 - self.nearest_), np.ones(z.size) if w is None else w)
        mass = np.bincount(2 * group + c, w, 2 * places.size).astype(np.float64)
        x = np.add(*self._log_odds(places)).repeat(2)
        return self._problem(x[mass > 0], np.tile([0.0, 1.0], places.size)[mass > 0], mass[mass > 0])

    @staticmethod
    def _roughness(problem: LogisticProblem, rough: Floats, size: float) -> tuple[Floats, float]:
        """The weight of the roughness, lowered while Akaike's criterion falls, and the curve."""
        theta, least = problem.start, math.inf
        found, best = theta, _ROUGHNESS[0]
        for weight in _ROUGHNESS:
            theta = problem.minimise(theta, weight * rough)
            criterion = problem.akaike(theta, weight * rough, size)
            if criterion >= least:
                break
            found, best, least = theta, weight, criterion
        return found, best

    def _integrals(self, x: Floats) -> Floats:
        """What each knot's slope adds to s at x: the integral from the first knot of a slope that is 1 there."""
        k, rows = self.knots_, np.arange(x.size)
        width = np.diff(k)
        segment = np.clip(np.searchsorted(k, x, side="right") - 1, 0, k.size - 2)
        part = (np.clip(x, k[0], k[-1]) - k[segment]) / width[segment]
        halves = np.zeros((k.size, k.size))
        halves[np.arange(1, k.size), np.arange(k.size - 1)] = halves[np.arange(1, k.size), np.arange(1, k.size)] = (
            width / 2
        )
        found = np.cumsum(halves, axis=0)[segment]
        found[rows, segment] += width[segment] * (part - part**2 / 2)
        found[rows, segment + 1] += width[segment] * part**2 / 2
        found[:, 0] += np.minimum(x - k[0], 0.0)
        found[:, -1] += np.maximum(x - k[-1], 0.0)
        return found

    def _apply(self, values: Floats) -> Floats:
        x = np.add(*self._log_odds(values))
        return inside(sigmoid(self._integrals(x) @ self.slopes_ + self.level_))

    def _formula(self) -> ScoreFormula:
        width, slopes = np.diff(self.knots_), self.slopes_
        rise, bend = width * slopes[:-1], width * np.diff(slopes) / 2
        level = self.level_ + np.concatenate([[0], np.cumsum(rise + bend)])
        inner = np.stack([level[:-1], rise, bend], axis=1)
        rows = np.concatenate([[[level[0], slopes[0], 0]], inner, [[level[-1], slopes[-1], 0]]])
        ends = np.append(self.knots_[0], self.knots_), np.concatenate([[1], width, [1]])
        low, high = log_odds_terms(self.nearest_)
        words = f"sigmoid of {counted(self.knots_.size - 1, 'parabola')} of the log-odds, straight outside"
        return ScoreFormula(pieces(low + high, self.knots_, *ends, rows).logistic(), words)

    def _coefficients(self) -> tuple[float, ...]:
        # What is added up is at most a slope times the way from the first knot, which is twice as long as log-odds are.
        return *(2 * float(slope) for slope in self.slopes_), abs(self.level_)

    def _restore(self, state: Mapping[str, Any]) -> None:
        super()._restore(state)
        knots = numbers(state, "knots", (None,))
        slopes = numbers(state, "slopes", (knots.size,))
        if knots.size < 2 or np.abs(knots).max() > 100 or not (np.diff(knots) > 0).all():
            raise InputError("knots is damaged; expected at least two ascending log-odds")
        if slopes.min() < 0 or slopes.max() > _STEEPEST:
            raise InputError(f"slopes is damaged; expected numbers from 0 to {_STEEPEST:g}")
        self.knots_, self.slopes_ = knots, slopes


class QuadraticScaling(SplineScaling):
    """g(z) = sigmoid(a + b·x + c·x²) with x = logit(z), kept from falling: a spline with two knots.

    Where the log-odds of each outcome are normally distributed this is the right family (Berta et al. 2025). The knots
    are the 1 % and 99 % quantiles of the log-odds; outside them the curve goes on straight, so that it never falls and
    no single score bends it.

    Attributes
    ----------
    knots_, slopes_, level_
        As for :class:`SplineScaling`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=50_000)
    >>> z = 1 / (1 + np.exp(-x))
    >>> fitted = QuadraticScaling().fit(z, rng.random(z.size) < 1 / (1 + np.exp(-(x + x**2 / 10))))
    >>> bend = (fitted.slopes_[1] - fitted.slopes_[0]) / (fitted.knots_[1] - fitted.knots_[0]) / 2
    >>> round(float(bend), 1)
    0.1
    """

    _shares = (0.01, 0.99)


def _quantiles(x: Floats, w: Floats | None, shares: tuple[float, ...]) -> Floats:
    """The least number of which a share of the weight is not above."""
    order = np.argsort(x)
    mass = np.arange(1, x.size + 1) / x.size if w is None else np.cumsum(w[order]) / w.sum()
    return x[order[np.minimum(np.searchsorted(mass, np.array(shares) - 1e-12), x.size - 1)]]
