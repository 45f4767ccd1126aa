"""Several bounds at once: all that a question allows, or one for each class."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from certcal._checks import InputError, class_pair, failure_probability
from certcal.bounds._binned import binned, binned_lower
from certcal.bounds._bounded_variation import bounded_variation
from certcal.bounds._lipschitz import lipschitz
from certcal.bounds._perturb import check_bandwidth, perturb, perturbed_assumption
from certcal.bounds._shared import average_terms
from certcal.bounds._smooth import smooth
from certcal.claims import Bound, Ledger, move_outward


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


@dataclass(frozen=True)
class ClasswiseBounds:
    """One bound per class; all hold together with probability at least 1 - delta, and so does the one on their mean.

    Attributes
    ----------
    classes
        The bound of "probability of class k" against "the label is k", each at level delta/K.
    mean
        The bound on the mean of the K calibration errors, at level delta.
    """

    classes: tuple[Bound, ...]
    mean: Bound

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"classes": [each.to_dict() for each in self.classes], "mean": self.mean.to_dict()}


def classwise(
    bound: Callable[..., Bound], probabilities: Any, labels: Any, delta: float = 0.05, **options: Any
) -> ClasswiseBounds:
    """Apply an upper bound to every class of a probability matrix, at level delta/K each.

    Why: each of the K bounds fails with probability at most delta/K, whatever their dependence, so all of them hold
    together except with probability delta; then the mean of the K errors is at most the mean of the K bounds.

    Parameters
    ----------
    bound
        A function of this module: ``bounded_variation``, ``lipschitz``, ``smooth`` or ``binned``.
    probabilities
        One row per sample, one column per class.
    labels
        True class of each sample, from 0.
    delta
        Probability with which any of the bounds may fail.
    options
        Passed on to the bound.

    Examples
    --------
    >>> import numpy as np
    >>> from certcal.bounds import binned
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1], 10_000)
    >>> y = (p.cumsum(axis=1) < rng.random((10_000, 1))).sum(axis=1)
    >>> found = classwise(binned, p, y, bins=10)
    >>> [each.text for each in found.classes], found.mean.text
    (['0.0196', '0.0242', '0.0233'], '0.0224')
    """
    level = failure_probability(delta, "delta")
    p, y, _ = class_pair(probabilities, labels)
    k = p.shape[1]
    share = Ledger(level).split(**{str(index): 1.0 for index in range(k)}).entries[0][1]
    found = tuple(bound(p[:, index].clip(0, 1), y == index, delta=share, **options) for index in range(k))
    first = found[0]
    if not isinstance(first, Bound):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError("bound gives estimates, which do not hold together; pass a bound, or another form of it")
    if first.side != "upper":
        raise InputError("bound gives lower bounds, whose mean is not shown here; pass an upper bound")
    shared = {
        key: value for key, value in first.settings.items() if all(each.settings.get(key) == value for each in found)
    }
    shared.pop("sum of the terms", None)
    terms = average_terms([each.terms for each in found])
    if any(math.fsum(each.terms.values()) > each.value for each in found):
        shared["sum of the terms"] = "capped at 1 in some classes"
    # Of the values themselves: where one is capped, its terms add up to more.
    value = min(1.0, move_outward(math.fsum(each.value for each in found) / k, "upper"))
    name = f"mean over classes of the {first.name}"
    settings = {"classes": k, **shared}
    mean = Bound(name, value, "upper", level, first.n, first.assumptions, terms, settings)
    return ClasswiseBounds(found, mean)
