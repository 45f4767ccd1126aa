"""Shards: the result of one unit as a small Parquet file that can prove what it is.

A shard carries the name of its run, its unit, a digest of what it was drawn with, and one of its columns. One that is
damaged, cut short, from another run or another place of this one is found out when it is read, and only it is drawn
again. Whole shards that were drawn otherwise than the manifest says mean that the manifest was changed: nothing is
drawn again until it is restored.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError
from certcal._base.durable import make_folder, open_regular, write_durably
from certcal.smoothing._counts import sum_limits
from certcal.smoothing._manifest import FILE, OLD_VERSION, Manifest, Stage, Unit

if TYPE_CHECKING:
    from certcal.smoothing._sampler import Tally

Columns = dict[str, NDArray[np.int64]]

DAMAGED = "damaged"

# Columns hold a number per sample, a row of so many numbers, or as many as its column "voted" says.
PLAIN, SPARSE = 0, -1

_RUN, _UNIT, _DRAWING, _DIGEST = b"certcal.run", b"certcal.unit", b"certcal.drawing", b"certcal.digest"


class DamagedShardError(Exception):
    """A shard that is not what it should be. The text says how."""


def selection_columns(
    first: int, labels: NDArray[np.int64], votes: NDArray[np.int64], invalid: NDArray[np.int64]
) -> Columns:
    """What a selection shard holds: all votes, and the class with the most (the lowest among equal ones).

    Examples
    --------
    >>> columns = selection_columns(4, np.array([1]), np.array([[3, 5, 2]]), np.array([0]))
    >>> columns["predicted"]
    array([1])
    """
    index = np.arange(first, first + labels.size)
    return {"index": index, "label": labels, "predicted": votes.argmax(axis=1), "invalid": invalid, "votes": votes}


def most_voted(votes: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """The classes (m, count) with the most votes, those first; of equal ones the lower numbers.

    Examples
    --------
    >>> most_voted(np.array([[3, 5, 2, 3]]), 3)
    array([[1, 0, 3]])
    """
    if count == 1:
        return votes.argmax(axis=1)[:, None]
    return np.argsort(-votes, axis=1, kind="stable")[:, :count]


def counting_columns(
    unit: Unit, manifest: Manifest, predicted: NDArray[np.int64], others: NDArray[np.int64], tally: Tally
) -> Columns:
    """What a counting shard holds: for each sample its class, which draws, and what they gave."""
    index = np.arange(unit.first, unit.last)
    columns = {
        "index": index,
        "predicted": predicted,
        "start": np.full_like(index, unit.start),
        "stop": np.full_like(index, unit.stop),
        "votes": tally.votes,
        "invalid": tally.invalid,
        "histogram": tally.histogram,
    }
    if manifest.version == OLD_VERSION:
        return columns
    rows, classes = np.nonzero(tally.class_votes)
    columns |= {"sums": tally.sums, "voted": np.bincount(rows, minlength=index.size)}
    columns |= {"classes": classes, "class_votes": tally.class_votes[rows, classes]}
    if manifest.histograms > 1:
        columns |= {"others": others, "other_histograms": tally.other_histograms.reshape(index.size, -1)}
    return columns


def layout(manifest: Manifest, stage: Stage) -> dict[str, int]:
    """The columns of a shard, and how many numbers each has per sample."""
    if stage == "selection":
        return dict.fromkeys(("index", "label", "predicted", "invalid"), PLAIN) | {"votes": manifest.model.classes}
    cells = len(manifest.thresholds) + 1
    names = dict.fromkeys(("index", "predicted", "start", "stop", "votes", "invalid"), PLAIN) | {"histogram": cells}
    if manifest.version == OLD_VERSION:
        return names
    names |= {"sums": PLAIN, "voted": PLAIN, "classes": SPARSE, "class_votes": SPARSE}
    several = manifest.histograms
    return names if several == 1 else names | {"others": several - 1, "other_histograms": several * cells}


def digest(unit: Unit, columns: Mapping[str, NDArray[np.int64]]) -> str:
    """Sixty-four hexadecimal digits that change with any number in the columns, and with their place.

    They are the same in every run that drew the same.
    """
    total = hashlib.sha256(f"{unit.name}\n".encode())
    for name, column in columns.items():
        total.update(f"{name} {column.shape}\n".encode())
        total.update(np.ascontiguousarray(column, "<i8").tobytes())
    return total.hexdigest()


def write_shard(folder: Path, manifest: Manifest, unit: Unit, columns: Columns) -> None:
    """Put a shard in its place, whole or not at all."""
    from certcal.data.arrow import from_numpy, pa
    from certcal.data.parquet import parquet

    widths, ends = layout(manifest, unit.stage), np.zeros(unit.last - unit.first + 1, np.int32)
    np.cumsum(columns.get("voted", ends[1:]), out=ends[1:])
    arrays = [from_numpy(np.ascontiguousarray(column, np.int64)) for column in columns.values()]
    arrays = [
        pa.ListArray.from_arrays(from_numpy(ends), array) if widths[name] == SPARSE else array
        for name, array in zip(columns, arrays, strict=True)
    ]
    drawn = _with_checksum(manifest.drawing)
    marks = {_RUN: manifest.run, _UNIT: unit.name, _DRAWING: drawn, _DIGEST: digest(unit, columns)}
    table = pa.Table.from_arrays(arrays, names=list(columns)).replace_schema_metadata(marks)
    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink, compression="zstd", use_dictionary=False, write_statistics=False)
    path = folder / unit.name
    make_folder(path.parent)
    write_durably(path, sink.getvalue().to_pybytes())


def read_shard(folder: Path, manifest: Manifest, unit: Unit) -> Columns | None:
    """The columns of a unit's shard, None if there is no such file, or :class:`DamagedShardError`."""
    path = folder / unit.name
    widths = layout(manifest, unit.stage)
    most_classes = min(manifest.model.classes, unit.stop - unit.start)
    each = sum(1 + (most_classes if width == SPARSE else width) for width in widths.values())
    most = 65_536 + 16 * (unit.last - unit.first) * each
    try:
        with open_regular(path) as stream:
            content = stream.read(min(most, os.fstat(stream.fileno()).st_size) + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror or error}); check the disk and permissions"
        ) from error
    if len(content) > most:
        raise DamagedShardError("it is larger than its numbers can be")
    columns = _parse_shard(content, manifest, unit, widths, most)
    _check(unit, columns, manifest)
    return columns


