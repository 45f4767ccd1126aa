"""Logistic regression on a few columns, some of whose coefficients may not be negative."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# The largest float32 below 1 is 1 - 2^-24. Confidences nearer to 0 or 1 are taken as this far away, so that the 1.0 of
# a saturated softmax in single precision is a large log-odds (16.6), and not an infinite one.
NEAREST = 2.0**-24
LARGEST_LOG_ODDS = 16.7

# Of the squared distance from the start, in units of the mean loss. Where the loss has a minimum, it changes the loss
# there by about 1e-15; where it has none (the outcomes are separated, or all the same), it makes one.
RIDGE = 1e-8


def log_odds(values: Floats) -> tuple[Floats, Floats]:
    """The two terms ln z and -ln(1 - z), which add up to the log-odds, of confidences moved away from 0 and 1."""
    inside = np.clip(values, NEAREST, 1 - NEAREST)
    return np.log(inside), -np.log1p(-inside)


def sigmoid(values: Floats) -> Floats:
    """1 / (1 + exp(-t))."""
    from scipy.special import expit

    return np.asarray(expit(values), np.float64)


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
    method with step halving, and the best feasible one is taken.

    Parameters
    ----------
    columns
        x_j, one entry per sample.
    targets
        In [0, 1].
    weights
        Not negative, or None for equal ones.
    start
        Where Newton's method starts and the ridge points to.
    not_negative
        How many of the first coefficients are not negative.

    Examples
    --------
    >>> x, one = np.array([-1.0, 0.0, 1.0, 2.0]), np.ones(4)
    >>> fit_logistic([x, one], np.array([1.0, 1.0, 0.0, 0.0]), None, [1.0, 0.0], 1).round(6).tolist()
    [0.0, 0.0]
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
