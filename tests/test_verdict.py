"""Requirements: how they are written, which claim decides, and that a verdict never contradicts its number."""

from __future__ import annotations

import math
import re
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import certcal
from certcal import InputError
from certcal.claims import Bound, Certificate, Estimate, Interval, Ledger
from certcal.verdict import Candidate, judge
from certcal.worst_case import CertifiedValue, WorstCase

RNG = np.random.default_rng(5)
Z = RNG.uniform(0.3, 1, 900)
TABLE = {"confidence": Z, "correct": (RNG.random(900) < Z**1.3).astype(int), "site": RNG.choice(["east", "west"], 900)}
VALUES = st.floats(-2, 2) | st.floats(0, 1e-3)
RELATIONS = {"<=": lambda a, b: a <= b, "<": lambda a, b: a < b, ">=": lambda a, b: a >= b, ">": lambda a, b: a > b}


def bound(value, side="upper", name="error"):
    return Bound(name, value, side, 0.05, 100, ())


def certificate(value, side="upper"):
    return Certificate("error", value, side, 0.5, Ledger(0.001).split(prediction=1), 100, ())


def worst(value, side="upper"):
    extreme = "highest" if side == "upper" else "lowest"
    return WorstCase("error", value, 100, None, None, extreme=extreme, lower_end=value)


def estimate(value, side="upper", name="error", **settings):
    ends = (-9.0, value) if side == "upper" else (value, 9.0)
    return Estimate(name, 0.0, 100, settings, Interval(*ends, 0.9, "percentile"))


@given(
    st.sampled_from((bound, certificate, worst, estimate)),
    VALUES,
    VALUES | st.sampled_from((0.05, 0.1, 0.3)),
    st.sampled_from(tuple(RELATIONS)),
)
def test_a_verdict_compares_what_it_prints_and_the_margin_adds_up(make, value, limit, relation):
    side = "upper" if relation[0] == "<" else "lower"
    verdict = judge([Candidate(make(value, side))], f"error {relation} {limit!r}")
    (one,) = verdict.judgements
    assert verdict.passed == bool(verdict) == one.passed == RELATIONS[relation](value, limit)
    assert RELATIONS[relation](float(one.text), limit) == one.passed
    printed = Decimal(one.text)
    assert float(printed) >= value if side == "upper" else float(printed) <= value
    assert one.sentence.startswith("PASS " if one.passed else "FAIL ")
    words = one.sentence.replace("−", "-")
    margin = re.search(r", ([\d.]+) (above|below) the required", words)
    if margin is None:
        assert "exactly the required" in words
        assert printed == Decimal(repr(limit))
    else:
        sign = 1 if margin[2] == "above" else -1
        assert printed - Decimal(repr(limit)) == sign * Decimal(margin[1])


@pytest.mark.parametrize(
    ("claim", "text", "sentence"),
    [
        (bound(0.05), "error <= 0.05", "PASS error: {bound} 0.05, exactly the required 0.05."),
        (bound(0.049905), "error <= 0.04995", "PASS error: {bound} 0.04991, 0.00004 below the required 0.04995."),
        (
            bound(0.25),
            "Error < .25",
            "FAIL Error: {bound} 0.2500, exactly the required 0.25, which must not be reached.",
        ),
        (
            bound(0.5, "lower"),
            "error ≥ 0.6",
            "FAIL error: the lower bound (delta 0.05) is 0.5000, 0.1000 below the required 0.6.",
        ),
        (
            certificate(0.2),
            "error <= 5e-1",
            "PASS error: the certified upper bound at radius 0.5 is 0.2001, 0.2999 below the required 0.5.",
        ),
        (worst(math.inf), "error <= 2", "FAIL error: the worst case inside the intervals is inf, against 2."),
        (
            estimate(-0.03125),
            "error <= 0",
            "PASS error: {interval} −0.0312, 0.0312 below the required 0 (estimate 0.0000).",
        ),
        (
            Estimate("ece", 0.0613, 9),
            "estimate ECE<=0.05",
            "FAIL ECE: the estimate is 0.0613, 0.0113 above the required 0.05.",
        ),
        (
            Estimate("ece", math.nan, 9),
            "estimate ece <= 1",
            "FAIL ece: the estimate is undefined, so it does not meet 1.",
        ),
        (
            estimate(math.nan),
            "error <= 1",
            "FAIL error: {interval} undefined, so it does not meet 1 (estimate 0.0000).",
        ),
        (
            CertifiedValue("skill", math.nan, 9, "undefined", ""),
            "skill >= 0",
            "FAIL skill: the certified lower value is undefined, so it does not meet 0.",
        ),
        (
            CertifiedValue("certified accuracy", math.nextafter(0.7, 0), 10, "0.7000", ""),
            "certified_accuracy >= 0.7",
            "PASS certified_accuracy: the certified lower value is 0.7000, exactly the required 0.7.",
        ),
    ],
)
def test_a_line_says_which_number_decided_and_by_how_much(claim, text, sentence):
    starts = {"bound": "the upper bound (delta 0.05) is", "interval": "the upper end of the 90% interval is"}
    (line,) = judge([Candidate(claim)], text).lines
    assert line == sentence.format(**starts)


