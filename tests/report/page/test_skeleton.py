"""Pages: complete in themselves, nothing but their own code, every name from outside escaped."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certcal._checks import InputError
from certcal._html import Raw, element
from certcal.report.page import Page, Provenance, page
from certcal.report.page._frames import chosen, framed, marked_row, slider
from certcal.report.page._pieces import clipped, details, figure, scrolling, shown, unbroken
from certcal.report.page._skeleton import Section, document
from tests.report.page.parsed import assert_sound, classes, data_of, parsed

HOSTILE = (
    '"><script>alert(1)</script>',
    "</script><script>alert(1)</script>",
    "</title></style><img src=x onerror=alert(1)>",
    "javascript:alert(1)",
    "https://example.org/x.js",
    "<!--",
    "]]>",
    "a\x00b\x1b[31m",
    "\u202eevil\u2066",
    "\ud800",
    "\u2028\u2029",
    "x" * 100_000,
)

ORIGIN = Provenance(
    ("certcal", "measure", "my table.csv"),
    "2026-01-02T03:04:05Z",
    {"certcal": "0.1", "python": "3.12"},
    {"bootstrap": 7},
    (("my table.csv", 1234, "ab" * 32),),
    ("A remark.",),
)


def small(**options: object) -> Page:
    sections = [Section("numbers", "Numbers", element("p", "1"))]
    return document("Title", sections, {"n": 1}, **options)  # type: ignore[arg-type]


def test_a_page_is_sound_and_has_its_landmarks_in_order() -> None:
    root = assert_sound(small(headline=Raw("<p>claim</p>"), source="a.csv", provenance=ORIGIN).html)
    body = root.one("body")
    tags = [child.tag for child in body.children if not isinstance(child, str)]
    assert tags == ["a", "svg", "header", "nav", "main", "footer", "script", "script"]
    assert body.all("a")[0].attributes["href"] == "#content"
    assert root.one("html").attributes["lang"] == "en"
    assert root.one("meta", name="referrer").attributes["content"] == "no-referrer"
    assert root.one("meta", name="color-scheme").attributes["content"] == "light dark"
    links = [each.attributes["href"] for each in root.one("nav").all("a")]
    assert links == ["#numbers", "#provenance"]


def test_without_scripts_a_page_shows_no_control_that_needs_them() -> None:
    content = slider("radius", "Radius", ["a", "b"], 0)
    root = parsed(document("Title", [Section("x", "X", content)], {}, provenance=ORIGIN).html)
    controls = [each for each in root.all() if "data-needs-script" in each.attributes]
    assert {each.tag for each in controls} == {"div", "a", "button"}
    assert all("hidden" in each.attributes for each in controls)
    assert "as JSON" in root.one("noscript").text


def test_the_style_sheet_knows_every_class_of_a_page() -> None:
    root = parsed(small(headline=Raw("<p>claim</p>"), source="a", description="b", provenance=ORIGIN).html)
    style = root.one("style").text
    assert {name for name in classes(root) if f".{name}" not in style} <= {"content"}


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_names_from_outside_cannot_become_markup_wherever_they_stand(name: str) -> None:
    origin = Provenance(("certcal", name), name, {name: name}, {name: 1}, ((name, 1, name),), (name,))
    sections = [Section("x", "X", (shown(name), details(name, name), scrolling(name, name), figure("", name)))]
    made = document(name, sections, {name: name}, source=name, description=name, provenance=origin)
    root = assert_sound(made.html)
    assert root.all("img") == []
    assert data_of(root)[name] == name
    made.html.encode()
    assert re.search("[\x00\x1b\u202e\u2066\u2028]", made.html) is None


def test_a_long_name_is_shown_without_its_middle() -> None:
    made = document("y" * 100_000, [], {}, source="x" * 100_000)
    assert len(made.html) < 60_000
    assert "…" in parsed(made.html).one("h1").text
    assert clipped("short") == "short"


@given(st.dictionaries(st.text(), st.one_of(st.text(), st.floats(allow_nan=False, allow_infinity=False))))
def test_the_json_inside_a_page_is_what_was_put_in(content: dict[str, object]) -> None:
    assert data_of(parsed(document("t", [], content).html)) == content


def test_the_provenance_is_shown_and_part_of_the_json() -> None:
    root = parsed(small(provenance=ORIGIN).html)
    assert data_of(root) == {"n": 1, "provenance": ORIGIN.to_dict()}
    assert root.one("pre").text == "certcal measure 'my table.csv'"
    assert root.one("time").text == "2 January 2026, 03:04 UTC"
    section = root.one("section", id="provenance").text
    for part in ("certcal 0.1, python 3.12", "bootstrap 7", "1,234", "ab" * 32, "A remark."):
        assert part in section


def test_lines_of_a_command_are_not_broken_inside_its_options() -> None:
    command = ("certcal", "report", "a b-c.csv", "--by", "<x-y>")
    written = parsed(document("t", [], {}, provenance=Provenance(command)).html).one("pre")
    assert written.text == "certcal report 'a b-c.csv' --by '<x-y>'"
    assert [each.text for each in written.all("span")] == ["b-c.csv'", "--by", "'<x-y>'"]
    assert unbroken("no such sign") == "no such sign"
    assert unbroken(" a-b\n\tc d-") == ' <span class="word">a-b</span>\n\tc <span class="word">d-</span>'


def test_a_word_of_any_length_is_taken_in_one_pass() -> None:
    word = "x" * 2_000_000  # looking for a hyphen from each of its letters anew would take hours
    assert unbroken(word) == word
    assert unbroken(f"{word}-") == f'<span class="word">{word}-</span>'


def test_a_page_from_python_says_that_no_command_was_recorded() -> None:
    assert "No command was recorded" in parsed(small().html).one("section", id="provenance").text


@pytest.mark.parametrize("word", ["x" * 5000, "a\u202eb", "\x1b[31m.csv"])
def test_a_command_that_cannot_be_shown_as_it_was_is_not_offered_for_copying(word: str) -> None:
    command = ("certcal", "report", word)
    root = parsed(document("t", [], {}, provenance=Provenance(command)).html)
    section = root.one("section", id="provenance")
    assert "the JSON in this page has it word by word" in section.text
    assert not [each for each in root.all("button") if "data-copy" in each.attributes]
    assert data_of(root)["provenance"]["command"] == list(command)
    plain = parsed(document("t", [], {}, provenance=Provenance(("certcal", "report", "a b"))).html)
    assert plain.one("button", data_copy="command").text == "Copy"
    assert "word by word" not in plain.one("section", id="provenance").text


def test_provenance_of_this_process_knows_date_and_versions() -> None:
    made = Provenance.here(["certcal", "demo"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", made.created)
    assert {"certcal", "python", "numpy", "scipy"} <= set(made.versions)
    assert json.loads(json.dumps(made.to_dict()))["command"] == ["certcal", "demo"]


def test_numbers_that_are_too_many_give_way_to_the_first_variant_that_fits() -> None:
    large = {"values": ["x" * 100] * 50_000}
    root = parsed(document("t", [], large, smaller=[("Less.", large), ("Least.", {"n": 1})]).html)
    assert data_of(root) == {"n": 1}
    assert "Least." in root.one("section", id="provenance").text
    assert "Less." not in root.one("section", id="provenance").text
    nothing = parsed(document("t", [], large).html)
    assert list(data_of(nothing)) == ["left_out"]
    assert data_of(nothing)["left_out"] in nothing.one("section", id="provenance").text


def test_what_is_missing_from_the_start_is_said() -> None:
    root = parsed(document("t", [], {}, left_out="Bins are missing.").html)
    assert "Bins are missing." in root.one("section", id="provenance").text


def test_a_page_is_saved_whole_and_never_over_another(tmp_path: Path) -> None:
    made, path = small(), tmp_path / "page.html"
    assert made.save(path) == path
    assert path.read_text("utf-8") == made.html
    with pytest.raises(InputError, match="exists and is not overwritten"):
        made.save(path)
    made.save(str(path), force=True)
    with pytest.raises(InputError, match=r"pages are written as \.html"):
        made.save(tmp_path / "page.pdf")
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]


def test_notebooks_show_a_page_in_a_frame_that_cannot_reach_the_notebook() -> None:
    made = small()
    frame = parsed(made._repr_html_()).one("iframe")
    assert frame.attributes["srcdoc"] == made.html
    assert frame.attributes["sandbox"] == "allow-scripts allow-downloads"
    assert frame.attributes["allow"] == "clipboard-write"


def test_results_of_another_kind_are_refused() -> None:
    with pytest.raises(InputError, match="results are dict; pass what measuring"):
        page({})  # type: ignore[arg-type]


def test_frames_are_spread_evenly_and_keep_the_first_the_last_and_the_start() -> None:
    for count, start in ((1, 0), (41, 7), (42, 7), (1000, 999), (1000, 501)):
        places = chosen(count, start)
        assert {0, start, count - 1} <= set(places)
        assert places == sorted(set(places))
        assert len(places) <= 41
        gaps = [after - before for before, after in pairwise(places)]
        assert all(gap <= count / 39 + 1 for gap in gaps)


def test_only_the_first_frame_is_seen_and_its_row_stands_out() -> None:
    root = parsed(
        "".join(framed("g", "radius", frame, 1, str(frame)) for frame in range(3))
        + "".join(marked_row("radius", frame, 1, element("td", frame)) for frame in range(3))
    )
    assert [each.text for each in root.all("g") if "hidden" not in each.attributes] == ["1"]
    assert [each.text for each in root.all("tr") if each.attributes.get("aria-current") == "true"] == ["1"]


def test_a_slider_has_a_text_for_each_frame_and_says_the_one_that_is_seen() -> None:
    root = parsed(slider("radius", "Radius", ["radius 0", "radius 1"], 1, texts=["zero", "one"]))
    control = root.one("input")
    assert (control.attributes["min"], control.attributes["max"], control.attributes["value"]) == ("0", "1", "1")
    assert control.attributes["aria-valuetext"] == "radius 1"
    assert [each.text for each in root.one("output").all("span") if "hidden" not in each.attributes] == ["one"]
    assert root.one("label").attributes["for"] == control.attributes["id"]


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    shares = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def schemes() -> list[dict[str, str]]:
    """Colours by name for the light, the dark and the printed page."""
    style = parsed(small().html).one("style").text
    blocks = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    light, dark, printed = (dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", block)) for block in blocks)
    assert dark.keys() == light.keys() >= printed.keys()
    assert "@media screen and (prefers-color-scheme: dark)" in style  # paper is light, with darker words
    return [light, dark, light | printed]


def test_words_and_marks_can_be_told_from_their_ground_in_every_scheme() -> None:
    assert [len(scheme) for scheme in schemes()] == [len(schemes()[0])] * 3
    for scheme in schemes():
        for ground in ("paper", "panel"):
            for words in ("ink", "soft", "link", "estimate", "bound", "certificate", "worst-case"):
                assert contrast(scheme[words], scheme[ground]) >= 4.5, (words, ground)
        for mark in ("blue", "orange", "green", "purple", "sky", "grey", "blue-fill", "grey-fill"):
            assert contrast(scheme[mark], scheme["paper"]) >= 3, mark
