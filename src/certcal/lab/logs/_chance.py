"""What of two curves of shares of votes is beyond sampling error.

The same samples are in both runs, so the two shares of votes of a sample are a pair. At one p, count the pairs where
only the first share reaches p, and those where only the second does. If P(share >= p) were no higher for the first,
a pair of either kind would be of the first kind with probability at most 1/2: an exact sign test, which samples that
both curves treat alike do not blur.

All p at once cost nothing when they are asked in an order fixed beforehand and the asking stops at the first p without
an answer: for anything wrong to be said, the first p in that order where it is wrong must have been answered wrongly,
and that is one test. Three orders are asked, from 1/2 upwards and from 0.9 in both directions, each for either side of
being ahead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from certcal._base.arguments import names_wrong_types
from certcal._base.checks import InputError, confidences, same_length, share
from certcal._base.json import PlainValues
from certcal.claims import short_text
from certcal.lab.logs._dominance import FIRST, NEITHER, SECOND, Stretch

OPEN = "open"

# Where the asking begins: the p of radius 0, and one at which networks with certified accuracy at large radii differ.
_BEGINNINGS = (0.5, 0.9)
# How many tests may fail: see chance().
_TESTS = 5
# Room for rounding in an incomplete beta function, relative.
_BETA = 1e-10

Values = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True)
class Chance(PlainValues, kind="beyond chance", more="verdict sentence"):
    """Where one of two curves P(share of votes >= p) is higher in the population that the samples came from.

    What is random: which samples were drawn, and their noise. What is assumed: the samples are independent draws from
    one population, the two networks and the level were fixed before looking at them, and each sample has noise of its
    own. What is claimed: all stretches hold for the population, except with probability ``level``. Shares of votes are
    those of as many draws as the runs have, which should be the same number for all: with that many, certified accuracy
    on new samples, at every radius and alpha, is P(share >= p) at some p >= 1/2. Shares of fewer draws are more spread
    out, so that with different numbers one network would differ from itself.

    What is not claimed: anything about p_A, of which a share is a noisy reading. The network whose shares are higher at
    every p may be the lower one in P(p_A >= p) at some p, and at other numbers of draws. It is a statement about two
    networks, not about how they were trained.

    Examples
    --------
    >>> found = chance("a", "b", [0.99] * 40 + [0.2] * 10, [0.8] * 45 + [0.2] * 5, level=0.05)
    >>> found.verdict
    'open'
    >>> print(found.sentence)
    by P(share of votes >= p), a is higher than b for p above 0.8 up to 0.99 beyond the sampling error of these 50
    samples.
    """

    first: str
    second: str
    """Names."""
    stretches: tuple[Stretch, ...]
    """Where who is higher, from 1/2 on or around 0.9; empty if that is open at both."""
    n: int
    """Number of samples."""
    level: float
    """Probability with which any of this may be wrong."""
    draws: int | None = None
    """Number of votes that each share is out of, if it was given."""

    @property
    def verdict(self) -> str:
        """What is sure: "first" or "second" is higher at every p >= 1/2, "neither" as they cross, or else "open"."""
        names = {each.ahead for each in self.stretches}
        if len(names) > 1:
            return NEITHER
        whole = any(each.start <= 0.5 and each.stop >= 1.0 for each in self.stretches)
        return OPEN if not whole else FIRST if self.first in names else SECOND

    @property
    def where(self) -> str:
        """Which curve is higher for which p; empty where nothing is known."""
        return " and ".join(self._stretch_text(each) for each in self.stretches)

    @property
    def measure(self) -> str:
        """Which curves were compared."""
        votes = "votes" if self.draws is None else "1 vote" if self.draws == 1 else f"{self.draws:,} votes"
        return f"by P(share of {votes} >= p)"

    @property
    def sentence(self) -> str:
        """Which differences are beyond sampling error."""
        beyond = f"beyond the sampling error of these {self.n:,} samples"
        if not self.stretches:
            nothing = f"nothing between {self.first} and {self.second} is {beyond}"
            return f"{self.measure}, {nothing}, neither at p = 0.5 nor at p = 0.9."
        crossing = ", so neither is higher at every p" if self.verdict == NEITHER else ""
        return f"{self.measure}, {self.where} {beyond}{crossing}."

    def _stretch_text(self, stretch: Stretch) -> str:
        other = self.second if stretch.ahead == self.first else self.first
        return f"{stretch.ahead} is higher than {other} {_stretch_range(stretch)}"


@names_wrong_types
def chance(
    first: str, second: str, values: Any, others: Any, *, level: float = 0.05, draws: int | None = None
) -> Chance:
    """Where which of two curves P(share of votes >= p) is higher beyond sampling error.

    Why it holds. Let p be fixed, b the number of samples whose first share alone reaches it, and c the same for the
    second. Given b + c, b is binomial with a probability that is at most 1/2 exactly if P(first >= p) <= P(second >=
    p); so P(Binomial(b + c, 1/2) >= b) <= t has probability at most t if the first is not higher at p. Fix an order of
    all p, and say "the first is higher" from its beginning up to where a test at level t fails. If a p is among them
    where it is not, so is the earliest such p (or ones as close to it as one likes), where the test must have passed:
    probability at most t. The sequence up from 1/2 costs t for either side being ahead. Those up and down from 0.9 cost
    2t for one side; but at 0.9 at least one side is not ahead, and for that side both begin with the same wrong test,
    so it costs t. Together 5t, and t is ``level`` / 5. Between two steps of the data b and c do not change, so testing
    at the steps tests at all p.

    Where a share is only known to lie between two values, the lowest of the one and the highest of the other are used:
    other values could only lower the tail.

    Parameters
    ----------
    first, second
        Names.
    values, others
        Shares of votes for the label per sample (zero where the class is wrong), the same samples in the same order; or
        a pair of arrays, the lowest and the highest that fit.
    level
        Probability with which any of the claim may be wrong.
    draws
        Number of votes that each share is out of, for the sentence.
    """
    level = share(level, "level", "pass a probability between 0 and 1")
    a, b = _check_bracket(values, "values"), _check_bracket(others, "others")
    same_length(values=a[0].size, others=b[0].size)
    where = np.unique(np.concatenate([*(each[each >= 0.5] for each in (*a, *b)), _BEGINNINGS, [1.0]]))
    spent = level / _TESTS
    found = [
        *_stretches_around_beginnings(first, _tails(a[0], b[1], where) <= spent, where),
        *_stretches_around_beginnings(second, _tails(b[0], a[1], where) <= spent, where),
    ]
    return Chance(first, second, tuple(sorted(found, key=lambda each: each.start)), a[0].size, level, draws)


def _stretches_around_beginnings(name: str, passed: NDArray[np.bool_], where: NDArray[np.float64]) -> list[Stretch]:
    """Runs of passed tests that contain a beginning; a step's test holds from the step before it."""
    found: dict[Stretch, None] = {}
    for beginning in _BEGINNINGS:
        middle = int(np.searchsorted(where, beginning))
        if passed[middle]:
            last = middle + _run_length(passed[middle:]) - 1
            before = middle - _run_length(passed[: middle + 1][::-1])
            # The first step is 1/2 itself. A stretch that has it begins there; one that does not begins above it.
            start = 0.5 if before < 0 else np.nextafter(where[before], 1.0)
            found[Stretch(name, float(start), float(where[last]))] = None
    return list(found)


