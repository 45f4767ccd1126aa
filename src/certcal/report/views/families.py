"""Training methods at several noise levels beside each other: the words and the layout of a FamilyComparison."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from certcal._text import capital, counted
from certcal.claims import short_text
from certcal.report.charts import MOST_SERIES, Axis, Chart, Graph, covering, ticks, unit
from certcal.report.document import (
    NOTHING,
    Block,
    Cell,
    Claim,
    Column,
    Details,
    Figures,
    Heading,
    Listing,
    Report,
    Section,
    Strong,
    Table,
    Text,
)
from certcal.report.numbers import number
from certcal.report.p_a import P_A, SHARES, PaLine, p_a_chart, share_text
from certcal.report.views.comparison import (
    AVERAGE,
    CERTIFIED,
    ESTIMATE,
    LEFT_OUT,
    MOST_DRAWN,
    SETTING,
    Curve,
    curve_charts,
    grouped,
    listed_sources,
    radius_claim,
    setting_cells,
    slim,
    top_tenth,
)

if TYPE_CHECKING:
    from certcal.smoothing.robustness import (
        CertifiedCalibration,
        Compared,
        DominanceGraph,
        FamilyComparison,
        RunFamily,
    )
    from certcal.worst_case import CertifiedSummary

_SHARES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999, 1.0)
_LOWEST_SKILL = -1.0
# A verdict read from one side.
_WORDS = {"neither": "crosses", "equal": "same", "unclear": "open"}
_LEGEND = {
    "top": "undominated",
    "node": "dominated",
    "firm": "better in vote shares beyond sampling error",
    "strict": "higher everywhere on these samples",
    "weak": "nowhere lower on these samples",
}
_DOMINANCE = (
    "An arrow leads from a method to one that it dominates. At one sigma, the share of samples with p_A ≥ p is nowhere "
    "lower and somewhere higher for every p ≥ 1/2: certified accuracy is then ahead at every radius, number of noise "
    "samples and alpha. With the best sigma at each radius, certified accuracy is ahead at every radius, for one "
    "number of noise samples and alpha. Without a path between two methods, the better one depends on the setting."
)
_AVERAGE = (
    "Dominates: the order of the graphs above. No number of noise samples certifies more than the share with "
    "p_A ≥ 0.5. Where the average is larger and this share smaller, easy samples became easier and hard ones were "
    "given up."
)
_CALIBRATION = (
    "Exact worst cases when every input may be perturbed up to the radius, where the certificates hold. Certified "
    "samples differ between methods and are the easier ones. Over all samples, those without a certificate may have "
    "any confidence and be right or wrong. Skill is the relative gain in Brier score over the best constant "
    "confidence; at 0 or below, the confidences need not say more than a constant."
)
_BUDGETS = (
    "Estimates of what N noise samples at level alpha would certify, if every sample's votes came in the proportion "
    "seen here. Each value is read off the distribution of p_A; nothing was sampled again."
)
_CHOSEN = (
    "A sigma chosen after looking has a price: each run's certified radius may fail with probability alpha, so the "
    "best of several may fail with up to their sum."
)
_FAMILIES = (
    "A family is one training method with a network per noise level. Names were given with the files; nothing in them "
    "says how they were trained."
)


def view(found: FamilyComparison) -> Report:
    """The report of several families of runs and logs."""
    runs = len(found.runs)
    sections: list[Section] = []
    if found.graphs:
        sections.append(Section("Dominance across all settings", _dominance(found)))
        sections.append(Section("Verdicts", _verdicts(found), brief=True, folded=True))
    several = len(found.sigmas) > 1
    sections.append(Section("Certified accuracy", [Text(CERTIFIED), Figures(accuracy_charts(found), _left(found))]))
    sections.append(_folded(_accuracy(found)))
    sections += [_folded(_best(found))] if several else []
    sections.append(Section("Distribution of p_A", _p_a(found)))
    sections.append(Section("Average certified radius", _average(found), brief=True, folded=True))
    if found.calibration:
        sections.append(Section("Certified calibration", _calibration(found), brief=True))
        sections.append(_folded(_calibration_table(found)))
    appendix = [Section("Runs", [_runs(found), Text(_FAMILIES)], brief=True)]
    if found.settings:
        appendix.append(Section("Other sampling budgets", _budgets(found)))
    levels = ", ".join(f"{sigma:g}" for sigma in found.sigmas)
    return Report(
        "Which training method is more robust?",
        _headline(found),
        sections,
        appendix,
        listed_sources(found.sources),
        f"{counted(len(found.families), 'method')}, {runs:,} {'run or log' if runs == 1 else 'runs or logs'} at sigma "
        f"{levels}",
        found.notes,
        smaller=[lambda: _without_steps(found)],
    )


def _folded(table: Table) -> Section:
    """A table as a section: in the appendix of a page, and in a terminal."""
    return Section(table.caption, [replace(table, caption="")], brief=True, folded=True)


def charts(found: FamilyComparison) -> Sequence[Chart]:
    """Certified accuracy at each noise level, and the best over them."""
    return accuracy_charts(found)


def accuracy_charts(found: FamilyComparison) -> list[Chart]:
    """Certified accuracy by radius: one chart per noise level, then the best over them where there are several."""
    up = unit("certified accuracy")
    made: list[Chart] = []
    for sigma in found.sigmas:
        lines = [Curve(place, name, run.curve.values, run.curve.texts) for place, name, run in _members(found, sigma)]
        made += curve_charts(f"Certified accuracy, sigma {sigma:g}", found.at, lines, up)
    if len(found.sigmas) > 1:
        made += _best_charts(found)
    return made


def p_a_charts(found: FamilyComparison, *, by_radius: bool = False) -> list[Chart]:
    """The distributions of p_A at each noise level: by p, or by the radius that p stands for."""
    made: list[Chart] = []
    for sigma in found.sigmas:
        lines = [PaLine(place, name, run.distribution) for place, name, run in _members(found, sigma)]
        draws = max(run.draws[1] for _, run in found.at_sigma(sigma)) if by_radius else None
        title = f"Distribution of p_A, sigma {sigma:g}{', by radius' if by_radius else ''}"
        for group in grouped(lines):
            looks = [line._replace(look=line.look % MOST_SERIES) for line in group]
            made.append(p_a_chart(title, looks, draws=draws))
    return made


def dominance_charts(found: FamilyComparison) -> list[Chart]:
    """Who dominates whom: one graph per noise level, then by the best over them."""
    return [_graph(graph) for graph in found.graphs]


def calibration_charts(found: FamilyComparison) -> list[list[Chart]]:
    """What is certified of confidences, by radius: per quantity a chart at each noise level."""
    groups: list[list[Chart]] = []
    for title, _, _, of in _QUANTITIES:
        made: list[Chart] = []
        values = [_value(of(summary)) for each in found.calibration for summary in each.summaries]
        for sigma in found.sigmas:
            own = [each for each in found.calibration if each.sigma == sigma]
            lines = [
                Curve(
                    found.names.index(each.family),
                    each.family,
                    [_value(of(summary)) for summary in each.summaries],
                    [_text(of(summary)) for summary in each.summaries],
                )
                for each in own
            ]
            if own:
                axis = _axis(title, values)
                made += curve_charts(f"{title}, sigma {sigma:g}", own[0].radii, lines, axis, size="small")
        groups.append(made)
    return groups


def _members(found: FamilyComparison, sigma: float) -> list[tuple[int, str, Compared]]:
    return [(found.names.index(name), name, run) for name, run in found.at_sigma(sigma)]


def _without_steps(found: FamilyComparison) -> tuple[str, Mapping[str, Any]]:
    data = found.to_dict()
    families = [{**family, "runs": [slim(run) for run in family["runs"]]} for family in data["families"]]
    return LEFT_OUT, {**data, "families": families}


def _headline(found: FamilyComparison) -> list[Block]:
    if not found.graphs:
        run = found.families[0].runs[0]
        return [radius_claim(run, len(found.at) // 2, f"{run.name}: ")]
    where: dict[str, list[DominanceGraph]] = {}
    for graph in found.graphs:
        where.setdefault(_verdict(graph), []).append(graph)
    said = [capital(f"{_places(graphs)}, {verdict}") for verdict, graphs in where.items()]
    rest = len(said) - 3
    more = [Text(f"{counted(rest, 'further comparison')} below.", "note")] if rest > 0 else []
    return [Claim("Estimate", said[0], "", ESTIMATE), *map(Text, said[1:3]), *more]


def _places(graphs: Sequence[DominanceGraph]) -> str:
    """At which noise levels something holds."""
    sigmas = [f"{graph.sigma:g}" for graph in graphs if graph.sigma is not None]
    said = [f"at sigma {', '.join(sigmas)}"] if sigmas else []
    said += ["with the best sigma at each radius"] if len(sigmas) < len(graphs) else []
    return " and ".join(said)


def _verdict(graph: DominanceGraph) -> str:
    """Who is undominated, as the end of a sentence."""
    surely = " surely" if any(pair.verdict == "unclear" for pair in graph.pairs) else ""
    if not graph.edges:
        return f"no method{surely} dominates another."
    if len(graph.names) == 2:
        better, worse = graph.edges[0]
        return f"{better} dominates {worse}."
    top = graph.undominated
    listed = ", ".join(top[:4]) + (f" and {len(top) - 4} more" if len(top) > 4 else "")
    return f"{len(top)} of {len(graph.names)} methods {'are' if len(top) > 1 else 'is'} undominated: {listed}."


def _where(graph: DominanceGraph) -> str:
    return "best over sigma" if graph.sigma is None else f"sigma {graph.sigma:g}"


def _dominance(found: FamilyComparison) -> list[Block]:
    return [Figures(dominance_charts(found)), Details("What an arrow means", [Text(_DOMINANCE)])]


def _verdicts(found: FamilyComparison) -> list[Block]:
    made: list[Block] = []
    for graph in found.graphs:
        made += [
            Text(f"{capital(_where(graph))}: {each}") for each in (graph.contradiction, graph.beyond_chance) if each
        ]
        said = [graph.sentence, *(pair.sentence for pair in graph.pairs), *(each.sentence for each in graph.chances)]
        made.append(Details(f"All verdicts, {_where(graph)}", [Listing([capital(each) for each in said])]))
    return made


def _graph(graph: DominanceGraph) -> Chart:
    strict, firm = set(graph.strict_edges), set(graph.firm_edges)
    edges = [(*edge, "firm" if edge in firm else "strict" if edge in strict else "weak") for edge in graph.reduced]
    said = " ".join(f"{better} dominates {worse}." for better, worse in graph.reduced) or "No method dominates another."
    drawn = Graph(graph.names, edges, frozenset(graph.undominated), _LEGEND)
    caption = "Methods without incoming arrows are undominated."
    return Chart(f"Dominance, {_where(graph)}", said, [drawn], caption, _matrix(graph))


def _matrix(graph: DominanceGraph) -> Table:
    """Each method against each: what the row is to the column."""
    verdicts: dict[tuple[str, str], str] = {}
    for pair in graph.pairs:
        both = (_WORDS[pair.verdict],) * 2 if pair.verdict in _WORDS else ("better", "worse")
        one, two = both if pair.verdict != "second" else both[::-1]
        verdicts[pair.first, pair.second], verdicts[pair.second, pair.first] = one, two
    firm = {*graph.firm_edges, *((worse, better) for better, worse in graph.firm_edges)}

    def cell(name: str, other: str) -> Cell:
        words = verdicts.get((name, other), NOTHING)
        return Strong(words) if (name, other) in firm else words

    rows = [
        [f"{place} {name}", *(cell(name, other) for other in graph.names)] for place, name in enumerate(graph.names, 1)
    ]
    columns = [Column("method"), *(Column(str(place)) for place in range(1, len(graph.names) + 1))]
    note = "In bold: beyond sampling error, in shares of votes." if firm else ""
    return Table(columns, rows, f"Row against column, {_where(graph)}", note, fit="split")


def _radii(found: FamilyComparison, count: int | None = None, **kind: Any) -> list[Column]:
    return [Column(short_text(radius, "lower"), **kind) for radius in found.at[:count]]


def _accuracy(found: FamilyComparison) -> Table:
    rows: list[Sequence[Cell] | Heading] = []
    for sigma in found.sigmas:
        rows.append(Heading(f"sigma {sigma:g}"))
        rows += [[name, *run.curve.texts] for name, run in found.at_sigma(sigma)]
    columns = [Column("radius"), *_radii(found, kind="bound")]
    return Table(columns, rows, "Certified accuracy by radius, at least", fit="split")


def _left(found: FamilyComparison) -> str:
    left = len(found.families) - MOST_DRAWN
    return f"{left:,} further {'methods are' if left > 1 else 'method is'} in the tables only." if left > 0 else ""


def _best_charts(found: FamilyComparison) -> list[Chart]:
    lines = [
        Curve(place, family.name, family.best.values, family.best.texts) for place, family in enumerate(found.families)
    ]
    return curve_charts("Best certified accuracy over sigma", found.at, lines, unit("certified accuracy"))


def _best(found: FamilyComparison) -> Table:
    rows = [
        [
            short_text(radius, "lower"),
            *(f"{family.best.texts[i]} ({_reached(family, i)})" for family in found.families),
            f"{found.best.texts[i]} ({_ahead(found, i)})",
        ]
        for i, radius in enumerate(found.at)
    ]
    columns = [Column("radius"), *(Column(name, "bound") for name in (*found.names, "best"))]
    caption = "Best certified accuracy over sigma, at least, with the sigma that reaches it"
    return Table(columns, rows, caption, _CHOSEN, fit="split")


def _reached(family: RunFamily, i: int) -> str:
    """The noise levels that reach the best at a radius."""
    names = family.best.names[i]
    if len(names) == len(family.runs) > 1:
        return "any σ"
    return f"σ {', '.join(f'{run.sigma:g}' for run in family.runs if run.name in names)}"


def _ahead(found: FamilyComparison, i: int) -> str:
    """The families that reach the best at a radius."""
    names = found.best.names[i]
    return "all" if len(names) == len(found.families) > 1 else ", ".join(names)


def _p_a(found: FamilyComparison) -> list[Block]:
    pairs = zip(p_a_charts(found), p_a_charts(found, by_radius=True), strict=True)
    rows: list[Sequence[Cell] | Heading] = []
    for sigma in found.sigmas:
        rows.append(Heading(f"sigma {sigma:g}"))
        rows += [[name, *(share_text(run.distribution, p) for p in _SHARES)] for name, run in found.at_sigma(sigma)]
    columns = [Column("p"), *(Column(f"{p:g}", "estimate") for p in _SHARES)]
    return [
        Text(
            f"{P_A} Only p ≥ 1/2 certifies anything. By radius, p stands at sigma times its normal quantile (p is "
            "written on top): the last per cent takes much of the width, as it does in the average certified radius."
        ),
        Figures([chart for pair in pairs for chart in pair], _left(found)),
        Details("Shares", [Table(columns, rows, "Share of samples with p_A of at least p", fit="split")]),
    ]


def _average(found: FamilyComparison) -> list[Block]:
    columns = [
        Column("method"),
        Column("average radius", "estimate"),
        Column("from the top tenth", "estimate", priority=2),
        Column("of one constant class", "estimate", priority=3),
        *(Column(f"share with p_A ≥ {p:g}", "estimate", priority=1) for p in SHARES),
        Column("dominates"),
    ]
    graphs = {graph.sigma: graph for graph in found.graphs}
    rows: list[Sequence[Cell] | Heading] = []
    for sigma in found.sigmas:
        rows.append(Heading(f"sigma {sigma:g}"))
        edges = graphs[sigma].edges if sigma in graphs else ()
        for name, run in sorted(found.at_sigma(sigma), key=lambda member: -member[1].average.value):
            average = run.average
            shares = (share_text(run.distribution, p) for p in SHARES)
            beaten = ", ".join(worse for better, worse in edges if better == name) or NOTHING
            rows.append([name, average.value, top_tenth(average), average.trivial, *shares, beaten])
    return [Text(AVERAGE), Table(columns, rows, "Methods by average certified radius", _AVERAGE)]


def _worst(metric: str) -> Callable[[CertifiedSummary], Any]:
    return lambda summary: summary[metric].worst


# What is drawn and printed: the words over a chart, those over a column, the side, and where it is.
_QUANTITIES: tuple[tuple[str, str, str, Callable[[CertifiedSummary], Any]], ...] = (
    ("Calibration error, certified samples", "calibration error", "upper", _worst("calibration_error")),
    (
        "Calibration error, all samples",
        "of all samples",
        "upper",
        lambda summary: summary["calibration_error"].worst_all,
    ),
    ("Brier score, certified samples", "Brier score", "upper", _worst("brier_score")),
    ("Skill, certified samples", "skill", "lower", lambda summary: summary.skill),
)


def _calibration(found: FamilyComparison) -> list[Block]:
    there = {(each.family, each.sigma) for each in found.calibration}
    missing = [run.name for name, _, run in found.runs if (name, run.sigma) not in there]
    notes = ["Skill below -1 is drawn at the lower edge."] if _is_cut(found) else []
    notes += [f"Without, since only their votes are known: {', '.join(missing)}."] if missing else []
    notes += [_left(found)] if _left(found) else []
    return [
        Text(_CALIBRATION),
        *map(Figures, calibration_charts(found)),
        *(Text(each, "note") for each in notes),
    ]


def _calibration_table(found: FamilyComparison) -> Table:
    by_sigma = [[each for each in found.calibration if each.sigma == sigma] for sigma in found.sigmas]
    rows: list[Sequence[Cell] | Heading] = []
    for own in filter(None, by_sigma):
        for i, radius in enumerate(own[0].radii):
            rows.append(Heading(f"sigma {own[0].sigma:g}, radius {short_text(radius, 'lower')}"))
            rows += [_row(each, i) for each in own]
    columns = [Column("method"), Column("certified", priority=1)]
    columns += [Column(head, "bound", side) for _, head, side, _ in _QUANTITIES]
    return Table(columns, rows, "Certified calibration by radius, rounded to the safe side")


def _row(each: CertifiedCalibration, i: int) -> list[Cell]:
    summary = each.summaries[i]
    certified = f"{summary.n_certified:,} of {summary.n:,}"
    return [each.family, certified, *(_text(of(summary)) for _, _, _, of in _QUANTITIES)]


def _is_cut(found: FamilyComparison) -> bool:
    return any(summary.skill.value < _LOWEST_SKILL for each in found.calibration for summary in each.summaries)


def _axis(title: str, values: Sequence[float]) -> Axis:
    if not title.startswith("Skill"):
        return covering(values, "at most", most=1.0)
    finite = [value for value in values if math.isfinite(value)]
    low = max(_LOWEST_SKILL, covering([*finite, 0.0], "", low=None).low)
    return Axis(low, 1.0, ticks(low, 1), "at least")


def _value(claim: Any) -> float:
    return math.nan if claim is None else float(claim.value)


def _text(claim: Any) -> str:
    return NOTHING if claim is None or claim.text == "undefined" else str(claim.text)


def _runs(found: FamilyComparison) -> Table:
    rows = [[name, *setting_cells(run), source] for name, source, run in found.runs]
    return Table((Column("method"), *SETTING, Column("from")), rows)


def _budgets(found: FamilyComparison) -> list[Block]:
    """Certified accuracy as it would be at other budgets and levels: one table per noise level."""
    made: list[Block] = [Text(_BUDGETS)]
    for sigma in found.sigmas:
        own = [each for each in found.settings if each.sigma == sigma]
        # Beyond some radius nothing is certified at this noise level, whatever the setting.
        highest = [max(float(values.upper[i]) for each in own for _, values in each.rows) for i in range(len(found.at))]
        reach = min(len(found.at), 1 + max((i for i, value in enumerate(highest) if value > 0), default=0))
        beyond = "; 0 at every further radius" if reach < len(found.at) else ""
        rows: list[Sequence[Cell] | Heading] = []
        for each in own:
            rows.append(Heading(each.setting.text))
            for (name, values), resolved in zip(each.rows, each.resolved, strict=True):
                rows.append([name, *_converted(values, resolved)[:reach]])
        columns = [Column("radius"), *_radii(found, reach, kind="estimate")]
        caption = f"Expected certified accuracy at sigma {sigma:g}, by radius{beyond}"
        made.append(Table(columns, rows, caption, fit="split"))
    notes = dict.fromkeys(each.note for each in found.settings if each.note)
    return [*made, *(Text(each, "note") for each in notes)]


def _converted(values: Any, resolved: Sequence[bool]) -> list[str]:
    cells: list[str] = []
    for low, high, sure in zip(values.lower.tolist(), values.upper.tolist(), resolved, strict=True):
        text = number(low) if low == high else f"{number(low)} – {number(high)}"
        cells.append(text if sure else f"~{text}")
    return cells
