# pyright: reportUnknownMemberType=false
# The annotations of torch.random are incomplete.
"""One step: noise, adversary, loss and gradients of each piece of a batch, their sum, and the weights that move.

Methods that look at a whole batch do so whatever its pieces; see ``_pieces``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.optim.adam import adam
from torch.optim.sgd import sgd

from certcal._base.checks import InputError
from certcal.attacks import Adversary, Ball, Found, Target
from certcal.data import Rows
from certcal.lab.training._augment import augment_images
from certcal.lab.training._pieces import BatchInPieces, PiecewiseTarget, Sum
from certcal.lab.training._recipe import Recipe
from certcal.lab.training.parts import Judged, TrainingParts, View, parts_of
from certcal.lab.training.schedules import Moment, generator_of, moment, seed_of
from certcal.models.protocol import Outputs

_KINDS = {"bfloat16": torch.bfloat16, "float16": torch.float16}
# A piece's number, and the numbers of its samples.
Numbered = tuple[int, Tensor]


@dataclass(frozen=True)
class Place:
    """Where training is: the epoch, the step, and what a loss in float16 is multiplied by."""

    epoch: int
    step: int
    scale: float = 1.0


@dataclass(frozen=True, eq=False)
class PieceResult:
    """Result of a piece: its mean loss and how many are right (2,), gradients times the scale, and buffers."""

    numbers: Tensor
    gradients: Sequence[Tensor]
    buffers: Sequence[Tensor]


@dataclass(frozen=True, eq=False)
class StepResult:
    """Result of a batch: the mean loss, how many are right, gradients and buffers."""

    loss: float
    correct: int
    finite: bool  # whether all gradients are
    gradients: Sequence[Tensor]
    buffers: Sequence[Tensor]


class ReadInputs:
    """Inputs that are read when they are indexed, as a tensor is; all of them, or those of some numbers."""

    def __init__(self, rows: Rows, chosen: Tensor | None = None) -> None:
        self.rows, self.chosen = rows, chosen
        self._reader: ThreadPoolExecutor | None = None
        self._coming: dict[bytes, Future[Tensor]] = {}

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of all inputs of the data."""
        return self.rows.shape

    def __getitem__(self, index: Tensor | slice) -> Tensor:
        if isinstance(index, Tensor) and (coming := self._coming.pop(index.numpy().tobytes(), None)) is not None:
            return coming.result()
        return self._read(index)

    def read_ahead(self, several: Sequence[Tensor]) -> None:
        """Begin to read what will be asked for by these numbers, in one thread, while the device computes."""
        self._reader = self._reader or ThreadPoolExecutor(1, "reading ahead")
        for index in several:
            self._coming[index.numpy().tobytes()] = self._reader.submit(self._read, index)

    def close(self) -> None:
        """Forget what was not asked for."""
        self._coming.clear()
        if self._reader is not None:
            self._reader.shutdown(cancel_futures=True)

    def _read(self, index: Tensor | slice) -> Tensor:
        wanted = index if self.chosen is None else self.chosen[index]
        return torch.tensor(self.rows[wanted if isinstance(wanted, slice) else wanted.numpy()])


def select_inputs(inputs: Tensor | ReadInputs, index: Tensor) -> Tensor | ReadInputs:
    """Inputs by their numbers, which are read later where all of them are."""
    return inputs[index] if isinstance(inputs, Tensor) else ReadInputs(inputs.rows, index)


