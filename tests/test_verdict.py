"""Requirements: how they are written, which claim decides, what that shows, and that a verdict fits its number."""

import math
import re
from dataclasses import replace
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
    return Estimate(name, 0.0, 100, settings, Interval(*ends, 0.9, "norm"))


@given(
    st.sampled_from((bound, certificate, worst, estimate)),
    VALUES,
    VALUES | st.sampled_from((0.05, 0.1, 0.3)),
    st.sampled_from(tuple(RELATIONS)),
)
def test_a_verdict_fits_what_it_prints(make, value, limit, relation):
    side = "upper" if relation[0] == "<" else "lower"
    verdict = judge([Candidate(make(value, side))], f"error {relation} {limit!r}")
    (one,) = verdict.judgements
    assert verdict.passed == bool(verdict) == one.passed == RELATIONS[relation](value, limit)
    assert one.sentence.startswith(f"{one.outcome}: ")
    written = float(one.text)
    assert RELATIONS[relation](written, limit) == one.passed
    printed = one.number.replace("−", "-")  # what is above 1 is no share
    assert printed.endswith("%") == (abs(one.value) <= 1)
    assert Decimal(printed.removesuffix("%")).scaleb(-2 if printed.endswith("%") else 0) == Decimal(one.text)
    assert written >= value if side == "upper" else written <= value
    assert one.passed or one.found.startswith("at ") == (make is not worst)
    # Nothing but an interval knows the other side here: it is ±9, which no limit reaches.
    assert one.outcome == ("met" if one.passed else "not met" if make is worst else "not shown")


@pytest.mark.parametrize(
    ("claim", "text", "sentence"),
    [
        (bound(0.05), "error <= 0.05", "met: error is at most 5% (limit 5%), 95% sure (proven)."),
        (bound(0.049905), "error <= 4.995 %", "met: error is at most 4.991% (limit 4.995%), 95% sure (proven)."),
        (bound(0.25), "Error < .25", "not shown: error is at most 25.00% (must be below 25%), 95% sure (proven)."),
        (bound(0.5, "lower"), "error ≥ 0.6", "not shown: error is at least 50.00% (limit 60%), 95% sure (proven)."),
        (bound(0.5, name="slope"), "slope <= 0.6", "met: slope is at most 0.5000 (limit 0.6), 95% sure (proven)."),
        (bound(0.5, name="slope"), "slope <= 60%", "met: slope is at most 50.00% (limit 60%), 95% sure (proven)."),
        (
            certificate(0.2),
            "error <= 5e-1",
            "met: error (radius=0.5) is at most 20.01% (limit 50%), 99.9% sure (proven).",
        ),
        (
            worst(math.inf),
            "error <= 2",
            "not met: worst-case error is inf (limit 2), inside the intervals.",
        ),
        (worst(0.3), "error <= 0.2", "not met: worst-case error is 30.00% (limit 20%), inside the intervals."),
        (estimate(-0.03125), "error <= 0", "met: error is at most −3.12% (limit 0%), 90% sure (asymptotic)."),
        (
            Estimate("ece", 0.0613, 9),
            "estimate ECE<=0.05",
            "not met: the estimate of calibration error is 6.13% (limit 5%), on these samples only.",
        ),
        (
            Estimate("ece", math.nan, 9),
            "estimate ece <= 1",
            "not shown: the estimate of calibration error is undefined (limit 1), on these samples only.",
        ),
        (estimate(math.nan), "error <= 1", "not shown: error is undefined (limit 1)."),
        (
            CertifiedValue("skill", math.nan, 9, "undefined", ""),
            "skill >= 0",
            "not shown: skill is undefined (limit 0), inside the intervals.",
        ),
        (
            CertifiedValue("certified accuracy", math.nextafter(0.7, 0), 10, "0.7000", ""),
            "certified_accuracy >= 0.7",
            "met: certified accuracy is at least 70.00% (limit 70%), inside the intervals.",
        ),
        (
            Estimate("slope", 1.02, 100, {}, Interval(0.9375, 1.0625, 0.95, "score")),
            "0.9 <= slope <= 1.1",
            "met: slope is between 0.9375 and 1.0625 (limits 0.9 to 1.1), 95% sure (asymptotic).",
        ),
        (
            Estimate("slope", 0.98, 100, {}, Interval(0.8, 1.2, 0.95, "score")),
            "1.1 > slope > 0.9",
            "not shown: slope is between 0.8000 and 1.2000 (limits 0.9 to 1.1), 95% sure (asymptotic); "
            "about 1,100 samples would show that it is met.",
        ),
        (
            Estimate("slope", 0.7, 100, {}, Interval(0.6, 0.75, 0.95, "score")),
            "90% ≤ slope ≤ 110%",
            "not met: slope is at most 75.00% (limits 90% to 110%), 95% sure (asymptotic).",
        ),
    ],
)
def test_a_line_says_which_number_decided_and_how_sure_that_is(claim, text, sentence):
    (line,) = judge([Candidate(claim)], text).lines
    assert line == sentence


