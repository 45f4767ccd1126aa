"""A report as data: what is said about a result, without markup, colours or widths.

A :class:`Report` has a headline, sections and an appendix, each made of blocks. The views (:mod:`certcal.report.views`)
turn results into reports; three renderers (HTML, terminal, matplotlib) turn reports into what people see. They know
blocks, not results, and format no number themselves: a :class:`Column` knows how its cells are written and to which
side they are rounded.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Protocol, TypeAlias, cast, runtime_checkable

from certcal._base.checks import InputError
from certcal._base.rounding import (
    claim_text,
    is_p_value,
    is_share,
    round_outward,
    share_text,
    short_text,
    sure_text,
)
from certcal._base.text import capital
from certcal.claims import SAME, Bound, Certificate, Estimate, TwoSidedBound, assumptions_of, like_these, settings_texts
from certcal.report.charts import Chart
from certcal.report.numbers import between, brief, minus, number, p_value
from certcal.report.provenance import Provenance
from certcal.result import Answer
from certcal.verdict import Judgement, Verdict

_FORMS = (".html", ".txt", ".png", ".svg", ".pdf", ".md", ".tex")  # endings of the files of a report
# Shown where there is no value.
NOTHING = "–"
# What a page may say about itself, in this order; further fields follow.
ABOUT = ("model", "version", "owner", "data", "period", "intended use", "limit set by")
# What a validator asks for: named where it is not given; the last of a requirement only.
_ASKED = ("model", "version", "period", "intended use", "limit set by")


@runtime_checkable
class HasText(Protocol):
    """A claim or any other value that knows how it is printed."""

    @property
    def text(self) -> str:
        """The value as printed."""
        ...


@dataclass(frozen=True)
class Strong:
    """A cell that stands out."""

    text: str


@dataclass(frozen=True, eq=False)
class Picture:
    """A small image in a cell: pixels (height and width, or with one or three channels) and what it shows in words."""

    pixels: Any
    text: str


Cell: TypeAlias = "str | float | tuple[float, float] | HasText | None"

SIGNS = {"upper": "≤", "lower": "≥"}


@dataclass(frozen=True)
class Column:
    """How the cells below a head are written."""

    head: str
    """What the column shows; a side adds "≤" or "≥"."""
    kind: str = "text"
    """"text"; "estimate" (four decimals), "brief" (three), "count", "bound" (rounded outward to the side), "level" (a
    radius or a probability, rounded to the side), "p" (rounded up), "percent" or "interval" (a pair, outward)."""
    side: str | None = None
    """"upper" or "lower" for what holds on one side."""
    priority: int = 0
    """0 is always shown; of the others the largest is the first that a narrow terminal leaves out."""
    wrap: bool = False
    """Whether the texts of a first column go on below in a narrow terminal instead of being shortened."""

    @property
    def title(self) -> str:
        """The head with the side on which its numbers hold."""
        return f"{self.head}\u00a0{SIGNS[self.side]}" if self.side is not None else self.head

    @property
    def is_number(self) -> bool:
        """Whether the cells are numbers, which are aligned at their right."""
        return self.kind != "text"

    def text(self, cell: Cell) -> str:
        """A cell as it is printed everywhere.

        Examples
        --------
        >>> Column("ECE", "estimate").text(0.03978), Column("ECE", "bound", "upper").text(0.03971)
        ('0.0398', '0.0398')
        >>> Column("samples", "count").text(12_000), Column("ECE", "bound", "upper").text(None)
        ('12,000', '–')
        """
        if cell is None:
            return NOTHING
        if isinstance(cell, str):
            return cell
        if isinstance(cell, HasText):
            return minus(cell.text)
        if isinstance(cell, tuple):
            return between(*cell, 4)
        return minus(_WRITTEN[self.kind](cell, cast("str", self.side)))


# A bound or a level without a side cannot be rounded safely, which is an error.
_WRITTEN: Mapping[str, Callable[[float, str], str]] = {
    "text": lambda value, _: f"{value:g}",
    "count": lambda value, _: f"{int(value):,}",
    "estimate": lambda value, _: number(value),
    "brief": lambda value, _: brief(value),
    "p": lambda value, _: p_value(value),
    "bound": lambda value, side: "undefined" if math.isnan(value) else round_outward(value, side),
    "level": lambda value, side: short_text(value, side),
    "percent": lambda value, _: "undefined" if math.isnan(value) else f"{100 * value:.1f}",
    "interval": lambda value, _: number(value),
}


@dataclass(frozen=True)
class Heading:
    """A row of a table that says what the rows below are about."""

    text: str


@dataclass(frozen=True)
class Table:
    """Rows below columns."""

    columns: Sequence[Column]
    """Columns; the first heads each row."""
    rows: Sequence[Sequence[Cell] | Heading]
    """Cells in the columns' order, or a :class:`Heading`."""
    caption: str = ""
    """What the table shows."""
    note: str = ""
    """A sentence below it."""
    fit: str = "drop"
    """What a narrow terminal does: "drop" columns by their priority, or "split" the table into several below each
    other, with the first column in each."""
    choice: tuple[str, Mapping[int, int]] | None = None
    """Key of a :class:`Choice` and, by the place of a row, the frame that belongs to it: the row stands out while that
    frame is chosen."""
    most: int = 200
    """Rows that are shown; the others are only in the numbers for machines."""

    def texts(self) -> list[list[str] | Heading]:
        """Every cell as it is printed, without the rows beyond ``most``."""
        return [
            row
            if isinstance(row, Heading)
            else [column.text(cell) for column, cell in zip(self.columns, row, strict=True)]
            for row in self.rows[: self.most]
        ]

    @property
    def rest(self) -> str:
        """A sentence about rows that are not shown; empty when all are."""
        left = len(self.rows) - self.most
        return f"{left:,} further row{'s are' if left > 1 else ' is'} in the JSON only." if left > 0 else ""


