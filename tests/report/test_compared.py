"""Views of comparisons: every number in a block is one that was found, every chart draws the results' own curves."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import certcal
from certcal.lab.logs import Comparison
from certcal.lab.logs import view as views
from certcal.lab.logs._calibration_view import calibration_charts
from certcal.report.charts import Band, Chart, Line
from certcal.report.document import Heading, Report, Strong, Table
from certcal.report.p_a import PaLine, p_a_chart
from certcal.smoothing.robustness import WARNING, PaDistribution, VoteRecord
from tests.report.compared_families import HOSTILE, SIGMAS, record, results_of, seven, with_confidences


def votes(name: str, seed: int, *, sigma: float = 0.5, samples: int = 60, draws: int = 1000) -> VoteRecord:
    rng = np.random.default_rng(seed)
    drawn = rng.binomial(draws, rng.beta(6, 1 + seed % 3, samples))
    right = rng.random(samples) < 0.85
    return VoteRecord.of(drawn, draws, right, sigma=sigma, label=np.arange(samples) % 10, name=name)


@pytest.fixture(scope="module")
def three() -> Comparison:
    return certcal.compare(votes("A", 1), votes("B", 2), votes("C", 3, sigma=1.0, draws=2000))


def blocks_of(report: Report, title: str) -> list[Any]:
    (section,) = [each for each in (*report.sections, *report.appendix) if each.title == title]
    found: list[Any] = []
    for block in section.blocks:
        found += [block, *getattr(block, "blocks", ())]
    return found


def table_of(report: Report, title: str, place: int = 0) -> tuple[list[str], list[list[str]]]:
    """Heads and rows of a section's table, without the rows that are headings."""
    table: Table = [each for each in blocks_of(report, title) if isinstance(each, Table)][place]
    rows = [row for row in table.texts() if not isinstance(row, Heading)]
    return [column.head for column in table.columns], rows


def lines_of(chart: Chart) -> list[Line]:
    return [mark for mark in chart.panels[0].marks if isinstance(mark, Line)]  # type: ignore[union-attr]


def words_of(report: Report) -> str:
    return " ".join(report.to_text(width=200, full=True).split())


# --- runs and logs ---------------------------------------------------------------------------------------------------


def test_the_tables_of_runs_hold_what_was_found(three: Comparison) -> None:
    report = three.report()
    heads, rows = table_of(report, "Certified accuracy in per cent, by radius")
    assert heads == ["radius", "A", "B", "C", "best"]
    assert [float(row[0]) for row in rows] == list(three.best.at)
    assert [row[1:4] for row in rows] == [
        list(each) for each in zip(*(run.curve.percents for run in three.runs), strict=True)
    ]
    for row, names in zip(rows, three.best.names, strict=True):
        assert row[4] == ("all" if len(names) == 3 else ", ".join(names))
    heads, shares = table_of(report, "Distribution of p_A")
    averages = {row[0]: row[1] for row in table_of(report, "Average certified radius")[1]}
    for row, run in zip(shares, three.runs, strict=True):
        assert row == [run.name, *(f"{100 * run.distribution.survival(float(p))[0]:.2f}" for p in heads[1:])]
        assert averages[run.name] == f"{run.average.value:.4f}"


def test_every_verdict_note_and_warning_is_said_and_the_headline_is_an_estimate(three: Comparison) -> None:
    report = three.report()
    shown = words_of(report)
    assert len(three.dominance) == 3
    for sentence in (*(pair.statement for pair in three.dominance), *three.notes, WARNING):
        assert sentence[1:] in shown
    claim, *rest = report.headline
    assert (claim.kind, claim.sentence) == ("Estimate", three.answer[0].text)
    assert sum(block.text.startswith("Each at its own sigma, ") for block in rest) == 1


def test_the_charts_of_runs_draw_their_curves(three: Comparison) -> None:
    _, accuracy, p_a = three.report().charts()  # the first is the graph
    for line, run in zip(lines_of(accuracy), three.runs, strict=True):
        assert line.marked == (run.curve.at, run.curve.values)
    for line, run in zip(lines_of(p_a), three.runs, strict=True):
        np.testing.assert_array_equal(line.y, run.distribution.survival(np.array(line.x))[0])
    assert len(three.plot().axes) >= 2