def interval(value, lower, upper, name="ece", n=100, method="norm", **settings):
    return Candidate(Estimate(name, value, n, settings, Interval(lower, upper, 0.95, method)))


@pytest.mark.parametrize(
    ("text", "outcome", "value", "needed"),
    [
        ("ece <= 9%", "met", 0.08, None),
        ("ece <= 7%", "not shown", 0.08, 820),  # the end is 0.02 above the estimate, the limit 0.01
        ("ece <= 4%", "not shown", 0.08, None),  # the estimate is beyond it
        ("ece <= 3%", "not shown", 0.08, None),  # the lower end does not violate it
        ("ece < 3%", "not met", 0.03, None),
        ("ece >= 5%", "not shown", 0.03, 1_900),
        ("ece >= 9%", "not met", 0.08, None),
        ("2% < ece < 9%", "met", 0.08, None),
        ("1% < ece < 2%", "not met", 0.03, None),
        ("5% <= ece <= 7%", "not shown", 0.03, 1_900),  # the harder side
    ],
)
def test_the_other_end_of_an_interval_shows_the_opposite_and_between_them_nothing_is_shown(
    text, outcome, value, needed
):
    verdict = judge([interval(0.06, 0.03, 0.08, bins=15)], text)
    (one,) = verdict.judgements
    assert (one.outcome, one.value, one.samples_needed) == (outcome, value, needed)
    assert (one.estimate, one.interval, verdict.outcome) == (0.06, (0.03, 0.08), outcome)
    assert ("more likely to show that it is not met" in one.sentence) == (text in ("ece <= 4%", "ece <= 3%"))
    limit = one.limit_text.removeprefix("limits ").removeprefix("limit ").removeprefix("must be ")
    assert verdict.table()[0][:5] == (text, "", f"calibration error in 15 bins {one.found}", limit, outcome)
    assert verdict.to_dict()[0]["outcome"] == outcome


def test_an_error_that_may_be_none_needs_as_many_samples_as_its_noise():
    (one,) = judge([interval(0.06, 0.0, 0.08, n=100)], "ece <= 4%").judgements
    assert (one.outcome, one.samples_needed) == ("not shown", 820)
    assert one.sentence.endswith("about 820 samples would show that it is met if there is no error.")


def test_percentiles_of_resamples_show_either_outcome_only_with_their_mirror_image():
    # The percentiles lie above what the estimate says, as they do for biased metrics: 2·0.05 − 0.09 is 0.01.
    resampled = interval(0.05, 0.04, 0.09, name="own", method="percentile")
    assert judge([resampled], "own <= 0.03").judgements[0].outcome == "not shown"
    (one,) = judge([resampled], "own < 0.01").judgements
    assert (one.outcome, round(one.value, 9)) == ("not met", 0.01)
    (one,) = judge([resampled], "own >= 0.03").judgements
    assert (one.outcome, round(one.value, 9)) == ("not shown", 0.01)
    assert judge([resampled], "own >= 0.009").lines[0].endswith("95% sure if it is an average.")
    below = interval(0.05, 0.01, 0.06, name="own", method="percentile")
    (one,) = judge([below], "own <= 0.07").judgements
    assert (one.outcome, round(one.value, 9)) == ("not shown", 0.09)
    assert judge([interval(0.05, 0.01, 0.06)], "ece <= 0.07").passed


