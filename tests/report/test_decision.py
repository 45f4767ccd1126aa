"""Decision curves on pages, in the terminal and in JSON."""

import json
import math

import numpy as np
import pytest

import certcal
from certcal import Predictions
from certcal.metrics import decision_curve
from certcal.report.views.measurement import decision_chart

RNG = np.random.default_rng(0)
S = RNG.beta(1, 5, 400)
Y = (RNG.random(400) < S).astype(np.uint8)


def lines(chart):
    return {mark.label: mark for mark in chart.panels[0].marks if mark.label}


def test_the_chart_has_the_curve_its_band_and_both_alternatives():
    curve = decision_curve(S, Y)
    drawn = lines(decision_chart(curve))
    assert list(drawn) == ["95% interval at each threshold", "score", "treat all", "treat none"]
    band, score, everyone = drawn["95% interval at each threshold"], drawn["score"], drawn["treat all"]
    assert score.y == pytest.approx(curve.net_benefit[: len(score.y)].tolist(), nan_ok=True)
    assert all(low <= y <= high for low, y, high in zip(band.low, score.y, band.high, strict=True))
    # What lies far below zero leaves the picture rather than running along its edge.
    assert math.isnan(everyone.y[-1])
    assert everyone.y[0] == pytest.approx(curve.treat_all[0])
    # Beyond the highest score nobody is acted upon, and nothing is drawn.
    assert score.x[-1] <= S.max() + 0.02


def test_the_terminal_shows_net_benefits_as_shares_of_the_base_rate():
    curve = decision_curve(S, Y)
    rows = decision_chart(curve).bars.rows
    place = {f"{t:.4g}": k for k, t in enumerate(curve.threshold)}
    for name, bar, mark, _ in rows:
        k = place[name]
        assert bar == pytest.approx(max(0.0, curve.net_benefit[k]) / Y.mean())
        assert mark is None if curve.treat_all[k] <= 0 else mark == pytest.approx(curve.treat_all[k] / Y.mean())


@pytest.mark.parametrize(("s", "y"), [([0.5], [1]), ([0.0, 0.0], [0, 1]), ([0.3, 0.6], [0, 0]), ([1.0, 1.0], [1, 0])])
def test_a_curve_of_next_to_nothing_is_drawn(s, y):
    chart = decision_chart(decision_curve(s, y))
    assert chart.figure() is not None
    assert "threshold" in chart.description


def test_a_binary_table_has_a_decision_curve_on_its_page_and_in_its_json_and_others_have_none(tmp_path):
    found = certcal.measure({"score": S, "outcome": Y})
    found.report().save(tmp_path / "x.html")
    assert "Decision curve" in (tmp_path / "x.html").read_text("utf-8")
    kept = json.loads(found.to_json())["decision_curve"]
    assert kept["net_benefit"] == pytest.approx(decision_curve(S, Y).net_benefit.tolist())
    for other in (
        certcal.measure({"confidence": S, "correct": Y}),
        certcal.measure({"score": S, "outcome": Y}, metrics=["ece"]),
        certcal.measure({"score": S, "outcome": Y}, memory=1),
    ):
        assert other.decision_curve is None
        assert "decision_curve" not in json.loads(other.to_json())


def test_binary_rows_have_intervals_that_contain_them_and_tests_have_none():
    w = RNG.random(400)
    found = certcal.metrics.measure(Predictions.from_scores(S, Y, w), bootstrap=10, metrics="all")
    for name in ("calibration_slope", "calibration_intercept", "observed_expected_ratio", "ici", "e50", "e90"):
        row = found[name]
        assert row.interval.lower < row.value < row.interval.upper, name
    assert found["spiegelhalter_z"].interval is None
    assert found["spiegelhalter_p"].interval is None


def test_what_is_undefined_is_called_so_on_the_page():
    found = certcal.measure({"score": [0.2, 0.4, 0.7], "outcome": [1, 1, 1]})
    assert math.isnan(found["calibration_slope"].value)
    assert found["observed_expected_ratio"].value == pytest.approx(3 / 1.3)
    assert "undefined" in str(found)
