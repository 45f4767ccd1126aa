"""Kernel calibration errors, from moments of the confidences on a grid."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any

from certcal._checks import InputError, positive
from certcal.metrics.cosine import CELLS, CELLS_PER_BANDWIDTH, POINTS, MomentGrid
from certcal.metrics.kde import kde_ece_of
from certcal.metrics.smooth import smooth_ece_of
from certcal.predictions import Predictions
from certcal.torchmetrics._base import ANY_INPUTS, CalibrationMetric, Inputs, Words

# A value whose error bound is above this comes with a warning.
_TOLERATED = 1e-6


class _Kernel(CalibrationMetric[MomentGrid]):
    """Metrics of one grid of moments (one megabyte); in a collection they share it."""

    def __init__(self, bandwidth: float | None = None, *, inputs: Inputs, **options: Any) -> None:
        super().__init__(inputs, ANY_INPUTS, "moments", (2, CELLS, 2, POINTS), options)
        self.bandwidth = None if bandwidth is None else positive(bandwidth, "bandwidth")
        if self.bandwidth is not None and self.bandwidth * CELLS < CELLS_PER_BANDWIDTH:
            raise InputError(
                f"bandwidth is {self.bandwidth:g}; this state resolves {CELLS_PER_BANDWIDTH / CELLS:.2g} and more, "
                "below that pass all samples to the function in certcal.metrics"
            )

    def _sums(self, words: Words) -> MomentGrid:
        loaded, grid = MomentGrid(), MomentGrid()
        loaded.words = words
        grid.merge(loaded)
        return grid

    def _words(self, sums: MomentGrid) -> Words:
        return sums.words

    def _add(self, sums: MomentGrid, predictions: Predictions) -> None:
        sums.update(predictions.confidence, predictions.correct)

    def _value(self, sums: MomentGrid, samples: int) -> float:
        sums.squares = float(samples)  # every sample weighs one
        value, error = self._of(sums)
        if error > _TOLERATED:
            warnings.warn(
                f"{type(self).__name__} is known to {error:.1g} only: its bandwidth is below the cells of the state; "
                "pass all samples to the function in certcal.metrics for the exact value",
                stacklevel=2,
            )
        return value

    @abstractmethod
    def _of(self, grid: MomentGrid) -> tuple[float, float]: ...


class SmoothECE(_Kernel):
    """Smooth calibration error, see :func:`certcal.metrics.smooth_ece`, to 1e-9 for values from 6.2e-4.

    Below one cell of the state, 2.4e-4, the error may be half a cell; a warning says so.

    Parameters
    ----------
    bandwidth
        The σ of smECE_σ, at least 6.2e-4; by default the σ with smECE_σ = σ.
    inputs, **options
        As for :class:`ECE`.

    Examples
    --------
    >>> import torch
    >>> metric = SmoothECE(inputs="confidence")
    >>> metric(torch.tensor([0.75, 0.5]), torch.tensor([1, 1]))
    tensor(0.3750, dtype=torch.float64)
    """

    def _of(self, grid: MomentGrid) -> tuple[float, float]:
        return smooth_ece_of(grid, self.bandwidth)


class KDEECE(_Kernel):
    """Calibration error from kernel density estimates, see :func:`certcal.metrics.kde_ece`, to 1e-9.

    When the default bandwidth is below one cell of the state, 2.4e-4, the value is that of one cell; a warning says so.

    Parameters
    ----------
    bandwidth
        At least 6.2e-4; by default 1.06 s n^(-1/5) with the standard deviation s of the confidences.
    inputs, **options
        As for :class:`ECE`.

    Examples
    --------
    >>> import torch
    >>> metric = KDEECE(inputs="confidence")
    >>> metric(torch.tensor([0.75, 0.75]), torch.tensor([1, 0]))
    tensor(0.2500, dtype=torch.float64)
    """

    def _of(self, grid: MomentGrid) -> tuple[float, float]:
        return kde_ece_of(grid, self.bandwidth)