@dataclass(frozen=True, eq=False)
class StepWorker:
    """A network with its data and parts, which can work on any piece of any step.

    What a piece gives depends on the weights, the recipe and the piece's number only, so it does not matter where it
    is worked on. The data are here, the network on its device.
    """

    network: nn.Module
    outputs: Outputs
    recipe: Recipe
    inputs: Tensor | ReadInputs
    labels: Tensor
    # Given by whoever trains: what samples should be predicted as (n, classes), and who judges them instead.
    soft: Tensor | None = None
    judge: nn.Module | None = None

    @property
    def trained(self) -> list[nn.Parameter]:
        """The weights that are trained."""
        return [weight for weight in self.network.parameters() if weight.requires_grad]

    @property
    def buffers(self) -> list[Tensor]:
        """The network's buffers."""
        return list(self.network.buffers())

    @property
    def device(self) -> torch.device:
        """Device of the network."""
        return next(self.network.parameters()).device

    def cut(self, batch: Tensor) -> list[Numbered]:
        """A batch, given by the numbers of its samples, in pieces."""
        return list(enumerate(torch.tensor_split(batch, self.recipe.pieces)))

    def numbers_here(self, batch: Tensor) -> list[Tensor]:
        """Numbers of the samples of a batch that are read in this process, piece by piece."""
        return [index for _, index in self.cut(batch)]

    def step(self, place: Place, batch: Tensor) -> StepResult:
        """Result of a batch."""
        if self.recipe.together and self.recipe.pieces > 1:
            return self.step_together(place, batch, range(self.recipe.pieces), list)
        cut = self.cut(batch)
        shares = [index.numel() / batch.numel() for _, index in cut]
        return self.combine_pieces(self.work(place, cut), shares, place.scale)

    def work(self, place: Place, cut: Sequence[Numbered]) -> list[PieceResult]:
        """Results of some pieces, one after the other, each from the same buffers."""
        start = [buffer.clone() for buffer in self.buffers]
        results: list[PieceResult] = []
        for numbered in cut:
            judged, numbers = self.piece(place, numbered)
            gradients = self.gradients(judged, place.scale)
            results.append(PieceResult(numbers, gradients, [buffer.clone() for buffer in self.buffers]))
            restore(self.buffers, start)
        return results

    def step_together(self, place: Place, batch: Tensor, mine: Sequence[int], total: Sum) -> StepResult:
        """Result of a batch whose samples are looked at together, with some of its pieces worked on here."""
        cut, recipe = self.cut(batch), self.recipe
        stops = accumulate((index.numel() for _, index in cut), initial=0)
        pieces = BatchInPieces(
            rows=[slice(*ends) for ends in pairwise(stops)],
            seeds=[seed_of("network", recipe.seed, place.step, number) for number, _ in cut],
            mine=mine,
            total=total,
            autocast=self._autocast,
            buffers=self.buffers,
        )
        inputs = pieces.gather([self.samples(cut[number][1], place.step)[0] for number in mine])
        labels = self.labels[batch].to(self.device)
        generator = generator_of("piece", recipe.seed, place.step, 0, device=self.device)
        base = PiecewiseTarget(self.network, self.outputs, pieces=pieces)
        now, first = moment(recipe, place.epoch), pieces.seeds[0]
        judged = self.loss(parts_of(recipe), now, inputs, labels, generator, first, base)
        gradients = self.gradients(judged, place.scale)
        buffers = [before + change for before, change in zip(self.buffers, pieces.changes, strict=True)]
        return self.combine_pieces(
            [PieceResult(_loss_and_hits(judged, labels), gradients, buffers)], [1.0], place.scale
        )

    def piece(self, place: Place, numbered: Numbered) -> tuple[Judged, Tensor]:
        """The loss of a piece, and as numbers that loss and how many are right."""
        (piece, index), recipe = numbered, self.recipe
        counters = recipe.seed, place.step, piece
        inputs, labels = self.samples(index, place.step)
        generator = generator_of("piece", *counters, device=self.device)
        now, parts = moment(recipe, place.epoch), parts_of(recipe)
        if self.soft is not None:
            parts = replace(
                parts, inner_search=replace(cast("Any", parts.inner_search), soft=self.soft[index].to(self.device))
            )
        judged = self.loss(parts, now, inputs, labels, generator, seed_of("network", *counters))
        return judged, _loss_and_hits(judged, labels)

    def samples(self, index: Tensor, step: int | None) -> tuple[Tensor, Tensor]:
        """Some samples with their labels, where the network is; augmented as in a step of training, if one is given."""
        inputs, labels = self.inputs[index].to(self.device), self.labels[index].to(self.device)
        if step is None:
            return inputs, labels
        box, recipe = self.recipe.box, self.recipe
        black = 0.0 if box is None else min(max(0.0, box[0]), box[1])
        return augment_images(inputs, index, recipe.augment, recipe.seed, step, black), labels

    def loss(
        self,
        parts: TrainingParts,
        now: Moment,
        inputs: Tensor,
        labels: Tensor,
        generator: torch.Generator,
        dropout: int | None,
        base: Target | None = None,
    ) -> Judged:
        """The loss of some samples; without a seed for dropout the network is in evaluation mode."""
        base = base or Target(self.network, self.outputs)
        with self._autocast():
            target, found, search_result = self._attack(base, parts, now, inputs, labels, generator)
            if dropout is not None:
                self.network.train()
                torch.manual_seed(dropout)  # for dropout and the like
            judged = parts.objective(View(target, inputs, labels, found, now, generator, search_result))
        if not isinstance(self.recipe.loss, str):
            _check_objective_result(self.recipe.loss, judged, labels)
        return judged

    def gradients(self, judged: Judged, scale: float = 1.0) -> tuple[Tensor, ...]:
        """Gradients of the weights that are trained."""
        loss = judged.loss if scale == 1 else judged.loss * scale
        return torch.autograd.grad(loss, self.trained, allow_unused=True, materialize_grads=True)

    def _autocast(self) -> torch.autocast:
        kind = _KINDS.get(self.recipe.precision)
        return torch.autocast(self.device.type, dtype=kind, enabled=kind is not None)

    def _attack(
        self,
        base: Target,
        parts: TrainingParts,
        now: Moment,
        inputs: Tensor,
        labels: Tensor,
        generator: torch.Generator,
    ) -> tuple[Target, Found, Any]:
        """The target with its noise, and what adversary and inner search find with the network fixed."""
        trained = self.trained
        self.network.eval()
        for weight in trained:
            weight.requires_grad_(False)
        try:
            target, found = base, Found(inputs)
            if parts.noise is not None:
                target = replace(target, noise=parts.noise(target, inputs, labels, now, generator))
            if parts.adversary is not None and now.epsilon:
                ball = Ball(now.epsilon, self.recipe.norm, self.recipe.box)
                found = self._run_adversary(parts.adversary(now), target, inputs, labels, ball)
            search_result = (
                None if parts.inner_search is None else parts.inner_search(target, inputs, labels, now, generator)
            )
            return target, found, search_result
        finally:
            for weight in trained:
                weight.requires_grad_(True)

    def _run_adversary(self, adversary: Adversary, target: Target, inputs: Tensor, labels: Tensor, ball: Ball) -> Found:
        """Run the adversary; the result of one of your own is checked."""
        result = adversary(target, inputs, labels, ball, keep="last")
        if self.recipe.adversary is None or isinstance(self.recipe.adversary, str):
            return result
        name = type(adversary).__name__
        if not isinstance(result, Found):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"{name} returned a {type(result).__name__}; return certcal.attacks.Found(inputs)")
        return replace(result, inputs=ball.check_moved(name, inputs, result.inputs))

    def combine_pieces(
        self, pieces: Sequence[PieceResult], shares: Sequence[float], scale: float, total: Sum = list
    ) -> StepResult:
        """The pieces' means weighted by their shares, added in the order of the pieces, gradients without the scale.

        With the pieces of other processes, if ``total`` adds theirs. Each piece changed the buffers from the same
        start; their changes are averaged, whole numbers the first's.
        """

        def mean(like: Tensor, several: Sequence[Tensor]) -> Tensor:
            # In the memory order of the weights, so that later arithmetic has the same order wherever this came from.
            whole = torch.empty_like(like).copy_(several[0])
            if shares[0] == 1:
                return whole
            whole.mul_(shares[0])
            for each, share in zip(several[1:], shares[1:], strict=True):
                whole.add_(each * share)
            return whole

        slopes = [mean(weight, [each.gradients[k] for each in pieces]) for k, weight in enumerate(self.trained)]
        floating = [k for k, buffer in enumerate(self.buffers) if buffer.is_floating_point()]
        changes = [mean(self.buffers[k], [each.buffers[k] - self.buffers[k] for each in pieces]) for k in floating]
        rest = total([*slopes, *changes])
        gradients = [each if scale == 1 else each.div_(scale) for each in rest[: len(slopes)]]
        buffers = list(pieces[0].buffers)
        if shares[0] < 1:
            for k, change in zip(floating, rest[len(slopes) :], strict=True):
                buffers[k] = self.buffers[k] + change
        *numbers, finite = to_numbers(torch.cat([*(each.numbers for each in pieces), all_finite(gradients)[None]]))
        loss = sum(each * share for each, share in zip(numbers[::2], shares, strict=True))
        correct = sum(numbers[1::2])
        if sum(shares) < 1 - 1e-9:  # others have the rest
            loss, correct = to_numbers(total([pieces[0].numbers.new_tensor([loss, correct])])[0])
        return StepResult(loss, round(correct), bool(finite), gradients, buffers)


