# pyright: reportUnknownMemberType=false
# The annotations of torch.distributed are incomplete.
"""One training in several processes, each on a device of its own, as torchrun starts them.

Every process has the data and the whole state, and works on every n-th piece of a batch; gradients are averaged by
torch's DistributedDataParallel while they are computed. The first process alone reads and writes the folder.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, distributed, nn

from certcal._base.checks import InputError
from certcal.lab.training._checkpoints import TrainingState
from certcal.lab.training._recipe import Recipe
from certcal.lab.training.step import Numbered, Place, StepResult, StepWorker, all_finite, restore, to_numbers
from certcal.models.devices import resolve


@dataclass(frozen=True)
class Processes:
    """One process among those that train together."""

    rank: int
    count: int

    @property
    def first(self) -> bool:
        """Whether this is the one that reads and writes."""
        return self.rank == 0

    def device(self, device: str) -> str:
        """The device of this process: each on its machine has its own, unless the word has a number."""
        return device if device == "cpu" or ":" in device else resolve(f"{device}:{os.environ.get('LOCAL_RANK', 0)}")

    def check(self, recipe: Recipe) -> None:
        """Raise unless there is a piece of a batch for each process."""
        if recipe.pieces < self.count:
            why = f"it is {recipe.pieces}, but there are {self.count} processes"
            raise InputError(why, argument="pieces", remedy=f"give {self.count}, one for each")

    def agree(self, value: Any) -> Any:
        """The first process's value, for all."""
        several = [value]
        distributed.broadcast_object_list(several, 0)
        return several[0]

    def share(self, state: TrainingState) -> None:
        """Bring all processes to the state of the first one."""
        own = {name: tensor.detach().cpu() for name, tensor in state.tensors().items()} if self.first else {}
        counters, tensors = self.agree((state.counters(), own))
        if not self.first:
            state.load(counters, tensors)


@contextlib.contextmanager
def join_processes() -> Generator[Processes | None, None, None]:
    """The processes that train together, None if there is only this one. A group that was not there ends with it."""
    begun = distributed.is_available() and distributed.is_initialized()
    several = {"RANK", "MASTER_ADDR"} <= os.environ.keys() and int(os.environ.get("WORLD_SIZE", "1")) > 1
    if not (begun or several):
        yield None
        return
    if not begun:
        distributed.init_process_group()
    try:
        count = distributed.get_world_size()
        yield None if count == 1 else Processes(distributed.get_rank(), count)
    finally:
        if not begun:
            distributed.destroy_process_group()


class _PieceLoss(nn.Module):
    """From a piece to its loss, as a module whose weights are those that are trained."""

    def __init__(self, worker: StepWorker) -> None:
        super().__init__()
        self.weights = nn.ParameterList(worker.trained)
        self._work = worker.piece

    def forward(self, place: Place, numbered: Numbered) -> tuple[Tensor, Tensor]:
        judged, numbers = self._work(place, numbered)
        return judged.loss, numbers


class ProcessCrew:
    """One batch in several processes, each with every n-th piece."""

    def __init__(self, worker: StepWorker, processes: Processes) -> None:
        self.worker, self.processes = worker, processes
        self.loss = nn.parallel.DistributedDataParallel(_PieceLoss(worker))

    def step(self, place: Place, batch: Tensor) -> StepResult:
        """The result of a batch, the same in all processes."""
        worker, count = self.worker, self.processes.count
        mine = worker.cut(batch)[self.processes.rank :: count]
        start = [buffer.clone() for buffer in worker.buffers]
        found: list[tuple[float, Tensor, list[Tensor]]] = []  # of each piece its share, numbers and buffers
        for numbered in mine:
            share = numbered[1].numel() / batch.numel()
            with contextlib.nullcontext() if numbered is mine[-1] else self.loss.no_sync():
                loss, numbers = self.loss(place, numbered)
                (loss * (share * count * place.scale)).backward()  # of which the mean over the processes is taken
            found.append((share, numbers, [buffer.clone() for buffer in worker.buffers]))
            restore(worker.buffers, start)
        gradients = self._gradients(place.scale)
        floating = [k for k, buffer in enumerate(start) if buffer.is_floating_point()]
        changes = [torch.stack([(each[k] - start[k]) * share for share, _, each in found]).sum(0) for k in floating]
        told = torch.stack([torch.stack([numbers[0] * share, numbers[1]]) for share, numbers, _ in found]).sum(0)
        told, *changes = _sum_over_processes([told, *changes])
        buffers = found[0][2]
        for k, change in zip(floating, changes, strict=True):
            buffers[k] = start[k] + change
        mean, correct, finite = to_numbers(torch.cat([told, all_finite(gradients)[None]]))
        return StepResult(mean, round(correct), bool(finite), gradients, buffers)

    def _gradients(self, scale: float) -> list[Tensor]:
        """Gradients shared by all processes, without the scale."""
        found = [weight.grad for weight in self.worker.trained]
        self.worker.network.zero_grad(set_to_none=True)
        gradients = [each.div_(scale) for each in found if each is not None]
        if len(gradients) < len(found):
            raise InputError(
                f"{type(self.worker.network).__name__} has weights that its answer does not depend on, which several "
                "processes cannot train; call .requires_grad_(False) on them, or train in one process"
            )
        return gradients


def _sum_over_processes(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Sums over the processes, in one message."""
    whole = torch.cat([each.flatten().float() for each in tensors])
    distributed.all_reduce(whole)
    parts = torch.split(whole, [each.numel() for each in tensors])
    return [part.reshape(each.shape).to(each.dtype) for part, each in zip(parts, tensors, strict=True)]
