"""Runs and logs, or training methods at several noise levels, beside each other: the words of a Comparison."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from certcal._base.rounding import sure_text, times_text
from certcal._base.text import capital, counted
from certcal.claims import in_full, percent_text, short_text
from certcal.lab.logs._calibration_view import (
    MOST_DRAWN,
    Curve,
    budgets,
    calibration,
    calibration_table,
    curve_charts,
    group_by_look,
)
from certcal.lab.logs._dominance import just_above
from certcal.report.charts import MOST_SERIES, Chart, Graph, percent
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
from certcal.report.p_a import P_A, QUANTILES, SHARES, PaLine, p_a_chart, share_text
from certcal.smoothing.robustness import WARNING

if TYPE_CHECKING:
    from certcal.lab.logs import Compared, Comparison, DominanceGraph, RunFamily, Spread

_SURE = "{level} sure, for samples drawn like these: exact tests, corrected for all pairs, radii and directions."
_NONE = "No difference of certified accuracy at these radii is beyond sampling error."
_ESTIMATE = "An estimate on these samples, since shares of votes stand for p_A."
_CERTIFIED = (
    "Share of all samples that are classified correctly under every perturbation up to the radius, at least, where "
    "their certified radii hold: each fails with a probability of alpha, all of which goes to the prediction here; "
    "certify needs most of it for confidences, so it certifies slightly fewer samples. Every sample's radius is known, "
    "so the staircase is exact at every radius{logs}; markers are the radii of the tables."
)
_SCALE = (
    " By radius, p stands at sigma times its normal quantile (p is written on top): the last per cent takes much of "
    "the width, as it does in the average certified radius."
)
_LEFT_OUT = "The steps of the distributions of p_A are left out of the numbers in this page, to keep it small."
# The verdict on two methods, as the end of a sentence.
_VERDICTS = {
    "first": "{first} {dominates} {second}{since}.",
    "second": "{second} {dominates} {first}{since}.",
    "neither": "neither {first} nor {second} dominates{where}.",
    "equal": "{first} and {second} have the same distribution of p_A{since}.",
    "unclear": "the logs do not tell whether {first} or {second} dominates.",
}
_MOST_PAIRS = 60
_SHARES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999, 1.0)
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
    "An arrow leads from a method to one that it dominates. At one sigma, the share of samples with p_A ≥ p is "
    "nowhere lower and somewhere higher for every p ≥ 1/2: certified accuracy, as read off these shares, is then "
    "behind at no radius, number of noise samples and alpha. With the best sigma at each radius, certified "
    "accuracy is ahead at every radius, for one number of noise samples and alpha. Without a path between two "
    "methods, the better one depends on the setting. Logs do not say what abstained, so of logs all this is about the "
    "p that abstained samples cannot reach: from 0.505 on with 100,000 noise samples at alpha 0.001."
)
_AVERAGE = f"Do not rank models by it. {WARNING}. It is shown because published tables report it."
_RANKED = (
    "Dominates: by the verdicts above. No number of noise samples certifies more than the share of samples with "
    "p_A ≥ 0.5. Where the average is larger and this share smaller, easy samples became easier and hard ones were "
    "given up."
)
_CHOSEN = (
    "A sigma chosen after looking has a price: each run's certified radius may fail with probability alpha, so the "
    "best of several may fail with up to their sum."
)
_PER_CENT = "Certified accuracy in per cent, by radius"
_LOGS = " Of a log: by its radii as printed, rounded to nearest, and after ≥ what they certify, where that is less."
_FAMILIES = (
    "A family is one training method with a network per noise level. Names were given with the files; nothing in them "
    "says how they were trained."
)


def view(found: Comparison) -> Report:
    """The report of several runs and logs, or of several methods by theirs."""
    noun, single = _noun(found), _has_single_runs(found)
    about = [] if single else [Text(_FAMILIES)]
    sections = [Section("Runs", [_runs(found), *about], brief=True, folded=not single)]
    if drawn := dominance_charts(found):
        meaning = Details("What an arrow means", [Text(_DOMINANCE)])
        sections.append(Section("Dominance across all settings", [Figures(drawn), meaning]))
    sections += [Section("Verdicts", _verdicts(found), brief=True, folded=True)] if found.graphs else []
    if found.differences:
        sections.append(_appendix_section(_differences_table(found)))
    accuracy, note = accuracy_charts(found), Text(_certified_note(found))
    picture = [] if len(found.families) > MOST_SERIES else accuracy[-1:]  # with more methods it is one of several
    others = accuracy[:-1] if picture else accuracy
    sections.append(Section("Certified accuracy", [note, Figures(others, _undrawn_note(found))] if others else None))
    sections.append(Section("Certified accuracy by radius", [*([] if others else [note]), *picture], pictured=True))
    sections += map(_appendix_section, _accuracy_tables(found))
    sections += [_appendix_section(_repeats_table(found))] if found.repeats else []
    sections.append(Section("Distribution of p_A", _p_a_blocks(found), brief=single))
    sections.append(Section("Average certified radius", _average_table(found), brief=True, folded=True))
    if found.calibration:
        sections.append(Section("Certified calibration", calibration(found), brief=True))
        sections.append(_appendix_section(calibration_table(found, noun)))
    what = "smoothed classifier" if single else "training method"
    count = sum(run.runs for run in found.runs)
    described = f"{count:,} {'runs or logs' if count > 1 else 'run or log'} at sigma "
    described += ", ".join(f"{sigma:g}" for sigma in found.sigmas)
    described += f", compared at {len(found.at):,} {'radii' if len(found.at) > 1 else 'radius'}"
    return Report(
        f"Which {what} is more robust?" if len(found.runs) > 1 else f"How robust is the {what}?",
        _headline(found),
        sections,
        [Section("Other sampling budgets", budgets(found))] if found.budgets else [],
        _shorten_sources(found.sources),
        described if single else f"{counted(len(found.families), noun)}, {described}",
        found.notes,
        smaller=[lambda: _without_steps(found)],
        picture=[*picture, *([] if others else [replace(note, look="note")])],
    )


def charts(found: Comparison) -> Sequence[Chart]:
    """Certified accuracy at each noise level and the best over them; of single runs also the distribution of p_A."""
    return accuracy_charts(found) + (p_a_charts(found) if _has_single_runs(found) else [])


def accuracy_charts(found: Comparison) -> list[Chart]:
    """Certified accuracy by radius: one chart per noise level, and the best over them; one alone for single runs."""
    up, made = percent("certified accuracy"), list[Chart]()
    for sigma in () if _has_single_runs(found) else found.sigmas:
        lines = [
            Curve(place, name, run.curve.values, _percent_texts(run.percents), run.steps)
            for place, name, run in _members(found, sigma)
        ]
        made += curve_charts(f"Certified accuracy, sigma {sigma:g}", found.at, lines, up)
    if _has_single_runs(found) or len(found.sigmas) > 1:
        lines = [
            Curve(i, found.names[i], each.best.values, _percent_texts(_best_percents(each)), each.steps)
            for i, each in enumerate(found.families)
        ]
        title = "Certified accuracy by radius" if _has_single_runs(found) else "Best certified accuracy over sigma"
        made += curve_charts(title, found.at, lines, up)
    return made


def _percent_texts(texts: Sequence[str]) -> list[str]:
    return [f"{text} %" for text in texts]


def _best_percents(family: RunFamily) -> list[str]:
    """What the best run over sigma certifies at each radius, as tables have it."""
    best = [[run for run in family.runs if run.name in names] for names in family.best.names]
    return [max(runs, key=lambda run: run.printed.values[i]).percents[i] for i, runs in enumerate(best)]


def p_a_charts(found: Comparison, *, by_radius: bool = False) -> list[Chart]:
    """The distributions of p_A at each noise level: by p, or by the radius that p stands for."""
    made: list[Chart] = []
    for title, members in _groups(found):
        draws = max(run.draws[1] for _, _, run in members) if by_radius else None
        lines = [PaLine(place, name, run.distribution) for place, name, run in members]
        for group in group_by_look(lines):
            looks = [line._replace(look=line.look % MOST_SERIES) for line in group]
            where = f"{title}{', by radius' if by_radius else ''}"
            made.append(p_a_chart(f"Distribution of p_A{where}", looks, draws=draws, in_percent=True))
    return made


def dominance_charts(found: Comparison) -> list[Chart]:
    """Who dominates whom: one graph per noise level, then by the best over them."""
    return [_graph(found, each) for each in found.graphs if len(each.names) <= MOST_DRAWN]


def _noun(found: Comparison) -> str:
    return "run" if _has_single_runs(found) else "method"


def _has_single_runs(found: Comparison) -> bool:
    """Whether every family is of one run: then all are in one chart."""
    return all(len(family.runs) == 1 and family.runs[0].runs == 1 for family in found.families)


def _members(found: Comparison, sigma: float) -> list[tuple[int, str, Compared]]:
    return [(found.names.index(name), name, run) for name, run in found.at_sigma(sigma)]


def _groups(found: Comparison) -> list[tuple[str, list[tuple[int, str, Compared]]]]:
    """Runs that are drawn together, and what is added to the title: all runs, or families by noise level."""
    if _has_single_runs(found):
        return [("", [(place, found.names[place], run) for place, run in enumerate(found.runs)])]
    return [(f", sigma {sigma:g}", _members(found, sigma)) for sigma in found.sigmas]


def _appendix_section(table: Table) -> Section:
    """A table as a section: in the appendix of a page, and in a terminal."""
    return Section(table.caption, [replace(table, caption="")], brief=True, folded=True)


def _shorten_sources(sources: Sequence[str]) -> str:
    return ", ".join(sources) if len(sources) <= 4 else f"{', '.join(sources[:3])} and {len(sources) - 3:,} more"


def _without_steps(found: Comparison) -> tuple[str, Mapping[str, Any]]:
    """The numbers without the steps of distributions, which grow with the samples."""

    def slim(run: Mapping[str, Any]) -> dict[str, Any]:
        kept = {key: value for key, value in run["distribution"].items() if key not in ("p", "lower", "upper")}
        return {**run, "distribution": kept}

    data = found.to_dict()
    return _LEFT_OUT, {**data, "runs": [slim(run) for run in data["runs"]]}


def _differences_table(found: Comparison) -> Table:
    """Samples certified at each radius by each of a pair, and who certifies more beyond sampling error."""
    of_sigma = len(found.sigmas) > 1
    columns = [Column("pair"), *([Column("sigma", priority=3)] if of_sigma else []), Column("radius")]
    columns += [Column("first", "count"), Column("second", "count"), Column("only first", "count", priority=2)]
    columns += [Column("only second", "count", priority=2), Column("p", "level", "upper", priority=1)]
    columns.append(Column("certifies more"))
    rows: list[list[Cell]] = []
    for each in found.differences:
        sigma: list[Cell] = [NOTHING if each.sigma is None else f"{each.sigma:g}"] if of_sigma else []
        alone: tuple[Cell, Cell] = each.alone or (NOTHING, NOTHING)
        ahead = "unclear" if each.ahead is None else Strong(each.ahead)
        pair = f"{each.first}, {each.second}"
        rows.append([pair, *sigma, short_text(each.radius, "lower"), *each.certified, *alone, each.p, ahead])
    tests = "sign tests of the samples that one of the two certifies alone"
    if found.differences[0].alone is None:
        tests = "Fisher's tests of independent samples"
    note = f"Exact {tests}; Holm's correction for all pairs, radii and directions: all hold together, "
    note += f"{sure_text(found.differences[0].level)}."
    return Table(columns, rows, "Certified samples, beyond sampling error", note, most=_MOST_PAIRS)


# --- verdicts ------------------------------------------------------------------------------------------------------


def _headline(found: Comparison) -> list[Block]:
    if not found.graphs:
        run, place = found.runs[0], len(found.at) // 2
        probability = f"Each certified radius fails {times_text(run.alpha)}, over the noise."
        return [Claim("Certificate", f"{run.name}: {capital(run.curve.sentences[place])}", "", probability)]
    where: dict[str, list[DominanceGraph]] = {}
    for graph in found.graphs:
        where.setdefault(_verdict(graph, _noun(found)), []).append(graph)
    said = [capital(f"{_noise_levels_text(found, graphs)}, {verdict}") for verdict, graphs in where.items()]
    rest = len(said) - 3
    more = [Text(f"{counted(rest, 'further comparison')} below.", "note")] if rest > 0 else []
    other = [Text(each, "note") for each in found.notes if "different samples" in each]
    verdicts = [Claim("Estimate", said[0], "", _ESTIMATE), *map(Text, said[1:3]), *more]
    if not found.differences:
        return [*other, *verdicts]
    shown = [each.text for each in found.answer if each.kind == "shown"]
    if not shown:
        return [*other, *verdicts, Text(_NONE)]
    return [
        *other,
        Claim("Estimate", shown[0], "", _SURE.format(level=percent_text(found.answer.level))),
        *map(Text, shown[1:]),
        *map(Text, said[:3]),
        *more,
    ]


def _noise_levels_text(found: Comparison, graphs: Sequence[DominanceGraph]) -> str:
    sigmas = [f"{graph.sigma:g}" for graph in graphs if graph.sigma is not None]
    said = [f"at sigma {', '.join(sigmas)}"] if sigmas else []
    best = "each at its own sigma" if _has_single_runs(found) else "with the best sigma at each radius"
    return " and ".join([*said, best] if len(sigmas) < len(graphs) else said)


def _verdict(graph: DominanceGraph, noun: str) -> str:
    """Who is undominated, as the end of a sentence."""
    if len(graph.names) == 2:
        (pair,) = graph.pairs
        where = f": {pair.where}" if len(pair.stretches) == 2 else ", since their curves cross several times"
        dominates, since = "dominates" if pair.open_below is None else "is above", _open_below_text(graph)
        words = {"first": pair.first, "second": pair.second, "dominates": dominates, "since": since}
        return _VERDICTS[pair.verdict].format(where=where, **words)
    surely = " surely" if any(pair.verdict == "unclear" for pair in graph.pairs) else ""
    if not graph.edges:
        return f"no {noun}{surely} dominates another."
    top = graph.undominated
    listed = ", ".join(top[:4]) + (f" and {len(top) - 4} more" if len(top) > 4 else "")
    verb = "are" if len(top) > 1 else "is"
    return f"{len(top)} of {len(graph.names)} {noun}s {verb} undominated{_open_below_text(graph)}: {listed}."


def _open_below_text(graph: DominanceGraph) -> str:
    """From where on a verdict holds, if logs leave open what is below."""
    symbol = "p_A" if graph.sigma is not None else "radii"
    return "" if graph.open_below is None else f" for {symbol} ≥ {just_above(graph.open_below)}, open below"


def _graph_title(found: Comparison, graph: DominanceGraph) -> str:
    if graph.sigma is not None:
        return f"sigma {graph.sigma:g}"
    return "each at its own sigma" if _has_single_runs(found) else "best over sigma"


def _verdicts(found: Comparison) -> list[Block]:
    made: list[Block] = []
    for graph in found.graphs:
        where = _graph_title(found, graph)
        made += [Text(f"{capital(where)}: {each}") for each in (graph.contradiction, graph.beyond_chance) if each]
        said = [in_full(each) for each in graph.pairs]
        if len(graph.pairs) > 1:  # else these say the same
            said = [graph.statement, *said, *(in_full(each) for each in graph.chances)]
        listing = Listing([capital(each) for each in said])
        made.append(Details(f"All verdicts, {where}", [listing]) if len(said) > 3 else listing)
    return made


def _graph(found: Comparison, graph: DominanceGraph) -> Chart:
    strict, firm = set(graph.strict_edges), set(graph.firm_edges)
    edges = [(*edge, "firm" if edge in firm else "strict" if edge in strict else "weak") for edge in graph.reduced]
    said = " ".join(f"{better} dominates {worse}." for better, worse in graph.reduced)
    drawn = Graph(graph.names, edges, frozenset(graph.undominated), _LEGEND)
    caption, where = f"{capital(_noun(found))}s without incoming arrows are undominated.", _graph_title(found, graph)
    return Chart(
        f"Dominance, {where}", said or f"No {_noun(found)} dominates another.", [drawn], caption, _matrix(graph, where)
    )


def _matrix(graph: DominanceGraph, where: str) -> Table:
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
    return Table(columns, rows, f"Row against column, {where}", note, fit="split")


# --- accuracy, p_A and the average -----------------------------------------------------------------------------------


def _by_sigma(found: Comparison, row: Callable[[str, Compared], Sequence[Cell]]) -> list[Sequence[Cell] | Heading]:
    rows: list[Sequence[Cell] | Heading] = []
    for sigma in found.sigmas:
        rows += [Heading(f"sigma {sigma:g}"), *(row(name, run) for name, run in found.at_sigma(sigma))]
    return rows


def _accuracy_tables(found: Comparison) -> list[Table]:
    """Certified accuracy at each noise level, and the best over them; of single runs beside each other."""
    single, made = _has_single_runs(found), list[Table]()
    if not single:
        rows = _by_sigma(found, lambda name, run: [name, *run.percents])
        columns = [Column("radius"), *(Column(short_text(radius, "lower"), "bound") for radius in found.at)]
        made.append(Table(columns, rows, _PER_CENT, _rounding_note(found), fit="split"))
    if single or len(found.sigmas) > 1:
        several, cells = len(found.families) > 1, [_best_percents(each) for each in found.families]
        rows = [
            [
                short_text(radius, "lower"),
                *(
                    f"{own[i]}{'' if single else _best_sigmas_text(each, i)}"
                    for each, own in zip(found.families, cells, strict=True)
                ),
                *([_best_families_text(found, i)] if several else []),
            ]
            for i, radius in enumerate(found.at)
        ]
        best = "Best certified accuracy over sigma, in per cent, with the sigma that reaches it"
        columns = [Column("radius"), *(Column(name, "bound") for name in found.names)]
        columns += [Column("best")] if several else []
        note = _rounding_note(found) if single else _CHOSEN
        made.append(Table(columns, rows, _PER_CENT if single else best, note, fit="split"))
    return made


def _certified_note(found: Comparison) -> str:
    logs = any(run.average.as_printed for run in found.runs)
    return _CERTIFIED.format(logs=" (of a log: for the fewest votes that its printed radii allow)" if logs else "")


def _rounding_note(found: Comparison) -> str:
    """How the cells of certified accuracy are rounded, and what the second number of a log is."""
    logs = any(run.average.as_printed for run in found.runs)
    return f"Rounded down.{_LOGS if logs else ''}"


def _repeats_table(found: Comparison) -> Table:

    def cell(spread: Spread, times: float, digits: int) -> str:
        return f"{times * spread.mean:.{digits}f} ± {times * spread.deviation:.{digits}f}"

    rows: list[Sequence[Cell] | Heading] = []
    for sigma in found.sigmas:
        own = [each for each in found.repeats if each.sigma == sigma]
        rows += [Heading(f"sigma {sigma:g}")] if own else []
        rows += [
            [each.family, len(each.runs), cell(each.average, 1, 4), *(cell(spread, 100, 2) for spread in each.printed)]
            for each in own
        ]
    columns = [Column("method"), Column("runs", "count"), Column("average radius", "estimate")]
    columns += [Column(f"% at {short_text(radius, 'lower')}", "estimate") for radius in found.at]
    note = (
        "Standard deviations with one less than the number of runs below. Of logs, by the radii as printed. All runs "
        "are about the same samples, so nothing here is about other ones."
    )
    return Table(columns, rows, "Mean ± standard deviation over runs", note, fit="split")


def _undrawn_note(found: Comparison) -> str:
    left, noun = len(found.families) - MOST_DRAWN, _noun(found)
    return f"{left:,} further {f'{noun}s are' if left > 1 else f'{noun} is'} in the tables only." if left > 0 else ""


def _best_sigmas_text(family: RunFamily, i: int) -> str:
    """The noise levels that reach the best at a radius."""
    names = family.best.names[i]
    if len(names) == len(family.runs) > 1:
        return ", any σ"
    return f", σ {', '.join(f'{run.sigma:g}' for run in family.runs if run.name in names)}"


def _best_families_text(found: Comparison, i: int) -> str:
    """The families that reach the best at a radius."""
    names = found.best.names[i]
    return "all" if len(names) == len(found.families) > 1 else ", ".join(names)


def _p_a_blocks(found: Comparison) -> list[Block]:
    """The distributions by p and, where all of a chart have one noise level, by radius."""
    drawn, scale = p_a_charts(found), ""
    if not _has_single_runs(found) or len(found.sigmas) == 1:
        drawn = [chart for pair in zip(drawn, p_a_charts(found, by_radius=True), strict=True) for chart in pair]
        scale = _SCALE
    rows = _by_sigma(found, lambda name, run: [name, *(share_text(run.distribution, p, True) for p in _SHARES)])
    columns = [Column("p"), *(Column(f"{p:g}", "estimate") for p in _SHARES)]
    shares = Table(columns, rows, "Share of samples with p_A of at least p, in per cent", fit="split")
    rows = _by_sigma(found, lambda name, run: [name, *map(number, run.distribution.quantile(QUANTILES).tolist())])
    columns = [Column("quantile"), *(Column(f"{q:.0%}", "estimate") for q in QUANTILES)]
    quantiles = Table(columns, rows, "Quantiles of p_A", fit="split")
    return [
        Text(f"{P_A} Only p ≥ 1/2 certifies anything.{scale}"),
        Figures(drawn, _undrawn_note(found)),
        *([shares, quantiles] if _has_single_runs(found) else [Details("Shares and quantiles", [shares, quantiles])]),
    ]


def _average_table(found: Comparison) -> list[Block]:
    columns = [
        Column(_noun(found)),
        Column("average radius", "estimate"),
        Column("% of it from the top tenth", "estimate", priority=2),
        Column("of one constant class", "estimate", priority=3),
        *(Column(f"% with p_A ≥ {p:g}", "estimate", priority=1) for p in SHARES),
        Column("dominates"),
    ]
    edges = {graph.sigma: graph.edges for graph in found.graphs}
    rest = edges.get(None, ()) if _has_single_runs(found) else ()
    rows: list[Sequence[Cell] | Heading] = []
    for sigma in found.sigmas:
        rows.append(Heading(f"sigma {sigma:g}"))
        for name, run in sorted(found.at_sigma(sigma), key=lambda member: -member[1].average.value):
            average = run.average
            top = "undefined" if math.isnan(average.top_tenth) else f"{100 * average.top_tenth:.1f}"
            shares = (share_text(run.distribution, p, True) for p in SHARES)
            beaten = ", ".join(worse for better, worse in edges.get(sigma, rest) if better == name) or NOTHING
            rows.append([name, average.value, top, average.trivial, *shares, beaten])
    return [Text(_AVERAGE), Table(columns, rows, "Ranked by average certified radius", _RANKED)]


def _runs(found: Comparison) -> Table:
    columns = (
        Column(_noun(found)),
        Column("sigma"),
        Column("samples", "count"),
        Column("abstained", "count"),
        Column("noise samples each"),
        Column("alpha"),
        Column("from"),
    )
    rows: list[list[Cell]] = []
    for family in found.families:
        for run in family.runs:
            low, high = run.draws
            draws = f"{low:,}" if low == high else f"{low:,} – {high:,}"
            name = family.name if run.runs == 1 else f"{family.name} ({run.runs} runs)"
            row: list[Cell] = [name, f"{run.sigma:g}", run.n, run.n_abstained, draws]
            rows.append([*row, short_text(run.alpha, "upper"), found.origin(run)])
    return Table(columns, rows)
