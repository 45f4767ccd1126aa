"""Several processes on one batch.

Data, weights and gradients lie in one file that all of them map; messages carry the numbers of samples only. The
weights are moved by one process, between steps.
"""

from __future__ import annotations

import copy
import math
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from certcal._checks import InputError
from certcal._text import reason
from certcal.engines import EngineError
from certcal.engines.local import READY, RESULT, Worker, said_here, with_origin
from certcal.models.protocol import Outputs
from certcal.training._recipe import Recipe
from certcal.training._step import PieceResult, Place, ReadInputs, StepResult, Workshop, read, restore

Errand = tuple[Place, list[tuple[int, Any]]]

_ALIGNED = 64
_SHARED_MEMORY = Path("/dev/shm")


class WorkerPool:
    """One batch in this process and others, each with every n-th piece; the others end with the block."""

    def __init__(self, workshop: Workshop, workers: int) -> None:
        self.workshop = workshop
        layout = SharedBench.layout(workshop)
        path = new_file(layout.size)
        self.others: list[Worker] = []
        self.told: set[str] = set()
        try:
            self.bench = SharedBench(path, layout, workshop.network, workshop.recipe.pieces)
            restore([self.bench.labels], [workshop.labels])
            if isinstance(workshop.inputs, Tensor):
                restore([self.bench.inputs], [workshop.inputs])
            own = None if isinstance(workshop.inputs, Tensor) else workshop.inputs
            errands = _Errands(workshop.network, workshop.outputs, workshop.recipe, path, layout, own)
            _check_travels(errands)
            for number in range(1, workers):
                self.others.append(Worker(errands, number, None))
            for other in self.others:
                self._answer(other, READY)
                other.ready = True
        except BaseException:
            self.__exit__()
            raise
        finally:
            os.unlink(path)  # all who need it have it mapped

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *error: object) -> None:
        for other in self.others:
            other.stop()

    def step(self, place: Place, batch: Tensor) -> StepResult:
        """What a batch gives."""
        cut, count = self.workshop.cut(batch), 1 + len(self.others)
        restore(self.bench.network, _state_of(self.workshop.network))
        for number, other in enumerate(self.others, 1):
            other.send((place, [(piece, index.numpy()) for piece, index in cut[number::count]]))
        pieces: dict[int, PieceResult] = {}
        for (piece, _), done in zip(cut[::count], self.workshop.work(place, cut[::count]), strict=True):
            pieces[piece] = done
        for number, other in enumerate(self.others, 1):
            for (piece, _), found in zip(cut[number::count], self._answer(other, RESULT), strict=True):
                gradients, buffers = self.bench.gradients[piece], self.bench.buffers[piece]
                pieces[piece] = PieceResult(torch.tensor(found), gradients, buffers)
        sizes = [index.numel() for _, index in cut]
        return self.workshop.combined([pieces[piece] for piece, _ in cut], sizes, place.scale)

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
        return said_here(value, self.told) if kind == RESULT else value


class _Errands:
    """What another process does: pieces of batches."""

    def __init__(
        self,
        network: nn.Module,
        outputs: Outputs,
        recipe: Recipe,
        path: str,
        layout: TensorLayout,
        inputs: ReadInputs | None,
    ) -> None:
        self.network, self.recipe, self.path, self.layout = network, recipe, path, layout
        self.inputs = inputs  # if every process reads them for itself
        self.outputs: Outputs = outputs

    def prepare(self) -> None:
        """Map the shared memory."""
        torch.set_num_threads(1)
        self.network = copy.deepcopy(self.network)  # tensors that were sent still share their memory with the sender
        self.bench = SharedBench(self.path, self.layout, self.network, self.recipe.pieces)
        inputs = self.bench.inputs if self.inputs is None else self.inputs
        self.workshop = Workshop(self.network, self.outputs, self.recipe, inputs, self.bench.labels)

    def __call__(self, errand: Errand, /) -> list[list[float]]:
        """Work on some pieces of a step with the shared weights; what they give is in the shared memory then."""
        place, cut = errand
        restore(_state_of(self.network), self.bench.network)
        numbered = [(piece, torch.as_tensor(index)) for piece, index in cut]
        done = self.workshop.work(place, numbered)
        for (piece, _), result in zip(numbered, done, strict=True):
            restore(self.bench.gradients[piece], result.gradients)
            restore(self.bench.buffers[piece], result.buffers)
        return [read(result.numbers) for result in done]


