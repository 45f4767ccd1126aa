"""Platt scaling and beta calibration: logistic curves of the log-odds, and the regression that fits them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from certcal.calibrators._base import OutcomeMap, number
from certcal.calibrators.scores import LEAST, Floats

# The largest float32 below 1 is 1 - 2^-24. Confidences nearer to 0 or 1 are taken as this far away, so that the 1.0 of
# a saturated softmax in single precision is a large log-odds (16.6), and not an infinite one.
NEAREST = 2.0**-24
LARGEST_LOG_ODDS = 16.7

# Of the squared distance from the start, in units of the mean loss. Where the loss has a minimum, it changes the loss
# there by about 1e-15; where it has none (the outcomes are separated, or all the same), it makes one.
RIDGE = 1e-8


class LogisticMap:
    """sigmoid(slope·logit(z) + intercept) with a slope >= 0, for classes that fit the two; see :func:`log_odds`."""

    slope_: float
    intercept_: float
    _limits: ClassVar[Mapping[str, tuple[float, float]]]  # of the numbers that a file may hold

    def _coefficients(self) -> tuple[float, ...]:
        """Factors of the terms of the log-odds, the intercept last. With all others 0 the map is constant."""
        return self.slope_, self.intercept_

    def _apply(self, values: Floats) -> Floats:
        low, high = log_odds(values)
        return inside(sigmoid(self.slope_ * (low + high) + self.intercept_))

    def _interval(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        """Ends moved by what computing them may have rounded. A constant has one value, however it was rounded."""
        coefficients = self._coefficients()
        low, high = self._apply(lower), self._apply(upper)
        if not any(coefficients[:-1]):
            return low, high
        room = rounding(*coefficients)
        return np.maximum(low - room, 0.0), np.minimum(high + room, 1.0)

    def _state(self) -> dict[str, Any] | None:
        found = {name: getattr(self, f"{name}_", None) for name in self._limits}
        return None if None in found.values() else found

    def _restore(self, state: Mapping[str, Any]) -> None:
        for name, limits in self._limits.items():
            setattr(self, f"{name}_", number(state, name, *limits))


class PlattScaling(LogisticMap, OutcomeMap):
    """g(z) = sigmoid(a·logit(z) + b) with a >= 0: the least log loss of two parameters (Platt 1999).

    The loss is convex and solved by Newton's method. a >= 0 keeps the order of the confidences: where they are worse
    than nothing, g is constant. Confidences nearer to 0 or 1 than 2^-24 are taken as that far away, and none becomes
    0 or 1, so that the log loss is finite on all samples. Where the loss has
    no minimum (outcomes that are separated by a confidence, or all the same), a ridge of 1e-8 towards the identity
    makes one; elsewhere it changes nothing that matters.

    Parameters
    ----------
    targets
        "platt": a correct sample counts as (N₊ + 1)/(N₊ + 2) and a wrong one as 1/(N₋ + 2), Platt's guard against
        overconfidence in small samples; N₊ and N₋ are the numbers (weights) of correct and wrong samples. "outcomes":
        1 and 0, the plain log loss.

    Attributes
    ----------
    slope_, intercept_
        a and b.

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
    _limits: ClassVar = {"slope": (0.0, 1e6), "intercept": (-1e8, 1e8)}

    def __init__(self, targets: str = "platt") -> None:
        self.targets = targets

    def _fit(self, z: Floats, c: NDArray[np.uint8], w: Floats | None) -> None:
        targets = c.astype(np.float64)
        if self._check_choice("targets") == "platt":
            right = float(targets.sum() if w is None else w @ targets)
            wrong = float(c.size if w is None else w.sum()) - right
            targets = np.where(c == 1, (right + 1) / (right + 2), 1 / (max(wrong, 0.0) + 2))
        low, high = log_odds(z)
        found = fit_logistic([low + high, np.ones(z.size)], targets, w, [1.0, 0.0], 1)
        self.slope_, self.intercept_ = float(found[0]), float(found[1])


