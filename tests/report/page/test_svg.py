"""Charts: marks at the right places, axes that hold what is drawn, and nothing where there is nothing."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certcal._html import Raw
from certcal.binning import bin_table, equal_width_edges
from certcal.claims import Bound
from certcal.report.page._axes import counts, covering, unit
from certcal.report.page._curves import curves, terms_figure
from certcal.report.page._diagrams import (
    MOST_BARS,
    bins_table,
    coarser,
    counts_of,
    describe,
    reliability_height,
    reliability_legend,
    reliability_marks,
    reliability_states,
)
from certcal.report.page._svg import SERIES, WIDTH, Frame, chart, legend, swatch
from tests.report.page.parsed import parsed

FRAME = Frame(unit("x"), unit("y"), left=0, top=0, width=100, height=100)
REAL = st.floats(-1e6, 1e6)


def numbers(path: str) -> list[float]:
    return [float(each) for each in re.findall(r"-?\d+(?:\.\d+)?", path)]


def path_of(markup: str, kind: str) -> str:
    found = [each for each in parsed(markup).all("path") if each.attributes["class"] == kind]
    assert len(found) == 1, kind
    return found[0].attributes["d"] or ""


@given(REAL, REAL)
def test_places_never_leave_the_plotting_area(x: float, y: float) -> None:
    frame = Frame(counts([1, 10_000]), covering([3.0], "y"))
    assert frame.left <= frame.across(x) <= frame.left + frame.width
    assert frame.top <= frame.up(y) <= frame.bottom


def test_bars_stand_between_their_ends_and_missing_ones_are_left_out() -> None:
    drawn = FRAME.bars([0.0, 0.5, 0.6], [0.5, 0.6, 1.0], [0.0, 0.0, 0.2], [0.25, math.nan, 0.4], "accuracy")
    assert path_of(drawn, "accuracy") == "M0 100H50V75H0ZM60 80H100V60H60Z"
    assert FRAME.bars([0.0], [0.5], [0.3], [0.3], "accuracy") == ""
    assert FRAME.bars([], [], [], [], "accuracy") == ""


def test_a_line_breaks_where_a_value_is_missing_and_a_single_point_is_a_marker() -> None:
    broken = FRAME.line([0, 0.2, 0.4, 0.6, 0.8], [0, 0.5, math.nan, 1.0, 0.5])
    assert path_of(broken, "line blue") == "M0 100L20 50M60 0L80 50"
    alone = FRAME.line([0.5], [0.5], 1, markers=False)
    assert [each.attributes["class"] for each in parsed(alone).all("path")] == ["dot orange"]
    assert FRAME.line([0.5], [math.nan]) == ""


def test_series_differ_in_colour_dash_and_marker_and_start_again_after_eight() -> None:
    drawn = [FRAME.line([0, 1], [0, 1], series) for series in range(9)]
    assert drawn[0] == drawn[8]
    assert len(set(drawn)) == len(SERIES)


def test_markers_of_a_series_without_its_line_are_those_on_its_line() -> None:
    for series in range(len(SERIES)):
        with_line, alone = (
            parsed(each) for each in (FRAME.line([0, 1], [0, 1], series), FRAME.marks([0, 1], [0, 1], series))
        )
        assert alone.one("path").attributes == with_line.all("path")[1].attributes


def test_steps_keep_their_height_until_the_next_place() -> None:
    assert path_of(FRAME.steps([0.0, 0.5], [0.2, 1.0]), "line blue") == "M0 80H50V0H100"
    assert FRAME.steps([], []) == ""


def test_a_band_runs_there_and_back() -> None:
    assert path_of(FRAME.band([0, 1], [0, 0.5], [0.5, 1.0]), "band blue") == "M0 50L100 0L100 50L0 100Z"
    assert FRAME.band([0], [0], [1]) == ""


def test_whiskers_dots_and_words_stand_at_their_places() -> None:
    assert path_of(FRAME.whiskers([0.5], [0.25], [0.75]), "whisker") == "M50 75V25"
    assert len(re.findall("M", path_of(FRAME.dots([0.5, math.nan], [0.5, 0.5]), "dot ink"))) == 1
    words = parsed(FRAME.empty("a < b")).one("text")
    assert (words.text, words.attributes["x"], words.attributes["y"]) == ("a < b", "50", "30")


def test_a_chart_has_a_name_and_a_text_that_stands_for_it() -> None:
    root = parsed(chart("key", "A < B", "What it shows.", Raw("<path></path>"), height=100))
    picture = root.one("svg")
    assert picture.attributes["role"] == "img"
    assert picture.attributes["aria-labelledby"] == "key-title key-desc"
    assert root.one("title", id="key-title").text == "A < B"
    assert root.one("desc", id="key-desc").text == "What it shows."
    assert picture.attributes["viewbox"] == "0 0 420 100"


def test_a_legend_has_a_sample_of_every_mark() -> None:
    kinds = ("accuracy", "gap over", "line 0", "line 5", "ideal", "whisker", "dot ink")
    entries = parsed(legend(*((kind, f"means {kind}") for kind in kinds))).all("li")
    assert [each.text for each in entries] == [f"means {kind}" for kind in kinds]
    assert len({swatch(kind) for kind in kinds}) == len(kinds)


def test_a_swatch_of_points_has_their_shape_and_one_of_a_bare_line_has_no_marker() -> None:
    shapes = [swatch(f"dot orange{shape}") for shape in ("", " square", " diamond", " triangle")]
    assert len(set(shapes)) == 4
    assert all('class="dot orange"' in each for each in shapes)
    assert len(parsed(swatch("line 1")).all("path")) == 2
    assert len(parsed(swatch("line 1 plain")).all("path")) == 1


def samples(n: int, bins: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    confidence = rng.beta(5, 2, n)
    return bin_table(confidence, rng.random(n) < confidence**2, equal_width_edges(bins))


def test_a_reliability_diagram_draws_accuracy_gap_and_count_of_each_bin() -> None:
    bins = bin_table([0.1, 0.6, 0.7, 0.9], [1, 0, 1, 1], equal_width_edges(2))
    drawn = reliability_marks(bins, signs=[1, -1])
    unit_height = round((WIDTH - 68) * 0.78)
    heights = numbers(path_of(drawn, "accuracy"))
    assert heights[1] - heights[3] == unit_height  # accuracy 1 in the first bin
    over, under = numbers(path_of(drawn, "gap over")), numbers(path_of(drawn, "gap under"))
    assert over[1] - over[3] == pytest.approx(unit_height * (0.7333333 - 0.6666667), abs=0.11)
    assert under[1] - under[3] == pytest.approx(unit_height * 0.9, abs=0.11)
    assert [each.text for each in parsed(drawn).all("text") if "sign" in (each.attributes["class"] or "")] == ["+", "−"]


def test_nothing_of_a_reliability_diagram_leaves_its_picture() -> None:
    for width in (320, WIDTH):
        root = parsed(reliability_marks(samples(500, 15), width=width))
        for each in root.all("text"):
            assert 0 <= float(each.attributes["x"] or "nan") <= width
            assert 0 <= float(each.attributes["y"] or "nan") <= reliability_height(width)


def test_more_bins_than_can_be_drawn_are_put_together_without_losing_a_sample() -> None:
    fine = samples(3000, 10_000)
    put = coarser(fine)
    assert len(put.count) <= MOST_BARS
    assert put.count.sum() == fine.count.sum()
    assert put.confidence_sum.sum() == pytest.approx(fine.confidence_sum.sum())
    assert (put.edges[0], put.edges[-1]) == (0, 1)
    assert np.isin(put.edges, fine.edges).all()
    drawn = reliability_marks(fine)
    assert len(drawn) < 60_000
    assert drawn == reliability_marks(put)
    assert "mean confidence" not in reliability_legend(many=True)


def test_a_diagram_without_samples_says_so() -> None:
    assert "no sample" in reliability_marks(None)
    assert describe(None) == "No bin holds a sample."
    assert "No sample." in bins_table(None, caption="x")


@pytest.mark.parametrize(("closed", "texts"), [("left", ["[0, 0.5)", "[0.5, 1]"]), ("right", ["[0, 0.5]", "(0.5, 1]"])])
def test_bins_are_written_with_the_ends_that_belong_to_them(closed: str, texts: list[str]) -> None:
    bins = bin_table([0.1, 0.9], [1, 0], equal_width_edges(2), closed)
    rows = parsed(bins_table(bins, caption="Bins")).one("tbody").all("th")
    assert [each.text for each in rows] == texts


def test_a_table_of_bins_has_as_many_lines_as_asked_for_and_counts_the_rest() -> None:
    root = parsed(bins_table(samples(3000, 100), caption="Bins", most=10))
    assert len(root.one("tbody").all("tr")) == 10
    assert re.search(r"\d+ further bins are not listed", root.text)


def test_states_of_a_diagram_share_one_axis_of_counts() -> None:
    many, few = samples(400, 5), samples(20, 5)
    pictures, tables = reliability_states(
        "worst", "Worst case", [many, few, None], ["a", "b", "c"], chosen_by="radius", start=1
    )
    root = parsed(pictures)
    assert [each.attributes["data-frame"] for each in root.all("div")] == ["0", "1", "2"]
    assert [("hidden" in each.attributes) for each in root.all("div")] == [True, False, True]
    labels = [[each.text for each in state.all("text")] for state in root.all("svg")]
    assert labels[0] == labels[1]
    assert counts_of([many, few, None]).high == max(many.count.max(), few.count.max())
    assert len(parsed(tables).all("table")) == 2


def test_curves_draw_each_series_and_the_place_of_the_slider() -> None:
    picture, keys = curves(
        "k",
        "title",
        [0.0, 0.25, 0.5],
        {"a": [1, 0.5, math.nan], "b": [0.1, 0.2, 0.3]},
        x_label="radius",
        y_label="value",
        description="d",
        mark=("radius", (0, 2), 1),
    )
    root = parsed(picture)
    assert len(root.of_class("line")) == 2
    assert [each.attributes["data-frame"] for each in root.all("g", data_of="radius")] == ["0", "1"]
    assert [each.text for each in parsed(keys).all("li")] == ["a", "b"]


def test_curves_of_one_radius_or_of_nothing_are_drawn_too() -> None:
    options = {"x_label": "radius", "y_label": "value", "description": "d"}
    alone, _ = curves("k", "t", [0.5], {"a": [0.2]}, **options)
    assert len(parsed(alone).of_class("dot")) == 1
    zero, _ = curves("k", "t", [0.0], {"a": [0.0]}, **options)
    assert "NaN" not in zero
    empty, _ = curves("k", "t", [0.0, 1.0], {"a": [math.nan, math.nan]}, **options)
    assert "nothing to draw" in empty


def test_the_bar_of_a_bound_is_as_long_as_its_terms_and_its_table_rounds_them_up() -> None:
    bounds = [
        Bound("first", 0.37501, "upper", 0.05, 100, (), {"a": 0.125, "b": 0.25001}),
        Bound("second <b>", 0.0625, "upper", 0.05, 100, (), {"a": 0.0625, "c": 0.0}),
    ]
    root = parsed(terms_figure("terms", bounds, [bound.name for bound in bounds]))
    first = [numbers(each.attributes["d"] or "") for each in root.one("svg", role="img").of_class("stack-0")]
    second = numbers(root.one("svg", role="img").of_class("stack-1")[0].attributes["d"] or "")
    assert first[0][2] == second[0]
    assert (second[2] - second[0]) / (first[0][2] - first[0][0]) == pytest.approx(2.0, rel=0.01)
    cells = [[cell.text for cell in row.children] for row in root.one("tbody").all("tr")]  # type: ignore[union-attr]
    assert cells == [["first", "0.1250", "0.2501", "", "0.3751"], ["second <b>", "0.0625", "", "0.0000", "0.0625"]]


def test_a_bar_beyond_one_is_said_to_be_a_bound_of_one() -> None:
    def said(value: float, *terms: float) -> bool:
        bound = Bound("ece", value, "upper", 0.05, 9, (), {f"{i}": term for i, term in enumerate(terms)})
        return "Where a bar goes beyond 1, the bound is 1." in terms_figure("t", [bound], ["ece"])

    assert [said(1.0, 0.5, 0.75), said(1.0, 0.5, 0.5), said(0.75, 0.5, 0.25)] == [True, False, False]
