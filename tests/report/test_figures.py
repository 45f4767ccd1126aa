"""Figures: drawn from prepared data, written whole, never over others."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

from certcal import InputError
from certcal.metrics import reliability
from certcal.report import figures

RNG = np.random.default_rng(4)
CONFIDENCE = RNG.random(400)
CORRECT = RNG.random(400) < CONFIDENCE
PREPARED = reliability(CONFIDENCE, CORRECT, bins=10)


def heights(ax):
    return [patch.get_height() for patch in ax.patches]


def test_bars_are_the_accuracies_and_the_gaps_reach_the_mean_confidence():
    diagram, counts = figures.reliability_diagram(PREPARED).axes
    table = PREPARED.table
    bars, gaps = diagram.patches[:10], diagram.patches[10:]
    np.testing.assert_allclose([bar.get_height() for bar in bars], table.accuracy)
    ends = [gap.get_y() + gap.get_height() for gap in gaps]
    np.testing.assert_allclose(ends, table.mean_confidence)
    np.testing.assert_allclose(heights(counts), table.count)


def test_bands_are_drawn_when_there_are_any():
    banded = reliability(CONFIDENCE, CORRECT, bins=10, replicates=50)
    plain = figures.reliability_diagram(PREPARED)
    with_bands = figures.reliability_diagram(banded)
    assert len(with_bands.axes[0].collections) == len(plain.axes[0].collections) + 1
    assert any("bootstrap band" in text.get_text() for text in with_bands.legends[0].get_texts())


def test_empty_bins_are_not_drawn():
    figure = figures.reliability_diagram(reliability([0.1, 0.9], [0, 1], bins=10))
    assert np.isfinite(heights(figure.axes[0])).all()
    assert len(figure.axes[0].patches) == 4


def test_counts_are_logarithmic_only_when_bins_differ_widely():
    even = figures.reliability_diagram(PREPARED).axes[1]
    steep = figures.reliability_diagram(reliability([0.1] + [0.9] * 999, [0] + [1] * 999, bins=10)).axes[1]
    assert (even.get_yscale(), even.get_ylabel()) == ("linear", "samples")
    assert (steep.get_yscale(), steep.get_ylabel()) == ("log", "samples (log)")


def test_a_given_axes_is_used_and_its_figure_returned():
    figure = Figure()
    ax = figure.subplots()
    assert figures.reliability_diagram(PREPARED, ax, title="mine") is figure
    assert figure.axes == [ax]
    assert ax.get_title().startswith("mine\nECE ")


@pytest.mark.parametrize("count", [1, 2, 4, 24])
def test_panels_show_one_diagram_per_group(count):
    figure = figures.reliability_panels({f"group {i}": PREPARED for i in range(count)})
    titles = [ax.get_title().split("\n")[0] for ax in figure.axes if ax.get_title()]
    assert titles == [f"group {i}" for i in range(count)]


@pytest.mark.parametrize("count", [0, 25])
def test_no_or_too_many_panels_are_refused(count):
    with pytest.raises(InputError, match=rf"{count} diagrams were asked for in one figure; draw from 1 to 24"):
        figures.reliability_panels({str(i): PREPARED for i in range(count)})


@pytest.mark.parametrize(
    ("ending", "mark"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF"), (".PNG", b"\x89PNG")]
)
def test_figures_are_written_in_the_format_of_their_ending_and_reproducibly(tmp_path, ending, mark):
    first, second = tmp_path / f"a{ending}", tmp_path / f"b{ending}"
    for path in (first, second):
        assert figures.save(figures.reliability_diagram(PREPARED, title="t"), path) == path
    assert first.read_bytes().startswith(mark)
    assert first.read_bytes() == second.read_bytes()


def test_figures_are_not_overwritten_unless_forced(tmp_path):
    path = tmp_path / "a.png"
    figure = figures.reliability_diagram(PREPARED)
    figures.save(figure, path)
    with pytest.raises(InputError, match=r"a\.png exists and is not overwritten"):
        figures.save(figure, path)
    figures.save(figure, path, force=True)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.png"]


def test_unknown_formats_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"figures are written as \.png, \.svg or \.pdf"):
        figures.save(figures.reliability_diagram(PREPARED), tmp_path / "a.gif")


@pytest.mark.parametrize("title", ["$\\frac{", "日本語", "\x1b[31m", "a\nb", "<script>"])
def test_hostile_titles_are_drawn_as_they_are(tmp_path, title):
    figures.save(figures.reliability_diagram(PREPARED, title=title), tmp_path / "a.png")
    svg = figures.save(figures.reliability_diagram(PREPARED, title=title), tmp_path / "a.svg").read_text()
    assert "<script>" not in svg


def test_pyplot_is_never_loaded():
    import subprocess

    code = (
        "import sys; from certcal.metrics import reliability; from certcal.report import figures;"
        "figures.reliability_diagram(reliability([0.5], [1])); sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_matplotlib_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(InputError, match=r"pip install 'certcal\[report\]'"):
        figures.reliability_diagram(PREPARED)