def _loss_and_hits(judged: Judged, labels: Tensor) -> Tensor:
    """The loss and how many are right (2,)."""
    correct = (judged.log_probabilities.detach().argmax(1) == labels).sum()
    return torch.stack([judged.loss.detach().float(), correct.float()])


def _check_objective_result(loss: Any, judged: Any, labels: Tensor) -> None:
    """Raise unless an objective of your own returned one number and a row per sample."""
    name = type(loss).__name__
    if not isinstance(judged, Judged):
        raise InputError(
            f"{name} returned a {type(judged).__name__}; return certcal.lab.training.Judged(loss, log_probabilities)"
        )
    if judged.loss.ndim or not judged.loss.requires_grad:
        raise InputError(
            f"{name} returned a loss of shape {tuple(judged.loss.shape)}; return one number with gradients"
        )
    if judged.log_probabilities.ndim != 2 or len(judged.log_probabilities) != len(labels):
        shape = tuple(judged.log_probabilities.shape)
        raise InputError(f"{name} returned log probabilities of shape {shape}; return a row per sample")


def to_numbers(values: Tensor) -> list[float]:
    """Python numbers; waits for the device."""
    return cast("list[float]", values.cpu().tolist())


def all_finite(tensors: Sequence[Tensor]) -> Tensor:
    """1 if all numbers are finite, otherwise 0, without waiting for a device."""
    return torch.stack([torch.isfinite(each).all() for each in tensors]).all().float()


