"""Several bounds at once: all that a question allows, or one for each class."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.arguments import names_wrong_types
from certcal._base.checks import (
    InputError,
    choice,
    class_pair,
    failure_probability,
    flag,
    function,
    real,
    score_pair,
    whole_number,
)
from certcal._base.json import PlainValues
from certcal.bounds._binned import binned_lower_of, binned_of
from certcal.bounds._bounded_variation import bounded_variation_of
from certcal.bounds._cumulative import ks_of, kuiper_of
from certcal.bounds._lipschitz import lipschitz_of
from certcal.bounds._perturb import check_bandwidth, perturb_scores, perturbed_assumption
from certcal.bounds._shared import average_terms
from certcal.bounds._smooth import FORMS, smooth_of
from certcal.claims import Bound, Ledger, move_outward


def every_bound(
    confidence: Any, correct: Any, delta: float = 0.05, *, joint: bool = False, **options: Any
) -> dict[str, Bound]:
    """Every bound that can be had, by the name of its function; those on the true calibration error come first.

    Each holds with probability 1 - delta of its own, so one is to be chosen before looking: that the best of k fails
    has up to k times the probability. With ``joint`` each spends delta/k, and all of them hold together.

    Parameters
    ----------
    confidence, correct
        Confidence of each prediction, in [0, 1], and whether it is correct, 0 or 1 (binary: score and outcome).
    delta
        Probability with which each bound may fail, or any of them.
    joint
        Whether all hold together with probability 1 - delta.
    options
        Those of :func:`bound_functions`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> z = rng.random(10_000)
    >>> found = every_bound(z, rng.random(z.size) < z)
    >>> {name: bound.text for name, bound in found.items()}
    {'bounded_variation': '0.0502', 'binned': '0.0218', 'binned_lower': '0.0000', 'ks': '0.0168', 'kuiper': '0.0176'}
    """
    level = failure_probability(delta, "delta")
    functions = bound_functions(confidence, correct, **options)
    level = equal_share(level, len(functions)) if flag(joint, "joint") else level
    return {name: function(level) for name, function in functions.items()}


def equal_share(delta: float, parts: int) -> float:
    """What each of so many claims may spend if all are to hold together, rounded down.

    Examples
    --------
    >>> equal_share(0.05, 4)
    0.0125
    """
    parts = whole_number(parts, 1, 10**7, "parts", "pass how many claims share it")
    return (
        Ledger(real(delta, "delta", "pass a probability between 0 and 1"))
        .split(**{str(index): 1.0 for index in range(parts)})
        .entries[0][1]
    )


def bound_functions(
    confidence: Any,
    correct: Any,
    *,
    bins: int = 15,
    closed: str = "left",
    variation: float = 1.0,
    constant: float | None = None,
    bandwidth: float | None = None,
    scale: str = "probability",
    form: str = "direct",
    seed: int = 0,
    probabilities: Any = None,
    labels: Any = None,
    sample_weight: Any = None,
    largest_weight: float | None = None,
) -> dict[str, Callable[[float], Bound]]:
    """The bounds of :func:`every_bound` as functions of the level.

    With a bandwidth the scores are perturbed first, once, and every claim is about the perturbed ones and says so;
    their η has the Lipschitz constant 1/2h, whatever the classifier is.

    Parameters
    ----------
    confidence, correct
        As for :func:`every_bound`.
    bins, closed
        Of :func:`binned`.
    variation
        Of :func:`bounded_variation`.
    constant
        Of :func:`lipschitz`, which is left out without it (and without a bandwidth).
    bandwidth
        Perturb the scores by it; adds :func:`smooth`.
    scale
        Scale of the noise, or of the constant: "probability" or "logit".
    form
        Of :func:`smooth`, :func:`lipschitz` and :func:`bounded_variation`, where they have it. The published form of
        the first is no bound, since its proof has a gap, and is left out.
    seed
        Of the noise, and of the orders of :func:`binned_lower`.
    probabilities, labels
        Also bound each class's own probability, averaged over the classes: names that begin with "classwise_".
    sample_weight, largest_weight
        Of :func:`binned` and :func:`binned_lower`, which are then the only ones.

    Examples
    --------
    >>> functions = bound_functions([0.75] * 400, [1, 1, 1, 0] * 100)
    >>> functions["binned"](0.05).text, functions["binned"](0.01).text
    ('0.0643', '0.0781')
    """
    choice(form, FORMS, "form")
    asked = {"constant": constant, "bandwidth": bandwidth, "probabilities": probabilities, "weights": sample_weight}
    given = [name for name, value in asked.items() if value is not None]
    for first, others in (("bandwidth", ("constant", "probabilities")), ("weights", tuple(asked)[:-1])):
        for other in others:
            if first in given and other in given:
                raise InputError(f"{first} and {other} exclude each other; leave one of them out")
    z, c, w = score_pair(confidence, correct, sample_weight)
    functions: dict[str, Callable[[float], Bound]] = {}
    upper: dict[str, Callable[..., Any]] = {}  # of checked scores, outcomes and a level
    if bandwidth is not None:
        h = check_bandwidth(bandwidth)
        z, constant = perturb_scores(z, h, seed, scale), 0.5 / h
        if form != "published":
            functions["smooth"] = partial(smooth_of, z, c, bandwidth=h, scale=scale, form=form)  # pyright: ignore
    split: dict[str, Any] = {"form": form, "seed": seed} if form == "published" else {}
    if constant is not None:
        upper["lipschitz"] = partial(lipschitz_of, constant=constant, scale=scale, **split)
    if w is None:
        upper["bounded_variation"] = partial(bounded_variation_of, variation=variation, **split)
    options: dict[str, Any] = {"bins": bins, "closed": closed, "w": w, "largest_weight": largest_weight}
    upper["binned"] = partial(binned_of, **options)
    more: dict[str, Callable[..., Any]] = {"binned_lower": partial(binned_lower_of, seed=seed, **options)}
    more |= {"ks": ks_of, "kuiper": kuiper_of} if w is None else {}
    functions |= {name: partial(function, z, c) for name, function in (upper | more).items()}
    if probabilities is not None:
        p, y, _ = class_pair(probabilities, labels)
        functions |= {
            f"classwise_{name}": partial(_mean_over_classes, function, p, y) for name, function in upper.items()
        }
    if bandwidth is None:
        return functions
    return {
        name: partial(_of_perturbed, function, perturbed_assumption(bandwidth, scale))
        for name, function in functions.items()
    }


def _mean_over_classes(bound: Callable[..., Bound], p: NDArray[Any], y: NDArray[np.int64], delta: float) -> Bound:
    return _bound_classes(bound, p, y, failure_probability(delta, "delta")).mean


def _of_perturbed(function: Callable[[float], Bound], noise: str, delta: float) -> Bound:
    """The bound with the noise in its own sentence, for those that know of scores only: they may be read alone."""
    bound = function(delta)
    if noise in bound.assumptions:
        return bound
    return replace(bound, name=f"{bound.name} (of the perturbed scores)", assumptions=(*bound.assumptions, noise))


@dataclass(frozen=True)
class ClasswiseBounds(PlainValues):
    """One bound per class; all hold together with probability at least 1 - delta, and so does the one on their mean."""

    classes: tuple[Bound, ...]
    """The bound of "probability of class k" against "the label is k", each at level delta/K."""
    mean: Bound
    """The bound on the mean of the K calibration errors, at level delta."""


@names_wrong_types
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
    function(bound, "bound", "pass a bound of certcal.bounds, such as binned")
    level = failure_probability(delta, "delta")
    p, y, _ = class_pair(probabilities, labels)
    return _bound_classes(partial(bound, **options), p, y, level)


def _bound_classes(bound: Callable[..., Bound], p: NDArray[Any], y: NDArray[np.int64], level: float) -> ClasswiseBounds:
    k = p.shape[1]
    share = equal_share(level, k)
    outcomes = ((y == index).view(np.uint8) for index in range(k))
    found = tuple(bound(p[:, index].clip(0, 1), hit, delta=share) for index, hit in enumerate(outcomes))
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
