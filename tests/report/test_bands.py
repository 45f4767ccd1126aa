"""Bands in words and pictures: which bins, or scores, are miscalibrated beyond sampling error."""

import json

import numpy as np
import pytest

import certcal
from certcal.bounds import isotonic_band, surrogate
from certcal.metrics import reliability
from certcal.report.charts import Band, Segments, legend_of
from certcal.report.reliability import beyond_sampling_error, reliability_chart

# 200 samples each: the first is too low, the last two are too high, the others are right; two bins are empty.
SCORES = np.repeat([0.05, 0.15, 0.25, 0.45, 0.55, 0.85, 0.95], 200)
HITS = [40, 30, 50, 90, 110, 120, 130]
OUTCOMES = np.concatenate([np.arange(200) < hits for hits in HITS])


def made(band="joint", **options):
    return reliability(SCORES, OUTCOMES, 10, band=band, **options)


@pytest.mark.parametrize(
    ("task", "words"),
    [
        ("binary", "over-predicted from 0.8 to 1; under-predicted from 0 to 0.1."),
        ("top-label", "overconfident from 0.8 to 1; underconfident from 0 to 0.1."),
        ("multiclass", "overconfident from 0.8 to 1; underconfident from 0 to 0.1."),
    ],
)
def test_bins_beyond_sampling_error_are_named_in_the_words_of_the_task(task, words):
    said = beyond_sampling_error(made(), task)
    assert said == f"3 of 7 bins are miscalibrated beyond sampling error (95% band, joint over the bins): {words}"


def test_other_bands_have_other_sentences():
    single = beyond_sampling_error(made("per-bin", level=0.9))
    assert "(90% interval of each bin, 0.7 of them expected of a calibrated model)" in single
    assert beyond_sampling_error(made("none")) == ""
    fair = reliability([0.5] * 100, [0, 1] * 50)
    words = "No bin is miscalibrated beyond sampling error (95% band, joint over the bins)."
    assert beyond_sampling_error(fair) == words
    assert beyond_sampling_error(reliability([0.5] * 100, [0, 1] * 50, band="isotonic")).startswith(
        "The diagonal stays"
    )
    isotonic = beyond_sampling_error(made("isotonic"), "binary")
    assert "are over-predicted, most at 0.9500, where the observed rate is at most " in isotonic
    falling = reliability(np.repeat([0.2, 0.8], 200), np.repeat([1, 0], 200), band="isotonic")
    assert beyond_sampling_error(falling).startswith("The band contradicts itself")


def test_many_ranges_are_counted_not_listed():
    z = (np.repeat(np.arange(20), 200) + 0.5) / 20
    c = np.concatenate([np.arange(200) < (200 * (m + 0.5) / 20 if m % 2 else 0) for m in range(20)])
    said = beyond_sampling_error(reliability(z, c, 20))
    assert said.endswith("more ranges.")
    assert said.count(" to ") == 4


def test_a_diagram_draws_the_interval_of_every_bin_and_marks_those_beyond():
    chart = reliability_chart(made(), task="binary")
    (whiskers,) = [mark for mark in chart.panels[0].marks if isinstance(mark, Segments) and mark.look == "whisker"]
    assert len(whiskers.ends) == 7
    np.testing.assert_allclose([end[1] for end in whiskers.ends], made().lower[made().table.count > 0])
    assert "95% band, joint over the bins" in [label for _, label in legend_of(chart.panels)]
    gaps = [row[3][0] for row in chart.bars.rows if row[1] is not None]
    assert [gap.endswith("*") for gap in gaps] == [True, False, False, False, False, True, True]
    assert chart.bars.note == "* beyond sampling error"
    assert [column.title for column in chart.numbers.columns][-1] == "95% band"
    assert "miscalibrated beyond sampling error" in chart.caption


def test_a_drawn_staircase_is_never_narrower_than_the_band():
    rng = np.random.default_rng(0)
    z = rng.random(30_000)
    prepared = reliability(z, rng.random(z.size) < z, band="isotonic")
    (mark,) = [mark for mark in reliability_chart(prepared).panels[0].marks if isinstance(mark, Band)]
    assert len(mark.x) < prepared.isotonic.scores.size * 2
    for left, right, low, high in zip(mark.x[::2], mark.x[1::2], mark.low[::2], mark.high[::2], strict=True):
        lower, upper = prepared.isotonic.at(np.linspace(left, right, 7)[1:-1])
        assert (low <= lower).all()
        assert (high >= upper).all()


@pytest.mark.parametrize("band", ["joint", "per-bin", "isotonic", "none"])
def test_measure_has_the_band_that_was_asked_for_in_every_group_and_every_form(tmp_path, band):
    predictions = certcal.Predictions.from_scores(SCORES, OUTCOMES)
    found = certcal.measure(
        predictions, by=np.arange(SCORES.size) % 2, bins=10, band=band, level=0.9, metrics=["ece"], bootstrap=0
    )
    document = json.loads(found.to_json())
    for part in (document, *document["groups"]):
        drawn = part["reliability"]
        assert drawn["band"] == band
        assert (drawn["lower"] is None) == (band == "none")
        assert ("isotonic" in drawn) == (band == "isotonic")
    for ending in ("html", "txt", *(["svg"] if band == "isotonic" else [])):
        found.save(tmp_path / f"x.{ending}")
    page = (tmp_path / "x.html").read_text("utf-8")
    assert ("90% band" in page or "90% interval of each bin" in page) == (band != "none")
    assert ("beyond sampling error (" in (tmp_path / "x.txt").read_text("utf-8")) == (band in ("joint", "per-bin"))


def test_a_band_shows_itself_as_a_page_a_text_and_a_figure(tmp_path):
    for name, band in {
        "isotonic": isotonic_band(SCORES, OUTCOMES),
        "smooth": surrogate(SCORES, OUTCOMES, 2**-3, perturb=True),
        "refuted": isotonic_band(SCORES, 1 - OUTCOMES),
    }.items():
        for ending in ("html", "txt", "json", "csv", "svg"):
            band.save(tmp_path / f"{name}.{ending}")
        shown = (tmp_path / f"{name}.txt").read_text("utf-8")
        assert all(f"- {each[:40]}" in shown for each in band.assumptions)
        assert ("contradicts itself" in shown) == (name == "refuted")
        assert ("over-predict" in shown) == (name != "refuted")
