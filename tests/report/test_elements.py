"""Markup that is built from pieces: what goes in comes out of a parser, and nothing else does."""

import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certcal.report.html import elements as _html
from certcal.report.html.elements import Raw, element, table

TEXTS = st.text(st.characters(), max_size=20) | st.sampled_from(
    [
        "<script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
        "' onmouseover='alert(1)",
        "</td></table><b>",
        "&lt;b&gt; &amp &#60; &notit;",
        "<!-- -->",
        "]]>",
        "\x00\x1b[31m\ud800\uffff\u202e",
        "a\r\nb\rc",
    ]
)


class Seen(HTMLParser):
    """The elements with their attributes and the text between them, as a browser's parser would find them."""

    def __init__(self, markup: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[Any] = []
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        self.found.append(f"/{tag}")

    def handle_data(self, data: str) -> None:
        if self.found and isinstance(self.found[-1], list):
            self.found[-1][0] += data
        else:
            self.found.append([data])

    def handle_comment(self, data: str) -> None:
        self.found.append(("comment", data))

    handle_decl = handle_pi = unknown_decl = handle_comment


def shown(text: str) -> list[list[str]]:
    return [[_html.visible(text)]] if text else []


@given(TEXTS, TEXTS, TEXTS)
def test_texts_and_values_come_back_from_a_parser_and_nothing_else_does(text: str, value: str, label: str) -> None:
    markup = element("div", text, element("b", label), class_=value, aria_label=label, hidden=True, title=None)
    attributes = {"class": _html.visible(value), "aria-label": _html.visible(label), "hidden": None}
    expected = [("div", attributes), *shown(text), ("b", {}), *shown(label), "/b", "/div"]
    assert Seen(markup).found == expected


@given(st.lists(st.lists(TEXTS, min_size=2, max_size=2), max_size=3), TEXTS)
def test_tables_hold_their_cells_and_no_other_element(rows: list[list[str]], caption: str) -> None:
    expected: list[Any] = [("table", {}), ("caption", {}), *shown(caption), "/caption", ("tbody", {})]
    for row in rows:
        cells = [part for text in row for part in (("td", {}), *shown(text), "/td")]
        expected += [("tr", {}), *cells, "/tr"]
    assert Seen(table([], rows, caption)).found == [*expected, "/tbody", "/table"]


@given(TEXTS)
def test_what_a_page_may_not_hold_is_replaced_by_what_can_be_seen(text: str) -> None:
    seen = _html.visible(text)
    assert all(c in "\t\n" or ord(c) >= 0x20 for c in seen)
    assert not re.search("[\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069\ufffe\uffff]", seen)
    seen.encode("utf-8")
    assert _html.visible(seen) == seen


@pytest.mark.parametrize(
    ("hidden", "seen"),
    [
        ("\x00", r"\x00"),
        ("\r", r"\r"),
        ("\x85", r"\x85"),
        ("\ud800", r"\ud800"),
        ("\u202e", r"\u202e"),
        ("\U0001ffff", r"\U0001ffff"),
        ("\ufdd0", r"\ufdd0"),
        ("a\tb\nc\u00a0é 日本", "a\tb\nc\u00a0é 日本"),
    ],
)
def test_hidden_characters_are_written_out_and_others_stay(hidden: str, seen: str) -> None:
    assert _html.visible(hidden) == seen


def test_markup_stays_and_what_is_added_to_it_is_text_again() -> None:
    part = element("b", "x")
    assert element("p", part) == "<p><b>x</b></p>"
    assert element("p", part + "<i>") == "<p>&lt;b&gt;x&lt;/b&gt;&lt;i&gt;</p>"
    assert type(part) is Raw


def test_markup_as_a_value_of_an_attribute_is_text() -> None:
    assert element("p", title=Raw("<b>")) == '<p title="&lt;b&gt;"></p>'


def test_nested_children_are_flattened_and_none_is_left_out() -> None:
    assert element("p", ["a", (None, ["b"]), (c for c in "c")], None, np.array([1, 2])) == "<p>abc12</p>"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        (3.0, "3"),
        (-0.0, "0"),
        (0.1, "0.1"),
        (10**20, "100000000000000000000"),
        (np.float64(0.25), "0.25"),
        (np.float32(0.5), "0.5"),
        (np.int64(7), "7"),
        (float("inf"), "inf"),
        (float("nan"), "nan"),
    ],
)
def test_numbers_are_written_in_the_digits_that_give_them_back(value: float, text: str) -> None:
    assert element("td", value, width=value) == f'<td width="{text}">{text}</td>'


@pytest.mark.parametrize("child", [True, False, b"x"])
def test_children_that_are_no_text_are_refused(child: Any) -> None:
    with pytest.raises(TypeError, match="give a text, a number or an element"):
        element("p", child)


def test_names_follow_pythons_spelling() -> None:
    assert element("label", for_="x", data_frame_="y") == '<label for="x" data-frame="y"></label>'


@pytest.mark.parametrize("name", ["", "a b", "a>", "1", 'x"'])
def test_names_that_could_be_markup_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="cannot name an element or attribute"):
        element(name)
    with pytest.raises(ValueError, match="cannot name an element or attribute"):
        element("p", **{name: "x"})


def test_void_elements_have_no_end_and_no_content() -> None:
    assert element("img", src="a", alt="") == '<img src="a" alt="">'
    with pytest.raises(ValueError, match="has no content"):
        element("br", "x")


def test_scripts_hold_only_our_own_text_that_does_not_end_them() -> None:
    assert element("script", Raw("a < b && c")) == "<script>a < b && c</script>"
    with pytest.raises(TypeError, match="cannot be escaped"):
        element("style", "p {}")
    for text in ("</SCRIPT >", "<!--", "<script"):
        with pytest.raises(ValueError, match="would end it early"):
            element("script", Raw(text))


def test_a_first_line_break_of_preformatted_text_survives_browsers() -> None:
    assert element("pre", "\na") == "<pre>\n\na</pre>"
    assert element("pre", "a") == "<pre>a</pre>"


def test_tables_mark_heads_and_columns_of_numbers() -> None:
    markup = table(["a", "b"], [["x", 1]], numeric=(1,), row_headers=True, class_="wide")
    assert Seen(markup).found == [
        ("table", {"class": "wide"}),
        ("thead", {}),
        ("tr", {}),
        *(("th", {"scope": "col"}), ["a"], "/th"),
        *(("th", {"scope": "col", "class": "number"}), ["b"], "/th"),
        *("/tr", "/thead", ("tbody", {}), ("tr", {})),
        *(("th", {"scope": "row"}), ["x"], "/th"),
        *(("td", {"class": "number"}), ["1"], "/td"),
        *("/tr", "/tbody", "/table"),
    ]
