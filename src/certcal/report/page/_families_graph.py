"""Who is better than whom whatever the setting: a graph in rows, the same as a table, and every verdict in words."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from certcal._html import Child, Raw, element, join, table
from certcal._text import counted
from certcal.report._layers import Layers, layers
from certcal.report.page._pieces import beside, clipped, details, figure, note, scrolling, shown
from certcal.report.page._svg import WIDTH, chart, coordinate, legend
from certcal.smoothing.robustness import DominanceGraph, Families

# Boxes in a row, letters in a line of a box, and how large all is.
_MOST, _LETTERS, _LINES = 4, 12, 2
_GAP, _DOWN, _HIGH, _LOW = 10.0, 44.0, 42.0, 26.0
_TOP, _TIP = 4.0, 7.0
_MOST_BOXES, _MOST_SAID = 40, 200
# A verdict read from one side.
_WORDS = {"neither": "crosses", "equal": "same", "unclear": "open"}
_KEYS = {
    "node top": "none is better",
    "node": "another is better",
    "edge firm": "better by shares of votes, beyond the chance of the samples",
    "edge": "higher everywhere, here",
    "edge weak": "nowhere lower, here",
}
_EXPLAINED = (
    "An arrow leads from a family to one that it is better than. At one sigma: the share of samples with p_A of at "
    "least p is nowhere lower and somewhere higher, for every p from one half on; then certified accuracy as read off "
    "these shares is ahead at every radius, number of draws and alpha. By the best over sigma: certified accuracy is, "
    "at every radius, for one number of draws and alpha. Between two families without a way along the arrows, which is "
    "better depends on the setting. All of it is an estimate about these samples, since shares of votes stand for p_A."
)


def graph_part(found: Families) -> Raw:
    """Every graph with its table and its verdicts."""
    made: list[Child] = []
    for place, graph in enumerate(found.graphs):
        words = "best over sigma" if graph.sigma is None else f"sigma {graph.sigma:g}"
        made.append(
            element(
                "div",
                beside(_figure(f"graph-{place}", words, graph), _matrix(words, graph)),
                element("p", shown(_capital(graph.beyond_chance), 2000)) if graph.beyond_chance else None,
                details(
                    "Every verdict in words",
                    element("p", shown(_capital(graph.sentence), 2000)),
                    _listed([pair.sentence for pair in graph.pairs]),
                    _listed([each.sentence for each in graph.chances]) if graph.chances else None,
                ),
                class_="block",
            )
        )
    return join(element("p", _EXPLAINED), made)


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _listed(sentences: Sequence[str]) -> Raw:
    rest = len(sentences) - _MOST_SAID
    said = [element("li", shown(_capital(each), 2000)) for each in sentences[:_MOST_SAID]]
    return join(
        element("ul", said, class_="assumptions"),
        note(f"{counted(rest, 'further pair')} in the JSON only.") if rest > 0 else None,
    )


def _figure(key: str, words: str, graph: DominanceGraph) -> Raw:
    if len(graph.names) > _MOST_BOXES:
        return element("p", f"{len(graph.names):,} families are too many to be drawn; the table has all.")
    placed = layers(graph.names, graph.reduced, _MOST)
    strict, firm = set(graph.strict_edges), set(graph.firm_edges)
    title = f"Who is better whatever the setting, {words}"
    rows = _heights(placed)
    marks: list[Raw] = []
    unit = (WIDTH - 2.0) / max(placed.width, _MOST)
    left = (WIDTH - unit * placed.width) / 2
    for edge, way in placed.ways.items():
        kind = "edge firm" if edge in firm else "edge" if edge in strict else "edge weak"
        marks += _arrow([(left + unit * x, rows[row]) for x, row in way], kind)
    top = set(graph.undominated)
    for name, (x, row) in placed.middles.items():
        marks.append(_box(name, left + unit * x, rows[row], unit - _GAP, on_top=name in top))
    drawn = {"edge firm" if edge in firm else "edge" if edge in strict else "edge weak" for edge in placed.ways}
    keys = [(kind, said) for kind, said in _KEYS.items() if kind in drawn or (kind.startswith("node") and drawn)]
    picture = chart(key, title, _described(graph), marks, height=sum(rows[-1]) + _TOP if rows else 40)
    return figure(picture, None, heading=_capital(words), legend=legend(*keys) if keys else None)


def _described(graph: DominanceGraph) -> str:
    said = [f"{clipped(better, 60)} is better than {clipped(worse, 60)}." for better, worse in graph.reduced]
    return " ".join(said) or "No family is better than another whatever the setting."


def _heights(placed: Layers) -> list[tuple[float, float]]:
    """Top and height of every row: those with a name of two lines are higher."""
    found: list[tuple[float, float]] = []
    top = _TOP
    for row in placed.rows:
        height = _HIGH if any(len(_lines(name)) > 1 for name in row) else _LOW
        found.append((top, height))
        top += height + _DOWN
    return found


def _lines(name: str) -> list[str]:
    """A name in one or two lines."""
    return textwrap.wrap(name, _LETTERS, max_lines=_LINES, placeholder="…", break_on_hyphens=True) or [" "]


def _box(name: str, x: float, place: tuple[float, float], width: float, *, on_top: bool) -> Raw:
    top, height = place
    lines = _lines(name)
    first = top + height / 2 + 4 - 8 * (len(lines) - 1)
    return element(
        "g",
        element("title", name),
        element(
            "rect",
            class_="node top" if on_top else "node",
            x=coordinate(x - width / 2),
            y=coordinate(top),
            width=coordinate(width),
            height=coordinate(height),
            rx=4,
        ),
        [
            element("text", line, x=coordinate(x), y=coordinate(first + 16 * step), class_="middle")
            for step, line in enumerate(lines)
        ],
    )


def _arrow(way: Sequence[tuple[float, tuple[float, float]]], kind: str) -> list[Raw]:
    """A line out of the box above, straight through its lanes, into the box below."""
    (x, (top, height)), *through = way
    drawn, y = f"M{coordinate(x)} {coordinate(top + height)}", top + height
    for step, (across, (down, size)) in enumerate(through):
        last = step == len(through) - 1
        end = down - _TIP + 1 if last else down
        middle = coordinate((y + end) / 2)
        drawn += f"C{coordinate(x)} {middle} {coordinate(across)} {middle} {coordinate(across)} {coordinate(end)}"
        x, y = across, end
        if not last:
            y = down + size
            drawn += f"V{coordinate(y)}"
    tip = f"M{coordinate(x)} {coordinate(y + _TIP - 1)}l-4 -{coordinate(_TIP)}h8Z"
    return [element("path", class_=kind, d=drawn), element("path", class_="tip", d=tip)]


def _matrix(words: str, graph: DominanceGraph) -> Raw:
    """Each family against each: what the row is to the column."""
    verdicts: dict[tuple[str, str], str] = {}
    for pair in graph.pairs:
        both = (_WORDS[pair.verdict],) * 2 if pair.verdict in _WORDS else ("better", "worse")
        one, two = both if pair.verdict != "second" else both[::-1]
        verdicts[pair.first, pair.second], verdicts[pair.second, pair.first] = one, two
    numbers = range(1, len(graph.names) + 1)
    firm = {*graph.firm_edges, *((worse, better) for better, worse in graph.firm_edges)}

    def cell(name: str, other: str) -> Child:
        words = verdicts.get((name, other), "–")
        return element("strong", words) if (name, other) in firm else words

    rows = [
        (shown(f"{place} {name}", 42), *(cell(name, other) for other in graph.names))
        for place, name in zip(numbers, graph.names, strict=True)
    ]
    bold = "; in bold what is beyond the chance of the samples, by shares of votes" if firm else ""
    caption = f"What each family is to the others, {words}{bold}"
    return scrolling(table(["family", *map(str, numbers)], rows, caption, row_headers=True), caption)
