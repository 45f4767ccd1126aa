"""Slow, obvious twins of certified recalibration."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq, minimize


@dataclass(frozen=True)
class Problem:
    """Certified samples as plain lists: one interval per radius and sample, None where nothing is certified."""

    intervals: Sequence[Sequence[tuple[float, float] | None]]
    correct: Sequence[int]
    confidence: Sequence[float]
    weights: Sequence[float]

    @property
    def lower(self) -> np.ndarray:
        return np.array([[np.nan if one is None else one[0] for one in row] for row in self.intervals])

    @property
    def upper(self) -> np.ndarray:
        return np.array([[np.nan if one is None else one[1] for one in row] for row in self.intervals])

    @property
    def certified(self) -> np.ndarray:
        return np.array([[one is not None for one in row] for row in self.intervals])

    @property
    def arguments(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return self.lower, self.upper, np.array(self.correct), np.array(self.confidence)


def clean_brier(g: Callable[[float], float], p: Problem) -> float:
    return sum((c - g(z)) ** 2 for c, z in zip(p.correct, p.confidence, strict=True)) / len(p.correct)


def certified_brier(g: Callable[[float], float], p: Problem) -> float:
    """Weighted mean over radii of the mean over certified samples of the worst squared error at 33 places inside."""
    found = []
    for k, weight in enumerate(p.weights):
        worst = [
            max((c - g(z)) ** 2 for z in np.linspace(*row[k], 33))
            for row, c in zip(p.intervals, p.correct, strict=True)
            if row[k] is not None
        ]
        if worst and weight > 0:
            found.append((sum(worst) / len(worst), weight))
    return sum(value * weight for value, weight in found) / sum(weight for _, weight in found)


def objective(g: Callable[[float], float], p: Problem, tradeoff: float) -> float:
    clean = clean_brier(g, p) if tradeoff < 1 else 0.0
    return (1 - tradeoff) * clean + (tradeoff * certified_brier(g, p) if tradeoff > 0 else 0.0)


def quadratic_program(p: Problem, tradeoff: float) -> float:
    """Least objective over non-decreasing values at all ends and confidences, by a general solver.

    The worst error of an interval is a variable of its own, at least the error at either end.
    """
    ends = [end for row in p.intervals for one in row if one is not None for end in one]
    places = sorted({*ends, *p.confidence})
    terms: list[tuple[float, list[int], int]] = []  # weight, places whose error counts, outcome
    clean = (1 - tradeoff) / len(p.correct)
    terms += [(clean, [places.index(z)], c) for z, c in zip(p.confidence, p.correct, strict=True)]
    used = [k for k, weight in enumerate(p.weights) if weight > 0 and any(row[k] for row in p.intervals)]
    for k in used:
        kept = [(row[k], c) for row, c in zip(p.intervals, p.correct, strict=True) if row[k] is not None]
        weight = tradeoff * p.weights[k] / sum(p.weights[j] for j in used) / len(kept)
        terms += [(weight, [places.index(end) for end in one], c) for one, c in kept]
    size, weights = len(places), np.array([weight for weight, _, _ in terms])
    rows, floor = [], []  # rows @ variables >= floor
    for low, high in zip(range(size - 1), range(1, size), strict=True):
        rows.append({low: -1.0, high: 1.0})
        floor.append(0.0)
    for k, (_, at, c) in enumerate(terms):
        for place in at:
            sign = 1.0 if c else -1.0  # error >= c - g for a correct one, g for another
            rows.append({size + k: 1.0, place: sign})
            floor.append(float(c))
    matrix = np.zeros((len(rows), size + len(terms)))
    for k, row in enumerate(rows):
        for column, entry in row.items():
            matrix[k, column] += entry
    found = minimize(
        lambda v: float(weights @ v[size:] ** 2),
        np.full(size + len(terms), 0.5),
        jac=lambda v: np.concatenate([np.zeros(size), 2 * weights * v[size:]]),
        method="SLSQP",
        bounds=[(0, 1)] * (size + len(terms)),
        constraints={"type": "ineq", "fun": lambda v: matrix @ v - floor, "jac": lambda _: matrix},
        options={"ftol": 1e-13, "maxiter": 500},
    )
    assert found.success, found.message
    return float(found.fun)


def logistic(slope: float, intercept: float) -> Callable[[float], float]:
    """sigmoid(slope·logit(z) + intercept), with confidences kept 2^-24 away from 0 and 1."""

    def g(z: float) -> float:
        inside = min(max(float(z), 2.0**-24), 1 - 2.0**-24)
        return float(1 / (1 + np.exp(-np.clip(slope * np.log(inside / (1 - inside)) + intercept, -700, 700))))

    return g


def log_capital(gains: np.ndarray, constant: float, mean: float) -> float:
    """Of bets 1, ½, ¼ … that the expected gain over a constant is larger than ``mean``, made equally."""
    low, high = min(constant**2, (1 - constant) ** 2) - 1, max(constant**2, (1 - constant) ** 2)
    x, m = (gains - low) / (high - low), (mean - low) / (high - low)
    bets = 0.5 ** np.arange(1 + max(1, math.ceil(math.log2(len(gains)) / 2)))
    with np.errstate(divide="ignore"):
        logs = np.array([np.sum(np.log(1 - bet + bet * x / m)) for bet in bets])
    return float(np.log(np.mean(np.exp(logs - logs.max()))) + logs.max())


def least_gain(gains: np.ndarray, constant: float, delta: float) -> float:
    """The mean at which the bets have just earned 1/delta."""
    low, high = min(constant**2, (1 - constant) ** 2) - 1, max(constant**2, (1 - constant) ** 2)
    start = low + 1e-9 * (high - low)
    return float(brentq(lambda mean: log_capital(gains, constant, mean) + math.log(delta), start, high, xtol=1e-14))
