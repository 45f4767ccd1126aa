"""The manifest of a run: what was drawn, with what, and the units of work that follow from it, one shard each.

The cut into units depends on nothing but the manifest, so that an interrupted run is continued with the same pieces and
ends with the same shards. The file is JSON, and treated as hostile when it is read. It carries a checksum of itself,
and every shard a digest of what the manifest says about drawing. They find accidents and careless edits; whoever wants
to deceive can compute both again.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError
from certcal._durable import LOCK, is_leftover, open_regular, write_durably
from certcal.smoothing._fields import Fields
from certcal.smoothing._noise import NOISES

FILE = "manifest.json"
FORMAT = "certcal run"
CHECKSUM = "checksum"
VERSION = 2  # raised when the files change, and when the same seed would give other noise

MOST_DRAWS = 2**31 - 1
MOST_SAMPLES = 10**9
MOST_SEED = 2**64 - 1
MOST_UNITS = 2_000_000

_MOST_BYTES = 8_000_000
_MOST_THRESHOLDS = 65_535
_MOST_SIZES = 10_000
_MOST_CLASSES = 10_000_000
_HEX = re.compile(r"[0-9a-f]{8,128}")


Stage = Literal["selection", "counting"]


class Size(NamedTuple):
    """How far a run goes: the first ``samples`` samples, with draws 0 to ``n`` - 1 of each."""

    samples: int
    n: int


@dataclass(frozen=True)
class Unit:
    """Draws ``start`` to ``stop`` - 1 of samples ``first`` to ``last`` - 1, in one of the two stages."""

    stage: Stage
    first: int
    last: int
    start: int
    stop: int

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


@dataclass(frozen=True)
class ModelRecord:
    """Which model was sampled."""

    description: str
    fingerprint: str
    outputs: str
    classes: int
    source: str | None = None
    weights: str | None = None


@dataclass(frozen=True)
class DataRecord:
    """Which data was sampled."""

    inputs: str
    labels: str
    shape: tuple[int, ...]
    source: str | None = None

    @classmethod
    def of(cls, inputs: NDArray[np.float32], labels: NDArray[np.int64], source: str | None) -> DataRecord:
        """Fingerprints of inputs and labels."""
        return cls(fingerprint(inputs, "<f4"), fingerprint(labels, "<i8"), tuple(inputs.shape[1:]), source)


@dataclass(frozen=True)
class Manifest:
    """All that a run was drawn with.

    Attributes
    ----------
    run
        A random name; every shard carries it.
    created
        Time of creation, UTC.
    sigma, noise, seed
        Of the noise: its standard deviation, "gaussian" or "exact" (discretised for inputs on k/255), and its seed.
    n0, pilot
        Draws that choose the class; the first of the counting draws, which may decide how the others are used.
    thresholds
        The grid of the confidence histogram.
    batch, unit
        Rows per call of the model; forward passes per shard, at most.
    rows_independent
        Whether a row's output was the same bits in every batch that was tried, of whatever size. If not, the batch
        size is part of the result.
    sizes
        How the run grew: numbers of samples and of draws.
    model, data
        Which model and data.
    versions
        Of the software that created it.
    """

    run: str
    created: str
    sigma: float
    noise: str
    seed: int
    n0: int
    pilot: int
    thresholds: tuple[float, ...]
    batch: int
    unit: int
    rows_independent: bool
    sizes: tuple[Size, ...]
    model: ModelRecord
    data: DataRecord
    versions: Mapping[str, str]

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
        return plan(self.sizes, self.n0, self.pilot, self.unit)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as in the file."""
        fields = asdict(self)
        fields["versions"] = dict(self.versions)
        return {"format": FORMAT, "version": VERSION} | fields

    @cached_property
    def drawing(self) -> str:
        """Sixty-four hexadecimal digits of all that stays when the run grows; every shard carries them."""
        fields = self.to_dict()
        fields["sizes"] = fields["sizes"][:1]
        fields["data"] = {"shape": self.data.shape}
        return checksum(fields)


def fingerprint(values: NDArray[Any], kind: str) -> str:
    """Sixty-four hexadecimal digits of the shape of an array and of its bytes in a type."""
    array = np.ascontiguousarray(values, kind)
    total = hashlib.sha256(f"{array.shape}\n".encode())
    total.update(array.reshape(-1).view(np.uint8).data)
    return total.hexdigest()


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
        raise InputError(f"{folder}: there is no run here (no {FILE}); check the path") from None
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
        fields = json.loads(content.decode("utf-8"), parse_constant=_refuse)
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: not readable as JSON ({error}); restore it, or draw into a new folder") from None
    return _parse(Fields(path, "", fields))


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no number")


