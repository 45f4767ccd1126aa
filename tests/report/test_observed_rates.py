"""The first picture of a measurement and the table beside it: the numbers of the diagnosis, wrong groups told apart."""

import numpy as np
import pytest

import certcal
from certcal.report.charts import Line, Points, log_odds, logit_axis
from certcal.report.document import Choice, Strong
from certcal.report.scale import Scale
from tests.report.parsed import assert_sound


def measured(n=4000, *, slope=0.5, centre=-3.0, **more):
    """Scores near 0, of which low ones are too low and high ones too high."""
    rng = np.random.default_rng(3)
    logits = rng.normal(centre, 1.5, n)
    happens = rng.random(n) < 1 / (1 + np.exp(-(centre + slope * (logits - centre))))
    return certcal.measure({"score": 1 / (1 + np.exp(-logits)), "outcome": happens.astype(int)}, bootstrap=0, **more)


@pytest.fixture(scope="module")
def found():
    return measured()


def marks(choice, kind, frame=0):
    return [mark for mark in choice.frames[frame][0].panels[0].marks if isinstance(mark, kind)]


def test_groups_that_are_wrong_have_a_shape_of_their_own_on_both_axes(found):
    (choice,) = found.report().picture
    assert isinstance(choice, Choice)
    assert (choice.names, choice.start) == (("logit", "probability"), 0)
    wrong = [each for each in found.diagnosis.groups if each.direction]
    assert 2 <= len(wrong) < 10
    for frame in (0, 1):
        right, other = marks(choice, Points, frame)
        assert (list(other.x), list(other.y)) == ([g.predicted for g in wrong], [g.observed for g in wrong])
        assert len(right.x) == 10 - len(wrong)
        assert right.look != other.look
        assert "wrong beyond sampling error" in other.label
    (curve,) = marks(choice, Line)
    assert set(curve.x) <= set(found.diagnosis.curve[0])


def test_scores_that_do_not_crowd_at_an_end_start_on_the_axis_of_probabilities():
    (choice,) = measured(centre=0.0).report().picture
    assert choice.names[choice.start] == "probability"


def test_the_table_says_of_each_tenth_what_was_predicted_and_what_happened(found):
    table = found.report().headline[0]
    assert [column.head for column in table.columns][1:4] == ["predicted", "observed", "ratio"]
    for row, texts, group in zip(table.rows, table.texts(), found.diagnosis.groups, strict=True):
        assert isinstance(row[0], Strong) == bool(group.direction)
        assert texts[-1] == {1: "too low", -1: "too high", 0: ""}[group.direction]
        low, high = (float(end.rstrip("%")) / 100 for end in texts[4].split(" – "))
        assert low <= group.lower  # rounded outward
        assert high >= group.upper
        digits = len(texts[1].rstrip("%").partition(".")[2])
        assert texts[1:3] == [f"{100 * value:.{digits}f}%" for value in (group.predicted, group.observed)]


def test_an_outcome_that_never_happens_and_scores_of_0_can_be_drawn():
    n = 400
    table = {"score": np.where(np.arange(n) < 200, 0.0, 1.0), "outcome": np.zeros(n, int)}
    made = certcal.measure(table, bootstrap=0)
    root = assert_sound(made.report().to_html())
    assert len(root.one(id="headline").all("svg", role="img")) == 2
    assert made.report().plot() is not None


def test_confidences_have_gaps_in_points_and_pieces_have_their_bins():
    z = np.linspace(0.5, 0.99, 600)
    made = certcal.measure({"confidence": z, "correct": np.arange(600) % 2}, bootstrap=0)
    table = made.report().headline[0]
    assert [column.head for column in table.columns][1:4] == ["claimed", "right", "gap, points"]
    assert table.texts()[-1][3] == f"−{100 * -made.diagnosis.groups[-1].gap:.1f}"


@pytest.mark.parametrize("values", [[5e-324], [1 - 2**-53], [5e-324, 0.5, 1 - 2**-53]])
def test_a_logit_axis_of_scores_next_to_0_and_1_has_places_for_all(values):
    axis = logit_axis(values, "x")
    assert all(0 <= axis.at(value) <= 1 for value in (0.0, *values, 1.0))
    assert 0 < axis.low < axis.high < 1


def test_a_logit_axis_names_shares_inside_it_that_do_not_touch():
    axis = logit_axis([1e-5, 0.3, 0.999], "x")
    places = [axis.at(share) for share, _ in axis.ticks]
    assert places == sorted(places)
    assert min(np.diff(places)) > 0.06
    assert axis.at(axis.low / 2) == 0
    middle = (log_odds(0.5) - log_odds(axis.low)) / (log_odds(axis.high) - log_odds(axis.low))
    assert axis.at(0.5) == pytest.approx(middle)


def test_the_axis_is_switched_with_radio_buttons_that_need_the_script(found):
    root = assert_sound(found.report().to_html())
    box = root.one("fieldset", class_="switch")
    assert "hidden" in box.attributes
    assert [("checked" in each.attributes) for each in box.all("input", type="radio")] == [True, False]
    assert root.one("h2", id="answer").text.startswith("shown Not calibrated:")
    about = root.one("dl", class_="about")
    assert about.all("dd")[-1].text == "model, version, period, intended use"
    said = found.report(require="estimate ece <= 1", about={"model": "a", "intended use": "triage"}).not_given
    assert said == ["version", "period", "limit set by"]
    order = [each.attributes.get("class") for each in root.one(class_="answer").children]
    assert order == ["long", "rest", "below", "aside"]  # read in this order; seen with the picture after the headline


def test_a_requirement_is_on_a_scale_with_its_limit_its_number_and_its_interval():
    table = {"score": [0.3] * 500, "outcome": [0, 0, 0, 1, 1] * 100}
    for limit, outcome in (("20%", "met"), ("10.5%", "not shown")):
        report = certcal.measure(table).report(require=f"ece <= {limit}")
        one = report.verdict.decisive
        assert one.outcome == outcome
        scale = Scale.of(one)
        (low, high), (end,) = scale.interval, scale.limits
        assert 0 <= low < scale.estimate < high <= 1
        assert (end > high) == (outcome == "met")
        assert one.number in scale.text
        root = assert_sound(report.to_html())
        picture = root.of_class("verdict")[0].one("svg", role="img")
        assert [each.text for each in picture.all("text")] == [f"limit {limit}", scale.text]
        text = report.to_text(width=80)
        assert f"┃ limit {limit}   ● found {scale.text}" in text
        assert "│" not in report.to_text(width=80, ascii_only=True)


def test_the_scale_of_a_bound_on_one_side_starts_where_nothing_is_known():
    made = certcal.bound({"confidence": [0.75] * 400, "correct": [1, 1, 1, 0] * 100})
    scale = Scale.of(made.verdict("calibration error <= 0.2").decisive)
    assert scale.interval[0] in (0.0, scale.interval[1])
    assert scale.text.startswith("at most ") or "to" in scale.text
