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
    """All pieces in this process."""

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
