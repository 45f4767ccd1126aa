"""Charts of worst cases, interval widths and ADMM: what is drawn are the results' own numbers."""

import re

import numpy as np
import pytest

from certcal import InputError
from certcal._base.rounding import claim_text
from certcal.lab.baselines import AdmmSettings, admm, admm_assignments, admm_constraints, admm_convergence, dece_ascent
from certcal.metrics import reliability
from certcal.report import (
    interval_widths,
    sign_runs,
    worst_case_charts,
)
from certcal.report.charts import Bars, Boxes, Line, Points, Segments, Words
from certcal.report.html.svg import panels_picture
from certcal.report.mpl import draw
from certcal.smoothing import Counts, certificates
from certcal.worst_case import calibration_error, ks_error

SAMPLES = np.array([0.1, 0.5, 0.4]), np.array([0.6, 0.9, 0.5]), np.array([1, 0, 1])
TRACKED = admm(*SAMPLES, bins=3, settings=(AdmmSettings(), AdmmSettings("brier", 0.01, 0.1)), steps=12, track=True)
DRAWS = np.random.default_rng(5).beta(20, 1, (30, 500))
COUNTS = Counts.from_confidences(DRAWS, np.linspace(0.01, 0.99, 99), votes=(DRAWS > 0.5).sum(1), sigma=0.5)


def marks(panel, kind):
    return [mark for mark in panel.marks if isinstance(mark, kind)]


def test_the_worst_case_has_the_signs_of_its_bins_and_the_same_samples():
    worst = calibration_error(*SAMPLES, bins=3)
    clean, drawn = worst_case_charts(reliability([0.4, 0.7, 0.45], SAMPLES[2], bins=3), worst)
    (signs,) = marks(drawn.panels[0], Words)
    assert list(signs.texts) == ["+" if sign > 0 else "−" for sign in worst.signs]
    counted = [sum(row[1] for row in chart.numbers.rows) for chart in (clean, drawn)]
    assert counted == [3, 3]
    assert drawn.caption.startswith(f"ECE at most {claim_text(worst)},")
    best = calibration_error(*SAMPLES, bins=3, best=True)
    _, drawn = worst_case_charts(reliability([0.4, 0.7, 0.45], SAMPLES[2], bins=3), best)
    assert (drawn.title, drawn.caption.split(",")[0]) == ("Best case", f"ECE at least {claim_text(best)}")
    with pytest.raises(InputError, match="clean and worst have other bins"):
        worst_case_charts(reliability([0.4], [1], bins=4), worst)
    with pytest.raises(InputError, match="which has no bins; pass a result of calibration_error"):
        worst_case_charts(reliability([0.4], [1], bins=3), ks_error(*SAMPLES))


def test_both_diagrams_of_a_worst_case_have_the_same_axes_and_plot_area_on_pages_and_in_figures():
    clean = reliability([0.4, 0.7, 0.45], SAMPLES[2], bins=3)
    charts = worst_case_charts(clean, calibration_error(*SAMPLES, bins=3))
    pictures = [panels_picture(str(i), each.title, "", each.panels, each.size) for i, each in enumerate(charts)]
    one, other = (re.findall(r'class="(?:grid|axis)" d="([^"]*)"', picture) for picture in pictures)
    assert one == other
    figure = draw(charts)
    figure.draw_without_rendering()
    one, other = (part.axes for part in figure.subfigs)
    for left, right in zip(one, other, strict=True):
        assert (left.get_xlim(), left.get_ylim()) == (right.get_xlim(), right.get_ylim())
        boxes = [(each.y0, each.height, each.width) for each in (left.get_window_extent(), right.get_window_extent())]
        np.testing.assert_allclose(*boxes, atol=1)


def test_sign_runs_draw_every_interval_and_the_witness():
    worst = calibration_error(*SAMPLES, bins=3)
    (panel,) = sign_runs(worst, *SAMPLES).panels
    ends = [end for mark in marks(panel, Segments) if mark.look != "zero" for end in mark.ends]
    assert sorted((a, b) for a, _, b, _ in ends) == sorted(zip(*SAMPLES[:2], strict=True))
    drawn = sorted(x for mark in marks(panel, Points) for x in mark.x)
    assert drawn == sorted(worst.witness.tolist())


