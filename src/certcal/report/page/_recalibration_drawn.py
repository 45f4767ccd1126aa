"""Pictures of a recalibration: the map against the diagonal, and clean against certified Brier scores."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from certcal._html import Child, Raw, element, join, table
from certcal._text import counted
from certcal.calibrators import FrontPoint, Judged, Recalibration
from certcal.calibrators._drawn import MapPoints, confidence_counts, constant_point, map_points
from certcal.claims import round_outward
from certcal.report.numbers import number
from certcal.report.page._axes import Axis, covering, unit
from certcal.report.page._diagrams import counts_of
from certcal.report.page._pieces import figure, scrolling
from certcal.report.page._svg import SERIES, WIDTH, Frame, chart, legend

MOST_FLAT = 60
_MOST_ROWS = 40
NOTHING = "–"
_FINEST = 0.001


def map_figure(found: Recalibration) -> Raw:
    """The map that was asked for with those of the smallest and largest λ, and where held-out confidences lie.

    Parameters
    ----------
    found
        What recalibrating did.
    """
    drawn = [found.chosen, *(line for line in (found.lines[1], found.lines[-1]) if line is not found.chosen)]
    lines = [map_points(line.calibrator) for line in drawn]
    chosen = lines[0]
    held_out = confidence_counts(found)
    inside = WIDTH - 54 - 14
    main = Frame(unit("confidence as it is"), unit("confidence after the map"), top=14, height=round(inside * 0.86))
    below = Frame(main.x, counts_of([held_out]), top=main.bottom + 22, height=52)
    histogram = None
    if held_out is not None:
        floor = [below.y.low] * held_out.count.size
        bars = below.bars(held_out.edges[:-1], held_out.edges[1:], floor, held_out.count, "count")
        histogram = join(below.furniture(), bars)
    picture = chart(
        "map",
        f"The map of {drawn[0].name}",
        _map_in_words(chosen),
        main.furniture(x_axis=held_out is None),
        main.segment((0, 0), (1, 1), "ideal"),
        [
            main.line(each.x.tolist(), each.y.tolist(), place, markers=False)
            for place, each in reversed(list(enumerate(lines)))
        ],
        _flat_marks(main, chosen),
        histogram,
        height=(main if held_out is None else below).bottom + 44,
    )
    keys = [(f"line {place} plain", name_of(line)) for place, line in enumerate(drawn)]
    keys += [("dot blue", "ends of a flat part")] * bool(chosen.flat.size)
    keys += [("ideal", "no change")]
    keys += [("count", "held-out confidences")] * (held_out is not None)
    said = f"Below the diagonal the map lowers a confidence, above it raises one. {_map_in_words(chosen)}"
    return figure(picture, said, legend=legend(*keys), numbers=_map_table(chosen))


def name_of(line: Judged | FrontPoint) -> str:
    """What a map is called; its λ stays on one line."""
    return line.name.replace("λ = ", "λ\u00a0=\u00a0")


def within(radius: str) -> str:
    """Where a worst case is taken, in words; tables may have intervals without a radius."""
    return f"within radius {radius}" if radius else "inside the given intervals"


def _flat_marks(frame: Frame, points: MapPoints) -> Raw:
    """Both ends of each flat part; where there are too many to be told apart, none."""
    if len(points.flat) > MOST_FLAT:
        return Raw("")
    ends, values = points.flat[:, :2], points.flat[:, 2].repeat(2)
    return frame.dots(ends.ravel().tolist(), values.tolist(), f"dot {SERIES[0]}")


def _map_in_words(points: MapPoints) -> str:
    low, high = number(float(points.y[0])), number(float(points.y[-1]))
    if low == high:
        return f"Every confidence becomes {low}."
    said = f"It takes 0 to {low} and 1 to {high}."
    if not len(points.flat):
        return f"{said} No part of it is flat."
    width = float((points.flat[:, 1] - points.flat[:, 0]).max())
    parts = f"{counted(len(points.flat), 'flat part')}, the widest {number(width)} wide"
    return f"{said} It has {parts}: all confidences on a flat part become the same."


def _map_table(points: MapPoints) -> Raw:
    if len(points.flat):
        header = ["flat from", "to", "becomes"]
        rows = [[number(float(value)) for value in row] for row in points.flat[:_MOST_ROWS]]
        rest = len(points.flat) - len(rows)
        caption = "Flat parts of the map" + (f", the first {len(rows)}" if rest else "")
    else:
        header, caption = ["confidence", "becomes"], "The map at some confidences"
        wanted = [place / 20 for place in range(21)]
        rows = [
            [number(x), number(y)] for x, y in zip(points.x.tolist(), points.y.tolist(), strict=True) if x in wanted
        ]
    return scrolling(table(header, rows, caption, numeric=range(len(header))), caption)


def front_figure(found: Recalibration) -> Raw:
    """Clean against certified Brier score of all maps: a line on the samples of the fit, points on the others.

    Parameters
    ----------
    found
        What recalibrating did.
    """
    maps, identity, constant = found.front[1:], found.front[0], constant_point(found)
    marked = [identity, *([constant] if constant is not None else [])]
    everything = [*(point.fitted for point in maps), *(point.held_out for point in (*maps, *marked))]
    if not any(None not in point.held_out for point in maps):
        return element(
            "p", "There is no front to draw: it needs confidences without a perturbation and certified ones."
        )
    several = len(found.radii) > 1
    worst = "certified Brier score" + (" (weighted over radii)" if several else "")
    frame = Frame(
        _axis([clean for clean, _ in everything], "Brier score without a perturbation"),
        _axis([certified for _, certified in everything], worst),
        left=64,
        width=WIDTH - 64 - 24,
        height=290,
    )
    chosen = next(point for point in maps if point.tradeoff == found.tradeoff)
    labelled = [chosen, identity, *([constant] if constant is not None else []), maps[0], maps[-1], *maps]
    picture = chart(
        "front",
        "Clean against certified Brier score",
        _front_in_words(identity, chosen),
        frame.furniture(label_gap=50),
        frame.line(*_xy(point.fitted for point in maps), 0),
        frame.segment(_place(identity), _place(chosen), "cursor"),
        frame.dots(*_xy(point.held_out for point in maps), "dot orange", "square"),
        frame.dots(*_xy([identity.held_out]), "dot ink", "diamond"),
        frame.dots(*_xy([constant.held_out]), "dot green", "triangle") if constant is not None else None,
        _labels(frame, list(dict.fromkeys(labelled)), [pair for pair in everything if None not in pair]),
        height=frame.bottom + 46,
    )
    keys = [
        ("line 0", f"{found.method} on the {counted(found.n_fit, 'sample')} of the fit"),
        ("dot orange square", f"the same maps on the {counted(found.n_held_out, 'held-out sample')}, with their λ"),
        ("dot ink diamond", "as it is, held-out"),
        *([("dot green triangle", "one constant confidence, held-out")] if constant is not None else []),
    ]
    said = (
        "Lower is better under attack, further left is better without one. Certified scores are over certified "
        f"samples. {_front_in_words(identity, chosen)} The dotted line is that step. What counts are the points: the "
        "maps were not fitted to those samples."
    )
    if found.method == "isotonic":
        said += (
            " On the samples of the fit no monotone map is better than a corner of the line in both scores; between "
            "corners the best maps lie on the line or below it."
        )
    return figure(picture, said, legend=legend(*keys), numbers=_front_table((identity, *maps, *marked[1:])))


def _front_in_words(identity: FrontPoint, chosen: FrontPoint) -> str:
    def said(value: float | None, *, worst: bool) -> str:
        return NOTHING if value is None else round_outward(value, "upper") if worst else number(value)

    (clean, worst), (clean_after, worst_after) = identity.held_out, chosen.held_out
    return (
        f"On held-out samples λ\u00a0=\u00a0{chosen.tradeoff:g} takes the certified Brier score from "
        f"{said(worst, worst=True)} to {said(worst_after, worst=True)}, and the clean one from "
        f"{said(clean, worst=False)} to {said(clean_after, worst=False)}."
    )


def _front_table(points: Sequence[FrontPoint]) -> Raw:
    def cells(pair: tuple[float | None, float | None]) -> list[Child]:
        clean, worst = pair
        return [
            NOTHING if clean is None else number(clean),
            NOTHING if worst is None else round_outward(worst, "upper"),
        ]

    header = ["map", "fit: clean", "fit: certified\u00a0≤", "held-out: clean", "held-out: certified\u00a0≤"]
    rows = [[name_of(point), *cells(point.fitted), *cells(point.held_out)] for point in points]
    caption = "Brier scores of each map"
    return scrolling(table(header, rows, caption, numeric=range(1, 5), row_headers=True), caption)


def _axis(values: Iterable[float | None], label: str) -> Axis:
    """An axis near the values, never so fine that rounding would be seen."""
    known = [value for value in values if value is not None]
    middle = (min(known) + max(known)) / 2
    return covering([*known, max(0.0, middle - _FINEST), middle + _FINEST], label, low=None)


def _value(value: float | None) -> float:
    return math.nan if value is None else value


def _xy(pairs: Iterable[tuple[float | None, float | None]]) -> tuple[list[float], list[float]]:
    known = list(pairs)
    return [_value(clean) for clean, _ in known], [_value(worst) for _, worst in known]


def _place(point: FrontPoint) -> tuple[float, float]:
    return _value(point.held_out[0]), _value(point.held_out[1])


# Where a name may stand beside its point: offsets of its anchor, and which end of the text that is.
_BESIDE = ((8, 4, ""), (-8, 4, "end"), (0, -9, "middle"), (0, 18, "middle"), (8, -7, ""), (8, 15, ""), (-8, -7, "end"))
_LETTER, _LINE = 7.4, 14.0  # of the largest type that charts are set in


def _labels(
    frame: Frame, points: Sequence[FrontPoint], markers: Sequence[tuple[float | None, float | None]]
) -> list[Raw]:
    """Names beside held-out points, most important first; one that would cover another name or a marker is left out."""
    across = [(frame.across(_value(x)), frame.up(_value(y))) for x, y in markers]
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in across]
    made: list[Raw] = []
    for point in points:
        text = point.name.removeprefix("one ").removesuffix(" confidence") if point.tradeoff is None else None
        text = f"{point.tradeoff:g}" if text is None else text
        x, y = (place(value) for place, value in zip((frame.across, frame.up), _place(point), strict=True))
        for dx, dy, anchor in _BESIDE:
            width = _LETTER * len(text)
            left = x + dx - (width if anchor == "end" else width / 2 if anchor == "middle" else 0)
            box = (left, y + dy - _LINE + 3, left + width, y + dy + 3)
            inside = frame.left < box[0] and box[2] < frame.left + frame.width + 20
            inside = inside and frame.top - 6 < box[1] and box[3] < frame.bottom
            if inside and not any(_covers(box, other) for other in taken):
                taken.append(box)
                kind = {"class_": anchor} if anchor else {}
                made.append(element("text", text, x=f"{x + dx:.1f}", y=f"{y + dy:.1f}", **kind))
                break
    return made


def _covers(one: tuple[float, float, float, float], two: tuple[float, float, float, float]) -> bool:
    return one[0] < two[2] and two[0] < one[2] and one[1] < two[3] and two[1] < one[3]