def test_both_ends_of_two_bounds_hold_with_the_sum_of_their_failures():
    both = [Candidate(Bound("error", value, side, 0.05, 9, ())) for value, side in ((0.01, "lower"), (0.04, "upper"))]
    (one,) = judge(both, "0.005 <= error <= 0.05").judgements
    assert one.sentence == "met: error is between 1.00% and 4.01% (limits 0.5% to 5%), 90% sure (proven)."
    assert one.failure == 0.1
    (one,) = judge(both, "0.005 <= error <= 0.03").judgements  # says one number
    assert (one.outcome, one.failure, one.remark) == ("not shown", 0.05, ", 95% sure (proven)")
    assert judge(both, ("0.005 <= error <= 0.05", "error <= 0.05")).note.endswith(
        "All numbers hold together: 85% sure."
    )
    worse = [Candidate(replace(each.claim, delta=0.6)) for each in both]
    assert judge(worse, "0.005 <= error <= 0.05").lines[0].endswith("0% sure (proven).")
    # Ends of different numbers are not said as an interval of one.
    several = [interval(0.05, *ends, bins=bins, closed="left") for bins, *ends in ((5, 0.03, 0.04), (15, 0.04, 0.06))]
    (one,) = judge(several, "0.01 <= ece <= 0.1").judgements
    assert (
        one.sentence
        == "met: calibration error in 5 bins (worst of 2) is at least 2.99% (limits 1% to 10%), 95% sure (asymptotic)."
    )


BINNED = "binned calibration error of the population"


def of_bins(value, side="upper", bins=15, name=BINNED):
    return Candidate(Bound(name, value, side, 0.05, 100, (), {}, {"bins": bins, "closed": "left"}))


def test_a_bound_is_contradicted_by_a_claim_on_the_other_side_of_the_same_quantity_or_of_a_smaller_one():
    true = Candidate(bound(0.2, name="calibration error"))
    low, other_bins = of_bins(0.06, "lower"), of_bins(0.06, "lower", bins=9)
    seen = interval(0.08, 0.06, 0.1, bins=15, closed="left")

    def outcome(text, *claims):
        (one,) = judge(claims, text).judgements
        return one.outcome, one.judged_on, one.value

    limits = f"{BINNED}(bins=15) <= 5%", "calibration error <= 5%"
    assert outcome(limits[0], of_bins(0.1), low) == ("not met", "bound", 0.06)
    assert outcome(limits[0], of_bins(0.1), seen) == ("not met", "interval", 0.06)
    assert outcome(limits[0], of_bins(0.1), other_bins) == ("not shown", "bound", 0.1)
    # The binned error is at most the true one, with whatever bins, and not the other way round.
    assert outcome(limits[1], true, other_bins) == ("not met", "bound", 0.06)
    above = Candidate(bound(0.06, "lower", name="calibration error"))
    assert outcome(limits[0], of_bins(0.1), above) == ("not shown", "bound", 0.1)
    assert outcome(f"{BINNED} >= 9%", of_bins(0.01, "lower"), true)[0] == "not shown"
    small = Candidate(bound(0.08, name="calibration error"))
    assert outcome(f"{BINNED} >= 9%", of_bins(0.01, "lower"), small) == ("not met", "bound", 0.08)
    # A claim about other scores, or another group, says nothing.
    perturbed = of_bins(0.06, "lower", name=f"{BINNED} (of the perturbed scores)")
    assert outcome(limits[0], of_bins(0.1), perturbed)[0] == "not shown"
    of_group = Candidate(low.claim, (), "east")
    assert outcome(limits[0], of_bins(0.1), of_group)[0] == "not shown"
    # A proven partner is asked before an interval, whatever they say.
    assert outcome(limits[0], of_bins(0.1), seen, of_bins(0.04, "lower"))[0] == "not shown"


@pytest.mark.parametrize(("p", "limit"), [(0.5, 0.0), (0.6, 0.1), (0.45, 0.05)])
def test_what_is_met_in_truth_is_called_not_met_with_at_most_the_level_by_enumeration(p, limit):
    """One bin at score 0.5: the error is |p − 0.5|, and the number of events has few values."""
    n, delta = 60, 0.3
    z = np.full(n, 0.5)
    wrong = 0.0
    for hits in range(n + 1):
        correct = np.random.default_rng(hits).permutation(np.arange(n) < hits).astype(int)
        found = certcal.bound({"confidence": z, "correct": correct}, delta=delta)
        if found.verdict(f"binned <= {limit!r}").outcome == "not met":
            wrong += math.comb(n, hits) * p**hits * (1 - p) ** (n - hits)
    assert 0 < wrong <= delta


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
        judge(both[2:], "calibration error >= 0")
    with pytest.raises(InputError, match="no estimate here; leave 'estimate' out"):
        judge(both[2:], "estimate calibration error <= 0.1")


