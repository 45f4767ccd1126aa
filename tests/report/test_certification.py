"""The report of a certification: blocks and numbers of small results."""

from typing import Any

import numpy as np
import pytest

from certcal import Certification, InputError, certify
from certcal._base.rounding import claim_text
from certcal.claims import round_outward
from certcal.models import wrap
from certcal.report.charts import Cursor, Line, Panel, Segments, Words
from certcal.report.document import Choice, Claim, Figures, Heading, KeyNumbers, Picture, Report, Table
from certcal.report.numbers import minus
from certcal.smoothing import CONFIDENCES, Counts
from tests.smoothing.drawing import X, draw

RADII = (0.0, 0.1, 0.3)
FIRST = ["Key numbers", "Worst case", "ECE by radius", "Certified accuracy by radius"]
INFORMATION = "Information that survives the attack"


def made_counts() -> Counts:
    rng = np.random.default_rng(0)
    x = rng.beta(rng.uniform(0.3, 30, 40)[:, None], 1.0, (40, 1500))
    votes = (x > 0.5).sum(axis=1)
    return Counts.from_confidences(x, np.linspace(0.02, 0.98, 49), votes=votes, sigma=0.5, correct=rng.random(40) < 0.8)


@pytest.fixture(scope="module")
def found() -> Certification:
    return certify(made_counts(), radii=RADII)


@pytest.fixture(scope="module")
def report(found: Certification) -> Report:
    return found.report()


def part(report: Report, title: str) -> list[Any]:
    return list(next(each.blocks for each in (*report.sections, *report.appendix) if each.title == title))


def table(blocks: list[Any]) -> Table:
    return next(block for block in blocks if isinstance(block, Table))


def influential(report: Report) -> list[Table]:
    """Those that are shown, and those that open on demand."""
    _, first, *rest = part(report, "Most influential samples")
    return [first, *(each for block in rest for each in block.blocks)]


def test_the_claim_comes_first_and_the_population_after_it(found: Certification, report: Report) -> None:
    claim, one = report.headline[0], found.at()
    assert isinstance(claim, Claim)
    assert one.claim is not None
    assert claim.sentence == (
        f"At radius 0.3, the calibration error of the smoothed classifier is at most {claim_text(one.claim)} on the "
        f"{one.claim.n} certified samples."
    )
    assert (claim.kind, claim.probability) == ("Certificate", "99.9% sure, over the noise.")
    assert claim.assumptions == one.claim.assumptions
    (numbers,) = part(report, "Key numbers")
    assert isinstance(numbers, KeyNumbers)
    texts = {each.name: each.text for each in numbers.numbers}
    assert texts["in the population"] == claim_text(one.population)
    assert texts["calibration error"] == claim_text(one.claim)
    bound = part(report, "Bound for the population")[0]
    assert bound.value == f"at most {claim_text(one.population)}"
    assert bound.probability.startswith("95% sure, for samples drawn like these ")
    shown = [each.title for each in report.sections if not each.folded]
    assert shown == [*FIRST, INFORMATION, "Most influential samples", "Bound for the population"]


def test_the_slider_has_a_frame_per_radius_and_moves_cursors_and_rows(found: Certification, report: Report) -> None:
    (choice,) = part(report, "Worst case")
    assert isinstance(choice, Choice)
    assert (list(choice.names), choice.start) == (["0", "0.1", "0.3"], 2)
    for radius, (said, figures) in zip(RADII, choice.frames, strict=True):
        line, clean = found.at(radius), found.clean_bins(radius)
        assert clean is not None
        assert f"{clean.ece:.2%} (estimate) without a perturbation, at most {claim_text(line.headline)}" in said.text  # pyright: ignore
        assert line.claim is not None
        assert claim_text(line.claim) in said.text
        counts = [sum(row[1] for row in chart.numbers.rows) for chart in figures.charts]
        assert counts == [line.summary.n_certified] * 2
    both = [part(report, title)[0] for title in ("Certified accuracy by radius", "Other numbers by radius")]
    cursors = [
        mark
        for figures in both
        for chart in figures.charts
        for mark in chart.panels[0].marks
        if isinstance(mark, Cursor)
    ]
    assert [(each.choice, tuple(each.x), each.start) for each in cursors] == [(choice.key, RADII, 2)] * 3
    assert table(part(report, "Certified values")).choice == (choice.key, {0: 0, 1: 1, 2: 2})


