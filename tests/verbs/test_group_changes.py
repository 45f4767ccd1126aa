"""Groups before and after a map: intervals at a shared level, and what is said of groups that get worse."""

import numpy as np
import pytest
from scipy.special import expit, logit

from certcal import Predictions, recalibrate
from certcal.calibrators import MapInput, PlattScaling, cross_fit, fit_by_group
from certcal.data.predictions import group_samples
from certcal.verbs import group_changes
from certcal.verbs.answers import Diagnosis

RNG = np.random.default_rng(1)
Z = RNG.random(6000)
GROUP = np.where(RNG.random(6000) < 0.85, "many", "few")
Y = RNG.random(6000) < expit(logit(Z) * np.where(GROUP == "many", 0.5, 1.5))


@pytest.mark.parametrize(
    ("options", "worse", "said"),
    [
        ({"common_map": True}, ["few"], "The map makes 1 of 2 groups worse: few."),
        ({"common_map": True}, ["few"], "Correct the map by group: one for all does not suit some of them."),
        (
            {"common_map": True},
            ["few"],
            "Some range of scores is still wrong in 1 of 2 groups: few; over all samples none",
        ),
        ({}, [], "A map by group beats one for all: the log loss falls from 0."),
        ({}, [], "No group is shown to get worse; 1 of 2 gets better."),
    ],
)
def test_a_group_that_a_map_makes_worse_is_named(options, worse, said):
    found = recalibrate(Y, Z, by=GROUP, method="platt", **options)
    assert [each.group for each in found.groups if each.verdict == "worse"] == worse
    assert said in " ".join(each.text for each in found.answer)
    # Shares of 5 % are parted beforehand, and what is proven of ranges is shown after other sentences, too.
    shown = [each.text.partition(":")[0] for each in found.answer if each.kind == "shown"]
    of_groups = ["The map makes 1 of 2 groups worse", "Some range of scores is still wrong in 1 of 2 groups"]
    assert shown == ["Platt helps", *(of_groups if worse else ["A map by group beats one for all"])]
    assert {each.data["level"] for each in found.answer if "groups" in each.data} == ({0.99} if worse else set())
    shown = str(found)
    assert all(text in shown for text in ("Groups", "few", "many", "intervals of all groups hold together at 99 %"))
    assert {each.score.interval.level for each in found.groups} == {0.995}  # 99 % for both together


@pytest.mark.parametrize("by", [None, GROUP[:2000]])
def test_what_is_shown_of_a_map_fails_with_at_most_the_level_of_the_answer(by, monkeypatch):
    shares, of = [], Diagnosis.of
    monkeypatch.setattr(group_changes, "Diagnosis", type("", (), {"of": lambda p, s: shares.append(s) or of(p, s)}))
    found = recalibrate(Y[:2000], Z[:2000], method="platt", **({} if by is None else {"by": by}))
    ends = [found.change["nll"], *([found.by_group] if by is not None else [])]
    failures = [(1 - each.interval.level) / 2 for each in ends]
    failures += [(1 - each.score.interval.level) / 2 for each in found.groups]
    ranges = shares[len(shares) // 2 :]  # after the map; as many are of what was before it
    assert len(ranges) == len(found.groups)
    failures += [found.change.new.diagnosis.share, *ranges]
    assert sum(failures) == pytest.approx(0.05 if by is not None else 0.04)
    assert sum(failures) <= 1 - found.answer.level + 1e-12


def test_scores_of_0_and_1_are_judged_by_the_brier_score_under_its_name():
    z = np.where(RNG.random(300) < 0.5, 0.0, 1.0)
    y = RNG.random(300) < np.where(z > 0.5, 0.9, 0.0)
    found = recalibrate(y, z, by=GROUP[:300], method="isotonic")
    by_group = found.by_group
    assert by_group.name == by_group.new.name == by_group.old.name == "brier_score"


def test_what_a_group_gets_is_made_without_its_own_fold():
    given = Predictions.from_scores(Z[:600], Y[:600])
    cut, _, codes = group_samples(given, GROUP[:600])
    seen = []

    def fit(part):
        seen.append(part)
        samples = part.predictions
        common = PlattScaling().fit(samples.confidence, samples.correct)
        return fit_by_group(part, cut.rules, common, 0)

    after, maps = cross_fit(MapInput(given, None, codes), fit)
    for part, made in zip(seen, maps, strict=True):
        used = set(part.predictions.confidence.tolist())
        mine = np.array([each not in used for each in Z[:600]])
        assert 110 < mine.sum() < 130
        assert np.array_equal(after.confidence[mine], made.transform(Z[:600][mine], GROUP[:600][mine]))
