# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# The annotations of torchmetrics.Metric are incomplete.
"""Calibration metrics as ``torchmetrics.Metric`` classes: integer states of fixed size that add exactly.

Values are float64 scalars and the same bits for any batches, order, merges and processes. What ``preds`` holds is
declared by ``inputs=``, never guessed. Importing this module needs the extra ``certcal[torch]``.
"""

from __future__ import annotations

import operator
import warnings
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, Literal, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError, bin_count, choice, norm_order, positive
from certcal.binning import CLOSED, BinSums, ExactSum, equal_width_edges
from certcal.metrics.classwise import ClasswiseSums, classwise_of
from certcal.metrics.cosine import CELLS, CELLS_PER_BANDWIDTH, POINTS, MomentGrid
from certcal.metrics.registry import METRICS, MeanOf, OfBins, OfKernelSums
from certcal.predictions import Predictions

try:
    import torch
    from torch import Tensor
    from torchmetrics import Metric
except ModuleNotFoundError as error:
    if error.name not in ("torch", "torchmetrics"):
        raise
    raise ImportError(
        "certcal.torchmetrics needs torch and torchmetrics; install them with: pip install 'certcal[torch]'",
        name=error.name,
    ) from error

__all__ = [
    "BY_NAME",
    "ECE",
    "INPUTS",
    "KDEECE",
    "MCE",
    "NLL",
    "BinnedMetric",
    "BrierScore",
    "ClasswiseECE",
    "DebiasedECE",
    "LpECE",
    "SmoothECE",
    "TopLabelBrierScore",
]

Words = NDArray[np.int64]
Accumulator = TypeVar("Accumulator", bound=BinSums | ClasswiseSums | MomentGrid | ExactSum)
Inputs = Literal["probabilities", "logits", "confidence", "score"]
MatrixInputs = Literal["probabilities", "logits"]

INPUTS = ("probabilities", "logits", "confidence", "score")
MATRIX_INPUTS = ("probabilities", "logits")
# A value of a kernel metric whose error bound is above this comes with a warning.
_TOLERATED = 1e-6


