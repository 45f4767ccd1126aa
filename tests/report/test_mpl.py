"""Charts as matplotlib figures: every mark where its data is, axes as they are given, files without surprises."""

import math
import sys
import warnings

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text

from certcal import InputError
from certcal.report import mpl
from certcal.report.charts import (
    Axis,
    Band,
    Bars,
    Boxes,
    Chart,
    Cursor,
    Graph,
    Heatmap,
    Line,
    Panel,
    Points,
    Segments,
    Stack,
    Words,
    counts,
    covering,
    named_axis,
    unit,
    whiskers,
)
from certcal.report.document import Report, Section
from tests.report import gallery

NAN = math.nan
HOSTILE = ["$x^2$", "$\\frac{", "a\nb", "_hidden", "x" * 500, "日本語", "\x1b[31m", "<script>"]


def chart(*marks, x=None, y=None, title="title"):
    return Chart(title, "", [Panel(x or unit("x"), y or unit("y"), marks)])


def axes_of(*marks, **options):
    return chart(*marks, **options).figure().axes[0]


def legend_texts(legend):
    return [text.get_text() for text in legend.get_texts()]


def rectangles(ax):
    return [
        (bar.get_x(), bar.get_y(), bar.get_x() + bar.get_width(), bar.get_y() + bar.get_height()) for bar in ax.patches
    ]


def test_lines_go_through_their_points_and_break_where_a_value_is_missing():
    (line,) = axes_of(Line([0, 0.5, 0.75, 1], [0.1, NAN, math.inf, 0.4], 1)).lines
    np.testing.assert_array_equal(line.get_xdata(), [0, 0.5, 0.75, 1])
    np.testing.assert_array_equal(line.get_ydata(), [0.1, NAN, NAN, 0.4])
    assert line.get_markevery() == [0, 3]


def test_series_differ_in_colour_marker_and_dash():
    lines = axes_of(*(Line([0, 1], [0, 1], place) for place in range(8))).lines
    for look in ("get_color", "get_marker"):
        assert len({getattr(line, look)() for line in lines}) == 8
    assert len({repr(line._dash_pattern) for line in lines}) >= 7


def test_lines_without_markers_still_show_points_that_stand_alone():
    (line,) = axes_of(Line([0, 0.2, 0.4, 0.6, 0.8], [0.1, 0.2, NAN, 0.4, NAN], markers=False)).lines
    assert line.get_markevery() == [3]


def test_long_lines_are_marked_here_and_there():
    (line,) = axes_of(Line(np.linspace(0, 1, 1000), np.linspace(0, 1, 1000))).lines
    assert 10 <= len(line.get_markevery()) <= 20


@pytest.mark.parametrize(
    ("steps", "x", "y", "marked"),
    [("post", [0.2, 0.6, 1], [0.1, 0.3, 0.3], [0, 1]), ("pre", [0, 0.2, 0.6], [0.1, 0.1, 0.3], [1, 2])],
)
def test_staircases_reach_the_end_of_the_axis(steps, x, y, marked):
    (line,) = axes_of(Line([0.2, 0.6], [0.1, 0.3], steps=steps)).lines
    assert line.get_drawstyle() == f"steps-{steps}"
    np.testing.assert_array_equal(line.get_xydata(), np.transpose([x, y]))
    assert line.get_markevery() == marked


def test_markers_can_stand_elsewhere_than_the_corners_and_a_guide_is_light():
    line, dots = axes_of(Line([0.2, 1], [0.6, 0], 1, steps="pre", marked=([0, 0.5, 0.7], [0.6, 0, NAN]))).lines
    assert (line.get_marker(), dots.get_linestyle()) == ("", "None")
    np.testing.assert_array_equal(dots.get_xydata(), [(0, 0.6), (0.5, 0)])
    guide, dots = axes_of(Line([0, 1], [0.2, 0.4], 1, guide=True)).lines
    assert (guide.get_alpha(), dots.get_alpha()) == (0.55, None)
    np.testing.assert_array_equal(dots.get_xydata(), [(0, 0.2), (1, 0.4)])


