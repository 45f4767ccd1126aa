"""From a table to Predictions, whole or in pieces, and to scores of which it need not be known what was true."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError, ranks_of, real_numbers, shortened
from certcal._base.outcomes import TwoOutcomes, outcome
from certcal._base.text import plain_name
from certcal.data.columns import agree_beyond_chance
from certcal.data.formats import OpenTable, check_memory, open_table, physical_memory
from certcal.data.grouping import GroupingColumns, Groupings, GroupRule, PredictionGroup
from certcal.data.layout import Labels, Overrides, resolve_columns
from certcal.data.pieces import Arrays, CellError, gather, in_file, pieces
from certcal.data.reading import TOTALS, CellReader, Reading
from certcal.data.schema import ROLES, Layout, are_data
from certcal.predictions import Predictions

if TYPE_CHECKING:
    from certcal.data.values import Batch, Codes, ColumnValues


@dataclass(frozen=True, eq=False)
class LoadedTable:
    """Predictions read from a file, with what was taken for what."""

    path: Path
    layout: Layout
    predictions: Predictions
    rows: NDArray[np.int64] | None = None  # where the samples stand in the file, if rows were left out
    groupings: tuple[GroupingColumns, ...] = ()  # what they are grouped by
    groups: tuple[PredictionGroup, ...] = ()
    cut: Groupings | None = None  # what cut them
    codes: NDArray[np.int64] | None = None  # the number of each sample's group, a row per rule; -1 for none
    real: NDArray[np.float64] | None = None  # the scores, where they are no probabilities and predictions hold ranks

    @property
    def group_of_each(self) -> NDArray[Any] | None:
        """The name of each sample's group, where each is in one."""
        if len(self.groupings) != 1:
            return None
        found = np.empty(len(self.predictions), object)
        for group in self.groups:
            found[group.rows] = group.name
        return found.astype(str)


def split_by(predictions: Predictions, by: Any) -> tuple[tuple[GroupingColumns, ...], list[PredictionGroup]]:
    """Groups from the group of each sample, or from several such arrays by name, in natural order."""
    groupings, groups, _ = group_samples(predictions, by)
    return groupings.described, groups


def group_samples(predictions: Predictions, by: Any) -> tuple[Groupings, list[PredictionGroup], NDArray[np.int64]]:
    """What cuts them, their groups, and the number of each sample's group, a row per grouping."""
    if isinstance(by, str):
        reason = "predictions have no columns"
        raise InputError(reason, argument="by", remedy="give the group of each sample, or pass a table")
    table = _table_of_groups(by, "group", len(predictions), "by")
    found, arrays = _read_groups(Groupings(table.names, table.columns), table, len(predictions))
    codes = found.codes_by_rule(arrays)
    _refuse_outcomes(found.asked, codes, predictions)
    return found, list(found.split(predictions, found.codes(arrays))), codes


def _refuse_outcomes(names: Iterable[str], codes: NDArray[np.int64], predictions: Predictions) -> None:
    """Refuse groups of one outcome each, by the number of each sample's group, unless they are so by chance."""
    for truth in (predictions.correct, predictions.labels):
        if truth is None or not agree_beyond_chance(truth, truth):
            continue
        for name, own in zip(names, codes, strict=True):
            pairs = np.unique(own * (int(truth.max()) + 1) + truth)
            if len(pairs) == len(np.unique(own)) == len(np.unique(truth)):
                raise _groups_of_outcomes(repr(name))


def _groups_of_outcomes(what: str) -> InputError:
    """Given what was true, calibrated scores are wrong, and a map by group would need to know it."""
    reason = f"{what} says what was true, and in groups of one outcome even calibrated scores are wrong"
    return InputError(reason, argument="by", remedy="group by what is known beforehand, such as the prediction")


