"""Reports in a terminal: readable without colour, from 60 columns on, and in ASCII where nothing else can be shown."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from itertools import pairwise
from typing import IO, NamedTuple, NoReturn

from rich import box
from rich.cells import cell_len, set_cell_size
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from certcal._base.text import printable, to_ascii
from certcal.report import document
from certcal.report.charts import Axis, Chart, TextBars, TextRanges
from certcal.report.provenance import Provenance
from certcal.report.scale import Scale
from certcal.result import Answer, Sentence
from certcal.verdict import Verdict

# First columns are clipped to this many cells, and to fewer where space is short.
_NAME, _INTERVAL_NAME, _SHORT_NAME = 40, 34, 24
# Other columns of text may be wrapped down to this width, heads over numbers to the next.
_WRAPPED, _HEAD = 20, 16
_LONGEST_BAR, _SHORTEST_BAR = 60, 10
# Between two columns.
_GAP = 2
_BLANK = Text("")
_COLOURS = {"met": "green", "not met": "red", "not shown": "yellow"}
_TAGS = {"shown": "bold green", "seen": "bold yellow", "next": "bold cyan"}
# A scale's line, interval, estimate and limit, where anything can be shown and in ASCII.
_SCALE = {False: "─━●┃", True: "-=o|"}
# What stands out, where it can be bold and where it cannot.
_BOLD, _STARRED = "In bold", "With a *"


class _Signs(NamedTuple):
    """What bars are made of, what stands for a clipped middle, and the lines of tables."""

    bar: str
    short: str
    beyond: str
    mark: str
    line: str
    point: str
    dots: str
    frame: box.Box


_UNICODE = _Signs("█", "░", "▓", "┃", "─", "●", "…", box.SIMPLE)
_ASCII = _Signs(
    "#", ".", "+", "|", "-", "o", "...", box.Box("    \n    \n -- \n    \n    \n -- \n    \n    \n", ascii=True)
)


class TerminalConsole(Console):
    """A console for which a reader that goes away is the caller's business, not a reason to exit."""

    def on_broken_pipe(self) -> NoReturn:
        """Pass the error on."""
        raise BrokenPipeError


def make_console(file: IO[str], width: int | None = None, *, plain: bool = False) -> Console:
    """A console for reports: nothing in a text is markup, and a closed pipe raises BrokenPipeError."""
    return TerminalConsole(
        file=file,
        width=width,
        height=None if width is None else 25,  # with only one of both, dumb terminals are taken to have 80 columns
        color_system=None if plain else "auto",
        force_jupyter=False,
        highlight=False,
        markup=False,
        emoji=False,
    )


def render(report: document.Report, console: Console, *, full: bool = False, diagrams: bool = True) -> None:
    """Print a report."""
    plain = console.color_system is None
    page = _Page(console.width, ascii_only=console.options.ascii_only, full=full, diagrams=diagrams, plain=plain)
    for part in page.report(report):
        console.print(part, soft_wrap=isinstance(part, Text) and part.no_wrap)  # what is to be copied stays in one line


def as_text(
    report: document.Report, *, width: int = 100, full: bool = False, ascii_only: bool = False, diagrams: bool = True
) -> str:
    r"""A report as :func:`render` prints it, without colours."""
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii" if ascii_only else "utf-8", newline="\n")
    render(report, make_console(file, width, plain=True), full=full, diagrams=diagrams)
    file.seek(0)
    return "\n".join(line.rstrip() for line in file.read().split("\n")).rstrip("\n")


