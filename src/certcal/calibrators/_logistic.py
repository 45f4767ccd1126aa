"""Logistic curves of the log-odds, and the regression that fits them: Platt scaling and beta calibration."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from certcal.calibrators._base import ConfidenceMap, OutcomeMap, number
from certcal.calibrators._formulas import SCORE, ScoreFormula, Term, constant
from certcal.calibrators.scores import LEAST, Floats

# The largest float32 below 1 is 1 - 2^-24. Confidences nearer to 0 or 1 are taken as this far away, so that the 1.0 of
# a saturated softmax in single precision is a large log-odds (16.6), and not an infinite one.
NEAREST = 2.0**-24
LARGEST_LOG_ODDS = 16.7
_HARD_VOTES = 0.25  # what 0 and 1 are pulled in by where there is nothing between them

# Of the squared distance from the start, in units of the mean loss. Where the loss has a minimum, it changes the loss
# there by about 1e-15; where it has none (the outcomes are separated, or all the same), it makes one.
RIDGE = 1e-8

# Beyond this many different scores, groups of neighbours stand for them where maps, or penalties, are compared; what is
# taken is fitted to all scores.
GROUPS = 1000

# A fit to more samples than this begins where the fit to every 16th of them ended. A step that changes no log-odds by
# more than SHORT is the last one: what it leaves is smaller by the square of that.
MANY, STRIDE, SHORT = 20_000, 16, 1e-4


def resolution(z: Floats) -> float:
    """How far scores of 0 and 1 are pulled in: half the least distance of the other scores from 0 or 1.

    A forest of T trees votes in steps of 1/T, so its 0 counts as 1/(2T). Without scores of 0 or 1 (or nearer to them
    than 2^-24), nothing is pulled in further than 2^-24; where all scores are 0 or 1, they count as 1/4 and 3/4.
    """
    distance = np.minimum(z, 1 - z)
    inner = distance >= NEAREST
    if inner.all():
        return NEAREST
    return max(NEAREST, float(distance[inner].min()) / 2) if inner.any() else _HARD_VOTES


class LogisticMap(ConfidenceMap):
    """sigmoid(slope·logit(z) + intercept) with a slope >= 0, for classes that fit the two; see :func:`log_odds`."""

    slope_: float
    intercept_: float
    nearest_: float = NEAREST
    """Scores nearer to 0 or 1 count as this far away."""

    @abstractmethod
    def _coefficients(self) -> tuple[float, ...]:
        """Factors of the terms of the log-odds, the intercept last. With all others 0 the map is constant."""

    def _log_odds(self, values: Floats) -> tuple[Floats, Floats]:
        return log_odds(values, self.nearest_)

    def _pull_in(self, z: Floats) -> tuple[Floats, Floats]:
        self.nearest_ = resolution(z)
        return self._log_odds(z)

    def _apply(self, values: Floats) -> Floats:
        low, high = self._log_odds(values)
        return inside(sigmoid(self.slope_ * (low + high) + self.intercept_))

    def _interval(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        """Ends moved by what computing them may have rounded. A constant has one value, however it was rounded."""
        coefficients = self._coefficients()
        low, high = self._apply(lower), self._apply(upper)
        if not any(coefficients[:-1]):
            return low, high
        room = rounding(*coefficients)
        return np.maximum(low - room, 0.0), np.minimum(high + room, 1.0)

    def _formula(self) -> ScoreFormula:
        *factors, shift = self._coefficients()
        a, b = factors[0], factors[-1]
        low, high = log_odds_terms(self.nearest_)
        value = (low * a + high * b + shift).logistic(LARGEST_LOG_ODDS * max(a, b) + abs(shift))
        return ScoreFormula(value, f"sigmoid(a ln z - b ln(1 - z) + c) with a = {a:g}, b = {b:g}, c = {shift:g}")

    def _state(self) -> dict[str, Any]:
        return super()._state() | ({} if self.nearest_ == NEAREST else {"nearest": self.nearest_})

    def _restore(self, state: Mapping[str, Any]) -> None:
        super()._restore(state)
        self.nearest_ = number({"nearest": NEAREST, **state}, "nearest", NEAREST, 0.5)


class PlattScaling(LogisticMap, OutcomeMap):
    """g(z) = sigmoid(a·logit(z) + b) with a >= 0: the least log loss of two parameters (Platt 1999).

    The loss is convex and solved by Newton's method. a >= 0 keeps the order of the confidences: where they are worse
    than nothing, g is constant. Confidences of 0 and 1 are pulled in by :attr:`nearest_`, and none becomes 0 or 1, so
    that the log loss is finite on all samples. Where the loss has no minimum (outcomes that are separated by a
    confidence, or all the same), a ridge of 1e-8 towards the identity makes one; elsewhere it changes nothing that
    matters.

    Parameters
    ----------
    targets
        "platt": a correct sample counts as (N₊ + 1)/(N₊ + 2) and a wrong one as 1/(N₋ + 2), Platt's guard against
        overconfidence in small samples; N₊ and N₋ are the numbers (weights) of correct and wrong samples. "outcomes":
        1 and 0, the plain log loss.
    intercept
        Without it b is 0 and targets are outcomes: temperature scaling of a binary score.

    Attributes
    ----------
    slope_, intercept_
        a and b.
    nearest_
        Confidences nearer to 0 or 1 count as this far away: 2^-24 or, where the fit has scores of exactly 0 or 1, half
        the least distance of its other scores from 0 or 1 (1/(2T) for a forest of T trees).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> z = rng.random(10_000)
    >>> logit = np.log(z / (1 - z))
    >>> correct = rng.random(z.size) < 1 / (1 + np.exp(0.5 - logit / 2))
    >>> fitted = PlattScaling().fit(z, correct)
    >>> round(fitted.slope_, 1), round(fitted.intercept_, 1)
    (0.5, -0.5)
    """

    _choices: ClassVar = {"targets": ("platt", "outcomes")}
    _kept: ClassVar = {"slope": (0.0, 1e6), "intercept": (-1e8, 1e8)}

    def __init__(self, targets: str = "platt", intercept: bool = True) -> None:
        self.targets = targets
        self.intercept = intercept

    def _fit(self, z: Floats, c: NDArray[np.uint8], w: Floats | None) -> None:
        targets = c.astype(np.float64)
        low, high = self._pull_in(z)
        if self._check_choice("targets") == "platt" and self.intercept:
            right = float(targets.sum() if w is None else w @ targets)
            wrong = float(c.size if w is None else w.sum()) - right
            targets = np.where(c == 1, (right + 1) / (right + 2), 1 / (max(wrong, 0.0) + 2))
        columns = [low + high, np.ones(z.size)][: 2 if self.intercept else 1]
        found = fit_logistic(columns, targets, w, [1.0, 0.0][: len(columns)], 1)
        self.slope_, self.intercept_ = float(found[0]), float(found[1]) if self.intercept else 0.0

    def _coefficients(self) -> tuple[float, ...]:
        return self.slope_, self.intercept_


class BetaCalibration(LogisticMap, OutcomeMap):
    """g(z) = sigmoid(a·ln z - b·ln(1 - z) + c) with a, b >= 0 (Kull, Silva Filho and Flach 2017).

    The right family when the confidences of correct and of wrong samples are both beta distributed; it
    contains the identity (a = b = 1, c = 0). Least log loss, which is convex, by Newton's method; a, b >= 0 keep the
    order of the confidences. Confidences of 0 and 1 are pulled in as by :class:`PlattScaling`; a ridge of 1e-8 towards
    the identity makes the minimum unique where it would not be.

    Parameters
    ----------
    parameters
        "abm": a, b and c. "am": a = b, the same curves as :class:`PlattScaling` with targets="outcomes". "ab": g is ½
        at z = ½, so c = (a - b) ln 2.

    Attributes
    ----------
    a_, b_, c_
        The parameters.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> z = rng.random(50_000)
    >>> fitted = BetaCalibration().fit(z, rng.random(z.size) < z)  # calibrated already: the identity
    >>> round(fitted.a_, 1), round(fitted.b_, 1), abs(round(fitted.c_, 1))
    (1.0, 1.0, 0.0)
    """

    _choices: ClassVar = {"parameters": ("abm", "am", "ab")}
    _kept: ClassVar = {"a": (0.0, 1e6), "b": (0.0, 1e6), "c": (-1e8, 1e8)}

    def __init__(self, parameters: str = "abm") -> None:
        self.parameters = parameters

    def _fit(self, z: Floats, c: NDArray[np.uint8], w: Floats | None) -> None:
        family = self._check_choice("parameters")
        low, high = self._pull_in(z)
        one = np.ones(z.size)
        targets = c.astype(np.float64)
        if family == "abm":
            a, b, shift = fit_logistic([low, high, one], targets, w, [1.0, 1.0, 0.0], 2)
        elif family == "am":
            a, shift = fit_logistic([low + high, one], targets, w, [1.0, 0.0], 1)
            b = a
        else:
            log2 = math.log(2)
            a, b = fit_logistic([low + log2, high - log2], targets, w, [1.0, 1.0], 2)
            shift = (a - b) * log2
        self.a_, self.b_, self.c_ = float(a), float(b), float(shift)

    def _apply(self, values: Floats) -> Floats:
        low, high = self._log_odds(values)
        return inside(sigmoid(self.a_ * low + self.b_ * high + self.c_))

    def _coefficients(self) -> tuple[float, ...]:
        return self.a_, self.b_, self.c_


def log_odds(values: Floats, nearest: float = NEAREST) -> tuple[Floats, Floats]:
    """The two terms ln z and -ln(1 - z), which add up to the log-odds, of confidences moved away from 0 and 1."""
    inside = np.clip(values, nearest, 1 - nearest)
    return np.log(inside), -np.log1p(-inside)


def log_odds_terms(nearest: float) -> tuple[Term, Term]:
    """The same two as a formula."""
    inside = SCORE.clip(nearest, 1 - nearest)
    return inside.ln(), constant(0.0) - (constant(1.0) - inside).ln()


def sigmoid(values: Floats) -> Floats:
    from scipy.special import expit

    return np.asarray(expit(values), np.float64)


def inside(values: Floats) -> Floats:
    """Confidences with 0 and 1 moved to the numbers next to them that are used, so that no log loss is infinite."""
    return np.clip(values, LEAST, 1 - 2.0**-53)


def rounding(*coefficients: float) -> float:
    """How far a computed sigmoid(a·ln z - b·ln(1 - z) + c) may be from the true one: a few units in the last place."""
    return 16 * 2.0**-52 * (1 + LARGEST_LOG_ODDS * sum(map(abs, coefficients)))


def fit_logistic(
    columns: Sequence[Floats], targets: Floats, weights: Floats | None, start: Sequence[float], not_negative: int
) -> Floats:
    """Coefficients with the least mean log loss of sigmoid(Σ θ_j x_j), the first ``not_negative`` of them >= 0."""
    problem = LogisticProblem(columns, targets, weights, start, not_negative)
    return problem.minimise(problem.begin())


class LogisticProblem:
    """The mean log loss of sigmoid(Σ θ_j x_j), a ridge of 1e-8 towards a start, and whatever penalty ½ θᵀPθ is given.

    It is convex and, with the ridge, strictly so: there is one minimum under θ_j >= 0 for the first ``not_negative``.
    """

    def __init__(
        self,
        columns: Sequence[Floats],
        targets: Floats,
        weights: Floats | None,
        start: Sequence[float],
        not_negative: int,
    ) -> None:
        self.x, self.y = np.stack(columns, axis=1), targets
        self.w = np.full(targets.size, 1 / targets.size) if weights is None else weights / weights.sum()
        self.start = np.asarray(start, np.float64)
        self.bounded = np.arange(self.start.size) < not_negative
        self.none = np.zeros((self.start.size, self.start.size))

    def begin(self) -> Floats:
        """Where to begin: where the fit to every 16th of many samples ended, and it began at the start."""
        if self.y.size <= MANY:
            return self.start
        few = slice(None, None, STRIDE)
        part = LogisticProblem(list(self.x[few].T), self.y[few], self.w[few], self.start.tolist(), self.bounded.sum())
        return part.minimise(self.start) if self.w[few].any() else self.start

    def loss(self, theta: Floats) -> tuple[float, Floats]:
        """The mean log loss alone, and the probabilities."""
        t = self.x @ theta
        tail = np.exp(-np.abs(t))
        each = np.log1p(tail) + np.maximum(t, 0.0) - self.y * t
        return float(self.w @ each), np.where(t > 0, 1.0, tail) / (1 + tail)

    def _penalty(self, theta: Floats, penalty: Floats) -> float:
        away = theta - self.start
        return RIDGE / 2 * float(away @ away) + float(theta @ penalty @ theta) / 2

    def _curvature(self, p: Floats) -> Floats:
        return (self.x * (self.w * p * (1 - p))[:, None]).T @ self.x

    def minimise(self, theta: Floats, penalty: Floats | None = None) -> Floats:
        """The minimum, by Newton's method on the coefficients that are not held at 0.

        A step ends where the first coefficient becomes 0. One at 0 is let go where the loss falls with it and the step
        does not point below 0; that never holds all of those that should be let go, so the end is the minimum.
        (scipy's optimisers took 1.3 to 8 times as long, and most end 1e-10 to 1e-5 away.)
        """
        extra = self.none if penalty is None else penalty
        loss, p = self.loss(theta)
        value = loss + self._penalty(theta, extra)
        for _ in range(200):
            gradient = self.x.T @ (self.w * (p - self.y)) + RIDGE * (theta - self.start) + extra @ theta
            hessian = self._curvature(p) + RIDGE * np.eye(theta.size) + extra
            at_zero = self.bounded & (theta <= 0)
            free, step = ~(at_zero & (gradient > 0)), np.zeros(theta.size)
            while free.any():
                step[:] = 0.0
                step[free] = np.linalg.solve(hessian[np.ix_(free, free)], gradient[free])
                below = at_zero & (step > 0)
                if not below.any():
                    break
                free &= ~below
            decrease = float(gradient @ step)
            if not decrease > 1e-20:
                break
            falling = self.bounded & (step > 0)
            size = min(1.0, float((theta[falling] / step[falling]).min(initial=1.0)))
            if decrease < 1e-12 and size == 1 and float(np.abs(self.x @ step).max()) < SHORT:
                return np.where(self.bounded, np.maximum(theta - step, 0.0), theta - step)
            while True:
                there = theta - size * step
                there[self.bounded] = np.maximum(there[self.bounded], 0.0)
                there[falling & (there < 1e-15 * theta)] = 0.0
                loss, p = self.loss(there)
                new = loss + self._penalty(there, extra)
                if new <= value * (1 + 1e-15) - 1e-4 * size * decrease or size < 1e-10:
                    break
                size /= 2
            theta, value = there, new
        return theta

    def akaike(self, theta: Floats, penalty: Floats, size: float) -> float:
        """Log loss of ``size`` samples plus the effective number of coefficients."""
        loss, p = self.loss(theta)
        free = ~(self.bounded & (theta <= 0))
        own = self._curvature(p)[np.ix_(free, free)]
        whole = own + (RIDGE * np.eye(theta.size) + penalty)[np.ix_(free, free)]
        return size * loss + float(np.trace(np.linalg.solve(whole, own)))


def groups_of(z: Floats, w: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """A place for each group of scores, and the group of each: equal scores, or neighbours in rank and in log-odds."""
    order = np.argsort(z)
    x = z[order]
    step: Sequence[Any] = [x]
    if np.count_nonzero(np.diff(x)) >= GROUPS:
        odds = np.log(x) - np.log1p(-x)
        width = (odds[-1] - odds[0]) / (GROUPS // 2)
        step = [np.arange(x.size) * (GROUPS // 2) // x.size, np.floor((odds - odds[0]) / width)]
    starts = np.concatenate(([True], np.any([each[1:] != each[:-1] for each in step], axis=0)))
    number = np.cumsum(starts) - 1
    mass = np.bincount(number, w[order])
    places: Floats = np.bincount(number, w[order] * x) / np.where(mass > 0, mass, 1.0)
    group = np.empty(z.size, np.int64)
    group[order] = number
    return np.where(mass > 0, np.clip(places, x[0], x[-1]), x[starts]), group