def refuse_changed(path: Path, manifest: Manifest) -> None:
    """Raise if a shard of the run was drawn otherwise than the manifest says; one that cannot be read says nothing."""
    run, drawing = _marks(path)
    if run == manifest.run and drawing is not None and drawing != manifest.drawing:
        raise _mismatch(path)


def refuse_changed_run(folder: Path, manifest: Manifest) -> None:
    """The same for any one shard of the run; raise too if there are shards of other runs and none of this one."""
    foreign = None
    for path in (path for stage in ("selection", "counting") for path in (folder / stage).glob("*.parquet")):
        run, drawing = _marks(path)
        if run == manifest.run:
            return refuse_changed(path, manifest)
        foreign = foreign if drawing is None else path
    if foreign is not None:
        raise _mismatch(foreign)


def _mismatch(path: Path) -> InputError:
    return InputError(
        f"{path.parent.parent / FILE}: it does not match its shards, which were drawn with other settings; restore "
        "it, or draw into a new folder"
    )


def _marks(path: Path) -> tuple[str | None, str | None]:
    """The run that a shard says it is of, and the digest of what it was drawn with; None where it is not whole."""
    from certcal.data.parquet import parquet

    try:
        with open_regular(path) as stream:
            marks: dict[bytes, bytes] = parquet.read_schema(stream).metadata or {}
    except Exception:  # whatever a broken Parquet file makes pyarrow do
        return None, None
    run, drawn = (marks.get(name, b"").decode("ascii", "replace") for name in (_RUN, _DRAWING))
    return run, drawn[:64] if drawn == _with_checksum(drawn[:64]) else None


def _with_checksum(drawing: str) -> str:
    """The digits and a few of their own digest: a damaged shard must not look like a changed manifest."""
    return drawing + hashlib.sha256(drawing.encode()).hexdigest()[:16]


def _parse_shard(content: bytes, manifest: Manifest, unit: Unit, widths: Mapping[str, int], most: int) -> Columns:
    from certcal.data.arrow import pa, to_numpy
    from certcal.data.parquet import parquet

    try:
        file = parquet.ParquetFile(pa.BufferReader(content))
        schema: Any = file.schema_arrow
        marks: dict[bytes, bytes] = schema.metadata or {}
        if marks.get(_RUN) != manifest.run.encode():
            raise DamagedShardError("it belongs to another run")
        if marks.get(_UNIT) != unit.name.encode():
            raise DamagedShardError("it belongs to another place of the run")
        if marks.get(_DRAWING) != _with_checksum(manifest.drawing).encode():
            raise DamagedShardError("it does not say that it was drawn as the manifest says")
        rows = unit.last - unit.first
        sizes = [file.metadata.row_group(k).total_byte_size for k in range(min(file.metadata.num_row_groups, 2))]
        if (
            tuple(schema.names) != tuple(widths)
            or not all(_has_width(field.type, width) for field, width in zip(schema, widths.values(), strict=True))
            or file.metadata.num_rows != rows
            or len(sizes) != 1
            or sizes[0] > most
        ):
            raise DamagedShardError("it does not have the columns of its unit")
        table = file.read(use_threads=False).combine_chunks()
        columns: Columns = {}
        for name, width in widths.items():
            column: Any = table.column(name).chunk(0)
            flat = column if width == PLAIN else column.flatten()
            if column.null_count or flat.null_count:
                raise DamagedShardError("numbers are missing")
            if width == SPARSE and not np.array_equal(to_numpy(column.value_lengths()), columns["voted"]):
                raise DamagedShardError("it does not have the columns of its unit")
            columns[name] = to_numpy(flat).reshape((rows, width) if width > 0 else (-1,))
    except DamagedShardError:
        raise
    except Exception as error:  # whatever a broken Parquet file makes pyarrow do
        reason = str(error).strip().splitlines()
        raise DamagedShardError(f"it cannot be read ({reason[0][:200] if reason else type(error).__name__})") from None
    if marks.get(_DIGEST) != digest(unit, columns).encode():
        raise DamagedShardError("its numbers do not match their digest")
    return columns


