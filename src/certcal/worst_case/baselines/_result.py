"""What a baseline returns: confidences inside the intervals, and their plain calibration error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal.binning import sums
from certcal.claims import Frozen

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Baseline:
    """A feasible point of the worst-case program and its calibration error: a *lower* bound of the worst case.

    Attributes
    ----------
    name
        The method.
    value
        Plain calibration error of ``confidence``, with edges rounded to the type of the given intervals. The worst case
        over the intervals is at least this.
    confidence
        One confidence per sample, inside its interval.
    runs
        Best value of every run of the method; ``value`` is the largest.
    history
        Per-step diagnostics of every run when they were asked for, else empty.
    settings
        Bins, their closure, and what the best run was set to.
    """

    name: str
    value: float
    confidence: Floats
    runs: tuple[float, ...]
    history: Mapping[str, NDArray[Any]] = field(default_factory=dict[str, NDArray[Any]])
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        object.__setattr__(self, "history", Frozen(self.history))
        object.__setattr__(self, "settings", Frozen(self.settings))


def plain_error(confidence: Floats, correct: NDArray[np.uint8], edges: Floats, closed: str) -> float:
    """The calibration error of the confidences: ``certcal.metrics.ece`` of checked input."""
    table = sums(confidence, correct, None, edges, closed)
    return float(np.abs(table.gap_sum).sum() / correct.size)
