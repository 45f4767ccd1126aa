"""The page of a comparison: certified accuracy and p_A of several runs or logs, and which is better where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from certcal._html import Child, Raw, definition_list, element, join, table
from certcal.claims import short_text
from certcal.report.numbers import number
from certcal.report.page._axes import Axis, covering, ticks
from certcal.report.page._curves import BETWEEN
from certcal.report.page._pieces import beside, figure, note, row, scrolling, shown, verdict_card
from certcal.report.page._skeleton import Page, Section, document
from certcal.report.page._svg import Frame, chart, legend
from certcal.report.provenance import Provenance
from certcal.report.results import ComparedResults
from certcal.smoothing.robustness import WARNING, Compared, Comparison, PaCurve

# Runs in one picture: each has a line of its own, and the best of all has the sixth colour.
TOGETHER = 5
MOST_DRAWN = 25
_BEST = 5
MOST_PAIRS = 200
_SAID_ON_TOP = 3
_LEGEND = 28

_QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
_AT = (0.5, 0.9, 0.99)


def p_a_steps(found: PaCurve, frame: Frame, series: int, *, high: bool = False) -> Raw:
    """P(p_A >= p) as a staircase: a share holds from the p before it up to its own."""
    shares = found.upper if high else found.lower
    return frame.steps([found.p[0], *found.p[:-1]], shares.tolist(), series)


def p_a_frame() -> Frame:
    """Axes of a distribution of p_A: only p of at least one half can certify anything."""
    across = Axis(0.5, 1.0, ticks(0.5, 1), "p")
    return Frame(across, Axis(0.0, 1.0, ticks(0, 1), "share with p_A ≥ p"), height=220)


def comparison_page(
    results: ComparedResults, provenance: Provenance | None = None, *, title: str | None = None
) -> Page:
    """The page of several runs and logs beside each other.

    Parameters
    ----------
    results
        Of ``certcal compare``.
    provenance, title
        As for :func:`certcal.report.page.page`.
    """
    found = results.comparison
    sections = [
        Section("runs", "What is compared", _runs(results)),
        Section("accuracy", "Certified accuracy", _accuracy(results)),
        Section("p-a", "How sure the votes are", _p_a(results)),
        *([Section("better", "Better whatever the setting?", _verdicts(found))] if found.dominance else []),
        Section("average", "The average certified radius", _average(found.runs)),
        Section("notes", "What limits the comparison", _notes(results)),
    ]
    data = results.to_dict()
    several = len(found.runs) > 1
    question = "Which smoothed classifier is more robust?" if several else "How robust is the smoothed classifier?"
    return document(
        question if title is None else title,
        sections,
        data,
        headline=_headline(found),
        eyebrow="Certified robustness",
        source=", ".join(results.sources),
        description=f"{len(found.runs):,} {'runs or logs' if several else 'run or log'}, compared at "
        f"{len(found.best.at):,} {'radii' if len(found.best.at) > 1 else 'radius'}",
        provenance=provenance,
        smaller=[_without_steps(data)],
    )


def _without_steps(data: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The numbers without the steps of the distributions, which grow with the samples."""
    steps = ("p", "lower", "upper")
    runs = [
        run | {"distribution": {key: value for key, value in run["distribution"].items() if key not in steps}}
        for run in data["runs"]
    ]
    return (
        "The steps of the distributions of p_A are not among the numbers in this page, to keep it small; certcal "
        "compare --json prints them.",
        data | {"runs": runs},
    )


