"""Figures of families: a panel per noise level, with the lines that were found."""

from __future__ import annotations

import math

import numpy as np
import pytest

from certcal import InputError
from certcal.report import figures
from tests.report.compared_families import SEVEN, SIGMAS, record, results_of, seven, with_confidences


def names(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def titles(figure):
    return [ax.get_title() for ax in figure.axes]


def test_the_share_above_each_p_is_drawn_from_one_half_on_for_every_family_and_noise_level():
    found = seven().families
    figure = figures.p_a_panels(found)
    assert titles(figure) == [f"σ = {sigma:g}" for sigma in SIGMAS]
    for ax, sigma in zip(figure.axes, SIGMAS, strict=True):
        assert ax.get_xlim() == (0.5, 1.0)
        for line, (_, run) in zip(ax.lines, found.at_sigma(sigma), strict=True):
            p, share = map(np.asarray, line.get_data())
            np.testing.assert_array_equal(share, [np.mean(run.distribution.low >= at) for at in p])
            assert set(run.distribution.low[run.distribution.low >= 0.5]) <= set(p)
            assert line.get_drawstyle() == "steps-pre"
    assert names(figure) == list(SEVEN)
    assert len({(line.get_color(), str(line._dash_pattern)) for line in figure.axes[0].lines}) == 7


def test_a_family_looks_the_same_where_others_are_missing():
    found = with_confidences().families
    figure = figures.p_a_panels(found)
    assert [len(ax.lines) for ax in figure.axes] == [3, 2]
    first, second = ([line.get_color() for line in ax.lines] for ax in figure.axes)
    assert first[:2] == second


def test_accuracies_are_those_of_the_runs_and_the_last_panel_has_the_best_of_each_family():
    found = seven().families
    figure = figures.accuracy_panels(found)
    assert titles(figure) == [*(f"σ = {sigma:g}" for sigma in SIGMAS), "best over σ"]
    for ax, sigma in zip(figure.axes, SIGMAS, strict=False):
        for line, (_, run) in zip(ax.lines, found.at_sigma(sigma), strict=True):
            np.testing.assert_array_equal(line.get_ydata(), run.curve.values)
    for line, family in zip(figure.axes[-1].lines, found.families, strict=True):
        np.testing.assert_array_equal(line.get_xdata(), found.at)
        np.testing.assert_array_equal(line.get_ydata(), family.best.values)


def test_certified_calibration_has_a_column_per_noise_level_and_a_row_per_quantity():
    found = with_confidences().families
    figure = figures.certified_calibration_panels(found)
    rows = np.asarray(figure.axes).reshape(4, 2)
    readings = (
        lambda summary: summary["calibration_error"].worst,
        lambda summary: summary["calibration_error"].worst_all,
        lambda summary: summary["brier_score"].worst,
        lambda summary: summary.skill,
    )
    for row, reading in zip(rows, readings, strict=True):
        for ax, sigma in zip(row, SIGMAS[:2], strict=True):
            own = [each for each in found.calibration if each.sigma == sigma]
            for line, each in zip(ax.lines, own, strict=False):
                values = [reading(summary) for summary in each.summaries]
                expected = [math.nan if value is None else value.value for value in values]
                np.testing.assert_array_equal(line.get_ydata(), expected)
    # At the last radius nothing is certified.
    assert math.isnan(rows[0, 0].lines[0].get_ydata()[-1])
    assert math.isfinite(rows[1, 0].lines[0].get_ydata()[-1])


def test_a_graph_has_a_box_for_every_family_and_an_arrow_for_every_edge_that_does_not_follow():
    found = seven().families
    figure = figures.dominance_graphs(found)
    assert titles(figure) == [*(f"σ = {sigma:g}" for sigma in SIGMAS), "best over σ"]
    for ax, graph in zip(figure.axes, found.graphs, strict=True):
        texts = {text.get_text(): text for text in ax.texts if text.get_text()}
        assert set(texts) == set(SEVEN)
        arrows = [text for text in ax.texts if not text.get_text()]
        assert len(arrows) == len(graph.reduced) == 3
        assert all(arrow.xy[1] > arrow.xyann[1] for arrow in arrows)
        thick = {name for name, text in texts.items() if text.get_bbox_patch().get_linewidth() > 1}
        assert thick == set(graph.undominated)


@pytest.mark.parametrize("draw", [figures.p_a_panels, figures.dominance_graphs])
def test_hostile_names_are_drawn_letter_by_letter(draw, tmp_path):
    svg = figures.save(draw(with_confidences().families), tmp_path / "figure.svg").read_text()
    assert "<b>" not in svg


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(InputError, match="families has no certified calibration; compare runs"):
        figures.certified_calibration_panels(seven().families)
    alone = results_of({"a": [record(0, 0.5)]}, at=[0.25]).families
    with pytest.raises(InputError, match="families has no graph; compare at least two families"):
        figures.dominance_graphs(alone)
    many = results_of({str(place): [record(0, 0.5, 10)] for place in range(17)}, at=[0.1]).families
    with pytest.raises(InputError, match="17 families were asked for in one figure; draw from 1 to 16"):
        figures.p_a_panels(many)
    assert figures.accuracy_panels(alone).axes[0].get_xticks().tolist() == [0.25]
