"""Reviews of runs: what is certified at several radii, and what is behind it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from certcal import InputError, metrics
from certcal.data import Inputs
from certcal.smoothing import CONFIDENCES, Counts, Review, Run, certificates, review
from certcal.smoothing._usable import check_inputs
from certcal.smoothing.robustness import PaDistribution, VoteRecord
from tests.smoothing.drawing import X, draw

SAMPLES, DRAWS = 40, 1500


def make_counts(samples: int = SAMPLES, draws: int = DRAWS, seed: int = 0) -> Counts:
    rng = np.random.default_rng(seed)
    sharpness = rng.uniform(0.3, 30, samples)[:, None]
    x = rng.beta(sharpness, 1.0, (samples, draws))
    votes = (x > 0.5).sum(axis=1)
    return Counts.from_confidences(
        x, np.linspace(0.02, 0.98, 49), votes=votes, sigma=0.5, correct=rng.random(samples) < 0.8
    )


@pytest.fixture(scope="module")
def counts() -> Counts:
    return make_counts()


@pytest.fixture(scope="module")
def found(counts: Counts) -> Review:
    return review(counts)


def test_every_line_is_what_certificates_of_its_radius_and_kind_say(counts: Counts) -> None:
    asked = review(counts, [0.3, 0.1], confidence=("tight", "cdf"), alpha=0.01, bins=7, closed="right", delta=0.1)
    assert [(one.radius, one.kind) for one in asked.lines] == [
        ("0.1", "tight"),
        ("0.1", "cdf"),
        ("0.3", "tight"),
        ("0.3", "cdf"),
    ]
    for one in asked.lines:
        own = certificates(counts, float(one.radius), 0.01, one.kind)
        np.testing.assert_array_equal(one.certificates.lower, own.lower)
        assert one.summary.to_dict() == own.summary(bins=7, closed="right", delta=0.1).to_dict()
        assert one.claim == own.claim(bins=7, closed="right", delta=0.01)
        assert one.width == own.mean_width
        assert asked.at(asked.radii.index(one.radius), one.kind) is one
    assert asked.at() is asked.lines[2]


def test_without_radii_they_are_quarters_of_sigma_and_the_headline_is_half_of_it(counts: Counts, found: Review) -> None:
    radii = [float(radius) for radius in found.radii]
    largest = float(np.nanmax(certificates(counts, 0.0).radii))
    assert radii == [0.125 * step for step in range(len(radii))]
    assert radii[-1] <= largest < radii[-1] + 0.125
    assert found.radii[found.headline] == "0.25"


def test_the_headline_of_given_radii_is_the_largest_whatever_was_drawn(counts: Counts) -> None:
    for seed in (1, 2):
        assert review(make_counts(seed=seed), [0.2, 9.0, 0.2, -0.0]).radii == ("0", "0.2", "9")
    asked = review(counts, [0.2, 9.0])
    assert asked.radii[asked.headline] == "9"
    assert asked.at().summary.n_certified == 0
    assert asked.at().claim.value == 1
    assert asked.at().claim.settings["samples"] == "all"


def test_progress_counts_pairs_of_radius_and_kind(counts: Counts) -> None:
    seen: list[tuple[int, int]] = []
    review(counts, [0.1, 0.2], confidence=("cdf", "standard"), progress=lambda *now: seen.append(now))
    assert seen == [(done, 4) for done in range(5)]


def test_an_unfinished_run_is_refused_unless_what_is_drawn_will_do(tmp_path: Path) -> None:
    made = draw(tmp_path / "run", n=400, unit=4000)
    late = [unit for unit in made.manifest.units() if unit.stage == "counting" and unit.first >= 10]
    assert late
    for unit in late:
        (made.path / unit.name).unlink()
    again = Run(made.path, made.manifest)
    with pytest.raises(InputError, match=r"the run is not complete, .* or use the samples .* drawn_only=True"):
        review(again)
    some = review(again, [0.1], drawn_only=True)
    assert len(some.counts) == late[0].first
    assert some.manifest is made.manifest
    assert some.at().claim == certificates(made.counts(samples=late[0].first), 0.1).claim()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source": "run"}, "source is str; pass a run, or what its counts"),
        ({"confidence": ()}, "confidence is empty; pass one or more of tight, tangent"),
        ({"confidence": "loose"}, "confidence"),
        ({"radii": []}, "radii has 0 different entries; pass from 1 to 1000"),
        ({"radii": np.linspace(0, 1, 1001)}, "radii has 1001 different entries"),
        ({"radii": [0.1, -1]}, "radius is -1; pass a finite number of at least 0"),
        ({"radii": ["far"]}, "radius is 'far'; pass a number of at least 0"),
    ],
)
def test_what_cannot_be_reviewed_is_one_sentence(counts: Counts, changes: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"source": counts, "radii": [0.1]} | changes
    with pytest.raises(InputError, match=message):
        review(given.pop("source"), **given)


# ------------------------------------------------------------------------------------------- clean beside worst case


def test_estimates_of_confidence_are_within_their_error_of_the_mean_of_the_draws() -> None:
    rng = np.random.default_rng(4)
    x = rng.beta(2, 0.5, (30, 200))
    thresholds = np.sort(rng.random(9))
    found = Counts.from_confidences(x, thresholds, votes=[200] * 30, sigma=1.0).confidence_estimates()
    assert (np.abs(found.values - x.mean(axis=1)) <= found.error + 1e-12).all()
    assert ((found.values >= 0) & (found.values <= 1)).all()


def test_the_error_of_an_estimate_cannot_be_smaller() -> None:
    """Draws at the lower ends of their cells are half a cell below the middle, and just below the next ones above."""
    thresholds = np.array([0.1, 0.5, 0.6])
    low, high = np.array([0.0, 0.1, 0.5, 0.6]), np.nextafter([0.1, 0.5, 0.6, 1.0], 0)
    counted = Counts.from_confidences([low, high], thresholds, votes=[4, 4], sigma=1.0).confidence_estimates()
    np.testing.assert_allclose(counted.values - counted.error, low.mean(), atol=1e-12)
    np.testing.assert_allclose(counted.values + counted.error, high.mean(), atol=1e-12)


def test_clean_bins_are_of_the_samples_that_are_certified_at_the_radius(counts: Counts, found: Review) -> None:
    estimates = counts.confidence_estimates().values
    for place in range(len(found.radii)):
        one, clean = found.at(place), found.clean_bins(place)
        assert clean is not None
        assert one.worst_bins is not None
        kept = one.certificates.certified
        assert clean.ece == metrics.ece(estimates[kept], one.certificates.correct[kept])
        assert clean.table.count.sum() == one.worst_bins.table.count.sum() == one.summary.n_certified
        assert clean.table.correct_sum.sum() == one.worst_bins.table.correct_sum.sum()


def test_worst_bins_are_those_of_the_witness_and_have_the_signs_of_their_gaps(found: Review) -> None:
    one = found.at()
    assert one.worst is not None
    assert one.worst_bins is not None
    assert one.worst.signs is not None
    table = one.worst_bins.table
    reached = np.abs(table.gap_sum).sum() / one.summary.n_certified
    assert reached == pytest.approx(one.worst.value, abs=1e-9)
    assert one.worst_bins.ece == one.worst.value
    used = table.count > 0
    assert (table.gap_sum[used] * one.worst.signs[used] >= -1e-9).all()


def test_where_no_sample_is_certified_there_is_nothing_to_draw(counts: Counts) -> None:
    nothing = review(counts, [50.0])
    assert nothing.clean_bins() is None
    assert nothing.at().worst_bins is None
    assert nothing.at().worst is None
    assert nothing.widths("tight") is None
    assert nothing.most_telling() == ()


# ------------------------------------------------------------------------------------------------------------- widths


@pytest.mark.parametrize("kind", CONFIDENCES)
def test_widths_of_any_kind_are_those_of_its_certificates(counts: Counts, found: Review, kind: str) -> None:
    own = certificates(counts, 0.25, confidence=kind)
    widths = np.sort((own.upper - own.lower)[own.certified])
    seen = found.widths(kind)
    assert seen is not None
    assert seen is found.widths(kind)
    assert (seen.kind, seen.radius, seen.n, seen.mean) == (kind, 0.25, own.n_certified, own.mean_width)
    for value, share in zip(seen.values, seen.shares, strict=True):
        assert share == pytest.approx(np.mean(widths <= value), abs=1e-15)
    for q, value in zip((0.05, 0.25, 0.5, 0.75, 0.95), seen.quantiles, strict=True):
        assert np.mean(widths <= value) >= q - 1e-12
        assert np.mean(widths < value) < q
    assert seen.median == seen.quantiles[2]


def test_many_widths_are_thinned_to_two_hundred_exact_steps() -> None:
    many = review(make_counts(samples=600, draws=300), [0.0])
    own = many.at().certificates
    widths = (own.upper - own.lower)[own.certified]
    seen = many.widths("tight")
    assert seen is not None
    assert np.unique(widths).size > 200
    assert seen.values.size == 200
    assert (seen.values[0], seen.values[-1], seen.shares[-1]) == (widths.min(), widths.max(), 1.0)
    np.testing.assert_allclose(seen.shares, [np.mean(widths <= value) for value in seen.values], atol=1e-15)


# ---------------------------------------------------------------------------------------------------------------- p_A


def test_the_curve_of_p_a_is_exact_where_it_is_kept_and_never_too_high_between() -> None:
    rng = np.random.default_rng(3)
    record = VoteRecord.of(rng.integers(0, 5001, 900), 5000, rng.random(900) < 0.9, sigma=1.0)
    seen = PaDistribution.of(record)
    whole, thin = seen.curve(10**6), seen.curve(50)
    assert not whole.thinned
    assert thin.thinned
    assert thin.p.size == 50
    assert (thin.p[0], thin.p[-1]) == (0.5, 1.0)
    np.testing.assert_array_equal(thin.lower, seen.survival(thin.p)[0])
    between = rng.uniform(0.5, 1, 500)
    drawn = thin.lower[np.searchsorted(thin.p, between)]
    assert (drawn <= seen.survival(between)[0]).all()
    exact = whole.lower[np.searchsorted(whole.p, between)]
    np.testing.assert_array_equal(exact, seen.survival(between)[0])
    with pytest.raises(InputError, match="most is 1"):
        seen.curve(1)


def test_a_review_has_the_distribution_of_p_a_of_its_counts(counts: Counts, found: Review) -> None:
    correct = counts.predicted == counts.label
    assert found.p_a.survival(0.9)[0] == np.mean(correct & (counts.votes / counts.draws >= 0.9))


# ------------------------------------------------------------------------------------------------- samples that matter


def test_the_most_telling_samples_have_the_largest_contributions(counts: Counts, found: Review) -> None:
    one, told = found.at(), found.most_telling(5)
    assert one.worst is not None
    added = one.worst.contributions
    assert [each.contribution for each in told] == sorted(added, reverse=True)[:5]
    for each in told:
        i = each.index
        assert each.contribution == added[i] > 0
        assert (each.label, each.predicted) == (counts.label[i], counts.predicted[i])
        assert (each.lower, each.upper) == (one.certificates.lower[i], one.certificates.upper[i])
        assert each.lower <= each.witness == one.worst.witness[i] <= each.upper
        assert (each.votes, each.draws) == (counts.votes[i], DRAWS)
        assert each.radius == one.certificates.radii[i] >= 0.25
        low, high = map(float, each.interval_text.split(" to "))
        assert low <= each.lower
        assert each.upper <= high
    everyone = found.most_telling(10_000)
    assert sum(each.contribution for each in everyone) == pytest.approx(added[added > 0].sum())
    with pytest.raises(InputError, match="k is 0; pass how many samples to name"):
        found.most_telling(0)


def test_a_sample_is_named_by_its_place_in_the_data_set(counts: Counts) -> None:
    moved = replace(counts, index=counts.index + 100)
    told = review(moved, [0.25]).most_telling(3)
    assert [each.index - 100 for each in told] == [each.index for each in review(counts, [0.25]).most_telling(3)]


# ------------------------------------------------------------------------------------------------------------- inputs


def test_inputs_are_taken_only_if_the_run_was_drawn_from_them(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (24, 4), dtype=np.uint8)
    run = draw(tmp_path / "run", inputs=pixels, n=40)
    taken = check_inputs(run.manifest, pixels)
    np.testing.assert_array_equal(taken, pixels.astype(np.float32) / np.float32(255))
    more = np.concatenate([pixels, pixels])
    for same in (more, taken, taken.astype(np.float64), Inputs.from_arrays(pixels, np.zeros(24, int))):
        np.testing.assert_array_equal(check_inputs(run.manifest, same), taken)
    for other in (pixels[::-1], X, pixels.astype(np.float32)):
        with pytest.raises(InputError, match="are not the data that the run was drawn from, by their fingerprint"):
            check_inputs(run.manifest, other)
    for other in (pixels[:23], pixels[:, :3]):
        with pytest.raises(InputError, match="the run is of 24 samples of shape"):
            check_inputs(run.manifest, other)
    with pytest.raises(InputError, match="inputs"):
        check_inputs(run.manifest, 7)