def test_a_bound_decides_before_an_interval_and_an_estimate_only_when_told():
    both = [
        Candidate(estimate(0.01, name="ece", bins=15)),
        Candidate(Bound("binned calibration error of the population", 0.07, "upper", 0.1, 9, (), {}, {"bins": 15})),
        Candidate(bound(0.06, name="calibration error")),
    ]
    assert judge(both, "ece <= 0.065").judgements[0].judged_on == "bound"
    assert judge(both, "ece <= 0.065").judgements[0].value == 0.07  # of the bins, not of the true error
    assert judge(both, "calibration error <= 0.065").passed
    assert judge(both[::2], "ece <= 0.065").judgements[0].value == 0.06  # the binned error is below the true one
    assert judge(both[:1], "ece <= 0.065").judgements[0].judged_on == "interval"
    assert judge(both, "estimate ece <= 0.065").judgements[0].judged_on == "estimate"
    with pytest.raises(InputError, match="an estimate without an interval or a bound; ask for intervals or bounds, or"):
        judge([Candidate(Estimate("ece", 0.1, 9))], "ece <= 0.2")
    with pytest.raises(InputError, match="nothing bounds calibration error from below here; ask for <="):
        judge(both, "calibration error >= 0")
    with pytest.raises(InputError, match="no estimate here; leave 'estimate' out"):
        judge(both[2:], "estimate calibration error <= 0.1")


def test_settings_choose_one_of_several_and_the_line_says_which():
    several = [Candidate(estimate(0.01 * bins, name="ece", bins=bins, closed="left")) for bins in (15, 5, 10)]
    assert judge(several, "ece <= 1").judgements[0].settings["bins"] == 15  # the first is the headline's
    assert judge(several, "ece(bins=10) <= 1").lines[0].startswith("PASS ece (bins=10): ")
    assert judge(several, "ece(bins=5.0, closed=LEFT) <= 1").judgements[0].value == 0.05
    with pytest.raises(InputError, match="ece has no bins=7; there is bins=15 or bins=5 or bins=10"):
        judge(several, "ece(bins=7) <= 1")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ece", "'ece' is no requirement; write NAME, a relation and a number, as in 'ece <= 0.05'"),
        ("", "'' is no requirement"),
        (3, "3 is no requirement"),
        ("ece == 1", "has '==', and the relations are <=, <, >=, >"),
        ("ece <= one", "ends with 'one', no finite number"),
        ("ece <= nan", "ends with 'nan', no finite number"),
        ("<= 1", "names no number"),
        ("ece(bins) <= 1", "has 'bins' between its brackets; write SETTING=VALUE"),
        ("every ece <= 1", "asks every group, and there are none"),
        ("eec <= 1", "there is no 'eec' here; did you mean 'ece'"),
        ("price <= 1", "there is no 'price' here; there is ece"),
    ],
)
def test_what_is_no_requirement_is_refused_with_what_to_write(text, reason):
    with pytest.raises(InputError, match=re.escape(reason)):
        judge([Candidate(estimate(0.1, name="ece"))], [text])


def test_every_asks_each_group_and_fails_when_one_does():
    found = certcal.measure(TABLE, by="site", bootstrap=30)
    ends = {group.name: next(row for row in group.rows if row.name == "ece").interval.upper for group in found.groups}
    between = sum(ends.values()) / 2
    verdict = found.verdict(f"every ECE <= {between!r}")
    assert {each.group: each.passed for each in verdict.judgements} == {
        name: end < between for name, end in ends.items()
    }
    assert not verdict
    assert [line[:4] for line in verdict.lines] == ["FAIL", "PASS"]
    assert verdict.summary == "FAIL: 1 of 2 are met."
    assert found.verdict(f"every ece <= {max(ends.values())!r}")
    for chosen in ("ece(group=west)", "ece(site=west)"):
        (one,) = found.verdict(f"{chosen} <= 1").judgements
        assert (one.group, one.value) == ("west", ends["west"])
        assert one.sentence.startswith("PASS ece for west: the upper end")
    assert found.verdict("ece <= 1").judgements[0].group is None