@dataclass(frozen=True)
class Text:
    """A paragraph. Looks are "plain", "note" (smaller), "warning" and "code"."""

    text: str
    look: str = "plain"


@dataclass(frozen=True)
class Listing:
    """Sentences, each on a line of its own; those beyond ``most`` are only in the numbers for machines."""

    items: Sequence[str]
    most: int = 200


@dataclass(frozen=True)
class Facts:
    """Names and what they stand for, such as settings."""

    pairs: Sequence[tuple[str, str]]
    caption: str = ""


@dataclass(frozen=True)
class KeyNumber:
    """One number in large type: what it is, its text, and remarks below it."""

    name: str
    text: str
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class KeyNumbers:
    """A few numbers in large type."""

    numbers: Sequence[KeyNumber]
    note: str = ""


@dataclass(frozen=True)
class Claim:
    """One claim: a sentence with its number, then its probability, its assumptions and its settings."""

    kind: str
    sentence: str
    value: str = ""
    probability: str = ""
    assumptions: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    terms: Table | None = None
    meaning: str = ""

    @classmethod
    def of(cls, claim: Any, what: str, *, over: str = "", meaning: str = "", settings: bool = True) -> Claim:
        """A claim of the library as a block."""
        relation = relation_of(claim)
        text = text_of(claim)
        sentence = " ".join(filter(None, (what, "is", relation, text, over))) + "."
        terms = isinstance(claim, Bound) and claim.terms
        return cls(
            kind_of(claim),
            sentence,
            f"{relation} {text}".strip(),
            probability_of(claim),
            assumptions_of(claim),
            settings_of(claim) if settings else {},
            terms_table(claim) if terms else None,
            meaning,
        )

    @classmethod
    def judged(cls, one: Judgement) -> Claim:
        """The claim that a requirement was held against, with the number that decided."""
        made = cls.of(one.claim, "")
        sure = {"probability": f"{capital(one.remark[2:].partition(';')[0])}."} if one.judged_on == "interval" else {}
        return replace(made, sentence=one.statement, value=one.found, **sure)

    def judged_as(self, one: Judgement) -> Claim:
        """The same claim with the number that decided: the end of its interval, or as many digits as show it."""
        said = text_of(one.claim)
        if one.judged_on == "interval" or said not in self.value:
            return type(self).judged(one)
        value, sentence = (each.replace(said, one.number) for each in (self.value, self.sentence))
        return replace(self, value=value, sentence=sentence)


