"""Certified samples: built, selected, split by position, and mapped."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certcal import InputError
from certcal.calibrators import CertifiedBeta, CertifiedIsotonic, CertifiedSamples, split_positions
from certcal.smoothing import Counts, certificates
from certcal.worst_case import certify


def made(n=60, columns=2, seed=0, **options):
    rng = np.random.default_rng(seed)
    z = rng.uniform(0.3, 1, n)
    step = 0.1 * np.arange(1, columns + 1)
    lower, upper = np.maximum(z[:, None] - step, 0), np.minimum(z[:, None] + step, 1)
    return CertifiedSamples.from_intervals(lower, upper, rng.random(n) < z, z, **options)


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(3)
    x = rng.beta(rng.uniform(0.6, 30, 40)[:, None], 1.0, (40, 400))
    votes = (x > 0.5).sum(axis=1)
    return Counts.from_confidences(
        x, np.linspace(0.02, 0.98, 49), votes=votes, sigma=0.5, correct=rng.integers(0, 2, 40)
    )


# --------------------------------------------------------------------------------------------------------------- split


@given(st.integers(2, 200), st.floats(0.01, 0.99), st.integers(0, 2**63 - 1))
def test_a_split_is_disjoint_complete_ascending_and_of_the_size_that_was_asked_for(n, fraction, seed):
    samples = CertifiedSamples.from_intervals(np.zeros(n), np.ones(n), np.arange(n) % 2)
    size = int(np.floor(n * fraction + 0.5))
    if not 0 < size < n:
        with pytest.raises(InputError, match=f"{n} samples cannot be split into parts of {size} and {n - size}"):
            samples.split(fraction, seed)
        return
    fit, rest = samples.split(fraction, seed)
    assert (len(fit), len(rest)) == (size, n - size)
    assert sorted([*fit.index, *rest.index]) == list(range(n))
    for part, positions in zip((fit, rest), split_positions(n, fraction, seed), strict=True):
        np.testing.assert_array_equal(part.index, positions)
        assert (np.diff(positions) > 0).all()


def test_a_split_looks_at_positions_and_not_at_what_the_samples_hold():
    one, other = made(seed=0), made(seed=1)
    for first, second in zip(one.split(0.4, 7), other.split(0.4, 7), strict=True):
        np.testing.assert_array_equal(first.index, second.index)
    assert one.split(0.4, 8)[0].index.tolist() != one.split(0.4, 7)[0].index.tolist()
    assert split_positions(10, 0.3, 1)[0].tolist() == [3, 6, 7]  # files of maps rely on it


@pytest.mark.parametrize(("fraction", "seed", "what"), [(0, 0, "fraction"), (1, 0, "fraction"), (0.5, -1, "seed")])
def test_what_is_no_split_is_refused(fraction, seed, what):
    with pytest.raises(InputError, match=what):
        split_positions(10, fraction, seed)


def test_parts_of_a_split_hold_the_rows_of_their_positions():
    samples = made(alpha=[0.01, 0.02])
    for part in samples.split(0.3, 2):
        for name in ("correct", "confidence", "lower", "upper", "certified"):
            np.testing.assert_array_equal(getattr(part, name), getattr(samples, name)[part.index])
        assert (part.radii, part.alpha) == (samples.radii, samples.alpha)


# -------------------------------------------------------------------------------------------------------------- mapped


@pytest.mark.parametrize("kind", [CertifiedIsotonic, CertifiedBeta])
def test_mapped_samples_hold_mapped_ends_and_confidences_and_0_to_1_where_nothing_is_certified(kind):
    base = made()
    certified = np.random.default_rng(0).random(base.lower.shape) < 0.7
    samples = CertifiedSamples.from_intervals(
        base.lower, base.upper, base.correct, base.confidence, certified=certified
    )
    g = kind(0.5).fit_samples(samples)
    mapped = samples.mapped(g)
    assert mapped.lower[~certified].tolist() == [0.0] * np.count_nonzero(~certified)
    assert mapped.upper[~certified].tolist() == [1.0] * np.count_nonzero(~certified)
    for k in range(2):
        kept = certified[:, k]
        low, high = g.intervals(samples.lower[kept, k], samples.upper[kept, k])
        np.testing.assert_array_equal(mapped.lower[kept, k], low)
        np.testing.assert_array_equal(mapped.upper[kept, k], high)
    np.testing.assert_array_equal(mapped.confidence, g.transform(samples.confidence))
    np.testing.assert_array_equal(mapped.certified, certified)


def test_the_identity_changes_nothing():
    samples = made()
    assert samples.mapped(None) is samples


def test_a_map_of_samples_with_nothing_certified_leaves_all_intervals_at_0_to_1():
    samples = made(certified=np.zeros((60, 2), bool))
    g = CertifiedIsotonic(0).fit_samples(samples)
    mapped = samples.mapped(g)
    assert (mapped.lower == 0).all()
    assert (mapped.upper == 1).all()


# ----------------------------------------------------------------------------------------------------------- from runs


def test_samples_of_counts_are_the_certificates_at_each_radius(counts):
    samples = CertifiedSamples.from_counts(counts, [0.25, 0.1, 0.25], alpha=0.01)
    assert samples.radii == ("0.1", "0.25")
    for k, radius in enumerate((0.1, 0.25)):
        one = certificates(counts, radius, alpha=0.01)
        np.testing.assert_array_equal(samples.lower[:, k], one.lower)
        np.testing.assert_array_equal(samples.upper[:, k], one.upper)
        np.testing.assert_array_equal(samples.certified[:, k], one.certified)
        assert samples.alpha[k] == one.ledger.spent
        assert 0 < one.n_certified < 40
    np.testing.assert_array_equal(samples.confidence, counts.confidence_estimates().values)


def test_certificates_go_along_with_selecting_and_mapping(counts):
    samples = CertifiedSamples.from_counts(counts, [0.1], alpha=0.01)
    fit, rest = samples.split(0.5, 0)
    g = CertifiedIsotonic(0.5).fit_samples(fit)
    (one,) = rest.mapped(g).certificates
    np.testing.assert_array_equal(one.lower, rest.mapped(g).lower[:, 0])
    np.testing.assert_array_equal(one.radii, certificates(counts, 0.1, alpha=0.01).radii[rest.index])
    assert one.n == len(rest)
    assert one.recalibration == "CertifiedIsotonic(tradeoff=0.5)"


def test_familywise_certificates_carry_their_share_of_alpha(counts):
    samples = CertifiedSamples.from_counts(counts, [0.1], alpha=0.01, familywise=True)
    assert samples.alpha[0] <= 0.01 / 40
    assert samples.alpha[0] == pytest.approx(0.01 / 40)


# ------------------------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"radii": [0.5]}, "there are 1 radii and 2 columns of ends; pass one radius per column"),
        ({"radii": [0.5, 0.25]}, r"radii are \[0.5, 0.25\]; pass different numbers, ascending"),
        ({"radii": [0.5, 0.5]}, "different numbers, ascending"),
        ({"radii": [0.5, "x"]}, r"radii\[1\] is 'x'; pass finite numbers"),
        ({"radii": [-1, 2]}, r"radii\[0\] is -1; pass finite numbers of at least 0"),
        ({"radii": [0, np.inf]}, r"radii\[1\] is inf"),
        ({"alpha": [0.1]}, r"alpha has shape \(1,\); pass one probability, or one for each of 2"),
        ({"alpha": 1.0}, "alpha is 1.0; it is the probability of failing, below 0.5"),
        ({"alpha": np.nan}, "alpha is nan; pass a probability"),
        ({"alpha": "much"}, "alpha is 'much', not a number"),
        ({"alpha": np.full((2, 2), 0.1)}, r"alpha has shape \(2, 2\)"),
    ],
)
def test_bad_radii_and_levels_are_refused_in_one_sentence(options, message):
    with pytest.raises(InputError, match=message):
        made(**options)


def test_arrays_that_are_no_table_are_refused():
    with pytest.raises(InputError, match=r"lower has shape \(1, 1, 1\); pass one row per sample"):
        CertifiedSamples.from_intervals(np.zeros((1, 1, 1)), np.ones((1, 1, 1)), [1])
    with pytest.raises(InputError, match=r"lower has shape \(0, 1\)"):
        CertifiedSamples.from_intervals([], [], [])


def test_levels_may_be_numpy_numbers_and_radii_texts():
    samples = made(alpha=np.float32(0.25))
    assert samples.alpha == (0.25, 0.25)
    options = CertifiedSamples.from_intervals([0.1], [0.2], [1], radii=["0.50"])
    assert options.radii == ("0.5",)


def test_radii_of_a_run_are_checked(counts):
    for radii, message in [([], "radii is empty"), (["x"], r"radii\[0\] is 'x'"), ([-1], r"radii\[0\] is -1")]:
        with pytest.raises(InputError, match=message):
            CertifiedSamples.from_counts(counts, radii)


def test_samples_do_not_change_when_the_arrays_they_were_made_of_do():
    lower, correct, certified = np.full(3, 0.2), np.array([1, 0, 1], np.uint8), np.ones(3, bool)
    samples = CertifiedSamples.from_intervals(lower, np.full(3, 0.5), correct, certified=certified)
    lower[:], correct[:], certified[:] = 0.9, 0, False
    assert samples.lower.tolist() == [[0.2]] * 3
    assert samples.correct.tolist() == [1, 0, 1]
    assert samples.certified.all()


def test_the_bounds_on_the_population_pay_for_the_certificates_of_their_own_radius():
    lower, upper, correct = np.full((40, 2), 0.25), np.full((40, 2), 0.75), np.arange(40) % 3 > 0
    samples = CertifiedSamples.from_intervals(lower, upper, correct, alpha=[0.01, 0.05])
    for k, alpha in enumerate((0.01, 0.05)):
        expected = certify(lower[:, k], upper[:, k], correct, alpha=alpha, certified=np.ones(40, bool))
        assert samples.summary(k).to_dict() == expected.to_dict()
        assert samples.summary(k).population.settings["alpha"] == alpha
