"""The schema of calibrator files. Loaded when one is written or read, and not before: so is msgspec.

The promise: every later certcal reads the files of every earlier one, and the map that it reads is the same, bit for
bit. The version goes up when an older certcal would misread a file; a file with a version above its own is refused with
the advice to upgrade, and is never read in part. Version 1 is the only one so far; its first files do not name the run
of their samples, and are read as naming none.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from certcal._base.checks import InputError

Read = TypeVar("Read", bound=Struct)

FORMAT = "certcal calibrator"
VERSION = 1

_MOST_TEXT, _MOST_CLASSES = 1_000, 100_000
_WORDS = {
    "source": "pass the name of a file or folder, without folders",
    "fingerprint": "pass 64 hexadecimal digits, or None",
    "run": "pass the name of a run, 8 to 128 hexadecimal digits, or None",
}


class FittedSamples(Struct, forbid_unknown_fields=True):
    """Which samples a calibrator was fitted to: the fields of ``FittedOn``."""

    source: Annotated[str, Meta(pattern=rf"^[^/\\\x00-\x1f]{{1,{_MOST_TEXT}}}\Z")]
    kind: Literal["run", "intervals", "predictions"]
    fingerprint: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")] | None
    n: Annotated[int, Meta(ge=1, le=10**12)]
    fraction: Annotated[float, Meta(gt=0, le=1)]
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)]
    classes: (
        Annotated[tuple[Annotated[str, Meta(max_length=_MOST_TEXT)], ...], Meta(min_length=2, max_length=_MOST_CLASSES)]
        | None
    )
    run: Annotated[str, Meta(pattern=r"^[0-9a-f]{8,128}\Z")] | None = None
    task: Literal["binary", "top-label", "multiclass"] | None = None


_Text = Annotated[str, Meta(min_length=1, max_length=100_000)]
_Number = Annotated[float, Meta(ge=-1e300, le=1e300)]


class GroupedColumn(Struct, forbid_unknown_fields=True):
    """The groups of a column: the fields of ``GroupColumn``."""

    name: _Text
    groups: Annotated[list[Annotated[str, Meta(max_length=100_000)]], Meta(min_length=1, max_length=_MOST_CLASSES)]
    starts: list[_Number]


class GroupCorrection(Struct, forbid_unknown_fields=True):
    """What is done to the log-odds of groups: the fields of ``Correction``."""

    by: _Text
    columns: Annotated[list[GroupedColumn], Meta(min_length=1, max_length=20)]
    move: Annotated[float, Meta(ge=0, le=100)]
    codes: Annotated[list[Annotated[int, Meta(ge=0)]], Meta(max_length=_MOST_CLASSES)]
    slope: list[Annotated[float, Meta(ge=0, le=1e6)]]
    intercept: list[Annotated[float, Meta(ge=-1e8, le=1e8)]]


class CalibratorFile(Struct, forbid_unknown_fields=True):
    """A whole file. What is inside the calibrator its class checks."""

    format: str
    version: int
    calibrator: dict[str, Any]
    fitted_on: FittedSamples | None


def convert_to(value: Any, kind: type[Read]) -> Read:
    """Plain values as a part of a file, or an InputError that says where they are not."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        reason, _, place = str(error).partition(" - at `$")
        path = place.strip("`.")
        wanted = _WORDS.get(path.rpartition(".")[2], reason[:1].lower() + reason[1:])
        raise InputError(f"{path}: {wanted}" if path else wanted) from None
