"""Data in parts: some to train on, some to test on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from certcal._checks import InputError
from certcal.data._inputs import Inputs

Part = Literal["train", "test"]
PARTS: tuple[Part, ...] = ("train", "test")

# How to read each part that a source has; under None what is not divided.
Readers = dict[Part | None, Callable[[], Inputs]]


def check_part(part: Any) -> None:
    """Raise unless it is the name of a part, or None."""
    if part is not None and part not in PARTS:
        raise InputError(f"part is {part!r}; pass 'train' or 'test'")


def chosen(readers: Readers, part: Part | None, source: Path) -> Inputs:
    """The part that is asked for; without asking, all there is, if it is not divided."""
    if part in readers:
        return readers[part]()
    there: list[Part] = [each for each in PARTS if each in readers]
    if part is None and len(there) == 1:
        return readers[there[0]]()
    if part is None:
        raise InputError(
            f"{source}: it holds a part to train on and one to test on; ask for part='train' or part='test'"
        )
    if not there:
        raise InputError(f"{source}: it is not divided into parts to train and to test on; leave part out")
    only = there[0]
    raise InputError(
        f"{source}: there is no part to {part} on, only one to {only} on; ask for part='{only}', or for none"
    )