def _headline(found: Comparison) -> Raw:
    """The verdicts, which are estimates, or what the one run certifies."""
    sentences = [_capital(pair.sentence) for pair in found.dominance]
    kind, said = "estimate", "a verdict about these samples, since shares of votes stand for p_A"
    if not sentences:
        sentences = [_capital(found.runs[0].curve.sentences[len(found.best.at) // 2])]
        kind, said = (
            "certificate",
            "holds for every perturbation up to a radius, where the radii of the samples hold",
        )
    rest = len(sentences) - _SAID_ON_TOP
    more = note(f"{rest:,} further {'pairs are' if rest > 1 else 'pair is'} below.") if rest > 0 else None
    return verdict_card(kind, said, sentences[:_SAID_ON_TOP], more)


def _runs(results: ComparedResults) -> Raw:
    entries: list[tuple[Child, Child]] = []
    for source, run in zip(results.sources, results.comparison.runs, strict=True):
        low, high = run.draws
        draws = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        facts = (
            f"{run.n:,} samples, {run.n_abstained:,} abstained; sigma {run.sigma:g}, {draws} draws each, alpha "
            f"{short_text(run.alpha, 'upper')}"
        )
        entries.append((element("strong", run.name), (shown(source), element("br"), facts)))
    return definition_list(entries, class_="facts")


def _groups(results: ComparedResults) -> list[list[tuple[int, str]]]:
    """Runs that share a picture: their places, and what they are called in its legend."""
    runs = results.comparison.runs[:MOST_DRAWN]
    named = [(place, f"{run.name} · {_short(results.sources[place])}") for place, run in enumerate(runs)]
    return [named[start : start + TOGETHER] for start in range(0, len(named), TOGETHER)]


def _short(source: str) -> str:
    return source if len(source) <= _LEGEND else f"…{source[-_LEGEND:]}"


def _accuracy(results: ComparedResults) -> Raw:
    found = results.comparison
    radii = list(found.best.at)
    several = len(found.runs) > 1
    # A single radius stands in the middle of the axis.
    across = covering(radii if len(radii) > 1 else [2 * radii[0] or 1.0], "radius")
    frame = Frame(across, Axis(0.0, 1.0, ticks(0, 1), "certified accuracy"), height=220)
    best = frame.band(radii, [0.0] * len(radii), found.best.values, _BEST) if several else None
    figures: list[Raw] = []
    near, far = (short_text(radii[place], "lower") for place in (0, -1))
    for number_of, group in enumerate(_groups(results)):
        runs = [found.runs[place] for place, _ in group]
        said = " ".join(
            f"{run.name}: {run.curve.texts[0]} at radius {near}, {run.curve.texts[-1]} at radius {far}." for run in runs
        )
        picture = chart(
            f"accuracy-{number_of}",
            "Certified accuracy against the radius",
            said,
            frame.furniture(),
            best,
            [frame.line(radii, run.curve.values, series) for series, run in enumerate(runs)],
            height=frame.bottom + 46,
        )
        keys = [(f"line {series}", name) for series, (_, name) in enumerate(group)]
        keys += [("band grey", "up to the best of all")] if several and len(radii) > 1 else []
        caption = (
            "At least this share of all samples is predicted correctly under every perturbation up to the radius, "
            f"where the radii of the samples hold. {BETWEEN}"
        )
        figures.append(figure(picture, caption, legend=legend(*keys)))
    left = len(found.runs) - MOST_DRAWN
    left_out = note(f"{left:,} further runs are in the table and in the JSON only.") if left > 0 else None
    return _with_table(figures, join(_accuracy_table(found), left_out))


def _with_table(figures: Sequence[Raw], numbers: Raw) -> Raw:
    """One figure has its table beside it; several have it below."""
    return beside(figures[0], numbers) if len(figures) == 1 else join(row(*figures), numbers)


def _accuracy_table(found: Comparison) -> Raw:
    several = len(found.runs) > 1
    caption = "Certified accuracy, rounded down"
    header = ["radius", *(run.name for run in found.runs), *(["best", "of"] if several else [])]
    rows: list[Sequence[Child]] = []
    for i, radius in enumerate(found.best.at):
        names = found.best.names[i]
        who = "all" if len(names) == len(found.runs) else ", ".join(names)
        best = [found.best.texts[i], who] if several else []
        rows.append((short_text(radius, "lower"), *(run.curve.texts[i] for run in found.runs), *best))
    numeric = range(len(found.runs) + (2 if several else 1))
    return scrolling(table(header, rows, caption, numeric=numeric, row_headers=True), caption)


def _p_a(results: ComparedResults) -> Raw:
    figures: list[Raw] = []
    runs = results.comparison.runs
    thinned = False
    for number_of, group in enumerate(_groups(results)):
        frame = p_a_frame()
        found = [runs[place].distribution.curve() for place, _ in group]
        thinned |= any(each.thinned for each in found)
        said = " ".join(f"{runs[place].name}: {_shares(runs[place])}." for place, _ in group)
        picture = chart(
            f"p-a-{number_of}",
            "Distribution of p_A",
            said,
            frame.furniture(),
            [p_a_steps(each, frame, series) for series, each in enumerate(found)],
            height=frame.bottom + 46,
        )
        figures.append(
            figure(
                picture,
                "p_A of a sample is the probability that noise leaves its true class on top, estimated by the share of "
                "votes, and 0 where another class was chosen. At one sigma, certified accuracy as read "
                "off a curve that is nowhere below another is ahead at every radius, number of draws and alpha.",
                legend=legend(*((f"line {series}", name) for series, (_, name) in enumerate(group))),
            )
        )
    drawn = note("Up to 200 steps of each curve are drawn; those are exact.") if thinned else None
    return _with_table(figures, join(_quantiles(runs), drawn))


def _shares(run: Compared) -> str:
    return ", ".join(f"{_share(run, p)} with p_A of at least {p:g}" for p in _AT)


def _share(run: Compared, p: float) -> str:
    low, high = (number(float(each)) for each in run.distribution.survival(p))
    return low if low == high else f"{low} – {high}"


def _quantiles(runs: Sequence[Compared]) -> Raw:
    caption = "Distribution of p_A; a range where a log leaves votes open"
    rows: list[Sequence[Child]] = [
        (f"quantile {q:.0%}", *(number(float(run.distribution.quantile(q))) for run in runs)) for q in _QUANTILES
    ]
    rows += [(f"share with p_A ≥ {p:g}", *(_share(run, p) for run in runs)) for p in _AT]
    header = ["p_A", *(run.name for run in runs)]
    return scrolling(table(header, rows, caption, numeric=range(1, len(header)), row_headers=True), caption)


def _verdicts(found: Comparison) -> Raw:
    pairs = found.dominance[:MOST_PAIRS]
    rest = len(found.dominance) - len(pairs)
    return join(
        element("ul", [element("li", shown(_capital(pair.sentence), 2000)) for pair in pairs], class_="assumptions"),
        note(f"{rest:,} further pairs are in the JSON only.") if rest else None,
    )


def _average(runs: Sequence[Compared]) -> Raw:
    caption = "Average certified radius"
    rows: list[Sequence[Child]] = []
    for run in runs:
        average = run.average
        share = "undefined" if average.top_tenth != average.top_tenth else f"{100 * average.top_tenth:.1f} %"
        trivial = "" if average.trivial is None else number(average.trivial)
        rows.append((run.name, number(average.value), share, trivial))
    header = ["run", "average radius", "from a tenth of all", "of always one class"]
    return join(
        element("p", element("strong", _capital(f"{WARNING}.")), " It is shown because others print it."),
        scrolling(table(header, rows, caption, numeric=(1, 2, 3), row_headers=True), caption),
    )


def _notes(results: ComparedResults) -> Raw:
    found = results.comparison
    notes = [*(f"{run.name}: {each}" for run in found.runs for each in run.notes), *found.notes]
    if not notes:
        return element("p", "Nothing beyond what is said above.")
    return element("ul", [element("li", shown(each, 2000)) for each in notes], class_="assumptions")


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