def kind_of(claim: Any) -> str:
    """What a claim is, in a word or two: the kinds never convert into each other."""
    kinds = {"Estimate": Estimate, "Bound": Bound, "Certificate": Certificate}
    return next((name for name, kind in kinds.items() if isinstance(claim, kind)), "Worst case")


def text_of(claim: Any) -> str:
    """The claim's number as it stands in a sentence and in large type: a share in percent."""
    if isinstance(claim, Estimate) and not is_share(claim.name):
        return p_value(claim.value) if is_p_value(claim.name) else number(claim.value)
    return claim_text(claim)


def cell_of(estimate: Estimate) -> Cell:
    """The number of an estimate in a table, whose column writes it; p-values are rounded up."""
    return text_of(estimate) if is_p_value(estimate.name) else float(estimate.value)


def relation_of(claim: Any) -> str:
    """How the number is to be read: "at most", "at least", or nothing for an estimate."""
    if isinstance(claim, Estimate) or math.isnan(claim.value):
        return ""
    side = getattr(claim, "side", None) or {"highest": "upper", "lowest": "lower"}[claim.extreme]
    return "at most" if side == "upper" else "at least"


def probability_of(claim: Any) -> str:
    """How often a claim may fail, and over what."""
    if isinstance(claim, Bound | TwoSidedBound):
        return f"{like_these(claim.delta, claim.n)}."
    if isinstance(claim, Certificate):
        if not claim.ledger.spent:
            return f"Nothing is random: {'it holds if its assumptions do' if claim.assumptions else 'it always holds'}."
        return f"{sure_text(claim.ledger.spent)}, over the noise."
    if isinstance(claim, Estimate):
        return "An estimate from these samples, not a guarantee about others."
    reached = getattr(claim, "extreme", None) is not None and claim.lower_end in (None, claim.value)
    return f"{'Exact' if reached else 'Holds'} where every confidence lies inside its interval and {SAME}."


def settings_of(claim: Any) -> dict[str, str]:
    """The settings of a claim as texts; levels are rounded to the safe side."""
    return settings_texts(getattr(claim, "settings", {}))


def terms_table(bound: Bound) -> Table:
    """What a bound adds up to, each term rounded in the bound's own direction."""
    return Table(
        (Column("term"), Column("value", "bound", bound.side)),
        [
            (term, share_text(value, bound.side) if is_share(bound.name) else value)
            for term, value in bound.terms.items()
        ],
        "Terms of the bound",
    )


@dataclass(frozen=True)
class Figures:
    """Charts, and blocks ``beside`` them, next to each other where there is room."""

    charts: Sequence[Chart]
    note: str = ""
    beside: Sequence[Block] = ()


@dataclass(frozen=True)
class Choice:
    """Several prepared states of which one is shown, chosen with a slider, or of a few with a switch.

    Nothing is computed when it moves.
    """

    key: str
    label: str
    names: Sequence[str]
    start: int
    frames: Sequence[Sequence[Block]]
    switch: bool = False


def frames_of(count: int, start: int, most: int = 41) -> list[int]:
    """Which of many states get a frame of a :class:`Choice`: evenly spread, always first, last and ``start``."""
    if count <= most:
        return list(range(count))
    spread = {round(place * (count - 1) / (most - 2)) for place in range(most - 1)}
    return sorted({int(place) for place in spread} | {start})


@dataclass(frozen=True)
class Details:
    """Blocks that open on demand; on paper they are open."""

    summary: str
    blocks: Sequence[Block]


