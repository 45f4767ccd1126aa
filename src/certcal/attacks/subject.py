"""Between arrays and tensors: what is attacked, checked once, and how it predicts when nobody attacks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certcal._checks import InputError, positive, whole_number
from certcal._checks import labels as class_labels
from certcal.attacks._protocol import AttackedModel
from certcal.attacks.ball import Ball, Norm
from certcal.data import Inputs
from certcal.models import Differentiable, Model, differentiable, load, wrap
from certcal.models.protocol import Outputs
from certcal.predictions import Predictions

Floats = NDArray[np.float32]
Box = tuple[float, float] | None
Progress = Callable[[int, int], None]

# Sets the noise of attacks apart from what else is drawn with the same seed.
_STREAM = 0xACE


@dataclass(frozen=True, eq=False)
class Subject:
    """A model, the inputs on which it is attacked, and where the attacker may go."""

    model: Model
    network: Differentiable
    inputs: Floats
    labels: NDArray[np.int64]
    ball: Ball
    sigma: float | None
    draws: int
    seed: int
    batch: int

    @property
    def settings(self) -> dict[str, Any]:
        """What belongs to every result."""
        plain: dict[str, Any] = {"norm": self.ball.norm, "epsilon": self.ball.epsilon, "box": self.ball.box}
        return plain if self.sigma is None else plain | {"sigma": self.sigma, "draws": self.draws, "seed": self.seed}

    def parts(self) -> Iterator[slice]:
        """Samples whose draws fill one batch."""
        size = max(1, self.batch // self.draws)
        n = self.labels.size
        return (slice(start, min(start + size, n)) for start in range(0, n, size))

    def within(self, epsilon: float) -> Subject:
        """The same within another distance."""
        return replace(self, ball=_ball(epsilon, self.ball.norm, self.ball.box))

    def attacked(self, part: slice, predicted: Tensor) -> AttackedModel:
        """What an attack is given for some of the samples, whose labels are to stay: with their noise."""
        noise = self._noise(part)
        return AttackedModel(
            self.network.module,
            self.network.outputs,
            None if noise is None else self._tensor(noise),
            self.ball.norm,
            self.ball.box,
            predicted,
        )

    def clean(self, part: slice) -> Tensor:
        """Clean inputs of some of the samples."""
        return self._tensor(self.inputs[part])

    def predict(self, inputs: Floats) -> Predictions:
        """Predictions by the model's ordinary call, a batch at a time; with the same noise if it is smoothed."""
        if self.sigma is None:
            rows = np.concatenate([self.model(inputs[part]) for part in self.parts()])
            self._check_labels(rows)
            if self.model.outputs == "logits":
                return Predictions.from_logits(rows, self.labels)
            return Predictions.from_probabilities(rows, self.labels)
        rows = np.concatenate([self._mean(inputs[part], part) for part in self.parts()])
        self._check_labels(rows)
        return Predictions.from_probabilities(rows.astype(np.float32), self.labels)

    def _mean(self, inputs: Floats, part: slice) -> NDArray[np.float64]:
        noise = self._noise(part)
        assert noise is not None
        total = np.float64(0.0)
        for each in noise:
            rows = self.model(inputs + each)
            drawn = Predictions.from_logits if self.model.outputs == "logits" else Predictions.from_probabilities
            total = total + np.asarray(drawn(rows, np.zeros(len(rows), np.int64)).probabilities, np.float64)
        return np.asarray(total / self.draws)

    def _noise(self, part: slice) -> Floats | None:
        """Noise (draws, n, …): every sample has a stream of its own, so batches make no difference."""
        if self.sigma is None:
            return None
        shape = (self.draws, *self.inputs.shape[1:])
        each = [
            np.random.Generator(np.random.Philox(key=[self.seed, _STREAM], counter=[0, 0, 0, sample])).standard_normal(
                shape, dtype=np.float32
            )
            for sample in range(part.start, part.stop)
        ]
        return np.float32(self.sigma) * np.stack(each, axis=1)

    def _check_labels(self, rows: NDArray[Any]) -> None:
        class_labels(self.labels, rows.shape[1])

    def _tensor(self, array: Floats) -> Tensor:
        weight = next(self.network.module.parameters(), None)
        return torch.tensor(array, device=None if weight is None else weight.device)


def subject(
    model: object,
    inputs: Any,
    labels: Any,
    *,
    outputs: Outputs | None,
    epsilon: float,
    norm: Norm,
    box: Box,
    sigma: float | None,
    draws: int,
    seed: int,
    batch: int,
) -> Subject:
    """Check everything that all attacks are told; for the parameters see :func:`certcal.attacks.perturb`."""
    box = single_precision(box)
    ball = _ball(epsilon, norm, box)
    data = Inputs.from_arrays(inputs, labels)
    if box is not None:
        check_box(data.inputs, box)
    adapted = load(cast("str", model), outputs) if isinstance(model, str | os.PathLike) else wrap(model, outputs)
    return Subject(
        adapted,
        differentiable(adapted),
        data.inputs,
        data.labels,
        ball,
        None if sigma is None else positive(sigma, "sigma"),
        1 if sigma is None else whole_number(draws, 1, 1 << 20, "draws", "pass how many draws of noise, at least 1"),
        whole_number(seed, 0, 2**63 - 1, "seed", "pass a whole number, at least 0"),
        whole_number(batch, 1, 1 << 24, "batch", "pass how many inputs the network gets at a time, at least 1"),
    )


def _ball(epsilon: Any, norm: Norm, box: Box) -> Ball:
    try:
        return Ball(float(epsilon), norm, box)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"epsilon is {epsilon!r}; pass a distance, at least 0") from None


def known(like: Tensor, *arrays: NDArray[Any]) -> list[Tensor]:
    """Arrays as tensors where another one is."""
    return [torch.tensor(each, device=like.device) for each in arrays]


def single_precision(box: Box) -> Box:
    """The box with its ends rounded as the inputs are."""
    if box is None:
        return None
    try:
        with np.errstate(over="ignore"):  # beyond single precision there is no end
            low, high = (float(np.float32(each)) for each in box)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"box is {box!r}; pass the smallest and the largest value of an input, or None") from None
    return low, high


def check_box(inputs: Floats, box: tuple[float, float]) -> None:
    """Raise if an input is outside the box."""
    outside = (inputs < box[0]) | (inputs > box[1])
    if outside.any():
        place = tuple(map(int, np.argwhere(outside)[0]))
        raise InputError(
            f"inputs[{', '.join(map(str, place))}] is {inputs[place]:.9g}, outside of {box[0]:g} to {box[1]:g}",
            argument="box",
            remedy="give the smallest and the largest value of valid inputs, or none",
        )