def group_codes(groups: Any, rules: Sequence[GroupRule], n: int) -> NDArray[np.int64]:
    """The number of each sample's group, a row per rule; -1 for one that was not there when groups were cut."""
    needed = list(dict.fromkeys(column.name for rule in rules for column in rule.columns))
    table = _table_of_groups(groups, needed[0], n, "groups")
    lost = next((name for name in needed if name not in table.names), None)
    if lost is not None:
        raise InputError(f"the map needs {lost!r}", argument="groups", remedy="give its value for each sample")
    found, arrays = _read_groups(Groupings((), table.columns, rules), table, n)
    return found.codes_by_rule(arrays)


def _table_of_groups(by: Any, name: str, n: int, argument: str) -> Any:
    from certcal.data.frames import MemoryTable, as_column

    columns: Any = list(cast("Any", by)) if isinstance(by, Mapping) else getattr(by, "columns", None)
    named: dict[str, Any] = {name: by} if columns is None else {str(name): by[name] for name in columns}
    for name, values in named.items():
        if not isinstance(values, Iterable) or isinstance(values, str):
            raise InputError(f"{shortened(values)} is no group per sample; give one each", argument=argument)
        given: Any = cast("Any", values)
        named[name] = as_column(given if hasattr(given, "__len__") else list(given), name)
        if len(named[name]) != n:
            reason = f"it has {len(named[name])} entries for {n} samples; give one each"
            raise InputError(reason, argument=argument)
    return MemoryTable(named)


def _read_groups(found: Groupings, table: Any, n: int) -> tuple[Groupings, Arrays]:
    from certcal.data.values import Batch

    arrays = gather((found.add(Batch(rows, 0)) for rows in table.chunks(found.columns)), n)
    found.count(arrays)
    found.cut()
    return found, arrays


def read_predictions(path: str | os.PathLike[str], **overrides: Unpack[Overrides]) -> Predictions:
    """Read predictions from a file of any format that :func:`open_table` knows.

    Parameters
    ----------
    path
        The file, or anything else that :func:`open_table` takes.
    **overrides
        Columns by role where their names do not say it; see :func:`resolve_columns`.

    Examples
    --------
    >>> read_predictions({"id": [7, 8], "how_sure": [0.9, 0.6], "is_correct": ["yes", "no"]}, confidence="how_sure")
    Predictions(n=2, kind='confidence', accuracy=0.5)
    """
    return load_table(path, overrides).predictions


def load_table(
    path: str | os.PathLike[str],
    overrides: Mapping[str, Any] | None = None,
    *,
    by: str | Iterable[str] = (),
    real: bool = False,
    advance: Callable[[int], None] = lambda rows: None,
) -> LoadedTable:
    """Read predictions with the layout found and, when ``by`` names columns or crossings, their groups.

    Parameters
    ----------
    path
        The file, or anything else that :func:`open_table` takes.
    overrides
        Columns by role.
    by
        Columns of groups, and crossings such as "product*channel".
    real
        Whether scores are any real numbers, and no probabilities.
    advance
        Called with the number of rows of each piece read.

    Examples
    --------
    >>> loaded = load_table({"conf": [0.9, 0.6, 0.7], "correct": [1, 0, 1], "site": ["a", "b", "a"]}, by="site")
    >>> [(each.name, len(each.predictions)) for each in loaded.groups]
    [('a', 2), ('b', 1)]
    """
    return PredictionStream(path, overrides, by=by, real=real).load(advance)


