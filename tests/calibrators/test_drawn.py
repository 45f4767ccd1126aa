"""Numbers behind the pictures of a recalibration."""

from __future__ import annotations

import numpy as np
import pytest
from certcal.calibrators._drawn import confidence_counts, constant_point, map_points
from hypothesis import given
from hypothesis import strategies as st

from certcal.calibrators import CertifiedIsotonic, CertifiedSamples, recalibrate
from certcal.calibrators._curve import MonotoneCurve
from tests.report.recalibrated import interval_samples


def fitted(x, y):
    made = CertifiedIsotonic()
    made.curve_ = MonotoneCurve(np.asarray(x, float), np.asarray(y, float))
    return made


@st.composite
def curves(draw):
    size = draw(st.integers(1, 12))
    places = sorted(draw(st.sets(st.integers(0, 1000), min_size=size, max_size=size)))
    levels = sorted(draw(st.lists(st.integers(0, 5), min_size=size, max_size=size)))
    return fitted(np.array(places) / 1000, np.array(levels) / 5)


@given(curves())
def test_the_line_of_a_map_is_the_map_everywhere(calibrator):
    points = map_points(calibrator)
    assert points.x[0] == 0
    assert points.x[-1] == 1
    at = np.linspace(0, 1, 2001)
    np.testing.assert_allclose(np.interp(at, points.x, points.y), calibrator.transform(at), atol=1e-12)
    assert points.knots == calibrator.curve_.x.size


@given(curves())
def test_flat_parts_are_those_that_can_be_seen_and_no_others(calibrator):
    points = map_points(calibrator)
    at = np.arange(0, 1, 0.001) + 0.0005
    values = calibrator.transform(at)
    level = calibrator.transform(at - 0.0004) == calibrator.transform(at + 0.0004)
    inside = np.zeros(at.size, bool)
    for start, end, value in points.flat:
        assert end - start >= 0.004
        here = (at > start) & (at < end)
        assert (values[here] == value).all()
        inside |= here
    # Whatever is level outside of them belongs to a run shorter than 0.004.
    run = 0
    for each in level & ~inside:
        run = run + 1 if each else 0
        assert run <= 4


def test_a_map_with_very_many_knots_is_drawn_with_few_points_that_miss_nothing():
    x = np.linspace(0, 1, 20_001)
    points = map_points(fitted(x, np.floor(x * 10) / 10))
    assert points.x.size < 600
    assert points.knots == 20_001
    assert len(points.flat) == 10
    at = np.linspace(0, 1, 5001)
    assert np.mean(np.abs(np.interp(at, points.x, points.y) - np.floor(at * 10) / 10)) < 0.002


def test_the_identity_is_the_diagonal():
    points = map_points(None)
    assert points.x.tolist() == points.y.tolist() == [0.0, 1.0]
    assert points.flat.size == 0


def test_the_constant_is_the_best_one_of_the_fit_and_is_scored_on_the_others():
    samples = interval_samples()
    found = recalibrate(samples, radius_weight=(1, 3))
    fit, rest = samples.split()
    constant = sum(
        weight * np.mean([c for c, kept in zip(fit.correct, fit.certified[:, k], strict=True) if kept])
        for k, weight in enumerate((0.25, 0.75))
    )
    clean = np.mean([(c - constant) ** 2 for c in rest.correct.astype(float)])
    worst = sum(
        weight * np.mean([(c - constant) ** 2 for c in rest.correct[rest.certified[:, k]].astype(float)])
        for k, weight in enumerate((0.25, 0.75))
    )
    point = constant_point(found)
    assert point.held_out == (pytest.approx(clean, abs=1e-12), pytest.approx(worst, abs=1e-12))
    assert point.fitted == (None, None)


def test_without_certified_samples_there_is_no_constant():
    samples = CertifiedSamples.from_intervals(
        np.zeros(20), np.ones(20), [0, 1] * 10, np.full(20, 0.5), certified=np.zeros(20)
    )
    assert constant_point(recalibrate(samples, tradeoff=0)) is None


def test_every_held_out_confidence_is_counted_and_unknown_ones_are_not():
    found = recalibrate(interval_samples())
    assert confidence_counts(found).count.sum() == found.n_held_out
    assert confidence_counts(recalibrate(interval_samples(clean=False), tradeoff=1)) is None