Block: TypeAlias = "Text | Listing | Facts | KeyNumbers | Claim | Table | Chart | Figures | Choice | Details"


Blocks: TypeAlias = "Block | Iterable[Blocks] | None"


def flat(blocks: Blocks) -> list[Block]:
    """Blocks one after the other: of lists what is in them, of None nothing."""
    if blocks is None:
        return []
    return [each for part in blocks for each in flat(part)] if isinstance(blocks, Iterable) else [blocks]


@dataclass(frozen=True, init=False)
class Section:
    """Blocks under a heading; None stands for a block that is not there, and a report drops an empty section.

    One that is ``pictured`` has what a page shows beside its answer: texts and figures have it here, a page only there.
    """

    title: str
    blocks: Sequence[Block]
    brief: bool
    folded: bool
    pictured: bool

    def __init__(
        self, title: str, blocks: Blocks, brief: bool = False, folded: bool = False, pictured: bool = False
    ) -> None:
        vars(self).update(title=title, blocks=flat(blocks), brief=brief, folded=folded, pictured=pictured)


def _as_share_too(text: str) -> tuple[str, ...]:
    """A number as it is printed, and one in percent also as a share: a requirement may be in percent."""
    try:
        return (text, f"{Decimal(text.removesuffix('%')).scaleb(-2):f}") if text.endswith("%") else (text,) * bool(text)
    except InvalidOperation:
        return (text,)


