"""What a population of models says about calibration: the words and the layout of a StudyReview.

The study's own charts are small frozen values; :func:`chart` turns each into one of :mod:`certcal.report.charts`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from typing import Any, cast

from certcal._base.checks import InputError
from certcal._base.text import capital, counted
from certcal.claims import short_text
from certcal.lab.study import BoxPlots, Finding, FindingTable, Lines, Matrix, QuestionAnswer, ScatterPlot, StudyReview
from certcal.report import charts as drawn
from certcal.report.charts import MOST_SERIES, Axis, Panel, covering, named_axis, ticks
from certcal.report.document import (
    Block,
    Cell,
    Claim,
    Column,
    Details,
    Facts,
    Figures,
    KeyNumber,
    KeyNumbers,
    Listing,
    Report,
    Section,
    Table,
    Text,
)
from certcal.report.numbers import between, brief

# Findings of nearly as many models as the largest are as telling as that.
_NEARLY = 0.9
# Boxes of one picture, and those of a narrow one; columns of a matrix that stands beside others.
_MOST_BOXES, _NARROW_BOXES, _NARROW_MATRIX = 60, 14, 8
# Lines of one picture on a page.
_TOGETHER = 6
# Numbers of matrices and points that a page keeps, and names beyond which it leaves them out otherwise.
_MOST_KEPT, _LARGE = 30_000, 40
_NUMBER = re.compile(r"[-+−]?[\d.,]*\s?%?")

_LEFT_OUT = (
    "The JSON in a page of this study leaves out the cells of large matrices and the single models of scatter plots; a "
    "file of JSON has them."
)


def view(found: StudyReview) -> Report:
    """The report of a review."""
    level = short_text(found.settings.get("level", 0.95), "lower")
    claim = Claim(
        "Estimate",
        found.top()[0],
        probability=f"Intervals ({level}) show how a number would vary with other models of the kind.",
    )
    sections = [Section("Overview", _overview(found, level), brief=True)]
    sections += [Section(_subject(each), _answer(found, each, level), brief=True) for each in found]
    return Report(
        "What do these models say about calibration?",
        [claim, *(Text(f"Caution: {each}", "note") for each in found.cautions)],
        sections,
        _appendix(found),
        found.source,
        found.description,
        _notes(found, level),
        data=_without_large_charts(found.to_dict()) if _is_large(found) else {},
    )


def charts(found: StudyReview) -> Sequence[drawn.Chart]:
    """The first chart of each answer; without any, the first matrix of all measurements."""
    every = [[each for each in answer.charts if not isinstance(each, FindingTable)][:1] for answer in found]
    firsts = [chart(_split_lines(each)[0]) for some in every for each in some]
    return firsts or [chart(each) for each in found.charts if isinstance(each, Matrix)][:1]


def leading_findings(findings: Sequence[Finding], most: int) -> list[Finding]:
    """Some findings, in their order: those of all models before those of parts of them."""
    largest = max((each.n for each in findings), default=0)
    order = sorted(range(len(findings)), key=lambda place: (findings[place].n < _NEARLY * largest, place))
    return [findings[place] for place in sorted(order[:most])]


def _subject(answer: QuestionAnswer) -> str:
    return f"{answer.number} {answer.name}" if answer.name else f"Question {answer.number}"


def _overview(found: StudyReview, level: str) -> list[Block]:
    numbers = [KeyNumber("models", f"{found.models:,}"), KeyNumber("data sets", f"{len(found.datasets):,}")]
    numbers.append(KeyNumber("failed rows", f"{found.failed:,}", ("left out",) if found.failed else ()))
    firsts = [(_subject(each), number) for each in found for number in leading_findings(each.findings, 1)]
    columns = (Column("question"), Column("finding"), Column("value", "brief"), Column(f"{level} interval", "interval"))
    rows = [(subject, each.name, each.value, between(each.low, each.high)) for subject, each in firsts]
    unanswered = [_subject(each) for each in found if not each.findings]
    note = f"Not answered for these models: {', '.join(unanswered)}." if unanswered else ""
    return [KeyNumbers(numbers), Table(columns, rows, "One number per question", note)]


def _answer(found: StudyReview, answer: QuestionAnswer, level: str) -> list[Block]:
    earlier = {each for other in found.answers[: found.answers.index(answer)] for each in other.cautions}
    cautions = [each for each in answer.cautions if each not in {*earlier, *found.cautions}]
    blocks: list[Block] = [Text(answer.question), *(Text(each) for each in _paragraphs(found, answer.answer))]
    blocks += [Text(f"Caution: {each}", "note") for each in cautions]
    if answer.findings:
        table = _findings(answer.findings, level)
        blocks.append(Details(f"All numbers ({len(answer.findings):,})", [table]))
    # Of several data sets the first one is drawn at once; tables are always shown.
    later = tuple(f"{name}: " for name in found.datasets[1:])
    folded = [each for each in answer.charts if each.title.startswith(later) and not isinstance(each, FindingTable)]
    blocks += _chart_blocks([each for each in answer.charts if each not in folded])
    return [*blocks, *([Details(f"Other data sets ({len(folded)})", _chart_blocks(folded))] if folded else [])]


def _paragraphs(found: StudyReview, text: str) -> list[str]:
    """The sentences of an answer, in a paragraph for each data set that they begin with."""
    start = rf"On (?:{'|'.join(map(re.escape, found.datasets))})(?=[ ,:])" if found.datasets else "$."
    made: list[str] = []
    for part in re.split(rf"(?<=[.)])\s+(?={start})|\n+", text):
        about = re.match(start, part)
        if made and about is not None and made[-1].startswith(about[0]):
            made[-1] += f" {part}"
        elif part.strip():
            made.append(part)
    return made


def _findings(findings: Sequence[Finding], level: str) -> Table:
    columns = (
        Column("finding", wrap=True),
        Column("value", "brief"),
        Column(f"{level} interval", "interval"),
        Column("models", "count"),
    )
    rows = [
        (f"{each.name} ({each.note})" if each.note else each.name, each.value, between(each.low, each.high), each.n)
        for each in findings
    ]
    return Table(columns, rows, most=10_000)


def _appendix(found: StudyReview) -> list[Section]:
    published = [(_subject(each), each.published) for each in found if each.published]
    matrices = [each for each in found.charts if isinstance(each, Matrix)]
    others = [each for each in found.charts if not isinstance(each, Matrix)]
    further = [Details(each.title, [chart(each)]) for each in matrices[1:]]
    settings = [
        (name.replace("_", " ").capitalize(), _setting(value))
        for name, value in found.settings.items()
        if value is not None
    ]
    parts: list[tuple[str, Sequence[Block]]] = [
        ("Findings of the benchmark study", [Facts(published)] if published else []),
        ("All measurements", [*_chart_blocks([*others, *matrices[:1]]), *further]),
        ("Claims in full", [Listing([each.sentence for each in found.claims()], 1000)] if found.claims() else []),
        ("Settings", [Facts(settings)] if settings else []),
    ]
    return [Section(title, blocks) for title, blocks in parts if blocks]


def _setting(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_setting, value)) or "none"  # pyright: ignore[reportUnknownArgumentType]
    return f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else str(value)


def _notes(found: StudyReview, level: str) -> list[str]:
    resamples, seed = found.settings.get("resamples"), found.settings.get("seed")
    how = (
        f"Intervals: {level}, bootstrap over models, {resamples:,} resamples, seed {seed}; estimates, not guarantees."
        if resamples
        else ""
    )
    return [how or "Estimates, not guarantees.", *([_LEFT_OUT] if _is_large(found) else [])]


def _is_large(found: StudyReview) -> bool:
    """Whether matrices and points are too many for a page to keep them as JSON, too."""
    every = [*found.charts, *(each for answer in found for each in answer.charts)]
    size = sum(
        each.values.size if isinstance(each, Matrix) else len(each.x) if isinstance(each, ScatterPlot) else 0
        for each in every
    )
    return size > _MOST_KEPT


def _without_large_charts(value: Any) -> Any:
    """A document without the cells of large matrices and the single models of large scatter plots."""
    if isinstance(value, list):
        return [_without_large_charts(each) for each in value]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(value, dict):
        return value
    entry = cast("dict[str, Any]", value)
    many = isinstance(entry.get("names"), list) and len(entry["names"]) > _LARGE
    left_out = ({"values"} if "method" in entry else {"x", "y", "names", "colour"}) if many else set[str]()
    return {key: _without_large_charts(each) for key, each in entry.items() if key not in left_out}


def _chart_blocks(given: Sequence[Matrix | BoxPlots | ScatterPlot | Lines | FindingTable]) -> list[Block]:
    """Charts in their order: narrow ones beside each other, wide ones and tables by themselves."""
    blocks: list[Block] = []
    parts = [part for each in given for part in _split_lines(each)]
    for wide, members in groupby(parts, _is_wide):
        if wide:
            blocks += [table(each) if isinstance(each, FindingTable) else chart(each) for each in members]
        else:
            blocks.append(_figures([chart(each) for each in members if not isinstance(each, FindingTable)]))
    return blocks


def _figures(some: Sequence[drawn.Chart]) -> Figures:
    """Charts beside each other; what is noted of all of them is said once."""
    notes = {each.caption for each in some}
    if len(some) < 2 or len(notes) > 1:
        return Figures(some)
    return Figures([replace(each, caption="") for each in some], notes.pop())


def _is_wide(given: Matrix | BoxPlots | ScatterPlot | Lines | FindingTable) -> bool:
    if isinstance(given, Matrix):
        return len(given.names) > _NARROW_MATRIX
    return len(given.boxes) > _NARROW_BOXES if isinstance(given, BoxPlots) else isinstance(given, FindingTable)


def _split_lines(given: Any) -> list[Any]:
    """Lines in parts that can be told apart; everything else as it is."""
    if not isinstance(given, Lines) or len(given.names) <= _TOGETHER:
        return [given]
    count = math.ceil(len(given.names) / _TOGETHER)
    ends = [len(given.names) * part // count for part in range(count + 1)]
    return [
        replace(
            given,
            title=f"{given.title}, part {part} of {count}",
            names=given.names[start:stop],
            **{name: getattr(given, name)[start:stop] for name in ("values", "low", "high")},
        )
        for part, (start, stop) in enumerate(pairwise(ends), 1)
    ]


def chart(given: Matrix | BoxPlots | ScatterPlot | Lines) -> drawn.Chart:
    """A chart of a review, ready for a page or a figure."""
    if isinstance(given, Matrix):
        return _matrix(given)
    if isinstance(given, BoxPlots):
        return _boxes(given)
    return _points(given) if isinstance(given, ScatterPlot) else _lines(given)


def _join_sentences(*sentences: str) -> str:
    """Sentences one after the other, each with a capital and a full stop."""
    return " ".join(f"{capital(each).rstrip('.')}." for each in sentences if each)


def _matrix(given: Matrix) -> drawn.Chart:
    missing = any(math.isnan(value) for value in given.values.ravel().tolist())
    undefined = "An empty cell is undefined: one of its two columns is constant, or too few models have both"
    return drawn.Chart(
        given.title,
        f"{given.method} rank correlations of {counted(given.n, 'model')}.",
        [drawn.Heatmap(given.names, given.values.tolist())],
        _join_sentences(undefined if missing else "", given.note),
    )


def _boxes(given: BoxPlots) -> drawn.Chart:
    boxes = given.boxes[:_MOST_BOXES]
    five = ("low", "first", "median", "third", "high")
    ends = [value for box in boxes for value in (box.low, box.median, box.high)]
    axis = covering(ends, given.up, low=None if any(value < 0 for value in ends) else 0.0)
    across = named_axis([box.name for box in boxes], given.across)
    marks = [*_zero_line(across, axis), drawn.Boxes(*([getattr(box, name) for box in boxes] for name in five))]
    heads = ("lower end", "1st quartile", "median", "3rd quartile", "upper end")
    columns = [Column(given.across or "name"), Column("models", "count"), *(Column(head, "brief") for head in heads)]
    rows = [[box.name, box.n, *(getattr(box, name) for name in five)] for box in given.boxes]
    more = f"The first {_MOST_BOXES} of {len(given.boxes):,} are drawn" if len(boxes) < len(given.boxes) else ""
    said = "Boxes: middle half and median. Whiskers: last models within 1.5 box heights"
    return drawn.Chart(
        given.title,
        f"{counted(len(boxes), 'distribution')} side by side.",
        [Panel(across, axis, marks, 250)],
        _join_sentences(said, more, given.note),
        Table(columns, rows, given.title),
        "normal" if len(boxes) <= _NARROW_BOXES else "wide",
    )


def _points(given: ScatterPlot) -> drawn.Chart:
    xs, ys = given.x.tolist(), given.y.tolist()
    third = None if given.colour is None else given.colour.tolist()
    across, up = _axis_around(xs, given.across), _axis_around(ys, given.up)
    shades = [""] * len(xs) if third is None else [f", {given.colour_name} {brief(value)}" for value in third]
    texts = [
        f"{name}: {brief(x)}, {brief(y)}{shade}" for name, x, y, shade in zip(given.names, xs, ys, shades, strict=True)
    ]
    points = drawn.Points(xs, ys, 0, names=texts, shade=third, shade_label=given.colour_name)
    return drawn.Chart(
        given.title,
        f"{counted(len(xs), 'model')} as points: {given.up} against {given.across}.",
        [Panel(across, up, [*_zero_line(across, up), points], 270)],
        _join_sentences(given.note),
    )


def _lines(given: Lines) -> drawn.Chart:
    if len(given.names) > MOST_SERIES:
        raise InputError(f"{len(given.names)} lines are too many to tell apart; give at most {MOST_SERIES}")
    xs, values, low, high = list(given.x), given.values.tolist(), given.low.tolist(), given.high.tolist()
    across = _places_axis(xs, given.across)
    ends = () if all(math.isnan(value) for row in low for value in row) else (low, high)
    up = covering([value for rows in (values, *ends) for row in rows for value in row], given.up, low=None)
    marks: list[drawn.Mark] = list(_zero_line(across, up))
    marks += [drawn.Band(xs, low[place], high[place], place) for place in range(len(values))] if ends else []
    marks += [drawn.Line(xs, values[place], place, name) for place, name in enumerate(given.names)]
    columns = [Column(given.across or "at"), *(Column(_count(x), "brief") for x in xs)]
    rows: list[list[Cell]] = []
    for place, name in enumerate(given.names):
        rows.append([name, *values[place]])
        if ends:
            rows.append(["", *map(between, low[place], high[place])])
    return drawn.Chart(
        given.title,
        f"{counted(len(given.names), 'line')} over {given.across}.",
        [Panel(across, up, marks, 250)],
        _join_sentences("Bands are the intervals of the points that they join" if ends else "", given.note),
        Table(columns, rows, f"{given.title}, with intervals" if ends else given.title, fit="split"),
    )


def table(given: FindingTable) -> Table:
    """A table of a review; columns that hold numbers only are aligned as such."""
    columns = [
        Column(head, ("p" if head.startswith("p ") else "brief") if all(map(_is_number, cells)) else "text")
        for head, *cells in zip(given.header, *given.rows, strict=True)
    ]
    rows = [[f"{cell:,}" if isinstance(cell, int) else cell for cell in line] for line in given.rows]
    return Table(columns, rows, given.title, given.note)


def _is_number(cell: str | float) -> bool:
    return not isinstance(cell, str) or _NUMBER.fullmatch(cell) is not None


def _zero_line(across: Axis, up: Axis) -> list[drawn.Mark]:
    """A line at zero where values lie on both sides of it."""
    return [drawn.Segments([(across.low, 0.0, across.high, 0.0)], "zero")] if up.low < 0 < up.high else []


def _axis_around(values: Sequence[float], label: str) -> Axis:
    """An axis around the values; a single one stands in its middle."""
    known = [value for value in values if math.isfinite(value)]
    if known and min(known) == max(known):
        known = [known[0] - 0.1 * (abs(known[0]) or 1), known[0] + 0.1 * (abs(known[0]) or 1)]
    return covering(known, label, low=None)


def _places_axis(xs: Sequence[float], label: str) -> Axis:
    """The axis of the places of lines; logarithmic where they go over about a decade."""
    low, high = min(xs, default=0.0), max(xs, default=1.0)
    if not high > low:
        return Axis(low - 0.5, high + 0.5, ((low, _count(low)),), label)
    if low <= 0 or high < 8 * low:
        return Axis(low, high, ticks(low, high), label)
    axis = Axis(low, high, (), f"{label} (log)", log=True)
    marked: list[tuple[float, str]] = []
    for x in sorted(xs, reverse=True):  # as many ticks as have room for their texts
        if not marked or axis.at(marked[-1][0]) - axis.at(x) > 0.025 * len(_count(x)) + 0.02:
            marked.append((x, _count(x)))
    return replace(axis, ticks=tuple(reversed(marked)))


def _count(value: float) -> str:
    return f"{value:,.0f}" if value % 1 == 0 else f"{value:g}"
