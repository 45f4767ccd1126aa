import base64
import dataclasses
import gzip
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import certcal
from certcal.report.charts import (
    Axis,
    Band,
    Bars,
    Chart,
    Graph,
    Heatmap,
    Line,
    Look,
    Mark,
    Panel,
    Points,
    Segments,
    Stack,
    TextBars,
    Words,
    covering,
    unit,
)
from certcal.report.document import (
    Block,
    Choice,
    Claim,
    Column,
    Details,
    Figures,
    Heading,
    Listing,
    Report,
    Section,
    Strong,
    Table,
    Text,
)
from certcal.report.provenance import Provenance
from tests.report.gallery import CHOICE, RADII, START, gallery, verdict
from tests.report.parsed import Node, assert_sound, classes, data_of, parsed

HOSTILE = "</script></title><script>alert(1)</script><img src=x onerror=alert(1)>\"'&"


def page(*blocks: Block, **fields: Any) -> Node:
    return assert_sound(Report("Asked", [], [Section("Part", blocks)], **fields).to_html())


def drawn(*marks: Mark, x: Axis | None = None, y: Axis | None = None) -> Node:
    """The picture of one panel with axes from 0 to 1, unless others are given."""
    panel = Panel(unit("x") if x is None else x, unit("y") if y is None else y, marks, 100)
    return page(Chart("Chart", "Shows.", [panel])).one("svg", role="img")


def path(root: Node, kind: str) -> str:
    (found,) = [each.attributes["d"] for each in root.all("path", class_=kind)]
    assert found is not None
    return found


# The page


def test_a_page_with_every_block_is_sound_and_has_its_parts_in_order() -> None:
    root = assert_sound(gallery().to_html())
    (main,) = root.all("main")
    order = [each.attributes.get("id") or each.tag for each in main.children if isinstance(each, Node)]
    assert order[:3] == ["headline", "nav", "section-reliability"]
    assert order[-3:] == ["div", "appendix", "reproducibility"]
    assert root.one("h1").text == "How calibrated is the model?"
    links = [each.text for each in root.one("nav").all("a")]
    assert links == [
        *("Reliability", "Radius", "Comparison", "Samples", "Texts", "Nothing"),
        *("Appendix", "Reproducibility"),
    ]


def test_the_style_sheet_knows_every_class_of_a_page() -> None:
    root = parsed(gallery().to_html())
    style = root.one("style").text
    without = {name for name in classes(root) if f".{name}" not in style}
    assert without <= {"strict", "label", "pairs", "estimate", "plus", "kinds"}, without


