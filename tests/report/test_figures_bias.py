"""The figure of gradient norms: its boxes are the result's own, also where there is nothing or zero to draw."""

from __future__ import annotations

import numpy as np
import pytest

from certcal import InputError
from certcal.report import figures
from certcal.training import GradientNorms

RNG = np.random.default_rng(6)
P_A = np.concatenate([RNG.integers(60, 101, 80) / 100, RNG.integers(0, 20, 30) / 100])
NORMS = RNG.gamma(3.0, 2.0, 110)


def found_of(norms, plain=None, p_a=P_A, method="acr"):
    return GradientNorms(method, 0.5, 100, np.arange(len(p_a)), p_a, norms, plain)


def drawn_medians(ax):
    return {
        (round(float(np.mean(line.get_xdata())), 3), float(line.get_ydata()[0]))
        for line in ax.lines
        if line.get_linewidth() == 1.6
    }


def test_boxes_are_at_their_bins_with_the_medians_of_the_norms():
    found = found_of(NORMS)
    (ax,) = figures.gradient_norm_boxes(found).axes
    assert ax.get_yscale() == "log"
    filled = [(where, box) for where, box in enumerate(found.bins) if box.count]
    assert len(filled) == 6
    assert drawn_medians(ax) == {(where, box.quantiles[2]) for where, box in filled}
    labels = [text.get_text() for text in ax.get_xticklabels()]
    assert labels == [f"{box.low:g}–{box.high:g}\n{box.count}" for box in found.bins]
    assert [text.get_text() for text in ax.texts] == ["hard", "easy"]


def test_before_and_after_the_attack_stand_side_by_side():
    found = found_of(2 * NORMS, NORMS)
    figure = figures.gradient_norm_boxes(found)
    (ax,) = figure.axes
    medians = drawn_medians(ax)
    for where, box in enumerate(found.bins):
        if box.count:
            assert {(where - 0.175, box.quantiles[2] / 2), (where + 0.175, box.quantiles[2])} <= medians
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["noise as drawn", "after its attack"]
    assert len({patch.get_hatch() for patch in ax.patches}) == 2


def test_norms_of_zero_are_drawn_at_the_lower_edge_and_said_to_be():
    norms = np.where(P_A > 0.9, 0.0, NORMS)
    (ax,) = figures.gradient_norm_boxes(found_of(norms)).axes
    assert "norms of 0 are drawn at the lower edge" in [text.get_text() for text in ax.texts]
    assert min(y for _, y in drawn_medians(ax)) == pytest.approx(ax.get_ylim()[0])
    assert ax.get_ylim()[0] > 0


def test_nothing_but_zeros_is_refused():
    with pytest.raises(InputError, match="every gradient norm is 0"):
        figures.gradient_norm_boxes(found_of(np.zeros(110)))


def test_hostile_names_are_drawn_as_they_are(tmp_path):
    figure = figures.gradient_norm_boxes(found_of(NORMS[:1], p_a=P_A[:1], method="_$\\frac{ <b>\x1b"))
    assert figure.axes[0].get_title(loc="left") == "_$\\frac{ <b>\\x1b, σ = 0.5"
    assert figures.save(figure, tmp_path / "boxes.png", dpi=20).stat().st_size > 0