def test_several_requirements_say_what_chance_can_do():
    found = certcal.measure(TABLE, bootstrap=30, bounds=True, delta=0.01)
    assert found.verdict("ece <= 1").note == ""
    assert found.verdict("ece <= 1", "estimate accuracy >= 0").note == ""
    assert found.verdict("ece <= 1", "calibration error <= 1").note == (
        "If one that is judged on a bound or an interval is not met in truth, all pass with probability at most 0.01. "
        "All numbers hold together with probability at least 0.98."
    )
    nominal = found.verdict("ece <= 1", "accuracy >= 0", "auroc >= 0").note
    assert "at most 0.05 (as far as intervals reach their level)." in nominal
    assert nominal.endswith(" All numbers hold together with probability at least 0.89.")
    # A worst case of intervals that may fail has no failure probability: nothing is said of it.
    table = {"lower": [0.5, 0.4, 0.3], "upper": [0.9, 0.8, 0.7], "correct": [1, 0, 1], "alpha": [0.001] * 3}
    several = certcal.certify(table).verdict("population ece <= 1", "population ece <= 2", "brier score <= 1")
    assert several.note.endswith(
        "Those numbers hold together with probability at least 0.9. A worst case or a certified value holds where the "
        "intervals of its samples do."
    )


def test_all_pass_although_one_is_not_met_no_more_often_than_one_bound_fails():
    rng, passed, times = np.random.default_rng(0), 0, 300
    for _ in range(times):
        # Two truths; the second violates its requirement by next to nothing, so it passes when its bound fails.
        means = [rng.binomial(200, p) / 200 for p in (0.2, 0.30001)]
        reach = math.sqrt(math.log(1 / 0.1) / 400)  # Hoeffding at delta 0.1
        claims = [
            Candidate(Bound(name, mean + reach, "upper", 0.1, 200, ())) for name, mean in zip("ab", means, strict=True)
        ]
        passed += judge(claims, ("a <= 0.4", "b <= 0.3")).passed
    assert passed / times <= 0.1


def test_a_result_says_its_verdict_in_json_on_its_page_and_in_its_text(tmp_path):
    found = certcal.bound(TABLE)
    asked = ("ece <= 0.2", "calibration error <= 0.01")
    verdict = found.verdict(*asked)
    assert [each.passed for each in verdict.judgements] == [True, False]
    for name in ("a.json", "a.html", "a.txt"):
        written = found.save(tmp_path / name, require=asked).read_text()
        assert all(each.text in written for each in verdict.judgements)
    assert '"verdict"' not in found.to_json()
    assert '"verdict"' in (tmp_path / "a.json").read_text()
    page = (tmp_path / "a.html").read_text()
    assert page.index('class="verdict fail"') < page.index('id="content"')
    assert repr(verdict) == str(verdict)
    assert str(found.report(require=asked)).index(verdict.lines[0][:20]) < str(found.report(require=asked)).index(
        "Bounds"
    )


def test_an_attack_passes_only_as_an_estimate():
    from tests.report.attacked import attack_result

    found = attack_result()
    with pytest.raises(
        InputError, match="what these attacks reach, and others may reach more; judge the estimate with"
    ):
        found.verdict("ece <= 1")
    assert found.verdict("estimate ece <= 1", "every estimate ece <= 1", "estimate clean ece <= 1")
    (strongest,) = found.verdict("estimate ece <= 1").judgements
    assert strongest.value == found.strongest["ece"].value
    assert len(found.verdict("every estimate ece <= 1").judgements) == len(found.rows)


def test_a_certification_is_judged_at_its_headline_unless_told():
    table = {"lower": Z * 0.9, "upper": np.minimum(Z + 0.05, 1), "correct": TABLE["correct"], "site": TABLE["site"]}
    found = certcal.certify(table, by="site")
    assert found.verdict("ECE <= 1").judgements[0].value == found.at().headline.value
    assert found.verdict("certified accuracy >= 0.1", "brier score <= 0.9", "population bound <= 1", "every ece <= 1")
    assert {each.group for each in found.verdict("every ece <= 1").judgements} == {"east", "west"}


def test_a_number_below_the_one_that_was_judged_says_why_it_differs() -> None:
    found = certcal.bound(certcal.data.example())
    for require, why in {
        "binned <= 0.1": "This counts what averages out inside the bins, too; the requirement is about the bins.",
        "ks <= 0.1": "The requirement is about another number.",
    }.items():
        text = " ".join(found.report(require=require).to_text().split())
        assert f"Calibration error is at most 0.1119 in the population. {why}" in text
