"""Pages can be read: on a phone, on a desk, in light and dark, and their charts' labels do not run into each other."""

import pytest

from tests.browser import looking
from tests.browser.making import BRIEF, COMMANDS, GALLERIES, PAGES

PHONE, DESK = 375, 1200
SMALLEST_TEXT = 11
SMALLEST_TARGET = 24
# Pages with an answer and a picture of it, of every verb that the first screen is for.
PICTURED = (
    *("table", "intervals", "one-interval-table", "run", "one-run", "comparison", "bounds", "attack", "families"),
    *("recalibration", "recalibrated-predictions", "verification", "sizes-of-a-box", "decisions", "search"),
)


@pytest.mark.parametrize("name", PAGES)
def test_a_phone_shows_a_page_without_sideways_scrolling_and_in_readable_type(visit, name):
    tab = visit(name, width=PHONE)
    found = looking.texts(tab)
    assert looking.overlapping(found) == []
    assert tab.evaluate(_CUT) == []
    looking.open_all(tab)
    assert tab.evaluate("document.scrollingElement.scrollWidth") <= PHONE
    found = looking.texts(tab)
    assert len(found) >= 40
    assert [each["text"] for each in found if each["size"] < SMALLEST_TEXT] == []
    small = [each for each in looking.controls(tab) if min(each["width"], each["height"]) < SMALLEST_TARGET]
    assert small == []
    # What is wider than the window is inside a region that scrolls by itself; nothing else sticks out.
    assert tab.evaluate(_STICKS_OUT) == []


def test_on_a_phone_numbers_of_a_cell_stand_below_each_other_before_a_table_scrolls(visit):
    cells = "Array.from(document.querySelectorAll('td.number'), each => each.getClientRects()[0].height)"
    low, high = (set(visit("reproduction", width=width).evaluate(cells)) for width in (DESK, PHONE))
    assert min(high) > 1.3 * max(low) > 0  # in smaller type
    table = "Array.from(document.querySelectorAll('.scroll:has(table)'), each => each.scrollWidth - each.clientWidth)"
    assert max(visit("reproduction", width=PHONE).evaluate(table)) <= 0


# What a reader of a phone looks up; matrices, and tables of many columns in the appendix, may scroll.
LOOKED_UP = (
    *("Bins:", "Numbers:", "Terms of", "Worst case", "Calibration error", "Bounds per group", "Brier scores of"),
    *("Predicted and observed", "The claims", "Claims", "By ", "Input files", "Estimates on", "Quartiles", "Widths"),
)
_TABLES = """() => Array.from(document.querySelectorAll(".scroll:has(table)"))
  .filter(each => each.checkVisibility())
  .map(each => [each.getAttribute("aria-label"), each.scrollWidth - each.clientWidth])"""


@pytest.mark.parametrize("name", [each for each in PAGES if each not in GALLERIES and not each.startswith("hostile")])
def test_on_a_phone_tables_that_are_looked_up_fit_into_their_boxes_and_no_page_scrolls_sideways(visit, name):
    tab = visit(name, width=390)
    looking.open_all(tab)
    known = [(label, beyond) for label, beyond in tab.evaluate(_TABLES) if label.startswith(LOOKED_UP)]
    assert [each for each in known if each[1] > 0] == []
    assert known or name not in COMMANDS
    tab.set_viewport_size({"width": 360, "height": 780})
    assert tab.evaluate("document.scrollingElement.scrollWidth") <= 360


def test_on_a_phone_a_column_of_sentences_stands_below_its_row_and_nothing_is_left_out(visit):
    cells = """() => Array.from(document.querySelector("table.told").tBodies[0].rows[0].cells,
      each => ({text: each.textContent, ...each.getBoundingClientRect().toJSON()}))"""
    tab = visit("intervals", width=390)
    looking.open_all(tab)
    *first, last = tab.evaluate(cells)
    assert len({round(each["top"]) for each in first}) == 1
    assert last["top"] >= max(each["bottom"] for each in first) - 1
    assert last["width"] > 300
    wide = visit("intervals", width=DESK)
    looking.open_all(wide)
    assert [each["text"] for each in wide.evaluate(cells)] == [each["text"] for each in (*first, last)]


@pytest.mark.parametrize("name", PICTURED)
def test_the_picture_stands_beside_the_answer_on_a_desk_and_below_its_first_sentence_on_a_phone(visit, name):
    places = """() => Object.fromEntries([["told", "#answer"], ["seen", ".picture"], ["rest", ".rest"]]
      .map(([key, what]) => [key, document.querySelector(what).getBoundingClientRect().toJSON()]))"""
    tab = visit(name, width=1280)
    drawn = tab.locator(".answer > .aside > .picture svg.chart:visible")
    assert drawn.count() == 1
    desk = tab.evaluate(places)
    assert desk["seen"]["left"] >= desk["told"]["right"]
    assert desk["seen"]["top"] == pytest.approx(desk["told"]["top"], abs=2)
    assert drawn.bounding_box()["y"] + drawn.bounding_box()["height"] < 800
    phone = visit(name, width=390).evaluate(places)
    assert phone["told"]["bottom"] <= phone["seen"]["top"] < phone["seen"]["bottom"] <= phone["rest"]["top"]


_STICKS_OUT = """() => Array.from(document.querySelectorAll("main *, header *, nav *, footer *"))
  .filter(each => each.checkVisibility() && !each.closest(".scroll, svg") &&
                  each.getBoundingClientRect().right > innerWidth + 0.5)
  .map(each => each.outerHTML.slice(0, 80))"""


# Labels of charts that leave their picture; that of the last tick may reach into the margin beside it.
_CUT = """() => Array.from(document.querySelectorAll("svg.chart text"))
  .filter(each => each.checkVisibility())
  .filter(each => {
    const own = each.getBoundingClientRect(), whole = each.closest("svg").getBoundingClientRect();
    return own.left < whole.left - 1 || own.right > whole.right + 12 ||
           own.top < whole.top - 2 || own.bottom > whole.bottom + 2;
  }).map(each => each.closest("svg").getAttribute("aria-labelledby") + ": " + each.textContent)"""


@pytest.mark.parametrize("name", PAGES)
def test_on_a_desk_labels_stay_apart_and_light_and_dark_have_enough_contrast(visit, name):
    tab = visit(name, width=DESK)
    found = looking.texts(tab)
    assert name in BRIEF or [each for each in found if each["picture"]]
    assert looking.overlapping(found) == []
    assert tab.evaluate(_CUT) == []
    looking.open_all(tab)
    papers = set()
    for scheme in ("light", "dark"):
        tab.emulate_media(color_scheme=scheme)
        papers.add(looking.background(tab))
        found = looking.texts(tab)
        weak = [
            (each["text"], scheme)
            for each in found
            if looking.contrast(each["colour"], each["behind"], each["opacity"]) < 4.5
        ]
        assert weak == []
        paper = found[0]["behind"]
        faint = {(kind, scheme) for kind, colour in looking.marks(tab) if looking.contrast(colour, paper) < 3}
        assert faint == set()
    assert len(papers) == 2


def test_labels_on_top_of_each_other_would_be_noticed(visit):
    tab = visit("table")
    tab.evaluate("""() => {
      const shown = document.querySelector("div:not([hidden]) > figure > svg.chart");
      const [one, two] = shown.querySelectorAll("text[class='middle']");
      two.setAttribute("x", one.getAttribute("x"));
      two.setAttribute("y", one.getAttribute("y"));
    }""")
    assert len(looking.overlapping(looking.texts(tab))) == 1