def test_curves_go_through_the_values_and_their_numbers_are_texts_of_claims(
    found: Certification, report: Report
) -> None:
    (errors,) = part(report, "ECE by radius")[0].charts
    (accuracy,) = part(report, "Certified accuracy by radius")[0].charts
    everything, brier = part(report, "Other numbers by radius")[0].charts
    lines = {mark.label: mark.y for mark in errors.panels[0].marks if isinstance(mark, Line)}
    assert lines["where every certificate holds"] == [found.at(r).worst.value for r in RADII]  # pyright: ignore
    assert lines["on these samples"] == [found.at(r).headline.value for r in RADII]
    assert lines["bound for the population"] == [found.at(r).population.value for r in RADII]
    assert lines["without a perturbation (estimate)"] == [found.clean_bins(r).ece for r in RADII]  # pyright: ignore
    assert [row[1] for row in errors.numbers.texts()] == [found.at(r).headline.text for r in RADII]
    assert [row[1] for row in accuracy.numbers.texts()] == [found.at(r).summary.accuracy.text for r in RADII]
    assert [row[1] for row in everything.numbers.texts()] == [
        found.at(r).summary["calibration_error"].worst_all.text for r in RADII
    ]
    assert [row[1] for row in brier.numbers.texts()] == [found.at(r).summary["brier_score"].worst.text for r in RADII]  # pyright: ignore


def test_the_picture_beside_the_answer_is_the_error_by_radius_in_percent_with_the_answer_marked(
    found: Certification, report: Report
) -> None:
    (figures,) = report.picture
    assert isinstance(figures, Figures)
    (errors,) = figures.charts
    assert errors is part(report, "ECE by radius")[0].charts[0]
    panel, one = errors.panels[0], found.at()
    assert isinstance(panel, Panel)
    assert all(text.endswith("%") for _, text in panel.y.ticks)
    (words,) = [mark for mark in panel.marks if isinstance(mark, Words)]
    assert (words.x, words.y) == ([one.radius], [one.headline.value])
    assert words.texts == [f"at most {100 * float(one.headline.text):.2f}%"]
    assert [mark.ends[0][0] for mark in panel.marks if isinstance(mark, Segments)] == [one.radius]


def test_certified_accuracy_of_a_run_is_drawn_at_every_radius_and_other_values_at_those_asked_for(
    found: Certification, report: Report
) -> None:
    (errors,) = part(report, "ECE by radius")[0].charts
    (accuracy,) = part(report, "Certified accuracy by radius")[0].charts
    (line,) = [mark for mark in accuracy.panels[0].marks if isinstance(mark, Line)]
    one = found.at().certificates
    assert one is not None
    assert line.marked == (list(RADII), [found.at(r).summary.accuracy.value for r in RADII])
    for r in np.linspace(0, accuracy.panels[0].x.high, 200):
        share = np.mean(one.correct & (np.nan_to_num(one.radii, nan=-1.0) >= r))
        assert line.y[int(np.searchsorted(line.x, r))] == share
    assert all(mark.guide for mark in errors.panels[0].marks if isinstance(mark, Line))


def test_certified_accuracy_of_a_table_is_at_least_that_of_the_next_radius() -> None:
    rows = {"sample": [0, 1] * 2, "radius": [0.1, 0.1, 0.4, 0.4], "certified": [1, 1, 1, 0], "correct": [1] * 4}
    of_table = certify({**rows, "lower": [0.6] * 4, "upper": [0.9] * 4})
    (accuracy,) = part(of_table.report(), "Certified accuracy by radius")[0].charts
    (line,) = [mark for mark in accuracy.panels[0].marks if isinstance(mark, Line)]
    assert (list(line.x), list(line.y), line.steps, line.guide) == ([0.1, 0.4], [1.0, 0.5], "pre", False)
    assert "the next larger one" in accuracy.caption


def test_tables_have_every_claim_as_it_is_rounded(found: Certification, report: Report) -> None:
    values = table(part(report, "Certified values"))
    heads = [column.head for column in values.columns]
    for row, line in zip(values.texts(), found.lines, strict=True):
        cells = dict(zip(heads, row, strict=True))  # pyright: ignore
        assert cells["radius"] == line.radius_text
        assert cells["ECE, population"] == line.population.text
        assert cells["ECE, all"] == line.summary["calibration_error"].worst_all.text
        assert cells["mean width"] == round_outward(line.width, "upper")  # pyright: ignore
    one = found.at()
    claims = [row for row in table(part(report, "All claims at radius 0.3")).texts() if not isinstance(row, Heading)]
    shown = {text for row in claims for text in row}
    assert {minus(claim.text) for _, _, claim in one.summary.claims()} - {
        minus(each.text) for name, each in one.summary.information.values.items() if "skill" not in name
    } <= shown
    assert one.summary["ks_error"].lowest_text in shown
    computed = table(part(report, "How the numbers were computed"))
    assert len(computed.rows) == len(one.claims())
    parts = {row[2] for row in table(part(report, "The certified Brier score, taken apart")).texts()}
    assert {minus(each.text) for each in one.summary.information.values.values()} <= parts


