"""Tables of certified intervals, checked. Any verifier's output will do: intervals, or bounds of margins or logits."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError
from certcal._base.margins import SINGLE, predicted_intervals
from certcal.data.columns import METADATA, IntervalOrigin
from certcal.data.formats import check_memory, open_table
from certcal.data.grouping import GroupingColumns, Groupings, GroupRows
from certcal.data.layout import resolve_interval_columns
from certcal.data.pieces import Arrays, CellError, fingerprint_of, gather, in_file, pieces
from certcal.data.schema import Family, Layout

if TYPE_CHECKING:
    from certcal.data.values import Batch, Codes, ColumnValues

Floats = NDArray[np.float64]

# What to do about values of a role that are no numbers, and about others.
_ENDS = (
    "drop the row, or say in a column 'certified' that it is not certified",
    "intervals are of confidences, so clip or rescale them",
)
_CONFIDENCES = (
    "fill it in, or rename the column if it holds something else",
    "name the column of confidences (confidence), or rename it if it holds something else",
)
_RADII = ("use finite numbers from 0, or name another column as radius",)
_ALPHAS = ("rename the column, or give alpha",)
_FILL = "fill it, with -inf or inf where nothing is known, or say in a column 'certified' that the row is not certified"
# One line per radius: more than this is each sample's own radius, or noise.
MAX_RADII = 100
MAX_SAMPLES = 10**9


def read_intervals(
    path: str | os.PathLike[str],
    overrides: Mapping[str, Any] | None = None,
    *,
    by: Iterable[str] = (),
    alpha: bool = True,
    samples: bool = False,
    advance: Callable[[int], None] = lambda rows: None,
) -> IntervalTable:
    """Read intervals of confidences from a file or a table in memory.

    Rows that are not certified may leave the interval and the correctness empty: nothing is claimed about them.
    Intervals can also be given as bounds per class, of margins (``margin_lower_0`` …: how far the predicted class is
    ahead, l_A - l_k; ``margin_upper_0`` … if known) or of logits (``logit_lower_0`` …, ``logit_upper_0`` …), with the
    predicted class and the label. A sample is then certified when its class cannot change; of two classes the interval
    is of the score of class 1, and the label is its outcome.

    Parameters
    ----------
    path
        The file.
    overrides
        Columns by role where their names do not say it; see :func:`resolve_interval_columns`.
    by
        Columns, or crossings such as "product*channel", that name the groups.
    alpha
        Whether to read a column ``alpha``: the probability with which each row's interval may fail.
    samples
        Whether to read confidences without a perturbation, and which sample each row is of. With such confidences the
        correctness of every row is needed.
    advance
        Called with the number of rows of each piece read.

    Examples
    --------
    >>> rows = {"lo": [0.6, 0.2, None], "hi": [0.9, 0.4, None], "correct": [1, 0, None]}
    >>> table = read_intervals({**rows, "certified": [1, 1, 0], "radius": [0.5, 0.25, 0.5]})
    >>> [(part.radius, part.lower.tolist(), part.upper.tolist()) for part in table.parts()]
    [('0.25', [0.2], [0.4]), ('0.5', [0.6, 0.0], [0.9, 1.0])]
    >>> rows = {"margin_lower_0": [None, 1.0], "margin_lower_1": [2.0, None], "margin_lower_2": [3.0, -1.0]}
    >>> table = read_intervals({**rows, "prediction": [0, 1], "label": [0, 2]})
    >>> table.lower.round(4), table.certified, table.correct
    (array([0.8438, 0.2447]), array([ True, False]), array([1, 0], dtype=uint8))
    """
    from certcal.data.values import Codes

    table = open_table(path)
    with in_file(table.path):
        layout = resolve_interval_columns(table.columns, overrides, samples=samples)
        if not alpha:
            layout = replace(layout, roles={role: name for role, name in layout.roles.items() if role != "alpha"})
        if table.rows is not None:
            check_memory(table.path, 40 * table.rows, "certify a part of the table")
        classes, names = Codes(of_classes=True), Codes(limit=MAX_SAMPLES)
        groups = Groupings(tuple(by), table.columns)

        def convert(batch: Batch) -> Arrays:
            return _convert_bounds(batch, layout, classes, names)

        width = 1 if layout.family is None else 64 if layout.family.is_list else len(layout.numbers)
        arrays = gather(pieces(table, layout, convert, width=width, groups=groups), table.rows, advance)
        if groups.asked:
            groups.count(arrays)
            groups.cut()
        return IntervalTable(
            table.path,
            layout,
            arrays["lower"],
            arrays["upper"],
            arrays["correct"],
            arrays.get("certified"),
            *_distinct_radii(arrays.get("radius"), layout.get("radius")),
            groups=tuple(groups.members(groups.codes(arrays))) if groups.asked else (),
            groupings=groups.described if groups.asked else (),
            alpha=float(arrays["alpha"].max()) if "alpha" in arrays else None,
            origin=IntervalOrigin.parse(table.metadata.get(METADATA)),
            confidence=arrays.get("confidence"),
            sample_names=tuple(names.names),
            sample_codes=arrays.get("sample"),
            binary="outcome" in layout.roles or (layout.family is not None and "certified" not in arrays),
        )


def _convert_bounds(batch: Batch, layout: Layout, classes: Codes, names: Codes) -> Arrays:
    there = {role: batch[name] for role, name in layout.roles.items() if isinstance(name, str)}
    certified = None
    if "certified" in there:
        marks = "mark certified rows with 1 and the others with 0, or name another column as certified"
        certified = there["certified"].outcomes(marks).view(np.bool_)
    piece = (_of_ends if layout.family is None else _of_class_bounds)(batch, layout, there, certified, classes)
    if "confidence" in there:
        piece["confidence"] = there["confidence"].unit_interval("confidences", _CONFIDENCES)
    if "sample" in there:
        piece["sample"] = names.add(there["sample"])
    if "radius" in there:
        piece["radius"] = there["radius"].numbers_within(
            lambda radii: (radii >= 0) & (radii < np.inf), "no radius", _RADII
        )
    if "alpha" in there:
        what = "no probability from 0 to below 1 with which the row's interval may fail"
        piece["alpha"] = (
            there["alpha"].filled(certified, 0).numbers_within(lambda found: (found >= 0) & (found < 1), what, _ALPHAS)
        )
    return piece


def _of_ends(
    batch: Batch, layout: Layout, there: dict[str, ColumnValues], certified: NDArray[np.bool_] | None, classes: Codes
) -> Arrays:
    from certcal.data.values import equal_classes

    lower, upper = (
        there[role].filled(certified, instead).unit_interval("ends of intervals", _ENDS)
        for role, instead in (("lower", 0), ("upper", 1))
    )
    if (lower > upper).any():
        index = int(np.argmax(lower > upper))
        reason = f"is {lower[index]:.9g}, above {upper[index]:.9g} in column {there['upper'].column!r}"
        there["lower"].refuse(index, reason, "are the two swapped?")
    # Without a perturbation nobody is excused: where confidences are known, so must be whether they were right.
    needed = None if "confidence" in there else certified
    truth = there.get("outcome") or there.get("correct")
    if truth is not None:
        correct = truth.filled(needed, 0).outcomes("for classes name the columns of prediction and label")
    else:
        label, prediction = (there[role].filled(needed, 0) for role in ("label", "prediction"))
        correct = equal_classes(classes, label, prediction).view(np.uint8)
    arrays: Arrays = {"lower": lower, "upper": upper, "correct": correct}
    return arrays if certified is None else {**arrays, "certified": certified}


def _of_class_bounds(
    batch: Batch, layout: Layout, there: dict[str, ColumnValues], certified: NDArray[np.bool_] | None, classes: Codes
) -> Arrays:
    """Intervals from bounds per class, and what was true: of two classes those of the score of class 1.

    What is claimed holds wherever the bounds do, for a softmax in exact arithmetic and in float32. Of more than two
    classes it also says where the predicted one cannot change. Nothing is known of rows that are not certified.
    """
    (of, lower_bounds), *_ = layout.families.items()
    predicted = _class_of(there["prediction"], lower_bounds)
    told = np.ones(predicted.size, np.bool_) if certified is None else certified
    is_logit = of == "logit_lower"
    lower = _class_bounds(batch, lower_bounds, predicted, told, own=is_logit)
    _refuse_classes(predicted, lower.shape[1], there["prediction"], lower_bounds)
    upper = np.full_like(lower, np.inf)
    for upper_bounds in list(layout.families.values())[1:]:
        upper = _class_bounds(batch, upper_bounds, predicted, told, own=is_logit)
        if upper.shape != lower.shape:
            counts = f"has {upper.shape[1]} entries where {lower_bounds.columns[0]!r} has {lower.shape[1]}"
            raise CellError(upper_bounds.columns[0], None, counts, "give a bound per class")
        _refuse_crossed(batch, lower_bounds, upper_bounds, lower, upper)
    if is_logit:  # of the margins l_A - l_k
        least, most = (np.take_along_axis(each, predicted[:, None], axis=1) for each in (lower, upper))
        lower, upper = np.nextafter(least - upper, -np.inf), np.nextafter(most - lower, np.inf)
    low, high, kept = predicted_intervals(-upper, -lower, predicted, unit=SINGLE)
    if "label" in there:
        right = _class_of(there["label"], lower_bounds) == predicted
    else:
        right = there["correct"].outcomes().view(np.bool_)
    arrays: Arrays = {"lower": np.where(told, low, 0.0), "upper": np.where(told, high, 1.0)}
    if lower.shape[1] == 2:
        return {**arrays, "correct": (right == (predicted == 1)).view(np.uint8)}
    return {**arrays, "correct": right.view(np.uint8), "certified": kept & told}


def _class_of(cells: ColumnValues, bounds: Family) -> NDArray[np.int64]:
    found = cells.class_numbers(bounds.classes, is_ordered=bounds.is_ordered)
    _refuse_classes(found, len(bounds.classes) if bounds.classes else None, cells, bounds)
    return found.astype(np.int64)


def _refuse_classes(found: NDArray[Any], count: int | None, cells: ColumnValues, bounds: Family) -> None:
    bad = (found < 0) | (found != np.floor(found)) | (found >= (np.inf if count is None else count))
    if bad.any():
        reason = f"is {found[np.argmax(bad)]:.9g}, and there are bounds {bounds.description}"
        reason += "" if count is None else f" of {count} classes"
        cells.refuse(bad, reason, "number the classes as the bounds do, from 0")


def _class_bounds(
    batch: Batch, family: Family, predicted: NDArray[np.int64], told: NDArray[np.bool_], *, own: bool
) -> Floats:
    """Bounds per class, 0 where none must be told: in rows without bounds, and of the predicted class's margin."""
    from certcal.data.values import matrix

    def needed(k: int) -> NDArray[np.bool_]:
        return told if own else told & (predicted != k)

    if family.is_list:
        found = batch.family(family)
    else:
        found = matrix([batch[name].filled(needed(k), 0) for k, name in enumerate(family.columns)])
    found = found.astype(np.float64)
    asked = np.stack([needed(k) for k in range(found.shape[1])], axis=1)
    lost = asked & np.isnan(found)
    if lost.any():
        row, k = (int(place) for place in np.argwhere(lost)[0])
        batch[family.columns[0 if family.is_list else k]].refuse(row, "is NaN", _FILL)
    return np.where(asked, found, 0.0)


