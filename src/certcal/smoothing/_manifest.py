"""The manifest of a run: what was drawn, with what, and the units of work that follow from it, one shard each.

The cut into units depends on nothing but the manifest, so that an interrupted run is continued with the same pieces and
ends with the same shards. The file is JSON, and treated as hostile when it is read. It carries a checksum of itself,
and every shard a digest of what the manifest says about drawing. They find accidents and careless edits; whoever wants
to deceive can compute both again.

**What later versions read.** Runs of version 2 stay readable, and go on in that version. A field is never renamed,
dropped or given another meaning; one that is added has a default with which older files mean what they meant. Whatever
cannot be done so, other noise for the same seed among it, raises the version, and the reader of version 2 stays. A file
of a newer version, or with a field that is not known here, is refused with the advice to update. Version 1 is refused:
its shards do not say what they were drawn with. Version 3 counts more: the sum of the confidences and the votes of all
classes, and histograms of several classes where that was asked for.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, cast

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from certcal._base.checks import InputError
from certcal._base.durable import LOCK, is_leftover, open_regular, write_durably
from certcal._base.parts import MOST_PARTS, shares
from certcal._base.told import Told
from certcal.data import Rows
from certcal.data.inputs import blocks, hash_rows
from certcal.smoothing._noise import NoiseKind

FILE = "manifest.json"
FORMAT = "certcal run"
CHECKSUM = "checksum"
VERSION = 3
OLD_VERSION = 2

MOST_DRAWS = 2**31 - 1
MOST_SAMPLES = 10**9
MOST_SEED = 2**64 - 1
MOST_UNITS = 2_000_000
MOST_HISTOGRAMS = 100

_MOST_BYTES = 8_000_000

Text = Annotated[str, Meta(max_length=4_000)]
Digits = Annotated[str, Meta(pattern=r"^[0-9a-f]{8,128}\Z")]
Draws = Annotated[int, Meta(ge=1, le=MOST_DRAWS)]
Pixels = Annotated[int, Meta(ge=1, le=2**31)]
Stage = Literal["selection", "counting"]


class Size(NamedTuple):
    """How far a run goes: the first ``samples`` samples, with draws 0 to ``n`` - 1 of each."""

    samples: Annotated[int, Meta(ge=1, le=MOST_SAMPLES)]
    n: Draws


@dataclass(frozen=True)
class Unit:
    """Draws ``start`` to ``stop`` - 1 of samples ``first`` to ``last`` - 1, in one of the two stages."""

    stage: Stage
    first: int
    last: int
    start: int
    stop: int
    part: int = 1

    @property
    def passes(self) -> int:
        """Forward passes of the model."""
        return (self.last - self.first) * (self.stop - self.start)

    @property
    def name(self) -> str:
        """The shard's place below the run's folder."""
        return f"{self.stage}/samples-{self.first}-{self.last}-draws-{self.start}-{self.stop}.parquet"

    def __str__(self) -> str:
        return f"samples {self.first} to {self.last - 1} (draws {self.start} to {self.stop - 1}, {self.stage})"


class ModelRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which model was sampled."""

    description: Text
    fingerprint: Digits
    outputs: Literal["probabilities", "logits"]
    classes: Annotated[int, Meta(ge=2, le=10_000_000)]
    source: Text | None = None
    weights: Text | None = None


class DataRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which data was sampled. Sample i of the run is number i·every of the source, images perhaps prepared."""

    inputs: Digits
    labels: Digits
    shape: Annotated[tuple[Annotated[int, Meta(ge=1, le=2**31)], ...], Meta(max_length=32)]
    source: Text | None = None
    every: Annotated[int, Meta(ge=1, le=MOST_SAMPLES)] = 1
    resize: Pixels | None = None
    crop: Pixels | None = None
    split: Literal["train", "test"] | None = None
    range: tuple[float, float] | None = None
    """Smallest and largest value of all inputs."""


# Added to a version later, with what files without it mean.
_UNUSED = {"every": 1, "resize": None, "crop": None, "split": None, "range": None, "histograms": 1, "parts": 1}


class Manifest(Told, msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """All that a run was drawn with."""

    run: Digits
    """A random name; every shard carries it."""
    created: Text
    """Time of creation, UTC."""
    sigma: Annotated[float, Meta(gt=0.0)]
    noise: NoiseKind
    seed: Annotated[int, Meta(ge=0)]
    """Of the noise: its standard deviation, "gaussian" or "exact" (discretised for inputs on k/255), and its seed."""
    n0: Draws
    pilot: Draws
    """Draws that choose the class; the first of the counting draws, which have units of their own."""
    thresholds: Annotated[tuple[Annotated[float, Meta(gt=0.0, lt=1.0)], ...], Meta(min_length=1, max_length=65_535)]
    """The grid of the confidence histogram."""
    batch: Annotated[int, Meta(ge=1, le=2**31)]
    unit: Annotated[int, Meta(ge=1, le=2**62)]
    """Rows per call of the model; forward passes per shard, at most."""
    rows_independent: bool
    """Whether a row's output was the same bits in every batch that was tried, of whatever size. If not, the batch size
    is part of the result."""
    sizes: Annotated[tuple[Size, ...], Meta(min_length=1, max_length=10_000)]
    """How the run grew: numbers of samples and of draws."""
    model: ModelRecord
    data: DataRecord
    """Which model and data."""
    versions: Annotated[dict[str, Text], Meta(max_length=100)]
    """Of the software that created it, and the device that it began on."""
    version: Literal[2, 3] = VERSION
    """Of the format."""
    histograms: Annotated[int, Meta(ge=1, le=MOST_HISTOGRAMS)] = 1
    """Classes whose confidences have a histogram each; if several, there is one of all other classes as well."""
    parts: Annotated[int, Meta(ge=1, le=MOST_PARTS)] = 1
    """Parts that the samples are divided into, for as many writers."""

    def __post_init__(self) -> None:
        if self.seed > MOST_SEED:
            raise ValueError("Expected a seed below 2**64 - at `$.seed`")
        if any(a >= b for a, b in pairwise(self.thresholds)):
            raise ValueError("Expected growing numbers - at `$.thresholds`")
        steps = pairwise((Size(1, self.pilot), *self.sizes))
        if any(before.samples > after.samples or before.n > after.n for before, after in steps):
            raise ValueError("Expected growing numbers of samples and draws - at `$.sizes`")
        if number_of_units(self.sizes, self.n0, self.pilot, self.unit, self.parts) > MOST_UNITS:
            raise ValueError(f"Expected at most {MOST_UNITS} shards - at `$.unit`")

    @property
    def fingerprints(self) -> dict[str, str]:
        """Of the model, of the inputs and of the labels."""
        return {"model": self.model.fingerprint, "data": self.data.inputs, "labels": self.data.labels}

    @property
    def samples(self) -> int:
        """How many samples the run is for."""
        return self.sizes[-1].samples

    @property
    def n(self) -> int:
        """How many draws count, per sample."""
        return self.sizes[-1].n

    @property
    def passes(self) -> int:
        """Forward passes in all, selection included."""
        return self.samples * (self.n0 + self.n)

    def units(self) -> list[Unit]:
        """The pieces of work, selection first."""
        return plan(self.sizes, self.n0, self.pilot, self.unit, self.parts)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as in the file: without what was added later and is not used."""
        fields = {"format": FORMAT, "version": self.version} | msgspec.to_builtins(self)
        for place in (fields, fields["data"]):
            for name in [name for name, meant in _UNUSED.items() if name in place and place[name] == meant]:
                del place[name]
        return fields

    @cached_property
    def drawing(self) -> str:
        """Sixty-four hexadecimal digits of all that stays when the run grows; every shard carries them."""
        fields = self.to_dict()
        for each in msgspec.structs.fields(self):  # what later versions add, with what older files mean by it
            if each.name in fields and each.name != "version" and fields[each.name] == each.default:
                del fields[each.name]
        fields["sizes"] = fields["sizes"][:1]
        fields["data"] = {"shape": self.data.shape}
        return checksum(fields)


