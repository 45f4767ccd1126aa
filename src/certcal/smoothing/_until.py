"""Draw until a claim about the data set is certified, or cannot be; draws go to the samples that the claim waits for.

**What is random, and what is fixed.** Random are the noise draws. Data, classes (chosen by draws of their own), seed,
radius, requirement and the *rungs* n_1 < … < n_J, the only numbers of draws at which a sample is looked at, are fixed
beforehand. α is split: a quarter for predictions, a quarter for intervals, half for sums.

**Intervals: why looking is free.** Sample i has one stream of draws. At rung j its prediction and interval are those of
a fixed design with n_j draws, at the (NJ)-th part of their shares: functions of the first n_j draws of its stream. By
the union bound none is wrong, for any sample at any rung, except with those shares. Who is drawn next, and when to
stop, only decides how far each stream is read; whatever was read is right. A sample has the intersection of its
intervals so far.

**Sums: why less is needed for the claim than for each sample.** For signs s the worst case is Σ g_i(s), in which a
correct sample whose lower end l_i lies in a bin of sign + stands with 1 - l_i. Its g_i(s) is also at most 1 - L_i, L_i
being what l_i bounds, so the sum over such samples may be lowered by Σ (L_i - l_i); incorrect samples with their upper
ends and sign - likewise. That is a *sum of independent samples*, which is known far better than its terms. As in
``_tangent``, L_i >= c_i + E W_i with tangents laid by the draws so far. Before fresh draws of some samples (one rung
more) are made, these samples, their tangents, bins and ends, and a rate λ in (0, 1) are fixed: a stake. With m_i fresh
draws, scale b >= e_i/m_i for e_i the earlier mean of W_i, and Y = W_i(X)/(m_i b), η = e_i/(m_i b): since
exp(λξ - ψξ²) <= 1 + λξ for ξ >= -1 and ψ = -ln(1 - λ) - λ (Fan, Grama and Liu 2015), and ξ = Y - η >= -1,

    E exp(λ(Y - η) - ψ(Y - η)²) <= 1 + λ(E Y - η) <= exp(λ(E Y - η)),

so the product of exp(λ(Y - E Y) - ψ(Y - η)²) over all fresh draws, which are independent given the past, has
expectation at most 1. By Markov's inequality Σ E W_i falls below the sum of the fresh means by more than
b (ln(1/a) + ψ Σ (Y - η)²)/λ with probability at most a, given the past. There is one such sum for each choice of signs
of the bins in which the staked samples are, so a is a part of that; and at most ATTEMPTS stakes, each with its part.

**Which samples the claim is about.** A claim on certified samples could be met by certifying few. So one that is
neither certified nor refuted (its votes show that it cannot be certified at the radius) nor at the last rung is *open*,
and counts as anything: of free confidence and correctness. Drawing ends when the claim holds with the open samples and
without them.

**When it cannot hold.** Whatever the number of draws, a valid bound is not below the worst case over the intervals
[L_i, 1 - L_i'] that certificates estimate. Clopper-Pearson limits of the survival from the *other* side, at each
threshold, bound L_i from above and so the interval from inside, at the same levels. For signs s whatsoever the worst
case is at least Σ g_i(s), and the least g_i(s) over all intervals that these limits allow is attained where the two
limits are, or, where they leave the order open, at a point between them. A sample that is not certified yet may join
or not, whichever helps (of all samples: it may become certified). If that sum is still above the limit, no draws will
do, except with the share of intervals.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certcal.binning import assign, edges_for
from certcal.bounds import clopper_pearson
from certcal.claims import Ledger, move_outward
from certcal.smoothing._bands import HistogramRows, Side, survival_counts, tight_above
from certcal.smoothing._certificates import Certificates, certificates, certified_radii, equal_part
from certcal.smoothing._counts import Counts
from certcal.smoothing._kinds import KINDS, equal_draws
from certcal.smoothing._tangent import lines
from certcal.worst_case.steering import relieved_error

if TYPE_CHECKING:
    from certcal.data import Inputs
    from certcal.smoothing._sampled_until import UntilSetting
    from certcal.smoothing._sampler import Sampler

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

# Rungs grow by half from the first.
FIRST = 261
# How α is shared, and how often fresh draws may be staked on the sums.
SPLIT, ATTEMPTS = {"prediction": 1, "intervals": 1, "sums": 2}, 8
# What the sums of a sample's few hundred terms may be off by.
ROUNDING = 1e-9
# Stakes are planned for so much more variation than was seen.
CAUTION = 2.0
# A round of drawing: so many draws, or a sixteenth of those so far.
ROUND, SHARE = 1024, 16
# Whether the claim can hold at all is asked whenever draws have grown by a quarter.
PATIENCE = 1.25
# Samples whose inputs are read at a time.
PART = 1000


def rungs(budget: int) -> Rows:
    """Numbers of draws, each half as many again as the last, up to the budget."""
    found: list[int] = []
    now = FIRST
    while now < budget:
        found.append(now)
        now = -(-3 * now // 2)
    return np.array([*found, budget])


def scaled(histogram: Any, n: Any) -> Rows:
    """Histograms of n draws with nearly the same shares: what further draws will look like, as far as one can tell."""
    total = np.cumsum(histogram, axis=1, dtype=np.int64)
    return np.diff((total * np.reshape(n, (-1, 1)) * 2 + total[:, -1:]) // (2 * total[:, -1:]), axis=1, prepend=0)


def gains(lower: Floats, upper: Floats, correct: Any, signs: Any, edges: Floats, closed: str) -> Floats:
    """The best that each sample can do for Σ_m s_m S_m inside its interval (g_n(s) of docs/worst-case.md)."""
    low, high, bins = assign(lower, edges, closed), assign(upper, edges, closed), np.arange(len(signs))
    following = np.minimum.accumulate(np.where(signs > 0, bins, bins.size)[::-1])[::-1]
    preceding = np.maximum.accumulate(np.where(signs < 0, bins, -1))
    plus, minus = following[low], preceding[high]
    right = np.where(plus <= high, 1 - np.maximum(lower, edges[np.minimum(plus, bins.size)]), upper - 1)
    wrong = np.where(minus >= low, np.minimum(upper, edges[minus + 1]), -lower)
    return np.where(correct, right, wrong)


class Standing(NamedTuple):
    """What is certified: the value that is held against the limit, of the certified alone, and the signs behind it."""

    value: float
    certified: float
    signs: NDArray[np.int8]


class Stake(NamedTuple):
    """What fresh draws of some samples are asked for, fixed before they are drawn.

    Sample i says L_i >= offset + E W_i, and W is ``worth`` in each cell. ``expected`` and ``spread`` are mean and
    variance of W before, ``loss`` what it costs on average that tangents touch where few draws say.
    """

    rows: Rows
    offset: Floats
    worth: Floats
    expected: Floats
    spread: Floats
    loss: Floats
    fresh: Rows
    nats: float

    def deviation(self, squares: Floats) -> float:
        """How much less than the sum of the means of the fresh draws the sum of their expectations may be.

        ``squares`` are the samples' sums of (W - expected)² over the fresh draws. Any scale of at least expected/fresh
        and any rate in (0, 1) will do, if they are fixed before; these are safe where no draw ever differed.
        """
        scale = float((self.expected / self.fresh).max(initial=1e-12))
        predicted = float((self.spread / self.fresh).sum()) / scale**2
        x = math.sqrt(2 * self.nats / max(predicted, 1e-12))
        rate = min(x / (1 + x), 0.95)
        seen = float((squares / self.fresh**2).sum()) / scale**2
        return scale * (self.nats + (-math.log1p(-rate) - rate) * seen) / rate + ROUNDING * self.rows.size


class Climb:
    """The samples: how many draws each has, and what is known about it, which only ever becomes more."""

    def __init__(self, asked: UntilSetting, sampler: Sampler, data: Inputs, predicted: Rows) -> None:
        from scipy.special import ndtr

        n = len(data)
        self.asked, self.sampler, self.data, self.predicted = asked, sampler, data, predicted
        self.correct = predicted == data.labels
        self.kind, self.p0 = KINDS[asked.confidence], float(ndtr(asked.radius / asked.sigma))
        self.sizes = rungs(asked.n)
        self.ledger = Ledger(asked.alpha).split(**SPLIT)
        spent = dict(self.ledger.entries)
        self.levels = {name: equal_part(spent[name], n * self.looks) for name in ("prediction", "intervals")}
        self.levels["sums"] = equal_part(spent["sums"], ATTEMPTS)
        self.attempts = 0
        self.rung = np.full(n, -1)
        self.votes, self.invalid = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self.histogram = np.zeros((n, sampler.thresholds.size + 1), np.int64)
        self.radii, self.refuted = np.full(n, np.nan), np.zeros(n, np.bool_)
        self.lower, self.upper = np.zeros(n), np.ones(n)

    @property
    def looks(self) -> int:
        """How often a sample may be looked at."""
        return self.sizes.size

    @property
    def draws(self) -> Rows:
        """Counted draws per sample."""
        return self.sizes[self.rung]

    @property
    def unfinished(self) -> NDArray[np.bool_]:
        """Who has fewer than all n draws."""
        return self.rung + 1 < self.sizes.size

    @property
    def certified(self) -> NDArray[np.bool_]:
        """Whose prediction is certified at the radius; NaN is no radius."""
        return self.radii >= self.asked.radius

    @property
    def open(self) -> NDArray[np.bool_]:
        """Who is neither certified nor refuted, and may still be drawn."""
        return ~self.certified & ~self.refuted & self.unfinished

    # --- drawing and looking

    def climb(self, rows: Rows) -> None:
        """One rung more for these samples."""
        at = self.rung[rows]
        for rung in np.unique(at):
            chosen = rows[at == rung]
            for some in np.array_split(chosen, -(-chosen.size // PART)):
                start = 0 if rung < 0 else int(self.sizes[rung])
                points, classes = self.data.inputs[some], self.predicted[some]
                tally = self.sampler.count(points, some, classes, start, int(self.sizes[rung + 1]))
                self.votes[some] += tally.votes
                self.invalid[some] += tally.invalid
                self.histogram[some] += tally.histogram
                self.rung[some] += 1

    def counts(self, rows: Rows, n: int | None = None) -> Counts:
        """Counts at the samples' rungs; or what n draws would be with the same shares."""
        histogram, draws, votes = self.histogram[rows], self.draws[rows], self.votes[rows]
        if n is not None:
            histogram, votes, draws = scaled(histogram, n), votes * n // draws, np.full(rows.size, n)
        about = rows, self.data.labels[rows], self.predicted[rows], draws, votes, self.invalid[rows]
        return Counts(self.sampler.thresholds, self.asked.sigma, *about, histogram, self.asked.noise)

    def look(self, rows: Rows) -> None:
        """What the draws of these samples show at their rungs."""
        counts = self.counts(rows)
        self.radii[rows] = np.fmax(self.radii[rows], certified_radii(counts, self.levels["prediction"]))
        lower, upper = self.kind(counts, self.asked.radius, self.levels["intervals"])
        low, high = np.maximum(self.lower[rows], lower), np.minimum(self.upper[rows], upper)
        crossed = low > high  # one of them is wrong; any that is inside [0, 1] will do
        self.lower[rows], self.upper[rows] = np.where(crossed, lower, low), np.where(crossed, upper, high)
        most = clopper_pearson(counts.votes, counts.draws, equal_part(self.asked.alpha, self.looks), side="upper").upper
        self.refuted[rows] = (self.refuted[rows] | (np.asarray(most) < self.p0)) & ~self.certified[rows]

    # --- the claim

    def standing(self, found: Certificates | None = None, relief: Floats | None = None, less: float = 0.0) -> Standing:
        """The calibration error of the certified samples, also with those that are open free; here, or as found.

        ``relief`` is what is known beside the intervals in sums, except for ``less``.
        """
        asked, source = self.asked, self if found is None else found
        certified = source.certified
        shown = certified | self.open | (asked.samples == "all")
        if not certified.any():
            return Standing(1.0, 1.0, np.ones(asked.bins, np.int8))
        some = (source.lower[shown], source.upper[shown], self.correct[shown], certified[shown])
        known = np.zeros(int(shown.sum())) if relief is None else relief[shown]
        worst = relieved_error(*some, known, asked.bins, asked.closed)
        alone = worst.certified + less / int(certified.sum())
        whole = worst.everyone + less / int(shown.sum())
        value = whole if asked.samples == "all" else max(alone, whole)
        value, alone = (min(1.0, move_outward(each, "upper", 1e-15)) for each in (value, alone))
        return Standing(value, alone, worst.signs)

    def certificates(self) -> Certificates:
        """What is certified of each sample; of those that are not, nothing."""
        a, certified = self.asked, self.certified
        lower, upper = np.where(certified, self.lower, 0.0), np.where(certified, self.upper, 1.0)
        rest = (self.radii, a.radius, a.alpha, self.ledger, a.confidence, True, a.noise)
        return Certificates(lower, upper, self.correct, certified, np.isnan(self.radii), *rest, anytime=True)

    def stake(self, rows: Rows) -> Stake:
        """What to ask fresh draws of certified samples: tangents that touch where their draws so far are."""
        from scipy.special import ndtri

        asked, counts, fresh = self.asked, self.counts(rows), self.sizes[self.rung[rows] + 1] - self.draws[rows]
        (offset, loss), worth = np.empty((2, rows.size)), np.empty(counts.histogram.shape)
        r = asked.radius / asked.sigma
        for flip in (False, True):  # correct samples are at their lower end, incorrect ones at their upper end
            side, own = Side.of(counts.thresholds, flip), self.correct[rows] != flip
            above = survival_counts(counts.histogram[own], side)[:, ::-1]
            q = (above + 0.5) / (counts.draws[own, None] + 1)
            slope, intercept = lines(q, r)
            offset[own] = intercept @ side.widths
            bend = slope * r * np.sqrt(2 * np.pi) * np.exp(ndtri(q) ** 2 / 2)
            loss[own] = (bend * q * (1 - q)) @ side.widths / (2 * counts.draws[own])
            steps = np.cumsum(np.pad(slope * side.widths, ((0, 0), (1, 0))), axis=1)
            worth[own] = steps[:, ::-1] if flip else steps
        expected = (counts.histogram * worth).sum(axis=1) / counts.draws
        spread = (counts.histogram * (worth - expected[:, None]) ** 2).sum(axis=1) / counts.draws
        # One event for each choice of signs of the bins in which these samples are.
        edges, ends = edges_for(asked.bins, None), np.where(self.correct, self.lower, self.upper)[rows]
        nats = math.log(1 / self.levels["sums"]) + math.log(2) * np.unique(assign(ends, edges, asked.closed)).size
        return Stake(rows, offset, worth, expected, spread, loss, fresh, nats)

    def relieved(self, stake: Stake, means: Floats, squares: Floats, base: Floats) -> Standing:
        """The standing with what fresh draws say, or may be expected to."""
        relief = np.zeros(self.rung.size)
        relief[stake.rows] = stake.offset + means - base[stake.rows]
        return self.standing(None, relief, stake.deviation(squares))

    @property
    def ends(self) -> Floats:
        """Lower ends of correct samples; 1 - the upper ends of the others."""
        return np.where(self.correct, self.lower, 1 - self.upper)

    def plan(self, met: Callable[[float], bool]) -> Stake | None:
        """The cheapest stake that may be expected to meet the claim: those first that promise most per draw."""
        rows = np.flatnonzero(self.certified & self.unfinished)
        if not rows.size or self.attempts == ATTEMPTS:
            return None
        whole = self.stake(rows)
        promised = whole.offset + whole.expected - self.ends[rows]
        order = np.argsort(-promised / whole.fresh, kind="stable")[: int(np.count_nonzero(promised > 0))]
        for part in (0.25, 0.5, 0.75, 1.0):
            chosen = np.sort(rows[order[: math.ceil(part * order.size)]])
            if chosen.size:
                stake = self.stake(chosen)
                squares = stake.spread * stake.fresh * CAUTION
                if met(self.relieved(stake, stake.expected, squares, self.ends).value):
                    return stake
        return None

    def attempt(self, stake: Stake) -> Standing:
        """Draw what was staked, and what that shows; the samples' intervals stay those of the stake."""
        self.attempts += 1
        before, base = self.histogram[stake.rows], self.ends
        self.climb(stake.rows)
        fresh = self.histogram[stake.rows] - before
        means = (fresh * stake.worth).sum(axis=1) / stake.fresh
        squares = (fresh * (stake.worth - stake.expected[:, None]) ** 2).sum(axis=1)
        return self.relieved(stake, means, squares, base)

    def chosen(self, limit: float) -> Rows:
        """Samples whose next rung promises most per draw, enough for a round."""
        from scipy.special import rel_entr

        rows = np.flatnonzero(~self.refuted & self.unfinished)
        if not rows.size:
            return rows
        whole, draws = self.stake(rows), self.draws[rows]
        reached = whole.offset + whole.expected
        # Votes decide after about ln(1/level) / KL(share, p0) draws; one that is refuted leaves with its place.
        share = (self.votes[rows] + 0.5) / (draws + 1)
        nats = rel_entr(share, self.p0) + rel_entr(1 - share, 1 - self.p0)
        needed = -np.log(self.levels["prediction"]) / np.maximum(nats, 0.5 / draws)  # half a nat is chance
        deciding = np.where(share > self.p0, reached, 1 - limit) / np.maximum(needed - draws, whole.fresh)
        # Half of the draws more takes a third of the loss away, and nearly as much of the deviation.
        slack = whole.loss + whole.deviation(whole.spread * whole.fresh) / rows.size
        score = np.where(self.open[rows], deciding, slack / (3 * whole.fresh))
        order = np.argsort(-score, kind="stable")
        enough = max(ROUND, int(self.draws.sum()) // SHARE)
        return np.sort(rows[order[: 1 + int(np.searchsorted(np.cumsum(whole.fresh[order]), enough))]])

    # --- what no draws can change, and what a fixed design would have needed

    def within_reach(self, signs: Any) -> float:
        """A proved lower bound of the calibration error that can be certified with any number of draws."""
        asked, rows = self.asked, np.flatnonzero(~self.refuted | (self.asked.samples == "all"))
        if not rows.size:
            return 0.0
        counts, inner = self.counts(rows), np.empty((2, rows.size))
        for flip in (False, True):
            side = Side.of(counts.thresholds, flip)
            for _, same in equal_draws(counts):
                held = (counts.histogram[same], counts.index[same], side, asked.radius / asked.sigma)
                inner[int(flip), same] = tight_above(HistogramRows(*held, self.levels["intervals"] / 2))
        low, high = inner[0], 1 - inner[1]
        ends = (np.minimum(low, high), np.maximum(low, high), self.correct[rows])
        edges = edges_for(asked.bins, None)
        inside, between = (gains(*ends, sign * np.asarray(signs), edges, asked.closed) for sign in (1, -1))
        worth = np.where(low <= high, inside, -between)
        may_leave = ~self.certified[rows] & (asked.samples == "certified")
        total, n = worth[~may_leave].sum(), int(np.count_nonzero(~may_leave))
        bottom, top = 0.0, 1.0
        for _ in range(40):  # what is left above a value falls in it
            value = (bottom + top) / 2
            above = total - value * n + np.minimum(worth[may_leave] - value, 0).sum()
            bottom, top = (value, top) if above > 0 else (bottom, value)
        return max(0.0, bottom - 1e-9)

    def fixed_design(self, met: Callable[[float], bool]) -> int | None:
        """Draws per sample with which a fixed design would meet the claim, by the shares seen here; None: above n.

        To within two per cent. It has an interval for each sample at all of its α, and knows which are refuted.
        """
        a, rows = self.asked, np.arange(self.rung.size)

        def enough(n: int) -> bool:
            found = certificates(self.counts(rows, n), a.radius, a.alpha, a.confidence, familywise=True)
            return met(self.standing(found).value)

        low, high = 1, a.n
        if not enough(high):
            return None
        while high - low > max(1, high // 50):
            middle = round((low * high) ** 0.5)
            low, high = (low, middle) if enough(middle) else (middle, high)
        return high


def draw(
    samples: Climb, met: Callable[[float], bool], limit: float, tell: Callable[[int], None]
) -> tuple[str, Standing]:
    """Draw until the claim is met ("holds"), cannot be ("cannot"), or all draws that may help are made ("spent")."""
    rows = np.arange(samples.rung.size)
    samples.climb(rows)
    asked_at = 0.0
    while True:
        samples.look(rows)
        spent = int(samples.draws.sum())
        tell(spent)
        now = samples.standing()
        if met(now.value):
            return "holds", now
        stake = samples.plan(met)
        if stake is not None:
            rows, found = stake.rows, samples.attempt(stake)
            if met(found.value):
                return "holds", found
            continue
        rows = samples.chosen(limit)
        if spent >= asked_at or not rows.size:
            if not met(samples.within_reach(now.signs)):
                return "cannot", now
            asked_at = PATIENCE * spent
        if not rows.size:
            return "spent", now
        samples.climb(rows)
