"""Sequential sampling of many samples at once: those that are decided leave, the others fill the batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from certcal._checks import InputError, failure_probability, positive, same_length, to_numpy, whole_number
from certcal.smoothing._decisions import Decisions, DecisionSetting
from certcal.smoothing._sequential import UNDECIDED, looks, verdicts

if TYPE_CHECKING:
    from certcal.models import Model


def decide(
    model: Model,
    inputs: Any,
    labels: Any,
    *,
    sigma: float,
    radius: float,
    budget: int = 100_000,
    alpha: float = 0.001,
    alpha_below: float | None = None,
    n0: int = 100,
    seed: int = 0,
    noise: str = "gaussian",
    batch: int = 500,
    block: int = 100,
    progress: Callable[[int, int], None] | None = None,
) -> Decisions:
    """Decide for each sample whether its certified radius is above ``radius``, drawing only until that is clear.

    The claim, per sample: unless the smoothed classifier's radius R = σΦ⁻¹(p_A) of the chosen class is above
    ``radius``, "above" is said with probability at most ``alpha``; unless it is below, "below" is said with probability
    at most ``alpha_below``; a verdict is wrong with probability at most the larger. Random are the draws; assumed is
    that they are independent Gaussian noise, and that the model's output for an input does not depend on the other
    inputs in its batch: a few inputs are asked beside several neighbours, and a model that minds them is refused. The
    proof is in :mod:`certcal.smoothing._sequential`. Samples that are not clear after ``budget`` draws are UNDECIDED.

    Draws are numbered per sample and looks are at fixed numbers of them, so the result does not depend on the batch
    size or on the other samples. The draws are those of :func:`certcal.smoothing.sample` with the same seed: choose
    another seed if the radius was chosen after looking at such a run.

    Parameters
    ----------
    model
        See :func:`certcal.models.wrap`.
    inputs, labels
        Samples and their true classes.
    sigma
        Standard deviation of the noise.
    radius
        The radius in question, >= 0.
    budget
        Most counting draws per sample.
    alpha, alpha_below
        See above. ``alpha_below`` is ``alpha`` unless given.
    n0
        Draws that choose the class, apart from the others.
    seed
        Of the noise.
    noise
        "gaussian", or "exact" for inputs on k/255.
    batch
        Inputs per call of the model.
    block
        Looks are at multiples of this many draws.
    progress
        Called after each look with the number of samples decided and the draws made so far.

    Examples
    --------
    >>> class Sign:  # predicts class 1 right of zero; the radius of a point is its distance from zero
    ...     outputs = "probabilities"
    ...
    ...     def __call__(self, batch):
    ...         right = (batch[:, 0] > 0).astype(np.float64)
    ...         return np.stack([1 - right, right], axis=1)
    >>> decisions = decide(Sign(), [[1.0], [0.2], [-1.0]], [1, 1, 1], sigma=0.5, radius=0.5)
    >>> decisions.verdict.tolist(), decisions.draws.tolist(), decisions.correct.tolist()
    (['above', 'below', 'above'], [200, 200, 100], [True, True, False])
    """
    from certcal.smoothing._probe import check_rows, noisy_inputs, spread
    from certcal.smoothing._sampler import Sampler

    points = to_numpy(inputs, "inputs")
    truth = np.atleast_1d(to_numpy(labels, "labels"))
    if points.ndim < 2:
        raise InputError(f"inputs has shape {points.shape}; pass one row of coordinates per sample")
    same_length(inputs=points.shape[0], labels=truth.size)
    if truth.dtype.kind not in "iu" or truth.ndim != 1:
        raise InputError(f"labels has shape {truth.shape} and dtype {truth.dtype}; pass one whole number per sample")
    setting = _setting(model, sigma, radius, budget, alpha, alpha_below, n0, seed, noise, block)
    # One threshold: confidences are not asked for, and a histogram of two cells costs nothing.
    sampler = Sampler(model, sigma=setting.sigma, seed=setting.seed, noise=noise, thresholds=[0.5], batch=batch)
    index = np.arange(points.shape[0], dtype=np.int64)
    predicted = sampler.select(points, index, setting.n0).votes.argmax(axis=1).astype(np.int64)
    tried = points[spread(len(points))]
    check_rows(model, noisy_inputs(tried, sigma=setting.sigma, seed=setting.seed, noise=noise), sampler.batch)
    draws, votes, invalid = (np.zeros(index.size, np.int64) for _ in range(3))
    verdict = np.full(index.size, UNDECIDED, dtype="<U9")
    open_ones, start = index, 0
    for stop in looks(setting.budget, setting.block):
        tally = sampler.count(points[open_ones], open_ones, predicted[open_ones], start, stop)
        votes[open_ones] += tally.votes
        invalid[open_ones] += tally.invalid
        draws[open_ones] = stop
        verdict[open_ones] = verdicts(
            votes[open_ones],
            stop,
            radius=setting.radius,
            sigma=setting.sigma,
            alpha=setting.alpha,
            alpha_below=setting.alpha_below,
            budget=setting.budget,
        )
        open_ones, start = index[verdict == UNDECIDED], stop
        if progress is not None:
            progress(index.size - open_ones.size, int(draws.sum()))
        if open_ones.size == 0:
            break
    return Decisions(setting, index, truth.astype(np.int64), predicted, verdict, draws, votes, invalid)


def _setting(
    model: Model,
    sigma: float,
    radius: float,
    budget: int,
    alpha: float,
    alpha_below: float | None,
    n0: int,
    seed: int,
    noise: str,
    block: int,
) -> DecisionSetting:
    """The arguments, checked."""
    if radius != 0:
        radius = positive(radius, "radius")
    alpha = failure_probability(alpha, "alpha")
    return DecisionSetting(
        radius=float(radius),
        sigma=positive(sigma, "sigma"),
        noise=noise,
        alpha=alpha,
        alpha_below=alpha if alpha_below is None else failure_probability(alpha_below, "alpha_below"),
        budget=whole_number(budget, 1, 2**31 - 1, "budget", "pass the most draws per sample, at least 1"),
        n0=whole_number(n0, 1, 2**31 - 1, "n0", "pass the number of draws that choose the class, at least 1"),
        block=whole_number(block, 1, 2**31 - 1, "block", "pass a number of draws, at least 1"),
        seed=whole_number(seed, 0, 2**64 - 1, "seed", "pass a whole number from 0 to 2**64 - 1"),
        model=str(getattr(model, "description", type(model).__name__)),
    )