def fingerprint(values: NDArray[Any], kind: str) -> str:
    """Sixty-four hexadecimal digits of the shape of an array and of its bytes in a type."""
    array = np.ascontiguousarray(values, kind)
    total = hashlib.sha256(f"{array.shape}\n".encode())
    total.update(array.reshape(-1).view(np.uint8).data)
    return total.hexdigest()


def input_fingerprints(
    inputs: NDArray[np.float32] | Rows, *sizes: int, look: Callable[[int, NDArray[Any]], None] | None = None
) -> list[str]:
    """The same of the first so many inputs, for each of some numbers, in one pass; ``look`` sees every block of it."""
    totals = {size: hashlib.sha256(f"{(size, *inputs.shape[1:])}\n".encode()) for size in sizes}
    for first, block in blocks(inputs):
        hash_rows(block, first, totals)
        if look is not None:
            look(first, block)
    return [totals[size].hexdigest() for size in sizes]


def checksum(fields: Mapping[str, Any]) -> str:
    """Sixty-four hexadecimal digits of plain values, whatever their order and spacing in a file."""
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Put the manifest in its place, whole or not at all."""
    fields = manifest.to_dict()
    text = json.dumps(fields | {CHECKSUM: checksum(fields)}, indent=1, allow_nan=False, ensure_ascii=False)
    write_durably(folder / FILE, text.encode("utf-8") + b"\n")


def existing_manifest(folder: Path) -> Manifest | None:
    """The manifest in a folder, None for a folder that is free, and an error for one that holds something else."""
    if (folder / FILE).exists():
        return read_manifest(folder)
    try:
        names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    except OSError as error:
        raise InputError(f"{folder}: cannot be read ({error.strerror or error}); check its permissions") from error
    # A process that was killed before it wrote the manifest may have left a lock or half a file.
    others = [name for name in names if not (name == LOCK or is_leftover(name))]
    if others:
        raise InputError(
            f"{folder}: holds other files ({sorted(others)[0]}) and no {FILE}; choose an empty or new folder"
        )
    return None


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a run's folder, every field checked."""
    path = folder / FILE
    try:
        with open_regular(path) as stream:
            content = stream.read(_MOST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        trained = folder / "model.safetensors"
        remedy = f"a training is: its model is {trained}, for predict, sample and attack" if trained.exists() else ""
        raise InputError(f"{folder}: there is no run here (no {FILE}); {remedy or 'check the path'}") from None
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror or error}); check the path and permissions"
        ) from error
    if len(content) > _MOST_BYTES:
        raise InputError(f"{path}: larger than any manifest; this is not a run, or it is damaged")
    return manifest_from_bytes(content, path)


def manifest_from_bytes(content: bytes, path: Path) -> Manifest:
    """The manifest in the bytes of its file."""
    try:
        fields: Any = msgspec.json.decode(content)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not readable as JSON ({error}); restore it, or draw into a new folder") from None
    if not isinstance(fields, dict) or cast("dict[str, Any]", fields).get("format") != FORMAT:
        raise InputError(f"{path}: this is not the manifest of a run; check the path")
    known = cast("dict[str, Any]", fields)
    version, own = known.get("version"), known.pop(CHECKSUM, None)
    if version == 1 and type(version) is int:
        raise InputError(
            f"{path}: format version 1, whose shards do not say what they were drawn with; draw again into a new folder"
        )
    if type(version) is not int or version not in (OLD_VERSION, VERSION):
        raise InputError(
            f"{path}: format version {version!r}, and this certcal reads {OLD_VERSION} and {VERSION}; update certcal"
        )
    try:
        manifest = msgspec.convert({k: v for k, v in known.items() if k != "format"}, Manifest)
    except msgspec.ValidationError as error:
        new = "it is of a newer certcal, or " if "unknown field" in str(error) else ""
        raise InputError(
            f"{path}: {str(error).replace('`', '')}; {new}the file was damaged or edited: restore it, or draw into a "
            "new folder"
        ) from None
    if own != checksum(known):
        raise InputError(
            f"{path}: it was damaged or edited, for its checksum is not that of its fields; restore it, or draw into a "
            "new folder"
        )
    return manifest


