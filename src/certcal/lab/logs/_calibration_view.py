"""What training methods are also compared by: certified calibration, and certified accuracy at other budgets.

Curves over the radius are drawn here for both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from certcal._base.rounding import minus
from certcal.claims import short_text
from certcal.report.charts import (
    MOST_MARKED,
    MOST_SERIES,
    Axis,
    Chart,
    Line,
    Mark,
    Panel,
    Segments,
    covering,
    falling_steps,
    radii_axis,
    ticks,
)
from certcal.report.document import NOTHING, Block, Cell, Column, Figures, Heading, Table, Text
from certcal.report.numbers import percent_of

if TYPE_CHECKING:
    from certcal.lab.logs import CertifiedCalibration, Comparison
    from certcal.smoothing.robustness import AccuracySteps
    from certcal.worst_case import CertifiedSummary

MOST_DRAWN = 3 * MOST_SERIES
_LOWEST_SKILL = -1.0
_CALIBRATION = (
    "Exact worst cases when every input may be perturbed up to the radius, where every certificate holds; the claim of "
    "certify averages the noise of the samples and needs no such condition, so its number is another. Certified "
    "samples differ between methods and are the easier ones. Over all samples, those without a certificate may have "
    "any confidence and be right or wrong. Skill is the relative gain in Brier score over the best constant "
    "confidence; at 0 or below, the confidences need not say more than a constant."
)
_MARKED = "Computed at the marked radii; the light lines only lead the eye, and nothing is claimed between."
_BUDGETS = (
    "Estimates of what N noise samples at level alpha would certify, if every sample's votes came in the proportion "
    "seen here. Each value is read off the distribution of p_A; nothing was sampled again."
)


class Curve(NamedTuple):
    """One line over radii: its place among all (which decides its look), its name, its values and their texts.

    Where the values are known at every radius, ``steps`` are all of them.
    """

    place: int
    name: str
    values: Sequence[float]
    texts: Sequence[str]
    steps: AccuracySteps | None = None


def curve_charts(
    title: str, radii: Sequence[float], lines: Sequence[Curve], up: Axis, *, size: str = "normal"
) -> list[Chart]:
    """Lines over the radius, in as many charts as keep them apart; those beyond ``MOST_DRAWN`` are left out."""
    made: list[Chart] = []
    across = radii_axis(radii)
    near, far = (short_text(radii[place], "lower") for place in (0, -1))
    for group in group_by_look(lines):
        marks: list[Mark] = []
        if up.low < 0 < up.high:
            marks.append(Segments([(across.low, 0.0, across.high, 0.0)], "zero"))
        for line in group:
            marks.append(_accuracy_line(line, radii, across))
        said = " ".join(
            f"{line.name}: {line.texts[0]} at radius {near}, {line.texts[-1]} at radius {far}." for line in group
        )
        made.append(Chart(title, said, [Panel(across, up, marks, 220)], size=size))
    return made


def _accuracy_line(line: Curve, radii: Sequence[float], across: Axis) -> Line:
    """A staircase where all of it is known; otherwise markers, and a light line that leads from one to the next."""
    look, few = line.place % MOST_SERIES, len(radii) <= MOST_MARKED
    if line.steps is None:
        return Line(radii, line.values, look, line.name, markers=few, guide=True)
    marked = (radii, line.values) if few else ((), ())
    return falling_steps(line.steps.radii.tolist(), line.steps.shares.tolist(), across, look, line.name, marked)


def group_by_look(lines: Sequence[Any]) -> list[list[Any]]:
    """Lines that share a picture: those whose looks differ. A line has a ``place``, or is one."""
    groups: dict[int, list[Any]] = {}
    for line in lines:
        place = line if isinstance(line, int) else line[0]
        if place < MOST_DRAWN:
            groups.setdefault(place // MOST_SERIES, []).append(line)
    return list(groups.values())


def _worst_of(metric: str) -> Callable[[CertifiedSummary], Any]:
    return lambda summary: summary[metric].worst


# What is drawn and printed: the words over a chart, those over a column, the side, and where it is.
_QUANTITIES: tuple[tuple[str, str, str, Callable[[CertifiedSummary], Any]], ...] = (
    (
        "Calibration error if all hold, certified samples",
        "error if all hold",
        "upper",
        _worst_of("calibration_error"),
    ),
    (
        "Calibration error if all hold, all samples",
        "of all samples",
        "upper",
        lambda summary: summary["calibration_error"].worst_all,
    ),
    ("Brier score, certified samples", "Brier score", "upper", _worst_of("brier_score")),
    ("Skill, certified samples", "skill", "lower", lambda summary: summary.skill),
)


def calibration_charts(found: Comparison) -> list[list[Chart]]:
    """Certified calibration by radius: one chart per quantity, or one per quantity and noise level."""
    groups: list[list[Chart]] = []
    for title, _, _, of in _QUANTITIES:
        made: list[Chart] = []
        values = [_claim_value(of(summary)) for each in found.calibration for summary in each.summaries]
        for where, own in _calibration_groups(found):
            lines = [
                Curve(
                    found.names.index(each.family),
                    each.family,
                    [_claim_value(of(summary)) for summary in each.summaries],
                    [_claim_text(of(summary)) for summary in each.summaries],
                )
                for each in own
            ]
            made += curve_charts(f"{title}{where}", own[0].radii, lines, _axis(title, values), size="small")
        groups.append(made)
    return groups


def _calibration_groups(found: Comparison) -> list[tuple[str, list[CertifiedCalibration]]]:
    """Runs of one chart and their caption: all if no family has several, else those of each noise level."""
    if all(len(family.runs) == 1 for family in found.families):
        return [("", list(found.calibration))]
    parts = [(sigma, [each for each in found.calibration if each.sigma == sigma]) for sigma in found.sigmas]
    return [(f", sigma {sigma:g}", own) for sigma, own in parts if own]


def calibration(found: Comparison) -> list[Block]:
    """Charts of certified calibration."""
    there = {(each.family, each.sigma) for each in found.calibration}
    missing = [run.name for family in found.families for run in family.runs if (family.name, run.sigma) not in there]
    skills = [summary.skill.value for each in found.calibration for summary in each.summaries]
    notes = ["Skill below −1 is drawn at the lower edge."] if any(skill < _LOWEST_SKILL for skill in skills) else []
    notes += [f"Without, since only their votes are known: {', '.join(missing)}."] if missing else []
    drawn = [chart for charts in calibration_charts(found) for chart in charts]
    return [Text(_CALIBRATION), Figures(drawn, _MARKED), *(Text(each, "note") for each in notes)]


def calibration_table(found: Comparison, noun: str) -> Table:
    """Certified calibration by noise level and radius."""
    rows: list[Sequence[Cell] | Heading] = []
    for where, own in _calibration_groups(found):
        for i, radius in enumerate(own[0].radii):
            rows.append(Heading(f"radius {short_text(radius, 'lower')}{where}"))
            rows += [_calibration_row(each, i) for each in own]
    columns = [Column(noun), Column("certified", priority=1)]
    columns += [Column(head, "bound", side) for _, head, side, _ in _QUANTITIES]
    return Table(columns, rows, "Certified calibration by radius, rounded to the safe side")


def _calibration_row(each: CertifiedCalibration, i: int) -> list[Cell]:
    summary = each.summaries[i]
    certified = f"{summary.n_certified:,} of {summary.n:,}"
    return [each.family, certified, *(_claim_text(of(summary)) for _, _, _, of in _QUANTITIES)]


def _axis(title: str, values: Sequence[float]) -> Axis:
    if not title.startswith("Skill"):
        return covering(values, "at most", most=1.0)
    finite = [value for value in values if math.isfinite(value)]
    low = max(_LOWEST_SKILL, covering([*finite, 0.0], "", low=None).low)
    return Axis(low, 1.0, ticks(low, 1), "at least")


def _claim_value(claim: Any) -> float:
    return math.nan if claim is None else float(claim.value)


def _claim_text(claim: Any) -> str:
    return NOTHING if claim is None or claim.text == "undefined" else minus(str(claim.text))


def budgets(found: Comparison) -> list[Block]:
    """Certified accuracy as it would be at other budgets and levels: one table per noise level."""
    made: list[Block] = [Text(_BUDGETS)]
    for sigma in found.sigmas:
        own = [each for each in found.budgets if each.sigma == sigma]
        # Beyond some radius nothing is certified at this noise level, whatever the setting.
        highest = [max(float(values.upper[i]) for each in own for _, values in each.rows) for i in range(len(found.at))]
        reach = min(len(found.at), 1 + max((i for i, value in enumerate(highest) if value > 0), default=0))
        beyond = "; 0 at every further radius" if reach < len(found.at) else ""
        rows: list[Sequence[Cell] | Heading] = []
        for each in own:
            rows.append(Heading(each.setting.text))
            for (name, values), resolved in zip(each.rows, each.resolved, strict=True):
                rows.append([name, *_converted_texts(values, resolved)[:reach]])
        columns = [Column("radius"), *(Column(short_text(radius, "lower"), "estimate") for radius in found.at[:reach])]
        caption = f"Expected certified accuracy in per cent at sigma {sigma:g}, by radius{beyond}"
        made.append(Table(columns, rows, caption, fit="split"))
    notes = dict.fromkeys(each.note for each in found.budgets if each.note)
    return [*made, *(Text(each, "note") for each in notes)]


def _converted_texts(values: Any, resolved: Sequence[bool]) -> list[str]:
    cells: list[str] = []
    for low, high, sure in zip(values.lower.tolist(), values.upper.tolist(), resolved, strict=True):
        text = percent_of(low) if low == high else f"{percent_of(low)} – {percent_of(high)}"
        cells.append(text if sure else f"~{text}")
    return cells
