"""Figures of runs beside each other and of ADMM: the drawn curves are the results' own."""

from __future__ import annotations

import numpy as np
import pytest

from certcal import InputError
from certcal.report import figures
from certcal.smoothing.robustness import PaDistribution, VoteRecord, compare
from certcal.worst_case import calibration_error
from certcal.worst_case.baselines import AdmmSettings, Baseline, admm, dece_ascent

RNG = np.random.default_rng(5)
HOSTILE = "_$\\frac{ <b>\x1b"
RECORDS = [
    VoteRecord.of(RNG.binomial(100, share, 50), 100, RNG.random(50) < 0.9, sigma=sigma, name=name)
    for share, sigma, name in ((0.9, 0.5, "a"), (0.7, 1.0, HOSTILE))
]
COMPARED = compare(RECORDS)
SAMPLES = np.array([0.1, 0.5, 0.4]), np.array([0.6, 0.9, 0.5]), np.array([1, 0, 1])
TRACKED = admm(*SAMPLES, bins=3, settings=(AdmmSettings(), AdmmSettings("brier", 0.01, 0.1)), steps=12, track=True)


def names(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_curves_of_a_comparison_are_its_certified_accuracies():
    figure = figures.certified_accuracy_curves(COMPARED)
    *runs, best = figure.axes[0].lines
    for line, run in zip(runs, COMPARED.runs, strict=True):
        np.testing.assert_array_equal(line.get_xdata(), run.curve.at)
        np.testing.assert_array_equal(line.get_ydata(), run.curve.values)
    np.testing.assert_array_equal(best.get_ydata(), COMPARED.best.values)
    assert names(figure) == ["a", "_$\\frac{ <b>\\x1b", "best of them"]
    assert len({line.get_marker() for line in runs}) == 2


def test_a_comparison_in_which_nothing_is_certified_says_so():
    (ax,) = figures.certified_accuracy_curves(compare(RECORDS[:1], at=[9.0])).axes
    assert [text.get_text() for text in ax.texts] == ["no sample is certified and correct at any of these radii"]
    assert ax.get_xlabel() == "radius (only one was asked for)"


def test_the_distribution_of_p_a_is_the_share_of_samples_up_to_each_value():
    figure = figures.pa_distribution(COMPARED)
    for line, run in zip(figure.axes[0].lines, COMPARED.runs, strict=True):
        p, share = map(np.asarray, line.get_data())
        values = run.distribution.low
        np.testing.assert_allclose(share, [np.mean(values <= at) for at in p])
        assert set(values) <= set(p)
    assert names(figure) == ["a (σ = 0.5, n = 50)", "_$\\frac{ <b>\\x1b (σ = 1, n = 50)"]


def test_votes_that_a_log_leaves_open_are_drawn_as_a_band():
    exact = PaDistribution("x", 1.0, np.array([0.5, 0.9]), np.array([0.5, 0.9]))
    vague = PaDistribution("y", 1.0, np.array([0.5, 0.9]), np.array([0.6, 0.9]))
    (one,) = figures.pa_distribution(exact).axes
    (two,) = figures.pa_distribution([vague]).axes
    assert len(two.collections) == len(one.collections) + 1


@pytest.mark.parametrize(
    ("draw", "given", "complaint"),
    [
        (figures.pa_distribution, [], "0 distributions were asked for in one figure; draw from 1 to 16"),
        (figures.pa_distribution, [3], r"distributions\[0\] is int; pass PaDistribution objects"),
        (
            figures.certified_accuracy_curves,
            compare([VoteRecord.of([9], 10, [1], sigma=1.0, name=str(i)) for i in range(17)], at=[0.1]),
            "17 runs were asked for in one figure; draw from 1 to 16",
        ),
    ],
)
def test_no_or_too_many_runs_are_refused(draw, given, complaint):
    with pytest.raises(InputError, match=complaint):
        draw(given)


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


def test_figures_of_hostile_names_can_be_written(tmp_path):
    for place, figure in enumerate((figures.certified_accuracy_curves(COMPARED), figures.pa_distribution(COMPARED))):
        svg = figures.save(figure, tmp_path / f"{place}.svg").read_text()
        assert "<b>" not in svg