# --- units of work ----------------------------------------------------------------------------------------------------


def plan(sizes: Sequence[Size], n0: int, pilot: int, unit: int, parts: int = 1) -> list[Unit]:
    """Every unit of a run that grew through the given sizes: selection first, then counting."""
    stages: tuple[Stage, Stage] = ("selection", "counting")
    return [
        piece
        for stage in stages
        for rectangle in _rectangles(sizes, n0, pilot, parts)
        if rectangle.stage == stage
        for piece in _units_of_rectangle(rectangle, unit)
    ]


def number_of_units(sizes: Sequence[Size], n0: int, pilot: int, unit: int, parts: int = 1) -> int:
    """How many units a plan has, without making it."""
    total = 0
    for rectangle in _rectangles(sizes, n0, pilot, parts):
        width, height = _unit_shape(rectangle, unit)
        total += -(-(rectangle.last - rectangle.first) // width) * -(-(rectangle.stop - rectangle.start) // height)
    return total


def default_unit(samples: int, n0: int, n: int, batch: int) -> int:
    """Forward passes per unit: a whole number of batches, some twenty thousand to two hundred thousand passes.

    Small runs have some 64 units, so that progress shows and little is lost with a kill; from a thousand million
    passes on units grow, so that there are never more than some thousands of shards.
    """
    total = samples * (n0 + n)
    passes = max(min(max(total // 64, 20_000), 200_000), total // 4096)
    return max(1, -(-passes // batch)) * batch


def _rectangles(sizes: Sequence[Size], n0: int, pilot: int, parts: int) -> Iterator[Unit]:
    """What each step of growth added: the new samples from their first draw, and new draws of the old ones.

    The samples of each step are divided into parts, so that no unit lies in two and a part needs no other's selection.
    """
    before, shared = Size(0, 0), list[tuple[int, range]]()
    for size in sizes:
        added = list(enumerate(shares(before.samples, size.samples, parts), 1))
        yield from (Unit("selection", rows.start, rows.stop, 0, n0, part) for part, rows in added if rows)
        if before.samples and size.n > before.n:
            old = [(1, range(before.samples))] if parts == 1 else shared
            yield from (Unit("counting", rows.start, rows.stop, before.n, size.n, part) for part, rows in old)
        for part, rows in added:
            if rows:
                yield Unit("counting", rows.start, rows.stop, 0, pilot, part)
                if size.n > pilot:
                    yield Unit("counting", rows.start, rows.stop, pilot, size.n, part)
                shared.append((part, rows))
        before = size


def _unit_shape(rectangle: Unit, unit: int) -> tuple[int, int]:
    """How many samples and draws go into a unit. The draws that choose a class stay together."""
    draws = rectangle.stop - rectangle.start
    if draws > unit and rectangle.stage == "counting":
        return 1, unit
    return max(1, unit // draws), draws


def _units_of_rectangle(rectangle: Unit, unit: int) -> Iterator[Unit]:
    width, height = _unit_shape(rectangle, unit)
    for first in range(rectangle.first, rectangle.last, width):
        last = min(first + width, rectangle.last)
        for start in range(rectangle.start, rectangle.stop, height):
            yield Unit(rectangle.stage, first, last, start, min(start + height, rectangle.stop), rectangle.part)
