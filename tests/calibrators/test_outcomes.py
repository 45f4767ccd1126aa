"""What every map of confidences that is fitted to outcomes must do."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certcal import InputError
from certcal.calibrators import (
    BetaCalibration,
    EqualMassBinning,
    HistogramBinning,
    IsotonicCalibration,
    NotFittedError,
    PlattScaling,
)

MAPS = [
    PlattScaling(),
    PlattScaling(targets="outcomes"),
    BetaCalibration(),
    BetaCalibration(parameters="ab"),
    IsotonicCalibration(),
    HistogramBinning(bins=7),
    HistogramBinning(bins=7, closed="right"),
    EqualMassBinning(bins=5),
    EqualMassBinning(bins=5, closed="right"),
]

every_map = pytest.mark.parametrize("one", MAPS, ids=repr)


def drawn(seed, n=60, places=None):
    rng = np.random.default_rng([seed, 5])
    z = rng.random(n) if places is None else rng.integers(0, places + 1, n) / places
    return z, (rng.random(n) < z**2).astype(np.uint8)


@every_map
@settings(max_examples=8)
@given(st.integers(0, 10_000), st.sampled_from([None, 4, 20]))
def test_mapped_intervals_contain_whatever_a_confidence_inside_is_mapped_to(one, seed, places):
    fitted = one.unfitted().fit(*drawn(seed, places=places))
    rng = np.random.default_rng([seed, 6])
    low, high = np.sort(rng.random((2, 20)), axis=0)
    low[:4], high[2:6] = 0.0, 1.0
    high[6:10] = np.nextafter(low[6:10], 2)
    lower, upper = fitted.intervals(low, high)
    assert ((lower >= 0) & (lower <= upper) & (upper <= 1)).all()
    for share in (0.0, 1e-12, 0.25, 0.5, 1 - 1e-12, 1.0):
        inside = np.clip(low + share * (high - low), low, high)
        mapped = fitted.transform(inside)
        assert ((lower <= mapped) & (mapped <= upper)).all()


@pytest.mark.parametrize(
    ("kind", "state", "coefficients"),
    [
        (PlattScaling, {"slope": 0.37, "intercept": 0.1}, (0.37, 0.37, 0.1)),
        (PlattScaling, {"slope": 1000.0, "intercept": -1100.0}, (1000.0, 1000.0, -1100.0)),
        (BetaCalibration, {"a": 0.37, "b": 1.9, "c": 0.1}, (0.37, 1.9, 0.1)),
        (BetaCalibration, {"a": 30.0, "b": 50.0, "c": -60.0}, (30.0, 50.0, -60.0)),
    ],
)
def test_mapped_ends_hold_the_formula_without_rounding(kind, state, coefficients):
    made = kind()
    made._restore(state)
    z = np.random.default_rng(0).uniform(0.74, 0.76, 200)
    low, high = made.intervals(z, z)
    a, b, c = map(Decimal, coefficients)
    off = 0
    with localcontext() as context:
        context.prec = 50
        for each, under, value, over in zip(map(Decimal, z.tolist()), low, made.transform(z), high, strict=True):
            exact = 1 / (1 + (-(a * each.ln() - b * (1 - each).ln() + c)).exp())
            assert Decimal(float(under)) < exact < Decimal(float(over))
            off += Decimal(float(value)) != exact
    assert off > 100  # so ends that were not moved would not do


@every_map
def test_intervals_of_one_confidence_are_hardly_wider_than_a_number(one):
    fitted = one.unfitted().fit(*drawn(1))
    z = np.linspace(0, 1, 11)
    lower, upper = fitted.intervals(z, z)
    assert fitted.transform(z) == pytest.approx(lower, abs=1e-11)
    assert fitted.transform(z) == pytest.approx(upper, abs=1e-11)


@every_map
def test_weights_count_like_repeated_samples(one):
    z, c = drawn(2)
    times = np.random.default_rng(3).integers(0, 4, z.size)
    a = one.unfitted().fit(z, c, times)
    b = one.unfitted().fit(np.repeat(z, times), np.repeat(c, times))
    values = np.linspace(0, 1, 201)
    assert a.transform(values) == pytest.approx(b.transform(values), abs=1e-7)


@every_map
def test_the_order_of_samples_does_not_matter(one):
    z, c = drawn(4)
    order = np.random.default_rng(4).permutation(z.size)
    values = np.linspace(0, 1, 201)
    a, b = one.unfitted().fit(z, c), one.unfitted().fit(z[order], c[order])
    assert a.transform(values) == pytest.approx(b.transform(values), abs=1e-9)


@every_map
def test_a_number_has_one_image_whatever_its_type(one):
    z, c = drawn(5, places=7)
    single = z.astype(np.float32)
    fitted = one.unfitted().fit(single, c)
    assert np.array_equal(fitted.transform(single), fitted.transform(single.astype(np.float64)))
    again = one.unfitted().fit(single.astype(np.float64), c)
    assert np.array_equal(fitted.transform(single), again.transform(single))


@every_map
def test_monotone_is_said_only_of_maps_that_are(one):
    grid = np.linspace(0, 1, 2001)
    for seed in range(6):
        fitted = one.unfitted().fit(*drawn(seed, n=25))
        assert fitted.monotone == bool((np.diff(fitted.transform(grid)) >= -1e-14).all())


@every_map
def test_fit_and_transform_in_one_call_are_the_two(one):
    z, c = drawn(8)
    assert np.array_equal(one.unfitted().fit_transform(z, c), one.unfitted().fit(z, c).transform(z))


@every_map
@pytest.mark.parametrize(("z", "c"), [([0.5], [1]), ([0.0, 1.0], [0, 1]), ([1.0] * 9, [1] * 9), ([0.3] * 3, [0] * 3)])
def test_very_few_samples_and_one_class_are_fitted(one, z, c):
    mapped = one.unfitted().fit(z, c).transform([0.0, 0.3, 1.0])
    assert ((mapped >= 0) & (mapped <= 1)).all()


@every_map
def test_a_map_that_is_not_fitted_says_so(one):
    with pytest.raises(NotFittedError, match="is not fitted; call fit first"):
        one.unfitted().transform([0.5])
    with pytest.raises(NotFittedError, match="is not fitted; call fit first"):
        one.unfitted().intervals([0.1], [0.5])


@every_map
def test_bad_intervals_are_refused_with_a_sentence(one):
    fitted = one.unfitted().fit(*drawn(9))
    with pytest.raises(InputError, match=r"lower\[1\] is above upper\[1\]; are the two swapped\?"):
        fitted.intervals([0.1, 0.6], [0.2, 0.5])
    with pytest.raises(InputError, match="lengths differ: lower has 2, upper has 1"):
        fitted.intervals([0.1, 0.6], [0.7])
    with pytest.raises(InputError, match=r"upper\[0\] is nan"):
        fitted.intervals([0.1], [np.nan])
