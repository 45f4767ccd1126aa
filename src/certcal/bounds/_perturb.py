"""Scores with noise on top, so that their calibration function is smooth whatever it was before."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError, confidences, positive
from certcal._threads import map_blocks
from certcal.bounds._shared import check_seed
from certcal.claims import short_text

Floats = NDArray[np.float64]

# Tells the stream of the noise from that of folds, or of simulated scores, which were drawn with the same seed. Scores
# that are the generator's numbers themselves, moved by the same numbers, would not be moved at random at all.
NOISE = 1


def perturb(scores: Any, bandwidth: float, seed: int | np.random.Generator = 0) -> Floats:
    """Replace each score s₀ by a draw from the density on [0, 1] that is proportional to sech((s - s₀)/h).

    What for: the classifier that answers with the perturbed score is another classifier, nearly as good when h is small
    (:func:`choose_bandwidth`). Its calibration function η has |η′| <= 1/2h and |η″| <= 1/2h² for *every* distribution
    of scores and outcomes, which is what :func:`smooth` rests on. The scores that are then *used* must be perturbed
    too: the bound says nothing about those before.

    How: the distribution function is (gd((s - s₀)/h) - gd(-s₀/h)) / (gd((1 - s₀)/h) + gd(s₀/h)) with the Gudermannian
    gd(x) = 2 atan(tanh(x/2)). Its inverse at a uniform number is asinh(tan(angle)) near the score; far out it is
    -log(tan(angle/2)) of the angle that is missing to ±π/2, which keeps its digits in the tails. The perturbed score
    stays in [0, 1]; a score at an end is only moved inward.

    Parameters
    ----------
    scores
        Probabilities in [0, 1], not logits.
    bandwidth
        h > 0, in units of probability.
    seed
        A whole number, or a Generator that is advanced: one that had no part in scores and outcomes. (The noise of a
        whole number is another stream than that of ``default_rng`` with it.) Perturb every sample once: averaging over
        several draws, or choosing among seeds, undoes what is claimed.

    Returns
    -------
    ndarray
        float64 in the order of ``scores``. The same seed gives the same bits on any number of threads.

    Examples
    --------
    >>> perturb([0.0, 0.5, 0.99], 2**-6, seed=1).round(4)
    array([0.0085, 0.5056, 0.9824])
    """
    s = confidences(scores, "scores").astype(np.float64, copy=False)
    h = check_bandwidth(bandwidth)
    generator = seed if isinstance(seed, np.random.Generator) else np.random.default_rng([check_seed(seed), NOISE])
    uniform = generator.random(s.size)
    uniform += 2.0**-54  # the middle of each of the generator's steps: never 0
    return quantile(uniform, s, h)


def perturbed_assumption(h: float) -> str:
    """What a claim about perturbed scores rests on.

    Examples
    --------
    >>> perturbed_assumption(0.1)
    'each was perturbed once by the sech kernel of bandwidth 0.1, independently of all else and not chosen among draws'
    """
    kernel = f"each was perturbed once by the sech kernel of bandwidth {short_text(h, 'upper')}"
    return f"{kernel}, independently of all else and not chosen among draws"


def check_bandwidth(bandwidth: Any) -> float:
    """A bandwidth at which the kernel is neither a point nor, to twelve digits, uniform."""
    h = positive(bandwidth, "bandwidth")
    if not 1e-9 <= h <= 1000:
        raise InputError(f"bandwidth is {h:g}; pass a number from 1e-9 to 1000 (scores lie in [0, 1])")
    return h


def quantile(share: Floats, score: Floats, h: float) -> Floats:
    """The perturbed score below which the given share of draws lies."""
    from certcal._kernels.sech import sech_quantiles

    out = np.empty(score.size)
    map_blocks(
        lambda start, stop: sech_quantiles(share[start:stop], score[start:stop], h, out[start:stop]), score.size, 20_000
    )
    return out


def distribution(value: Floats, score: Floats, h: float) -> Floats:
    """Probability that the perturbed score is at most ``value``."""
    below = gudermannian(score / h)
    return (gudermannian((value - score) / h) + below) / (gudermannian((1 - score) / h) + below)


def normaliser(score: Floats, h: float) -> Floats:
    """Integral over [0, 1] of sech((s - score)/h)."""
    return h * (gudermannian((1 - score) / h) + gudermannian(score / h))


def gudermannian(x: Floats) -> Floats:
    """Integral of sech from 0 to x."""
    return 2 * np.arctan(np.tanh(x / 2))
