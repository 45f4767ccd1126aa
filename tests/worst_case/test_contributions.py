"""What each sample adds to a worst calibration error."""

import copy
import pickle

import numpy as np
import pytest

from certcal import InputError
from certcal.binning import equal_width_edges
from certcal.worst_case import SignProgram, calibration_error, mce
from tests.worst_case import naive

ATTAINED = 1e-9


def mask_of(p: naive.Problem, seed: int) -> np.ndarray:
    mask = np.random.default_rng(seed).random(p.n) < 0.6
    mask[0] = True
    return mask


def test_contributions_add_up_to_the_value_and_are_those_of_the_witness_one_by_one() -> None:
    for seed in range(120):
        p = naive.instance(seed, n=6, bins=4)
        mask = mask_of(p, seed)
        alone = calibration_error(*p.arguments, **p.options, certified=mask)
        assert alone.all_samples is not None
        for worst in (calibration_error(*p.arguments, **p.options), alone, alone.all_samples):
            assert worst.contributions.sum() == pytest.approx(worst.value, abs=ATTAINED), seed
            assert np.abs(worst.contributions).max() <= 1 / worst.n
        np.testing.assert_array_equal(alone.contributions[~mask], 0)
        for i in np.flatnonzero(mask):
            gap = abs(int(p.correct[i]) - float(alone.witness[i])) / alone.n
            assert abs(alone.contributions[i]) == pytest.approx(gap, abs=1e-15)


def test_leaving_a_sample_where_it_is_best_for_us_would_cost_its_contribution() -> None:
    """The sign of a contribution is that of its bin: moving the sample's confidence towards its class lowers it."""
    rng = np.random.default_rng(5)
    lower, correct = rng.random(400) * 0.7, rng.random(400) < 0.6
    upper = lower + 0.3 * rng.random(400)
    worst = calibration_error(lower, upper, correct, bins=10)
    assert worst.bins is not None
    assert worst.signs is not None
    place = np.minimum((worst.witness * 10).astype(int), 9)
    by_bin = np.bincount(place, worst.contributions, 10)
    np.testing.assert_allclose(by_bin, np.abs(worst.bins.gap_sum) / 400, atol=1e-12)
    assert (worst.contributions < 0).any()
    wrong_and_sure = ~correct & (worst.signs[place] < 0)
    np.testing.assert_allclose(worst.contributions[wrong_and_sure], worst.witness[wrong_and_sure] / 400, atol=1e-15)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_contributions_of_narrow_floats_add_up_to_what_their_witness_reaches(dtype: type[np.floating]) -> None:
    p = naive.problem([0.1, 0.5, 0.3], [0.6, 0.9, 0.3], [1, 0, 1], equal_width_edges(3), dtype=dtype)
    worst = calibration_error(*p.arguments, **p.options)
    assert worst.bins is not None
    assert worst.contributions.dtype == np.float64
    assert worst.contributions.sum() == pytest.approx(np.abs(worst.bins.gap_sum).sum() / 3, abs=1e-12)


def test_copies_keep_their_contributions() -> None:
    worst = calibration_error([0.1, 0.5], [0.6, 0.9], [1, 0], bins=3, certified=[1, 0])
    for other in (copy.deepcopy(worst), pickle.loads(pickle.dumps(worst))):
        np.testing.assert_array_equal(other.contributions, worst.contributions)
        np.testing.assert_array_equal(other.all_samples.contributions, worst.all_samples.contributions)


def test_what_is_no_sum_over_the_samples_at_hand_has_no_contributions() -> None:
    lower, upper, correct = [0.1, 0.5], [0.6, 0.9], [1, 0]
    for other in (mce(lower, upper, correct), calibration_error(lower, upper, correct, best=True)):
        with pytest.raises(InputError, match="has no contributions; ask for those of a worst calibration_error"):
            _ = other.contributions
    program = SignProgram()
    program.add(lower, upper, correct)
    with pytest.raises(InputError, match="keeps sums and not the samples"):
        _ = program.result().contributions
