"""The mixed-integer program of Emde et al. (2024), §3.3, that the baselines search, and what they return."""

from __future__ import annotations

import importlib.util
import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError, choice, confidences, same_length
from certcal.binning import CLOSED, assign, edges_for, sums
from certcal.claims import Frozen
from certcal.worst_case.intervals import check_intervals

Floats = NDArray[np.float64]

STARTS = ("clean", "brier", "uniform", "gaussian")


@dataclass(frozen=True, eq=False)
class Problem:
    """Intervals and bins, checked, with everything the baselines derive from them. Arrays are float64."""

    lower: Floats
    upper: Floats
    correct: NDArray[np.uint8]
    edges: Floats
    closed: str
    clean: Floats

    @property
    def blocked(self) -> NDArray[np.bool_]:
        """Whether bin m is inaccessible to sample n, (M, N): k of the valid assignment constraint.

        As printed, k = 1 where max(l_n, b_m) >= min(u_n, b_{m+1}). That leaves a sample with l = u no bin at all, so
        here the bin that holds l is always accessible; for l < u and bins closed on the left this changes nothing.
        """
        low, high = self._corners()
        blocked = low >= high
        blocked[assign(self.lower, self.edges, self.closed), np.arange(self.lower.size)] = False
        return blocked

    def bounds(self) -> tuple[Floats, Floats]:
        """Lowest and highest confidence of sample n in bin m, (M, N), both 0 where inaccessible: l' and u' of §3.3."""
        low, high = self._corners()
        blocked = self.blocked
        return np.where(blocked, 0.0, low), np.where(blocked, 0.0, high)

    def inside(self, confidence: Floats, chosen: NDArray[np.int64]) -> Floats:
        """The confidences moved to the nearest float inside both their interval and their chosen bin."""
        start, stop = self.edges[:-1].copy(), self.edges[1:].copy()
        if self.closed == "left":
            stop[:-1] = np.nextafter(stop[:-1], -1.0)
        else:
            start[1:] = np.nextafter(start[1:], 2.0)
        return np.clip(confidence, np.maximum(self.lower, start[chosen]), np.minimum(self.upper, stop[chosen]))

    def start(self, how: str, seed: int) -> Floats:
        """Confidences to begin with: z at step 0, before it is spread over the bins."""
        if how == "clean":
            return self.clean
        if how == "brier":
            return np.where(self.correct == 1, self.lower, self.upper)
        # Appendix M.2 names random starts without their law. Read as: uniform in the interval, or normal around its
        # middle with a quarter of its width as standard deviation.
        random = np.random.default_rng(seed)
        width = self.upper - self.lower
        if how == "uniform":
            return np.clip(self.lower + width * random.random(width.size), self.lower, self.upper)
        middle = self.lower + 0.5 * width
        return np.clip(middle + 0.25 * width * random.standard_normal(width.size), self.lower, self.upper)

    def _corners(self) -> tuple[Floats, Floats]:
        """Interval and bin intersected, (M, N): l and u of §3.3."""
        return np.maximum(self.lower, self.edges[:-1, None]), np.minimum(self.upper, self.edges[1:, None])


def check_problem(
    lower: Any, upper: Any, correct: Any, bins: int, edges: Any, closed: str, confidence: Any = None
) -> Problem:
    """Check everything that comes from outside; without clean confidences the middle of the interval stands in."""
    intervals = check_intervals(lower, upper, correct)
    low, high = intervals.lower.astype(np.float64), intervals.upper.astype(np.float64)
    if confidence is None:
        clean = low + 0.5 * (high - low)
    else:
        clean = confidences(confidence).astype(np.float64)
        same_length(lower=low.size, confidence=clean.size)
    # Everywhere in the library edges are compared in the type of the given confidences.
    given = edges_for(bins, edges).astype(intervals.lower.dtype).astype(np.float64)
    side = choice(closed, CLOSED, "closed")
    return Problem(low, high, intervals.correct, given, side, np.clip(clean, low, high))


def check_steps(steps: Any) -> int:
    """A whole number of steps, at least one."""
    try:
        count = operator.index(steps)
    except TypeError:
        count = 0
    if count < 1:
        raise InputError(f"steps is {steps!r}; pass a whole number of at least 1")
    return count


def require_torch(what: str) -> None:
    """Say what to install when torch is missing."""
    if importlib.util.find_spec("torch") is None:
        raise InputError(f"{what} needs torch; install it with: pip install 'certcal[torch]'")


@dataclass(frozen=True, eq=False)
class Baseline:
    """A feasible point of the worst-case program and its calibration error: a *lower* bound of the worst case."""

    name: str
    """The method."""
    value: float
    """Plain calibration error of ``confidence``, with edges rounded to the type of the given intervals. The worst case
    over the intervals is at least this."""
    confidence: Floats
    """One confidence per sample, inside its interval."""
    runs: tuple[float, ...]
    """Best value of every run of the method; ``value`` is the largest."""
    history: Mapping[str, NDArray[Any]] = field(default_factory=dict[str, NDArray[Any]])
    """Per-step diagnostics of every run when they were asked for, else empty."""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Bins, their closure, and what the best run was set to."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "history", Frozen(self.history))
        object.__setattr__(self, "settings", Frozen(self.settings))


def plain_error(confidence: Floats, correct: NDArray[np.uint8], edges: Floats, closed: str) -> float:
    """The calibration error of the confidences: ``certcal.metrics.ece`` of checked input."""
    table = sums(confidence, correct, None, edges, closed)
    return float(np.abs(table.gap_sum).sum() / correct.size)
