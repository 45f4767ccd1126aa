"""Figures of a study: what is drawn are the numbers of the review."""

from __future__ import annotations

import math

import numpy as np
import pytest

from certcal._checks import InputError
from certcal.report import figures
from certcal.study import Box, Boxes, Matrix
from tests.report.studied import boxes, lines, matrix, measurement_names, points


def test_a_small_matrix_has_its_numbers_in_the_cells_and_none_where_undefined():
    drawn = matrix(["a", "b", "c", "d"], "Metrics")
    figure = figures.correlation_matrix(drawn)
    ax, bar = figure.axes
    np.testing.assert_array_equal(np.ma.filled(ax.images[0].get_array(), np.nan), drawn.values)
    assert ax.images[0].get_clim() == (-1, 1)
    cells = {text.get_position(): text.get_text().replace("−", "-") for text in ax.texts}
    assert len(cells) == 9
    assert all(
        float(text) == pytest.approx(drawn.values[row, column], abs=0.005) for (column, row), text in cells.items()
    )
    assert [label.get_text() for label in ax.get_yticklabels()] == list(drawn.names)
    assert bar.get_ylabel() == "Kendall rank correlation"
    assert ax.get_title() == "Metrics"


def test_a_large_matrix_has_a_dash_in_every_negative_cell_and_no_numbers():
    drawn = matrix(measurement_names())
    ax = figures.correlation_matrix(drawn, title="").axes[0]
    assert len(ax.texts) == 0
    assert ax.get_title() == ""
    x, y = ax.lines[0].get_data()
    assert set(zip(y, x, strict=True)) == set(zip(*np.nonzero(drawn.values < 0), strict=True))
    assert len(x) > 100


def test_a_matrix_without_columns_is_refused():
    with pytest.raises(InputError, match="matrix has no columns"):
        figures.correlation_matrix(Matrix("", (), np.empty((0, 0)), 0))


def test_boxes_stand_at_their_quartiles():
    drawn = boxes(3)
    ax = figures.boxes(drawn).axes[0]
    for patch, box in zip(ax.patches, drawn.boxes, strict=True):
        low, high = patch.get_path().get_extents().intervaly
        assert (low, high) == (box.first, box.third)
    medians = [line.get_ydata()[0] for line in ax.lines if line.get_linewidth() > 1.5]
    assert medians == [box.median for box in drawn.boxes]
    assert [label.get_text() for label in ax.get_xticklabels()] == [box.name for box in drawn.boxes]


def test_boxes_without_numbers_leave_a_gap_and_too_many_are_refused():
    nothing = Box("none", 0, *(math.nan,) * 5)
    assert len(figures.boxes(Boxes("", "", "", (*boxes(2).boxes, nothing))).axes[0].patches) == 2
    assert figures.boxes(Boxes("", "", "", (nothing,))).axes[0].texts[0].get_text() == "nothing to draw"
    with pytest.raises(InputError, match="81 boxes are too many"):
        figures.boxes(boxes(81))


def test_models_are_points_at_their_numbers():
    drawn = points(40)
    ax, bar = figures.scatter(drawn).axes
    (made,) = ax.collections
    np.testing.assert_array_equal(np.asarray(made.get_offsets())[1:], np.stack([drawn.x, drawn.y], axis=1)[1:])
    np.testing.assert_array_equal(np.asarray(made.get_array()), drawn.colour)
    assert np.ma.getmaskarray(made.get_offsets())[0].any()
    assert (ax.get_xlabel(), ax.get_ylabel(), bar.get_ylabel()) == ("accuracy", "ECE", "parameters")
    assert len(figures.scatter(points(40, coloured=False)).axes) == 1


def test_lines_have_their_bands_and_are_told_apart_without_colour():
    drawn = lines(4)
    figure = figures.lines(drawn)
    ax = figure.axes[0]
    made = ax.lines[:4]
    for line, values in zip(made, drawn.values, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), values)
    assert len({line.get_marker() for line in made}) == 4
    assert len(ax.collections) == 4
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(drawn.names)
    assert ax.get_xscale() == "log"
    with pytest.raises(InputError, match="9 lines are too many"):
        figures.lines(lines(9))


def test_names_are_drawn_letter_by_letter(tmp_path):
    name = r"$\frac{1}{2}$ _x_"
    figure = figures.correlation_matrix(matrix([name, "b"], name))
    path = figures.save(figure, tmp_path / "matrix.svg")
    assert figure.axes[0].get_title() == name
    assert path.stat().st_size > 1000
    figures.save(figures.boxes(boxes(2, title=name, named=r"${}$")), tmp_path / "boxes.png", dpi=40)
    assert (tmp_path / "boxes.png").stat().st_size > 1000
