"""Groups of a measurement: rates with intervals that hold for all, what is planted is found, few are called wrong."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import certcal
from certcal import InputError
from certcal.binning import BinTable
from certcal.bounds import clopper_pearson
from certcal.verbs.answers import ERROR, GROUPS, SEGMENTS, SLOPE, WHOLE, Diagnosis, calibration_answer
from certcal.verbs.groups import deviation_p, group_rates

RNG = np.random.default_rng(11)


def bins_of(n: int, expected: float, events: float, squares: float | None = None) -> BinTable:
    """One bin that holds so many samples."""
    weight = float(n) if squares is None else 2.5 * n
    arrays = ([n], [weight], [float(n) if squares is None else squares], [expected], [events])
    return BinTable(np.array([0.0, 1.0]), "left", *(np.array(each) for each in arrays))


def credit() -> dict[str, Any]:
    """Customers of four kinds; of those with another education 7.5 defaults are expected and 18 are there."""
    sizes = {"university": 900, "graduate school": 600, "high school": 319, "other": 181}
    education = np.repeat(list(sizes), list(sizes.values()))
    score = np.tile([0.02, 0.1, 0.18, 0.3, 0.4], 400)[: education.size].astype(float)
    outcome = np.zeros(education.size, np.int64)
    for name in sizes:
        rows = np.flatnonzero(education == name)
        if name == "other":
            score[rows] = 7.5 / rows.size
        events = 18 if name == "other" else round(score[rows].sum())
        # Those of the highest scores, evenly: the slope plays no part here.
        order = rows[np.argsort((np.arange(rows.size) * 0.618034) % 1 - score[rows])]
        outcome[order[:events]] = 1
    return {"pd": score, "default": outcome, "education": education}


def test_a_kind_of_customers_that_defaults_more_often_than_predicted_is_found_and_said() -> None:
    found = certcal.measure(credit(), score="pd", outcome="default", by="education")
    worst = found.worst_groups[0]
    assert worst.name == "other"
    assert worst.rate is not None
    assert (worst.rate.events, worst.rate.expected) == (18, pytest.approx(7.5))
    assert worst.rate.ratio == pytest.approx(2.4)
    assert worst.rate.direction == 1
    assert [each.rate.direction for each in found.worst_groups[1:] if each.rate] == [0, 0, 0]
    said = next(each for each in found.answer if "where" in each.data)
    assert (said.kind, said.basis) == ("shown", "proven")
    assert said.text.startswith("Where education is other, 18 events for 7.5 predicted: 2.4 times as many (1.")
    assert said.data["where"] == {"education": "other"}
    assert found.answer[0].text.startswith("On the whole no miscalibration is shown")
    assert found.answer[-1].command == "certcal.bound(data, score='pd', outcome='default', by='education')"
    # One more kind of question shares the level, and none is dropped.
    many = credit() | {"id": [f"c{k % 97}" for k in range(2000)]}
    split = certcal.measure(many, score="pd", outcome="default", by=["education", "id"]).answer
    assert next(each for each in split if "where" in each.data).kind == "seen"


def test_intervals_of_all_groups_hold_together_and_are_no_wider_than_that_needs() -> None:
    """Exactly, over all counts: that any of k groups is outside has probability at most 5 %, and nearly so."""
    n, k, p = 400, 5, 0.1
    expected = n * p
    inside = within(n, expected, k, 0.95)
    failing = 1 - (binom.pmf(np.arange(n + 1), n, p) @ inside) ** k
    assert 0.5 * 0.05 < failing <= 0.05
    for n, p in itertools.product((1, 2, 10, 50), (0.01, 0.3, 0.5)):
        assert 1 - binom.pmf(np.arange(n + 1), n, p) @ within(n, n * p, 3, 0.9) <= 0.1 / 3


def within(n: int, expected: float, k: int, level: float) -> Any:
    """For each number of events of one of k groups, whether what was predicted is inside its limits."""
    groups = [[(bins_of(n, expected, hits), None)] * k for hits in range(n + 1)]
    return np.array([group_rates(each, is_score=True, level=level)[0].direction == 0 for each in groups])


def test_limits_are_those_of_clopper_and_pearson_at_a_share_of_the_level_and_the_p_value_is_theirs() -> None:
    cases = [(100, 12.5, 20), (181, 7.5, 18), (50, 3.0, 0), (50, 3.0, 50), (1, 0.2, 1), (40, 0.3, 1), (30, 15.0, 15)]
    rates = group_rates([(bins_of(*case), None) for case in cases], is_score=True, level=0.9)
    for (n, expected, events), rate in zip(cases, rates, strict=True):
        limits = clopper_pearson(events, n, 0.1 / len(cases), identical=False)
        assert (rate.lower, rate.upper) == pytest.approx(tuple(limits), abs=1e-9)
        assert rate.ratio_interval == pytest.approx(tuple(n * end / expected for end in limits), abs=1e-6)
        assert rate.gap_interval == pytest.approx(tuple(end - expected / n for end in limits), abs=1e-9)
        # The smallest level at which the limits leave out what was predicted.
        p = deviation_p(bins_of(n, expected, events))
        for level, out in ((min(0.999, p * 1.001), p < 0.5), (p * 0.999, False)):
            alone = clopper_pearson(events, n, level, identical=False)
            assert (not alone.lower <= expected / n <= alone.upper) == out
    weighted = deviation_p(bins_of(100, 40.0, 60.0, 300.0))
    assert weighted == pytest.approx(2 * math.exp(-2 * 400 / 300))
    assert deviation_p(bins_of(100, 40.0, 40.0, 300.0)) == 1


def test_of_2000_calibrated_tables_with_overlapping_groups_at_most_one_in_twenty_is_called_wrong() -> None:
    assert SEGMENTS < GROUPS
    assert pytest.approx(0.05) == WHOLE + (GROUPS - SEGMENTS) + SEGMENTS + SLOPE + ERROR
    tables, n, parts = 2000, 1000, 10
    scores = np.linspace(0.08, 0.12, n)  # nearly equal ones: with others limits are wider than they need to be
    outcomes = RNG.random((tables, n)) < scores
    region, product = np.arange(n) % 4, np.arange(n) % 3
    members = [region == k for k in range(4)] + [(region == k) & (product == j) for k in range(4) for j in range(3)]
    member = np.array(members, float)
    group_n, group_expected = member.sum(axis=1).astype(int), member @ scores
    group_hits = outcomes @ member.T
    spread = np.sqrt(member @ (scores * (1 - scores)))
    edges = np.concatenate(([0.0], scores[:: n // parts][1:], [1.0]))
    count = np.full(parts, n // parts)
    hits = outcomes.reshape(tables, parts, -1).sum(axis=2).astype(float)
    expected, noise = (each.reshape(parts, -1).sum(axis=1) for each in (scores, scores * (1 - scores)))
    gaps = hits - expected
    away = np.column_stack(
        ((group_hits - group_expected) / spread, gaps / np.sqrt(noise), gaps.sum(axis=1) / noise.sum() ** 0.5)
    )
    called = {"groups": 0, "any": 0}
    # Nothing can be shown, at levels far weaker than these, where nothing is 2.7 standard deviations away.
    for place in np.flatnonzero(np.abs(away).max(axis=1) > 2.7).tolist():
        bins = BinTable(edges, "left", count, count.astype(float), count.astype(float), expected, hits[place])
        sums = zip(group_n.tolist(), group_expected.tolist(), group_hits[place].tolist(), strict=True)
        segments = [({}, rate) for rate in group_rates([(bins_of(*each), None) for each in sums], is_score=True)]
        answer = calibration_answer(Diagnosis.of_bins(bins, GROUPS - SEGMENTS), "binary", segments=segments)
        called["groups"] += any(each.kind == "shown" and "where" in each.data for each in answer)
        called["any"] += any(each.kind == "shown" for each in answer)
    # Of 2,000 tables 1 % are 20 and 2 % are 40; more than 36 and 62 would happen once in a thousand tests.
    assert 3 <= called["groups"] <= 36
    assert called["groups"] <= called["any"] <= 62


def test_slopes_of_groups_are_widened_to_hold_together() -> None:
    score = RNG.beta(1, 2, 3000)
    table = {"score": score, "outcome": (RNG.random(3000) < score).astype(int), "site": np.arange(3000) % 3}
    found = certcal.measure(table, by="site")
    for group in found.groups:
        row = found.row_of("calibration_slope", group)
        assert group.rate is not None
        assert row is not None
        assert row.interval is not None
        assert group.rate.slope_interval is not None
        # Normal quantiles of 1 - 0.01/6 and 0.975.
        ratio = 2.93520 / 1.95996
        assert group.rate.slope_interval[0] == pytest.approx(
            row.value + ratio * (row.interval.lower - row.value), rel=1e-4
        )


def test_confidences_have_gaps_and_no_ratios_and_the_answer_uses_their_words() -> None:
    confidence = RNG.beta(8, 2, 3000)
    site = np.arange(3000) % 5
    correct = (RNG.random(3000) < np.where(site == 3, confidence - 0.3, confidence)).astype(int)
    found = certcal.measure({"confidence": confidence, "correct": correct, "site": site}, by="site")
    worst = found.worst_groups[0]
    assert worst.name == "3"
    assert worst.rate is not None
    assert worst.rate.to_dict().keys() == {"predicted", "observed", "gap", "gap_interval", "p", "direction", "level"}
    said = next(each for each in found.answer if "where" in each.data)
    assert said.text.startswith("Where site is 3, ")
    assert " are right where 80% is claimed: " in said.text
    assert " points too few (" in said.text
    assert said.data["interval"][1] < 0


def test_groups_are_found_by_name_and_by_place() -> None:
    found = certcal.measure(credit(), score="pd", outcome="default", by="education")
    assert found.groups["other"] is found.groups[2]
    assert [each.name for each in found.groups] == ["graduate school", "high school", "other", "university"]
    assert certcal.bound(credit(), score="pd", outcome="default", by="education").groups["other"].n == 181
    with pytest.raises(InputError, match=r"there is no group 'othr'; did you mean 'other'\?"):
        found.groups["othr"]


def test_weighted_groups_have_limits_for_weighted_means() -> None:
    table = credit() | {"w": RNG.random(2000)}
    found = certcal.measure(table, score="pd", outcome="default", weight="w", by="education")
    other = found.groups["other"].rate
    rows = np.flatnonzero(table["education"] == "other")
    w = table["w"][rows]
    assert other is not None
    assert other.events == pytest.approx(w @ table["default"][rows])
    width = math.sqrt(math.log(2 / (0.01 / 4)) / 2 * (w @ w)) / w.sum()
    assert other.gap_interval[1] == pytest.approx(other.gap + width, rel=1e-6)


def test_files_of_numbers_carry_what_was_predicted_of_each_group_and_observed() -> None:
    found = certcal.measure(credit(), score="pd", outcome="default", by=["education"])
    frame = found.to_pandas()
    line = frame[(frame["education"] == "other") & (frame["metric"] == "ece")].iloc[0]
    rate = found.groups["other"].rate
    assert rate is not None
    assert line["group_events"] == 18
    assert line["group_ratio_lower"] == rate.ratio_interval[0]
    assert line["group_p"] == rate.p
    assert frame[frame["education"] == "all"]["group_events"].isna().all()
    document = found.document()
    assert document["groupings"] == [{"by": "education", "columns": ["education"], "time": False}]
    assert document["groups"][2]["rate"]["events"] == 18
    assert document["groups"][2]["where"] == {"education": "other"}


def test_what_is_asked_of_every_group_is_asked_of_crossings_too() -> None:
    table = credit() | {"channel": np.array(["web", "shop"])[np.arange(2000) % 2]}
    found = certcal.measure(table, score="pd", outcome="default", by=["education", "education*channel"], bounds=True)
    verdict = found.verdict("every binned <= 90%")
    assert [each.group for each in verdict.judgements] == [each.name for each in found.groups]
    assert len(found.groups) == 4 + 8
    one = found.verdict("every binned (education=other, channel=web) <= 90%").judgements
    assert [each.group for each in one] == ["education*channel=other*web"]


def test_a_deviation_near_none_is_told_by_its_ratio() -> None:
    found = certcal.measure([1, 1, 1, 0, 0, 0, 0, 1] * 100, [0.49] * 800, by=[*"aaaabbbb"] * 100).answer
    outcomes = [0, 1, 1, 0] * 200
    said = certcal.measure(outcomes, [0.47] * 800, by=["a", "b"] * 400).answer
    assert "200 events for 188 predicted: O/E 1.06 (0.9" in next(each.text for each in said if "where" in each.data)
    assert next(each for each in found if "where" in each.data).kind == "shown"


def test_the_p_value_of_one_event_is_for_draws_that_differ() -> None:
    # Of two samples with probabilities 0.2 and 0 one event is seen in 20 %, and in 19 % if both have 0.1.
    assert deviation_p(bins_of(2, 0.2, 1)) == pytest.approx(0.4, rel=1e-12)
    assert deviation_p(bins_of(2, 1.8, 1)) == pytest.approx(0.4, rel=1e-12)


def test_no_p_value_is_0() -> None:
    z, y = np.full(8000, 0.5), np.repeat([0, 1], [7600, 400])
    for weight in (None, np.full(8000, 1.5)):
        found = certcal.measure(certcal.Predictions.from_scores(z, y, weight), by=np.repeat(["a"], 8000))
        assert 0 < found.groups[0].rate.p < 1e-300


@pytest.mark.parametrize(("by", "name"), [("y", "y"), (["site", "site*y"], "y")])
def test_groups_of_one_outcome_are_refused(by: Any, name: str) -> None:
    table = {"score": [0.2, 0.7, 0.9, 0.4], "y": [0, 1, 1, 0], "site": ["a", "b", "a", "b"]}
    for verb in (certcal.measure, certcal.recalibrate):
        with pytest.raises(InputError, match=f"'{name}' says what was true, .* group by what is known beforehand"):
            verb(table, by=by)
    labelled = {"p0": [0.2, 0.7], "p1": [0.8, 0.3], "label": [1, 0]}
    with pytest.raises(InputError, match="'label' says what was true"):
        certcal.measure(labelled, by="label")


def test_groups_of_one_outcome_are_refused_whatever_they_are_called() -> None:
    z, y = np.linspace(0.1, 0.9, 40), np.tile([0, 1], 20)
    groups = {"site": np.arange(40) % 3, "paid": np.where(y == 1, "yes", "no")}
    for verb in (certcal.measure, certcal.bound, certcal.recalibrate):
        with pytest.raises(InputError, match=r"^by: 'paid' says what was true, .* known beforehand"):
            verb(y, z, by=groups)
        with pytest.raises(InputError, match=r"^by: 'paid' says what was true, .* known beforehand"):
            verb({"score": z, "outcome": y, **groups}, by=["site", "paid"])
    few = certcal.measure(y[:6], z[:6], by=y[:6])  # which may be by chance
    assert [each.n for each in few.groups] == [3, 3]
    rare = np.arange(40) == 7  # and so may one event in a group of one
    assert len(certcal.measure(rare.astype(int), z, by=rare).groups) == 2
