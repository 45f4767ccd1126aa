"""Several processes on one batch.

Data, weights and gradients lie in memory that all of them map; messages carry the numbers of samples only. The weights
are moved by one process, between steps.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from certcal._text import reason
from certcal.engines import EngineError
from certcal.engines.local import READY, RESULT, Worker, with_origin
from certcal.models.protocol import Outputs
from certcal.training._exchange import Layout, new_file
from certcal.training._recipe import Recipe
from certcal.training._step import Piece, Step, Workshop, combined, restore, work_here

Cut = list[tuple[int, Tensor]]
Errand = tuple[int, int, list[tuple[int, Any]]]


class Bench:
    """The shared memory of a training: data, the network, and for every piece its gradients and buffers."""

    def __init__(self, path: str, layout: Layout, network: nn.Module, pieces: int) -> None:
        trained, buffers = sum(weight.requires_grad for weight in network.parameters()), len(list(network.buffers()))
        tensors = layout.mapped(path)
        self.inputs, self.labels = tensors[:2]
        count = 2 + len(state_of(network))
        self.network, rest, each = tensors[2:count], tensors[count:], trained + buffers
        self.gradients = [rest[each * piece : each * piece + trained] for piece in range(pieces)]
        self.buffers = [rest[each * piece + trained : each * (piece + 1)] for piece in range(pieces)]

    @staticmethod
    def layout(workshop: Workshop) -> Layout:
        """Where everything lies."""
        per_piece = [*workshop.trained, *workshop.buffers]
        return Layout.of(
            [workshop.inputs, workshop.labels, *state_of(workshop.network), *per_piece * workshop.recipe.pieces]
        )


def state_of(network: nn.Module) -> list[Tensor]:
    """All weights and buffers, also those that are not saved."""
    return [*network.parameters(), *network.buffers()]


class Errands:
    """What another process does: pieces of batches."""

    def __init__(self, network: nn.Module, outputs: Outputs, recipe: Recipe, path: str, layout: Layout) -> None:
        self.network, self.recipe, self.path, self.layout = network, recipe, path, layout
        self.outputs: Outputs = outputs

    def prepare(self) -> None:
        """Map the shared memory."""
        torch.set_num_threads(1)
        self.network = copy.deepcopy(self.network)  # tensors that were sent still share their memory with the sender
        self.bench = Bench(self.path, self.layout, self.network, self.recipe.pieces)
        self.workshop = Workshop(self.network, self.outputs, self.recipe, self.bench.inputs, self.bench.labels)

    def __call__(self, errand: Errand, /) -> list[tuple[float, int]]:
        """Work on some pieces of a step with the shared weights; what they give is in the shared memory then."""
        epoch, step, cut = errand
        restore(state_of(self.network), self.bench.network)
        numbered = [(piece, torch.as_tensor(index)) for piece, index in cut]
        done = work_here(self.workshop, epoch, step, numbered)
        for (piece, _), result in zip(numbered, done, strict=True):
            restore(self.bench.gradients[piece], result.gradients)
            restore(self.bench.buffers[piece], result.buffers)
        return [(result.loss, result.correct) for result in done]


class Together:
    """One batch in this process and others, each with every n-th piece."""

    def __init__(self, workshop: Workshop, workers: int) -> None:
        self.workshop = workshop
        layout = Bench.layout(workshop)
        path = new_file(layout.size)
        self.others: list[Worker] = []
        try:
            self.bench = Bench(path, layout, workshop.network, workshop.recipe.pieces)
            restore([self.bench.inputs, self.bench.labels], [workshop.inputs, workshop.labels])
            errands = Errands(workshop.network, workshop.outputs, workshop.recipe, path, layout)
            _check_travels(errands)
            for number in range(1, workers):
                self.others.append(Worker(errands, number, None))
            for other in self.others:
                self._answer(other, READY)
                other.ready = True
        except BaseException:
            self.close()
            raise
        finally:
            os.unlink(path)  # all who need it have it mapped

    def step(self, epoch: int, step: int, batch: Tensor) -> Step:
        """Mean loss and gradients of a batch."""
        cut: Cut = list(enumerate(torch.tensor_split(batch, self.workshop.recipe.pieces)))
        count = 1 + len(self.others)
        restore(self.bench.network, state_of(self.workshop.network))
        for number, other in enumerate(self.others, 1):
            other.send((epoch, step, [(piece, index.numpy()) for piece, index in cut[number::count]]))
        pieces: dict[int, Piece] = {}
        start = [buffer.clone() for buffer in self.workshop.buffers]
        for (piece, _), done in zip(cut[::count], work_here(self.workshop, epoch, step, cut[::count]), strict=True):
            pieces[piece] = Piece(done.loss, done.correct, done.gradients, [each.clone() for each in done.buffers])
        restore(self.workshop.buffers, start)
        for number, other in enumerate(self.others, 1):
            for (piece, _), (loss, correct) in zip(cut[number::count], self._answer(other, RESULT), strict=True):
                pieces[piece] = Piece(loss, correct, self.bench.gradients[piece], self.bench.buffers[piece])
        return combined(self.workshop, [pieces[piece] for piece, _ in cut], [index.numel() for _, index in cut])

    def close(self) -> None:
        """End the other processes."""
        for other in self.others:
            other.stop()

    def _answer(self, other: Worker, wanted: str) -> Sequence[Any]:
        answer = other.answer()
        if answer is None:
            code = other.stop(patience=5)
            ending = f"was ended by signal {-code}" if code is not None and code < 0 else f"ended with exit code {code}"
            hint = (
                "the last checkpoint is kept: give the same command again, with fewer workers if memory is short"
                if other.ready
                else "in a script, put the call under if __name__ == '__main__':"
            )
            raise EngineError(f"a worker process {ending}; {hint}")
        kind, value = answer
        if kind != wanted:
            raise with_origin(*value)
        return value


def _check_travels(errands: Errands) -> None:
    """Raise unless the network can be sent to another process."""
    from multiprocessing.reduction import ForkingPickler

    try:
        ForkingPickler.dumps(errands)
    except Exception as error:
        raise EngineError(
            f"{type(errands.network).__name__} cannot be sent to a worker process ({reason(error)}); define its class "
            "in a module, or pass workers=1"
        ) from error
