"""Every page opens without a network, says what its JSON says, and hands that out."""

import json
from pathlib import Path

import pytest

import certcal
from certcal.report.provenance import Provenance
from certcal.smoothing import open_run
from tests.browser.conftest import embedded
from tests.browser.making import BRIEF, COMMANDS, FILE_NAME, GALLERIES, HOSTILE, HOSTILE_COMMANDS, PAGES, RESULTS


@pytest.mark.parametrize("name", PAGES)
def test_a_page_opens_offline_without_an_error_its_links_work_and_its_json_is_that_of_the_command(visit, pages, name):
    tab = visit(name)
    headings = tab.locator("section > h2").all_inner_texts()
    assert headings[-1] == "Reproducibility"
    assert len(headings) > 1
    assert all(headings)
    links = tab.locator("nav a")
    assert links.all_inner_texts() == headings
    for address in links.evaluate_all("all => all.map(each => each.getAttribute('href'))"):
        assert tab.locator(address).count() == 1
    assert tab.locator("h1").is_visible()
    assert tab.locator("#headline").is_visible()

    with tab.expect_download() as coming:
        tab.get_by_text("Download the numbers (JSON)").click()
    assert coming.value.suggested_filename == "certcal.json"
    got = json.loads(Path(coming.value.path()).read_text())
    assert got == embedded(tab)
    assert len(got) > 1
    if name in HOSTILE_COMMANDS:  # names are shown as they are
        assert tab.locator("h1").text_content() == tab.title() == HOSTILE
        read = got["provenance"]["inputs"][0]["name"]
        assert Path(read).name.startswith(FILE_NAME)
        assert tab.locator("#reproducibility table td, #reproducibility table th").filter(has_text=read).count() == 1
    if name in (*COMMANDS, *HOSTILE_COMMANDS):
        assert got["provenance"]["command"][:2] == ["certcal", "report"]
        page = got.pop("page", {})  # what the page was told to say, which is no number
        assert (page.get("title") == HOSTILE) == (name in HOSTILE_COMMANDS)
        assert page.get("about", {}) == ({"model": "a small one"} if name == "table" else {})
        assert got == json.loads(pages[name].with_suffix(".json").read_text())


def test_the_command_is_copied(visit):
    tab = visit("run")
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab.get_by_role("button", name="Copy").last.click()
    tab.get_by_role("button", name="Copied").wait_for()
    command = tab.locator("#command").inner_text()
    assert tab.evaluate("navigator.clipboard.readText()") == command
    assert command.startswith("certcal report ")
    tab.context.clear_permissions()


@pytest.mark.parametrize(("allowed", "said"), [(True, "Copied"), (False, "Selected")])
def test_the_command_is_selected_without_a_clipboard_and_copied_if_that_is_allowed(visit, allowed, said):
    tab = visit("run")
    tab.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    if not allowed:
        tab.evaluate("document.execCommand = () => false")
    tab.get_by_role("button", name="Copy").last.click()
    tab.get_by_role("button", name=said).wait_for()
    assert tab.evaluate("getSelection().toString()") == tab.locator("#command").inner_text()


def test_a_page_works_in_the_frame_of_a_notebook(visit, pages, tmp_path):
    frame = tmp_path / "notebook.html"
    found = certcal.certify(open_run(pages["run"].with_name("small-noise")), radii=[0, 0.125])
    report = found.report(provenance=Provenance(("certcal", "report", "a run")))
    frame.write_text(f"<!DOCTYPE html><title>notebook</title>{report._repr_html_()}")
    tab = visit(frame)
    assert tab.frame_locator("iframe").locator("#answer").is_visible()
    with tab.context.expect_page() as opened:
        tab.frame_locator("iframe").get_by_text("Open the full page").click()
    inside = tab = opened.value
    slider = inside.get_by_role("slider", name="Radius")
    slider.press("Home")
    assert slider.get_attribute("aria-valuetext") == "0"
    inside.get_by_role("button", name="Copy").last.click()
    inside.get_by_role("button", name="Copied").wait_for()
    with tab.expect_download() as coming:
        inside.get_by_text("Download the numbers (JSON)").click()
    got = json.loads(Path(coming.value.path()).read_text())
    assert got == json.loads(found.to_json(provenance=report.provenance))


@pytest.mark.parametrize("name", [*HOSTILE_COMMANDS, *RESULTS, *BRIEF, *GALLERIES])
def test_nothing_that_a_name_says_is_ever_run(visit, name):
    # Without the page's policy only the escaping is left, and it must be enough.
    tab = visit(name, bypass_csp=True)
    assert tab.evaluate("window.hacked === undefined")
    assert tab.locator("script").count() == 2
    assert tab.locator("img[src='x'], [onload], [onerror], a[href^='javascript']").count() == 0


def test_a_card_of_a_notebook_shows_the_answer_the_picture_and_the_numbers_without_scrolling(visit, tmp_path):
    table = certcal.data.example()
    by = {"region": ["north", "south", "east", "west"] * 500}
    frame = tmp_path / "notebook.html"
    frame.write_text(certcal.measure(table.correct, table.confidence, by=by)._repr_html_())
    tab = visit(frame)
    tab.set_viewport_size({"width": 960, "height": 700})
    inside = tab.frames[1]
    assert inside.evaluate("document.scrollingElement.scrollHeight - innerHeight") <= 0
    tab.set_viewport_size({"width": 640, "height": 700})
    answer, picture = (inside.locator(each).first.bounding_box() for each in (".answer h2", ".picture svg"))
    assert answer["x"] + answer["width"] <= picture["x"]
    assert picture["y"] + picture["height"] < 300
