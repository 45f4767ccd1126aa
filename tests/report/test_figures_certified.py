"""Figures of what is certified: the drawn points are the results' numbers, and nothing certified is said in words."""

from __future__ import annotations

import numpy as np
import pytest

from certcal import InputError
from certcal.claims import Bound
from certcal.metrics import reliability
from certcal.report import figures
from certcal.report.results import Line
from certcal.smoothing import Counts, certificates
from certcal.smoothing._widths import widths_of
from certcal.worst_case import calibration_error, certify, ks_error

RNG = np.random.default_rng(3)
SHARES = RNG.beta(20, 2, (40, 300))
COUNTS = Counts.from_confidences(
    SHARES, np.linspace(0.01, 0.99, 99), votes=np.full(40, 300), sigma=0.5, correct=RNG.random(40) < 0.8
)
RADII = (0.0, 0.25, 0.5, 5.0)
CERTIFIED = [certificates(COUNTS, radius) for radius in RADII]
LINES = [
    Line(f"{one.radius:g}", None, one.summary(), one.claim() if one.n_certified else None, one.mean_width)
    for one in CERTIFIED
]


def texts(figure):
    drawn = [text.get_text() for ax in figure.axes for text in ax.texts]
    return drawn + [text.get_text() for made in figure.legends for text in made.get_texts()]


def points(line):
    return list(zip(*(axis.tolist() for axis in map(np.asarray, line.get_data())), strict=True))


def panel(figure, label):
    return next(ax for ax in figure.axes if ax.get_ylabel() == label)


def test_radius_curves_go_through_the_values_of_the_lines():
    figure = figures.radius_curves(LINES[::-1])
    (accuracy,) = panel(figure, "certified accuracy").lines
    assert points(accuracy) == [(float(line.radius), line.summary.accuracy.value) for line in LINES]
    (brier,) = panel(figure, "Brier score").lines
    assert points(brier) == [(float(line.radius), line.summary["brier_score"].worst.value) for line in LINES[:3]]
    worst, claimed, bound = panel(figure, "calibration error").lines
    assert points(worst) == [(float(line.radius), line.summary["calibration_error"].worst.value) for line in LINES[:3]]
    assert points(claimed) == [(float(line.radius), line.claim.value) for line in LINES[:3]]
    assert points(bound) == [(float(line.radius), line.summary.population.value) for line in LINES[:3]]


def test_every_curve_can_be_told_without_colour():
    figure = figures.radius_curves(LINES)
    lines = panel(figure, "calibration error").lines
    assert len({line.get_marker() for line in lines}) == len(lines) == 3


def test_radii_at_which_nothing_is_certified_are_marked_in_words():
    assert "no sample certified from 5 on" in texts(figures.radius_curves(LINES))
    alone = figures.radius_curves(LINES[3:])
    assert texts(alone).count("no sample is certified\nat any of these radii") == 2
    assert {ax.get_xlabel() for ax in alone.axes} == {"radius (only one was asked for)"}


def test_groups_have_rows_and_can_be_chosen():
    grouped = [Line(line.radius, name, line.summary) for name in ("$a", "_b") for line in LINES[:2]]
    figure = figures.radius_curves(grouped)
    assert [ax.get_title(loc="left") for ax in figure.axes if ax.get_title(loc="left")] == ["$a", "_b"]
    assert len(figures.radius_curves(grouped, group="_b").axes) == 3


@pytest.mark.parametrize(
    ("lines", "options", "complaint"),
    [
        ([], {}, "lines is empty; pass at least one line with a radius"),
        (LINES, {"group": "x"}, "no line is of the group 'x'"),
        ([*LINES, LINES[0]], {}, "lines has a radius twice; pass one line per radius and group"),
        ([Line(None, None, LINES[0].summary)], {}, "a line has the radius None; radius curves need numbers"),
        ([Line("nan", None, LINES[0].summary)], {}, "a line has the radius 'nan'"),
        ([Line("1", str(i), LINES[0].summary) for i in range(9)], {}, "lines has 9 groups, too many for one figure"),
    ],
)
def test_lines_that_make_no_curve_are_refused(lines, options, complaint):
    with pytest.raises(InputError, match=complaint):
        figures.radius_curves(lines, **options)


def test_boxes_of_widths_are_their_quantiles():
    several = [certificates(COUNTS, radius, confidence=kind) for radius in (0.25, 0.5) for kind in ("tight", "cdf")]
    (ax,) = figures.interval_widths(several).axes
    drawn = [patch.get_path().vertices[:, 1] for patch in ax.patches]
    for one, box in zip(several, drawn, strict=True):
        _, first, _, third, _ = widths_of(one).quantiles
        assert (box.min(), box.max()) == (first, third)
    assert len({patch.get_hatch() for patch in ax.patches}) == 2
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0.25", "0.5"]


def test_widths_of_several_runs_have_a_panel_each_and_empty_radii_a_sentence():
    figure = figures.interval_widths({"$\\sigma": CERTIFIED[:2], "b": CERTIFIED[2:]})
    assert [ax.get_title() for ax in figure.axes] == ["$\\sigma", "b"]
    assert [text.get_text() for text in figure.axes[1].texts] == ["no sample\nis certified"]


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ([], "1 panels were asked for; draw from 1 to 6, none of them empty"),
        ({}, "0 panels were asked for"),
        ({str(i): CERTIFIED for i in range(7)}, "7 panels were asked for"),
        ([CERTIFIED[0], CERTIFIED[0]], "two certificates have the same kind and radius"),
        ([certificates(COUNTS, radius / 100) for radius in range(17)], "certificates are at 17 radii, too many"),
    ],
)
def test_certificates_that_cannot_be_told_apart_are_refused(given, complaint):
    with pytest.raises(InputError, match=complaint):
        figures.interval_widths(given)