def _stretch_range(stretch: Stretch) -> str:
    """The p of a stretch, no wider in print than it is."""
    stop = short_text(stretch.stop, "lower")
    if stretch.start > 0.5:  # a stretch that begins above a step begins with the next float
        return f"for p above {short_text(float(np.nextafter(stretch.start, 0.0)), 'upper')} up to {stop}"
    return f"for p from 0.5 to {stop}" if stretch.stop > 0.5 else "at p = 0.5"


def _check_bracket(values: Any, name: str) -> Values:
    ends = cast("tuple[Any, ...]", values) if isinstance(values, tuple) else (values, values)
    if len(ends) != 2:
        raise InputError(f"{name} has {len(ends)} arrays; pass one array, or the lowest and the highest that fit")
    low, high = (confidences(end, name).astype(np.float64) for end in ends)
    same_length(**{name: low.size, f"{name}, highest": high.size})
    return low, high


def _tails(ahead: NDArray[np.float64], behind: NDArray[np.float64], where: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(Binomial(b + c, 1/2) >= b) at each p, rounded up; 1 where no pair differs."""
    from scipy.special import betainc

    b, c = _count_only_ahead(ahead, behind, where), _count_only_ahead(behind, ahead, where)
    tail = np.asarray(betainc(np.maximum(b, 1), c + 1.0, 0.5), np.float64)
    return np.where(b == 0, 1.0, tail * (1.0 + _BETA))


def _count_only_ahead(
    ahead: NDArray[np.float64], behind: NDArray[np.float64], where: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Number of samples where ``ahead`` reaches p and ``behind`` does not."""
    larger = ahead > behind
    counts = [values[larger] for values in (ahead, behind)]
    reach, both = (each.size - np.searchsorted(np.sort(each), where, side="left") for each in counts)
    return np.asarray(reach - both, np.int64)


def _run_length(passed: NDArray[np.bool_]) -> int:
    """How many are true before the first that is not."""
    return int(passed.size if passed.all() else np.argmin(passed))
