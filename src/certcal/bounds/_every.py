"""All bounds that a question allows, at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from certcal._checks import InputError
from certcal.bounds._binned import binned, binned_lower
from certcal.bounds._bounded_variation import bounded_variation
from certcal.bounds._classwise import classwise
from certcal.bounds._lipschitz import lipschitz
from certcal.bounds._perturb import check_bandwidth, perturb, perturbed_assumption
from certcal.bounds._smooth import smooth
from certcal.claims import Bound


def every_bound(
    confidence: Any,
    correct: Any,
    delta: float = 0.05,
    *,
    bins: int = 15,
    closed: str = "left",
    variation: float = 1.0,
    constant: float | None = None,
    bandwidth: float | None = None,
    seed: int = 0,
    probabilities: Any = None,
    labels: Any = None,
) -> dict[str, Bound]:
    """Every bound that can be had, by the name of its function; those on the true calibration error come first.

    Each holds with probability 1 - delta of its own, so one is to be chosen before looking: that the best of k fails
    has up to k times the probability. With a bandwidth the scores are perturbed first, and every claim is about the
    perturbed ones and says so; their η has the Lipschitz constant 1/2h, whatever the classifier is.

    Parameters
    ----------
    confidence, correct
        Confidence of each prediction, in [0, 1], and whether it is correct, 0 or 1 (binary: score and outcome).
    delta
        Probability with which each bound may fail.
    bins, closed
        Of :func:`binned`.
    variation
        Of :func:`bounded_variation`.
    constant
        Of :func:`lipschitz`, which is left out without it (and without a bandwidth).
    bandwidth
        Perturb the scores by it; adds :func:`smooth`.
    seed
        Of the noise, and of the split of :func:`binned_lower`.
    probabilities, labels
        Also bound each class's own probability, averaged over the classes: names that begin with "classwise_".

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> z = rng.random(10_000)
    >>> found = every_bound(z, rng.random(z.size) < z)
    >>> {name: bound.text for name, bound in found.items()}
    {'bounded_variation': '0.0597', 'binned': '0.0218', 'binned_lower': '0.0000'}
    """
    if bandwidth is not None and (constant is not None or probabilities is not None):
        other = "constant" if constant is not None else "probabilities"
        raise InputError(f"bandwidth and {other} exclude each other; leave one of them out")
    z, found = confidence, dict[str, Bound]()
    if bandwidth is not None:
        h = check_bandwidth(bandwidth)
        z, constant = perturb(confidence, h, seed), 0.5 / h
        found["smooth"] = smooth(z, correct, h, delta)
    each: dict[str, Callable[..., Bound]] = {}
    if constant is not None:
        each["lipschitz"] = partial(lipschitz, constant=constant)
    each["bounded_variation"] = partial(bounded_variation, variation=variation)
    each["binned"] = partial(binned, bins=bins, closed=closed)
    found |= {name: function(z, correct, delta=delta) for name, function in each.items()}
    if found["binned"].n > 1:  # some choose signs, and others test them
        found["binned_lower"] = binned_lower(z, correct, bins, delta, closed=closed, seed=seed)
    if probabilities is not None:
        found |= {
            f"classwise_{name}": classwise(function, probabilities, labels, delta).mean
            for name, function in each.items()
        }
    return found if bandwidth is None else {name: _of_perturbed(bound, bandwidth) for name, bound in found.items()}


def _of_perturbed(bound: Bound, bandwidth: float) -> Bound:
    """The bound with the noise in its own sentence, for those that know of scores only: they may be read alone."""
    noise = perturbed_assumption(bandwidth)
    if noise in bound.assumptions:
        return bound
    return replace(bound, name=f"{bound.name} (of the perturbed scores)", assumptions=(*bound.assumptions, noise))