class _Page:
    """Blocks as renderables for one console. Every text goes through ``clean``."""

    def __init__(self, width: int, *, ascii_only: bool, full: bool, diagrams: bool, plain: bool) -> None:
        self.width, self.ascii_only, self.full, self.diagrams = width, ascii_only, full, diagrams
        self.plain = plain  # nothing can be bold: what is to stand out has a star
        self.signs = _ASCII if ascii_only else _UNICODE

    def clean(self, text: str) -> str:
        text = printable(text.replace("\u00a0", " "))
        if self.plain and text.startswith(_BOLD):
            text = _STARRED + text.removeprefix(_BOLD)
        return to_ascii(text) if self.ascii_only else text

    def words(self, text: str) -> list[str]:
        """Pieces between which a head may be wrapped: not at no-break spaces."""
        return [self.clean(word) for word in text.split(" ")]

    def clip_middle_of(self, text: str, most: int) -> str:
        """A text without its middle, for names often differ at their ends."""
        if cell_len(text) <= most:
            return text
        room = max(0, most - len(self.signs.dots))
        start, end = set_cell_size(text, room - room // 2), text[-max(1, room // 2) :]
        while cell_len(end) > room // 2:
            end = end[1:]
        return f"{start}{self.signs.dots}{end}"[:most]

    def line(self, text: str, style: str = "") -> Text:
        return Text(self.clean(text), style)

    def dim(self, *texts: str) -> list[RenderableType]:
        return [self.line(text, "dim") for text in texts if text]

    def bold(self, text: str, title: str = "") -> list[RenderableType]:
        """A heading, unless it repeats the title above it."""
        return [self.line(text, "bold")] if text not in ("", title) else []

    def align_columns(self, rows: Sequence[Sequence[str]], *styles: str, gap: int = _GAP) -> list[RenderableType]:
        grid = Table.grid(padding=(0, gap, 0, 0))
        for style in styles:
            grid.add_column(style=style, overflow="fold")
        for row in rows:
            grid.add_row(*map(self.line, row))
        return [grid] if rows else []

    def bullet_list(self, items: Sequence[str], style: str = "") -> list[RenderableType]:
        return self.align_columns([("-", item) for item in items], style, style, gap=1)

    def report(self, report: document.Report) -> list[RenderableType]:
        parts = self.bold(report.title)
        parts += [self.line(report.source)] if report.source else []
        parts += self.dim(report.description)
        known = [name for name in document.ABOUT if name in report.about]
        parts += self.dim("; ".join(f"{name}: {report.about[name]}" for name in dict.fromkeys([*known, *report.about])))
        parts += self.answer(report.answer, report.verdict)
        sections = [document.Section("", report.below_answer)]
        if self.full:
            origin = [_reproducibility_facts(report.provenance)] if report.provenance is not None else []
            sections += [*report.sections, *report.appendix, *origin]
        else:  # tables of the appendix that are short enough for a terminal come first: numbers before pictures
            sections += [section for section in (*report.appendix, *report.sections) if section.brief]
        for section in sections:
            if blocks := self.blocks(section.blocks, section.title):
                parts += [_BLANK, *self.bold(section.title), *blocks]
        notes = self.dim(*report.notes)
        return [*parts, _BLANK, *notes] if notes else parts

    def verdict(self, verdict: Verdict) -> list[RenderableType]:
        """A sentence with its scale; of several requirements a table, with where it was judged and remarks below."""
        one, rows, notes = verdict.decisive, verdict.table(), self.dim(verdict.note)
        if len(rows) == 1:
            said = self.line(one.sentence, f"bold {_COLOURS[one.outcome]}")
            return [_BLANK, said, *self.scale(Scale.of(one)), *notes]
        grid = Table(box=self.signs.frame, show_edge=False, padding=(0, 1, 0, 0), header_style="bold")
        found = f"found, {verdict.sure}" if verdict.sure else "found"
        for head, ratio in {"verdict": None, "requirement": 2, found: 3, "limit": None}.items():
            grid.add_column(head, no_wrap=head == "verdict", ratio=ratio, overflow="fold")
        for row in rows:
            judged, said = self.line(row.requirement), self.line(row.found)
            for cell, more in ((judged, row.where), (said, verdict.beside(row))):
                cell.append(f"\n{self.clean(more)}" if more else "", "dim")
            grid.add_row(Text(row.verdict, f"bold {_COLOURS[row.verdict]}"), judged, said, self.line(row.limit))
        return [_BLANK, *self.bold(verdict.summary), grid, *notes]

    def scale(self, scale: Scale | None) -> list[RenderableType]:
        """The limits on a line with the interval and the estimate, and what the signs mean."""
        if scale is None:
            return []
        line, span, dot, limit = _SCALE[self.ascii_only]
        room = min(_LONGEST_BAR, self.width) - 1
        places = [round(share * room) for share in scale.interval]
        cells = [span if places[0] <= place <= places[1] else line for place in range(room + 1)]
        for share, sign in (*((each, limit) for each in scale.limits), (scale.estimate, dot)):
            if share is not None:
                cells[round(share * room)] = sign
        return [Text("".join(cells)), *self.dim(f"{limit} {scale.limit_text}   {dot} found {scale.text}")]

    def answer(self, answer: Answer | None, verdict: Verdict | None) -> list[RenderableType]:
        """Sentences behind the word for how much they claim, the first in bold; the verdict; what to do next."""
        judged = [] if verdict is None else self.verdict(verdict)
        if not answer:
            return judged
        findings = [each for each in answer if each.kind != "next"]
        steps, room = [each for each in answer if each.kind == "next"], max(len(each.word) for each in answer)
        commands = [Text(f"  {self.clean(each.command)}", no_wrap=True) for each in answer if each.command]
        parts = [_BLANK, *self.sentences(findings, room), *self.dim(answer.key), *judged]
        parts += [*([_BLANK] if judged and steps else []), *self.sentences(steps, room), *commands]
        for title, items in (("This holds if:", answer.assumptions), ("This does not say:", answer.unsaid)):
            if items and (self.full or items is answer.assumptions):
                parts += [*self.dim(title), *self.bullet_list(items, "dim")]
        return parts

    def sentences(self, sentences: Sequence[Sentence], room: int) -> list[RenderableType]:
        """Sentences behind their words, for which there is so much room; without room they have none."""
        grid = Table.grid(padding=(0, _GAP, 0, 0))
        if room:
            grid.add_column(style="bold", width=room)
        grid.add_column(overflow="fold")
        for place, each in enumerate(sentences):
            tag = [Text(each.word, _TAGS.get(each.kind, ""))] if room else []
            grid.add_row(
                *tag,
                self.line(
                    " ".join(filter(None, (each.text, each.remark))),
                    "bold" if not place and each.kind != "next" else "",
                ),
            )
        return [grid] if sentences else []

    def blocks(self, blocks: Sequence[document.Block], title: str) -> list[RenderableType]:
        parts: list[RenderableType] = []
        previous: document.Block | None = None
        for block in blocks:
            if shown := self.block(block, title):
                together = previous is None or (
                    isinstance(block, document.Text) and isinstance(previous, document.Text)
                )
                parts += shown if together else [_BLANK, *shown]
                previous = block
        return parts

    def block(self, block: document.Block, title: str) -> list[RenderableType]:
        match block:
            case document.Text(text, "code"):
                return [Text(f"  {self.clean(line)}", no_wrap=True) for line in text.split("\n")]
            case document.Text(text, "warning"):
                return self.align_columns([("!", text)], "bold yellow", "yellow", gap=1)
            case document.Text(text, look):
                return [self.line(text, "dim" if look == "note" else "")]
            case document.Listing():
                left = len(block.items) - block.most
                rest = f"{left:,} more {'is' if left == 1 else 'are'} in the JSON only." if left > 0 else ""
                return [*self.bullet_list(block.items[: block.most]), *self.dim(rest)]
            case document.Facts():
                return [*self.bold(block.caption, title), *self.align_columns(block.pairs, "dim", "")]
            case document.KeyNumbers():
                rows = [(each.name, each.text, "; ".join(each.remarks)) for each in block.numbers]
                return [*self.align_columns(rows, "", "bold", "dim"), *self.dim(block.note)]
            case document.Claim():
                return self.claim(block, title)
            case document.Table():
                return self.table(block, title)
            case Chart():
                return self.chart(block, title) if self.diagrams else []
            case document.Figures():
                drawn = self.blocks([*block.charts, *(block.beside if self.full else ())], title)
                return [*drawn, *self.dim(block.note)] if drawn else []
            case document.Choice():
                chosen = self.blocks(block.frames[block.start], title)
                return [*self.bold(f"{block.label}: {block.names[block.start]}"), *chosen] if chosen else []
            case document.Details():
                inside = self.blocks(block.blocks, block.summary) if self.full else []
                return [*self.bold(block.summary), *inside] if inside else []

    def claim(self, claim: document.Claim, title: str) -> list[RenderableType]:
        parts = [self.line(claim.sentence)] if claim.sentence else []
        parts += self.dim(claim.meaning if self.full else "", claim.probability)
        if claim.assumptions:
            parts += [*self.dim("Assumptions:"), *self.bullet_list(claim.assumptions, "dim")]
        if claim.settings and self.full:
            settings = [("", *pair) for pair in claim.settings.items()]
            parts += [*self.dim("Settings:"), *self.align_columns(settings, "", "dim", "dim")]
        return parts if claim.terms is None else [*parts, _BLANK, *self.table(claim.terms, title)]

    def table(self, table: document.Table, title: str) -> list[RenderableType]:
        layout = _Layout(self, table)
        shown, left_out = layout.choose_columns()
        parts = self.bold(table.caption, title)
        for place, columns in enumerate(shown):
            parts += [*([_BLANK] if place else []), layout.draw_table(columns)]
        return [*parts, *self.left_out([table.columns[i].title for i in left_out]), *self.dim(table.rest, table.note)]

    def left_out(self, heads: Sequence[str]) -> list[RenderableType]:
        named = ", ".join(dict.fromkeys(heads))
        said = f"not shown at this width: {named}; a wider terminal or a page (.html) has them"
        return self.dim(said) if heads else []

    def chart(self, chart: Chart, title: str) -> list[RenderableType]:
        """The bars of a chart; where it has none, its numbers, if everything is wanted."""
        parts: list[RenderableType] = []
        if chart.bars is not None:
            parts = self.bars(chart.bars)
        elif chart.numbers is not None and self.full:
            parts = self.table(chart.numbers, chart.title)
        return [*self.bold(chart.title, title), *parts, *self.dim(chart.caption)] if parts else []

    def bars(self, bars: TextBars | TextRanges) -> list[RenderableType]:
        """One line per bar or interval: its name, what is drawn with its mark, and texts behind."""
        names = [self.clean(name) for name in (bars.head[0], *(name for name, *_ in bars.rows))]
        rows = [[self.clean(text) for text in texts] for texts in (bars.head[2:], *(texts for *_, texts in bars.rows))]
        named = min(_SHORT_NAME if isinstance(bars, TextBars) else _INTERVAL_NAME, max(map(cell_len, names)))
        sizes = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
        while (room := self.width - sum(size + _GAP for size in (named, *sizes, 0))) < _SHORTEST_BAR and sizes:
            sizes.pop()
        room = max(1, min(_LONGEST_BAR, room))
        drawn = bars.head[1].replace("{bar}", self.signs.bar * 3).replace("{mark}", self.signs.mark)
        head = _wrap(self.words(drawn), room)
        grid = Table(box=None, show_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
        grid.add_column(Text(self.clip_middle_of(names[0], named)), width=named, vertical="bottom", overflow="fold")
        grid.add_column(Text("\n".join(head)), width=room, vertical="bottom", overflow="fold")
        for text, size in zip(rows[0], sizes, strict=False):
            grid.add_column(Text(text), width=size, justify="right", vertical="bottom", overflow="fold")
        if isinstance(bars, TextBars):
            ticks, pictures = (
                _bar_ticks(room),
                [_bar(length, mark, room, self.signs) for _, length, mark, _ in bars.rows],
            )
        else:
            ticks, pictures = (
                _axis_ticks(bars.axis, room),
                [_range(bars, ends, room, self.signs) for _, ends, _ in bars.rows],
            )
        for name, bar, texts in zip(names[1:], pictures, rows[1:], strict=True):
            shown = map(Text, (self.clip_middle_of(name, named), *texts[: len(sizes)]))
            grid.add_row(next(shown), bar, *shown, style="" if bar else "dim")
        grid.add_row("", ticks, style="dim")
        return [grid, *self.left_out(bars.head[2 + len(sizes) :]), *self.dim(bars.note)]


class _Layout:
    """A table that fits: which columns are shown together, and how wide. No number is ever cut."""

    def __init__(self, page: _Page, table: document.Table) -> None:
        self.page, self.table, self.width = page, table, page.width
        self.rows = [
            page.clean(row.text) if isinstance(row, document.Heading) else [*map(page.clean, row)]
            for row in table.texts()
        ]
        for row, cells in zip(self.rows, table.rows, strict=False) if page.plain else ():
            if not (isinstance(row, str) or isinstance(cells, document.Heading)):
                starred = (isinstance(cell, document.Strong) for cell in cells)
                row[:] = [f"{text}*" if star else text for text, star in zip(row, starred, strict=True)]
        headings = [min(_NAME, cell_len(row)) for row in self.rows if isinstance(row, str)]
        self.heads, self.least, self.most = list[list[str]](), list[int](), list[int]()
        for i, column in enumerate(table.columns):
            words = page.words(column.title)
            if cell_len(" ".join(words)) > 3 * _NAME:
                words = page.clip_middle_of(" ".join(words), 3 * _NAME).split(" ")
            head = next(w for w in range(max(map(cell_len, words)), 4 * _NAME) if len(_wrap(words, w)) <= 3)
            cells = max((cell_len(row[i]) for row in self.rows if not isinstance(row, str)), default=1)
            if i == 0 and headings:
                cells = max(cells + 2, *headings)
            least, most = max(1, cells, min(head, _HEAD)), max(1, cells, head)
            if not column.is_number:
                shortened = i == 0 and not column.wrap
                least, most = (min(most, _SHORT_NAME), min(most, _NAME)) if shortened else (min(most, _WRAPPED), most)
            self.heads.append(words)
            self.least.append(least)
            self.most.append(most)

    def size(self, columns: Sequence[int]) -> int:
        return sum(self.least[i] + _GAP for i in columns) - 1

    def choose_columns(self) -> tuple[list[list[int]], list[int]]:
        """Columns of each table, and columns that are left out."""
        shown = list(range(len(self.least)))
        while self.table.fit == "drop" and self.size(shown) > self.width:
            priority, last = max((self.table.columns[i].priority if i else 0, i) for i in shown)
            if priority == 0:
                break
            shown.remove(last)
        left_out = [i for i in range(len(self.least)) if i not in shown]
        first, *others = shown
        parts = _pack_columns([self.least[i] + _GAP for i in others], self.width - self.size([first]))
        return [[first, *(others[i] for i in part)] for part in parts], left_out

    def widths(self, columns: Sequence[int]) -> dict[int, int]:
        """As wide as columns must be; what is left goes to those that need least of it to show all they have."""
        widths = {i: self.least[i] for i in columns}
        spare = self.width - self.size(columns)
        for i in sorted(columns, key=lambda i: self.most[i] - self.least[i]):
            more = max(0, min(spare, self.most[i] - self.least[i]))
            widths[i] += more
            spare -= more
        for i, keep in zip(columns, (8, 1), strict=False):  # one column beside the first, and too wide: it is folded
            less = max(0, min(-spare, widths[i] - keep))
            widths[i] -= less
            spare += less
        return widths

    def draw_table(self, columns: Sequence[int]) -> Table:
        widths = self.widths(columns)
        grid = Table(box=self.page.signs.frame, show_edge=False, padding=(0, 1, 0, 0), header_style="bold")
        heads = [_wrap(self.heads[i], widths[i]) for i in columns]
        for i, head in zip(columns, heads, strict=True):
            lines = [""] * (max(map(len, heads)) - len(head)) + head
            justify = "right" if self.table.columns[i].is_number else "left"
            grid.add_column(Text("\n".join(lines)), width=widths[i], justify=justify, overflow="fold")
        above, indent = None, ""
        for row, cells in zip(self.rows, self.table.rows, strict=False):
            if isinstance(row, str) or isinstance(cells, document.Heading):
                grid.add_section()
                grid.add_row(Text(str(row), "bold", justify="left"))
                above, indent = None, "  "
                continue
            name = indent + row[0]
            if not (self.table.columns[0].is_number or self.table.columns[0].wrap):
                name = indent + self.page.clip_middle_of(row[0], widths[columns[0]] - len(indent))
            strong = ["bold" if isinstance(cells[i], document.Strong) else "" for i in columns]
            grid.add_row(*map(Text, ["" if row[0] == above else name, *(row[i] for i in columns[1:])], strong))
            above = row[0]
        return grid


def _wrap(words: Sequence[str], width: int) -> list[str]:
    lines: list[str] = []
    for word in words:
        if lines and cell_len(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _pack_columns(sizes: Sequence[int], room: int) -> list[range]:
    """Neighbours that fit side by side, in as few tables as possible, and about as many in each."""
    for count in range(1, len(sizes)):
        ends = [round(i * len(sizes) / count) for i in range(count + 1)]
        parts = [range(a, b) for a, b in pairwise(ends)]
        if all(sum(sizes[i] for i in part) <= room for part in parts):
            return parts
    return [range(i, i + 1) for i in range(len(sizes))] or [range(0)]


def _bar(length: float | None, mark: float | None, room: int, signs: _Signs) -> Text:
    """A bar up to a length, what it lacks or has too much, and the mark."""
    bar = Text()
    if length is None or not math.isfinite(length):
        return bar
    end = round(min(1.0, max(0.0, length)) * room)
    if mark is None or not math.isfinite(mark):
        return bar.append(signs.bar * end, "blue")
    place = min(room - 1, int(max(0.0, mark) * room))
    bar.append(signs.bar * min(end, place), "blue").append(signs.short * (place - end), "red")
    return bar.append(signs.mark, "bold").append(signs.beyond * (end - place - 1), "yellow")


def _range(ranges: TextRanges, ends: tuple[float, float, float], room: int, signs: _Signs) -> Text:
    """An interval with its value, and a mark at the ideal: red where the interval leaves it out."""
    low, value, high = ends
    if not (math.isfinite(low) and math.isfinite(high)):
        return Text()

    def cell(place: float) -> int:
        return min(room - 1, int(ranges.axis.at(place) * room))

    cells = [" "] * room
    cells[cell(low) : cell(high) + 1] = signs.line * (cell(high) + 1 - cell(low))
    cells[cell(ranges.ideal)] = signs.mark
    if math.isfinite(value):
        cells[cell(value)] = signs.point
    return Text("".join(cells), "" if low <= ranges.ideal <= high else "red")


def _axis_ticks(axis: Axis, room: int) -> str:
    """The texts of an axis at their places, as many as do not touch."""
    line = ""
    for place, text in axis.ticks:
        start = min(room - len(text), max(0, int(axis.at(place) * room) - len(text) // 2))
        if start > len(line) or not line:
            line = line.ljust(start) + text
    return line


def _bar_ticks(room: int) -> str:
    """Ticks at fifths of the bar, or only at its ends where they would touch."""
    cells = [" "] * room
    for fifth in range(6) if room >= 20 else (0, 5):
        text = f"{fifth / 5:g}"
        start = min(room - len(text), max(0, round(fifth / 5 * room) - len(text) // 2))
        cells[start : start + len(text)] = text
    return "".join(cells)


def _reproducibility_facts(provenance: Provenance) -> document.Section:
    facts = [("created", provenance.created), *provenance.versions.items()]
    facts += [(f"seed, {name}", str(seed)) for name, seed in provenance.seeds.items()]
    facts += [(name, f"{size:,} bytes, SHA-256 {digest}") for name, size, digest in provenance.inputs]
    facts += [(f"fingerprint, {name}", f"SHA-256 {digest}") for name, digest in provenance.fingerprints.items()]
    command = provenance.command_line
    blocks: list[document.Block] = [] if command is None else [document.Text(command, "code")]
    return document.Section("Reproducibility", [*blocks, document.Facts(facts), document.Listing(provenance.notes)])