def _check_travels(errands: _Errands) -> None:
    """Raise unless the network can be sent to another process."""
    from multiprocessing.reduction import ForkingPickler

    try:
        ForkingPickler.dumps(errands)
    except Exception as error:
        raise EngineError(
            f"{type(errands.network).__name__} cannot be sent to a worker process ({reason(error)}); define its class "
            "in a module, or pass workers=1"
        ) from error


def _state_of(network: nn.Module) -> list[Tensor]:
    """All weights and buffers, also those that are not saved."""
    return [*network.parameters(), *network.buffers()]


class SharedBench:
    """The shared memory of a training: data, the network, and for every piece its gradients and buffers."""

    def __init__(self, path: str, layout: TensorLayout, network: nn.Module, pieces: int) -> None:
        trained, buffers = sum(weight.requires_grad for weight in network.parameters()), len(list(network.buffers()))
        tensors = layout.mapped(path)
        self.inputs, self.labels = tensors[:2]
        count = 2 + len(_state_of(network))
        self.network, rest, each = tensors[2:count], tensors[count:], trained + buffers
        self.gradients = [rest[each * piece : each * piece + trained] for piece in range(pieces)]
        self.buffers = [rest[each * piece + trained : each * (piece + 1)] for piece in range(pieces)]

    @staticmethod
    def layout(workshop: Workshop) -> TensorLayout:
        """Where everything lies."""
        per_piece = [*workshop.trained, *workshop.buffers]
        shared = workshop.inputs if isinstance(workshop.inputs, Tensor) else torch.empty(0)
        return TensorLayout.of(
            [shared, workshop.labels, *_state_of(workshop.network), *per_piece * workshop.recipe.pieces]
        )


@dataclass(frozen=True)
class TensorLayout:
    """Shapes and types of tensors that lie one after the other in a file."""

    entries: tuple[tuple[tuple[int, ...], torch.dtype], ...]

    @classmethod
    def of(cls, tensors: Sequence[Tensor]) -> TensorLayout:
        """That of some tensors."""
        return cls(tuple((tuple(tensor.shape), tensor.dtype) for tensor in tensors))

    @property
    def size(self) -> int:
        """Bytes in all."""
        return max((stop for _, stop in self._places()), default=0)

    def mapped(self, path: str) -> list[Tensor]:
        """The tensors in a file, which all processes that map it share."""
        whole = torch.from_file(path, shared=True, size=self.size, dtype=torch.uint8)
        return [
            whole[start:stop].view(dtype).reshape(shape)
            for (start, stop), (shape, dtype) in zip(self._places(), self.entries, strict=True)
        ]

    def _places(self) -> Iterator[tuple[int, int]]:
        start = 0
        for shape, dtype in self.entries:
            stop = start + math.prod(shape) * dtype.itemsize
            yield start, stop
            start = -(-stop // _ALIGNED) * _ALIGNED


def new_file(size: int) -> str:
    """A file of a size, in memory where there is enough; whoever maps it keeps it when its name is removed."""
    folder = tempfile.gettempdir()
    for place in (_SHARED_MEMORY, Path(folder)):
        if place.is_dir() and os.access(place, os.W_OK) and shutil.disk_usage(place).free > 2 * size:
            descriptor, path = tempfile.mkstemp(prefix="certcal-", dir=place)
            with os.fdopen(descriptor, "wb") as stream:
                stream.truncate(max(size, 1))
            return path
    raise InputError(
        f"{folder}: has no room for the {size} bytes that workers share; make room, set TMPDIR to another folder, or "
        "pass workers=1"
    )
