"""Tables of certified intervals: lower and upper end of each sample's confidence, and whether it is correct.

Any verifier's output will do.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError
from certcal.data._aligned import SampleIntervals, align
from certcal.data._interval_files import METADATA, IntervalOrigin
from certcal.data._interval_layout import IntervalLayout, resolve_interval_columns
from certcal.data._pieces import Arrays, Groups, equal, gather, in_file, pieces
from certcal.data._table import check_memory
from certcal.data.formats import open_table

if TYPE_CHECKING:
    from certcal.data._values import Codes

# One line per radius: more than this is each sample's own radius, or noise.
MAX_RADII = 100
MAX_SAMPLES = 10**9


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
    path
        The file.
    layout
        Which columns were used.
    lower, upper, correct
        One entry per row; the ends are in [0, 1] and in order.
    certified
        Which rows are certified, or None without such a column.
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
    """

    path: Path
    layout: IntervalLayout
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

    def __len__(self) -> int:
        return self.lower.size

    def at_radius(self, place: int) -> IntervalTable:
        """The rows at one of ``radii``; ``alpha`` stays the largest of all rows.

        Parameters
        ----------
        place
            Which of the radii.
        """
        if self.radius_codes is None:
            return self
        rows = np.flatnonzero(self.radius_codes == place)

        def at(array: NDArray[Any] | None) -> Any:
            return None if array is None else array[rows]

        return replace(
            self,
            lower=self.lower[rows],
            upper=self.upper[rows],
            correct=self.correct[rows],
            certified=at(self.certified),
            radii=(self.radii[place],),
            radius_codes=np.zeros(rows.size, np.int64),
            group_codes=at(self.group_codes),
            confidence=at(self.confidence),
            sample_codes=at(self.sample_codes),
        )

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


def read_intervals(
    path: str | os.PathLike[str],
    overrides: Mapping[str, Any] | None = None,
    *,
    alpha: bool = True,
    samples: bool = False,
    advance: Callable[[int], None] = lambda rows: None,
) -> IntervalTable:
    r"""Read intervals of confidences from Parquet, CSV, npz or Arrow.

    Rows that are not certified may leave the interval and the correctness empty: nothing is claimed about them.

    Parameters
    ----------
    path
        The file.
    overrides
        Columns by role where their names do not say it; see :func:`resolve_interval_columns`.
    alpha
        Whether to read a column ``alpha``: the probability with which each row's interval may fail.
    samples
        Whether to read confidences without a perturbation, and which sample each row is of. With such confidences the
        correctness of every row is needed.
    advance
        Called with the number of rows of each piece read.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "intervals.csv"
    >>> _ = path.write_text("lo,hi,correct,certified,radius\n.6,.9,1,1,0.5\n.2,.4,0,1,0.25\n,,,0,0.5\n")
    >>> table = read_intervals(path)
    >>> [(part.radius, part.lower.tolist(), part.upper.tolist()) for part in table.parts()]
    [('0.25', [0.2], [0.4]), ('0.5', [0.6, 0.0], [0.9, 1.0])]
    >>> folder.cleanup()
    """
    from certcal.data._values import Codes

    table = open_table(path)
    with in_file(table.path):
        layout = resolve_interval_columns(table.columns, overrides, samples=samples)
        layout = layout if alpha else replace(layout, alpha=None)
        if table.rows is not None:
            check_memory(table.path, 40 * table.rows, "certify a part of the table")
        classes, groups = Codes(layout.label or ""), Groups(layout.group)
        names = Codes(layout.sample or "", limit=MAX_SAMPLES)
        batches = table.chunks(layout.columns, numbers=layout.numbers)
        parts = pieces(batches, lambda batch, row: _piece(batch, layout, row, classes, names), groups)
        arrays = gather(parts, table.rows, advance)
        return IntervalTable(
            table.path,
            layout,
            arrays["lower"],
            arrays["upper"],
            arrays["correct"],
            arrays.get("certified"),
            *_radii(arrays.get("radius"), layout.radius),
            *groups.in_order(arrays.get("group")),
            alpha=float(arrays["alpha"].max()) if "alpha" in arrays else None,
            origin=IntervalOrigin.parse(table.metadata.get(METADATA)),
            confidence=arrays.get("confidence"),
            sample_names=tuple(names.names),
            sample_codes=arrays.get("sample"),
        )