class CalibrationMetric(Metric, Generic[Accumulator]):
    """A metric whose state is int64 words, summed across batches and processes, and the number of samples.

    The name of the state spells out the settings that give it meaning. torchmetrics shares states within a collection,
    merges them and loads them by name and looks no further: states that must not meet have different names.

    Parameters
    ----------
    inputs
        What ``preds`` will hold.
    allowed
        What ``inputs`` may be.
    state
        Name of the state, without ``inputs``.
    shape
        Shape of the state.
    options
        Keyword arguments of ``torchmetrics.Metric``.
    """

    name: ClassVar[str]  # of the metric in :data:`certcal.metrics.METRICS`
    words: ClassVar[str] = "whole"  # where an accumulator keeps the state
    is_differentiable = False
    higher_is_better = False
    full_state_update = False
    plot_lower_bound = 0.0
    plot_upper_bound = 1.0

    samples: Tensor

    def __init__(
        self, inputs: str, allowed: tuple[str, ...], state: str, shape: tuple[int, ...], options: dict[str, Any]
    ) -> None:
        super().__init__(**options)
        self.inputs = choice(inputs, allowed, "inputs")
        self._words_name = f"{state}_{self.inputs}"
        self.add_state(self._words_name, torch.zeros(shape, dtype=torch.int64), dist_reduce_fx="sum")
        self.add_state("samples", torch.zeros((), dtype=torch.int64), dist_reduce_fx="sum")

    @abstractmethod
    def _empty(self) -> Accumulator: ...

    @abstractmethod
    def _add(self, sums: Accumulator, predictions: Predictions) -> None: ...

    @abstractmethod
    def _value(self, sums: Accumulator, samples: int) -> float: ...

    def _words_of(self, sums: Accumulator) -> Words:
        return getattr(sums, self.words)

    def _fill(self, sums: Accumulator, words: Words) -> None:
        setattr(sums, self.words, words)

    def update(self, preds: Tensor, target: Tensor) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Add a batch; nothing is added when it is refused.

        Parameters
        ----------
        preds
            What ``inputs`` declares: one row of probabilities or logits per sample, or one confidence or binary score.
        target
            True classes from 0; with ``inputs="confidence"`` whether the prediction was right, and with "score" the
            outcome.
        """
        predictions = self._read(preds, target)
        sums = self._load_accumulator()
        self._add(sums, predictions)
        self._store(sums)
        self.samples = self.samples + len(predictions)

    def forward(self, preds: Tensor, target: Tensor) -> Tensor:
        """Add a batch and return the metric of this batch alone."""
        # torchmetrics empties the state before it calls update: what is refused has to be refused before.
        return super().forward(self._read(preds, target), target)

    def compute(self) -> Tensor:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The metric of everything added so far, a float64 scalar on the metric's device.

        Apple's MPS has no float64; there the scalar is on the CPU.
        """
        samples = int(self.samples)
        if samples == 0:
            if self._is_synced:  # torchmetrics leaves it so when compute raises
                self.unsync()
            raise InputError("nothing was added yet; call update with at least one sample")
        value = torch.tensor(self._value(self._load_accumulator(), samples), dtype=torch.float64, device="cpu")
        return value if self.device.type == "mps" else value.to(self.device)

    def merge_state(self, incoming_state: dict[str, Any] | Metric) -> None:
        """Add everything that another metric with the same settings, or its ``metric_state``, has seen."""
        given = incoming_state.metric_state if isinstance(incoming_state, Metric) else incoming_state
        self._refuse_other_settings(given, "incoming_state")
        super().merge_state(incoming_state)
        # torchmetrics would go on returning the value from before, or warn that there was no update.
        self._computed = None
        self._update_count += 1

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Draw one value (by default the current one) or a sequence of them, as torchmetrics' own metrics do."""
        return self._plot(val, ax)

    def set_dtype(self, dst_type: str | torch.dtype) -> Metric:
        """Change nothing: the state is whole numbers and the value always float64."""
        return self

    def _load_accumulator(self) -> Accumulator:
        """An accumulator that holds what the state holds, in memory of its own, with low words carried."""
        state = cast(Tensor, getattr(self, self._words_name))
        loaded, sums = self._empty(), self._empty()
        self._fill(loaded, state.numpy(force=True))
        sums.merge(cast(Any, loaded))
        return sums

    def _store(self, sums: Accumulator) -> None:
        state = torch.from_numpy(self._words_of(sums))
        setattr(self, self._words_name, state.to(self.samples.device))

    def _read(self, preds: Tensor | Predictions, target: Tensor) -> Predictions:
        if isinstance(preds, Predictions):  # from forward, which has read it
            return preds
        meaning = {"confidence": "correct", "score": "outcomes"}.get(self.inputs, "labels")
        try:
            if getattr(preds, "dtype", None) == torch.bfloat16:
                preds = self._widen_bfloat16(preds)
            return getattr(Predictions, f"from_{'scores' if self.inputs == 'score' else self.inputs}")(preds, target)
        except InputError as error:
            read = f"inputs={self.inputs!r} reads preds as {self.inputs} and target as {meaning}"
            raise InputError(f"{error} ({read})") from None

    def _widen_bfloat16(self, preds: Tensor) -> Tensor:
        # NumPy has no bfloat16. Many rows of a bfloat16 softmax miss 1 by 0.002, more than the check of rows allows.
        if self.inputs == "probabilities":
            raise InputError(
                "probabilities are bfloat16, too coarse to sum to 1; pass logits, or softmax(logits.float())"
            )
        return preds.float()

    def _refuse_other_settings(self, given: Mapping[str, Any], name: str) -> None:
        for key, mine in self.metric_state.items():
            other = given.get(key)
            if not isinstance(other, Tensor) or (other.shape, other.dtype) != (cast(Tensor, mine).shape, torch.int64):
                raise InputError(
                    f"{name} has no {key!r} like this metric's; use metrics of the same class and settings"
                )

    def _reduce_states(self, incoming_state: dict[str, Any]) -> None:
        # The sums of torchmetrics do not carry: equal samples give equal states, and no number of merges overflows.
        super()._reduce_states(incoming_state)
        self._store(self._load_accumulator())

    def _apply(self, fn: Any, exclude_state: Any = "") -> Any:
        # Values kept by torchmetrics would be rounded to the new type (or refused by a device without float64).
        self._computed = self._forward_cache = None
        return super()._apply(fn, exclude_state)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *more: Any, **named: Any) -> None:
        loaded = {key: state_dict[prefix + key] for key in self.metric_state if prefix + key in state_dict}
        if loaded:
            self._refuse_other_settings(loaded, "state_dict")
        super()._load_from_state_dict(state_dict, prefix, *more, **named)
        self._computed = None
        self._update_count = max(self._update_count, int(bool(loaded)))


