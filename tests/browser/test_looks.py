"""Pages can be read: on a phone, on a desk, in light and dark, and their charts' labels do not run into each other."""

import pytest

from tests.browser import looking
from tests.browser.making import BRIEF, PAGES

PHONE, DESK = 375, 1200
SMALLEST_TEXT = 11
SMALLEST_TARGET = 24


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
