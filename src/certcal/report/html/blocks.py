"""Blocks of a report as markup, each by a function of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count, groupby
from typing import assert_never

from certcal.report.charts import Chart, Graph, Heatmap, Panel, Points, Stack, legend_of
from certcal.report.document import (
    SIGNS,
    Block,
    Cell,
    Choice,
    Claim,
    Column,
    Details,
    Facts,
    Figures,
    HasText,
    Heading,
    KeyNumbers,
    Listing,
    Picture,
    Strong,
    Table,
    Text,
)
from certcal.report.html.elements import Child, Raw, definition_list, element, join
from certcal.report.html.graph import graph_legend, graph_picture
from certcal.report.html.heatmap import heatmap_picture
from certcal.report.html.markup import SENTENCE, as_markup, breakable, clip_middle, details, note, scrolling, unbroken
from certcal.report.html.png import image
from certcal.report.html.svg import legend, panels_picture, shade_legend, stack_legend, stack_picture, swatch

_KINDS = {"Estimate": "estimate", "Bound": "bound", "Certificate": "certificate", "Worst case": "worst-case"}
_RELATIONS = ("at most ", "at least ")
# Assumptions of a claim that are shown without being asked for: so many, and so many letters.
_MOST_ASSUMPTIONS, _MOST_LETTERS = 2, 200
# Columns that a phone has room for.
_ON_A_PHONE = 5


class Writer:
    """Writes blocks, and numbers what has to be told apart on a page."""

    def __init__(self, blocks: Iterable[Block]) -> None:
        # Tables that follow a choice start where that choice does, wherever on the page it is.
        self._starts = {choice.key: choice.start for choice in _choices(blocks)}
        self._figures, self._tables = count(1), count(1)
        self._sliders: set[str] = set()
        self._level = 3

    def blocks(self, blocks: Sequence[Block], level: int | None = None) -> Raw:
        """Blocks in their order, with headings of a level; neighbouring claims stand side by side."""
        self._level = self._level if level is None else level
        made: list[Child] = []
        for is_claim, members in groupby(blocks, lambda block: isinstance(block, Claim)):
            written = [self._block_element(block) for block in members]
            made.append(element("div", written, class_="cards") if is_claim else written)
        return join(made)

    def _block_element(self, block: Block) -> Child:
        match block:
            case Text():
                return _text_element(block)
            case Listing():
                return _listing_element(block)
            case Facts():
                return _facts_element(block)
            case KeyNumbers():
                return _key_numbers_element(block)
            case Claim():
                return self._claim_element(block)
            case Table():
                return self._table_element(block)
            case Chart():
                return self._chart_element(block)
            case Figures():
                return self._figures_of(block)
            case Choice():
                return self._choice(block)
            case Details():
                return details(as_markup(block.summary), self.blocks(block.blocks))
            case _:
                assert_never(block)

    def _claim_element(self, claim: Claim) -> Raw:
        kind = _KINDS.get(claim.kind, "estimate")
        relation = next((each for each in _RELATIONS if claim.value.startswith(each)), "")
        rests = claim.assumptions
        folded = len(rests) > _MOST_ASSUMPTIONS or sum(map(len, rests)) > _MOST_LETTERS
        listed = (
            join(element("p", "Assumptions", class_="caption"), _listing_element(Listing(rests))) if rests else None
        )
        parts = {
            "assumptions": listed if folded else None,
            "terms": self._table_element(claim.terms) if claim.terms is not None else None,
            "settings": _facts_element(Facts(list(claim.settings.items()), "Settings")) if claim.settings else None,
        }
        names = [name for name, part in parts.items() if part is not None]
        return element(
            "div",
            element("p", element("span", as_markup(claim.kind, 24), class_=f"badge {kind}"), class_="kinds"),
            element(
                "p",
                element("span", relation.strip()) if relation else None,
                element("strong", as_markup(claim.value.removeprefix(relation))),
                class_="value",
            )
            if claim.value
            else None,
            element("p", as_markup(claim.sentence, SENTENCE), class_="sentence") if claim.sentence else None,
            element("p", as_markup(claim.probability, SENTENCE)) if claim.probability else None,
            note(as_markup(claim.meaning, SENTENCE)) if claim.meaning else None,
            None if folded else listed,
            details(_heading_of(names), parts.values()) if names else None,
            class_=f"card {kind}",
        )

    def _table_element(self, table: Table) -> Raw:
        key, frames = table.choice or ("", {})
        wide, extra = len(table.columns), _columns_for_wide_screens(table)

        def row(place: int, cells: Sequence[Cell]) -> Raw:
            made = [
                _cell(column, cell, "row" if first == 0 else None, extra=first in extra)
                for first, (column, cell) in enumerate(zip(table.columns, cells, strict=True))
            ]
            if place not in frames:
                return element("tr", made)
            current = "true" if frames[place] == self._starts.get(key) else None
            return element("tr", made, data_row_of=key, data_frame=frames[place], aria_current=current)

        label = f"{clip_middle(table.caption)} (table {next(self._tables)})".strip()
        made = element(
            "table",
            element("caption", as_markup(table.caption, 600)) if table.caption else None,
            element(
                "thead",
                element(
                    "tr",
                    [
                        element("th", _head_of(each), scope="col", class_=_class_of(each, extra=first in extra))
                        for first, each in enumerate(table.columns)
                    ],
                ),
            ),
            element(
                "tbody",
                [
                    element("tr", element("th", as_markup(each.text), colspan=wide, scope="colgroup"))
                    if isinstance(each, Heading)
                    else row(place, each)
                    for place, each in enumerate(table.rows[: table.most])
                ],
            ),
            class_="told" if _is_told_below(table) else None,
        )
        left_out = ", ".join(table.columns[place].title for place in extra)
        return join(
            scrolling(made, label),
            element("p", f"On a wider screen also: {left_out}.", class_="note narrow") if extra else None,
            note(table.rest) if table.rest else None,
            note(as_markup(table.note, SENTENCE)) if table.note else None,
        )

    def _chart_element(self, chart: Chart, *, keys: bool = True) -> Raw:
        key = f"figure-{next(self._figures)}"
        wide = chart.size in ("medium", "wide")
        pictures = [
            scrolling(each, f"{clip_middle(chart.title)} ({key.replace('-', ' ')}, part {part})") if wide else each
            for part, each in enumerate(_pictures_of_chart(key, chart), 1)
        ]
        return element(
            "figure",
            element(f"h{self._level}", as_markup(chart.title)) if chart.title else None,
            pictures,
            _legends(chart) if keys else None,
            element("figcaption", as_markup(chart.caption, SENTENCE)) if chart.caption else None,
            details("Numbers of this figure", self._table_element(chart.numbers))
            if chart.numbers is not None
            else None,
            class_="wide" if wide or any(isinstance(each, Heatmap) for each in chart.panels) else None,
        )

    def _figures_of(self, figures: Figures) -> Raw:
        """Charts in a row; where all are small and have the same legend, it is written once."""
        small = all(chart.size == "small" for chart in figures.charts)
        legends = {_legends(chart) for chart in figures.charts}
        once = small and len(legends) == 1
        return join(
            element(
                "div",
                [self._chart_element(chart, keys=not once) for chart in figures.charts],
                element("div", self.blocks(figures.beside)) if figures.beside else None,
                class_="figures small" if small else "figures",
            ),
            legends if once else None,
            note(as_markup(figures.note, SENTENCE)) if figures.note else None,
        )

    def _choice(self, choice: Choice) -> Raw:
        """All states, of which one is seen. Of several choices with one key, the first has the slider.

        What a state says first is announced when the slider moves.
        """
        first = choice.key not in self._sliders
        self._sliders.add(choice.key)
        said = [blocks[0].text if blocks and isinstance(blocks[0], Text) else "" for blocks in choice.frames]
        return join(
            (_switch(choice) if choice.switch else _slider(choice, said)) if first else None,
            [
                element(
                    "div",
                    self.blocks(blocks[1:] if first and words else blocks),
                    data_of=choice.key,
                    data_frame=frame,
                    hidden=frame != choice.start,
                )
                for frame, (blocks, words) in enumerate(zip(choice.frames, said, strict=True))
            ],
        )


def _choices(blocks: Iterable[Block]) -> Iterator[Choice]:
    for block in blocks:
        if isinstance(block, Choice):
            yield block
            for frame in block.frames:
                yield from _choices(frame)
        elif isinstance(block, Details | Figures):
            yield from _choices(block.blocks if isinstance(block, Details) else block.beside)


def _pictures_of_chart(key: str, chart: Chart) -> Iterator[Raw]:
    """Panels that follow each other are one picture; everything else is a picture of its own."""
    part = count(1)
    for is_panel, members in groupby(chart.panels, lambda each: isinstance(each, Panel)):
        drawn = list(members)
        if is_panel:
            panels = [each for each in drawn if isinstance(each, Panel)]
            yield panels_picture(f"{key}-{next(part)}", chart.title, chart.description, panels, chart.size)
            continue
        for each in drawn:
            named = (f"{key}-{next(part)}", chart.title, chart.description)
            if isinstance(each, Stack):
                yield stack_picture(*named, each)
            elif isinstance(each, Graph):
                yield graph_picture(*named, each)
            elif isinstance(each, Heatmap):
                yield heatmap_picture(*named, each)


def _legends(chart: Chart) -> Raw:
    entries = [(swatch(mark), label) for mark, label in legend_of(chart.panels)]
    shaded: list[Raw] = []
    for panel in chart.panels:
        if isinstance(panel, Stack):
            entries += stack_legend(panel)
        elif isinstance(panel, Graph):
            entries += graph_legend(panel)
        elif isinstance(panel, Panel):
            shaded += [
                shade_legend(each) for each in panel.marks if isinstance(each, Points) and each.shade is not None
            ]
    return join(legend(entries), shaded)


def _switch(choice: Choice) -> Raw:
    buttons = [
        element(
            "label",
            element(
                "input",
                type="radio",
                name=choice.key,
                value=place,
                checked=place == choice.start,
                data_slider=choice.key,
                autocomplete="off",
            ),
            element("span", as_markup(name)),
        )
        for place, name in enumerate(choice.names)
    ]
    legend_text = element("legend", as_markup(choice.label))
    return element("fieldset", legend_text, buttons, class_="switch", data_needs_script=True, hidden=True)


def _slider(choice: Choice, said: Sequence[str]) -> Raw:
    key = f"{choice.key}-slider"
    names = [clip_middle(name) for name in choice.names]
    control = element(
        "input",
        type="range",
        id=key,
        min=0,
        max=len(names) - 1,
        step=1,
        value=choice.start,
        data_slider=choice.key,
        aria_valuetext=names[choice.start],
        autocomplete="off",
    )
    states = [
        element(
            "span",
            as_markup(words or name, SENTENCE),
            data_of=choice.key,
            data_frame=frame,
            data_name=name,
            hidden=frame != choice.start,
        )
        for frame, (name, words) in enumerate(zip(names, said, strict=True))
    ]
    return join(
        element(
            "div",
            element("label", as_markup(choice.label), for_=key),
            control,
            class_="slider",
            data_needs_script=True,
            hidden=True,
        ),
        element("output", states, for_=key, data_output=choice.key),
    )


# Between several numbers in one cell.
_BETWEEN = " / "


def _columns_for_wide_screens(table: Table) -> list[int]:
    """Columns that a phone leaves out: those of the least priority, where there are more than fit."""
    by_priority = sorted(range(len(table.columns)), key=lambda place: table.columns[place].priority)
    return sorted(place for place in by_priority[_ON_A_PHONE:] if table.fit == "drop" and table.columns[place].priority)


def _class_of(column: Column, *, extra: bool) -> str | None:
    return " ".join(filter(None, ("number" if column.is_number else "", "wide" if extra else ""))) or None


def _head_of(column: Column) -> Raw:
    """What a column shows; on a phone the sign of its side may stand below."""
    side = element("span", f"\u00a0{SIGNS[column.side]}", class_="side") if column.side is not None else None
    return join(breakable(column.head), side)


# Letters of a last column that stands below its row on a phone.
_LONG = 80


def _is_told_below(table: Table) -> bool:
    """Whether the last of several columns has sentences, for which a phone has no room beside the others."""
    last = [row[-1] for row in table.rows if not isinstance(row, Heading) and row]
    return len(table.columns) > _ON_A_PHONE and any(isinstance(each, str) and len(each) > _LONG for each in last)


def _cell(column: Column, cell: Cell, scope: str | None, *, extra: bool) -> Raw:
    if isinstance(cell, Picture):
        content: Child = image(cell.pixels, cell.text, size=64)
    elif isinstance(cell, Strong):
        content = element("strong", as_markup(cell.text, 400))
    else:
        text = column.text(cell)
        written = as_markup if column.is_number else breakable
        content = written(text, 400) if isinstance(cell, str | HasText) else text
        if column.is_number and _BETWEEN in text:  # on a phone they stand below each other
            *parts, last = text.split(_BETWEEN)
            wholes = [
                element("span", as_markup(each, 400), class_="whole") for each in (*(f"{p} /" for p in parts), last)
            ]
            content = join(*(join(" ", each) for each in wholes))
    kind, heads = _class_of(column, extra=extra), scope is not None and cell != ""
    return element("th" if heads else "td", content, scope=scope if heads else None, class_=kind)


def _text_element(block: Text) -> Raw:
    if block.look == "code":
        return element("pre", element("code", unbroken(clip_middle(block.text, 2 * SENTENCE))), tabindex=0)
    kind = block.look if block.look in ("note", "warning") else None
    return element("p", as_markup(block.text, 2 * SENTENCE), class_=kind)


def _listing_element(block: Listing) -> Raw:
    rest = len(block.items) - block.most
    return join(
        element(
            "ul", [element("li", as_markup(each, SENTENCE)) for each in block.items[: block.most]], class_="listing"
        ),
        note(f"{rest:,} further {'entries are' if rest > 1 else 'entry is'} in the JSON only.") if rest > 0 else None,
    )


def _facts_element(block: Facts) -> Raw:
    return join(
        element("p", as_markup(block.caption, 600), class_="caption") if block.caption else None,
        definition_list(
            [(as_markup(name, 80), as_markup(text, SENTENCE)) for name, text in block.pairs], class_="facts"
        ),
    )


def _key_numbers_element(block: KeyNumbers) -> Raw:
    return join(
        element(
            "dl",
            [
                element(
                    "div",
                    element("dt", as_markup(each.name)),
                    element(
                        "dd",
                        element("strong", as_markup(each.text)),
                        [element("span", as_markup(remark, 400)) for remark in each.remarks],
                    ),
                )
                for each in block.numbers
            ],
            class_="key-numbers",
        ),
        note(as_markup(block.note, SENTENCE)) if block.note else None,
    )


def _heading_of(names: Sequence[str]) -> str:
    """Words as a heading: "Assumptions, terms and settings"."""
    *first, last = names
    return (f"{', '.join(first)} and {last}" if first else last).capitalize()