class BinnedMetric(CalibrationMetric[BinSums]):
    """Metrics of one table of bins; in a collection those with the same settings share its state."""

    def __init__(self, bins: int = 15, *, inputs: Inputs, closed: str = "left", **options: Any) -> None:
        count, side = bin_count(bins), choice(closed, CLOSED, "closed")
        super().__init__(inputs, INPUTS, f"bin_sums_{count}_{side}", (count, 2, 3), options)
        self.bins, self.closed = count, side
        self.further: dict[str, float] = {}  # options of the metric

    def _empty(self) -> BinSums:
        return BinSums(equal_width_edges(self.bins), self.closed)

    def _add(self, sums: BinSums, predictions: Predictions) -> None:
        sums.add(predictions.confidence, predictions.correct)

    def _value(self, sums: BinSums, samples: int) -> float:
        form = METRICS[self.name].form
        assert isinstance(form, OfBins)
        return form.of(sums.table(), **self.further)


class ECE(BinnedMetric):
    """Expected calibration error with equal-width bins, see :func:`certcal.metrics.ece`.

    Parameters
    ----------
    bins
        Number of bins.
    inputs
        What ``preds`` holds: "probabilities" or "logits" (one row per sample, ``target`` the true classes), or
        "confidence" (one number per sample, ``target`` whether the prediction was right) or "score" (the probability
        of outcome 1, ``target`` the outcome).
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

    name = "ece"


class MCE(BinnedMetric):
    """Maximum calibration error with equal-width bins, see :func:`certcal.metrics.mce`.

    Parameters are those of :class:`ECE`.

    Examples
    --------
    >>> import torch
    >>> metric = MCE(bins=2, inputs="confidence")
    >>> metric(torch.tensor([0.25, 0.75]), torch.tensor([0, 0]))
    tensor(0.7500, dtype=torch.float64)
    """

    name = "mce"


class LpECE(BinnedMetric):
    """Binned calibration error in L_p, see :func:`certcal.metrics.lp_ece`.

    Parameters are those of :class:`ECE`, and the order ``p >= 1``.

    Examples
    --------
    >>> import torch
    >>> metric = LpECE(bins=2, p=2, inputs="confidence")
    >>> metric(torch.tensor([0.75, 0.75]), torch.tensor([1, 1]))
    tensor(0.2500, dtype=torch.float64)
    """

    name = "lp_ece"

    def __init__(self, bins: int = 15, *, p: float = 2.0, inputs: Inputs, closed: str = "left", **options: Any) -> None:
        super().__init__(bins, inputs=inputs, closed=closed, **options)
        self.p = norm_order(p)
        self.further = {"p": self.p}


class DebiasedECE(BinnedMetric):
    """Root-mean-square calibration error less the sampling noise, see :func:`certcal.metrics.debiased_ece`.

    Parameters are those of :class:`ECE`.

    Examples
    --------
    >>> import torch
    >>> metric = DebiasedECE(bins=1, inputs="confidence")
    >>> metric(torch.tensor([0.5, 0.5, 0.5, 0.5]), torch.tensor([1, 0, 1, 0]))
    tensor(0., dtype=torch.float64)
    """

    name = "debiased_ece"


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

    name = "classwise_ece"

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

    def _empty(self) -> ClasswiseSums:
        return ClasswiseSums(self.classes, equal_width_edges(self.bins), self.closed)

    def _add(self, sums: ClasswiseSums, predictions: Predictions) -> None:
        p, y = predictions.probabilities, predictions.labels
        assert p is not None  # inputs= allows nothing else
        assert y is not None
        sums.add(p, y, None)

    def _value(self, sums: ClasswiseSums, samples: int) -> float:
        return classwise_of(sums.gaps(), float(samples))


class KernelMetric(CalibrationMetric[MomentGrid]):
    """Metrics of one grid of moments (one megabyte); in a collection they share it."""

    words = "words"

    def __init__(self, bandwidth: float | None = None, *, inputs: Inputs, **options: Any) -> None:
        super().__init__(inputs, INPUTS, "moments", (2, CELLS, 2, POINTS), options)
        self.bandwidth = None if bandwidth is None else positive(bandwidth, "bandwidth")
        if self.bandwidth is not None and self.bandwidth * CELLS < CELLS_PER_BANDWIDTH:
            raise InputError(
                f"bandwidth is {self.bandwidth:g}; this state resolves {CELLS_PER_BANDWIDTH / CELLS:.2g} and more, "
                "below that pass all samples to the function in certcal.metrics"
            )

    def _empty(self) -> MomentGrid:
        return MomentGrid()

    def _add(self, sums: MomentGrid, predictions: Predictions) -> None:
        sums.update(predictions.confidence, predictions.correct)

    def _value(self, sums: MomentGrid, samples: int) -> float:
        sums.squares = float(samples)  # every sample weighs one
        form = METRICS[self.name].form
        assert isinstance(form, OfKernelSums)
        value, error = form.of_grid(sums, self.bandwidth)
        if error > _TOLERATED:
            warnings.warn(
                f"{type(self).__name__} is known to {error:.1g} only: its bandwidth is below the cells of the state; "
                "pass all samples to the function in certcal.metrics for the exact value",
                stacklevel=2,
            )
        return value


class SmoothECE(KernelMetric):
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

    name = "smooth_ece"


class KDEECE(KernelMetric):
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

    name = "kde_ece"


class MeanMetric(CalibrationMetric[ExactSum]):
    """The mean of a loss: its words are the digits of the exact sum and the number of infinite losses."""

    def __init__(self, inputs: str, allowed: tuple[str, ...], loss: str, options: dict[str, Any]) -> None:
        super().__init__(inputs, allowed, loss, (ExactSum().digits.size + 1,), options)

    def _empty(self) -> ExactSum:
        return ExactSum()

    def _words_of(self, sums: ExactSum) -> Words:
        return np.append(sums.digits, sums.infinite)

    def _fill(self, sums: ExactSum, words: Words) -> None:
        sums.digits, sums.infinite = words[:-1], int(words[-1])

    def _add(self, sums: ExactSum, predictions: Predictions) -> None:
        entry = METRICS[self.name]
        given = entry.arguments(predictions)
        assert isinstance(entry.form, MeanOf)
        assert given is not None  # inputs= allows nothing else
        sums.add(entry.form.losses(*given[0], **given[1]))

    def _value(self, sums: ExactSum, samples: int) -> float:
        return sums.value / samples


class TopLabelBrierScore(MeanMetric):
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

    name = "top_label_brier_score"

    def __init__(self, *, inputs: Inputs, **options: Any) -> None:
        super().__init__(inputs, INPUTS, "top_label_brier", options)


class BrierScore(MeanMetric):
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

    name = "brier_score"
    plot_upper_bound = 2.0

    def __init__(self, *, inputs: MatrixInputs, **options: Any) -> None:
        super().__init__(inputs, MATRIX_INPUTS, "brier", options)


class NLL(MeanMetric):
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

    name = "nll"
    plot_upper_bound = None

    def __init__(self, *, inputs: MatrixInputs, **options: Any) -> None:
        super().__init__(inputs, MATRIX_INPUTS, "log_loss", options)


_CLASSES = (ECE, MCE, LpECE, DebiasedECE, ClasswiseECE, SmoothECE, KDEECE, TopLabelBrierScore, BrierScore, NLL)
# The classes by the name of their metric.
BY_NAME: dict[str, type[CalibrationMetric[Any]]] = {each.name: each for each in _CLASSES}
