"""Pages for everybody: with a keyboard, with a screen reader, without scripts, on paper."""

import io
import unicodedata
from itertools import pairwise

import pytest
from axe_playwright_python.sync_playwright import Axe
from pypdf import PdfReader

from tests.browser import looking
from tests.browser.conftest import embedded
from tests.browser.making import BRIEF, RICH, WITH_SLIDER

# All rules of axe-core but its slowest, of contrast, which test_looks.py asks for in more: of every text of every page,
# in light and dark. What is told are violations, without a list of all that is right.
RULES = {"rules": {"color-contrast": {"enabled": False}}, "resultTypes": ["violations"]}


@pytest.mark.parametrize("name", [*RICH, *BRIEF])
def test_axe_finds_nothing_to_complain_about(visit, name):
    # The page's policy would refuse the checker's own script.
    tab = visit(name, bypass_csp=True)
    looking.open_all(tab)
    found = Axe().run(tab, options=RULES).response
    broken = {(each["id"], node["html"][:120]) for each in found["violations"] for node in each["nodes"]}
    assert broken == set()
    assert found["testEngine"]["name"] == "axe-core"


def test_the_checker_sees_what_is_wrong(visit):
    tab = visit("table", bypass_csp=True)
    tab.evaluate("document.documentElement.removeAttribute('lang')")
    assert [each["id"] for each in Axe().run(tab, options=RULES).response["violations"]] == ["html-has-lang"]


@pytest.mark.parametrize("name", ["groups", "run"])
def test_a_keyboard_reaches_everything_and_sees_where_it_is(visit, name):
    tab = visit(name, motion="reduce")
    count = len(looking.controls(tab))
    seen = []
    for _ in range(count):
        tab.keyboard.press("Tab")
        seen.append(tab.evaluate(_FOCUSED))
    assert seen[0]["text"] == "Skip to the content"
    assert [each["text"] for each in seen if each["outline"] == "none" or not each["inside"]] == []
    assert len({each["number"] for each in seen}) == count


_FOCUSED = """() => {
  const each = document.activeElement, box = each.getBoundingClientRect();
  return {number: Array.from(document.querySelectorAll("*")).indexOf(each), text: each.textContent.slice(0, 60),
          outline: getComputedStyle(each).outlineStyle, inside: box.bottom > 0 && box.top < innerHeight};
}"""


def test_the_first_link_skips_to_the_content(visit):
    tab = visit("run")
    tab.keyboard.press("Tab")
    assert tab.get_by_text("Skip to the content").bounding_box()["y"] >= 0
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.id") == "content"


def test_parts_open_with_a_key_and_wide_tables_scroll_with_one(visit):
    tab = visit("run", width=375)
    part = tab.locator("#appendix > details", has_text="Certified values")
    region = part.get_by_role("region")
    assert not region.is_visible()
    part.locator("summary").press("Enter")
    assert region.is_visible()
    wide = tab.locator("[role='region'][aria-label^='The samples that add most']")
    wide.press("ArrowRight")
    tab.wait_for_function("each => each.scrollLeft > 0", arg=wide.element_handle())


@pytest.mark.parametrize("name", RICH)
def test_figures_have_a_name_and_a_text_that_stands_for_them_and_paper_cuts_no_table(visit, name):
    # The width of A4 between the margins, at 96 pixels per inch.
    tab = visit(name, width=672)
    found = tab.locator("svg[role='img']").evaluate_all(
        "all => all.map(each => each.getAttribute('aria-labelledby').split(' ')"
        ".map(id => document.getElementById(id).textContent))"
    )
    assert found
    for title, description in found:
        assert len(title) > 3
        assert len(description) > 10
    levels = tab.locator("h1, h2, h3, h4").evaluate_all("all => all.map(each => Number(each.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))

    tab.emulate_media(media="print")
    looking.open_all(tab)
    wide = tab.locator("table").evaluate_all(
        "all => all.filter(each => each.checkVisibility())"
        ".map(each => [each.textContent.slice(0, 80), each.offsetWidth - each.parentElement.clientWidth])"
    )
    assert wide
    assert [each for each in wide if each[1] > 1] == []


# --------------------------------------------------------------------------------------------------- without a script


@pytest.mark.parametrize("name", RICH)
def test_without_scripts_a_page_is_complete_and_offers_nothing_that_does_not_work(visit, name):
    tab = visit(name, java_script_enabled=False)
    assert tab.locator("#answer, #headline .sentence").first.is_visible()
    assert tab.locator("input, button, a[download]").locator("visible=true").count() == 0
    assert tab.locator("noscript p").is_visible()
    assert tab.locator("svg.chart:visible").count() > 0


@pytest.mark.parametrize("name", WITH_SLIDER)
def test_without_scripts_the_values_at_all_radii_are_in_a_table(visit, name):
    tab = visit(name, java_script_enabled=False)
    part = tab.locator("#appendix > details", has_text="Certified values")
    part.locator("summary").press("Enter")
    table = part.locator("table")
    assert table.is_visible()
    rows = [cells.split("\t") for cells in table.locator("tbody tr").all_inner_texts()]
    found = embedded(tab)["results"]
    assert len(rows) == len(found)
    for cells, line in zip(rows, found, strict=True):
        assert float(cells[0]) == line["radius"]
        key = "calibration_error" if name == "intervals" else "calibration_error_where_every_certificate_holds"
        assert line[key]["certified"]["text"] in cells
        assert line["certified_accuracy"]["text"] in cells


# ------------------------------------------------------------------------------------------------------------ on paper


def words(text):
    """Letters alone: lines are broken elsewhere on paper, and some letters are set as one."""
    return "".join(unicodedata.normalize("NFKC", text).split()).lower()


@pytest.mark.parametrize(
    ("name", "scripts"), [("groups", True), ("intervals", False), ("run", True), ("comparison", True)]
)
def test_paper_has_every_section_opened_and_no_controls(visit, name, scripts):
    tab = visit(name, scheme="dark", **({} if scripts else {"java_script_enabled": False}))
    headings = tab.locator("h2").all_inner_texts()
    hidden = tab.locator("details:not(.small details) > div p:not(.narrow)").all_text_contents()
    paper = tab.pdf(format="A4", print_background=True)
    assert len(paper) < 1_000_000
    reader = PdfReader(io.BytesIO(paper))
    printed = words("".join(page.extract_text() for page in reader.pages))
    assert 2 <= len(reader.pages) <= 25
    for text in (*headings, *hidden):
        assert words(text) in printed
    for control in ("Skip to the content", "Copy", "Download the numbers"):
        assert words(control) not in printed
    # Scripts opened what was closed for the time of printing only.
    assert tab.locator("details[open]").count() == 0

    tab.emulate_media(media="print")
    assert looking.background(tab) in ("rgb(255, 255, 255)", "rgba(0, 0, 0, 0)")
    assert tab.locator("nav, .slider, button, a.button").locator("visible=true").count() == 0