def test_settings_choose_one_of_several_and_the_line_says_which():
    several = [Candidate(estimate(0.01 * bins, name="ece", bins=bins, closed="left")) for bins in (15, 5, 10)]
    assert judge(several, "ece <= 1").judgements[0].settings["bins"] == 15  # the first is the headline's
    assert judge(several, "ece(bins=10) <= 1").lines[0].startswith("met: calibration error in 10 bins (bins=10) is")
    assert judge(several, "ece(bins=5.0, closed=LEFT) <= 1").judgements[0].value == 0.05
    with pytest.raises(InputError, match="ece has no bins=7; there is bins=15 or bins=5 or bins=10"):
        judge(several, "ece(bins=7) <= 1")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ece", "'ece' is no requirement; write NAME, a relation and a number, as in 'ece <= 5%' or '0.9 <="),
        ("", "'' is no requirement"),
        (3, "3 is no requirement"),
        ("ece == 1", "has '==', and the relations are <=, <, >=, >"),
        ("ece <= one", "has 'one', no finite number"),
        ("ece <= nan%", "has 'nan', no finite number"),
        ("0.05 >= ece", "has 'ece', no finite number; write NAME, a relation and a number"),
        ("ece =< 5%", "has '=<', and the relations are <=, <, >=, >"),
        ("1% <= ece >= 5%", "is no range from a lower to an upper limit; write it as in '0.9 <= "),
        ("5% <= ece <= 1%", "is no range from a lower to an upper limit"),
        ("headline <= 1", "there is no 'headline' here"),
        ("<= 1", "names no number"),
        ("ece(bins=) <= 1", "has 'bins=' between its brackets; write SETTING=VALUE"),
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
    worst = max(ends, key=lambda name: ends[name])
    (line,) = verdict.lines
    assert line.startswith(f"{verdict.outcome}: ")
    assert f"for {worst} (worst of 2 groups, 1 {verdict.outcome})" in line
    assert [row.verdict for row in verdict.table(groups=True)] == [verdict.outcome, "met"]
    assert verdict.summary == ""
    assert found.verdict(f"every ECE <= {between!r}", "accuracy >= 0").summary.startswith("2 requirements: 1 ")
    assert found.verdict(f"every ece <= {max(ends.values())!r}")
    (one,) = found.verdict("ece(site=west) <= 1").judgements
    assert (one.group, one.value, one.where) == ("west", ends["west"], "west")
    assert one.sentence.startswith("met: calibration error in 15 bins for west is at most")
    with pytest.raises(InputError, match="ece has no 'group' here; there is bins or closed or site"):
        found.verdict("ece(group=west) <= 1")
    assert found.verdict("ece <= 1").judgements[0].group is None