def _refuse_crossed(batch: Batch, first: Family, second: Family, lower: Floats, upper: Floats) -> None:
    bad = (lower > upper) | (lower == np.inf) | (upper == -np.inf)
    if bad.any():
        row, k = (int(place) for place in np.argwhere(bad)[0])
        names = [each.columns[0 if each.is_list else k] for each in (first, second)]
        reason = f"is {lower[row, k]:.9g}, with {upper[row, k]:.9g} in column {names[1]!r}"
        batch[names[0]].refuse(row, reason, "are the two swapped?")


def _distinct_radii(
    values: NDArray[Any] | None, column: str | None
) -> tuple[tuple[str, ...], NDArray[np.int64] | None]:
    """Distinct radii as the shortest text that means them, ascending, and which one each row has."""
    if values is None:
        return (), None
    distinct, codes = np.unique(values, return_inverse=True)
    if distinct.size > MAX_RADII:
        raise InputError(
            f"column {column!r} has {distinct.size} distinct values; it must hold the radius that a row's interval is "
            "for, not each sample's own certified radius; name another as radius, or rename it"
        )
    return tuple(np.format_float_positional(value, trim="-") for value in distinct), codes.astype(np.int64)


@dataclass(frozen=True, eq=False)
class IntervalPart:
    """The samples of one radius (None without a column of radii) and one group (None for all groups together)."""

    radius: str | None
    group: GroupRows | None
    lower: NDArray[Any]
    upper: NDArray[Any]
    correct: NDArray[np.uint8]
    certified: NDArray[np.bool_] | None

    def __len__(self) -> int:
        return self.lower.size