@dataclass(frozen=True)
class Report:
    """What is said about one result.

    Examples
    --------
    >>> report = Report("How many?", [Claim("Estimate", "There are 3.", "3")], [Section("More", [Text("None.")])])
    >>> print(report.to_text(width=60).splitlines()[0])
    How many?
    """

    title: str
    """What was asked."""
    headline: Sequence[Block]
    """The answer: a claim, and at most three sentences; with an ``answer`` what stands right below it."""
    sections: Sequence[Section] = ()
    """What a reader looks at next."""
    appendix: Sequence[Section] = ()
    """Proofs, settings and near-duplicates, folded on a page."""
    source: str = ""
    description: str = ""
    """Where the numbers come from: a name, and a line about it."""
    notes: Sequence[str] = ()
    """What limits the answer; small print below the sections."""
    data: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    """The numbers for machines, kept inside a page; ``smaller`` gives less of them, with a sentence about what was left
    out, where all would make the page too large."""
    smaller: Sequence[Callable[[], tuple[str, Mapping[str, Any]]]] = field(default=(), repr=False)
    about: Mapping[str, str] = field(default_factory=dict[str, str])
    """Who and what, optional: model, version, owner, data, period and whatever else a team needs."""
    verdict: Verdict | None = None
    """Whether requirements are met, if there are any."""
    provenance: Provenance | None = None
    """How to make the report again."""
    answer: Answer | None = None
    """Sentences that stand first."""
    picture: Sequence[Block] = ()
    """What is seen beside them; sections that have the same are ``pictured``."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "headline", flat(self.headline))
        for part in ("sections", "appendix"):
            object.__setattr__(self, part, [section for section in getattr(self, part) if section.blocks])

    @property
    def below_answer(self) -> list[Block]:
        """The headline without what the answer says: its sentences, and assumptions that stand beside it."""
        told = [] if self.answer is None else [each.text for each in self.answer]
        rests, left = set(() if self.answer is None else self.answer.assumptions), list[Block]()
        for block in self.headline:
            if isinstance(block, Claim):
                numbers = _as_share_too(block.value.rpartition(" ")[2])
                said = any(block.sentence == each or any(f" {one} " in each for one in numbers) for each in told)
                beside = () if rests >= {*block.assumptions} else block.assumptions
                left.append(replace(block, sentence="" if said else block.sentence, assumptions=beside))
            elif not (isinstance(block, Text) and block.text in told):
                left.append(block)
        return left

    @property
    def not_given(self) -> list[str]:
        """What a validator asks for, and nobody has said; nothing on a page of facts, which is about no model."""
        if self.answer is None or not any(each.word for each in self.answer):
            return []
        asked = _ASKED if self.verdict is not None else _ASKED[:-1]
        return [name for name in asked if name not in self.about]

    def of(self, **changes: Any) -> Report:
        """The same report with other fields."""
        return replace(self, **changes)

    def for_page(self) -> Report:
        """The report without the sections that a page shows as its picture, where it has an answer to stand beside."""
        if not (self.answer and self.picture):
            return self
        return replace(self, sections=[each for each in self.sections if not each.pictured])

    def to_html(self) -> str:
        """One page that is complete in itself."""
        from certcal.report.html import page

        return page(self)

    def to_text(self, *, width: int = 100, full: bool = False, ascii_only: bool = False, diagrams: bool = True) -> str:
        """As in a terminal without colours: the brief sections, or everything."""
        from certcal.report.terminal import as_text

        return as_text(self, width=width, full=full, ascii_only=ascii_only, diagrams=diagrams)

    def charts(self) -> list[Chart]:
        """Every chart, in its order; of a choice those of its first state."""
        return [each for each in self._blocks(*self.sections, *self.appendix) if isinstance(each, Chart)]

    def tables(self) -> list[Table]:
        """Every table outside of the appendix, in its order."""
        return [each for each in self._blocks(*self.sections) if isinstance(each, Table)]

    def _blocks(self, *sections: Section) -> Iterator[Block]:
        return (part for each in (Section("", self.headline), *sections) for b in each.blocks for part in _inside(b))

    def plot(self) -> Any:
        """The charts of the sections as one matplotlib figure."""
        from certcal.report.mpl import draw

        return draw(self.charts())

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the report: a page (.html), a text (.txt), tables (.md, .tex) or a figure (.png, .svg, .pdf).

        Parameters
        ----------
        path
            Where to; its ending decides the form.
        force
            Replace an existing file.
        """
        from certcal._base.files import write_bytes

        target = Path(path)
        form = {".htm": ".html"}.get(target.suffix.lower(), target.suffix.lower())
        if form not in _FORMS:
            raise InputError(f"{target}: choose one of the endings {', '.join(_FORMS)}")
        write_bytes(target, self.to_bytes(form), force=force)
        return target

    def to_bytes(self, form: str) -> bytes:
        """The content of a file that ends in ``form``: .html, .txt, .md, .tex, .png, .svg or .pdf."""
        if form in (".md", ".tex"):
            from certcal.report.tables import tables_as

            return tables_as(form, self.tables()).encode(errors="backslashreplace")
        if form in (".html", ".txt"):
            text = self.to_html() if form == ".html" else f"{self.to_text(full=True)}\n"
            return text.encode(errors="backslashreplace")
        from certcal.report.mpl import figure_bytes

        return figure_bytes(self.plot(), form.lstrip("."))

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        from certcal.report.html import notebook_card

        return notebook_card(self)


def left_out(what: str, rest: Callable[[], Mapping[str, Any]]) -> Callable[[], tuple[str, Mapping[str, Any]]]:
    """One of a report's ``smaller``: what is too much for a page, and how the rest is made when it is."""
    return lambda: (f"{what} are too many to be kept in this page; the JSON inside it leaves them out.", rest())


def without(value: Any, key: str) -> Any:
    """Plain values without the entries of one name, however deep they are."""
    if isinstance(value, dict):
        entries = cast("dict[str, Any]", value).items()
        return {name: without(entry, key) for name, entry in entries if name != key}
    return [without(entry, key) for entry in cast("list[Any]", value)] if isinstance(value, list) else value


def _inside(block: Block) -> Iterator[Block]:
    """A block, or those it is made of; of a choice those of its first state."""
    match block:
        case Choice():
            parts = block.frames[block.start]
        case Details():
            parts = block.blocks
        case Figures():
            parts = block.charts
        case _:
            yield block
            return
    for part in parts:
        yield from _inside(part)