@pytest.mark.parametrize(
    ("size", "worst", "complaint"),
    [
        (61, calibration_error(*SAMPLES), "lower has 61 samples, too many to draw; pass at most 60"),
        (2, calibration_error(*SAMPLES), "lengths differ: lower has 2, upper 2, correct 2 and the worst case 3"),
        (3, ks_error(*SAMPLES), "worst has no signs"),
    ],
)
def test_sign_runs_of_other_samples_are_refused(size, worst, complaint):
    with pytest.raises(InputError, match=complaint):
        sign_runs(worst, np.full(size, 0.1), np.full(size, 0.6), np.ones(size))


def test_boxes_of_widths_are_their_quantiles_and_empty_radii_say_so():
    several = [certificates(COUNTS, radius, confidence=kind) for radius in (0.1, 40) for kind in ("tight", "cdf")]
    (panel,) = interval_widths(several).panels
    (boxes,) = marks(panel, Boxes)
    for place, one in enumerate(several[:2]):
        drawn = tuple(values[place] for values in (boxes.low, boxes.first, boxes.median, boxes.third, boxes.high))
        assert drawn == one.widths().quantiles
    assert np.isnan(boxes.median[2:]).all()
    assert [text for mark in marks(panel, Words) for text in mark.texts] == ["none certified"] * 2
    with pytest.raises(InputError, match="two certificates have the same kind and radius"):
        interval_widths(several[:1] * 2)
    with pytest.raises(InputError, match="0 certificates were given"):
        interval_widths([])


@pytest.mark.parametrize("run", [None, 0])
def test_convergence_shows_the_tracked_curves_of_the_chosen_run(run):
    chosen = int(np.argmax(TRACKED.runs)) if run is None else run
    exact = calibration_error(*SAMPLES, bins=3)
    chart = admm_convergence(TRACKED, run=run, exact=exact)
    drawn = [line for panel in chart.panels for line in marks(panel, Line)]
    order = ["lagrangian", "relaxed", "projected", "box", "sphere", "confidence", "unique", "valid"]
    for line, name in zip(drawn, order, strict=True):
        values = TRACKED.history[name if name in TRACKED.history else f"{name}_term"][chosen]
        np.testing.assert_array_equal(line.y, np.minimum(values, 1) if name == "relaxed" else values)
    (limit,) = [mark for mark in marks(chart.panels[1], Segments) if mark.label == "exact worst case"]
    assert limit.ends[0][1] == exact.value


def test_distances_and_assignments_are_the_tracked_ones():
    chart = admm_constraints(TRACKED, run=1)
    keys = [f"{name}_distance_{norm}" for name in ("bounded", "binary", "unique", "valid") for norm in ("sum", "max")]
    for panel, key in zip(chart.panels, keys, strict=True):
        np.testing.assert_array_equal(marks(panel, Line)[0].y, TRACKED.history[key][1])
    chart = admm_assignments(TRACKED, run=0)
    assert [panel.title for panel in chart.panels] == ["step 0", "step 2", "step 12"]
    for panel, entries in zip(chart.panels, TRACKED.history["assignment"][0], strict=True):
        np.testing.assert_array_equal(marks(panel, Bars)[0].end, entries.reshape(-1))


def test_a_run_that_overflows_has_gaps_and_a_word_about_them():
    wild = admm(*SAMPLES, bins=3, settings=AdmmSettings(confidence_rate=1e300, rho=1e300), steps=9, track=True)
    assert not np.isfinite(wild.history["lagrangian"]).all()
    for make in (admm_convergence, admm_constraints, admm_assignments):
        chart = make(wild)
        assert chart.description == "Some values stopped being finite."
        assert draw([chart]).axes


def test_results_without_these_curves_are_refused():
    plain, other = admm(*SAMPLES, bins=3, steps=2), dece_ascent(*SAMPLES, bins=3, steps=2, track=True)
    assert dict(plain.history) == {}
    for found in (plain, other):
        with pytest.raises(InputError, match=r"baseline has no 'lagrangian' in its history; pass a result of admm\("):
            admm_convergence(found)
    with pytest.raises(InputError, match="run is 2; choose one from 0 to 1"):
        admm_constraints(TRACKED, run=2)


def test_tracking_does_not_change_what_is_found():
    same = admm(*SAMPLES, bins=3, settings=(AdmmSettings(), AdmmSettings("brier", 0.01, 0.1)), steps=12)
    assert same.runs == TRACKED.runs
    np.testing.assert_array_equal(same.confidence, TRACKED.confidence)
