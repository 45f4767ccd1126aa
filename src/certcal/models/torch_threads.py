"""How many threads torch computes with, for the length of a block. Importing this module loads torch."""

from __future__ import annotations

import contextlib
from collections.abc import Generator

import torch

from certcal._base.checks import whole_number


@contextlib.contextmanager
def torch_threads(threads: int = 1) -> Generator[None, None, None]:
    """So many threads for torch's arithmetic, and its number of threads and random generator left as they were.

    Sums depend on how many threads share them; with one the same call gives the same bits on any number of cores.
    """
    count = whole_number(threads, 1, 4096, "threads", "pass how many threads torch may use, at least 1")
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        with torch.random.fork_rng(devices=[]):  # pyright: ignore[reportUnknownMemberType]
            yield
    finally:
        torch.set_num_threads(before)
