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

from certcal._base.checks import InputError, positive, whole_number
from certcal._base.checks import labels as class_labels
from certcal.attacks._protocol import AttackedModel
from certcal.attacks.ball import Ball, Norm
from certcal.data import Inputs, Rows
from certcal.data.inputs import blocks
from certcal.models import Differentiable, Model, differentiable, load, wrap
from certcal.models.protocol import Outputs
from certcal.predictions import Predictions

Floats = NDArray[np.float32]
Box = tuple[float, float] | None
Progress = Callable[[int, int], None]

# Sets the noise of attacks apart from what else is drawn with the same seed.
_STREAM, _RESTARTS = 0xACE, 0xACE1
# How often a random start is halved until its label is kept, and by what log probability it must lead.
_HALVED, _LEAD = 6, 1e-4


@dataclass(frozen=True, eq=False)
class Subject:
    """What is attacked: a model with its inputs and labels, and where an attacker may go. Make it with :meth:`of`.

    Examples
    --------
    >>> from certcal.attacks import Ace, OneStepAce, perturb_each
    >>> from certcal.models.networks import MLP
    >>> inputs, labels = np.random.default_rng(0).random((8, 4)), [0, 1, 2, 0] * 2
    >>> subject = Subject.of(MLP(4, hidden=(16,), classes=3).eval(), inputs, labels, norm="l2")
    >>> [found.name for found in perturb_each(subject, [Ace(), OneStepAce()], [0.1])]
    ['(+1, y)-ACE', 'one-step ACE']
    """

    model: Model
    network: Differentiable
    inputs: Floats
    labels: NDArray[np.int64]
    norm: Norm
    box: Box
    sigma: float | None
    draws: int
    seed: int
    batch: int
    first: int = 0
    """Number of the first sample: noise and random starts belong to a sample's number."""

    @classmethod
    def of(
        cls,
        model: object,
        inputs: Any,
        labels: Any,
        *,
        norm: Norm = "linf",
        box: Box = (0.0, 1.0),
        sigma: float | None = None,
        draws: int = 16,
        seed: int = 0,
        outputs: Outputs | None = None,
        batch: int = 500,
        device: str = "auto",
    ) -> Subject:
        """Everything that attacks are told about what they attack, checked.

        Parameters
        ----------
        model
            What :func:`certcal.models.differentiable` takes: a torch module in evaluation mode, a file, a name.
        inputs
            One per sample along the first axis, inside the box; uint8 pixels become k/255.
        labels
            True classes, from 0.
        norm
            ``"linf"`` or ``"l2"``.
        box
            Smallest and largest value that an input may have, rounded to float32 as inputs are; None if any may.
        sigma, draws, seed
            To attack the smoothed classifier: standard deviation of the Gaussian noise, how many draws it is averaged
            over, and the seed of these.
        outputs
            What the model returns, ``"logits"`` or ``"probabilities"``; needed unless it says so itself.
        batch
            How many inputs (times draws) the network gets at a time; less where that is too much for its memory.
        device
            Where it computes, as for :func:`certcal.models.load`.
        """
        box = single_precision(box)
        Ball(0.0, norm, box)
        data = Inputs.from_arrays(inputs, labels)
        whole = np.asarray(data.inputs)
        if box is not None:
            check_box(whole, box)
        named = isinstance(model, str | os.PathLike)
        adapted = (load if named else wrap)(cast("Any", model), outputs, device=device)
        remedies = {
            "draws": "pass how many draws of noise, at least 1",
            "seed": "pass a whole number, at least 0",
            "batch": "pass how many inputs the network gets at a time, at least 1",
        }
        return cls(
            adapted,
            differentiable(adapted),
            whole,
            data.labels,
            norm,
            box,
            None if sigma is None else positive(sigma, "sigma"),
            1 if sigma is None else whole_number(draws, 1, 1 << 20, "draws", remedies["draws"]),
            whole_number(seed, 0, 2**63 - 1, "seed", remedies["seed"]),
            whole_number(batch, 1, 1 << 24, "batch", remedies["batch"]),
        )

    def rows(self, first: int, inputs: Floats, labels: NDArray[np.int64]) -> Subject:
        """The same model with other samples, the first of which has a number of its own."""
        return replace(self, inputs=inputs, labels=labels, first=first)

    def settings(self, epsilon: float) -> dict[str, Any]:
        """What belongs to every result."""
        plain: dict[str, Any] = {"norm": self.norm, "epsilon": epsilon, "box": self.box}
        return plain if self.sigma is None else plain | {"sigma": self.sigma, "draws": self.draws, "seed": self.seed}

    def parts(self) -> Iterator[slice]:
        """Samples whose draws fill one batch."""
        size = max(1, self.batch // self.draws)
        n = self.labels.size
        return (slice(start, min(start + size, n)) for start in range(0, n, size))

    def rows_per_piece(self, rows: int, size: int) -> int:
        """At most so many samples, and so many bytes of them, in whole batches: at least one."""
        batch = max(1, self.batch // self.draws)
        return batch * max(1, min(rows, size // self.inputs[0].nbytes) // batch)

    def ball(self, epsilon: Any) -> Ball:
        """Where an attacker may go within a distance."""
        try:
            return Ball(float(epsilon), self.norm, self.box)
        except (TypeError, ValueError, OverflowError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"epsilon is {epsilon!r}; pass a distance, at least 0") from None

    def model_for(self, part: slice, predicted: Tensor, start: Tensor | None = None) -> AttackedModel:
        """What an attack is given for some of the samples, whose labels are to stay: with their noise."""
        noise = self._noise(part)
        moved = None if noise is None else self.tensor(noise)
        return AttackedModel(self.network.module, self.network.outputs, moved, self.norm, self.box, predicted, start)

    def random_start(self, part: slice, predicted: Tensor, ball: Ball, restart: int, keeps: bool) -> Tensor:
        """A point of the ball per sample, even in it, from a stream of its own; nearer where the label would change.

        Towards the clean input it is halved up to so many times, and is the clean input where that does not help.
        """
        clean = self.tensor(self.inputs[part])
        shape = self.inputs.shape[1:]
        drawn: list[NDArray[np.float64]] = []
        for k in self._numbers(part):
            own = np.random.Generator(np.random.Philox(key=[self.seed, _RESTARTS], counter=[0, 0, restart, k]))
            if self.norm == "linf":
                drawn.append(own.uniform(-1, 1, shape))
            else:
                way = own.standard_normal(shape)
                drawn.append(way / np.linalg.norm(way) * own.random() ** (1 / way.size))
        change = self.tensor(np.stack(drawn).astype(np.float32)) * ball.epsilon
        start = ball.seal(clean, clean + change)
        if not keeps:
            return start
        model = self.model_for(part, predicted)
        with torch.no_grad():
            for _ in range(_HALVED):
                lost = ~(_lead(model(start), predicted) > _LEAD)
                if not bool(lost.any()):
                    return start
                change = torch.where(lost.reshape(-1, *(1,) * (change.ndim - 1)), change / 2, change)
                start = ball.seal(clean, clean + change)
            lost = ~(_lead(model(start), predicted) > _LEAD)
        return torch.where(lost.reshape(-1, *(1,) * (start.ndim - 1)), clean, start)

    def predict(self, inputs: Floats) -> Predictions:
        """Predictions by the model's ordinary call, a batch at a time; with the same noise if it is smoothed."""
        called = self.model if self.sigma is None else None
        rows = np.concatenate(
            [called(inputs[part]) if called is not None else self._mean(inputs[part], part) for part in self.parts()]
        )
        class_labels(self.labels, rows.shape[1])
        return self.predictions(rows if self.sigma is None else rows.astype(np.float32), self.labels)

    def predictions(self, rows: NDArray[Any], labels: NDArray[np.int64]) -> Predictions:
        """Predictions of a row of outputs per sample; of a smoothed classifier these are its mean probabilities."""
        return self._from_outputs(rows, labels) if self.sigma is None else Predictions.from_probabilities(rows, labels)

    def tensor(self, array: NDArray[Any]) -> Tensor:
        """An array as a tensor where the network is."""
        return torch.tensor(array).to(self.network.device)

    def _from_outputs(self, rows: Any, labels: NDArray[np.int64]) -> Predictions:
        made = Predictions.from_logits if self.model.outputs == "logits" else Predictions.from_probabilities
        return made(rows, labels)

    def _mean(self, inputs: Floats, part: slice) -> NDArray[np.float64]:
        noise = self._noise(part)
        assert noise is not None
        nothing = np.zeros(len(inputs), np.int64)
        total = np.float64(0.0)
        for each in noise:
            drawn = self._from_outputs(self.model(inputs + each), nothing).probabilities
            total = total + np.asarray(drawn, np.float64)
        return np.asarray(total / self.draws)

    def _numbers(self, part: slice) -> range:
        return range(self.first + part.start, self.first + part.stop)

    def _noise(self, part: slice) -> Floats | None:
        """Noise (draws, n, …): every sample has a stream of its own, so batches make no difference."""
        if self.sigma is None:
            return None
        shape = (self.draws, *self.inputs.shape[1:])
        streams = [np.random.Philox(key=[self.seed, _STREAM], counter=[0, 0, 0, k]) for k in self._numbers(part)]
        each = [np.random.Generator(stream).standard_normal(shape, dtype=np.float32) for stream in streams]
        return np.float32(self.sigma) * np.stack(each, axis=1)


def _lead(log_probabilities: Tensor, classes: Tensor) -> Tensor:
    others = log_probabilities.scatter(1, classes.unsqueeze(1), -torch.inf)
    return log_probabilities.gather(1, classes.unsqueeze(1)).squeeze(1) - others.amax(1)


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


def check_box(inputs: Floats | Rows, box: tuple[float, float]) -> None:
    """Raise if an input is outside the box."""
    for first, block in blocks(inputs):
        outside = (block < box[0]) | (block > box[1])
        if outside.any():
            place = tuple(map(int, np.argwhere(outside)[0]))
            named = ", ".join(map(str, (first + place[0], *place[1:])))
            raise InputError(
                f"inputs[{named}] is {block[place]:.9g}, outside of {box[0]:g} to {box[1]:g}",
                argument="box",
                remedy="give the smallest and the largest value of valid inputs, or none",
            )
