"""The verdict on recalibrated confidences says what is certified of the held-out samples, and no more."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from certcal.calibrators._verdict import verdict

from certcal.calibrators import CertifiedSamples, recalibrate


def samples(lower, upper, correct, n=200, **options):
    made = [np.tile(each, n) for each in (lower, upper, correct)]
    return CertifiedSamples.from_intervals(*made, radii=[0.5], **options)


def test_confidences_that_tell_right_from_wrong_survive_with_their_skill_and_gain():
    found = recalibrate(samples([0.1, 0.5], [0.4, 0.9], [0, 1]), tradeoff=1)
    said = verdict(found)
    at = found.chosen.at[0]
    assert said.startswith("At radius 0.5, the recalibrated confidences carry information that is certified to survive")
    assert f"a certified skill of at least {at.summary.skill.text}" in said
    assert f"(as they were: {found.identity.at[0].summary.skill.text})" in said
    assert f"In the population, where certified, their certified Brier score is at least {at.gain.text} below" in said
    assert "given that a sample is certified" in at.gain.sentence


def test_a_gain_that_the_bound_leaves_open_is_not_claimed():
    found = recalibrate(samples([0.1, 0.5], [0.4, 0.9], [0, 1], n=3), tradeoff=1)
    at = found.chosen.at[0]
    assert at.summary.skill.value > 0
    assert at.gain.value <= 0
    assert "Whether they do in the population is left open" in verdict(found)
    lines = tuple(replace(line, at=(replace(line.at[0], gain=None),)) for line in found.lines)
    assert "Whether they do in the population is left open" in verdict(replace(found, lines=lines))


def test_confidences_that_tell_nothing_are_said_to_tell_nothing():
    said = verdict(recalibrate(samples([0.0, 0.0], [1.0, 1.0], [0, 1]), tradeoff=1))
    assert "are not certified to beat one constant confidence" in said
    assert "Nor is any non-decreasing map of them." in said


@pytest.mark.parametrize(
    ("correct", "certified", "words"),
    [([1, 1], None, "all 200 certified samples are correct"), ([0, 1], [0, 0], "no sample is certified")],
)
def test_where_a_skill_is_undefined_the_reason_is_said(correct, certified, words):
    n = 200
    kept = None if certified is None else np.tile(certified, n)
    given = samples([0.1, 0.5], [0.4, 0.9], correct, n, certified=kept, confidence=np.tile([0.2, 0.7], n))
    assert words in verdict(recalibrate(given, tradeoff=1 if certified is None else 0))


def test_intervals_without_a_radius_are_spoken_of_as_the_given_ones():
    given = replace(samples([0.1, 0.5], [0.4, 0.9], [0, 1]), radii=("",))
    said = verdict(recalibrate(given, tradeoff=1))
    assert said.startswith("Inside the given intervals, the recalibrated confidences carry information that is")
    assert "attack" not in said
