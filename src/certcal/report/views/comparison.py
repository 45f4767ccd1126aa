"""Runs and logs beside each other: the words and the layout of a Comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from certcal._text import capital
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
    Words,
    radii_axis,
    unit,
)
from certcal.report.document import Block, Cell, Claim, Column, Figures, Listing, Report, Section, Table, Text
from certcal.report.numbers import number
from certcal.report.p_a import P_A, QUANTILES, SHARES, PaLine, p_a_chart, share_text
from certcal.smoothing.robustness import WARNING

if TYPE_CHECKING:
    from certcal.smoothing.robustness import AverageCertifiedRadius, Compared, Comparison

MOST_DRAWN = 3 * MOST_SERIES
ESTIMATE = "An estimate on these samples, since shares of votes stand for p_A."
AVERAGE = f"{capital(WARNING)}. It is shown because published tables report it."
CERTIFIED = (
    "Share of all samples that are classified correctly under every perturbation up to the radius, at least, where "
    "their certified radii hold: each fails with probability at most alpha."
)


def view(found: Comparison) -> Report:
    """The report of several runs and logs."""
    several = len(found.runs) > 1
    radii = f"{len(found.best.at):,} {'radii' if len(found.best.at) > 1 else 'radius'}"
    sections = [Section("Runs", [_runs(found)], brief=True)]
    if found.dominance:
        said = [capital(pair.sentence) for pair in found.dominance]
        sections.append(Section("Dominance across all settings", [Listing(said)], brief=True, folded=True))
    sections += [
        Section("Certified accuracy", _accuracy(found), brief=True),
        Section("Distribution of p_A", _p_a(found), brief=True),
        Section("Average certified radius", [_average(found.runs), Text(AVERAGE)], brief=True),
    ]
    return Report(
        "Which smoothed classifier is more robust?" if several else "How robust is the smoothed classifier?",
        _headline(found),
        sections,
        [],
        listed_sources(found.sources),
        f"{len(found.runs):,} {'runs or logs' if several else 'run or log'}, compared at {radii}",
        [*(f"{run.name}: {each}" for run in found.runs for each in run.notes), *found.notes],
        smaller=[lambda: _without_steps(found)],
    )


def charts(found: Comparison) -> Sequence[Chart]:
    """Certified accuracy by radius, and the distribution of p_A."""
    return [*_accuracy_charts(found), *_p_a_charts(found)]


class Curve(NamedTuple):
    """One line over radii: its place among all (which decides its look), its name, its values and their texts."""

    place: int
    name: str
    values: Sequence[float]
    texts: Sequence[str]


def curve_charts(
    title: str, radii: Sequence[float], lines: Sequence[Curve], up: Axis, *, caption: str = "", size: str = "normal"
) -> list[Chart]:
    """Lines over the radius, in as many charts as keep them apart; those beyond ``MOST_DRAWN`` are left out."""
    made: list[Chart] = []
    across = radii_axis(radii)
    near, far = (short_text(radii[place], "lower") for place in (0, -1))
    for group in grouped(lines):
        marks: list[Mark] = []
        if up.low < 0 < up.high:
            marks.append(Segments([(across.low, 0.0, across.high, 0.0)], "zero"))
        for line in group:
            look = line.place % MOST_SERIES
            marks.append(Line(radii, line.values, look, line.name, markers=len(radii) <= MOST_MARKED))
        if not any(value == value for line in group for value in line.values):
            middle = (across.low + across.high) / 2, (up.low + up.high) / 2
            marks.append(Words([middle[0]], [middle[1]], ["nothing is certified here"], "idle"))
        said = " ".join(
            f"{line.name}: {line.texts[0]} at radius {near}, {line.texts[-1]} at radius {far}." for line in group
        )
        made.append(Chart(title, said, [Panel(across, up, marks, 220)], caption, size=size))
    return made


def grouped(lines: Sequence[Any]) -> list[list[Any]]:
    """Lines that share a picture: those whose looks differ. A line has a ``place``, or is one."""
    groups: dict[int, list[Any]] = {}
    for line in lines:
        place = line if isinstance(line, int) else line[0]
        if place < MOST_DRAWN:
            groups.setdefault(place // MOST_SERIES, []).append(line)
    return list(groups.values())


def radius_claim(run: Compared, place: int, name: str = "") -> Claim:
    """What is certified of a single run at one of its radii."""
    level = short_text(run.alpha, "upper")
    probability = f"Each certified radius fails with probability at most {level} over the noise."
    return Claim("Certificate", f"{name}{capital(run.curve.sentences[place])}", "", probability)


def setting_cells(run: Compared) -> list[Cell]:
    """Noise level, samples, abstentions, draws and alpha of a run."""
    low, high = run.draws
    draws = f"{low:,}" if low == high else f"{low:,} – {high:,}"
    return [f"{run.sigma:g}", run.n, run.n_abstained, draws, short_text(run.alpha, "upper")]


SETTING = (
    Column("sigma"),
    Column("samples", "count"),
    Column("abstained", "count"),
    Column("noise samples each"),
    Column("alpha"),
)


def top_tenth(average: AverageCertifiedRadius) -> str:
    """How much of an average the tenth with the largest radii makes up."""
    return "undefined" if average.top_tenth != average.top_tenth else f"{100 * average.top_tenth:.1f} %"


def listed_sources(sources: Sequence[str]) -> str:
    """The first few of many sources.

    Examples
    --------
    >>> listed_sources(["a", "b"]), listed_sources(list("abcdef"))
    ('a, b', 'a, b, c and 3 more')
    """
    known = list(dict.fromkeys(sources))
    return ", ".join(known) if len(known) <= 4 else f"{', '.join(known[:3])} and {len(known) - 3:,} more"


def slim(run: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of a run without the steps of its distribution, which grow with the samples."""
    kept = {key: value for key, value in run["distribution"].items() if key not in ("p", "lower", "upper")}
    return {**run, "distribution": kept}