def test_bands_fill_between_their_ends():
    (band,) = axes_of(Band([0, 0.5, 1], [0.1, 0.2, 0.3], [0.2, 0.4, 0.6], 2)).collections
    corners = {tuple(np.round(corner, 9)) for corner in band.get_paths()[0].vertices}
    assert corners == {(0, 0.1), (0.5, 0.2), (1, 0.3), (0, 0.2), (0.5, 0.4), (1, 0.6)}
    assert to_hex(band.get_facecolor()[0]) == mpl.COLOURS[2]


@pytest.mark.parametrize("look", ["accuracy", "over", "under", "count", "plus", "minus", "box", 0, 11, "unheard of"])
def test_bars_reach_from_start_to_end(look):
    ax = axes_of(Bars([0, 0.5, 0.7], [0.5, 0.7, 1], [0, 0.2, 0], [0.4, 0.1, NAN], look))
    np.testing.assert_allclose(rectangles(ax), [(0, 0, 0.5, 0.4), (0.5, 0.2, 0.7, 0.1)])


def test_bars_that_mean_the_opposite_can_be_told_apart_in_grey():
    looks = [axes_of(Bars([0], [1], [0], [1], look)).patches[0].get_hatch() for look in ("over", "under")]
    signs = [axes_of(Bars([0], [1], [0], [1], look)).patches[0].get_hatch() for look in ("plus", "minus")]
    stacked = [axes_of(Bars([0], [1], [0], [1], look)).patches[0].get_hatch() for look in range(8)]
    assert len(set(looks)) == len(set(signs)) == 2
    assert len(set(stacked)) == 8


def test_bars_stand_on_the_end_of_a_logarithmic_axis():
    axis = counts([3, 80_000])
    ax = axes_of(Bars([0, 0.5], [0.5, 1], [0, 0], [3, 80_000], "count"), y=axis)
    np.testing.assert_allclose(rectangles(ax), [(0, 0.5, 0.5, 3), (0.5, 0.5, 1, 80_000)])


@pytest.mark.parametrize("look", ["ink", 3])
def test_points_are_where_both_values_are_finite(look):
    (points,) = axes_of(Points([0.1, 0.2, NAN], [0.3, NAN, 0.5], look)).lines
    np.testing.assert_array_equal(points.get_xydata(), [(0.1, 0.3)])
    assert (points.get_linestyle(), points.get_color()) == ("None", "black" if look == "ink" else mpl.COLOURS[3])


def test_shades_of_points_have_a_scale_with_their_name():
    figure = chart(Points([0.1, 0.2, 0.3], [0.3, 0.4, NAN], shade=[5, NAN, 7], shade_label="depth $d$")).figure()
    (ax,) = figure.axes
    (bar,) = ax.child_axes
    (points,) = ax.collections
    np.testing.assert_array_equal(points.get_offsets(), [(0.1, 0.3), (0.2, 0.4)])
    np.testing.assert_array_equal(np.ma.filled(points.get_array(), -1), [5, -1])
    assert bar.get_ylabel() == "depth $d$"


def test_shades_that_are_all_missing_leave_plain_points():
    figure = chart(Points([0.1], [0.3], shade=[NAN])).figure()
    assert len(figure.axes) == 1
    np.testing.assert_array_equal(figure.axes[0].lines[0].get_xydata(), [(0.1, 0.3)])


def test_whiskers_reach_from_low_to_high():
    (drawn,) = axes_of(whiskers([0.1, 0.5, 0.6], [0.2, 0.3, NAN], [0.4, 0.6, 0.5])).collections
    np.testing.assert_array_equal(drawn.get_segments(), [[(0.1, 0.2), (0.1, 0.4)], [(0.5, 0.3), (0.5, 0.6)]])


@pytest.mark.parametrize("look", ["ideal", "zero", "cursor", "lead", "edge", 2])
def test_segments_join_their_ends(look):
    (lines,) = axes_of(Segments([(0, 0.1, 1, 0.9), (0.5, NAN, 1, 1)], look)).collections
    np.testing.assert_array_equal(lines.get_segments(), [[(0, 0.1), (1, 0.9)]])


def test_no_segments_are_no_trouble():
    assert axes_of(Segments([], "ideal")).collections[0].get_segments() == []