def restore(tensors: Sequence[Tensor], values: Sequence[Tensor]) -> None:
    """Copy values into tensors."""
    with torch.no_grad():
        for tensor, value in zip(tensors, values, strict=True):
            tensor.copy_(value)


class Optimiser:
    """Moves weights by torch's own functions, and remembers what it needs for that, one table of tensors per weight.

    torch's optimiser classes do the same arithmetic, but load its compiler at their first use, which takes seconds.
    """

    def __init__(self, recipe: Recipe, weights: Sequence[Tensor]) -> None:
        self.recipe, self.weights = recipe, list(weights)
        self.moments: list[dict[str, Tensor]] = [{} for _ in self.weights]

    def step(self, gradients: Sequence[Tensor], learning_rate: float) -> None:
        """Move the weights against their gradients."""
        with torch.no_grad():
            (self._adam if self.recipe.optimiser == "adam" else self._sgd)(list(gradients), learning_rate)

    def _sgd(self, gradients: list[Tensor], learning_rate: float) -> None:
        buffers = [several.get("momentum_buffer") for several in self.moments]
        sgd(
            *(self.weights, gradients, buffers),
            weight_decay=self.recipe.weight_decay,
            momentum=self.recipe.momentum,
            lr=learning_rate,
            dampening=0.0,
            nesterov=False,
            maximize=False,
        )
        for several, buffer in zip(self.moments, buffers, strict=True):
            if buffer is not None:
                several["momentum_buffer"] = buffer

    def _adam(self, gradients: list[Tensor], learning_rate: float) -> None:
        for several, weight in zip(self.moments, self.weights, strict=True):
            if not several:
                several["step"] = torch.tensor(0.0)
                several["exp_avg"], several["exp_avg_sq"] = torch.zeros_like(weight), torch.zeros_like(weight)
        none: list[Tensor] = []
        first, second, steps = ([each[name] for each in self.moments] for name in ("exp_avg", "exp_avg_sq", "step"))
        adam(
            *(self.weights, gradients, first, second, none, steps),
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=learning_rate,
            weight_decay=self.recipe.weight_decay,
            eps=1e-8,
            maximize=False,
        )

    def tensors(self) -> dict[str, Tensor]:
        """Tensors of the optimiser by name."""
        return {f"{number}/{name}": value for number, each in enumerate(self.moments) for name, value in each.items()}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on from what :meth:`tensors` gave."""
        self.moments = [{} for _ in self.weights]
        for key, value in tensors.items():
            number, name = key.split("/", 1)
            weight = self.weights[int(number)].detach()
            # Where the weight is, and in its memory order, in which it was made; the count of steps stays here.
            kept = torch.empty_like(weight).copy_(value) if value.shape == weight.shape and name != "step" else value
            self.moments[int(number)][name] = kept.clone()
