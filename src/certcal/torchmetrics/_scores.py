"""Proper scores, from exact sums of the losses."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal.binning import ExactSum
from certcal.metrics import scores
from certcal.predictions import Predictions
from certcal.torchmetrics._base import (
    ANY_INPUTS,
    MATRIX_INPUTS,
    CalibrationMetric,
    Inputs,
    MatrixInputs,
    Words,
)

Floats = NDArray[np.float64]


class _Mean(CalibrationMetric[ExactSum]):
    """The mean of a loss: its words are the digits of the exact sum and the number of infinite losses."""

    def __init__(self, inputs: str, allowed: tuple[str, ...], loss: str, options: dict[str, Any]) -> None:
        super().__init__(inputs, allowed, loss, (ExactSum().digits.size + 1,), options)

    def _sums(self, words: Words) -> ExactSum:
        loaded, total = ExactSum(), ExactSum()
        loaded.digits, loaded.infinite = words[:-1], int(words[-1])
        total.merge(loaded)
        return total

    def _words(self, sums: ExactSum) -> Words:
        return np.append(sums.digits, sums.infinite)

    def _add(self, sums: ExactSum, predictions: Predictions) -> None:
        sums.add(self._losses(predictions))

    def _value(self, sums: ExactSum, samples: int) -> float:
        return sums.value / samples

    @abstractmethod
    def _losses(self, predictions: Predictions) -> Floats: ...


class TopLabelBrierScore(_Mean):
    """Brier score of "this prediction is correct", see :func:`certcal.metrics.top_label_brier_score`.

    Parameters
    ----------
    inputs, **options
        As for :class:`ECE`.

    Examples
    --------
    >>> import torch
    >>> metric = TopLabelBrierScore(inputs="confidence")
    >>> metric(torch.tensor([0.5, 1.0]), torch.tensor([1, 1]))
    tensor(0.1250, dtype=torch.float64)
    """

    def __init__(self, *, inputs: Inputs, **options: Any) -> None:
        super().__init__(inputs, ANY_INPUTS, "top_label_brier", options)

    def _losses(self, predictions: Predictions) -> Floats:
        return scores.top_label_brier(predictions.confidence, predictions.correct)


class BrierScore(_Mean):
    """Multiclass Brier score, from 0 to 2, see :func:`certcal.metrics.brier_score`.

    Parameters
    ----------
    inputs
        What ``preds`` holds, "probabilities" or "logits".
    **options
        Keyword arguments of ``torchmetrics.Metric``.

    Examples
    --------
    >>> import torch
    >>> metric = BrierScore(inputs="probabilities")
    >>> metric(torch.tensor([[0.75, 0.25]]), torch.tensor([0]))
    tensor(0.1250, dtype=torch.float64)
    """

    plot_upper_bound = 2.0

    def __init__(self, *, inputs: MatrixInputs, **options: Any) -> None:
        super().__init__(inputs, MATRIX_INPUTS, "brier", options)

    def _losses(self, predictions: Predictions) -> Floats:
        p, y = predictions.probabilities, predictions.labels
        assert p is not None  # inputs= allows nothing else
        assert y is not None
        return scores.brier(p, y)


class NLL(_Mean):
    """Negative log-likelihood, see :func:`certcal.metrics.nll`; from logits without overflow.

    Parameters
    ----------
    inputs, **options
        As for :class:`BrierScore`.

    Examples
    --------
    >>> import torch
    >>> metric = NLL(inputs="logits")
    >>> metric(torch.tensor([[0.0, 0.0]]), torch.tensor([0]))
    tensor(0.6931, dtype=torch.float64)
    """

    plot_upper_bound = None

    def __init__(self, *, inputs: MatrixInputs, **options: Any) -> None:
        super().__init__(inputs, MATRIX_INPUTS, "log_loss", options)

    def _losses(self, predictions: Predictions) -> Floats:
        p, x, y = predictions.probabilities, predictions.logits, predictions.labels
        assert p is not None  # inputs= allows nothing else
        assert y is not None
        return scores.log_losses(p if x is None else x, y, from_logits=x is not None)
