"""At which radii one run certifies more than another, beyond sampling error.

*The same samples.* At one radius count the samples that only the first certifies, and those that only the second does.
If the first certified no more in the population, one of these would be the first's with probability at most 1/2: an
exact sign test. *Other samples*: given how many are certified of both together, those of the first are hypergeometric
if the two certify equally much, and fewer if it certifies less (Fisher, 1935).

Each pair of runs and each radius has two such tests, one for either being ahead, and all of a graph share its level by
Holm (1979), whatever they have to do with each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from certcal._base.json import PlainValues
from certcal.claims import short_text

# Room for rounding in the distribution functions, relative.
_ROOM = 1e-9
# Radii that a sentence lists.
_LISTED = 3


@dataclass(frozen=True)
class AccuracyDifference(PlainValues, kind="difference of certified accuracies", more="ahead"):
    """How many samples two runs certify at one radius, and whether the difference is beyond sampling error.

    What is random: the samples, and their noise. What is assumed: independent samples of one population; networks,
    radii and level fixed before looking. What is claimed: where someone is ``ahead``, it certifies a larger share of
    new samples with as many noise samples at its alpha; all differences of a graph together, except with probability
    ``level``. Not claimed: anything about how the networks were trained.
    """

    first: str
    second: str
    """Names."""
    sigma: float | None
    """Noise level; None where the two have different ones."""
    radius: float
    certified: tuple[int, int]
    """Samples that are certified."""
    n: tuple[int, int]
    """Samples."""
    alone: tuple[int, int] | None
    """Samples that only the first certifies, and only the second; None where samples are not the same."""
    p: float
    """Of the side that certifies more: the level from which on it is ahead, all tests together."""
    level: float

    @property
    def ahead(self) -> str | None:
        """Who certifies more beyond sampling error."""
        if self.p > self.level:
            return None
        one, other = (count / size for count, size in zip(self.certified, self.n, strict=True))
        return self.first if one > other else self.second

    @property
    def sentence(self) -> str:
        """How many samples each certifies, and who certifies more."""
        counts = " and ".join(
            f"{name} certifies {count:,} of {size:,} samples"
            for name, count, size in zip((self.first, self.second), self.certified, self.n, strict=True)
        )
        found = "no more than sampling error" if self.ahead is None else f"{self.ahead} more beyond sampling error"
        return f"At radius {short_text(self.radius, 'lower')}, {counts}: {found}."


def accuracy_differences(
    members: Sequence[tuple[str, float, NDArray[np.bool_]]],
    radii: Sequence[float],
    level: float,
    *,
    pairs: Sequence[tuple[int, int]],
    paired: bool,
) -> tuple[AccuracyDifference, ...]:
    """The differences of some pairs of members at all radii, which hold together except with probability ``level``.

    A member is a name, a noise level, and which samples are certified at which radius: a row per radius, in the
    samples' order.
    """
    found: list[AccuracyDifference] = []
    for i, j in pairs:
        (first, sigma, ours), (second, other, theirs) = members[i], members[j]
        for radius, mine, yours in zip(radii, ours, theirs, strict=True):
            certified, n = (int(mine.sum()), int(yours.sum())), (mine.size, yours.size)
            alone = (int((mine & ~yours).sum()), int((yours & ~mine).sum())) if paired else None
            p = _sign_tail(*alone) if alone is not None else _fisher_tail(certified, n)
            same = sigma if sigma == other else None
            found.append(AccuracyDifference(first, second, same, float(radius), certified, n, alone, p, level))
    return _holm(found)


def _sign_tail(b: int, c: int) -> float:
    """P(Binomial(b + c, 1/2) >= max(b, c)), rounded up."""
    from scipy.stats import binom

    return min(1.0, float(binom.sf(max(b, c) - 1, b + c, 0.5)) * (1 + _ROOM))


def _fisher_tail(certified: tuple[int, int], n: tuple[int, int]) -> float:
    """How probable so large a share of the certified in the run with the larger share is, if the two are equal."""
    from scipy.stats import hypergeom

    ahead = int(certified[1] * n[0] > certified[0] * n[1])
    return min(1.0, float(hypergeom.sf(certified[ahead] - 1, sum(n), sum(certified), n[ahead])) * (1 + _ROOM))


def _holm(found: Sequence[AccuracyDifference]) -> tuple[AccuracyDifference, ...]:
    """With p adjusted for all tests, of which each difference has two."""
    adjusted, least = [1.0] * len(found), 0.0
    for rank, place in enumerate(sorted(range(len(found)), key=lambda place: found[place].p)):
        least = max(least, min(1.0, (2 * len(found) - rank) * found[place].p))
        adjusted[place] = least
    return tuple(replace(each, p=p) for each, p in zip(found, adjusted, strict=True))


def difference_sentences(found: Sequence[AccuracyDifference]) -> tuple[str, ...]:
    """Who certifies more at which radii beyond sampling error, a sentence per pair, those at most radii first."""
    said: list[tuple[int, str]] = []
    for (first, second), group in groupby(found, key=lambda each: (each.first, each.second)):
        members = list(group)
        parts: list[str] = []
        for name, other in ((first, second), (second, first)):
            own = [each for each in members if each.ahead == name]
            if own:
                who = f"{name} certifies more than {other} at" if not parts else f"{name} at"
                parts.append(f"{who} {_radii_text(own, members)}")
        if parts:
            number = sum(each.ahead is not None for each in members)
            said.append((number, f"{', and '.join(parts)}, beyond sampling error."))
    return tuple(text for _, text in sorted(said, key=lambda pair: -pair[0]))


def _radii_text(own: Sequence[AccuracyDifference], members: Sequence[AccuracyDifference]) -> str:
    """The radii, and the clearest difference in samples."""
    clearest = min(own, key=lambda each: each.p)
    ahead = int(clearest.ahead == clearest.second)
    more, fewer = clearest.certified[ahead], clearest.certified[1 - ahead]
    counts = f"{more:,} of {clearest.n[ahead]:,} samples against {fewer:,}"
    if clearest.n[0] != clearest.n[1]:
        counts += f" of {clearest.n[1 - ahead]:,}"
    at = short_text(clearest.radius, "lower")
    if len(own) == 1:
        return f"radius {at} ({counts})"
    where = "every radius" if len(own) == len(members) else f"{len(own)} of {len(members)} radii"
    if len(own) <= _LISTED:
        *most, last = (short_text(each.radius, "lower") for each in own)
        where = f"{', '.join(most)} and {last}"
    return f"{where} (at {at}: {counts})"
