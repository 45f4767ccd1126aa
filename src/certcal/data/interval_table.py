"""Intervals in memory: rows by radius and group, and the rows of each sample beside each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError
from certcal.data.columns import IntervalOrigin
from certcal.data.pieces import fingerprint_of
from certcal.data.schema import Layout

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class IntervalPart:
    """The samples of one radius (None without a column of radii) and one group (None for all groups together)."""

    radius: str | None
    group: str | None
    lower: NDArray[Any]
    upper: NDArray[Any]
    correct: NDArray[np.uint8]
    certified: NDArray[np.bool_] | None

    def __len__(self) -> int:
        return self.lower.size


@dataclass(frozen=True, eq=False)
class IntervalTable:
    """Intervals read from a file and checked, with what was taken for what.

    Attributes
    ----------
    path, layout
        The file, and which columns were used.
    lower, upper, correct, certified
        One entry per row; the ends are in [0, 1] and in order. ``certified`` is None without such a column.
    radii, radius_codes
        Distinct radii as text, ascending, and which of them each row is for; empty and None without a column.
    group_names, group_codes
        The same for groups.
    alpha
        Largest probability with which a row's interval may fail, or None when the table does not say.
    origin
        Where the intervals come from, when a certification of a run wrote them; None for others.
    confidence, sample_names, sample_codes
        Confidences without a perturbation, and which sample each row is of, when both were asked for; None and empty
        without such columns. :meth:`by_sample` puts the rows of a sample together.
    binary
        Whether the intervals are of a binary score; then ``correct`` is its outcome.
    """

    path: Path
    layout: Layout
    lower: NDArray[Any]
    upper: NDArray[Any]
    correct: NDArray[np.uint8]
    certified: NDArray[np.bool_] | None
    radii: tuple[str, ...] = ()
    radius_codes: NDArray[np.int64] | None = None
    group_names: tuple[str, ...] = ()
    group_codes: NDArray[np.int64] | None = None
    alpha: float | None = None
    origin: IntervalOrigin | None = None
    confidence: NDArray[Any] | None = None
    sample_names: tuple[str, ...] = ()
    sample_codes: NDArray[np.int64] | None = None
    binary: bool = False

    def __len__(self) -> int:
        return self.lower.size

    def at_radius(self, place: int) -> IntervalTable:
        """The rows at one of ``radii``, given by its place; ``alpha`` stays the largest of all rows."""
        if self.radius_codes is None:
            return self
        rows = np.flatnonzero(self.radius_codes == place)
        names = ("lower", "upper", "correct", "certified", "group_codes", "confidence", "sample_codes")
        arrays: dict[str, Any] = {name: getattr(self, name) for name in names}
        some = {name: None if array is None else array[rows] for name, array in arrays.items()}
        return replace(self, **some, radii=(self.radii[place],), radius_codes=np.zeros(rows.size, np.int64))

    def by_sample(self) -> SampleIntervals:
        """The rows of each sample beside each other; see :class:`SampleIntervals`."""
        return align(self)

    def parts(self) -> Iterator[IntervalPart]:
        """Each radius as a whole and then by group."""
        for code, radius in enumerate(self.radii or (None,)):
            rows = slice(None) if self.radius_codes is None else np.flatnonzero(self.radius_codes == code)
            yield self._part(radius, None, rows)
            if self.group_codes is None:
                continue
            groups = self.group_codes[rows]
            numbers = np.arange(len(self)) if isinstance(rows, slice) else rows
            for group, name in enumerate(self.group_names):
                members = numbers[groups == group]
                if members.size:
                    yield self._part(radius, name, members)

    def _part(self, radius: str | None, group: str | None, rows: slice | NDArray[np.int64]) -> IntervalPart:
        certified = None if self.certified is None else self.certified[rows]
        return IntervalPart(radius, group, self.lower[rows], self.upper[rows], self.correct[rows], certified)


@dataclass(frozen=True, eq=False)
class SampleIntervals:
    """Intervals of N samples at R radii."""

    radii: tuple[str, ...]
    lower: Floats
    upper: Floats
    certified: NDArray[np.bool_]
    correct: NDArray[np.uint8]
    confidence: Floats | None
    names: tuple[str, ...] | None
    fingerprint: str
    run: str | None = None

    def __len__(self) -> int:
        return self.correct.size


def align(table: IntervalTable) -> SampleIntervals:
    """Put the rows of each sample together, in the order in which the samples appear.

    A table of several radii must say which rows are of the same sample: it is not guessed from their order.
    """
    several = len(table.radii) > 1
    if several and table.sample_codes is None:
        raise InputError(
            f"{table.path}: there are rows at {len(table.radii)} radii and no column says which are of the same "
            "sample; name one as sample, or choose one radius"
        )
    names = None if table.sample_codes is None else table.sample_names
    samples = np.arange(len(table)) if table.sample_codes is None else table.sample_codes
    at = (samples, np.zeros(len(table), np.int64) if table.radius_codes is None else table.radius_codes)
    shape = n, _ = len(table) if names is None else len(names), max(1, len(table.radii))
    _refuse_missing_rows(table, at, shape)
    lower, upper, certified = np.zeros(shape), np.ones(shape), np.ones(shape, np.bool_)
    everywhere = np.ones(len(table), np.bool_)
    kept = everywhere if table.certified is None else table.certified
    certified[at] = kept
    lower[at] = np.where(kept, table.lower, 0.0)
    upper[at] = np.where(kept, table.upper, 1.0)
    confidence = None
    if table.confidence is not None:
        what = "of one confidence without a perturbation at one radius and of another at"
        confidence = _value_per_sample(table, samples, table.confidence.astype(np.float64), n, everywhere, what)
    # Rows that are not certified need not say whether they are correct, without confidences.
    says = kept if confidence is None else everywhere
    correct = _value_per_sample(table, samples, table.correct, n, says, "correct at one radius and not at")
    origin = table.origin if names == tuple(map(str, range(n))) else None
    known, run = (None, None) if origin is None else (origin.samples, origin.run)
    found = known or fingerprint_of(correct, confidence, lower, upper, certified)
    return SampleIntervals(table.radii, lower, upper, certified, correct, confidence, names, found, run)


def _refuse_missing_rows(
    table: IntervalTable, at: tuple[NDArray[np.int64], NDArray[np.int64]], shape: tuple[int, int]
) -> None:
    counts = np.bincount(at[0] * shape[1] + at[1], minlength=shape[0] * shape[1]).reshape(shape)
    if (counts == 1).all():
        return
    sample, radius = (int(place) for place in np.argwhere(counts != 1)[0])
    where = f" at radius {table.radii[radius]}" if table.radii else ""
    who = f"{table.path}: sample {_sample_name(table, sample)} has {counts[sample, radius] or 'no'} "
    if counts[sample, radius] > 1:
        raise InputError(f"{who}rows{where}; give one row per sample and radius, or name another column as sample")
    raise InputError(f"{who}row{where}; add one, with certified = 0 if nothing is certified there")


def _value_per_sample(
    table: IntervalTable, samples: NDArray[Any], values: NDArray[Any], n: int, says: NDArray[np.bool_], what: str
) -> NDArray[Any]:
    """One value per sample, as those of its rows that say it agree."""
    found = np.zeros(n, values.dtype)
    found[samples] = values
    found[samples[says]] = values[says]
    bad = says & (found[samples] != values)
    if bad.any():
        name = _sample_name(table, int(samples[np.argmax(bad)]))
        raise InputError(f"{table.path}: sample {name} is {what} another; are the rows of the same sample?")
    return found


def _sample_name(table: IntervalTable, sample: int) -> str:
    return repr(table.sample_names[sample]) if table.sample_names else str(sample + 1)
