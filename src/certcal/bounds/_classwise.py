"""A bound for each class of a probability matrix, all at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from certcal._checks import InputError, class_pair
from certcal.bounds._shared import average_terms, check_delta
from certcal.claims import Bound, Ledger, move_outward


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
    level = check_delta(delta)
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