class PredictionStream:
    """Predictions of a table in pieces, from the beginning every time it is iterated; memory is bounded by the piece.

    Parameters
    ----------
    path, overrides
        The file, and columns by role.
    size
        Largest number of rows per piece; by default what is fast.
    by
        Columns of groups, and crossings such as "product*channel".
    memory
        Bytes that a piece, or the whole when it is loaded, may take: a file that expands beyond is refused. By default
        all that this machine has; less than 256 MiB counts as that much for a piece.
    labels
        Whether a column must say what was true.
    real
        Whether scores are any real numbers, and no probabilities.
    rules
        How groups were cut before, instead of ``by``.

    Examples
    --------
    >>> stream = PredictionStream({"conf": [0.9, 0.6, 0.7], "correct": [1, 0, 1]}, size=2)
    >>> [len(piece) for piece in stream], [len(piece) for piece in stream]
    ([2, 1], [2, 1])
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        overrides: Mapping[str, Any] | None = None,
        *,
        size: int | None = None,
        by: str | Iterable[str] = (),
        memory: int | None = None,
        labels: Labels = "needed",
        real: bool = False,
        rules: tuple[GroupRule, ...] | None = None,
    ) -> None:
        how = Reading.of(overrides)
        self.table: OpenTable = open_table(path, how)
        self.reader = CellReader(how, self.table.decimal, notes=list(self.table.notes), marks=self.table.marks)
        self.table.memory = memory
        self.table.encode_text = True
        with in_file(self.table.path):
            try:
                self.layout = resolve_columns(self.table.columns, overrides, labels=labels)
            except InputError as error:
                suggested = self._with_suggestion(error, overrides or {}, labels)
                raise self._with_sheet(suggested, overrides or {}, labels) from None
            if real and self.layout.kind != "score":
                raise InputError("real scores are one column, and another says what happened", remedy=_NAME_BOTH)
            self.groupings = Groupings((by,) if isinstance(by, str) else tuple(by), self.table.columns, rules)
            self._refuse_groups_of_outcomes()
        self.real, self.rules = real, rules
        self.width = self._width()
        self.size = size

    def _refuse_groups_of_outcomes(self) -> None:
        truth = {self.layout.get(role) for role in ("outcome", "correct", "label")}
        if name := next((each for each in self.groupings.columns if each in truth), None):
            raise _groups_of_outcomes(repr(name))

    @property
    def rows(self) -> int | None:
        """Number of rows, when the format says so."""
        return self.table.rows

    def _width(self) -> int:
        family = self.layout.family
        if family is None or not family.is_list:
            return len(self.layout.numbers)
        for batch in self.table.chunks(family.columns, 1):
            first = batch.column(0)[0].as_py()
            return max(1, len(first)) if isinstance(first, list) else 1  # pyright: ignore[reportUnknownArgumentType]
        return 1

    def bytes_in_memory(self) -> int:
        """About how much memory the whole table takes as Predictions; for text that is not known before reading it."""
        if self.rows is not None:
            return self.rows * (8 * self.width + 17)
        size = self.table.file.stat().st_size
        plain = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson")
        return size if self.table.file.suffix in plain else 10 * size

    def __iter__(self) -> Iterator[Predictions]:
        for found, _ in self._pieces(None):
            yield found

    def find_groups(self, advance: Callable[[int], None] = lambda rows: None) -> None:
        """Read the columns of the groups once, to cut them: before :meth:`in_groups`."""
        for piece in self._arrays(self.size, self.groupings):
            self.groupings.count(piece, in_pieces=True)
            advance(piece["scores"].shape[0])
        self.groupings.cut()

    def in_groups(self) -> Iterator[tuple[Predictions, NDArray[np.int64]]]:
        """The pieces, each with a number for the group of each sample, a row per grouping."""
        for found, piece in self._pieces(self.groupings):
            yield found, self.groupings.codes(piece)

    def _pieces(self, groups: Groupings | None) -> Iterator[tuple[Predictions, Arrays]]:
        first_row = 0
        for piece in self._arrays(self.size, groups):
            with in_file(self.table.path):
                found = self._make(piece, first_row)
            yield found, piece
            first_row += len(found)
        self.layout = replace(self.layout, notes=self.reader.said())

    def load(self, advance: Callable[[int], None] = lambda rows: None, most: int | None = None) -> LoadedTable:
        """The whole table in memory, of at most so many bytes; ``advance`` is called with the rows of each piece."""
        table = self.table
        if table.rows is not None:
            check_memory(
                table.path, self.bytes_in_memory() // 2, "read it in pieces (PredictionStream, or memory of measure)"
            )
        # An npz archive is in memory as a whole anyway: one piece, no copy.
        size = max(table.rows or 1, 1) if table.file.name.lower().endswith(".npz") else self.size
        with in_file(table.path):
            if most is None and (memory := physical_memory() if table.memory is None else table.memory) is not None:
                most = memory // 2
            arrays = gather(self._arrays(size, self.groupings), table.rows, advance, most)
            real = self._ranks_of_scores(arrays) if self.real else None
            if real is None:
                arrays["scores"] = self.reader.recognised(arrays["scores"], self.layout)
            found = self._make(arrays, 0)
            layout = replace(self.layout, notes=self.reader.said())
            made = LoadedTable(table.path, layout, found, self.reader.positions(len(found)), real=real)
            if not self.groupings.asked:
                return made
            self.groupings.count(arrays)
            self.groupings.cut()
            codes = self.groupings.codes_by_rule(arrays)
            if self.rules is not None:
                return replace(made, codes=codes)
            _refuse_outcomes(self.groupings.asked, codes, found)
            groups = tuple(self.groupings.split(found, self.groupings.codes(arrays)))
            return replace(made, groupings=self.groupings.described, groups=groups, cut=self.groupings, codes=codes)

    def _ranks_of_scores(self, arrays: Arrays) -> NDArray[np.float64]:
        """Real scores; ranks between 0 and 1 take their place."""
        try:
            real = real_numbers(arrays["scores"], "scores")
        except InputError as error:
            rows = self.reader.positions(arrays["scores"].shape[0])
            text = _locate_in_file(str(error), self.layout, lambda place: place if rows is None else rows[place])
            raise InputError(text, add={"missing": "drop"} if " is nan; " in text else {}) from None
        arrays["scores"] = ranks_of(real)
        return real

    def _make(self, arrays: Arrays, first_row: int) -> Predictions:
        rows = self.reader.positions(first_row + arrays["scores"].shape[0])
        try:
            return _make_predictions(
                arrays, self.layout, lambda place: first_row + place if rows is None else rows[place]
            )
        except InputError as error:
            if _NOT_PROBABILITIES not in str(error) or not self.table.path.suffix:
                raise
            columns = [
                f"--{role}={self.layout.roles[role]}" for role in ("score", "outcome") if role in self.layout.roles
            ]
            asked = {name: value for name, value in asdict(self.reader.how).items() if value is not None}
            columns += [f"--{name}={value}" for name, value in asked.items() if name != "percent"]
            words = ["certcal", "recalibrate", "fit", str(self.table.path), *columns, "--real-scores", "-o", "map.json"]
            raise InputError(str(error).replace(_NOT_PROBABILITIES, shlex.join(words))) from None

    def _with_sheet(self, error: InputError, given: Mapping[str, Any], labels: Labels) -> InputError:
        """The error with the sheet that holds predictions, if one other does, or else with the names of all."""
        sheets, sheet = getattr(self.table, "sheets", ()), getattr(self.table, "sheet", "")
        if len(sheets) < 2 or given.get("sheet") is not None:
            return error
        fitting = dict[str, dict[str, Any]]()
        for name in [each for each in sheets if each != sheet][:_MOST_SHEETS]:
            own = {**given, "sheet": name}
            other: Any = self.table.read_as(Reading.of(own))
            try:
                PredictionStream(other, own, labels=labels)
                fitting[name] = {}
            except InputError as refused:
                if refused.add:
                    fitting[name] = refused.add
        if len(fitting) == 1:
            ((name, add),) = fitting.items()
            reason = f"sheet {sheet!r} is no table of predictions ({error.reason.removeprefix(f'{self.table.path}: ')})"
            return InputError(reason, remedy=f"sheet {name!r} looks like one", add={**add, "sheet": name})
        said = f"; this is sheet {sheet!r} of {', '.join(map(repr, sheets[:_MOST_SHEETS]))}"
        roles = (*error.roles, "sheet")
        return InputError(
            error.reason,
            argument=error.argument,
            remedy=error.remedy,
            roles=roles,
            more=error.more + said,
            add=error.add,
        )

    def _with_suggestion(self, error: InputError, given: Mapping[str, Any], labels: Labels) -> InputError:
        """The error with the arguments that would help, where one column can be the score and one the outcome."""
        if (
            not error.roles
            or are_data(self.table.names)
            or given.keys() & {"confidence", "correct", "prediction", "probabilities", "logits"}
        ):
            return error
        scores, percents, outcomes, sum_to_one = self._candidates()
        if len(scores) > 1 and sum_to_one:
            return self._with_classes(error, scores, given)
        if len(outcomes) > 1:  # a group has two values, too
            outcomes = {name: ends for name, ends in outcomes.items() if {outcome(each) for each in ends} == {0, 1}}
        if error.more and len(self.table.names) > _MOST_LISTED:
            fitting = {*scores, *outcomes}
            table = sorted(self.table.columns, key=lambda each: each.name not in fitting)
            try:
                resolve_columns(table, given, labels=labels)
            except InputError as again:
                error = again
        inside = "lies in [0, 1]" if scores else "lies between 0 and 100"
        scores = scores or percents
        add, more = dict[str, Any](), ""
        if len(scores) == len(outcomes) == 1:
            ((name, ends),) = outcomes.items()
            known = sorted(str(outcome(each)) for each in ends) == ["0", "1"]
            add = {"score": scores[0], "outcome": name}
            add |= {} if known else TwoOutcomes().offer(ends, (1, 2))
            other = next(each for each in ends if each != add.get("positive"))
            more = f"; {scores[0]!r} {inside} and {name!r} has two values"
            more += "" if "positive" not in add or "positive" in given else f" (if {other!r} counts as 1, write that)"
            add = {role: value for role, value in add.items() if role not in given}
        elif scores and outcomes:
            chosen = [
                f"{' or '.join(map(repr, names[:_MOST_LISTED]))} {what}"
                for names, what in ((scores, "as the score"), ([*outcomes], "as the outcome"))
            ]
            more = f"; by their values, {' and '.join(chosen)} would fit"
        return InputError(
            error.reason,
            argument=error.argument,
            remedy=error.remedy,
            roles=error.roles,
            more=error.more + more,
            add=add,
        )

    def _candidates(self) -> tuple[list[str], list[str], dict[str, list[str]], bool]:
        """Columns in [0, 1], of percentages, and of two values, the rarer first; and whether scores sum to 1.

        As far as the first rows show.
        """
        from certcal.data.values import ColumnValues

        scores, percents, outcomes, total = list[str](), list[str](), dict[str, list[str]](), 0.0
        names = [each.name for each in self.table.columns if each.kind not in ("list", "other", "index")]
        names = [name for name in names[:_MOST_TRIED] if self.table.names.count(name) == 1]
        first: list[Any] = [rows for rows, _ in zip(self.table.chunks(names, 10_000), range(1), strict=False)]
        for rows, name in product(first, names):
            array = rows.column(name).drop_null()
            reader = CellReader(Reading(self.reader.how.decimal), self.table.decimal, marks=self.table.marks)
            cells = ColumnValues(array, name, 0, reader)
            values, positions = cells.distinct()
            if len(values) == 2:
                outcomes[name] = [str(values[place]).strip() for place in np.argsort(np.bincount(positions))]
                continue
            with suppress(InputError):
                found = cells.numbers()
                if found.size and found.min() >= 0 and found.max() <= 1:
                    scores.append(name)
                    total = total + found if found.size == rows.num_rows else np.inf
                elif found.size and found.min() >= 0 and 10 < found.max() <= 100:
                    whole = bool(np.all(found == np.floor(found)))
                    percents += [] if whole and not _PERCENT.search(name) else [name]
        return scores, percents, outcomes, bool(np.all(np.abs(total - 1) < _SUMS_TO_ONE))

    def _with_classes(self, error: InputError, scores: Sequence[str], given: Mapping[str, Any]) -> InputError:
        """The error with the columns of class probabilities, which sum to 1 in every row, and that of the classes."""
        others = [name for name in self.table.names if name not in scores]
        named = [name for name in others if plain_name(name) in sum(ROLES["label"].names, ())]
        label = given.get("label") or (named or others if len(named or others) == 1 else [None])[0]
        add = {"probabilities": ",".join(scores)} | ({} if label is None or "label" in given else {"label": label})
        reason = f"{', '.join(map(repr, scores[:3]))}{'' if len(scores) <= 3 else ' …'} sum to 1 in every row"
        remedy = "name them as probabilities" + ("" if label else ", and the column of true classes as label")
        return InputError(
            f"no column says by its name what it holds; {reason}", remedy=remedy, roles=("probabilities",), add=add
        )

    def _arrays(self, size: int | None, groups: Groupings | None) -> Iterator[Arrays]:
        from certcal.data.values import Codes

        layout, classes, reader = self.layout, Codes(of_classes=True), self.reader
        two = TwoOutcomes(layout.positive, layout.negative) if layout.kind == "score" else None
        reader.restart()

        def convert(batch: Batch) -> Arrays:
            return _convert(batch, layout, classes, two, reader)

        def keep(batch: Batch) -> NDArray[np.bool_] | None:
            return reader.keep(batch, layout, two)

        try:
            yield from pieces(
                self.table, layout, convert, width=self.width, size=size, groups=groups, reader=reader, keep=keep
            )
        except CellError as error:
            raise self._with_totals(error) from None

    def _with_totals(self, error: CellError) -> InputError:
        """The error, with what to do about its row where another column of it says that it holds totals."""
        said = "missing" in error.add or "totals" in str(error.remedy)
        text = "" if error.row is None or said else self._totals_in(error.row - 1)
        if text:
            error.remedy = f"its row says {text!r} and looks like one of totals: delete it"
            error.remedy += ", or leave it out" if error.add else ""
            error.roles, error.more = (), ""
            error.args = (error.said(None),)
        return error

    def _totals_in(self, row: int) -> str:
        """The text of a row that names totals, among columns of text."""
        names = [each.name for each in self.table.columns if each.kind in ("text", "unknown")]
        names = [name for name in names[:_MOST_TRIED] if self.table.names.count(name) == 1]
        with suppress(InputError):
            for rows in self.table.chunks(names):
                if row < rows.num_rows:
                    texts = (str(column[row].as_py() or "").strip() for column in rows.columns)
                    return next((text[:80] for text in texts if re.match(TOTALS, text, re.IGNORECASE)), "")
                row -= rows.num_rows
        return ""


def _convert(batch: Batch, layout: Layout, classes: Codes, two: TwoOutcomes | None, reader: CellReader) -> Arrays:
    """Scores and weights with what was true, if a column says it: "correct", or "labels" of scores per class."""
    from certcal.data.values import equal_classes

    family, label, prediction = layout.family, layout.get("label"), layout.get("prediction")
    piece: Arrays = {
        "scores": reader.scores(batch[_score_column(layout)]) if family is None else batch.family(family),
    }
    correct = layout.get("outcome") or layout.get("correct")
    if correct is not None:
        try:
            piece["correct"] = batch[correct].outcomes(two=two)
        except CellError:
            _refuse_swapped(batch[correct], piece["scores"], layout)
            raise
    elif label is not None and prediction is not None:
        piece["correct"] = equal_classes(classes, batch[label], batch[prediction])
    elif label is not None and family is not None:
        piece["labels"] = batch[label].class_numbers(family.classes, is_ordered=family.is_ordered)
    if (weight := layout.get("weight")) is not None:
        piece["sample_weight"] = batch[weight].numbers()
    return piece


def _refuse_swapped(cells: ColumnValues, scores: NDArray[Any], layout: Layout) -> None:
    """Refuse columns that have each other's values, with the arguments that name them."""
    names = (_score_column(layout), cells.column)
    if layout.kind != "score" or not np.isin(scores, (0, 1)).all():
        return
    try:
        values = cells.numbers()
    except InputError:
        return
    if ((values >= 0) & (values <= 1)).all():
        reason = f"{names[1]!r} holds probabilities and {names[0]!r} outcomes: they are swapped"
        raise InputError(reason, add={"score": names[1], "outcome": names[0]})


