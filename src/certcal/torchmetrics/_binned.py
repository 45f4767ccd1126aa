"""Binned calibration errors, from the sums per bin."""

from __future__ import annotations

import operator
from abc import abstractmethod
from typing import Any

from torch import Tensor

from certcal._checks import InputError, bin_count, choice, norm_order
from certcal.binning import CLOSED, BinSums, BinTable, equal_width_edges
from certcal.metrics.binned import debiased_ece_of, ece_of, lp_ece_of, mce_of
from certcal.metrics.classwise import ClasswiseSums, classwise_of
from certcal.predictions import Predictions
from certcal.torchmetrics._base import ANY_INPUTS, MATRIX_INPUTS, CalibrationMetric, Inputs, MatrixInputs, Words


class _Binned(CalibrationMetric[BinSums]):
    """Metrics of one table of bins; in a collection those with the same settings share its state."""

    def __init__(self, bins: int = 15, *, inputs: Inputs, closed: str = "left", **options: Any) -> None:
        count, side = bin_count(bins), choice(closed, CLOSED, "closed")
        super().__init__(inputs, ANY_INPUTS, f"bin_sums_{count}_{side}", (count, 2, 3), options)
        self.bins, self.closed = count, side

    def _sums(self, words: Words) -> BinSums:
        edges = equal_width_edges(self.bins)
        loaded, sums = BinSums(edges, self.closed), BinSums(edges, self.closed)
        loaded.whole = words
        sums.merge(loaded)
        return sums

    def _words(self, sums: BinSums) -> Words:
        return sums.whole

    def _add(self, sums: BinSums, predictions: Predictions) -> None:
        sums.add(predictions.confidence, predictions.correct)

    def _value(self, sums: BinSums, samples: int) -> float:
        return self._of(sums.table())

    @abstractmethod
    def _of(self, table: BinTable) -> float: ...


class ECE(_Binned):
    """Expected calibration error with equal-width bins, see :func:`certcal.metrics.ece`.

    Parameters
    ----------
    bins
        Number of bins.
    inputs
        What ``preds`` holds: "probabilities" or "logits" (one row per sample, ``target`` the true classes), or
        "confidence" (one number per sample, ``target`` whether the prediction was right, or the binary outcome).
    closed
        "left" for bins [a, b) with the last closed, "right" for (a, b] with the first closed.
    **options
        Keyword arguments of ``torchmetrics.Metric``.

    Examples
    --------
    >>> import torch
    >>> metric = ECE(bins=2, inputs="confidence")
    >>> metric.update(torch.tensor([0.75, 0.25]), torch.tensor([1, 0]))
    >>> metric.update(torch.tensor([0.75]), torch.tensor([1]))
    >>> metric.compute()
    tensor(0.2500, dtype=torch.float64)
    """

    def _of(self, table: BinTable) -> float:
        return ece_of(table)


class MCE(_Binned):
    """Maximum calibration error with equal-width bins, see :func:`certcal.metrics.mce`.

    Parameters are those of :class:`ECE`.

    Examples
    --------
    >>> import torch
    >>> metric = MCE(bins=2, inputs="confidence")
    >>> metric(torch.tensor([0.25, 0.75]), torch.tensor([0, 0]))
    tensor(0.7500, dtype=torch.float64)
    """

    def _of(self, table: BinTable) -> float:
        return mce_of(table)


class LpECE(_Binned):
    """Binned calibration error in L_p, see :func:`certcal.metrics.lp_ece`.

    Parameters are those of :class:`ECE`, and the order ``p >= 1``.

    Examples
    --------
    >>> import torch
    >>> metric = LpECE(bins=2, p=2, inputs="confidence")
    >>> metric(torch.tensor([0.75, 0.75]), torch.tensor([1, 1]))
    tensor(0.2500, dtype=torch.float64)
    """

    def __init__(self, bins: int = 15, *, p: float = 2.0, inputs: Inputs, closed: str = "left", **options: Any) -> None:
        super().__init__(bins, inputs=inputs, closed=closed, **options)
        self.p = norm_order(p)

    def _of(self, table: BinTable) -> float:
        return lp_ece_of(table, self.p)


class DebiasedECE(_Binned):
    """Root-mean-square calibration error less the sampling noise, see :func:`certcal.metrics.debiased_ece`.

    Parameters are those of :class:`ECE`.

    Examples
    --------
    >>> import torch
    >>> metric = DebiasedECE(bins=1, inputs="confidence")
    >>> metric(torch.tensor([0.5, 0.5, 0.5, 0.5]), torch.tensor([1, 0, 1, 0]))
    tensor(0., dtype=torch.float64)
    """

    def _of(self, table: BinTable) -> float:
        return debiased_ece_of(table)


class ClasswiseECE(CalibrationMetric[ClasswiseSums]):
    """Calibration error of every class, averaged, see :func:`certcal.metrics.classwise_ece`.

    Parameters
    ----------
    classes
        Number of classes.
    bins
        Number of equal-width bins.
    inputs
        What ``preds`` holds, "probabilities" or "logits".
    closed
        "left" for bins [a, b) with the last closed, "right" for (a, b] with the first closed.
    **options
        Keyword arguments of ``torchmetrics.Metric``.

    Examples
    --------
    >>> import torch
    >>> metric = ClasswiseECE(2, bins=2, inputs="probabilities")
    >>> metric(torch.tensor([[0.75, 0.25], [0.25, 0.75]]), torch.tensor([0, 1]))
    tensor(0.2500, dtype=torch.float64)
    """

    def __init__(
        self, classes: int, bins: int = 15, *, inputs: MatrixInputs, closed: str = "left", **options: Any
    ) -> None:
        columns, count, side = operator.index(classes), bin_count(bins), choice(closed, CLOSED, "closed")
        if columns < 2:
            raise InputError(f"classes is {columns}; pass the number of columns of preds, 2 or more")
        state = f"classwise_sums_{columns}_{count}_{side}"
        super().__init__(inputs, MATRIX_INPUTS, state, (columns, count, 2), options)
        self.classes, self.bins, self.closed = columns, count, side

    def _read(self, preds: Tensor | Predictions, target: Tensor) -> Predictions:
        predictions = super()._read(preds, target)
        if predictions.classes != self.classes:
            raise InputError(
                f"preds has {predictions.classes} columns; this metric was made for {self.classes} classes"
            )
        return predictions

    def _sums(self, words: Words) -> ClasswiseSums:
        edges = equal_width_edges(self.bins)
        loaded, sums = ClasswiseSums(self.classes, edges, self.closed), ClasswiseSums(self.classes, edges, self.closed)
        loaded.whole = words
        sums.merge(loaded)
        return sums

    def _words(self, sums: ClasswiseSums) -> Words:
        return sums.whole

    def _add(self, sums: ClasswiseSums, predictions: Predictions) -> None:
        p, y = predictions.probabilities, predictions.labels
        assert p is not None  # inputs= allows nothing else
        assert y is not None
        sums.add(p, y, None)

    def _value(self, sums: ClasswiseSums, samples: int) -> float:
        return classwise_of(sums.gaps(), float(samples))
