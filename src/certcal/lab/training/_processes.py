# pyright: reportUnknownMemberType=false
# The annotations of torch.distributed are incomplete.
"""One training in several processes, each on a device of its own, as torchrun starts them.

Every process has the data and the whole state, and works on every n-th piece of a batch; gradients are summed over the
processes. The first process alone reads and writes the folder.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, distributed

from certcal._base.checks import InputError
from certcal.lab.training._checkpoints import TrainingState
from certcal.lab.training._recipe import Recipe
from certcal.lab.training.step import Place, StepResult, StepWorker
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


class ProcessCrew:
    """One batch in several processes, each with every n-th piece."""

    def __init__(self, worker: StepWorker, processes: Processes) -> None:
        self.worker, self.processes = worker, processes

    def numbers_here(self, batch: Tensor) -> list[Tensor]:
        """Numbers of the samples of a batch that are read in this process, piece by piece."""
        return self.worker.numbers_here(batch)[self.processes.rank :: self.processes.count]

    def step(self, place: Place, batch: Tensor) -> StepResult:
        """The result of a batch, the same in all processes."""
        worker, rank, count = self.worker, self.processes.rank, self.processes.count
        mine = worker.cut(batch)[rank::count]
        if worker.recipe.together:
            return worker.step_together(place, batch, [number for number, _ in mine], _sum_over_processes)
        shares = [index.numel() / batch.numel() for _, index in mine]
        return worker.combine_pieces(worker.work(place, mine), shares, place.scale, _sum_over_processes)


def _sum_over_processes(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Sums over the processes, in one message, which floats of single precision are enough for."""
    if not tensors:
        return []
    whole = torch.cat([each.flatten().float() for each in tensors])
    distributed.all_reduce(whole)
    parts = torch.split(whole, [each.numel() for each in tensors])
    return [part.reshape(each.shape).to(each.dtype) for part, each in zip(parts, tensors, strict=True)]
