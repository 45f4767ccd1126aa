"""Who works on the pieces of a batch: this process, or several."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Protocol

import torch
from torch import Tensor

from certcal.training._step import Step, Workshop, combined, work_here


class Crew(Protocol):
    """Works on batches."""

    def step(self, epoch: int, step: int, batch: Tensor) -> Step:
        """Mean loss and gradients of a batch, given by the numbers of its samples."""
        ...


class Alone:
    """All pieces in this process.

    Parameters
    ----------
    workshop
        Whose network is trained.
    """

    def __init__(self, workshop: Workshop) -> None:
        self.workshop = workshop

    def step(self, epoch: int, step: int, batch: Tensor) -> Step:
        """Mean loss and gradients of a batch."""
        cut = list(enumerate(torch.tensor_split(batch, self.workshop.recipe.pieces)))
        pieces = work_here(self.workshop, epoch, step, cut)
        return combined(self.workshop, pieces, [index.numel() for _, index in cut])


@contextlib.contextmanager
def crew_of(workshop: Workshop, workers: int) -> Generator[Crew, None, None]:
    """As many processes as asked for, of which this one is one; they end with the block."""
    if workers == 1:
        yield Alone(workshop)
        return
    from certcal.training._workers import Together

    together = Together(workshop, workers)
    try:
        yield together
    finally:
        together.close()


@contextlib.contextmanager
def one_thread() -> Generator[None, None, None]:
    """One thread for torch's arithmetic, since sums depend on how many there are; and its generator left as it was."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):  # pyright: ignore[reportUnknownMemberType]
            yield
    finally:
        torch.set_num_threads(before)