def test_words_stand_at_their_points():
    texts = axes_of(Words([0.2, 0.5, NAN], [0.3, 0.6, 0.1], ["a", "", "c"])).texts
    assert [(text.get_text(), text.xy) for text in texts] == [("a", (0.2, 0.3))]


def test_signs_stand_above_the_panel_and_below_its_title():
    figure = chart(Words([0.2], [1.0], ["+"], "sign")).figure()
    figure.draw_without_rendering()
    (sign,) = figure.axes[0].texts
    box, title = sign.get_window_extent(), figure.axes[0].title.get_window_extent()
    assert figure.axes[0].get_window_extent().y1 <= box.y0
    assert box.y1 <= title.y0


def test_words_beside_points_cover_neither_each_other_nor_points_and_the_rest_is_left_out():
    rng = np.random.default_rng(0)
    x, y = rng.random(60), rng.random(60)
    figure = chart(Points(x, y), Words(x, y, [f"point {place}" for place in range(60)], beside=True)).figure()
    figure.draw_without_rendering()
    (ax,) = figure.axes
    boxes = [text.get_window_extent() for text in ax.texts]
    assert 15 < len(boxes) < 60
    for place, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:place])
        assert not any(box.contains(*point) for point in ax.transData.transform(np.transpose([x, y])))


def test_boxes_stand_at_the_places_of_their_names():
    ax = axes_of(
        Boxes([0.0, NAN, 0.2], [0.1, 0.2, 0.3], [0.2, 0.3, 0.4], [0.3, 0.4, 0.5], [0.9, 0.8, 0.7]),
        x=named_axis(["a", "b", "c"]),
    )
    middles = [
        (corners[:, 0].min() + corners[:, 0].max()) / 2 for corners in (box.get_path().vertices for box in ax.patches)
    ]
    np.testing.assert_allclose(middles, [0.5, 2.5])
    quartiles = [sorted(set(np.round(box.get_path().vertices[:4, 1], 9))) for box in ax.patches]
    assert quartiles == [[0.1, 0.3], [0.3, 0.5]]
    levels = {round(float(value), 9) for line in ax.lines for value in line.get_ydata()}
    assert {0.0, 0.2, 0.9, 0.4, 0.7} <= levels


def test_long_names_stand_upright_and_short_ones_do_not():
    short, long = (
        axes_of(Boxes(*[[0.1] * 9] * 5), x=named_axis([f"{name}{place}" for place in range(9)]))
        for name in ("p", "a long name ")
    )
    assert {label.get_rotation() for label in short.get_xticklabels()} == {0}
    assert {label.get_rotation() for label in long.get_xticklabels()} == {90}


def test_the_cursor_stands_at_the_first_state():
    (cursor,) = axes_of(Cursor("radius", [0.1, 0.4, 0.8], 1)).lines
    assert cursor.get_xdata() == [0.4, 0.4]


def test_marks_cover_those_that_come_before_them():
    ax = axes_of(Line([0, 1], [0, 1]), Bars([0], [1], [0], [1], "count"), Segments([(0, 0, 1, 1)], "ideal"))
    assert ax.lines[0].zorder < ax.patches[0].zorder < ax.collections[0].zorder


@pytest.mark.parametrize(
    "axis",
    [
        unit("share"),
        covering([0.03, 0.27], "error"),
        covering([-3, 5], "score", low=None),
        counts([3, 80_000]),
        named_axis("abc"),
    ],
)
def test_axes_have_the_ends_ticks_and_labels_they_are_given(axis):
    ax = axes_of(Line([0, 1], [1, 2]), x=axis, y=axis)
    assert ax.get_xlim() == ax.get_ylim() == (axis.low, axis.high)
    for made in (ax.xaxis, ax.yaxis):
        texts = [text.get_text() for text in made.get_ticklabels()]
        assert list(zip(made.get_majorticklocs(), texts, strict=True)) == list(axis.ticks)
        assert made.get_minorticklocs().size == 0
        assert made.get_label_text() == axis.label
        assert made.get_scale() == ("log" if axis.log else "linear")


def test_what_lies_beyond_an_end_is_put_there():
    ax = axes_of(Line([0, 1], [-7, 7]), Bars([0], [2], [0], [5], 0))
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [0, 1])
    assert rectangles(ax) == [(0, 0, 1, 1)]


