"""Whether the certified radius of a sample is above r: draw until that is clear, and no longer.

**What is claimed.** Draws are independent; each is a vote for the class A (fixed beforehand, from other draws) with the
same unknown probability p. The radius in question is R = σΦ⁻¹(p), so "R > r" is "p > p0" with p0 = Φ(r/σ). Votes are
looked at after n_1 < … < n_J draws, fixed beforehand, n_J being the budget. At look j "R > r" is said with at least a_j
votes, "R <= r" with at most b_j; whichever comes first ends the drawing. If p <= p0, "R > r" is said with probability
at most α; if p > p0, "R <= r" is said with probability at most α′. So a verdict is wrong with probability at most
max(α, α′), for one of them is right. R > r is strict: the prediction is A at every distance up to r, r itself included.

**The worst p is p0.** Let U_1, U_2, … be uniform and let draw i be a vote if U_i <= p. With p0 >= p in place of p no
draw loses its vote, so at each look there are as many votes or more. If "R > r" is said with p, at look j, then with p0
there are at least a_j votes at look j, and there were more than b_i at each look i before it, because there were with
p: so "R > r" is said with p0 as well, at look j or earlier. Hence its probability is at most that at p0. The other
verdict is the mirror image: if p > p0, it is at most that at p0.

**Boundaries.** At p0 everything is known before a draw is made. The probability of each number of votes of a sample
that is still undecided goes from look to look by a convolution with a binomial distribution, and what is cut off at a_j
and b_j is the probability of the two verdicts. a_j is the smallest number with which "R > r" has been said with at most
A_j in all, b_j the largest with which "R <= r" has been with at most B_j. B_j is even: α′ j/J. Half of A_j is, and the
other half is for the last look: A_j = α j/(2J), A_J = α. Looks are nearly evenly spaced in log n, so that the price of
not knowing how far p is from p0 is paid in equal parts; and a last look that has half of α left is hardly worse than
the test that only looks there. What whole numbers of votes leave of A_j is there at the next look, so all of α is spent
but for what they leave at the last.

**What "R <= r" means.** More draws would not certify this class at radius r, except with probability α′. It does not
say that an adversarial example exists.

**Rounding.** All terms are positive, so sums and products keep their digits: each probability is off by a part of less
than 10⁻⁶, which the levels give away. Binomial distributions are cut where Bernstein's inequality has less than 10⁻¹⁰
of a level left on either side, and that is spent. Where a convolution is made by Fourier transforms, so is its error.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

ABOVE, BELOW, UNDECIDED = "above", "below", "undecided"

# What rounding may add to a probability, as a part of it; and what is cut off a distribution, as a part of a level.
_ROUNDING, _CUT = 1e-6, 1e-10
# Products of a convolution up to which it is made term by term.
_TERMS = 1 << 27


class Boundaries:
    """Votes at which verdicts are said, at each look, computed as far as somebody looks.

    Examples
    --------
    >>> boundaries = Boundaries(radius=0.0, sigma=1.0, alpha=0.001, budget=1000)
    >>> boundaries.sizes[:3], boundaries.at(100), boundaries.at(1000)
    ([100, 200, 300], (31, 70), (445, 551))
    """

    def __init__(
        self,
        *,
        radius: float,
        sigma: float,
        alpha: float,
        alpha_below: float | None = None,
        budget: int,
        block: int = 100,
    ) -> None:
        from scipy.special import ndtr

        self.sizes = looks(budget, block)
        self._p, self._q = float(ndtr(radius / sigma)), max(float(ndtr(-radius / sigma)), 1e-300)
        below = alpha if alpha_below is None else alpha_below
        self._levels = below * (1 - _ROUNDING), alpha * (1 - _ROUNDING)
        self._nats = math.log(1 / (_CUT * min(alpha, below)))
        self._found: list[tuple[int, int]] = []
        # The distribution of the votes of a sample that is undecided, its first number, and what each side has spent.
        self._alive, self._first, self._spent = np.ones(1), 0, (0.0, 0.0)

    def at(self, draws: int) -> tuple[int, int]:
        """The most votes for "below" and the fewest for "above" after so many draws, at which there is a look."""
        place = self.sizes.index(draws)
        while len(self._found) <= place:
            self._advance()
        return self._found[place]

    def verdicts(self, votes: Any, draws: Any) -> NDArray[np.str_]:
        """What each sample's votes after so many draws say: "above" (R > r), "below" (R <= r) or "undecided"."""
        k, n = np.broadcast_arrays(np.asarray(votes, np.int64), np.asarray(draws, np.int64))
        result = np.full(k.shape, UNDECIDED, dtype="<U9")
        for size in np.unique(n):
            below, above = self.at(int(size))
            result[(n == size) & (k <= below)] = BELOW
            result[(n == size) & (k >= above)] = ABOVE
        return result

    def _advance(self) -> None:
        """Go to the next look."""
        j, last = len(self._found) + 1, len(self.sizes)
        start, stop = (0, *self.sizes)[j - 1 : j + 1]
        lowest, more = binomial(stop - start, self._p, self._q, self._nats)
        alive, lost = convolve(self._alive, more)
        first, lost = self._first + lowest, lost + math.exp(-self._nats)
        below, above = (spent + lost for spent in self._spent)
        # Sums from either end; a boundary is where they are still within what may be spent so far.
        low, high = np.append(0.0, np.cumsum(alive)), np.append(0.0, np.cumsum(alive[::-1]))
        shares = j / last, 1.0 if j == last else j / (2 * last)
        bottom = int(np.searchsorted(low, self._levels[0] * shares[0] - below, side="right")) - 1
        top = int(np.searchsorted(high, self._levels[1] * shares[1] - above, side="right")) - 1
        bottom, top = max(bottom, 0), max(top, 0)
        self._found.append((first + bottom - 1, first + alive.size - top))
        self._spent = below + float(low[bottom]), above + float(high[top])
        self._alive, self._first = alive[bottom : max(bottom, alive.size - top)], first + bottom