def _piece(batch: Any, layout: IntervalLayout, first_row: int, classes: Codes, names: Codes) -> Arrays:
    """Checked arrays of one record batch."""
    from certcal.data import _values

    certified = None
    if layout.certified is not None:
        certified = _zero_or_one(batch.column(layout.certified), layout.certified, first_row, "certified").view(
            np.bool_
        )

    def column(name: str, instead: float = 0) -> Any:
        return _without_gaps(batch.column(name), certified, instead)

    lower = _ends(column(layout.lower), layout.lower, first_row)
    upper = _ends(column(layout.upper, 1), layout.upper, first_row)
    if (lower > upper).any():
        index = int(np.argmax(lower > upper))
        raise InputError(
            f"column {layout.lower!r}, row {first_row + index + 1} is {lower[index]:.9g}, above {upper[index]:.9g} in "
            f"column {layout.upper!r}; are the two swapped?"
        )
    # Without a perturbation nobody is excused: where confidences are known, so must be whether they were right.
    told = column if layout.confidence is None else batch.column
    if layout.correct is not None:
        correct = _zero_or_one(told(layout.correct), layout.correct, first_row, "correct")
    else:
        assert layout.label is not None
        assert layout.prediction is not None
        truth, prediction = ((name, told(name)) for name in (layout.label, layout.prediction))
        correct = equal(classes, truth, prediction, first_row).view(np.uint8)
    piece = {"lower": lower, "upper": upper, "correct": correct}
    if certified is not None:
        piece["certified"] = certified
    if layout.confidence is not None:
        piece["confidence"] = _confidences(batch.column(layout.confidence), layout.confidence, first_row)
    if layout.sample is not None:
        piece["sample"] = names.add(batch.column(layout.sample), first_row)
    if layout.radius is not None:
        piece["radius"] = _values.numbers(batch.column(layout.radius), layout.radius, first_row)
        bad = ~((piece["radius"] >= 0) & (piece["radius"] < np.inf))
        if bad.any():
            index = int(np.argmax(bad))
            raise InputError(
                f"column {layout.radius!r}, row {first_row + index + 1} is {piece['radius'][index]:.9g}, "
                "no radius; use finite numbers from 0, or name another column as radius"
            )
    if layout.alpha is not None:
        piece["alpha"] = _values.numbers(column(layout.alpha), layout.alpha, first_row)
        bad = ~((piece["alpha"] >= 0) & (piece["alpha"] < 1))
        if bad.any():
            index = int(np.argmax(bad))
            raise InputError(
                f"column {layout.alpha!r}, row {first_row + index + 1} is {piece['alpha'][index]:.9g}, no probability "
                "from 0 to below 1 with which the row's interval may fail; rename the column, or give alpha"
            )
    return piece


def _without_gaps(array: Any, certified: NDArray[np.bool_] | None, instead: float) -> Any:
    """The column with what is empty in rows that are not certified filled in; what is there stays and is checked."""
    from certcal.data.arrow import compute, from_numpy, pa

    if certified is None or certified.all():
        return array
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    gaps = compute.and_(compute.is_null(array, nan_is_null=True), from_numpy(~certified))
    if not compute.any(gaps).as_py():
        return array
    if pa.types.is_null(array.type):
        array = array.cast(pa.float64())
    return compute.if_else(gaps, pa.scalar(str(int(instead))).cast(array.type), array)


def _ends(array: Any, column: str, first_row: int) -> NDArray[Any]:
    """Ends of intervals, in [0, 1]."""
    missing = "drop the row, or say in a column 'certified' that it is not certified"
    outside = "intervals are of confidences, so clip or rescale them"
    return _in_unit_interval(array, column, first_row, "ends of intervals", missing, outside)


def _confidences(array: Any, column: str, first_row: int) -> NDArray[Any]:
    """Confidences without a perturbation, in [0, 1]."""
    missing = "fill it in, or rename the column if it holds something else"
    outside = "name the column of confidences (confidence), or rename it if it holds something else"
    return _in_unit_interval(array, column, first_row, "confidences", missing, outside)


def _in_unit_interval(array: Any, column: str, first_row: int, what: str, missing: str, outside: str) -> NDArray[Any]:
    from certcal.data._values import numbers

    values = numbers(array, column, first_row)
    if values.dtype == np.bool_:
        raise InputError(f"column {column!r} holds true/false, not {what}; name another column")
    bad = ~((values >= 0) & (values <= 1))
    if bad.any():
        index = int(np.argmax(bad))
        place = f"column {column!r}, row {first_row + index + 1} is {values[index]:.9g}"
        raise InputError(f"{place}; {missing}" if np.isnan(values[index]) else f"{place}, outside [0, 1]; {outside}")
    return values if values.dtype.kind == "f" else values.astype(np.float64)


def _zero_or_one(array: Any, column: str, first_row: int, role: str) -> NDArray[np.uint8]:
    from certcal.data._values import outcomes

    remedy = {
        "correct": "for classes name the columns of prediction and label",
        "certified": "mark certified rows with 1 and the others with 0, or name another column as certified",
    }[role]
    try:
        values = outcomes(array, column, first_row)
    except InputError as error:
        raise InputError(str(error).replace(_CLASS_REMEDY, remedy)) from None
    bad = (values != 0) & (values != 1)
    if bad.any():
        index = int(np.argmax(bad))
        raise InputError(
            f"column {column!r}, row {first_row + index + 1} is {values[index]:.9g}, neither 0 nor 1; {remedy}"
        )
    return values.astype(np.uint8)


_CLASS_REMEDY = "if it is a class, name the column of the predicted class (prediction) to compare with"


def _radii(values: NDArray[Any] | None, column: str | None) -> tuple[tuple[str, ...], NDArray[np.int64] | None]:
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