@pytest.mark.parametrize(("samples", "draws", "radii"), [(60, 1000, [0, 0.5]), (9000, 10**6, [0.7]), (2, 10, [0, 3])])
def test_certified_accuracy_is_drawn_as_known_at_every_radius_and_nowhere_above(
    samples: int, draws: int, radii: list[float]
) -> None:
    given = votes("A", 1, samples=samples, draws=draws)
    (chart,) = views.accuracy_charts(certcal.compare(given, radii=radii))
    (line,), reached = lines_of(chart), given.radii()
    end = chart.panels[0].x.high  # type: ignore[union-attr]
    assert line.steps == "pre"
    assert line.x[-1] == end
    assert len(line.x) <= 1602
    places = np.unique([*np.linspace(0, end, 997), *(r for x in line.x for r in (x, np.nextafter(x, 9)) if r < end)])
    shown = np.array(line.y)[np.searchsorted(line.x, places, side="left")]

    def truth(at: Any) -> Any:
        return (given.correct & (reached >= np.expand_dims(at, -1))).mean(axis=-1)

    assert (shown <= truth(places)).all()
    assert (shown >= truth(np.minimum(end, places + end / 799))).all()  # moved by less than a line is wide
    if len(line.x) < 500:
        np.testing.assert_array_equal(shown, truth(places))


def test_a_line_through_the_asked_radii_would_be_above_what_is_certified() -> None:
    # Radii end at 0.46 σ / 0.12; at the asked ones, 0 and 0.5, all is right, and in between a line is nowhere.
    given = VoteRecord.of([100_000] * 80 + [20_000] * 20, 100_000, np.ones(100), sigma=0.12)
    (chart,) = views.accuracy_charts(certcal.compare(given, radii=[0, 0.5]))
    (line,) = lines_of(chart)
    heights = {r: line.y[int(np.searchsorted(line.x, r))] for r in (0.1, 0.44, 0.46, 0.49)}
    assert heights == {0.1: 0.8, 0.44: 0.8, 0.46: 0.0, 0.49: 0.0}


def test_the_best_over_sigma_is_drawn_as_the_highest_staircase() -> None:
    small, large = votes("", 1, sigma=0.25), votes("", 2, sigma=1.0)
    *_, best = views.accuracy_charts(certcal.compare(a=[small, large], radii=[0, 1]))
    (line,), reached = lines_of(best), (small.radii(), large.radii())
    for r in (0.0, 0.1, 0.3, 0.5, 0.77, 1.0):
        shares = [(one.correct & (radii >= r)).mean() for one, radii in zip((small, large), reached, strict=True)]
        assert line.y[int(np.searchsorted(line.x, r))] == max(shares)


def test_what_is_computed_at_some_radii_only_is_marked_there_and_joined_lightly() -> None:
    for group in calibration_charts(with_confidences()):
        assert all(line.guide and line.markers and not line.steps for chart in group for line in lines_of(chart))


def test_one_run_has_no_verdict_and_no_best_and_nothing_certified_is_drawn() -> None:
    alone = certcal.compare(votes("A", 1), radii=[0.2, 2 / 3])
    report = alone.report()
    assert report.headline[0].kind == "Certificate"
    assert "Dominance across all settings" not in [section.title for section in report.sections]
    assert table_of(report, "Certified accuracy in per cent, by radius")[0] == ["radius", "A"]
    assert "at radius 0.666666." in report.charts()[0].description
    assert (
        "nan" not in certcal.compare(votes("A", 1), radii=[50.0]).report().to_html().lower().split("<svg", 1)[1][:4000]
    )


def test_many_runs_are_drawn_in_groups_and_all_are_in_the_table() -> None:
    many = certcal.compare(*(votes(f"R{i}", i, samples=12, draws=100) for i in range(27)), radii=[0.0, 0.2])
    report = many.report()
    assert [len(lines_of(chart)) for chart in report.charts()] == [8] * 9
    notes = [getattr(block, "note", "") for block in blocks_of(report, "Certified accuracy")]
    assert "3 further runs are in the tables only." in notes
    assert len(table_of(report, "Certified accuracy in per cent, by radius")[0]) == 1 + 27 + 1
    assert len(report.to_html()) < 6_000_000


def test_a_page_without_room_leaves_the_steps_out_and_says_so(three: Comparison) -> None:
    for result in (three, with_confidences()):
        said, less = result.report().smaller[0]()
        assert "steps" in said
        kept = less["runs"][0]
        assert "quantiles" in kept["distribution"]
        assert "lower" not in kept["distribution"]


def test_hostile_names_are_shown_and_not_run() -> None:
    page = certcal.compare(votes("<script>alert(1)</script>\u202e", 1), votes("B", 2)).report().to_html()
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "\u202e" not in page