def _has_width(kind: Any, width: int) -> bool:
    """Whether a column is of whole numbers, so many of them per sample."""
    from certcal.data.arrow import pa

    if width == PLAIN:
        return kind == pa.int64()
    fits = pa.types.is_list(kind) if width == SPARSE else pa.types.is_fixed_size_list(kind) and kind.list_size == width
    return bool(fits and kind.value_type == pa.int64())


def _check(unit: Unit, columns: Columns, manifest: Manifest) -> None:
    """Numbers that no drawing could have given are not used, even when their digest is right."""
    draws = unit.stop - unit.start
    classes = manifest.model.classes
    predicted, votes, invalid = columns["predicted"], columns["votes"], columns["invalid"]
    good = bool(np.all(columns["index"] == np.arange(unit.first, unit.last)))
    good &= bool(np.all((predicted >= 0) & (predicted < classes) & (invalid >= 0)) and np.all(votes >= 0))
    if unit.stage == "selection":
        label = columns["label"]
        good &= bool(np.all((label >= 0) & (label < classes)) and np.all(votes <= draws))
        good &= bool(np.all(votes.sum(axis=1) + invalid == draws) and np.all(predicted == votes.argmax(axis=1)))
    else:
        histogram = columns["histogram"]
        good &= bool(np.all(columns["start"] == unit.start) and np.all(columns["stop"] == unit.stop))
        good &= bool(np.all((histogram >= 0) & (histogram <= draws)) and np.all(histogram.sum(axis=1) == draws))
        good &= bool(np.all((votes <= draws) & (invalid <= draws)) and np.all(votes + invalid <= draws))
        good &= bool(np.all(histogram[:, 0] >= invalid))
        good = good and (manifest.version == OLD_VERSION or _check_class_columns(draws, columns, manifest))
    if not good:
        raise DamagedShardError("its numbers contradict each other")


def _check_class_columns(draws: int, columns: Columns, manifest: Manifest) -> bool:
    """Whether sums, votes of all classes and further histograms are such as draws can give."""
    predicted, voted, classes, votes = (columns[name] for name in ("predicted", "voted", "classes", "class_votes"))
    rows = np.repeat(np.arange(predicted.size), voted)
    sums, least_and_most = columns["sums"], sum_limits(np.array(manifest.thresholds), columns["histogram"])
    good = bool(np.all((sums >= least_and_most[0]) & (sums <= least_and_most[1])))
    good &= bool(np.all((classes >= 0) & (classes < manifest.model.classes) & (votes >= 1) & (votes <= draws)))
    good &= bool(np.all(np.diff(rows * manifest.model.classes + classes) > 0))
    good &= bool(np.all(np.bincount(rows, votes, predicted.size) + columns["invalid"] == draws))
    own = classes == predicted[rows]
    good &= bool(np.all(np.bincount(rows[own], votes[own], predicted.size) == columns["votes"]))
    if good and manifest.histograms > 1:
        others = columns["others"]
        further = columns["other_histograms"].reshape(*others.shape[:1], manifest.histograms, -1)
        good &= bool(np.all((others >= 0) & (others < manifest.model.classes) & (others != predicted[:, None])))
        good &= bool(np.all((further >= 0) & (further <= draws)) and np.all(further.sum(axis=2) == draws))
    return good


def set_aside(folder: Path, unit: Unit, reason: str) -> Path:
    """Move a damaged shard out of the way, with a note that says what is wrong with it; return its new place."""
    shard = folder / unit.name
    place = folder / DAMAGED
    make_folder(place)
    number = sum(1 for _ in place.glob("*.parquet"))
    target = place / f"{number:04d}-{unit.stage}-{shard.name}"
    try:
        shard.replace(target)
    except OSError as error:
        raise InputError(
            f"{shard}: damaged ({reason}), and cannot be moved aside ({error.strerror or error}); make it writable"
        ) from error
    note = f"{unit.name} was moved here because {reason}. Its draws were made again.\n"
    write_durably(target.with_suffix(".txt"), note.encode())
    return target
