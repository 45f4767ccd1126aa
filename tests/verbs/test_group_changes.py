"""Groups before and after a map: intervals at a shared level, and what is said of groups that get worse."""

import numpy as np
import pytest
from scipy.special import expit, logit

from certcal import Predictions, recalibrate
from certcal.calibrators import MapInput, PlattScaling, cross_fit, fit_by_group
from certcal.data.predictions import group_samples

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
    # What sentences may fail with adds up to 5 %: two directions, or one and ranges of all and of groups.
    shown = [each.text for each in found.answer if each.kind == "shown"]
    assert [text.partition(":")[0] for text in shown] == [
        "Platt helps",
        "The map makes 1 of 2 groups worse" if worse else "A map by group beats one for all",
    ]
    shown = str(found)
    assert all(text in shown for text in ("Groups", "few", "many", "intervals of all groups hold together at 95 %"))
    assert {each.score.interval.level for each in found.groups} == {0.975}  # 95 % for both together


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
