"""Whether one model is better than another at every budget, level and radius.

Certified accuracy at (R, N, α) is P(p_A >= p) at one p >= 1/2 that depends on (R/σ, N, α) alone, and every p >= 1/2 is
asked for by some (R, N, α). So at one σ a model is ahead in every setting exactly when its curve P(p_A >= p) is above
the other's for every p >= 1/2. At different σ the same p belongs to different radii; there the certified accuracies at
one budget and level are compared at every radius, and the verdict is about that budget and level only.

A published log does not say which class was chosen where it abstained. Such samples may count for any p below the one
that certifies anything, .505 with 100,000 draws at α = .001, so no two logs can be told apart below it. Where that
alone is open, the verdict is on every p above, and says so.

p_A is estimated by the share of votes, so a verdict is an estimate: new draws may turn it where two curves are close.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from certcal._base.arguments import names_wrong_types
from certcal._base.checks import InputError, whole_number
from certcal._base.json import PlainValues
from certcal.claims import short_text
from certcal.smoothing.robustness.distribution import PaDistribution, steps
from certcal.smoothing.robustness.votes import vote_radii

FIRST, SECOND, NEITHER, EQUAL, UNCLEAR = "first", "second", "neither", "equal", "unclear"

# Stretches that a sentence spells out.
_SPELLED = 2


@dataclass(frozen=True)
class Stretch(PlainValues):
    """Where one curve is above: for p (or R) above ``start`` up to ``stop``, at the first one from ``start`` on."""

    ahead: str
    start: float
    stop: float


@dataclass(frozen=True)
class Dominance(PlainValues, kind="dominance", more="sentence statement assumptions", without="everywhere"):
    """Which of two models is better in every setting, or that neither is.

    Examples
    --------
    >>> from certcal.smoothing.robustness import VoteRecord
    >>> easy = PaDistribution.of(VoteRecord.of([100, 20], 100, [1, 1], sigma=1.0), "trivial")
    >>> even = PaDistribution.of(VoteRecord.of([90, 90], 100, [1, 1], sigma=1.0), "even")
    >>> print(dominance(easy, even).sentence)
    neither trivial nor even dominates: on these samples even is higher for p from 0.5 to 0.9 and trivial for p from 0.9
    to 1.
    """

    first: str
    second: str
    """Names."""
    verdict: str
    """"first" or "second": that curve is nowhere below and somewhere above. "neither": they cross. "equal": the same
    curve. "unclear": what a log leaves open would decide."""
    strict: bool
    """The curve of the better one is above everywhere, not only nowhere below."""
    axis: str
    """"p_A", or "radius" when σ differs."""
    stretches: tuple[Stretch, ...]
    """Where which curve is surely above."""
    draws: int | None = None
    alpha: float | None = None
    """The setting that the verdict is about when σ differs, else None."""
    everywhere: bool = False
    """The curve of the better one is above wherever the two are not both zero."""
    open_below: float | None = None
    """The verdict is about every p (or R) above this, since logs leave open what is below; None if it is about all."""
    unsettled: tuple[Stretch, ...] = ()
    """Of an unclear verdict: where what is printed leaves open who is ahead."""

    @property
    def edge(self) -> tuple[str, str] | None:
        """(better, worse), if one dominates the other."""
        if self.verdict == FIRST:
            return self.first, self.second
        return (self.second, self.first) if self.verdict == SECOND else None

    @property
    def sentence(self) -> str:
        """The verdict, in at most thirty words."""
        in_p = self.axis == "p_A"
        setting = "" if self.alpha is None else f" ({self.draws} draws, alpha {short_text(self.alpha, 'upper')})"
        if self.edge is not None:
            how = "higher" if self.strict else "nowhere lower and somewhere higher"
            what = "P(p_A >= p)" if in_p else "certified accuracy"
            at = f"for every {self._range}{self._open_below_clause}"
            better, worse = self.edge
            verb = "dominates" if self.open_below is None else "is above"
            return f"{better} {verb} {worse}: {what}{setting} is {how} {at} on these samples."
        if self.verdict == EQUAL:
            what = "distribution of p_A" if in_p else f"certified accuracy{setting}"
            both = f"{self.first} and {self.second} have the same {what}"
            return f"{both} for every {self._range}{self._open_below_clause} on these samples."
        if self.verdict == NEITHER:
            return f"neither {self.first} nor {self.second} dominates{setting}: on these samples {self.where}."
        return f"whether {self.first} or {self.second} dominates cannot be told from what the logs print."

    @property
    def _range(self) -> str:
        """For which p or R the verdict holds."""
        symbol = "p" if self.axis == "p_A" else "radius"
        if self.open_below is not None:
            return f"{symbol} >= {just_above(self.open_below)}"
        return "p >= 1/2" if self.axis == "p_A" else symbol

    @property
    def _open_below_clause(self) -> str:
        return "" if self.open_below is None else ", open below,"

    @property
    def statement(self) -> str:
        """The verdict with what it was read off, and what it assumes."""
        return f"{self._full_sentence}; an estimate, since shares of votes stand for p_A."

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions of the verdict."""
        return ("shares of votes stand for p_A",)

    @property
    def _full_sentence(self) -> str:
        in_p = self.axis == "p_A"
        level = "" if self.alpha is None else short_text(self.alpha, "upper")
        curve = "P(p_A >= p)" if in_p else f"certified accuracy (draws = {self.draws}, alpha = {level})"
        always = "in every setting" if in_p else "at every radius"
        if self.verdict in (FIRST, SECOND):
            better, worse = (self.first, self.second) if self.verdict == FIRST else (self.second, self.first)
            how = "higher" if self.strict else "nowhere lower and somewhere higher"
            verb = "dominates" if self.open_below is None else "is above"
            text = f"{better} {verb} {worse}: {curve} is {how} for every {self._range} on these samples"
            if in_p:
                asked = "" if self.open_below is None else " that ask for such a p"
                text += (
                    ", so its certified accuracy as read off these shares is ahead at every radius, number of draws "
                    f"and alpha{asked}"
                )
            else:
                text += "; sigma differs, so other draws may say otherwise"
            return f"{text}{self._open_below_note}"
        if self.verdict == EQUAL:
            what = "distribution of p_A" if in_p else curve
            same = f"{self.first} and {self.second} have the same {what} for every {self._range} on these samples"
            return f"{same}{self._open_below_note}"
        if self.verdict == NEITHER:
            return (
                f"neither {self.first} nor {self.second} is better {always}: by {curve} on these samples, {self.where}"
            )
        surely = f"surely {self.where}" if self.stretches else "they are nowhere surely apart"
        left = [f"{each.start:.5g} to {each.stop:.5g}" for each in self.unsettled]
        if left:
            more = f" and {len(left) - 1} more" if len(left) > 1 else ""
            surely += f", but what is printed leaves {left[0]}{more} open"
        return (
            f"whether {self.first} or {self.second} is better {always} cannot be told from what the logs print: by "
            f"{curve} on these samples, {surely}"
        )

    @property
    def _open_below_note(self) -> str:
        return "" if self.open_below is None else "; below that it is open, since logs do not say what abstained"

    @property
    def where(self) -> str:
        """Which curve is higher where, in words."""
        symbol = "p" if self.axis == "p_A" else "radii"
        text = " and ".join(
            f"{each.ahead} {'is higher ' if i == 0 else ''}for {symbol} from {each.start:.4g} to {each.stop:.4g}"
            for i, each in enumerate(self.stretches[:_SPELLED])
        )
        more = len(self.stretches) - _SPELLED
        return text + (f" (and {more} more {'stretch' if more == 1 else 'stretches'})" if more > 0 else "")