# --- families --------------------------------------------------------------------------------------------------------


def test_the_tables_of_families_hold_what_was_found() -> None:
    found, report = seven(), seven().report()
    runs = [(name, run) for sigma in SIGMAS for name, run in found.at_sigma(sigma)]
    assert table_of(report, "Certified accuracy in per cent, by radius")[1] == [
        [name, *run.curve.percents] for name, run in runs
    ]
    heads, rows = table_of(report, "Distribution of p_A")
    for row, (name, run) in zip(rows, runs, strict=True):
        assert row == [name, *(f"{100 * run.distribution.survival(float(p))[0]:.2f}" for p in heads[1:])]
    _, rows = table_of(report, "Runs")
    assert [(row[0], float(row[1]), row[-1]) for row in rows] == [
        (family.name, run.sigma, f"runs/{run.name}") for family in found.families for run in family.runs
    ]
    best = "Best certified accuracy over sigma, in per cent, with the sigma that reaches it"
    for place, row in enumerate(table_of(report, best)[1]):
        for cell, family in zip(row[1:], found.families, strict=False):
            reached = family.best.names[place]
            assert cell.startswith(f"{math.floor(10_000 * family.best.fractions[place]) / 100:.2f}, ")
            assert cell.endswith("any σ") == (len(reached) == 3)
        assert row[-1] == ("all" if len(found.best.names[place]) == 7 else ", ".join(found.best.names[place]))


def test_the_average_radius_is_ranked_beside_what_it_hides() -> None:
    found, rows = seven(), table_of(seven().report(), "Average certified radius")[1]
    for place, (sigma, graph) in enumerate(zip(SIGMAS, found.graphs, strict=False)):
        own = rows[7 * place : 7 * place + 7]
        runs = dict(found.at_sigma(sigma))
        assert [float(row[1]) for row in own] == sorted((float(row[1]) for row in own), reverse=True)
        for name, average, *_, at_half, _, _, beaten in own:
            assert average == f"{runs[name].average.value:.4f}"
            assert at_half == f"{100 * runs[name].distribution.survival(0.5)[0]:.2f}"
            assert beaten == (", ".join(worse for one, worse in graph.edges if one == name) or "–")


def test_a_graph_has_its_arrows_its_matrix_and_its_verdicts_in_words() -> None:
    found, report = seven(), seven().report()
    for graph, chart in zip(found.graphs, views.dominance_charts(found), strict=True):
        (drawn,) = chart.panels
        assert [edge[:2] for edge in drawn.edges] == list(graph.reduced)  # type: ignore[union-attr]
        assert drawn.top == frozenset(graph.undominated)  # type: ignore[union-attr]
    graph, edges = found.graphs[0], set(found.graphs[0].edges)
    for name, (_, *row) in zip(graph.names, views.dominance_charts(found)[0].numbers.texts(), strict=True):
        for other, words in zip(graph.names, row, strict=True):
            expected = "–" if name == other else "crosses"
            assert words == ("better" if (name, other) in edges else "worse" if (other, name) in edges else expected)
    shown = words_of(report)
    for graph in found.graphs:
        told = (graph.statement, graph.contradiction, graph.beyond_chance, *(each.sentence for each in graph.chances))
        told += tuple(pair.statement for pair in graph.pairs)
        assert [each for each in told if each and each[1:] not in shown] == []


def test_what_is_beyond_sampling_error_stands_out() -> None:
    strong = {name: [VoteRecord.of([k] * 200, 100, [1] * 200, sigma=1.0)] for name, k in (("a", 100), ("b", 40))}
    found = results_of(strong, at=[0.0])
    assert found.graphs[0].firm_edges == (("a", "b"),)
    (chart,) = views.dominance_charts(found)
    assert chart.numbers is not None
    assert chart.numbers.rows[0][2] == Strong("better")  # type: ignore[index]
    claim, verdict = found.report().headline
    assert claim.sentence.startswith("a certifies more than b at radius 0 (200 of 200 samples against 0)")
    assert verdict.text == "At sigma 1, a dominates b."


def test_every_budget_has_a_value_for_every_family_as_far_as_anything_is_certified() -> None:
    found = seven()
    for place, sigma in enumerate(SIGMAS):
        _, rows = table_of(found.report(), "Other sampling budgets", place)
        expected = [each for table in found.budgets if table.sigma == sigma for each in table.rows]
        for row, (name, values) in zip(rows, expected, strict=True):
            shown = [float(cell.lstrip("~")) for cell in row[1:]]
            assert (row[0], shown) == (name, [round(100 * float(value), 2) for value in values.lower[: len(shown)]])
            assert not values.upper[len(shown) :].any()
    notes = {each.note for each in found.budgets if each.note}
    assert notes
    assert all(each in words_of(found.report()) for each in notes)


