"""Figures of a recalibration: the drawn points are the map's and the front's own."""

from __future__ import annotations

import numpy as np
import pytest

from certcal.calibrators import recalibrate
from certcal.calibrators._drawn import constant_point
from certcal.report import figures
from tests.report.recalibrated import interval_samples

FOUND = recalibrate(interval_samples())


def names(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_the_map_is_drawn_through_its_values_with_the_smallest_and_largest_trade_off_beside_it():
    figure = figures.recalibration_map(FOUND)
    chosen, least, most, flat, diagonal = figure.axes[0].lines
    for line, judged in ((chosen, FOUND.chosen), (least, FOUND.lines[1]), (most, FOUND.lines[-1])):
        np.testing.assert_array_equal(line.get_ydata(), judged.calibrator.transform(line.get_xdata()))
        assert set(judged.calibrator.curve_.x) <= set(line.get_xdata())
    np.testing.assert_array_equal(flat.get_ydata(), FOUND.calibrator.transform(flat.get_xdata()))
    np.testing.assert_array_equal(diagonal.get_xdata(), diagonal.get_ydata())
    assert names(figure) == [
        *("isotonic, λ = 0.5", "isotonic, λ = 0", "isotonic, λ = 1"),
        *("ends of a flat part", "no change"),
    ]
    assert [line.is_dashed() for line in (chosen, least, most)] == [False, True, True]
    assert len({line.get_color() for line in (chosen, least, most)}) == 3


def test_below_the_map_are_the_held_out_confidences():
    bars = figures.recalibration_map(FOUND).axes[1].patches
    assert sum(bar.get_height() for bar in bars) == FOUND.n_held_out


def test_without_clean_confidences_the_map_stands_alone_and_there_is_no_front():
    found = recalibrate(interval_samples(clean=False), tradeoff=1)
    (ax,) = figures.recalibration_map(found).axes
    assert ax.get_xlabel() == "confidence as it is"
    (ax,) = figures.pareto_front(found).axes
    assert [text.get_text() for text in ax.texts] == [
        "no front: it needs confidences without a perturbation and certified ones"
    ]


def test_the_front_has_a_line_for_the_fit_and_marks_for_the_held_out_samples():
    figure = figures.pareto_front(FOUND)
    fitted, held_out, identity, constant, step = figure.axes[0].lines
    for line, points in (
        (fitted, [point.fitted for point in FOUND.front[1:]]),
        (held_out, [point.held_out for point in FOUND.front[1:]]),
        (identity, [FOUND.front[0].held_out]),
        (constant, [constant_point(FOUND).held_out]),
    ):
        np.testing.assert_array_equal(np.stack(line.get_data(), axis=1), points)
    assert held_out.get_linestyle() == identity.get_linestyle() == "None"
    assert len({line.get_marker() for line in (fitted, held_out, identity, constant)}) == 4
    np.testing.assert_array_equal(step.get_xdata(), [FOUND.front[0].held_out[0], FOUND.front[3].held_out[0]])
    assert names(figure)[:2] == ["isotonic, 200 samples of the fit", "200 held-out samples, with λ"]


def test_the_chosen_trade_off_is_always_written_and_in_bold():
    texts = figures.pareto_front(FOUND).axes[0].texts
    assert texts[0].get_text() == "0.5"
    assert texts[0].get_fontweight() == "bold"
    assert {text.get_text() for text in texts} <= {"0", "0.25", "0.5", "0.75", "1"}


@pytest.mark.parametrize("draw", [figures.recalibration_map, figures.pareto_front])
def test_figures_are_written(draw, tmp_path):
    target = figures.save(draw(FOUND), tmp_path / "figure.svg")
    assert target.read_bytes().startswith(b"<?xml")
