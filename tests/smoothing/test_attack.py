"""Attacks on the network of the demo: expectation over noise, projected gradients, and never past a certificate.

An attack finds one perturbation; a certificate speaks of all of them. So an attack can refute a certificate and never
prove one, and is worth something only if it is strong. That it is strong is tested too.
"""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.stats import norm

from certcal._base.threads import one_blas_thread
from certcal.calibrators import CertifiedBeta, CertifiedIsotonic, CertifiedSamples, CertifiedTemperature
from certcal.data import embedded_network
from certcal.models import wrap
from certcal.smoothing import CONFIDENCES, Counts, certificates, sample

IMAGES = 24
RADII = (0.125, 0.25)
# Fresh draws that tell where an attack has arrived, and how far off the truth a mean of them is: by Hoeffding's
# inequality more than this with probability below 1e-9 for each of the few hundred means that are looked at.
DRAWS = 20_000
MARGIN = float(np.sqrt(np.log(2 / 1e-9) / (2 * DRAWS)))


class Network:
    """The demo's network with its gradient, written out."""

    def __init__(self, classifier):
        self.weights = [np.asarray(each, np.float32) for each in classifier.coefs_]
        self.biases = [np.asarray(each, np.float32) for each in classifier.intercepts_]

    def forward(self, x):
        hidden = np.maximum(x @ self.weights[0] + self.biases[0], 0)
        logits = hidden @ self.weights[1] + self.biases[1]
        odds = np.exp(logits - logits.max(axis=-1, keepdims=True))
        return hidden, odds / odds.sum(axis=-1, keepdims=True)

    def gradient(self, x, classes):
        """Of the probability of each row's class."""
        hidden, p = self.forward(x)
        own = p[np.arange(len(x)), classes][:, None]
        by_logit = -own * p
        by_logit[np.arange(len(x)), classes] += own[:, 0]
        return ((by_logit @ self.weights[1].T) * (hidden > 0)) @ self.weights[0].T


