"""Certified accuracy: the share of samples that are predicted correctly under every perturbation up to a radius."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError, correctness, same_length, to_numpy
from certcal.claims import short_text


@dataclass(frozen=True)
class AccuracyCurve:
    """Certified accuracy at several radii, as whole numbers of samples.

    Attributes
    ----------
    name
        Of the run.
    at
        Radii, in increasing order.
    certified
        How many samples are certified and correct at each.
    n
        How many samples there are, abstentions included.

    Examples
    --------
    >>> curve = certified_accuracy([0.3, 0.8, 0.4], [1, 1, 0], at=[0.25, 0.5])
    >>> curve.certified, curve.fractions, curve.texts
    ((2, 1), (Fraction(2, 3), Fraction(1, 3)), ('0.6666', '0.3333'))
    """

    name: str
    at: tuple[float, ...]
    certified: tuple[int, ...]
    n: int

    @property
    def fractions(self) -> tuple[Fraction, ...]:
        """The shares, exactly."""
        return tuple(Fraction(count, self.n) for count in self.certified)

    @property
    def values(self) -> tuple[float, ...]:
        """The shares as floats."""
        return tuple(count / self.n for count in self.certified)

    @property
    def texts(self) -> tuple[str, ...]:
        """The shares as printed: rounded down."""
        return tuple(rounded_down(share) for share in self.fractions)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is claimed at each radius, where each sample's radius holds."""
        return tuple(
            f"{count} of these {self.n} samples ({text}) are predicted correctly under every perturbation of norm up "
            f"to {short_text(radius, 'lower')}, where their certified radii hold."
            for radius, count, text in zip(self.at, self.certified, self.texts, strict=True)
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "type": "certified accuracy",
            "name": self.name,
            "at": list(self.at),
            "certified": list(self.certified),
            "n": self.n,
            "values": list(self.values),
            "texts": list(self.texts),
        }


@dataclass(frozen=True)
class BestCurve:
    """At each radius the highest certified accuracy of several runs, and whose it is.

    Examples
    --------
    >>> small = certified_accuracy([0.3, 0.3, 0.2], [1, 1, 1], at=[0.25, 0.5], name="sigma 0.25")
    >>> large = certified_accuracy([0.7, 0.1, 0.1], [1, 1, 1], at=[0.25, 0.5], name="sigma 1")
    >>> best = best_accuracy([small, large])
    >>> best.names, best.texts
    ((('sigma 0.25',), ('sigma 1',)), ('0.6666', '0.3333'))
    """

    at: tuple[float, ...]
    fractions: tuple[Fraction, ...]
    names: tuple[tuple[str, ...], ...]

    @property
    def values(self) -> tuple[float, ...]:
        """The shares as floats."""
        return tuple(float(share) for share in self.fractions)

    @property
    def texts(self) -> tuple[str, ...]:
        """The shares as printed: rounded down."""
        return tuple(rounded_down(share) for share in self.fractions)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "type": "best certified accuracy",
            "at": list(self.at),
            "values": list(self.values),
            "texts": list(self.texts),
            "names": [list(names) for names in self.names],
        }


def certified_accuracy(radii: Any, correct: Any, at: Any, *, abstained: Any = None, name: str = "") -> AccuracyCurve:
    """Share of samples that are correct and whose certified radius is at least R, for each R.

    Abstained samples are in the denominator and never count, not even at R = 0.

    Parameters
    ----------
    radii
        Certified radius per sample, >= 0; whatever stands where a sample is abstained is not looked at.
    correct
        Is the prediction right?
    at
        Radii R.
    abstained
        Samples that are not certified at all. Default: those whose radius is NaN.
    name
        Of the run.

    Examples
    --------
    >>> certified_accuracy([0.3, 0.0, float("nan")], [1, 1, 1], at=[0]).certified
    (2,)
    """
    r, c, no_claim = check_radii(radii, correct, abstained)
    where = check_at(at)
    reached = np.sort(r[(c == 1) & ~no_claim])
    counts = reached.size - np.searchsorted(reached, where, side="left")
    return AccuracyCurve(name, tuple(where.tolist()), tuple(int(count) for count in counts), r.size)


def best_accuracy(curves: Any) -> BestCurve:
    """At each radius, the best of several curves (usually one per σ); ties name all who reach it.

    Parameters
    ----------
    curves
        Curves of :func:`certified_accuracy` at the same radii.
    """
    several: list[AccuracyCurve] = list(curves)
    if not several:
        raise InputError("curves is empty; pass at least one curve")
    for curve in several:
        if curve.at != several[0].at:
            raise InputError(f"curve {curve.name!r} is at other radii than the first; compute all at the same radii")
    best: list[Fraction] = []
    names: list[tuple[str, ...]] = []
    for shares in zip(*(curve.fractions for curve in several), strict=True):
        best.append(max(shares))
        names.append(tuple(curve.name for curve, share in zip(several, shares, strict=True) if share == max(shares)))
    return BestCurve(several[0].at, tuple(best), tuple(names))


def rounded_down(share: Fraction) -> str:
    """Four decimals of a share, rounded down exactly.

    Examples
    --------
    >>> rounded_down(Fraction(8317, 10000)), rounded_down(Fraction(2, 3))
    ('0.8317', '0.6666')
    """
    whole, rest = divmod(share.numerator * 10_000 // share.denominator, 10_000)
    return f"{whole}.{rest:04d}"


def check_at(at: Any) -> NDArray[np.float64]:
    """Distinct radii >= 0 in increasing order."""
    where = np.atleast_1d(to_numpy(at, "at")).astype(np.float64).reshape(-1)
    if where.size == 0:
        raise InputError("at is empty; pass at least one radius")
    bad = ~(np.isfinite(where) & (where >= 0))
    if bad.any():
        index = int(np.argmax(bad))
        raise InputError(f"at[{index}] is {where[index]:g}; radii are finite numbers >= 0")
    return np.unique(where)


def check_radii(
    radii: Any, correct: Any, abstained: Any
) -> tuple[NDArray[np.float64], NDArray[np.uint8], NDArray[np.bool_]]:
    """Radii, correctness and abstentions of equal length; a radius that counts is finite and not negative."""
    r = np.atleast_1d(to_numpy(radii, "radii")).astype(np.float64)
    if r.ndim != 1 or r.size == 0:
        raise InputError(f"radii has shape {r.shape}; pass one radius per sample")
    c = correctness(correct)
    same_length(radii=r.size, correct=c.size)
    no_claim = np.isnan(r) if abstained is None else correctness(abstained, "abstained", "pass 0 or 1") == 1
    same_length(radii=r.size, abstained=no_claim.size)
    bad = ~no_claim & ~((r >= 0) & (r < np.inf))
    if bad.any():
        index = int(np.argmax(bad))
        raise InputError(f"radii[{index}] is {r[index]:g}; a radius is finite and >= 0 unless the sample is abstained")
    return r, c, no_claim