class BetaCalibration(LogisticMap, OutcomeMap):
    """g(z) = sigmoid(a·ln z - b·ln(1 - z) + c) with a, b >= 0 (Kull, Silva Filho and Flach 2017).

    The right family when the confidences of correct and of wrong samples are both beta distributed; it
    contains the identity (a = b = 1, c = 0). Least log loss, which is convex, by Newton's method; a, b >= 0 keep the
    order of the confidences. Confidences nearer to 0 or 1 than 2^-24 are taken as that far away; a ridge of 1e-8
    towards the identity makes the minimum unique where it would not be.

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
    _limits: ClassVar = {"a": (0.0, 1e6), "b": (0.0, 1e6), "c": (-1e8, 1e8)}

    def __init__(self, parameters: str = "abm") -> None:
        self.parameters = parameters

    def _fit(self, z: Floats, c: NDArray[np.uint8], w: Floats | None) -> None:
        family = self._check_choice("parameters")
        low, high = log_odds(z)
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
        low, high = log_odds(values)
        return inside(sigmoid(self.a_ * low + self.b_ * high + self.c_))

    def _coefficients(self) -> tuple[float, ...]:
        return self.a_, self.b_, self.c_


def log_odds(values: Floats) -> tuple[Floats, Floats]:
    """The two terms ln z and -ln(1 - z), which add up to the log-odds, of confidences moved away from 0 and 1."""
    inside = np.clip(values, NEAREST, 1 - NEAREST)
    return np.log(inside), -np.log1p(-inside)


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
    """Coefficients with the least mean log loss of sigmoid(Σ θ_j x_j), the first ``not_negative`` of them >= 0.

    The loss is convex and, with the ridge towards the start, strictly so: there is one minimum. It lies inside the face
    on which the right coefficients are 0, and is the minimum without constraints on that face; every other face offers
    something feasible that is no better, or nothing feasible. So all faces (at most four here) are solved by Newton's
    method with step halving, and the best feasible one is taken. (scipy's optimisers took 1.3 to 8 times as long, and
    most end 1e-10 to 1e-5 away; Newton-CG ran out of iterations where outcomes are separated.)
    """
    x = np.stack(columns, axis=1)
    w = np.full(targets.size, 1 / targets.size) if weights is None else weights / weights.sum()
    first = np.asarray(start, np.float64)
    best, least = first, np.inf
    for count in range(not_negative + 1):
        for zeros in combinations(range(not_negative), count):
            free = [j for j in range(first.size) if j not in zeros]
            theta = np.zeros(first.size)
            theta[free], loss = _newton(x[:, free], targets, w, first[free])
            loss += RIDGE / 2 * float((first[list(zeros)] ** 2).sum())
            if (theta[:not_negative] >= 0).all() and loss < least:
                best, least = theta, loss
        if count == 0 and least < np.inf:
            break  # nothing was in the way
    return best


def _newton(x: Floats, y: Floats, w: Floats, start: Floats) -> tuple[Floats, float]:
    """The minimum without constraints, and the loss there."""

    def loss_at(theta: Floats) -> float:
        t = x @ theta
        each = y * np.logaddexp(0.0, -t) + (1 - y) * np.logaddexp(0.0, t)
        return float(w @ each) + RIDGE / 2 * float(((theta - start) ** 2).sum())

    theta, loss = start.copy(), loss_at(start)
    for _ in range(200):
        p = sigmoid(x @ theta)
        gradient = x.T @ (w * (p - y)) + RIDGE * (theta - start)
        hessian = (x * (w * p * (1 - p))[:, None]).T @ x + RIDGE * np.eye(theta.size)
        step = np.linalg.solve(hessian, gradient)
        decrease = float(gradient @ step)
        if not decrease > 1e-20:
            break
        size = 1.0
        while loss_at(theta - size * step) > loss * (1 + 1e-15) - 1e-4 * size * decrease and size > 1e-10:
            size /= 2
        theta = theta - size * step
        loss = loss_at(theta)
    return theta, loss