def _score_column(layout: Layout) -> str:
    return str(layout.roles[layout.kind])


def _make_predictions(arrays: Arrays, layout: Layout, row_of: Callable[[int], Any]) -> Predictions:
    """Predictions; errors name the column and the row of the file. Where truth is not known, nobody gets to see it."""
    make: Callable[..., Predictions] = {
        "score": Predictions.from_scores,
        "confidence": Predictions.from_confidence,
        "probabilities": Predictions.from_probabilities,
        "logits": Predictions.from_logits,
    }[layout.kind]
    truth = arrays.get("correct" if layout.family is None else "labels")
    if truth is None:
        truth = np.zeros(arrays["scores"].shape[0], np.int64)
    try:
        return make(arrays["scores"], truth, arrays.get("sample_weight"))
    except InputError as error:
        text = _locate_in_file(str(error), layout, row_of)
        add: dict[str, Any] = {"percent": True} if text.endswith(_DIVIDE) else {}
        if add and np.max(arrays["scores"]) <= 100:
            text = text.removesuffix(_DIVIDE) + "if these are percentages, say so"
        if " is nan; " in text:
            add = {"missing": "drop"}
        raise InputError(text, roles=("logits",) if text.endswith(_NAME_LOGITS) else (), add=add) from None


_MOST_TRIED, _MOST_LISTED, _MOST_SHEETS = 200, 20, 20
_PERCENT = re.compile(r"%|pct|percent", re.IGNORECASE)
# How near to 1 columns of probabilities sum in every row.
_SUMS_TO_ONE = 0.01
_DIVIDE = "if these are per cent, divide them by 100"
_NOT_PROBABILITIES = "certcal recalibrate fit with real_scores"
_NAME_BOTH = "name them as score and outcome"
_NAME_LOGITS = "for logits, name one column per class as logits"
_PLACE = re.compile(r"^(scores|confidence|probabilities|logits|labels|sample_weight)\[(\d+)(?:, (\d+))?\]")


