# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# The annotations of torchmetrics.Metric are incomplete.
"""What all the metrics share: reading a batch, and a state of integers that torchmetrics may add in any order."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Generic, Literal, TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torchmetrics import Metric

from certcal._checks import InputError, choice
from certcal.predictions import Predictions

Words = NDArray[np.int64]
Sums = TypeVar("Sums")
Inputs = Literal["probabilities", "logits", "confidence"]
MatrixInputs = Literal["probabilities", "logits"]

ANY_INPUTS = ("probabilities", "logits", "confidence")
MATRIX_INPUTS = ("probabilities", "logits")

_READERS = {
    "probabilities": Predictions.from_probabilities,
    "logits": Predictions.from_logits,
    "confidence": Predictions.from_confidence,
}


class CalibrationMetric(Metric, Generic[Sums]):
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
    def _sums(self, words: Words) -> Sums:
        """An accumulator that holds what the state holds, in memory of its own, with low words carried."""

    @abstractmethod
    def _words(self, sums: Sums) -> Words:
        """The state of an accumulator."""

    @abstractmethod
    def _add(self, sums: Sums, predictions: Predictions) -> None:
        """Add samples to an accumulator."""

    @abstractmethod
    def _value(self, sums: Sums, samples: int) -> float:
        """The metric of all samples of an accumulator."""

    def update(self, preds: Tensor, target: Tensor) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Add a batch; nothing is added when it is refused.

        Parameters
        ----------
        preds
            What ``inputs`` declares: one row of probabilities or logits per sample, or one confidence per sample.
        target
            True classes from 0; with ``inputs="confidence"`` whether the prediction was right (the binary outcome).
        """
        predictions = self._read(preds, target)
        sums = self._load()
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
        value = torch.tensor(self._value(self._load(), samples), dtype=torch.float64, device="cpu")
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

    def _load(self) -> Sums:
        state = cast(Tensor, getattr(self, self._words_name))
        return self._sums(state.numpy(force=True))

    def _store(self, sums: Sums) -> None:
        state = torch.from_numpy(self._words(sums))
        setattr(self, self._words_name, state.to(self.samples.device))

    def _read(self, preds: Tensor | Predictions, target: Tensor) -> Predictions:
        if isinstance(preds, Predictions):  # from forward, which has read it
            return preds
        meaning = "correct" if self.inputs == "confidence" else "labels"
        try:
            if getattr(preds, "dtype", None) == torch.bfloat16:
                preds = self._widened(preds)
            return _READERS[self.inputs](preds, target)
        except InputError as error:
            read = f"inputs={self.inputs!r} reads preds as {self.inputs} and target as {meaning}"
            raise InputError(f"{error} ({read})") from None

    def _widened(self, preds: Tensor) -> Tensor:
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
        self._store(self._load())

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