def test_certified_calibration_is_as_printed_and_missing_where_nothing_is_certified() -> None:
    found = with_confidences()
    heads, rows = table_of(found.report(), "Certified calibration by radius, rounded to the safe side")
    assert heads[2] == "error if all hold"  # that of certify, which needs no such condition, is another number
    by_sigma = [[each for each in found.calibration if each.sigma == sigma] for sigma in SIGMAS[:2]]
    expected = [(each.family, each.summaries[i]) for own in by_sigma for i in range(3) for each in own]
    for row, (name, summary) in zip(rows, expected, strict=True):
        error = summary["calibration_error"]
        worst = "–" if error.worst is None else error.worst.text
        assert row[:4] == [name, f"{summary.n_certified} of {summary.n}", worst, error.worst_all.text]
        assert row[5] == ("–" if math.isnan(summary.skill.value) else summary.skill.text.replace("-", "−"))
    assert [row[2] for row in rows[-2:]] == ["–", "–"]
    assert [len(group) for group in calibration_charts(found)] == [2] * 4
    titles = [section.title for section in seven().report().sections]
    assert "Certified calibration" not in titles


def test_lines_keep_their_look_from_chart_to_chart() -> None:
    first, second, best = views.accuracy_charts(with_confidences())
    assert [[(line.look, line.label) for line in lines_of(each)] for each in (first, second)] == [
        [(0, "gaussian"), (1, "smoothadv"), (2, HOSTILE)],
        [(0, "gaussian"), (1, "smoothadv")],
    ]
    assert len(lines_of(best)) == 3


def test_one_family_alone_says_what_is_certified_instead_of_a_verdict() -> None:
    report = results_of({"a": [record(0, 0.25), record(0, 0.5)]}, at=[0.0, 0.25, 0.5]).report()
    (claim,) = report.headline
    assert claim.kind == "Certificate"  # type: ignore[union-attr]
    assert "a 0.25: " in claim.sentence  # type: ignore[union-attr]
    assert "norm up to 0.25" in claim.sentence  # type: ignore[union-attr]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_seven_families_fit_the_terminal(width: int) -> None:
    text = seven().report().to_text(width=width)
    assert max(map(len, text.splitlines())) <= width
    numbers = {text for run in seven().runs for text in run.percents}
    assert [each for each in numbers if each not in text] == []


# --- the distribution of p_A -----------------------------------------------------------------------------------------


def test_the_staircase_by_radius_falls_where_that_of_p_falls() -> None:
    for line, by_radius, (_, run) in zip(
        lines_of(views.p_a_charts(seven())[1]),
        lines_of(views.p_a_charts(seven(), by_radius=True)[1]),
        seven().at_sigma(0.5),
        strict=True,
    ):
        for drawn in (line, by_radius):
            assert list(drawn.y) == sorted(drawn.y, reverse=True)
            assert drawn.y[0] == run.distribution.survival(0.5)[0]
            assert drawn.steps == "pre"
        assert set(by_radius.y) <= {*run.distribution.curve(10_000).lower.tolist()}


def test_votes_that_a_log_leaves_open_are_drawn_as_a_band() -> None:
    exact = PaDistribution("x", 1.0, np.array([0.5, 0.9]), np.array([0.5, 0.9]))
    vague = PaDistribution("y", 1.0, np.array([0.5, 0.9]), np.array([0.6, 0.9]))

    def bands(seen: PaDistribution) -> Sequence[Any]:
        return [mark for mark in p_a_chart("", [PaLine(0, "x", seen)]).panels[0].marks if isinstance(mark, Band)]  # type: ignore[union-attr]

    assert bands(exact) == []
    (band,) = bands(vague)
    assert list(band.x) == [0.5, 0.6, 0.6, 0.9, 0.9, 1.0]
    assert (list(band.low), list(band.high)) == ([0.5, 0.5, 0.5, 0.5, 0, 0], [1, 1, 0.5, 0.5, 0, 0])


# --- two measurements ------------------------------------------------------------------------------------------------

OLD, NEW = ({"confidence": [0.9, top] * 20, "correct": [1, 0] * 20} for top in (0.8, 0.6))


