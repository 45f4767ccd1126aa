"""Figures of ADMM: the drawn curves are the results' own."""

from __future__ import annotations

import numpy as np
import pytest

from certcal import InputError
from certcal.report import figures
from certcal.worst_case import calibration_error
from certcal.worst_case.baselines import AdmmSettings, Baseline, admm, dece_ascent

SAMPLES = np.array([0.1, 0.5, 0.4]), np.array([0.6, 0.9, 0.5]), np.array([1, 0, 1])
TRACKED = admm(*SAMPLES, bins=3, settings=(AdmmSettings(), AdmmSettings("brier", 0.01, 0.1)), steps=12, track=True)


def names(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


@pytest.mark.parametrize("run", [None, 0])
def test_convergence_shows_the_tracked_curves_of_the_chosen_run(run):
    chosen = int(np.argmax(TRACKED.runs)) if run is None else run
    exact = calibration_error(*SAMPLES, bins=3)
    figure = figures.admm_convergence(TRACKED, run=run, exact=exact)
    drawn = [line for ax in figure.axes for line in ax.lines if np.size(line.get_ydata()) == 12]
    order = ["lagrangian", "relaxed", "projected", "box", "sphere", "confidence", "unique", "valid"]
    for line, name in zip(drawn, order, strict=True):
        key = name if name in TRACKED.history else f"{name}_term"
        np.testing.assert_array_equal(line.get_ydata(), TRACKED.history[key][chosen])
    assert names(figure) == ["relaxed", "projected: feasible at every step", "exact worst case"]
    assert float(figure.axes[1].lines[-1].get_ydata()[0]) == exact.value


def test_distances_from_the_constraints_are_drawn_in_both_norms():
    figure = figures.admm_constraints(TRACKED, run=1)
    keys = [f"{name}_distance_{norm}" for norm in ("sum", "max") for name in ("bounded", "binary", "unique", "valid")]
    for ax, key in zip(figure.axes, keys, strict=True):
        np.testing.assert_array_equal(ax.lines[0].get_ydata(), TRACKED.history[key][1])
        met = not TRACKED.history[key][1].any()
        assert [text.get_text() for text in ax.texts] == (["met at every step"] if met else [])


def test_assignments_are_drawn_sample_by_sample_at_every_snapshot():
    figure = figures.admm_assignments(TRACKED, run=0)
    assert [ax.get_ylabel() for ax in figure.axes] == ["step 0", "step 2", "step 12"]
    for ax, entries in zip(figure.axes, TRACKED.history["assignment"][0], strict=True):
        heights = [segment[1][1] for segment in ax.collections[0].get_segments()]
        np.testing.assert_array_equal(heights, entries.reshape(-1))


def test_a_run_that_overflows_has_gaps_and_a_word_about_them(tmp_path):
    wild = admm(*SAMPLES, bins=3, settings=AdmmSettings(confidence_rate=1e300, rho=1e300), steps=9, track=True)
    assert not np.isfinite(wild.history["lagrangian"]).all()
    for draw in (figures.admm_convergence, figures.admm_constraints, figures.admm_assignments):
        figure = draw(wild)
        assert any("stopped being" in text.get_text() for ax in figure.axes for text in ax.texts)
        assert figures.save(figure, tmp_path / f"{draw.__name__}.png", dpi=20).stat().st_size > 0


def test_results_without_these_curves_are_refused():
    plain = admm(*SAMPLES, bins=3, steps=2)
    assert dict(plain.history) == {}
    other = dece_ascent(*SAMPLES, bins=3, steps=2, track=True)
    for found in (plain, other):
        with pytest.raises(InputError, match=r"found has no 'lagrangian' in its history; pass a result of admm\("):
            figures.admm_convergence(found)
    with pytest.raises(InputError, match="run is 2; choose one from 0 to 1"):
        figures.admm_constraints(TRACKED, run=2)


def test_tracking_does_not_change_what_is_found():
    same = admm(*SAMPLES, bins=3, settings=(AdmmSettings(), AdmmSettings("brier", 0.01, 0.1)), steps=12)
    assert same.runs == TRACKED.runs
    np.testing.assert_array_equal(same.confidence, TRACKED.confidence)


def test_notebooks_get_a_picture_without_pyplot():
    history = {"assignment": np.full((1, 1, 2, 2), 0.5), "assignment_step": np.array([0])}
    figure = figures.admm_assignments(Baseline("ADMM", 0.5, np.array([0.5]), (0.5,), history))
    assert figure._repr_png_().startswith(b"\x89PNG")