@dataclass(frozen=True, eq=False)
class IntervalTable:
    """Intervals read from a file and checked, with what was taken for what. Without a column, codes are None."""

    path: Path
    layout: Layout
    lower: NDArray[Any]  # ends are in [0, 1] and in order
    upper: NDArray[Any]
    correct: NDArray[np.uint8]  # of a binary score its outcome
    certified: NDArray[np.bool_] | None
    radii: tuple[str, ...] = ()  # distinct ones as text, ascending
    radius_codes: NDArray[np.int64] | None = None  # which of them each row is for
    groups: tuple[GroupRows, ...] = ()
    groupings: tuple[GroupingColumns, ...] = ()
    alpha: float | None = None  # largest probability with which a row's interval may fail
    origin: IntervalOrigin | None = None  # where a certification of a run wrote them
    confidence: NDArray[Any] | None = None  # without a perturbation, when asked for
    sample_names: tuple[str, ...] = ()  # the same; by_sample puts the rows of a sample together
    sample_codes: NDArray[np.int64] | None = None
    binary: bool = False  # whether the intervals are of a binary score

    def __len__(self) -> int:
        return self.lower.size

    def at_radius(self, place: int) -> IntervalTable:
        """The rows at one of ``radii``, given by its place; ``alpha`` stays the largest of all rows."""
        if self.radius_codes is None:
            return self
        rows = np.flatnonzero(self.radius_codes == place)
        names = ("lower", "upper", "correct", "certified", "confidence", "sample_codes")
        arrays: dict[str, Any] = {name: getattr(self, name) for name in names}
        some = {name: None if array is None else array[rows] for name, array in arrays.items()}
        groups = tuple(each.inside(rows) for each in self.groups)
        chosen = {"radii": (self.radii[place],), "radius_codes": np.zeros(rows.size, np.int64), "groups": groups}
        return replace(self, **some, **chosen)

    def by_sample(self) -> SampleIntervals:
        """The rows of each sample beside each other, in the order in which the samples appear.

        A table of several radii must say which rows are of the same sample: it is not guessed from their order.
        """
        several = len(self.radii) > 1
        if several and self.sample_codes is None:
            raise InputError(
                f"{self.path}: there are rows at {len(self.radii)} radii and no column says which are of the same "
                "sample; name one as sample, or choose one radius"
            )
        names = None if self.sample_codes is None else self.sample_names
        samples = np.arange(len(self)) if self.sample_codes is None else self.sample_codes
        at = (samples, np.zeros(len(self), np.int64) if self.radius_codes is None else self.radius_codes)
        shape = n, _ = len(self) if names is None else len(names), max(1, len(self.radii))
        _refuse_missing_rows(self, at, shape)
        lower, upper, certified = np.zeros(shape), np.ones(shape), np.ones(shape, np.bool_)
        everywhere = np.ones(len(self), np.bool_)
        kept = everywhere if self.certified is None else self.certified
        certified[at] = kept
        lower[at] = np.where(kept, self.lower, 0.0)
        upper[at] = np.where(kept, self.upper, 1.0)
        confidence = None
        if self.confidence is not None:
            what = "of one confidence without a perturbation at one radius and of another at"
            confidence = _value_per_sample(self, samples, self.confidence.astype(np.float64), n, everywhere, what)
        # Rows that are not certified need not say whether they are correct, without confidences.
        says = kept if confidence is None else everywhere
        correct = _value_per_sample(self, samples, self.correct, n, says, "correct at one radius and not at")
        origin = self.origin if names == tuple(map(str, range(n))) else None
        known, run = (None, None) if origin is None else (origin.samples, origin.run)
        found = known or fingerprint_of(correct, confidence, lower, upper, certified)
        return SampleIntervals(self.radii, lower, upper, certified, correct, confidence, names, found, run)

    def parts(self) -> Iterator[IntervalPart]:
        """Each radius as a whole and then by group."""
        for code, radius in enumerate(self.radii or (None,)):
            rows = slice(None) if self.radius_codes is None else np.flatnonzero(self.radius_codes == code)
            yield self._part(radius, None, rows)
            for group in self.groups:
                members = group.rows if isinstance(rows, slice) else np.intersect1d(group.rows, rows)
                if members.size:
                    yield self._part(radius, group, members)

    def _part(self, radius: str | None, group: GroupRows | None, rows: slice | NDArray[np.int64]) -> IntervalPart:
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
    result = np.zeros(n, values.dtype)
    result[samples] = values
    result[samples[says]] = values[says]
    bad = says & (result[samples] != values)
    if bad.any():
        name = _sample_name(table, int(samples[np.argmax(bad)]))
        raise InputError(f"{table.path}: sample {name} is {what} another; are the rows of the same sample?")
    return result


def _sample_name(table: IntervalTable, sample: int) -> str:
    return repr(table.sample_names[sample]) if table.sample_names else str(sample + 1)