LEFT_OUT = "The steps of the distributions of p_A are left out of the numbers in this page, to keep it small."


def _without_steps(found: Comparison) -> tuple[str, Mapping[str, Any]]:
    data = found.to_dict()
    return LEFT_OUT, {**data, "runs": [slim(run) for run in data["runs"]]}


_VERDICTS = {
    "first": "{first} dominates {second}{where}.",
    "second": "{second} dominates {first}{where}.",
    "neither": "Neither {first} nor {second} dominates: {axis}.",
    "equal": "{first} and {second} have the same distribution of p_A.",
    "unclear": "The logs do not tell whether {first} or {second} dominates.",
}


def _headline(found: Comparison) -> list[Block]:
    if not found.dominance:
        return [radius_claim(found.runs[0], len(found.best.at) // 2)]
    said: list[str] = []
    for pair in found.dominance[:3]:
        in_p = pair.axis == "p_A"
        where = " at every radius, number of noise samples and alpha" if in_p else " at every radius, in this setting"
        axis = pair.where if len(pair.stretches) == 2 else "their curves cross several times"
        said.append(_VERDICTS[pair.verdict].format(first=pair.first, second=pair.second, where=where, axis=axis))
    rest = len(found.dominance) - len(said)
    more = [Text(f"{rest:,} further {'pairs are' if rest > 1 else 'pair is'} below.", "note")] if rest else []
    return [Claim("Estimate", said[0], "", ESTIMATE), *map(Text, said[1:]), *more]


def _runs(found: Comparison) -> Table:
    rows = [[run.name, *setting_cells(run), found.origin(place)] for place, run in enumerate(found.runs)]
    return Table((Column("run"), *SETTING, Column("from")), rows)


def _names(found: Comparison) -> list[str]:
    sources = [found.origin(place) for place in range(len(found.runs))]
    return [f"{run.name} · {each}" if each else run.name for run, each in zip(found.runs, sources, strict=True)]


def _accuracy_charts(found: Comparison) -> list[Chart]:
    named = zip(_names(found), found.runs, strict=True)
    lines = [Curve(place, name, run.curve.values, run.curve.texts) for place, (name, run) in enumerate(named)]
    return curve_charts("Certified accuracy by radius", found.best.at, lines, unit("certified accuracy"))


def _accuracy(found: Comparison) -> list[Block]:
    several = len(found.runs) > 1
    columns = [Column("radius"), *(Column(run.name, "bound", "lower") for run in found.runs)]
    columns += [Column("best", "bound", "lower"), Column("of")] if several else []
    rows: list[list[Cell]] = []
    for i, radius in enumerate(found.best.at):
        names = found.best.names[i]
        best = [found.best.texts[i], "all" if len(names) == len(found.runs) else ", ".join(names)] if several else []
        rows.append([short_text(radius, "lower"), *(run.curve.texts[i] for run in found.runs), *best])
    return [
        Text(CERTIFIED),
        Figures(_accuracy_charts(found), _left(len(found.runs))),
        Table(columns, rows, "Certified accuracy by radius", fit="split"),
    ]


def _left(count: int) -> str:
    left = count - MOST_DRAWN
    return f"{left:,} further {'runs are' if left > 1 else 'run is'} in the tables only." if left > 0 else ""


def _p_a_charts(found: Comparison) -> list[Chart]:
    named = zip(_names(found), found.runs, strict=True)
    lines = [PaLine(place, name, run.distribution) for place, (name, run) in enumerate(named)]
    return [
        p_a_chart("Distribution of p_A", [line._replace(look=line.look % MOST_SERIES) for line in group])
        for group in grouped(lines)
    ]


def _p_a(found: Comparison) -> list[Block]:
    runs = found.runs
    rows: list[Sequence[Cell]] = [
        [f"{q:.0%} quantile", *(number(float(run.distribution.quantile(q))) for run in runs)] for q in QUANTILES
    ]
    rows += [[f"share with p_A ≥ {p:g}", *(share_text(run.distribution, p) for run in runs)] for p in SHARES]
    return [
        Text(
            f"{P_A} At one noise level, a curve that is nowhere below another is ahead at every radius, number of "
            "noise samples and alpha."
        ),
        Figures(_p_a_charts(found)),
        Table([Column("p_A"), *(Column(run.name, "estimate") for run in runs)], rows, fit="split"),
    ]


def _average(runs: Sequence[Compared]) -> Table:
    columns = (
        Column("run"),
        Column("average radius", "estimate"),
        Column("from the top tenth", "estimate"),
        Column("of one constant class", "estimate"),
    )
    rows = [[run.name, run.average.value, top_tenth(run.average), run.average.trivial] for run in runs]
    return Table(columns, rows)
