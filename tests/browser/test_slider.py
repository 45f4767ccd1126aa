"""The slider over the radius: each of its places shows what the JSON says at that radius, with mouse and keyboard."""

import re

import pytest

from tests.browser.conftest import embedded
from tests.browser.making import WITH_SLIDER

_SHOWN = """() => Array.from(document.querySelectorAll("[data-of='radius']"))
  .filter(each => !each.hasAttribute("hidden")).map(each => [each.tagName.toLowerCase(), each.dataset.frame])"""


def lines(tab):
    """Per radius what the JSON says of all samples."""
    return [line for line in embedded(tab)["results"] if line["group"] in (None, "tangent")]


def said(tab):
    return " ".join(tab.locator("output").inner_text().split())


def of_intervals(line):
    """The worst case inside the intervals: of a table the calibration error, of a run under a name of its own."""
    held = line.get("calibration_error_where_every_certificate_holds")
    return (held or line["calibration_error"])["certified"]


def in_percent(text):
    """A number of the JSON as sentences say it."""
    return f"{100 * float(text):.2f}%"


def expected(name, line):
    worst = in_percent(of_intervals(line)["text"])
    certified = f"{line['n_certified']:,} of {line['n']:,} samples"
    if name == "intervals":
        return f"Radius {line['radius']:g}: calibration error at most {worst} in the worst case; {certified} certified."
    return (
        rf"Radius {line['radius']:g}: calibration error \d+\.\d\d% \(estimate\) without a perturbation, at most "
        rf"{in_percent(line['claim']['text'])} in the worst case; {certified} certified\."
    )


def check_place(tab, name, place):
    """What is seen at one place of the slider is what the JSON says there."""
    found = lines(tab)
    line = found[place]
    slider = tab.get_by_role("slider", name="Radius")
    assert slider.input_value() == str(place)
    assert slider.get_attribute("aria-valuetext") == f"{line['radius']:g}"
    shown = tab.evaluate(_SHOWN)
    assert {frame for _, frame in shown} == {str(place)}
    assert {"div", "g", "span"} == {tag for tag, _ in shown}
    assert re.fullmatch(expected(name, line), said(tab))

    # The row of the table that stands out is that of the radius, with the texts of the JSON.
    cells = tab.locator("tr[aria-current='true'] > *").all_text_contents()
    assert float(cells[0]) == line["radius"]
    texts = [line["certified_accuracy"]["text"], line["population_bound"]["certified"]["text"]]
    assert of_intervals(line)["text"] in cells
    for metric in ("brier_score", "nll", "mce", "ks_error"):
        texts.append(line[metric]["certified"]["text"])
    assert set(texts) <= set(cells)

    # The diagram that is seen is the worst case of that radius: its bins add up to the JSON's value.
    figure = tab.locator(f"div[data-frame='{place}'] figure", has=tab.locator("svg.chart", has_text="Worst case"))
    assert figure.count() == 1
    assert figure.is_visible()
    table = figure.locator("table")
    bins = [row.split("\t") for row in table.locator("tbody tr").evaluate_all(_CELLS)]
    counts = [int(row[1].replace(",", "")) for row in bins]
    gaps = [abs(float(row[4].replace("−", "-"))) for row in bins]
    assert sum(counts) == line["n_certified"]
    error = sum(count * gap for count, gap in zip(counts, gaps, strict=True)) / sum(counts)
    assert error == pytest.approx(of_intervals(line)["value"], abs=6e-5)


_CELLS = "all => all.map(row => Array.from(row.cells).map(cell => cell.textContent.trim()).join('\\t'))"


@pytest.mark.parametrize("name", WITH_SLIDER)
def test_every_place_of_the_slider_shows_the_numbers_of_its_radius(visit, name):
    tab = visit(name)
    count = len(lines(tab))
    assert count > 4
    slider = tab.get_by_role("slider", name="Radius")
    slider.press("Home")
    for place in range(count):
        check_place(tab, name, place)
        slider.press("ArrowRight")
    check_place(tab, name, count - 1)


