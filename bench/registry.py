"""The table of libraries and metrics that ``peers`` and ``ours`` fill."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

Run = Callable[[], float | None]
Prepare = Callable[[SimpleNamespace], Run]

PEERS: dict[tuple[str, str], Prepare] = {}
NOTES: dict[tuple[str, str], str] = {}

# Names on the package index, where they are not the name in the tables.
DISTRIBUTIONS = {"double sum": "numpy"}


def peer(metric: str, library: str, note: str = "") -> Callable[[Prepare], Prepare]:
    """Register a preparer: it takes the arrays and returns what is timed; the note says what differs from ours."""

    def register(prepare: Prepare) -> Prepare:
        PEERS[metric, library] = prepare
        NOTES[metric, library] = note
        return prepare

    return register


def tensors(data: SimpleNamespace) -> tuple[Any, Any]:
    """Confidence and outcome as torch wants them."""
    import torch

    return torch.from_numpy(data.confidence), torch.from_numpy(data.correct.astype(np.int64))


def batched(metric: Any, data: SimpleNamespace, **options: Any) -> Run:
    """A torchmetrics class, updated with 100 batches and then computed."""
    z, y = tensors(data)
    batches = list(zip(z.chunk(100), y.chunk(100), strict=True))

    def run() -> float:
        state = metric(**options)
        for batch in batches:
            state.update(*batch)
        return float(state.compute())

    return run