def test_widths_ledgers_and_influential_samples_are_those_of_the_result(found: Certification, report: Report) -> None:
    steps, medians = next(b for b in part(report, "Interval widths") if isinstance(b, Figures)).charts
    assert [row[0] for row in steps.numbers.texts()] == list(CONFIDENCES)
    for row, kind in zip(steps.numbers.texts(), CONFIDENCES, strict=True):
        widths = found.widths(kind)
        assert widths is not None
        assert row[1:] == [round_outward(value, "upper") for value in (widths.mean, *widths.quantiles)]
    assert len(medians.numbers.rows) == len(RADII)
    _, sample, claim = part(report, "Failure probabilities")
    assert [row[1] for row in sample.texts()] == ["0.00025", "0.000375", "0.000375", "0.001", "0.001"]
    assert claim.texts()[-1] == ["budget", "0.001"]
    rows = [row for each in influential(report) for row in each.texts()]
    assert [row[0] for row in rows] == [str(each.index) for each in found.influential()]
    assert [row[5] for row in rows] == [each.interval_text for each in found.influential()]


def test_several_kinds_stand_side_by_side() -> None:
    several = certify(made_counts(), radii=0.25, kind="all")
    rows = table(part(several.report(), "Certified values")).texts()
    assert [row[1] for row in rows] == list(CONFIDENCES)
    assert len(several.plot().axes) >= 2
    assert "Choose a certificate before looking" in " ".join(several.report().notes)


def test_where_nothing_is_certified_nothing_is_drawn() -> None:
    nothing = certify(made_counts(), radii=[40, 50]).report()
    assert nothing.headline[0].value == "at most 100.00%"
    assert part(nothing, "Worst case")[0].text == "No sample is certified, so there is no worst case to draw."
    assert table(part(nothing, "Certified values")).choice is None
    assert "no sample is certified" in nothing.to_text()
    assert list(nothing.picture) == []
    assert nothing.to_html()


def test_a_table_has_its_worst_case_and_no_draws() -> None:
    rng = np.random.default_rng(1)
    z, site = rng.beta(6, 2, 60), ["<b>", "=1"] * 30
    of_table = certify(
        {"lower": np.maximum(z - 0.1, 0), "upper": np.minimum(z + 0.1, 1), "correct": rng.random(60) < z, "site": site},
        by="site",
        bins=5,
    )
    report = of_table.report(require="ece <= 0.01")
    shown = [each.title for each in report.sections if not each.folded]
    assert shown == [FIRST[0], FIRST[1], INFORMATION, "Bound for the population"]
    assert [each.kind for each in report.headline if isinstance(each, Claim)] == ["Worst case"]
    assert report.verdict is not None
    assert not report.verdict.passed
    assert [row[0] for row in table(part(report, "Certified values")).texts()] == ["all", "<b>", "=1"]
    assert "<b>" not in report.to_html().split("<body")[1].split("<script")[0]


@pytest.mark.parametrize("shape", [(4, 4), (1, 4, 4), (4, 4, 3)])
def test_images_of_the_influential_samples_are_shown_for_the_data_of_the_run(tmp_path: Any, shape: Any) -> None:
    images = np.random.default_rng(1).integers(0, 256, (12, *shape), dtype=np.uint8)
    bright = wrap(
        lambda batch: np.c_[batch.reshape(len(batch), -1)[:, :2].sum(1) * 3, np.ones((len(batch), 2))], "logits"
    )
    run = draw(tmp_path / "images", model=bright, inputs=images, labels=np.arange(12) % 3, n=300, batch=300)
    found = certify(run, radii=0)
    rows = [row for each in influential(found.report(images=images)) for row in each.rows]
    assert len(rows) == len(found.influential()) > 0
    for row, each in zip(rows, found.influential(), strict=True):
        assert isinstance(row, list)
        assert isinstance(row[0], Picture)
        assert row[0].text == f"sample {each.index}: class {each.label}, predicted {each.predicted}"
    with pytest.raises(InputError, match="are not the data that the run was drawn from"):
        found.report(images=images[::-1])
    with pytest.raises(InputError, match="images cannot be checked for counts without a run"):
        certify(run.counts(), radii=0).report(images=images)


def test_inputs_that_are_no_images_are_not_shown_and_that_is_said(tmp_path: Any) -> None:
    found = certify(draw(tmp_path / "run", n=200), radii=0.05)
    told = table(part(found.report(images=X), "Most influential samples"))
    assert told.note == "The inputs, of shape (4,), are no images, so none are shown."
    assert told.columns[0].head == "sample"