@pytest.mark.parametrize("name", WITH_SLIDER)
def test_the_slider_obeys_all_its_keys(visit, name):
    tab = visit(name)
    last = len(lines(tab)) - 1
    slider = tab.get_by_role("slider", name="Radius")
    for key, place in (("End", last), ("ArrowLeft", last - 1), ("ArrowDown", last - 2), ("ArrowUp", last - 1)):
        slider.press(key)
        check_place(tab, name, place)
    slider.press("Home")
    check_place(tab, name, 0)


@pytest.mark.parametrize("name", WITH_SLIDER)
def test_the_slider_is_dragged_and_clicked(visit, name):
    tab = visit(name)
    last = len(lines(tab)) - 1
    slider = tab.get_by_role("slider", name="Radius")
    slider.press("Home")
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    middle = box["y"] + box["height"] / 2
    tab.mouse.move(box["x"] + 8, middle)
    tab.mouse.down()
    # The thumb is 16 pixels wide, so its middle goes from 8 pixels inside one end to 8 inside the other.
    tab.mouse.move(box["x"] + 8 + (box["width"] - 16) * 2 / last, middle, steps=3)
    check_place(tab, name, 2)
    tab.mouse.move(box["x"] + box["width"] - 2, middle, steps=3)
    tab.mouse.up()
    check_place(tab, name, last)
    tab.mouse.click(box["x"] + 4, middle)
    check_place(tab, name, 0)


@pytest.mark.parametrize("name", WITH_SLIDER)
def test_the_page_starts_at_the_radius_of_its_headline(visit, name):
    tab = visit(name)
    place = int(tab.get_by_role("slider", name="Radius").input_value())
    check_place(tab, name, place)
    line = lines(tab)[place]
    claim = line["claim"] if name == "run" else line["calibration_error"]["certified"]
    assert tab.locator("#headline .value strong").inner_text() == in_percent(claim["text"])
    sentence = tab.locator("#answer bdi").inner_text()
    assert sentence.startswith(f"At radius {line['radius']:g}, the calibration error ")
    assert f" is at most {in_percent(claim['text'])} on the " in sentence


@pytest.mark.parametrize("name", WITH_SLIDER)
def test_what_the_slider_says_is_announced(visit, name):
    tab = visit(name)
    slider = tab.get_by_role("slider", name="Radius")
    slider.press("Home")
    output = tab.get_by_role("status")
    assert output.count() == 1
    assert output.get_attribute("for") == slider.get_attribute("id")
    assert output.inner_text().startswith("Radius 0: ")


@pytest.mark.parametrize("name", WITH_SLIDER)
def test_the_upright_line_in_every_curve_moves_with_the_slider(visit, name):
    tab = visit(name)
    radii = [line["radius"] for line in lines(tab)]
    slider = tab.get_by_role("slider", name="Radius")
    slider.press("Home")
    places = []
    for _ in radii:
        boxes = tab.locator("g[data-of='radius']:not([hidden]) .cursor").evaluate_all(
            "all => all.map(each => each.getBBox().x)"
        )
        assert len(boxes) >= 2
        places.append(boxes)
        slider.press("ArrowRight")
    for figure in zip(*places, strict=True):
        unit = (figure[-1] - figure[0]) / (radii[-1] - radii[0])
        assert unit > 50
        for place, radius in zip(figure, radii, strict=True):
            assert place == pytest.approx(figure[0] + unit * (radius - radii[0]), abs=0.2)


def test_the_slider_of_a_recalibration_shows_the_worst_cases_before_and_after_at_its_radius(visit):
    tab = visit("recalibration")
    found = embedded(tab)
    chosen = next(line for line in found["lines"] if line["tradeoff"] == found["tradeoff"])
    slider = tab.get_by_role("slider", name="Radius")
    assert int(slider.input_value()) == len(found["radii"]) - 1
    slider.press("Home")
    for place, radius in enumerate(found["radii"]):
        before, after = (
            in_percent(line["at"][place]["summary"]["calibration_error"]["certified"]["text"])
            for line in (found["lines"][0], chosen)
        )
        error = "calibration error where every certificate holds"
        words = f"Within radius {radius} the {error} is at most {before} before and at most {after}"
        assert tab.get_by_text(words).is_visible()
        for word in ("before the map", "after isotonic, λ = 0.5"):
            name = f"Worst case {word}, radius {radius}"
            assert tab.locator("figure svg.chart:visible", has_text=name).count() == 1
        slider.press("ArrowRight")
