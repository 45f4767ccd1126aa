"""The report of a recalibration: the numbers of the held-out samples, and charts that go through them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certcal import Predictions, apply_map, recalibrate
from certcal._base.rounding import claim_text, number_text, round_outward
from certcal.calibrators import CertifiedIsotonic, CertifiedSamples
from certcal.calibrators._isotonic import MonotoneCurve
from certcal.report.charts import Bars, Line, Points
from certcal.report.document import Choice, Claim, Figures, Heading, Table, Text
from certcal.report.numbers import minus
from certcal.report.views.recalibrated_predictions import map_points
from certcal.report.views.recalibration import charts, verdict, view
from tests.report.recalibrated import interval_samples, run_samples


@pytest.fixture(scope="module")
def found():
    return recalibrate(interval_samples())


def section(report, title):
    (one,) = [each for each in (*report.sections, *report.appendix) if each.title == title]
    return one.blocks


def worst(at, metric):
    return at.summary[metric].worst.text


def test_the_headline_is_the_claim_after_the_map_at_the_largest_radius_and_the_verdict(found):
    claim, said = view(found).headline
    last = found.chosen.at[-1]
    assert claim.value == f"at most {number_text(worst(last, 'calibration_error'), percent=True)}"
    assert claim.sentence.endswith(f"within radius 0.5 on {last.summary.n_certified} certified held-out samples.")
    assert said == Text(verdict(found))
    run = recalibrate(run_samples(), tradeoff=1)
    assert view(run).headline[0].kind == "Certificate"
    claimed = run.chosen.at[-1].claim.text
    assert view(run).headline[0].value == f"at most {claim_text(run.chosen.at[-1].claim)}"
    # What is called the ECE elsewhere on the page is that number; the worst case of held certificates has another name.
    (table,), (_, maps) = section(view(run), "Before and after"), section(view(run), "All maps")
    rows = {row[0]: row[-1] for row in table.texts() if not isinstance(row, Heading)}
    assert rows["ECE ≤"] == claimed
    assert rows["ECE, if all hold ≤"] == worst(run.chosen.at[-1], "calibration_error") != claimed
    heads = [column.head for column in maps.columns]
    chosen = [row for row in maps.texts() if not isinstance(row, Heading) and row[0].endswith("◂")]
    assert [row[heads.index("ECE")] for row in chosen] == [at.claim.text for at in run.chosen.at]
    said, figures = section(view(run), "Worst case by radius")[0].frames[-1]
    assert "the calibration error where every certificate holds is at most" in said.text
    assert all("ECE where every certificate holds at most" in chart.caption for chart in figures.charts)


def test_numbers_before_and_after_and_of_every_map_are_those_of_the_held_out_samples(found):
    report = view(found)
    (table,) = section(report, "Before and after")
    rows = {row[0]: row[1:] for row in table.texts() if not isinstance(row, Heading)}
    pair = found.identity, found.chosen
    assert rows["certified Brier score ≤"] == [worst(line.at[-1], "brier_score") for line in pair]
    assert rows["certified skill ≥"] == [minus(line.at[-1].summary.skill.text) for line in pair]
    assert rows["AUROC"] == [f"{line.clean['auroc'].value:.4f}" for line in pair]
    clean, certified = section(report, "All maps")
    assert [row[0] for row in clean.texts()] == [f"{line.name}{' ◂' * (line is found.chosen)}" for line in found.lines]
    expected = [
        [worst(at, "brier_score"), worst(at, "calibration_error")]
        + [minus(each.text) for each in (at.summary.skill, at.summary.population, at.gain)]
        for at in (line.at[k] for k in range(2) for line in found.lines)
    ]
    assert [row[1:] for row in certified.texts() if not isinstance(row, Heading)] == expected


def test_the_map_and_the_front_are_drawn_through_their_own_values(found):
    chart, front = charts(found)
    lines = [mark for mark in chart.panels[0].marks if isinstance(mark, Line)]
    for line, judged in zip(lines, (found.chosen, found.lines[1], found.lines[-1]), strict=True):
        np.testing.assert_array_equal(line.y, judged.calibrator.transform(line.x))
        assert set(judged.calibrator.curve_.x) <= set(line.x)
    (bars,) = [mark for mark in chart.panels[1].marks if isinstance(mark, Bars)]
    assert sum(bars.end) == found.n_held_out
    (fitted,) = [mark for mark in front.panels[0].marks if isinstance(mark, Line)]
    points = [mark for mark in front.panels[0].marks if isinstance(mark, Points)]
    assert list(zip(fitted.x, fitted.y, strict=True)) == [point.fitted for point in found.front[1:]]
    drawn = [*found.front[1:], found.front[0], found.constant]
    pairs = [pair for mark in points for pair in zip(mark.x, mark.y, strict=True)]
    assert pairs == [point.held_out for point in drawn]
    for row, point in zip(front.numbers.texts(), found.front, strict=False):
        assert 0 <= float(row[2]) - point.fitted[1] <= 1e-4
        assert 0 <= float(row[4]) - point.held_out[1] <= 1e-4


def test_diagrams_of_the_worst_case_add_up_to_it_at_each_radius(found):
    (choice,) = section(view(found), "Worst case by radius")
    assert isinstance(choice, Choice)
    assert (choice.names, choice.start) == (["0.25", "0.5"], 1)
    for place, (_, figures) in enumerate(choice.frames):
        assert isinstance(figures, Figures)
        for chart, line in zip(figures.charts, (found.identity, found.chosen), strict=True):
            ends = line.at[place].summary["calibration_error"].worst
            assert f"ECE at most {claim_text(ends)}" in chart.caption
            rows = chart.numbers.texts()
            count = np.array([int(row[1]) for row in rows])
            gap = np.array([abs(float(row[4].replace("−", "-"))) for row in rows])
            assert (count * gap).sum() / count.sum() == pytest.approx(ends.value, abs=6e-5)


def test_bounds_on_the_population_have_their_terms_before_and_after(found):
    claim, gain, figures, *_ = section(view(found), "Population")
    assert isinstance(claim, Claim)
    assert claim.value == f"at most {claim_text(found.chosen.at[-1].summary.population)}"
    assert gain.value == f"at least {minus(found.chosen.at[-1].gain.text)}"
    terms = figures.charts[0].numbers
    assert isinstance(terms, Table)
    assert [row[1] for row in terms.texts()] == [
        line.at[-1].summary.population.text for line in (found.identity, found.chosen)
    ]


def test_without_clean_confidences_and_radii_nothing_is_said_of_them():
    bare = recalibrate(replace(interval_samples(60, (0.5,), clean=False), radii=("",)))
    text = bare.report().to_text(full=True)
    assert len(charts(bare)) == 1
    assert "adius" not in text.partition("How the numbers were computed")[0]
    assert "inside the given intervals" in text


def test_where_nothing_is_certified_the_report_says_so():
    samples = interval_samples(40, (0.5,))
    nothing = CertifiedSamples.from_intervals(
        samples.lower, samples.upper, samples.correct, samples.confidence, certified=np.zeros((40, 1)), radii=(0.5,)
    )
    bare = recalibrate(nothing, tradeoff=0)
    assert section(view(bare), "Worst case") == [
        Text("No held-out sample is certified, so there is no worst case to draw.")
    ]
    assert "none is certified" in view(bare).headline[0].sentence
    assert bare.report().to_html()


@pytest.mark.parametrize("correct", [[1] * 8, [0] * 8, [0, 1] * 4])
def test_intervals_from_0_to_1_and_one_outcome_give_a_page(correct):
    samples = CertifiedSamples.from_intervals(np.zeros(8), np.ones(8), correct, np.full(8, 0.5))
    made = recalibrate(samples, tradeoff=1, tradeoffs=(1,))
    assert "Every confidence becomes" in charts(made)[0].description
    assert made.report().to_html()


def test_what_is_too_large_for_a_page_is_left_out_in_steps(found):
    (said, lean), (more, least) = (each() for each in view(found).smaller)
    assert "signs of the bins are too many" in said
    assert '"signs"' not in str(lean)
    assert len(lean["lines"]) == len(found.lines)
    assert "maps of other trade-offs" in more
    assert [line["tradeoff"] for line in least["lines"]] == [None, 0.5]


# ------------------------------------------------------------------------------------------------------------- verdict


def tiled(lower, upper, correct, n=200, **options):
    return CertifiedSamples.from_intervals(
        *(np.tile(each, n) for each in (lower, upper, correct)), radii=[0.5], **options
    )


def test_confidences_that_tell_right_from_wrong_survive_with_their_skill_and_gain():
    made = recalibrate(tiled([0.1, 0.5], [0.4, 0.9], [0, 1]))
    said, at = verdict(made), made.chosen.at[0]
    assert said.startswith("At radius 0.5, the recalibrated confidences carry information that is certified to survive")
    assert f"a certified skill of at least {at.summary.skill.text}" in said
    assert f"(as they were: {made.identity.at[0].summary.skill.text})" in said
    assert f"their certified Brier score is at least {at.gain.text} below" in said


def test_a_gain_that_the_bound_leaves_open_is_not_claimed():
    made = recalibrate(tiled([0.1, 0.5], [0.4, 0.9], [0, 1], n=3))
    assert made.chosen.at[0].summary.skill.value > 0 >= made.chosen.at[0].gain.value
    assert "Whether they do in the population is left open" in verdict(made)


def test_confidences_that_tell_nothing_are_said_to_tell_nothing():
    said = verdict(recalibrate(tiled([0.0, 0.0], [1.0, 1.0], [0, 1])))
    assert "are not certified to beat one constant confidence" in said
    assert "Nor is any non-decreasing map of them." in said


@pytest.mark.parametrize(
    ("correct", "certified", "words"),
    [([1, 1], None, "all 200 certified samples are correct"), ([0, 1], [0, 0], "no sample is certified")],
)
def test_where_a_skill_is_undefined_the_reason_is_said(correct, certified, words):
    kept = None if certified is None else np.tile(certified, 200)
    made = tiled([0.1, 0.5], [0.4, 0.9], correct, certified=kept, confidence=np.tile([0.2, 0.7], 200))
    assert words in verdict(recalibrate(made, tradeoff=1 if certified is None else 0))


# -------------------------------------------------------------------------------------------------------- lines of maps


def fitted(x, y):
    made = CertifiedIsotonic()
    made.curve_ = MonotoneCurve(np.asarray(x, float), np.asarray(y, float))
    return made


@st.composite
def curves(draw):
    size = draw(st.integers(1, 12))
    places = sorted(draw(st.sets(st.integers(0, 1000), min_size=size, max_size=size)))
    levels = sorted(draw(st.lists(st.integers(0, 5), min_size=size, max_size=size)))
    return fitted(np.array(places) / 1000, np.array(levels) / 5)


@given(curves())
def test_the_line_of_a_map_is_the_map_everywhere_and_its_flat_parts_are_those_that_can_be_seen(calibrator):
    points = map_points(calibrator)
    assert (points.x[0], points.x[-1]) == (0, 1)
    at = np.linspace(0, 1, 2001)
    np.testing.assert_allclose(np.interp(at, points.x, points.y), calibrator.transform(at), atol=1e-12)
    at = np.arange(0, 1, 0.001) + 0.0005
    level = calibrator.transform(at - 0.0004) == calibrator.transform(at + 0.0004)
    inside = np.zeros(at.size, bool)
    for start, end, value in points.flat:
        assert end - start >= 0.004
        here = (at > start) & (at < end)
        assert (calibrator.transform(at)[here] == value).all()
        inside |= here
    run = 0  # whatever is level outside of them belongs to a run shorter than 0.004
    for each in level & ~inside:
        run = run + 1 if each else 0
        assert run <= 4


def test_a_map_with_very_many_knots_is_drawn_with_few_points_that_miss_nothing():
    x = np.linspace(0, 1, 20_001)
    points = map_points(fitted(x, np.floor(x * 10) / 10))
    assert points.x.size < 600
    assert len(points.flat) == 10
    at = np.linspace(0, 1, 5001)
    assert np.mean(np.abs(np.interp(at, points.x, points.y) - np.floor(at * 10) / 10)) < 0.002


def test_a_map_given_by_a_formula_has_a_table_of_some_of_its_values():
    made = recalibrate(interval_samples(60, (0.5,)), method="temperature", tradeoff=0, tradeoffs=(1,))
    numbers = charts(made)[0].numbers
    written = np.array([[float(text) for text in row] for row in numbers.texts()])
    assert len(written) == 21
    np.testing.assert_allclose(made.map.transform(written[:, 0]), written[:, 1], atol=5.1e-5)


# --------------------------------------------------------------------------------------------------------- predictions


def test_predictions_are_told_before_and_after():
    rng = np.random.default_rng(2)
    z = rng.uniform(0, 1, 300)
    made = recalibrate(Predictions.from_confidence(z, rng.random(300) < z**2))
    report = made.report()
    before, after = (each["top_label_nll"].value for each in (made.before, made.after))
    assert report.headline[0].value == f"−{before - after:.4f}"
    said = f"{made.method.capitalize()} helps: the log loss of the confidences falls from {before:.4f} to {after:.4f}."
    assert made.answer[0].text == said
    assert (made.answer[0].kind, made.answer[-1].kind) == ("shown", "next")
    (tried,) = section(report, "Maps that were compared")
    assert [row[0] for row in tried.texts()] == [each.method for each in made.choice.tried]
    (table,) = section(report, "Before and after")
    rows = {row[0]: row[2:] for row in table.texts() if not isinstance(row, Heading)}
    assert rows["ECE"][::2][:2] == [f"{each['ece'].value:.4f}" for each in (made.before, made.after)]
    assert rows["ECE"][4] == f"−{made.before['ece'].value - made.after['ece'].value:.4f}"
    assert [chart.title for chart in report.charts()] == ["Before", made.method.capitalize(), f"Map: {made.method}"]
    assert made.verdict("ece <= 0.3", "difference ece <= 0.3", "old ece >= 0.001")
    assert made.verdict("ece <= 0.3").judgements[0].value == made.after["ece"].interval.upper
    assert "Nothing was held out" in str(recalibrate({"score": z, "outcome": (z > 0.4).astype(int)}, fit_on_all=True))


def test_the_answer_of_a_map_that_does_not_help_says_so():
    rng = np.random.default_rng(4)
    z = rng.uniform(0, 1, 400)
    none = recalibrate(Predictions.from_scores(z, rng.random(400) < z))
    assert none.answer[0].text.startswith("No map helps: the best, ")
    assert none.answer[-1].text == "Use the scores as they are, or judge the map on more samples."
    unclear = recalibrate(Predictions.from_scores(z, rng.random(400) < z), method="platt")
    assert unclear.answer[0].kind == "seen"
    assert unclear.answer[0].text.startswith("Whether platt helps is unclear: the log loss ")
    spread = unclear.answer[0].data["interval"]  # the same ends as everywhere on the page: outward
    ends = [round_outward(end, side).replace("-", "−") for end, side in zip(spread, ("lower", "upper"), strict=True)]
    assert f"95% interval {' to '.join(ends)}: this number does not show a change." in unclear.report().to_text()
    worse = recalibrate(Predictions.from_scores(z, rng.random(400) < z), method="histogram", map_bins=200)
    assert worse.answer[0].text.startswith("Histogram makes it worse: the Brier score rises from 0.")
    assert worse.answer[0].kind == "shown"
    better = recalibrate(Predictions.from_scores(z / 3, rng.random(400) < z), method="histogram", map_bins=5)
    assert "method='histogram', map_bins=5).save(" in better.answer[-1].data["command"]


def test_votes_of_0_and_1_that_no_sample_contradicts_yet_leave_the_brier_score_to_decide():
    rng = np.random.default_rng(5)
    z = rng.integers(0, 11, 2000) / 10
    y = np.where(z % 1, rng.random(2000) < 0.25 + z / 2, z)
    made = recalibrate(Predictions.from_scores(z, y.astype(int)))
    change = next(row for row in made.change.rows if row.name == "nll")
    assert np.isfinite(change.difference)
    assert change.interval.lower == -np.inf
    assert made.answer[0].text.startswith(f"{made.method.capitalize()} helps: the Brier score falls")
    assert "map.json" in made.answer[-1].data["command"]
    assert "interval ." not in made.report().to_text()


def test_an_applied_map_says_what_to_do_next(tmp_path):
    table = {"confidence": [0.6, 0.7, 0.8, 0.9] * 5, "correct": [0, 1, 1, 1] * 5}
    done = apply_map(recalibrate(table, method="platt", fraction=0.5), table)
    path = done.save(tmp_path / "after.parquet")
    assert f"certcal measure {path}" in done.report(files=[path]).to_text(width=40)
    assert "10 samples that it was fitted to are left out." in str(done).replace("\n", " ")
    assert done.to_pandas()["confidence_calibrated"].tolist() == done.after.confidence.tolist()