def test_several_requirements_say_what_chance_can_do():
    found = certcal.measure(TABLE, bootstrap=30, bounds=True, delta=0.01)
    assert found.verdict("ece <= 1").note == ""
    assert found.verdict("ece <= 1", "estimate accuracy >= 0").note == ""
    assert found.verdict("ece <= 1", "calibration error <= 1").note == (
        "A model that breaks one of these passes all of them at most 1 time in 100. "
        "All numbers hold together: 98% sure."
    )
    nominal = found.verdict("ece <= 1", "accuracy >= 0", "auroc >= 0").note
    assert "at most 1 time in 20 (as far as intervals reach their level)." in nominal
    assert nominal.endswith(" All numbers hold together: 89% sure.")
    # A worst case of intervals that may fail has no failure probability: nothing is said of it.
    table = {"lower": [0.5, 0.4, 0.3], "upper": [0.9, 0.8, 0.7], "correct": [1, 0, 1], "alpha": [0.001] * 3}
    several = certcal.certify(table).verdict("population ece <= 1", "population ece <= 2", "brier score <= 1")
    assert several.note.endswith(
        "Those numbers hold together: 90% sure. A worst case or a certified value holds where the "
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
    assert [each.outcome for each in verdict.judgements] == ["met", "not met"]
    for name in ("a.json", "a.html", "a.txt"):
        written = found.save(tmp_path / name, require=asked).read_text()
        assert all((each.text if name == "a.json" else each.number) in written for each in verdict.judgements)
    assert '"verdict"' not in found.to_json()
    assert '"verdict"' in (tmp_path / "a.json").read_text()
    page = (tmp_path / "a.html").read_text()
    assert page.index('id="headline"') < page.index('class="verdict fail"') < page.index("<table")
    shown = str(found.report(require=asked))
    assert shown.index("shown  Calibration error") < shown.index("1 not met, 1 met") < shown.index("ece <= 0.2")


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("ece <= 3%", 800),
        ("calibration_slope >= 0.8", 300),
        ("calibration_slope <= 1.2", 300),
        ("observed_expected_ratio <= 1.2", 150),
        ("accuracy >= 75%", 300),
    ],
)
def test_about_so_many_samples_would_show_it(text, n):
    rng = np.random.default_rng(11)

    def judged(n):
        scores = rng.beta(1, 3, n)
        predictions = certcal.Predictions.from_scores(scores, (rng.random(n) < scores).astype(int))
        rows = certcal.metrics.measure(predictions, metrics=[text.split()[0]], bootstrap=10).rows
        return judge([Candidate(row) for row in rows], text).judgements[0]

    needed = [one.samples_needed for one in (judged(n) for _ in range(40)) if one.samples_needed]
    about = int(np.median(needed))
    shares = [np.mean([judged(round(times * about)).passed for _ in range(40)]) for times in (1 / 8, 1)]
    assert shares[0] <= 0.5
    assert shares[1] >= 0.7


def test_bounds_of_the_true_error_need_more_than_four_times_the_samples_for_half_the_error():
    rng = np.random.default_rng(3)

    def judged(n):
        scores = rng.random(n)
        found = certcal.bound((rng.random(n) < scores).astype(int), scores)
        return found.verdict("calibration error <= 5%").judgements[0]

    needed = judged(1_000).samples_needed
    assert needed is not None
    assert not judged(needed // 4).passed
    assert judged(needed).passed


def test_several_requirements_are_a_table():
    known = [interval(0.06, 0.03, 0.08, bins=15), Candidate(Estimate("accuracy", 0.9, 400))]
    verdict = judge(known, ["estimate accuracy >= 80%", "ece <= 7%"])
    assert repr(verdict) == str(verdict)
    assert str(verdict).splitlines()[:3] == [
        "2 requirements: 1 not shown, 1 met.",
        "not shown  ece <= 7%                 calibration error in 15 bins at most 8.01%  7%   "
        "95% sure (asymptotic); about 820 samples would show that it is met",
        "met        estimate accuracy >= 80%  the estimate of accuracy 90.00%             80%  on these samples only",
    ]


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
        "ks <= 0.1": "",
    }.items():
        text = " ".join(found.report(require=require).to_text().split())
        assert f"Calibration error is at most 11.19% in the population. {why}".rstrip() in text


def test_that_the_worst_of_several_groups_is_not_met_is_as_sure_as_all_of_them_together() -> None:
    def groups(n: int) -> list[Candidate]:
        rates = [0.8, *[0.91] * (n - 1)]
        made = [Estimate("accuracy", rate, 300, {}, Interval(rate - 0.05, rate + 0.05, 0.95, "x")) for rate in rates]
        return [Candidate(each, (), f"g{k}") for k, each in enumerate(made)]

    found = judge(groups(3), "every accuracy >= 90%")
    assert found.decisive.sentence == (
        "not met: accuracy for g0 (worst of 3 groups, 1 not met, 2 not shown) is at most 85.01% (limit 90%), "
        "85% sure (asymptotic)."
    )
    assert found.decisive.failure == pytest.approx(0.15)
    assert [each.failure for each in found.judgements] == pytest.approx([0.05] * 3)
    many = judge(groups(40), "every accuracy >= 90%")
    assert "95% sure of one group alone, not of the worst of 40 (asymptotic)" in many.decisive.sentence
    assert many.decisive.failure == 1
    met = judge([*groups(3)[1:]], "every accuracy >= 85%").decisive
    assert (met.outcome, met.failure) == ("met", pytest.approx(0.05))