def test_two_measurements_stand_side_by_side_with_their_differences() -> None:
    old, new = (certcal.measure(each, source=name, bootstrap=0) for each, name in ((OLD, "old"), (NEW, "new")))
    found = certcal.compare(old, new)
    assert [row.name for row in found.rows] == [row.name for row in old.rows]
    for row in found.rows:
        assert (row.old, row.new, row.interval) == (old[row.name], new[row.name], None)
        assert row.difference == new[row.name].value - old[row.name].value or math.isnan(row.difference)
    assert "−0.1000" in found.report().headline[0].sentence
    assert "without an interval" in words_of(found.report())
    assert "rows are not paired: measurements hold none, so compare the tables themselves" in words_of(found.report())
    assert json.loads(found.to_json())["pairing"]["by"] is None
    assert found.to_pandas().shape == (len(old.rows), 10)
    assert json.loads(found.to_json())["rows"][0]["interval"] is None


def test_differences_that_are_sure_stand_out_and_one_interval_alone_says_nothing() -> None:
    sides = ({name: list(values) * 20 for name, values in each.items()} for each in (OLD, NEW))
    old, new = (certcal.measure(each, metrics=["mean_confidence", "accuracy"]) for each in sides)
    found = certcal.compare(old, new)
    assert (found["mean_confidence"].changed, found["accuracy"].changed) == (True, False)
    spread = found["mean_confidence"].interval
    assert spread is not None
    assert (spread.upper, spread.level) == (
        new["mean_confidence"].interval.upper - old["mean_confidence"].interval.lower,  # type: ignore[union-attr]
        0.9,
    )
    table = next(block for block in found.report().sections[0].blocks if isinstance(block, Table))
    rows = [row for row in table.rows if not isinstance(row, Heading)]
    assert [isinstance(row[-3], Strong) for row in rows] == [False, True]  # accuracy stands first
    plain = certcal.measure(NEW, metrics=["mean_confidence"], bootstrap=0)
    assert [row.changed for row in certcal.compare(old, plain).rows] == [None]
    assert certcal.compare(old, plain).unmatched == ("accuracy",)


def test_two_bounds_stand_side_by_side() -> None:
    old, new = certcal.bound(OLD), certcal.bound(NEW)
    found = certcal.compare(old, new)
    assert [(row.name, row.difference) for row in found.rows] == [
        (name, new[name].value - old[name].value) for name in old.bounds
    ]
    assert "no bounds on the difference" in words_of(found.report())


# --- what is compared ------------------------------------------------------------------------------------------------


def test_families_come_by_keyword_or_in_a_mapping_and_keep_their_origin() -> None:
    one, two = record(0, 0.5), record(1, 0.5)
    by_keyword, mapped = (
        certcal.compare(a=one, b=[two], radii=[0.0]),
        certcal.compare({"a": one, "b": two}, radii=[0.0]),
    )
    assert by_keyword.to_dict() == mapped.to_dict()
    assert by_keyword.sources == ()
    assert replace(mapped, origins={"a 0.5": "x"}).to_dict()["runs"][0]["source"] == "x"
    assert repr(mapped) == "<Comparison of a, b at 1 radius>"


@pytest.mark.parametrize(
    ("sources", "options", "text"),
    [
        ((), {}, "there is nothing to compare"),
        ((record(0, 0.5),), {"a": record(1, 0.5)}, "name all of them, or none"),
        ((record(0, 0.5),), {"sigma": 0.5}, "sigma: it is for logs, and runs know their own"),
        ((record(0, 0.5), 3), {}, "source 2 is int"),
        ((record(0, 0.5),), {"radii": [-1.0]}, "radii: -1 is not"),
        ((certcal.measure(OLD),), {}, "in pairs of one kind"),
        ((certcal.measure(OLD), OLD), {}, "source 2 is a table of predictions, and source 1 a result"),
        ((record(0, 0.5), OLD), {}, "source 2 is a table of predictions and source 1 is a log; compare two of one"),
        ((OLD, NEW, OLD), {}, "3 tables cannot be compared"),
        ((certcal.measure(OLD), certcal.bound(OLD)), {}, "in pairs of one kind"),
        ((certcal.measure(OLD), certcal.measure(NEW)), {"alpha": 0.1}, "without settings"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_a_sentence(sources: Any, options: Any, text: str) -> None:
    with pytest.raises(certcal.InputError, match=text):
        certcal.compare(*sources, **options)


def test_a_comparison_of_runs_has_no_number_that_could_be_required(three: Comparison) -> None:
    with pytest.raises(certcal.InputError, match="no number"):
        three.report(require="ece <= 0.1")
