"""What happened against what was predicted, by groups of equal mass: the first picture of a measurement, and its table.

The groups, their limits and the curve are those of the answer beside them (:mod:`certcal.verbs.answers`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from certcal._base.rounding import percent_text, round_outward
from certcal._base.text import capital, counted
from certcal.report.charts import (
    Axis,
    Chart,
    Line,
    Mark,
    Panel,
    Points,
    Segments,
    Words,
    covering,
    logit_axis,
    percent_axis,
    whiskers,
)
from certcal.report.document import Cell, Choice, Column, Strong, Table
from certcal.report.names import wording
from certcal.verbs.answers import percent

if TYPE_CHECKING:
    from certcal.verbs.answers import Diagnosis, ObservedRate

# Where so large a share of the groups is beyond one of these scores, the first axis is one on which they are apart.
_CROWDED, _LOW, _HIGH = 0.3, 0.1, 0.9
# What is held against what, of a binary score and of confidences.
_SCORES, _CONFIDENCES = ("predicted", "observed"), ("claimed", "right")
_SIDES = {1: "too low", -1: "too high", 0: ""}


def rates_choice(found: Diagnosis, task: str) -> Choice:
    """The picture on an axis of log-odds and on one of probabilities."""
    crowded = sum(not _LOW <= each.predicted <= _HIGH for each in found.groups) >= _CROWDED * len(found.groups)
    drawn = [rates_chart(found, task, logit=logit) for logit in (True, False)]
    return Choice("axis", "Axis", ("logit", "probability"), int(not crowded), [[each] for each in drawn], switch=True)


def rates_chart(found: Diagnosis, task: str, *, logit: bool) -> Chart:
    """Groups with their limits, those that are wrong in a shape of their own, the isotonic curve, and where scores are.

    With ``logit`` scores near 0 and 1 are spread out.
    """
    part, (expected, happened) = _part_of(found), _words(task)
    known = [value for each in found.groups for value in (each.predicted, each.observed, each.lower, each.upper)]
    below = f"{expected}{'; a tick per 1% of the samples' if found.quantiles else ''}"
    across, up = (_axis(known, name, logit=logit) for name in (below, happened))
    ends = max(across.low, up.low), min(across.high, up.high)
    marks: list[Mark] = [Segments([(ends[0], ends[0], ends[1], ends[1])], "ideal", "perfect calibration")]
    if found.curve is not None:
        inside = [
            (x, y if up.low <= y <= up.high else math.nan)
            for x, y in zip(*found.curve, strict=True)
            if across.low <= x <= across.high
        ]
        marks.append(Line([x for x, _ in inside], [y for _, y in inside], 0, "isotonic curve", markers=False))
    places, limits = [each.predicted for each in found.groups], [(each.lower, each.upper) for each in found.groups]
    band = f"{percent_text(1 - found.share)} limits, joint"
    marks.append(whiskers(places, [low for low, _ in limits], [high for _, high in limits], band))
    for look, name, some in (
        (0, f"a {part} of the samples", [each for each in found.groups if not each.direction]),
        (1, f"a {part} that is wrong beyond sampling error", _wrong(found)),
    ):
        if some:
            marks.append(Points([each.predicted for each in some], [each.observed for each in some], look, name))
    if wrong := [each for each in _wrong(found) if 0 < each.ratio < math.inf]:
        worst = max(wrong, key=lambda each: abs(each.gap) / (each.predicted if task == "binary" else 1))
        said = _ratio(worst.ratio) if task == "binary" else f"{percent(worst.observed)} {happened}"
        marks.append(Words([worst.predicted], [worst.observed], [said], beside=True))
    panels = [Panel(across, up, marks, 270)]
    if found.quantiles:
        ticks = [(x, 0.0, x, 1.0) for x in found.quantiles if across.low <= x <= across.high]
        panels.append(Panel(across, Axis(0.0, 1.0, (), ""), [Segments(ticks, "edge")], 14))
    return Chart("What happened, and what was predicted", _description(found, task), panels)


def _axis(values: Sequence[float], label: str, *, logit: bool) -> Axis:
    if logit:
        return logit_axis(values, label)
    low = math.floor(10 * min(values)) / 10
    top = covering(values, "", most=1.0).high
    return percent_axis(label, low if low >= 0.4 else 0.0, top)


def _wrong(found: Diagnosis) -> list[ObservedRate]:
    return [each for each in found.groups if each.direction]


def _part_of(found: Diagnosis) -> str:
    return "tenth" if len(found.groups) == 10 and found.quantiles else "group"


def _description(found: Diagnosis, task: str) -> str:
    wrong, (expected, happened) = _wrong(found), _words(task)
    said = [
        f"{counted(len(found.groups), 'group')} by {wording(task).number}, {len(wrong)} wrong beyond sampling error."
    ]
    pairs = [(percent(each.observed), percent(each.predicted)) for each in wrong]
    return " ".join([*said, *(f"{one} {happened} where {other} is {expected}." for one, other in pairs)])


def _words(task: str) -> tuple[str, str]:
    return _SCORES if task == "binary" else _CONFIDENCES


def rates_table(found: Diagnosis, task: str) -> Table:
    """A row per group: predicted, observed, their ratio, or gap, and the limits; wrong ones marked."""
    words, groups, (expected, happened) = wording(task), found.groups, _words(task)
    least = min((each.predicted for each in groups if each.predicted > 0), default=1.0)
    digits = 1 if least >= 0.01 else 2 if least >= 0.001 else 3
    starts = {each.start for each in groups}
    finer = next(
        (more for more in range(digits, 5) if len({f"{100 * edge:.{more}f}" for edge in starts}) == len(starts)), None
    )
    binary = task == "binary"
    columns = [
        Column(words.number, wrap=True),
        *([] if found.quantiles else [Column("samples", "count", priority=1)]),
        Column(expected, "percent"),
        Column(happened, "percent"),
        Column("ratio" if binary else "gap, points", "brief"),
        Column(f"{percent_text(1 - found.share)} limits", "interval"),
        *([Column(f"{words.number} is", priority=2)] if _wrong(found) else []),
    ]
    rows: list[list[Cell]] = []
    for place, each in enumerate(groups):
        told = [f"{100 * value:.{digits}f}%" for value in (each.predicted, each.observed)]
        name = _rank(place, len(groups)) if finer is None else _range(groups, place, finer)
        name = f"exactly {100 * each.predicted:.0f}%" if each.predicted in (0, 1) else name
        told.append(_ratio(each.ratio) if binary else f"{100 * each.gap:+.{digits}f}".replace("-", "−"))
        band = (round_outward(100 * end, side, digits) for end, side in ((each.lower, "lower"), (each.upper, "upper")))
        cells: list[Cell] = [*told, f"{' – '.join(band)}%"]
        cells += [_SIDES[each.direction]] if _wrong(found) else []
        head: Cell = name if len(groups) > 1 else "all"
        if each.direction:
            head, cells[1] = Strong(str(head)), Strong(told[1])
        rows.append([head, *([] if found.quantiles else [each.n]), *cells])
    title = f"By {_part_of(found)}s of the {words.number}" if len(groups) > 1 else capital(f"all {words.number}s")
    note = "In bold: wrong beyond sampling error." if _wrong(found) else "None is wrong beyond sampling error."
    return Table(columns, rows, title, f"{note} The limits hold together.")


def _range(groups: Sequence[ObservedRate], place: int, digits: int) -> str:
    """Between which scores a group lies."""
    low, high = (f"{100 * edge:.{digits}f}" for edge in (groups[place].start, groups[place].end))
    if groups[place].start == groups[place].end:
        return f"{low}%"
    return f"below {high}%" if place == 0 else f"above {low}%" if place == len(groups) - 1 else f"{low} – {high}%"


def _rank(place: int, groups: int) -> str:
    """The name of a group whose scores no reader could tell from its neighbours'."""
    ends = {0: "lowest", groups - 1: "highest"}
    return ends.get(place) or f"{place + 1}{({1: 'nd', 2: 'rd'}).get(place, 'th')}"


def _ratio(ratio: float) -> str:
    if not math.isfinite(ratio):
        return "–"
    return f"{ratio:.1f}×" if ratio < 9.95 else f"{ratio:,.0f}×"