def attack(network, x, classes, radius, sigma, direction, steps=20, draws=200):
    """Perturbations of norm up to the radius that move the smoothed confidence down (-1) or up (+1)."""
    rng = np.random.default_rng([5, direction + 1])
    moved = np.zeros_like(x)
    for step in range(steps):
        noise = sigma * rng.standard_normal((len(x), draws, x.shape[1]), dtype=np.float32)
        points = ((x + moved)[:, None] + noise).reshape(-1, x.shape[1])
        slope = network.gradient(points, np.repeat(classes, draws)).reshape(noise.shape).mean(axis=1)
        slope /= np.linalg.norm(slope, axis=1, keepdims=True) + 1e-30
        moved = moved + direction * radius * (0.5 if step < steps // 2 else 0.1) * slope
        moved = moved * np.minimum(1, radius / (np.linalg.norm(moved, axis=1, keepdims=True) + 1e-30))
    return x + moved * np.float32(1 - 1e-6)


def smoothed(network, places, classes, sigma, seed):
    """Mean confidence in each row's class and share of votes for each class, from fresh draws, the same at each place.

    One pair for each array of points in ``places``.
    """
    rng = np.random.default_rng([7, seed])
    found = [(np.zeros(len(classes)), np.zeros((len(classes), 10))) for _ in places]
    for row, own in enumerate(classes):
        noise = sigma * rng.standard_normal((DRAWS, places[0].shape[1]), dtype=np.float32)
        for x, (confidence, votes) in zip(places, found, strict=True):
            p = network.forward(x[row] + noise)[1]
            confidence[row] = p[:, own].mean(dtype=np.float64)
            votes[row] = np.bincount(p.argmax(axis=1), minlength=10) / DRAWS
    return found


@dataclass(frozen=True)
class Arena:
    network: Network
    x: np.ndarray
    counts: Counts
    clean: np.ndarray
    attacked: dict[tuple[float, int], tuple[np.ndarray, np.ndarray, np.ndarray]]


@pytest.fixture(scope="module")
def arena(tmp_path_factory) -> Arena:
    """The demo's network, a run on some of the demo's images, and where attacks on them arrive."""
    made = embedded_network()
    inputs, labels = made.test.inputs[:IMAGES], made.test.labels[:IMAGES]
    with one_blas_thread():
        folder = tmp_path_factory.mktemp("attack") / "run"
        run = sample(wrap(made.classifier), inputs, labels, sigma=made.sigma, n=10_000, out=folder, batch=2000)
        counts, network = run.counts(), Network(made.classifier)
        x = inputs.reshape(IMAGES, -1)
        ((clean, _),) = smoothed(network, [x], counts.predicted, made.sigma, seed=0)
        ways = [(radius, direction) for radius in RADII for direction in (-1, 1)]
        points = [attack(network, x, counts.predicted, radius, made.sigma, direction) for radius, direction in ways]
        arrived = smoothed(network, points, counts.predicted, made.sigma, seed=1)
        attacked = {way: (x, *found) for way, x, found in zip(ways, points, arrived, strict=True)}
    return Arena(network, x, counts, clean, attacked)


def test_the_gradient_is_that_of_the_classifier(arena):
    rng = np.random.default_rng(1)
    x = arena.x[:5].astype(np.float64)
    classes = arena.counts.predicted[:5]
    way = rng.standard_normal(x.shape)
    ahead, behind = (arena.network.forward(x + step * way)[1][np.arange(5), classes] for step in (1e-5, -1e-5))
    expected = (arena.network.gradient(x, classes) * way).sum(axis=1)
    np.testing.assert_allclose((ahead - behind) / 2e-5, expected, atol=1e-6)


def test_attacks_stay_within_their_radius(arena):
    for (radius, _), (points, _, _) in arena.attacked.items():
        length = np.linalg.norm((points - arena.x).astype(np.float64), axis=1)
        assert length.max() <= radius
        assert np.median(length) > 0.99 * radius


@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("kind", CONFIDENCES)
def test_no_attack_leaves_the_certified_interval(arena, kind, radius):
    made = certificates(arena.counts, radius, alpha=0.001, confidence=kind)
    held = made.certified
    assert np.count_nonzero(held) > IMAGES / 2
    for direction in (-1, 1):
        _, confidence, _ = arena.attacked[radius, direction]
        assert np.all(confidence[held] + MARGIN >= made.lower[held])
        assert np.all(confidence[held] - MARGIN <= made.upper[held])


@pytest.mark.parametrize("kind", [CertifiedIsotonic, CertifiedTemperature, CertifiedBeta])
def test_no_attack_leaves_the_interval_of_the_recalibrated_network(arena, kind):
    # The network is right about nearly all of these: other outcomes, for maps that are not constant.
    samples = CertifiedSamples.from_counts(arena.counts, RADII)
    least_sure = samples.confidence < np.quantile(samples.confidence, 0.4)
    samples = replace(samples, correct=(~least_sure).astype(np.uint8))
    fit, rest = samples.split(0.5, seed=0)
    fitted = kind(0.25).fit_samples(fit)
    assert np.ptp(fitted.transform([0.3, 0.99])) > 0.05
    after = rest.mapped(fitted)
    for k, radius in enumerate(RADII):
        held = rest.certified[:, k]
        assert np.count_nonzero(held) > len(rest) / 2
        worst = np.zeros(len(rest))
        for direction in (-1, 1):
            confidence = arena.attacked[radius, direction][1][rest.index]
            low, high = (fitted.transform(np.clip(confidence + side * MARGIN, 0, 1)) for side in (-1, 1))
            assert np.all(high[held] >= after.lower[held, k])
            assert np.all(low[held] <= after.upper[held, k])
            # What the attack reached at the least, seen through its error: the nearer of the two to the outcome.
            reached = np.where(rest.correct == 1, 1 - high, low)
            worst = np.maximum(worst, np.maximum(reached, 0) ** 2)
        certified = after.summary(k)["brier_score"].worst
        assert 0 < worst[held].mean() <= certified.value


@pytest.mark.parametrize("radius", RADII)
def test_no_attack_flips_a_certified_class(arena, radius):
    made = certificates(arena.counts, radius)
    held = made.certified
    assert np.count_nonzero(held) > IMAGES / 2
    for direction in (-1, 1):
        _, _, votes = arena.attacked[radius, direction]
        own = votes[np.arange(IMAGES), arena.counts.predicted]
        assert np.all(votes.argmax(axis=1)[held] == arena.counts.predicted[held])
        # The certified radius left over at distance R is R' - R, and so many votes belong to it.
        left = norm.cdf((made.radii[held] - radius) / arena.counts.sigma)
        assert np.all(own[held] + MARGIN >= left)


def test_the_attack_moves_confidences_a_good_share_of_the_way_that_certificates_allow(arena):
    radius = RADII[-1]
    made = certificates(arena.counts, radius, confidence="tangent")
    _, down, _ = arena.attacked[radius, -1]
    held = made.certified
    share = (arena.clean - down)[held].sum() / (arena.clean - made.lower)[held].sum()
    assert share > 0.5
    assert np.all(arena.clean[held] - down[held] > -2 * MARGIN)


def test_the_attack_would_refute_intervals_for_a_smaller_radius(arena):
    """What the tests above would see if certificates were too narrow."""
    radius = RADII[-1]
    _, down, _ = arena.attacked[radius, -1]
    for kind in ("tight", "tangent"):
        made = certificates(arena.counts, radius / 2, confidence=kind)
        assert np.count_nonzero(made.certified & (down + MARGIN < made.lower)) > IMAGES / 4


def test_the_attack_flips_classes_that_are_not_certified(arena):
    radius = 2.0
    made = certificates(arena.counts, radius)
    assert not made.certified.any()
    with one_blas_thread():
        points = attack(arena.network, arena.x, arena.counts.predicted, radius, arena.counts.sigma, -1, steps=10)
        ((_, votes),) = smoothed(arena.network, [points[:20]], arena.counts.predicted[:20], arena.counts.sigma, seed=2)
    assert np.mean(votes.argmax(axis=1) != arena.counts.predicted[:20]) > 0.5