def test_an_axis_without_extent_is_drawn():
    ax = axes_of(Line([0.5], [0.5]), x=Axis(2.0, 2.0, (), ""))
    assert ax.get_xlim() == (2.0, 3.0)


def test_panels_share_their_x_axis_and_have_heights_in_proportion():
    figure = gallery.reliability().figure()
    figure.draw_without_rendering()
    main, below = figure.axes
    assert main.get_shared_x_axes().joined(main, below)
    assert main.get_position().height / below.get_position().height == pytest.approx(240 / 58, rel=0.02)
    assert (main.get_xlabel(), below.get_xlabel()) == ("", "confidence")
    assert (main.get_title(), below.get_title()) == ("Reliability diagram", "")


def test_stacked_terms_add_up_and_totals_stand_at_their_ends():
    stack = Stack(
        ["one", "two"], [{"a": 0.1, "b": 0.2}, {"b": 0.3, "c": NAN}], ["0.3", "≥ 0.3"], covering([0.4], "value")
    )
    figure = Chart("t", "", [stack]).figure()
    (ax,) = figure.axes
    spans = [(bar[0], bar[2]) for bar in rectangles(ax)]
    np.testing.assert_allclose(spans, [(0, 0.1), (0.1, 0.3), (0, 0.3)])
    assert [(text.get_text(), text.xy) for text in ax.texts] == [
        ("0.3", (pytest.approx(0.3), 0)),
        ("≥ 0.3", (pytest.approx(0.3), 1)),
    ]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["one", "two"]
    assert legend_texts(figure.legends[0]) == ["a", "b", "c"]
    assert ax.patches[1].get_hatch() == ax.patches[2].get_hatch() != ax.patches[0].get_hatch()


def test_long_names_of_stacks_stand_above_their_bars():
    name = "a name too long for the left side"
    (ax,) = Chart("t", "", [Stack([name], [{"a": 1}], ["1"], covering([1], "value"))]).figure().axes
    assert [text.get_text() for text in ax.texts] == ["1", name]
    assert [label.get_text() for label in ax.get_yticklabels()] == [""]


def test_small_heatmaps_have_numbers_and_large_ones_dashes_in_negative_cells():
    values = np.array([[1, -0.004, -0.42], [-0.004, 1, NAN], [-0.42, NAN, 1]])
    small = Chart("t", "", [Heatmap(["a", "b", "c"], values)]).figure().axes[0]
    assert [text.get_text() for text in small.texts] == ["1.00", "0.00", "−0.42", "0.00", "1.00", "−0.42", "1.00"]
    np.testing.assert_array_equal(np.ma.filled(small.images[0].get_array(), NAN), values)
    assert [label.get_text() for label in small.get_xticklabels()] == ["a", "b", "c"]
    large = np.ones((21, 21))
    large[3, 7] = -0.5
    ax = Chart("t", "", [Heatmap([str(place) for place in range(21)], large)]).figure().axes[0]
    assert len(ax.texts) == 0
    np.testing.assert_array_equal(ax.lines[0].get_xydata(), [(7, 3)])


def test_graphs_point_down_from_box_to_box():
    figure = gallery.graph().figure()
    (ax,) = figure.axes
    rows = {text.get_text().split()[0]: text.get_position()[1] for text in ax.texts}
    assert rows == {"ensemble": 0, "baseline": 1, "smoothing": 1, "distilled": 2}
    arrows = [patch for patch in ax.patches if hasattr(patch, "get_arrowstyle")]
    looks = [(arrow.get_linewidth(), arrow.get_linestyle() != "solid") for arrow in arrows]
    assert sorted(looks) == [(1.1, False), (1.1, True), (1.1, True), (2.2, False)]
    thick = [box.get_linewidth() for box in ax.patches if box not in arrows]
    assert sorted(thick) == [0.8, 0.8, 0.8, 1.8]
    assert legend_texts(figure.legends[0])[:2] == ["beyond sampling error", "higher everywhere"]


def test_the_legend_of_a_graph_has_what_is_drawn():
    legend = {"firm": "thick", "weak": "broken", "top": "best", "node": "worse"}
    figure = Chart("t", "", [Graph(["a", "b"], [("a", "b", "weak")], frozenset("a"), legend)]).figure()
    assert legend_texts(figure.legends[0]) == ["broken", "best", "worse"]