def _parse(top: Fields) -> Manifest:
    if top.fields.get("format") != FORMAT:
        raise InputError(f"{top.path}: this is not the manifest of a run; check the path")
    version = top.fields.get("version")
    if version == 1 and type(version) is int:
        raise InputError(
            f"{top.path}: format version 1, whose shards do not say what they were drawn with; draw again into a new "
            "folder"
        )
    if version != VERSION:
        raise InputError(f"{top.path}: format version {version!r}, and this certcal reads {VERSION}; update certcal")
    top.used |= {"format", "version"}
    model, data = top.part("model"), top.part("data")
    n0, pilot, unit = top.whole("n0", 1, MOST_DRAWS), top.whole("pilot", 1, MOST_DRAWS), top.whole("unit", 1, 2**62)
    sizes = _sizes(top, pilot)
    if number_of_units(sizes, n0, pilot, unit) > MOST_UNITS:
        raise top.wrong("unit", f"so small that the run has more than {MOST_UNITS} shards")
    manifest = Manifest(
        run=top.match("run", _HEX),
        created=top.text("created"),
        sigma=top.number("sigma", least=0.0),
        noise=top.choice("noise", NOISES),
        seed=top.whole("seed", 0, MOST_SEED),
        n0=n0,
        pilot=pilot,
        thresholds=_thresholds(top),
        batch=top.whole("batch", 1, 2**31),
        unit=unit,
        rows_independent=top.flag("rows_independent"),
        sizes=sizes,
        model=ModelRecord(
            description=model.text("description"),
            fingerprint=model.match("fingerprint", _HEX),
            outputs=model.choice("outputs", ("probabilities", "logits")),
            classes=model.whole("classes", 2, _MOST_CLASSES),
            source=model.optional_text("source"),
            weights=model.optional_text("weights"),
        ),
        data=DataRecord(
            inputs=data.match("inputs", _HEX),
            labels=data.match("labels", _HEX),
            shape=data.shape("shape"),
            source=data.optional_text("source"),
        ),
        versions=top.texts("versions"),
    )
    own = top.match(CHECKSUM, _HEX)
    for part in (top, model, data):
        part.nothing_left()
    if own != checksum({name: value for name, value in top.fields.items() if name != CHECKSUM}):
        raise InputError(
            f"{top.path}: it was damaged or edited, for its checksum is not that of its fields; restore it, or draw "
            "into a new folder"
        )
    return manifest


def _sizes(top: Fields, pilot: int) -> tuple[Size, ...]:
    sizes: list[Size] = []
    for entry in top.items("sizes", 1, _MOST_SIZES):
        pair = cast("list[Any]", entry) if isinstance(entry, list) else []
        good = len(pair) == 2 and all(type(value) is int for value in pair)
        size = Size(*pair) if good else Size(0, 0)
        before = sizes[-1] if sizes else Size(1, pilot)
        if not (before.samples <= size.samples <= MOST_SAMPLES and before.n <= size.n <= MOST_DRAWS):
            raise top.wrong("sizes", "not pairs of growing numbers of samples and draws")
        sizes.append(size)
    return tuple(sizes)


def _thresholds(top: Fields) -> tuple[float, ...]:
    values = top.items("thresholds", 1, _MOST_THRESHOLDS)
    inside = all(isinstance(value, float) and 0 < value < 1 for value in values)
    if not inside or any(a >= b for a, b in pairwise(values)):
        raise top.wrong("thresholds", "not growing numbers between 0 and 1")
    return tuple(values)


# --- units of work ----------------------------------------------------------------------------------------------------


def plan(sizes: Sequence[Size], n0: int, pilot: int, unit: int) -> list[Unit]:
    """Every unit of a run that grew through the given sizes: selection first, then counting."""
    stages: tuple[Stage, Stage] = ("selection", "counting")
    return [
        piece
        for stage in stages
        for rectangle in _rectangles(sizes, n0, pilot)
        if rectangle.stage == stage
        for piece in _cut(rectangle, unit)
    ]


def number_of_units(sizes: Sequence[Size], n0: int, pilot: int, unit: int) -> int:
    """How many units a plan has, without making it."""
    total = 0
    for rectangle in _rectangles(sizes, n0, pilot):
        width, height = _cell(rectangle, unit)
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


def _rectangles(sizes: Sequence[Size], n0: int, pilot: int) -> Iterator[Unit]:
    """What each step of growth added: the new samples from their first draw, and new draws of the old ones."""
    before = Size(0, 0)
    for size in sizes:
        if size.samples > before.samples:
            yield Unit("selection", before.samples, size.samples, 0, n0)
        if before.samples and size.n > before.n:
            yield Unit("counting", 0, before.samples, before.n, size.n)
        if size.samples > before.samples:
            yield Unit("counting", before.samples, size.samples, 0, pilot)
            if size.n > pilot:
                yield Unit("counting", before.samples, size.samples, pilot, size.n)
        before = size


def _cell(rectangle: Unit, unit: int) -> tuple[int, int]:
    """How many samples and draws go into a unit. The draws that choose a class stay together."""
    draws = rectangle.stop - rectangle.start
    if draws > unit and rectangle.stage == "counting":
        return 1, unit
    return max(1, unit // draws), draws


def _cut(rectangle: Unit, unit: int) -> Iterator[Unit]:
    width, height = _cell(rectangle, unit)
    for first in range(rectangle.first, rectangle.last, width):
        last = min(first + width, rectangle.last)
        for start in range(rectangle.start, rectangle.stop, height):
            yield Unit(rectangle.stage, first, last, start, min(start + height, rectangle.stop))
