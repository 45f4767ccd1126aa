"""Certified maps at several trade-offs, from one look at the samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from certcal._checks import InputError, choice
from certcal.calibrators._certified_isotonic import CertifiedIsotonic
from certcal.calibrators._certified_map import CertifiedMap
from certcal.calibrators._certified_parametric import CertifiedBeta, CertifiedTemperature
from certcal.calibrators._points import Parts, check_tradeoff
from certcal.calibrators._samples import CertifiedSamples

_KINDS: dict[str, Callable[[float], CertifiedMap]] = {
    "isotonic": CertifiedIsotonic,
    "temperature": CertifiedTemperature,
    "beta": CertifiedBeta,
}
METHODS = tuple(_KINDS)
TRADEOFFS = (0.0, 0.25, 0.5, 0.75, 1.0)


def certified_path(
    samples: CertifiedSamples,
    tradeoffs: Sequence[float] = TRADEOFFS,
    *,
    method: str = "isotonic",
    radius_weight: Sequence[float] | None = None,
) -> tuple[CertifiedMap, ...]:
    """The best map of a family for each trade-off between the clean and the certified Brier score.

    The samples are checked and sorted once. With "isotonic", as λ grows the clean Brier score on them does not fall and
    the certified one does not rise; the pairs of scores lie on a convex curve, and no monotone map is below it: the set
    of pairs that monotone maps reach, with everything above them, is convex, because both scores are convex in the map.
    The maps at λ = 0 and λ = 1 are best in one score, and others that share it may be better in the second. For the
    families with parameters the order holds up to the gaps of their searches, and the curve need not be convex.

    Parameters
    ----------
    samples
        To fit to.
    tradeoffs
        λ from 0 to 1, in any order.
    method
        "isotonic" (all monotone maps), "temperature" or "beta" (families with one and two parameters).
    radius_weight
        Weights of the radii, equal when not given.

    Examples
    --------
    >>> lower, upper, correct = [0.1, 0.4, 0.7, 0.8], [0.3, 0.6, 0.9, 0.95], [0, 1, 0, 1]
    >>> samples = CertifiedSamples.from_intervals(lower, upper, correct, [0.2, 0.5, 0.8, 0.9])
    >>> [each.transform([0.5]).round(3).item() for each in certified_path(samples, [0, 0.5, 1])]
    [0.5, 0.667, 0.667]
    """
    kind = _KINDS[choice(method, METHODS, "method")]
    levels = [check_tradeoff(level) for level in tradeoffs]
    if not levels:
        raise InputError("tradeoffs is empty; pass at least one number from 0 (clean) to 1 (certified)")
    parts = Parts.of(samples, radius_weight)
    return tuple(kind(level)._fit_parts(parts) for level in levels)  # pyright: ignore[reportPrivateUsage]
