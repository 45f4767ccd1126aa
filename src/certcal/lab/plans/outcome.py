"""What a plan gives: tables and charts; and how a table compares with the printed one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from itertools import combinations
from math import nan
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from certcal._base.told import Told
from certcal.lab.plans.plan import OF_GROUP, PublishedTable

if TYPE_CHECKING:
    from certcal.report.charts import Axis, Chart

Number: TypeAlias = "float | str | None"
# The results of jobs that are done, each with what the plan calls it.
Done: TypeAlias = "Sequence[tuple[Any, Any]]"
MISSING = "–"


@dataclass(frozen=True)
class OurTable(Told):
    """A table in the layout of a paper; rows are named as in the plan's published one."""

    name: str
    """Of the published table, if there is one."""
    columns: Sequence[str | float]
    rows: Mapping[str, Sequence[Number]]
    corner: str = ""
    """What the rows are."""
    digits: int | Sequence[int] = 2
    """Decimals of all columns, or of each."""


def table_of(
    name: str, cells: Mapping[Any, Number], columns: Sequence[str | float] = (), corner: str = "", digits: int = 2
) -> OurTable:
    """A table of cells by (row, column), in the order in which rows and, unless they are given, columns come.

    Examples
    --------
    >>> table_of("table", {("a", 1.0): 3.0, ("b", 2.0): 4.0}).rows
    {'a': [3.0, '–'], 'b': ['–', 4.0]}
    """
    heads = columns or list(dict.fromkeys(column for _, column in cells))
    rows = {row: [cells.get((row, each), MISSING) for each in heads] for row, _ in cells}
    return OurTable(name, heads, rows, corner, digits)


def line_charts(
    title: str,
    rows: Mapping[str, tuple[Sequence[float], Sequence[Number]]],
    x: str | Axis,
    y: str | Axis,
    said: str = "",
    low: float | None = 0.0,
) -> list[Chart]:
    """A chart per group of rows, with a line through the places and numbers of each; a gap where there is no number.

    Axes are given, or named and cover what is drawn; that of the numbers begins at ``low``, or at the least.
    """
    from certcal.report.charts import MOST_MARKED, MOST_SERIES, Chart, Line, Panel, covering

    groups: dict[str, dict[str, tuple[Sequence[float], list[float]]]] = {}
    for row, (places, values) in rows.items():
        group, _, name = row.rpartition(OF_GROUP)
        drawn = [float(value) if isinstance(value, float | int) else nan for value in values]
        groups.setdefault(group, {})[name] = places, drawn
    charts: list[Chart] = []
    for group, own in groups.items():
        every = [
            Line(places, values, number % MOST_SERIES, name, markers=few, guide=few)
            for number, (name, (places, values)) in enumerate(own.items())
            for few in [len(places) <= MOST_MARKED]
        ]
        across = covering([place for line in every for place in line.x], x, low=None) if isinstance(x, str) else x
        up = covering([value for line in every for value in line.y], y, low=low) if isinstance(y, str) else y
        for lines in (every[start : start + MOST_SERIES] for start in range(0, len(every), MOST_SERIES)):
            charts.append(Chart(f"{title}, {group}" if group else title, said, [Panel(across, up, lines)]))
    return charts


@dataclass(frozen=True)
class Outcome:
    """Tables, charts, and sentences about them."""

    tables: Sequence[OurTable]
    charts: Sequence[Any] = ()
    notes: Sequence[str] = ()


class ComparedCell(NamedTuple):
    """One cell: where it is, what is printed, what came out, and the difference if that means something."""

    row: str
    column: str
    paper: Number
    ours: Number
    difference: float | None


def number_text(value: Number, digits: int = 2) -> str:
    """A cell as it is printed."""
    if value is None:
        return MISSING
    return value if isinstance(value, str) else f"{value:.{digits}f}".replace("-", "−")


def signed_text(value: float | None, digits: int = 2) -> str:
    """A difference with its sign; one that rounds to 0 has none.

    Examples
    --------
    >>> signed_text(-0.0004, 3), signed_text(-0.0006, 3), signed_text(None)
    ('0.000', '−0.001', '–')
    """
    if value is None:
        return MISSING
    text = f"{value:+.{digits}f}"
    return (text if float(text) else text[1:]).replace("-", "−")


def heading(column: str | float) -> str:
    """The head of a column."""
    return column if isinstance(column, str) else f"{column:g}"


def _digits(digits: int | Sequence[int], columns: Sequence[str | float], column: str) -> int:
    """Decimals of a column by its head; of the first one where it is not there."""
    heads = [heading(each) for each in columns]
    return digits if isinstance(digits, int) else digits[heads.index(column) if column in heads else 0]


@dataclass(frozen=True)
class RowOrder:
    """How rows compare with the printed ones: in how many columns the same is best, and how many pairs stand alike."""

    best: int = 0
    columns: int = 0
    alike: int = 0
    pairs: int = 0

    def __add__(self, other: RowOrder) -> RowOrder:
        both = zip(astuple(self), astuple(other), strict=True)
        return RowOrder(*(mine + theirs for mine, theirs in both))

    def __bool__(self) -> bool:
        """Whether there is anything that compares."""
        return self.columns > 0

    @property
    def sentence(self) -> str:
        """In words, after "The"."""
        return (
            f"same row is best in {self.best} of {self.columns} columns, and {self.alike} of {self.pairs} pairs of "
            "rows are in the printed order."
        )


