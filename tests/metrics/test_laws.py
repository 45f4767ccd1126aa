"""What holds for every metric of the registry: no order among samples, and weights that are repetitions."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certcal.metrics import METRICS
from tests import naive

# To the last bit for any order: sums of integers, or exact sums.
EXACT = {"ece", "equal_mass_ece", "mce", "lp_ece", "debiased_ece", "classwise_ece", "smooth_ece", "mmce"}
EXACT_WEIGHTED = {"ece", "mce", "lp_ece", "debiased_ece"}
# Where the effective number of samples counts, which repetitions change.
NOT_REPEATED = {"debiased_ece", "kde_ece", "spiegelhalter_z", "spiegelhalter_p"}
# Kernel metrics are computed to 1e-9; near ties magnify rounding in the standard deviation behind a bandwidth.
NEAR = {"smooth_ece": 1e-9, "kde_ece": 1e-6}
# Found by iteration, or by solving for curves that few scores determine: six digits agree.
FITTED = {"calibration_slope", "calibration_intercept", "ici", "e50", "e90", "spiegelhalter_z", "spiegelhalter_p"}
BINS = st.one_of(st.integers(1, 20), st.integers(1, 20), st.integers(1, 20), st.integers(1, 700))
BINNING = st.fixed_dictionaries({"bins": BINS, "closed": st.sampled_from(["left", "right"])})
many = settings(max_examples=15)


def each(scored, rows, binning):
    """Name, function and arrays of every metric."""
    of = {"pair": scored, "confidence": scored[:1], "correct": scored[1:], "classes": rows, "logits": rows}
    for name, entry in METRICS.items():
        yield name, partial(entry.function, **(binning if entry.bins else {})), of[entry.reads]


def assert_same(name, found, expected):
    if name == "debiased_ece":  # the root magnifies what rounding leaves of nothing
        found, expected = found**2, expected**2
    rel, near = (1e-6, 1e-6) if name in FITTED else (1e-12, NEAR.get(name, 1e-12))
    assert found == pytest.approx(expected, rel=rel, abs=near, nan_ok=True), name


@many
@given(naive.weighted(40), naive.classified(), BINNING, st.randoms(use_true_random=False))
def test_the_order_of_the_samples_does_not_matter(scored, classified, binning, random):
    for name, metric, arrays in each(scored[:2], classified[:2], binning):
        w = scored[2] if arrays[0].ndim == 1 else classified[2]
        order = list(range(len(arrays[0])))
        random.shuffle(order)
        for weights, exact in ((None, EXACT), (w, EXACT_WEIGHTED)):
            found = metric(*(a[order] for a in arrays), sample_weight=None if weights is None else weights[order])
            expected = metric(*arrays, sample_weight=weights)
            assert_same(name, found, expected)
            assert name not in exact or found == expected, name


@many
@given(naive.scored(40), naive.classified(), BINNING)
def test_a_whole_weight_is_a_repetition_zero_is_absence_and_scale_does_not_matter(scored, classified, binning):
    for name, metric, arrays in each(scored, classified[:2], binning):
        times = np.random.default_rng(len(arrays[0])).integers(0, 4, len(arrays[0]))
        times[0] += 1
        if name not in NOT_REPEATED:
            repeated = metric(*(np.repeat(a, times, axis=0) for a in arrays))
            for scale in (1, 0.1, 1e6):
                assert_same(name, metric(*arrays, sample_weight=scale * times), repeated)
        assert_same(name, metric(*arrays, sample_weight=np.full(times.size, 0.7)), metric(*arrays))


@many
@given(naive.weighted(40), naive.classified(), BINNING, st.sampled_from([1e-6, 0.1, 3.0, 1e6]))
def test_weights_may_be_scaled_and_samples_of_weight_zero_drop_out(scored, classified, binning, factor):
    z, c, _ = scored
    longer = np.append(z, [z[0], z.dtype.type(0.5)]), np.append(c, [0, 1]).astype(c.dtype)
    p, y, _ = classified
    longer_rows = np.concatenate((p, p[:1], p[:1])), np.append(y, [0, 1])
    further = {name: arrays for name, _, arrays in each(longer, longer_rows, binning)}
    for name, metric, arrays in each((z, c), (p, y), binning):
        given_weights = scored[2] if arrays[0].ndim == 1 else classified[2]
        w = np.ones(len(arrays[0])) if given_weights is None else given_weights
        found = metric(*further[name], sample_weight=np.append(factor * w, [0, 0]))
        assert_same(name, found, metric(*arrays, sample_weight=w))