def test_the_worst_case_stands_beside_the_clean_diagram_with_the_signs_of_its_bins():
    one = CERTIFIED[1]
    worst = calibration_error(one.lower, one.upper, one.correct, bins=10)
    clean = reliability((one.lower + one.upper) / 2, one.correct, bins=10)
    figure = figures.worst_case_diagram(clean, worst)
    left, right, _, counts = figure.axes
    assert left.get_title().startswith("clean\nECE ")
    assert right.get_title() == f"worst case\nECE at most {worst.text}, 10 bins, n = 40"
    used = np.flatnonzero(worst.bins.count)
    heights = [patch.get_height() for patch in right.patches[: used.size]]
    np.testing.assert_allclose(heights, worst.bins.accuracy[used])
    assert [text.get_text() for text in right.texts] == ["+" if worst.signs[m] > 0 else "−" for m in used]
    assert [patch.get_height() for patch in counts.patches] == worst.bins.count.tolist()


def test_diagrams_of_different_bins_or_without_bins_are_refused():
    samples = [0.1, 0.5], [0.6, 0.9], [1, 0]
    clean = reliability([0.3, 0.7], [1, 0], bins=4)
    with pytest.raises(InputError, match="clean and worst have other bins; compute both with the same bins"):
        figures.worst_case_diagram(clean, calibration_error(*samples, bins=3))
    with pytest.raises(InputError, match="which has no bins; pass a result of calibration_error"):
        figures.worst_case_diagram(clean, ks_error(*samples))


def test_sign_runs_draw_every_interval_and_the_witness():
    samples = np.array([0.1, 0.5, 0.2]), np.array([0.6, 0.9, 0.3]), np.array([1, 0, 1])
    worst = calibration_error(*samples, bins=4)
    (ax,) = figures.sign_runs(worst, *samples).axes
    marked = sorted(float(x) for line in ax.lines for x in np.asarray(line.get_xdata()))
    assert marked == sorted(worst.witness.tolist())
    assert [text.get_text() for text in ax.texts] == ["+" if sign > 0 else "−" for sign in worst.signs]


@pytest.mark.parametrize(
    ("size", "worst", "complaint"),
    [
        (2, ks_error([0.1], [0.6], [1]), "worst has no signs"),
        (61, calibration_error([0.1], [0.6], [1]), "lower has 61 samples, too many to draw; pass at most 60"),
        (2, calibration_error([0.1], [0.6], [1]), "lengths differ: lower has 2, upper 2, correct 2 and the worst case"),
    ],
)
def test_sign_runs_of_other_samples_are_refused(size, worst, complaint):
    with pytest.raises(InputError, match=complaint):
        figures.sign_runs(worst, np.full(size, 0.1), np.full(size, 0.6), np.ones(size))


def test_stacked_terms_reach_their_sum_and_the_bound_is_a_line():
    bounds = {line.radius: line.summary.population for line in LINES[:3]}
    (ax,) = figures.bound_terms(bounds).axes
    tops = [max(bar.get_y() + bar.get_height() for bar in bars) for bars in zip(*ax.containers, strict=True)]
    np.testing.assert_allclose(tops, [sum(bound.terms.values()) for bound in bounds.values()])
    lines = [path.vertices[0, 1] for drawn in ax.collections for path in drawn.get_paths()]
    assert lines == [bound.value for bound in bounds.values()]
    assert [text.get_text() for text in ax.texts] == [f"≤ {bound.text}" for bound in bounds.values()]
    assert len({bars[0].get_hatch() for bars in ax.containers}) == 3


def test_a_bound_without_terms_says_so_and_names_are_drawn_letter_by_letter(tmp_path):
    hostile = "$\\frac{ _<b>"
    figure = figures.bound_terms({hostile: Bound(hostile, 0.5, "upper", 0.05, 9, ()), "b": LINES[0].summary.population})
    assert "no terms given" in texts(figure)
    assert figure.axes[0].get_xticklabels()[0].get_text() == hostile
    assert figures.save(figure, tmp_path / "a.svg").stat().st_size > 0


@pytest.mark.parametrize(
    ("bounds", "complaint"),
    [
        ({}, "0 bounds were asked for in one figure; draw from 1 to 12"),
        (Bound("a", 0.5, "lower", 0.05, 9, ()), "is a lower one; stacked terms are drawn of upper bounds"),
        (Bound("a", np.inf, "upper", 0.05, 9, ()), "is inf; only finite bounds can be drawn"),
        (Bound("a", 0.5, "upper", 0.05, 9, (), {"t": -0.1}), "the term 't' of the bound .* is -0.1; terms are finite"),
        (Bound("a", 0.5, "upper", 0.05, 9, (), {str(i): 0.1 for i in range(9)}), "9 different terms, too many"),
    ],
)
def test_bounds_that_cannot_be_stacked_are_refused(bounds, complaint):
    with pytest.raises(InputError, match=complaint):
        figures.bound_terms(bounds)


def test_a_summary_of_nothing_certified_is_drawn(tmp_path):
    figure = figures.radius_curves([Line("0.5", "$x", certify([0], [1], [1], certified=[0]))])
    assert figures.save(figure, tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")