@dataclass(frozen=True)
class ComparedTable(Told):
    """A table beside the printed one."""

    ours: OurTable
    paper: PublishedTable | None
    as_printed: bool = field(default=False)
    """Whether both are about the same experiment, so that differences mean something."""

    def rows(self) -> list[str]:
        """Names of all rows: the paper's, then others of ours."""
        printed = [] if self.paper is None else [*self.paper.rows]
        return [*printed, *(row for row in self.ours.rows if row not in printed)]

    def columns(self) -> list[str]:
        """Heads of all columns."""
        printed = [] if self.paper is None else [heading(each) for each in self.paper.columns]
        return [*printed, *(head for each in self.ours.columns if (head := heading(each)) not in printed)]

    def cell(self, row: str, column: str) -> ComparedCell:
        """One cell."""
        paper = None if self.paper is None else _cell(self.paper.columns, self.paper.rows, row, column)
        ours = _cell(self.ours.columns, self.ours.rows, row, column)
        difference = None
        if self.as_printed and isinstance(paper, float | int) and isinstance(ours, float | int):
            difference = ours - paper
        return ComparedCell(row, column, paper, ours, difference)

    def cells(self) -> Iterator[ComparedCell]:
        """All cells, row by row."""
        return (self.cell(row, column) for row in self.rows() for column in self.columns())

    def digits_of(self, column: str) -> tuple[int, int]:
        """Decimals of a column as printed, and here."""
        ours = _digits(self.ours.digits, self.ours.columns, column)
        if self.paper is None or self.paper.digits is None:
            return ours, ours
        return _digits(self.paper.digits, self.paper.columns, column), ours

    def compared(self, row: str | None = None) -> list[ComparedCell]:
        """Cells, of one row or of all, in which two numbers or two words of one experiment stand beside each other."""
        return [
            cell
            for cell in self.cells()
            if row in (None, cell.row)
            and (cell.difference is not None or (self.as_printed and _is_word(cell.paper) and _is_word(cell.ours)))
        ]

    def agrees(self, cell: ComparedCell) -> bool:
        """Whether what came out, rounded to the printed decimals, is what is printed; or the same word."""
        unit = 10.0 ** -self.digits_of(cell.column)[0]
        return cell.paper == cell.ours if cell.difference is None else abs(cell.difference) <= 0.501 * unit

    def text(self, row: str, column: str) -> str:
        """A cell as the page shows it: paper / ours / difference, or ours alone where nothing was published."""
        found, (printed, digits) = self.cell(row, column), self.digits_of(column)
        if found.paper is None:
            return number_text(found.ours, digits)
        parts = [number_text(found.paper, printed), number_text(found.ours, digits)]
        if found.difference is not None:
            # Half a unit, which rounds to either side, is not shown as a whole one.
            same = digits == printed and self.agrees(found)
            parts[1:] = [parts[0] if same else parts[1], signed_text(0.0 if same else found.difference, digits)]
        return " / ".join(parts)

    def groups(self) -> dict[str, list[str]]:
        """Rows by the group they are in."""
        found: dict[str, list[str]] = {}
        for row in self.rows():
            group, separator, _ = row.partition(OF_GROUP)
            found.setdefault(group if separator else "", []).append(row)
        return found

    def pattern(self) -> list[str]:
        """What compares: printed rows that come out, or else whether rows stand in the printed order, by group."""
        if self.as_printed:
            return self._agreement()
        return [
            f"{f'{group}: the' if group else 'The'} {found.sentence}" for group, found in self.orders().items() if found
        ]

    def orders(self) -> dict[str, RowOrder]:
        """By group, whether the same rows are best, and in the same order: what compares across experiments."""
        highest = {*([] if self.paper is None else self.paper.highest)}
        return {group: self._order(rows, {group} & highest, highest) for group, rows in self.groups().items()}

    def _order(self, rows: Sequence[str], all_highest: Collection[str], highest: Collection[str]) -> RowOrder:
        order = RowOrder()
        for column in self.columns():
            sign = -1 if all_highest or column.partition(" ")[0] in highest else 1
            both = [
                (sign * cell.paper, sign * cell.ours)
                for cell in (self.cell(row, column) for row in rows)
                if isinstance(cell.paper, float | int) and isinstance(cell.ours, float | int)
            ]
            if len(both) > 1:
                paper, ours = zip(*both, strict=True)
                alike = [(p - q) * (x - y) > 0 for (p, x), (q, y) in combinations(both, 2)]
                best = paper.index(min(paper)) == ours.index(min(ours))
                order += RowOrder(best, 1, sum(alike), len(alike))
        return order

    def _agreement(self) -> list[str]:
        """How many printed rows come out to the last printed digit."""
        compared = [self.compared(row) for row in self.rows()]
        wrong = [sum(not self.agrees(cell) for cell in row) for row in compared if row]
        if len(wrong) < 2 or max(map(len, compared)) < 2:
            return []
        almost = f", and {wrong.count(1)} more but for one number" if 1 in wrong else ""
        named = "" if self.ours.name == "table" else f"{self.ours.name}: "
        return [f"{named}{wrong.count(0)} of {len(wrong)} rows come out to the last printed digit{almost}."]


def _is_word(value: Number) -> bool:
    return isinstance(value, str) and value != MISSING


def _cell(columns: Sequence[Any], rows: Mapping[str, Sequence[Any]], row: str, column: str) -> Number:
    heads = [heading(each) for each in columns]
    return rows[row][heads.index(column)] if row in rows and column in heads else None