@pytest.mark.parametrize(
    "panel",
    [
        Panel(unit("x"), unit("y"), [Line([0, 1], [NAN, math.inf]), Points([], []), Segments([(0, 0, 1, 1)], "ideal")]),
        Panel(unit("x"), unit("y"), [Bars([0], [1], [0], [NAN], 0), whiskers([0], [NAN], [1]), Band([], [], [])]),
        Panel(unit("x"), named_axis([]), [Boxes([], [], [], [], []), Words([], [], [], beside=True)]),
        Stack([], [], [], unit("x")),
        Heatmap([], np.zeros((0, 0))),
        Heatmap(["a"], [[NAN]]),
        Graph([], [], frozenset(), {}),
    ],
)
def test_where_nothing_is_finite_the_figure_says_so(panel):
    figure = Chart("t", "", [panel]).figure()
    assert [text.get_text() for text in figure.axes[0].texts] == ["nothing to draw"]
    assert mpl.figure_bytes(figure, "png", 50).startswith(b"\x89PNG")


def test_a_chart_without_panels_says_that_there_is_nothing_to_draw():
    assert [text.get_text() for text in Chart("t", "", []).figure().axes[0].texts] == ["nothing to draw"]


@pytest.mark.parametrize(("count", "columns"), [(1, 1), (2, 2), (3, 2), (5, 2), (24, 2)])
def test_charts_stand_in_a_grid_as_wide_as_the_page_of_a_paper_and_one_is_as_wide_as_a_column(count, columns):
    figure = mpl.draw([chart(Line([0, 1], [0, 1]), title=str(place)) for place in range(count)])
    figure.draw_without_rendering()
    assert [ax.get_title() for ax in figure.axes] == [str(place) for place in range(count)]
    boxes = [ax.get_window_extent() for ax in figure.axes]
    assert len({round(box.x0) for box in boxes}) == columns
    assert len({round(box.y0) for box in boxes}) == -(-count // columns)
    assert figure.get_figwidth() == (3.4 if columns == 1 else 6.9)


@pytest.mark.parametrize("count", [0, 25])
def test_no_or_too_many_charts_are_refused(count):
    with pytest.raises(InputError, match=rf"{count} charts were asked for in one figure; draw from 1 to 24"):
        mpl.draw([gallery.nothing()] * count)


def test_wide_charts_have_a_row_of_their_own():
    figure = mpl.draw([gallery.bars(), gallery.boxes("", 20), gallery.bars()])
    figure.draw_without_rendering()
    first, wide, last = (ax.get_window_extent() for ax in figure.axes)
    assert first.y0 > wide.y1 > wide.y0 > last.y1


def test_charts_with_the_same_legend_have_one_and_others_have_their_own():
    same = mpl.draw([gallery.reliability(), gallery.reliability(shift=0.1)])
    other = mpl.draw([gallery.reliability(), gallery.bars()])
    assert legend_texts(same.legends[0])[:2] == ["accuracy", "gap, overconfident"]
    assert [part.legends for part in same.subfigs] == [[], []]
    assert other.legends == []
    assert [legend_texts(part.legends[0])[0] for part in other.subfigs] == ["accuracy", "adds"]


def test_legends_cover_no_panel():
    figure = mpl.draw([gallery.by_radius(), gallery.scatter(), gallery.stack(), gallery.graph()])
    figure.draw_without_rendering()
    boxes = [legend.get_window_extent() for part in figure.subfigs for legend in part.legends]
    assert len(boxes) == 4
    for box in boxes:
        assert not any(box.overlaps(ax.get_tightbbox()) for ax in figure.axes)


def test_a_given_axes_is_used_and_its_figure_returned():
    figure = Figure()
    ax = figure.subplots()
    assert chart(Line([0, 1], [0, 1], 0, "a line")).figure(ax) is figure
    assert figure.axes == [ax]
    assert (ax.get_title(), legend_texts(ax.get_legend())) == ("title", ["a line"])
    assert ax.lines[0].get_clip_on()


def test_of_a_chart_with_a_main_panel_that_one_goes_into_a_given_axes():
    ax = Figure().subplots()
    gallery.reliability().figure(ax)
    assert (ax.get_xlabel(), ax.get_ylabel(), len(ax.patches)) == ("confidence", "accuracy", 8)
    assert "samples per bin" not in legend_texts(ax.get_legend())


def test_words_find_their_place_in_given_axes_as_well():
    ax = Figure().subfigures(1, 2)[0].subplots()
    gallery.front().figure(ax)
    assert {"λ = 0", "λ = 4", "centred"} <= {text.get_text() for text in ax.texts}


def test_what_does_not_fit_into_one_axes_is_refused():
    ax = Figure().subplots()
    with pytest.raises(InputError, match="2 charts cannot be drawn into one axes; draw them without ax"):
        mpl.draw([gallery.bars()] * 2, ax)
    twins = Chart("t", "", [*gallery.bars().panels] * 2)
    with pytest.raises(InputError, match="a chart of 2 panels cannot be drawn into one axes; draw it without ax"):
        twins.figure(ax)
    with pytest.raises(InputError, match="ax is a str; give matplotlib axes"):
        gallery.bars().figure("axes")


MAKERS = {
    "reliability": gallery.reliability,
    "radius": gallery.by_radius,
    "scatter": gallery.scatter,
    "boxes": gallery.boxes,
    "bars": gallery.bars,
    "stack": gallery.stack,
    "heatmap": lambda more: gallery.heatmap(4, more),
    "graph": gallery.graph,
}


@pytest.mark.parametrize(
    ("make", "name"),
    [(gallery.bars, name) for name in HOSTILE]
    + [(make, name) for make in MAKERS.values() for name in ("x" * 500, "_$\\frac{\x1b[31m<script>\n日本語")],
)
def test_hostile_names_are_drawn_letter_by_letter_and_stay_inside_the_figure(make, name):
    figure = make(name).figure()
    assert "<script>" not in mpl.figure_bytes(figure, "svg").decode()
    texts = [text for text in figure.findobj(Text) if text.get_text()]
    assert not any(text.get_parse_math() for text in texts if "$" in text.get_text())
    assert not any("\x1b" in text.get_text() for text in texts)
    assert any(mpl.printable(name)[:5] in text.get_text() for text in texts)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")
        boxes = [text.get_window_extent() for text in texts if text.get_visible() and text.axes is not None]
        boxes += [legend.get_window_extent() for legend in figure.legends]
    wide, high = figure.bbox.size
    assert all(box.x0 >= -1 and box.x1 <= wide + 1 and box.y0 >= -1 and box.y1 <= high + 1 for box in boxes)


def test_the_same_charts_give_the_same_bytes():
    makers = gallery.front, gallery.graph, gallery.scatter, lambda: gallery.heatmap(4)
    one, two = (mpl.draw([make() for make in makers]) for _ in range(2))
    for kind in mpl.FORMATS:
        first, second = mpl.figure_bytes(one, kind, 60), mpl.figure_bytes(two, kind, 60)
        assert first == second, kind
        assert b"CreationDate" not in first, kind
        assert b"dc:date" not in first, kind


def test_files_have_the_format_of_their_ending_and_are_not_overwritten(tmp_path):
    figure = gallery.nothing().figure()
    for ending, start in ((".png", b"\x89PNG"), (".svg", b"<?xml"), (".PDF", b"%PDF")):
        assert mpl.save(figure, tmp_path / f"a{ending}", dpi=50).read_bytes().startswith(start)
    with pytest.raises(InputError, match=r"a\.png exists and is not overwritten"):
        mpl.save(figure, tmp_path / "a.png")
    mpl.save(figure, tmp_path / "a.png", force=True)
    assert len(list(tmp_path.iterdir())) == 3


def test_reports_are_saved_as_figures(tmp_path):
    path = Report("title", [], [Section("charts", [gallery.bars(), gallery.graph()])]).save(tmp_path / "report.png")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_notebooks_show_a_figure():
    assert gallery.nothing().figure()._repr_png_().startswith(b"\x89PNG")


def test_without_matplotlib_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(InputError, match=r"pip install 'certcal\[report\]'"):
        gallery.bars().figure()