def _locate_in_file(text: str, layout: Layout, row_of: Callable[[int], Any]) -> str:
    """An array's complaint in the words of the file: ``confidence[3]`` is a row of a column."""
    match = _PLACE.match(text)
    if match is None:
        return text
    role, row, family = match[1], int(row_of(int(match[2]))) + 1, layout.family
    of = {"labels": "label", "sample_weight": "weight"}.get(role, layout.kind)
    place = f"column {layout.get(of)!r}, row {row}"
    if of == layout.kind and family is not None:
        whole = match[3] is None or family.is_list
        place = (
            f"row {row} of {family.description}" if whole else f"column {family.columns[int(match[3])]!r}, row {row}"
        )
    said = text[match.end() :]
    said = re.sub(r" \(for logits use (Predictions\.)?from_logits\)$", f"; {_NAME_LOGITS}", said)
    return place + re.sub(r" or use (Predictions\.)?from_logits for logits$", f" or, {_NAME_LOGITS}", said)


@dataclass(frozen=True, eq=False)
class LoadedScores:
    """Scores read from a table without labels, as :class:`certcal.Predictions` has them; nothing can be measured."""

    path: Path
    layout: Layout
    kind: Literal["score", "confidence", "probabilities", "logits"]
    confidence: NDArray[Any]
    probabilities: NDArray[Any] | None
    logits: NDArray[Any] | None
    sample_weight: NDArray[np.float64] | None
    rows: NDArray[np.int64] | None = None  # where the samples stand in the file, if rows were left out
    codes: NDArray[np.int64] | None = None
    real: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return self.confidence.size


def load_scores(
    path: str | os.PathLike[str],
    overrides: Mapping[str, Any] | None = None,
    *,
    real: bool = False,
    rules: tuple[GroupRule, ...] | None = None,
) -> LoadedTable | LoadedScores:
    """Read predictions, or scores alone where no column says what was true.

    Scores are checked as those of predictions are, and refused with the column and the row.
    """
    stream = PredictionStream(path, overrides, labels="optional", real=real, rules=rules)
    found = stream.load()
    if found.layout.is_labelled:
        return found
    names = ("kind", "confidence", "probabilities", "logits", "sample_weight")
    scores = {name: getattr(found.predictions, name) for name in names}
    return LoadedScores(found.path, found.layout, **scores, rows=found.rows, codes=found.codes, real=found.real)