def binomial(n: int, p: float, q: float, nats: float) -> tuple[int, Floats]:
    """The probabilities of k = first, first + 1, … successes; outside are less than exp(-nats) on either side."""
    reach = nats / 3 + math.sqrt(nats**2 / 9 + 2 * n * p * q * nats)
    first, last = max(0, math.floor(n * p - reach)), min(n, math.ceil(n * p + reach))
    mode = min(max(int((n + 1) * p), first), last)
    up, down = np.arange(mode, last, dtype=np.float64), np.arange(mode, first, -1, dtype=np.float64)
    above, under = np.cumprod((n - up) / (up + 1) * (p / q)), np.cumprod(down / (n - down + 1) * (q / p))
    found = np.concatenate([under[::-1], [1.0], above])
    return first, found / found.sum()


def convolve(one: Floats, other: Floats) -> tuple[Floats, float]:
    """The distribution of a sum, and what any part of it may be off by, beside a rounding of each number."""
    size = one.size + other.size - 1
    if one.size * other.size <= _TERMS:
        return np.convolve(one, other) if one.size else one, 0.0
    fine = 1 << (size - 1).bit_length()
    found = np.fft.irfft(np.fft.rfft(one, fine) * np.fft.rfft(other, fine), fine)[:size]
    error = 64 * 2.0**-52 * math.log2(fine) * float(np.linalg.norm(one) * np.linalg.norm(other))
    return np.maximum(found, 0.0), size * error


def looks(budget: int, block: int = 100, growth: float = 1.1) -> list[int]:
    """Numbers of draws at which a sample is looked at: multiples of ``block``, each about a tenth above the last."""
    looks: list[int] = []
    now = 0
    while now < budget:
        now = min(budget, max(now + block, -(-int(now * growth) // block) * block))
        looks.append(now)
    return looks