@names_wrong_types
def dominance(first: PaDistribution, second: PaDistribution, *, n: int = 100_000, alpha: float = 0.001) -> Dominance:
    """Compare two distributions of p_A at every p >= 1/2, exactly, in whole numbers of samples.

    Where a log leaves votes open, a curve counts as above only if it is for all votes that fit. If nothing can be told
    but for samples on which a log abstained, the verdict is about the p that these cannot reach.

    Parameters
    ----------
    first, second
        What to compare.
    n, alpha
        The setting at which radii are compared when σ differs; not used otherwise.
    """
    return dominance_table([first, second], n=n, alpha=alpha)[0]


def decide_dominance(
    first: str,
    second: str,
    curves: Sequence[PaDistribution],
    others: Sequence[PaDistribution],
    setting: tuple[int, float] | None = None,
    *,
    open_to: float,
) -> Dominance:
    """The verdict on two methods, each by the highest of its curves: over p >= 1/2, or with a setting over radii."""
    where = (steps if setting is None else radius_steps)(*curves, *others)
    # Whole numbers over one denominator, at every step of any curve.
    whole = math.lcm(*(len(each) for each in (*curves, *others)))
    (a_low, a_high), (b_low, b_high) = _highest(curves, where, whole), _highest(others, where, whole)
    above, below = a_low > b_high, a_high < b_low
    verdict, open_below = _verdict_from_bounds(a_low, a_high, b_low, b_high), None
    told = np.ones_like(above)
    if verdict == UNCLEAR:
        told = where > open_to
        verdict = _verdict_from_bounds(*(count[told] for count in (a_low, a_high, b_low, b_high)))
        open_below = None if verdict == UNCLEAR or told.all() else open_to
    ahead = {FIRST: above, SECOND: below}.get(verdict, np.zeros_like(above))
    stretches = _stretches(above.astype(np.int64) - below.astype(np.int64), where, {1: first, -1: second})
    some = told & ((a_high > 0) | (b_high > 0))
    # What stands between whoever is ahead somewhere and a verdict; where nobody is, whatever is known in part.
    against = (a_low < a_high) | (b_low < b_high)
    if (told & (above | below)).any():
        against = a_low < b_high if (told & above).any() else b_low < a_high
    unsettled = told & against if verdict == UNCLEAR else np.zeros_like(told)
    return Dominance(
        first,
        second,
        verdict,
        bool(ahead[told].all()),
        "p_A" if setting is None else "radius",
        stretches,
        *(setting or (None, None)),
        everywhere=verdict in (FIRST, SECOND) and bool(ahead[some].all()),
        open_below=open_below,
        unsettled=_stretches(unsettled.astype(np.int64), where, {1: ""}, merged=False),
    )