def texts_of(value: Any) -> Iterator[str]:
    """Every text inside a report that a page shows whole."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, TextBars | Words):
        return  # for terminals; clipped or left out where there is no room
    elif dataclasses.is_dataclass(value):
        for each in dataclasses.fields(value):
            yield from texts_of(getattr(value, each.name))
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from texts_of(key)
            yield from texts_of(each)
    elif isinstance(value, list | tuple | frozenset):
        for each in value:
            yield from texts_of(each)


def test_every_text_of_every_block_is_on_the_page_and_none_becomes_markup() -> None:
    more = "<i>&"
    report = gallery(more).of(data={})
    root = assert_sound(report.to_html())
    assert not root.all("i")
    seen = root.text + " ".join(each.attributes["alt"] or "" for each in root.all("img"))
    wanted = {text.removeprefix("at most ") for text in texts_of(report) if more in text}
    wanted -= {f"model {place}{more}" for place in (28, 29)}  # points without a value
    assert len(wanted) > 150
    missing = {text for text in wanted if text not in seen and f"{text[:1].upper()}{text[1:]}" not in seen}
    assert missing == set()


@pytest.mark.parametrize("more", [HOSTILE, "\x1b[31m\u202e\ud800", "x" * 5000, f"{HOSTILE} " * 40])
def test_hostile_and_endless_texts_change_no_structure(more: str) -> None:
    plain, other = parsed(gallery().to_html()), assert_sound(gallery(more).to_html())
    for tag in ("script", "img", "svg", "table", "tr", "th", "td", "section", "figure", "details", "input", "iframe"):
        assert len(other.all(tag)) == len(plain.all(tag)), tag
    assert not set("\x1b\u202e\ud800") & set(other.text)
    # Ten texts of 5,000 letters each are clipped to what can be read; only the JSON has them whole.
    assert max(len(each.text) for each in other.all("bdi")) <= 4003


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(max_size=30))
def test_any_text_gives_a_sound_page(more: str) -> None:
    assert_sound(gallery(more).to_html())


def test_the_verdict_is_said_in_words_and_marked() -> None:
    signs = set[str]()
    for outcome, kind in (("met", "pass"), ("not met", "fail"), ("not shown", "open")):
        (banner,) = parsed(gallery(outcome=outcome).to_html()).all("div", class_=f"verdict {kind}")
        (line,) = banner.of_class(kind)
        assert line.text[1:].startswith(f"{outcome}: error is")
        signs.add(line.text[0])
    assert len(signs) == 3
    assert not parsed(Report("Asked", []).to_html()).of_class("verdict")
    assert "<b>" in page(verdict=verdict("not met", "<b>")).of_class("verdict")[0].text


def test_who_and_what_come_in_their_order_in_one_list() -> None:
    about = parsed(gallery().to_html()).one("dl", class_="about")
    assert [each.text for each in about.all("dt")] == ["Model", "Owner", "Ticket", "Source", "Contents", "Created"]
    assert about.one("time").attributes["datetime"] == "2026-01-02T03:04:05Z"
    assert "2 January 2026, 03:04 UTC" in about.text
    assert "soon" in page(provenance=Provenance(created="soon")).one("dl", class_="about").text


def test_sections_with_equal_or_foreign_titles_have_addresses_of_their_own() -> None:
    sections = [Section(title, Text("a block")) for title in ("Bins", "bins!", "残差", "", "Appendix", "Data")]
    root = assert_sound(Report("Asked", [], sections, [Section("More", [Text("folded")])]).to_html())
    assert len(root.one("nav").all("a")) == 8
    assert "open" not in root.one("details", class_="fold").attributes


@settings(max_examples=15)
@given(
    st.dictionaries(st.text(), st.none() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text())
)
def test_the_json_inside_a_page_is_what_was_put_in(data: dict[str, Any]) -> None:
    assert data_of(parsed(Report("Asked", [], data=data).to_html())) == data


def test_numbers_that_are_too_many_give_way_to_the_first_variant_that_fits() -> None:
    huge = {"values": "x" * 4_000_001}
    asked: list[int] = []

    def smaller(place: int, data: Mapping[str, Any]) -> Any:
        def make() -> tuple[str, Mapping[str, Any]]:
            asked.append(place)
            return f"Variant {place} leaves <rows> out.", data

        return make

    variants = [smaller(0, huge), smaller(1, {"n": 1}), smaller(2, {})]
    root = page(data=huge, smaller=variants)
    assert data_of(root) == {"n": 1}
    assert "Variant 1 leaves <rows> out." in root.one("section", id="reproducibility").text
    assert asked == [0, 1]
    origin = Provenance(("certcal",))
    root = page(data=huge, provenance=origin)
    assert data_of(root)["provenance"]["command"] == ["certcal"]
    assert data_of(root)["left_out"] in root.text


def test_the_command_versions_seeds_and_inputs_are_shown_and_part_of_the_json() -> None:
    root = parsed(gallery().to_html())
    last = root.one("section", id="reproducibility")
    assert root.one(id="command").text == "certcal measure predictions.csv --bins 15"
    assert [each.text for each in last.one("table").all("td")] == ["predictions.csv", "123,456", "0" * 64]
    for words in ("certcal 0.0, python 3.11", "bootstrap 0", "The table was read once."):
        assert words in last.text
    assert data_of(root)["provenance"]["seeds"] == {"bootstrap": 0}
    assert "Download the numbers (JSON)" in last.text


@pytest.mark.parametrize("word", ["a\x1bb", "x" * 5000])
def test_a_command_that_cannot_be_shown_as_it_was_is_not_offered_for_copying(word: str) -> None:
    assert parsed(gallery().to_html()).all("button", data_copy="command")
    root = page(provenance=Provenance(("certcal", word)))
    assert not root.all("button", data_copy="command")
    assert data_of(root)["provenance"]["command"] == ["certcal", word]


def test_without_scripts_a_page_shows_no_control_that_needs_them() -> None:
    root = parsed(gallery().to_html())
    needy = [each for each in root.all() if "data-needs-script" in each.attributes]
    assert {each.tag for each in needy} == {"button", "a", "div", "p"}
    assert all("hidden" in each.attributes for each in needy)


def test_notebooks_show_a_page_in_a_frame_that_cannot_reach_the_notebook() -> None:
    report = gallery(HOSTILE)
    frame = parsed(report._repr_html_()).one("iframe")
    assert "allow-same-origin" not in (frame.attributes["sandbox"] or "")
    inside = parsed(frame.attributes["srcdoc"] or "")
    packed = base64.b64decode(inside.one("script", id="page").text)
    assert gzip.decompress(packed).decode() == report.to_html()
    style = inside.one("style").text
    assert {name for name in classes(inside) if f".{name}" not in style} <= {"strict", "label", "pairs", "kinds"}


# Blocks


def test_a_claim_folds_many_assumptions_and_shows_few() -> None:
    few = page(Claim("Bound", "It is at most 0.1.", "at most 0.1", "Fails rarely.", ("a", "b"))).of_class("card")[0]
    assert [each.text for each in few.all("li")] == ["a", "b"]
    assert not few.all("details")
    assert few.one("p", class_="value").one("strong").text == "0.1"
    many = parsed(gallery().to_html()).of_class("card")[0]
    folded = many.one("details")
    assert folded.one("summary").text == "Assumptions, terms and settings"
    assert [each.text for each in folded.all("li")] == [
        "samples are independent",
        "the noise is Gaussian",
        "α is split",
    ]
    assert [each.text for each in folded.all("dd")] == ["15", "0.25"]
    assert (
        page(Claim("Bound", "Long.", assumptions=("word " * 60,))).one("details").one("summary").text == "Assumptions"
    )


def test_each_kind_of_claim_has_a_badge_of_its_own() -> None:
    kinds = ["Estimate", "Bound", "Certificate", "Worst case", "Unheard of"]
    badges = page(*(Claim(kind, "Said.") for kind in kinds)).of_class("badge")
    assert [each.text for each in badges] == kinds
    looks = [each.attributes["class"] for each in badges]
    assert looks == ["badge estimate", "badge bound", "badge certificate", "badge worst-case", "badge estimate"]


def test_tables_have_heads_rows_headings_and_sides() -> None:
    table = Table(
        (Column("metric"), Column("bound", "bound", "upper"), Column("word")),
        [Heading("Errors"), ("ECE", 0.03971, "a"), (Strong("MCE"), None, "b"), ("left", 0.5, "c")],
        "All",
        "A note.",
        most=3,
    )
    root = page(table)
    made = root.one("table")
    assert [each.text for each in made.one("thead").all("th", scope="col")] == ["metric", "bound\u00a0≤", "word"]
    heading = made.one("th", scope="colgroup")
    assert (heading.text, heading.attributes["colspan"]) == ("Errors", "3")
    assert [each.text for each in made.all("th", scope="row")] == ["ECE", "MCE"]
    assert [each.text for each in made.all("td", class_="number")] == ["0.0398", "–"]
    assert made.one("strong").text == "MCE"
    assert made.one("caption").text == "All"
    assert [each.text for each in root.of_class("note")][:2] == ["1 further row is in the JSON only.", "A note."]


def test_everything_that_scrolls_can_be_reached_and_told_apart() -> None:
    regions = parsed(gallery().to_html()).all("div", role="region")
    assert len(regions) >= 20
    assert {each.attributes["tabindex"] for each in regions} == {"0"}
    labels = [each.attributes["aria-label"] for each in regions]
    assert len(set(labels)) == len(labels)


def test_one_state_of_a_choice_is_seen_and_what_follows_it_agrees() -> None:
    root = parsed(gallery().to_html())
    slider = root.one("input", type="range")
    assert (slider.attributes["max"], slider.attributes["value"]) == (str(len(RADII) - 1), str(START))
    assert slider.attributes["aria-valuetext"] == "radius 0.25"
    for tag in ("div", "span", "g"):  # states, names beside the slider, cursors
        frames = root.all(tag, data_of=CHOICE)
        assert [each.attributes["data-frame"] for each in frames] == [str(place) for place in range(len(RADII))]
        assert [place for place, each in enumerate(frames) if "hidden" not in each.attributes] == [START]
    rows = root.all("tr", data_row_of=CHOICE)
    assert [place for place, each in enumerate(rows) if "aria-current" in each.attributes] == [START]


def test_choices_with_one_key_share_the_first_slider() -> None:
    choice = Choice("state", "State", ["one", "two"], 1, [[Text("first")], [Text("second")]])
    root = page(choice, Details("More", [choice]))
    assert len(root.all("input", type="range")) == 1
    assert len([each for each in root.all("div", data_of="state") if "hidden" not in each.attributes]) == 2


def test_small_figures_with_the_same_legend_have_it_once() -> None:
    chart = Chart("C", "D", [Panel(unit("x"), unit("y"), [Line([0, 1], [0, 1], 0, "a line")])], size="small")
    assert len(page(Figures([chart] * 3)).all("ul", class_="legend")) == 1
    other = dataclasses.replace(chart, panels=[Panel(unit("x"), unit("y"), [Line([0], [1], 1, "another")])])
    assert len(page(Figures([chart, other])).all("ul", class_="legend")) == 2


def test_lists_say_how_much_they_leave_out() -> None:
    root = page(Listing(["a", "b", "c"], most=1))
    assert [each.text for each in root.one("ul", class_="listing").all("li")] == ["a"]
    assert "2 further entries are in the JSON only." in root.text


# Charts


def test_charts_have_a_name_and_a_text_that_stands_for_them() -> None:
    root = parsed(gallery().to_html())
    pictures = root.all("svg", role="img")
    assert len(pictures) > 15
    for each in pictures:
        title, text = each.children[:2]
        assert isinstance(title, Node)
        assert isinstance(text, Node)
        assert (title.tag, text.tag) == ("title", "desc")
        assert title.text
        assert text.text
        assert each.attributes["aria-labelledby"] == f"{title.attributes['id']} {text.attributes['id']}"


def test_panels_share_their_x_axis_and_the_last_writes_it() -> None:
    picture = page(
        Chart("C", "D", [Panel(unit("above"), unit("y"), [], 100), Panel(unit("below"), unit("z"), [], 50)])
    ).one("svg", role="img")
    names = [each.text for each in picture.all("text", class_="middle name")]
    assert names == ["y", "z", "below"]
    assert [each.text for each in picture.all("text", class_="middle")].count("0.2") == 1


def test_a_chart_without_a_finite_value_says_so() -> None:
    nothing: list[list[Mark]] = [
        [],
        [Line([0, 1], [math.nan, math.inf])],
        [Points([], [])],
        [Segments([(0, 0, 1, 1)], "ideal"), Bars([0], [1], [0], [math.nan], "accuracy")],
        [Band([0, 1], [math.nan] * 2, [math.nan] * 2)],
    ]
    for marks in nothing:
        assert "nothing to draw" in drawn(*marks).text
    assert "nothing to draw" not in drawn(Bars([0], [1], [0], [0], "count")).text
    assert "nothing to draw" in page(Chart("C", "D", [Heatmap([], [])])).text


def test_bars_stand_between_their_ends_and_missing_ones_are_left_out() -> None:
    found = path(drawn(Bars([0, 0.5, 0.5], [0.5, 1, 1], [0, 0.25, 0], [0.5, 0.75, math.nan], "over")), "gap over")
    left, top, width, height = 54.2, 14, 420 - 54.2 - 16, 100
    middle = left + width / 2
    expected = f"M{left} {top + height}H{middle:.1f}V{top + height / 2:.0f}H{left}Z"
    expected += f"M{middle:.1f} {top + 0.75 * height:.0f}H{left + width:.0f}V{top + 0.25 * height:.0f}H{middle:.1f}Z"
    assert found == expected


def test_lines_break_where_a_value_is_missing_and_single_points_are_marked() -> None:
    x, y = [0, 0.2, 0.4, 0.6, 0.8], [0.1, 0.2, math.nan, 0.6, math.nan]
    bare = drawn(Line(x, y, 0, markers=False))
    assert path(bare, "line blue").count("M") == 1
    assert path(bare, "dot blue").count("M") == 1
    assert path(drawn(Line(x, y)), "dot blue").count("M") == 3


@pytest.mark.parametrize(("steps", "letters"), [("post", "MHVHVH"), ("pre", "MHVHVH"), ("", "MLL")])
def test_steps_keep_their_height_on_the_side_that_was_asked_for(steps: str, letters: str) -> None:
    found = path(drawn(Line([0, 0.5, 1], [0.2, 0.4, 0.8], steps=steps, markers=False)), "line blue")
    assert re.sub(r"[^A-Z]", "", found) == letters


def test_markers_can_stand_elsewhere_than_the_corners_and_a_guide_is_light() -> None:
    marked = drawn(Line([0.2, 0.3, 1], [0.6, 0.1, 0], steps="pre", marked=([0, 0.5], [0.6, 0])))
    assert re.sub(r"[^A-Z]", "", path(marked, "line blue")) == "MHVHVH"
    assert path(marked, "dot blue").count("M") == 2
    assert path(drawn(Line([0, 1], [0.2, 0.4], guide=True)), "line blue guide")
    assert path(drawn(Line([0, 1], [0.2, 0.4], guide=True, markers=False)), "line blue")


def test_a_band_runs_there_and_back_in_every_part() -> None:
    x = [0, 0.2, 0.4, 0.6, 0.8]
    found = path(drawn(Band(x, [0.1] * 5, [0.2, 0.2, math.nan, 0.2, 0.2], 2)), "band green")
    assert re.sub(r"[^A-Z]", "", found) == "MLLLZ" * 2


def test_series_differ_and_start_again_after_eight_and_unknown_looks_are_the_first() -> None:
    looks: list[Look] = [*range(9), "unheard of"]
    found = []
    for look in looks:
        picture = drawn(Line([0, 1], [0, 1], look))
        found.append([(each.attributes["class"], each.attributes["d"]) for each in picture.all("path")][2:])
    assert found[8] == found[0] == found[9]
    assert len({str(each) for each in found}) == 8
    assert drawn(Bars([0], [1], [0], [1], "unheard of")).of_class("bar")[0].attributes["class"] == "bar blue"


def test_points_have_names_under_the_pointer_while_they_are_few() -> None:
    few = drawn(Points([0.1, 0.2, math.nan], [0.5, 0.6, 0.7], names=["<a>", "b", "c"], shade=[0, 1, 2]))
    assert [each.one("title").text for each in few.of_class("point")] == ["<a>", "b"]
    places = list(np.linspace(0, 1, 1000))
    many = drawn(Points(places, places, names=[str(each) for each in places]))
    assert path(many, "point ink").count("M") == 1000


def test_shades_are_told_by_a_legend() -> None:
    chart = Chart(
        "C", "D", [Panel(unit("x"), unit("y"), [Points([0, 1], [0, 1], shade=[1.0, 3.0], shade_label="depth")])]
    )
    (legend,) = page(chart).all("ul", class_="legend")
    assert [each.text for each in legend.all("li")][:2] == ["depth:", "1.000 to 1.400"]


def boxes_of(picture: Node) -> list[tuple[float, float, float, float]]:
    found = []
    for each in picture.all("text"):
        kind = (each.attributes.get("class") or "").split()
        if "label" in kind:
            x, y, width = float(each.attributes["x"] or 0), float(each.attributes["y"] or 0), 7.4 * len(each.text)
            left = x - width if "end" in kind else x - width / 2 if "middle" in kind else x
            found.append((left, y - 11, left + width, y + 3))
    return found


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.text("abc", min_size=1, max_size=8)), max_size=12))
def test_words_beside_points_never_cover_each_other(points: list[tuple[float, float, str]]) -> None:
    x, y, words = ([each[place] for each in points] for place in range(3))
    boxes = boxes_of(drawn(Points(x, y), Words(x, y, words, beside=True)))
    for place, one in enumerate(boxes):
        for two in boxes[place + 1 :]:
            assert one[2] <= two[0] + 0.2 or two[2] <= one[0] + 0.2 or one[3] <= two[1] + 0.2 or two[3] <= one[1] + 0.2


def test_a_word_beside_a_lonely_point_is_written() -> None:
    assert len(boxes_of(drawn(Points([0.5], [0.5]), Words([0.5], [0.5], ["a"], beside=True)))) == 1


@given(st.lists(st.floats(), min_size=2, max_size=6), st.lists(st.floats(), min_size=2, max_size=6))
def test_nothing_of_a_picture_leaves_it(xs: list[float], ys: list[float]) -> None:
    x, y = xs[: len(ys)], ys[: len(xs)]
    picture = drawn(Line(x, y), Points(x, y, 1), Band(x, y, y, 2), Segments([(x[0], y[0], x[1], y[1])], 3))
    width, height = map(float, (picture.attributes["viewbox"] or "").split()[2:])
    for each in picture.all("path"):
        for place in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", each.attributes["d"] or ""):
            assert 0 <= float(place[0]) <= width
            assert 0 <= float(place[1]) <= height


def test_the_bar_of_a_stack_is_as_long_as_its_terms_and_missing_terms_have_no_length() -> None:
    terms = [{"a": 0.25, "b": 0.5}, {"b": math.nan, "c": 0.5, "d": -1.0}]
    root = page(Chart("C", "D", [Stack(["one", "two"], terms, ["0.75", "0.5"], covering([1.0], "value"))]))
    (bar,) = root.all("path", class_="stack-1")[:1]
    start, stop = re.findall(r"[MH]([\d.]+)", bar.attributes["d"] or "")[:2]
    assert (float(start), float(stop)) == (10 + 0.25 * 396, 10 + 0.75 * 396)
    assert [each.text for each in root.one("ul", class_="legend").all("li")] == ["a", "b", "c", "d"]
    assert len(root.one("svg", role="img").of_class("stack-1")) == 1
    assert not root.one("svg", role="img").of_class("stack-3")


def test_small_heatmaps_are_tables_and_large_ones_are_pictures_with_their_numbers() -> None:
    values = [[1.0, -0.417], [-0.417, math.nan]]
    small = page(Chart("C", "D", [Heatmap(["a", "b"], values)])).one("table")
    assert [(each.text, each.attributes["class"]) for each in small.all("td")[1:]] == [
        ("1.00", "cell plus-10"),
        ("−0.42", "cell minus-4"),
        ("−0.42", "cell minus-4"),
        ("", "cell undefined"),
    ]
    many = np.eye(30)
    root = page(Chart("C", "D", [Heatmap([f"m {place}" for place in range(30)], many)]))
    sensor = root.one("rect", class_="sensor")
    numbers = root.one("table", id=f"{sensor.attributes['data-cells']}-numbers")
    assert len(numbers.one("tbody").all("td")) == 30 * 31 // 2
    assert (
        "too many to draw" in page(Chart("C", "D", [Heatmap([str(place) for place in range(161)], np.eye(161))])).text
    )


def test_graphs_draw_every_box_and_arrow_and_explain_only_what_is_there() -> None:
    graph = Graph(
        ["a", "b", "c"],
        [("a", "b", "firm"), ("b", "c", "weak")],
        frozenset("a"),
        {"firm": "F", "strict": "S", "top": "T"},
    )
    root = page(Chart("C", "D", [graph]))
    picture = root.one("svg", role="img")
    assert [each.attributes["class"] for each in picture.all("rect")] == ["node top", "node", "node"]
    assert len(picture.of_class("edge")) == len(picture.of_class("tip")) == 2
    assert [each.text for each in root.one("ul", class_="legend").all("li")] == ["F", "T"]
    many = Graph([str(place) for place in range(41)], [], frozenset(), {})
    assert "41 boxes are too many to draw." in page(Chart("C", "D", [many])).text


def test_long_names_below_an_axis_stand_upright() -> None:
    short, long = (
        drawn(x=Axis(0, 3, tuple((place + 0.5, f"{name}{place}") for place in range(3)), "by"))
        for name in ("p", "a population with a long name ")
    )
    assert not [each for each in short.all("text", class_="end") if "transform" in each.attributes]
    assert len([each for each in long.all("text", class_="end") if "transform" in each.attributes]) == 3


def test_ten_cards_make_no_heavy_notebook() -> None:
    rng = np.random.default_rng(1)
    score = rng.random(3000)
    found = certcal.measure((rng.random(3000) < score).astype(int), score)
    card, whole = found._repr_html_(), found.report().to_html()
    assert len(card) < 100_000
    assert len(card) < len(whole)
    inside = parsed(parsed(card).one("iframe").attributes["srcdoc"] or "")
    assert inside.one("h2", id="answer").text.endswith(found.answer[0].text)
    assert len(inside.all("svg", role="img")) == 1
    assert [each.text for each in inside.one("dl", class_="key-numbers").all("dt")][:2] == ["samples", "base rate"]