def _verdict_from_bounds(
    a_low: NDArray[np.int64], a_high: NDArray[np.int64], b_low: NDArray[np.int64], b_high: NDArray[np.int64]
) -> str:
    """Verdict on two curves, from the fewest and the most samples that each may have."""
    above, below = a_low > b_high, a_high < b_low
    if above.any() and below.any():
        return NEITHER
    if above.any() and np.all(a_low >= b_high):
        return FIRST
    if below.any() and np.all(b_low >= a_high):
        return SECOND
    exact = np.array_equal(a_low, a_high) and np.array_equal(b_low, b_high)
    return EQUAL if exact and np.array_equal(a_low, b_low) else UNCLEAR


@names_wrong_types
def dominance_table(
    distributions: Iterable[PaDistribution], *, n: int = 100_000, alpha: float = 0.001
) -> tuple[Dominance, ...]:
    """Every pair of several distributions, in the order given.

    Parameters
    ----------
    distributions
        At least two.
    n, alpha
        As in :func:`dominance`.

    Examples
    --------
    >>> from certcal.smoothing.robustness import VoteRecord
    >>> runs = [PaDistribution.of(VoteRecord.of([k], 100, [1], sigma=1.0), str(k)) for k in (99, 90, 70)]
    >>> [(pair.first, pair.second, pair.verdict) for pair in dominance_table(runs)]
    [('99', '90', 'first'), ('99', '70', 'first'), ('90', '70', 'first')]
    """
    several = list(distributions)
    n = whole_number(n, 1, 2**53, "n", "pass the number of draws")
    if len(several) < 2:
        raise InputError("distributions has fewer than two entries; pass at least two to compare")
    # The same for all pairs, so that verdicts follow from each other as orders do.
    one, radii = open_to(several), [convert_to_radii(each, n, alpha) for each in several]
    other = open_to(radii)
    pairs: list[Dominance] = []
    for a, b in combinations(range(len(several)), 2):
        names = several[a].name or "the first", several[b].name or "the second"
        if several[a].sigma == several[b].sigma:
            pairs.append(decide_dominance(*names, [several[a]], [several[b]], open_to=one))
        else:
            pairs.append(decide_dominance(*names, [radii[a]], [radii[b]], (n, alpha), open_to=other))
    return tuple(pairs)


def open_to(curves: Iterable[PaDistribution]) -> float:
    """The largest p or radius that samples on which some log abstained may reach."""
    return max(each.open_to for each in curves)


def just_above(value: float) -> str:
    """Three decimals above a number: what is known from there on."""
    return f"{(math.floor(value * 1000) + 1) / 1000:.3f}"


def convert_to_radii(seen: PaDistribution, n: int, alpha: float) -> PaDistribution:
    """Distribution of the radius that ``n`` draws certify at these shares of votes; -1 where they abstain."""

    def radius(p: NDArray[np.float64]) -> NDArray[np.float64]:
        votes = np.floor(p * n * (1.0 + 4e-16)).astype(np.int64)  # p is itself a rounded quotient of whole numbers
        return np.nan_to_num(vote_radii(np.minimum(votes, n), n, seen.sigma, alpha), nan=-1.0)

    (open_to,) = radius(np.array([seen.open_to]))
    return PaDistribution(seen.name, seen.sigma, radius(seen.low), radius(seen.high), float(open_to))


def radius_steps(*curves: PaDistribution) -> NDArray[np.float64]:
    """Every radius where a certified accuracy may change; beyond the last both are zero."""
    values = [each[each >= 0] for seen in curves for each in (seen.low, seen.high)]
    return np.unique(np.concatenate([*values, [0.0]]))


def _stretches(
    sign: NDArray[np.int64], where: NDArray[np.float64], names: dict[int, str], *, merged: bool = True
) -> tuple[Stretch, ...]:
    """Runs of one sign; a step's value holds from the step before it."""
    found: list[Stretch] = []
    edges = np.flatnonzero(np.diff(sign)) + 1
    for start, stop in zip([0, *edges], [*edges, sign.size], strict=True):
        if sign[start] != 0:
            ahead, begins = names[int(sign[start])], float(where[max(start - 1, 0)])
            if merged and found and found[-1].ahead == ahead:  # only ties in between
                found[-1] = Stretch(ahead, found[-1].start, float(where[stop - 1]))
            else:
                found.append(Stretch(ahead, begins, float(where[stop - 1])))
    return tuple(found)


def _highest(several: Sequence[PaDistribution], where: NDArray[np.float64], whole: int) -> list[NDArray[np.int64]]:
    """The fewest and the most samples of the best of several curves, at each step, out of a common whole."""
    counts = [(each.survival_counts(where), whole // len(each)) for each in several]
    return [np.max([count[end] * times for count, times in counts], axis=0) for end in (0, 1)]
