"""How much of the information in confidences survives inside their intervals: the certified Brier score, taken apart.

The place x of a sample is the lower end of its interval where it is correct and the upper end where it is not. Whatever
non-decreasing map g is applied to the confidences, its worst case inside the intervals is at these places: the largest
Brier score of g is CBS(g) = mean (c - g(x))². So the map with the least certified Brier score, CBS*, is one isotonic
regression of c on x, and

    CBS = miscalibration - resolution + uncertainty, with
    uncertainty = p (1 - p), the score of the best constant confidence p (the share of correct samples),
    resolution = uncertainty - CBS* >= 0, because constants are among the maps,
    miscalibration = CBS - CBS* >= 0, because leaving the confidences as they are is among them too.

This is the decomposition of Dimitriadis, Gneiting and Jordan (2021) at the confidences x. For any other confidences z
inside the intervals, the map that is best at x has a score of at most CBS* at z, and the map that is best at z one that
is no larger: so their resolution is at least that of x. The certified resolution is the least that any confidences
inside the intervals can have.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from certcal._base.arguments import names_wrong_types
from certcal._base.json import PlainValues
from certcal._base.notebook import Card, CardTable, NotebookCard
from certcal._base.rounding import minus
from certcal.claims import move_outward, round_outward, these_samples
from certcal.metrics.isotonic import isotonic
from certcal.worst_case._result import CertifiedValue, WorstCase
from certcal.worst_case._scores import brier_score_of
from certcal.worst_case.intervals import Intervals, check_intervals

UNDEFINED = "undefined"

# What the rounding of block means can add to a resolution: their squared differences.
_NEGLIGIBLE = 1e-20

# Of a difference of numbers up to 1.
_ROUNDING = 64 * 2.0**-52


@dataclass(frozen=True)
class Information(
    PlainValues,
    NotebookCard,
    kind="information",
    keys="n n_correct=right brier_score=brier skill best_skill miscalibration resolution uncertainty finding verdict",
):
    """What of the information in confidences is certified to survive, over the certified samples.

    Examples
    --------
    >>> found = information([0.5, 0.5, 0.1, 0.3], [0.9, 0.7, 0.4, 0.6], [1, 1, 0, 0])
    >>> found.finding, found.skill.text, found.best_skill.text
    ('after a map', '-0.0201', '0.3333')
    >>> print(information([0.0, 0.0], [1.0, 1.0], [1, 0]).verdict_at("0.5"))
    At radius 0.5, these confidences carry no information that is certified to survive the attack: on these 2 certified
    samples no non-decreasing map of them is certified to beat one constant confidence.
    """

    n: int
    right: int
    """Number of certified samples, and of correct ones among them."""
    brier: float | None
    """Certified Brier score, or None when no sample is certified."""
    skill: CertifiedValue
    """1 - (certified Brier score) / uncertainty: above 0, the confidences as they are beat every constant."""
    best_skill: CertifiedValue
    """The same of the best non-decreasing map of the confidences: resolution / uncertainty. The map is fitted to these
    very samples, so this is an optimistic figure for others."""
    miscalibration: CertifiedValue
    """How much of the certified Brier score a non-decreasing map can take away, at most."""
    resolution: CertifiedValue
    """How far below the best constant the best non-decreasing map comes, at least, whatever the confidences inside the
    intervals."""
    uncertainty: CertifiedValue
    """Brier score of the best constant confidence."""
    of: str = "confidences"
    """What lies in the intervals: "confidences", or the "scores" of a binary task, whose outcomes are 1 or 0 and all of
    whose samples count."""

    @property
    def finding(self) -> str:
        """What survives: "nothing", something "after a map" or "as they are"; "undefined" where nothing can."""
        if math.isnan(self.skill.value):
            return UNDEFINED
        if self.skill.value > 0:
            return "as they are"
        return "after a map" if self.resolution.value > 0 else "nothing"

    @property
    def verdict(self) -> str:
        """What survives inside the intervals, in words."""
        return self.verdict_at(None)

    def verdict_at(self, radius: str | None) -> str:
        """What survives, in words.

        Every sentence is about these samples and their intervals, and about maps that never turn the order of two
        confidences round. That something is not certified to survive does not say that an attack destroys it: other
        certificates might have shorter intervals.

        Parameters
        ----------
        radius
            Of the attack, as text; None or "" to speak of the given intervals.
        """
        where = f"At radius {radius}" if radius else "Inside the given intervals"
        survive = "survive the attack" if radius else "survive"
        scores, one = self.of == "scores", self.of[:-1]
        these = f"on these {self.n} {'samples' if scores else 'certified samples'}"
        if self.n == 0:
            return f"{where}, no sample is certified, so no information is certified to {survive}."
        if self.right in (0, self.n):
            what, constant = ("correct", 1) if self.right else ("wrong", 0)
            every, them = f"all {self.n} certified samples are {what}", "them"
            if self.n == 1:
                every, them = f"the one certified sample is {what}", "it"
            every = f"every outcome is {constant}" if scores else every
            return (
                f"{where}, {every}: the constant {one} {constant} is perfect for {them}, and there is "
                f"nothing that other {self.of} could know better."
            )
        if self.finding == "nothing":
            return (
                f"{where}, these {self.of} carry no information that is certified to {survive}: {these} no "
                f"non-decreasing map of them is certified to beat one constant {one}."
            )
        if self.finding == "after a map":
            return (
                f"{where}, these {self.of} are not certified to beat one constant {one} {these}. "
                f"The best non-decreasing map of them is, with a certified skill of at least {self.best_skill.text}; "
                "but it is fitted to these very samples, so expect less on others. certcal recalibrate fits such a map "
                "to one part of the samples and judges it on the rest."
            )
        return (
            f"{where}, these {self.of} carry information that is certified to {survive}: {these} they beat every "
            f"constant {one}, with a certified skill of at least {self.skill.text}. The best non-decreasing map "
            f"of them, fitted to these very samples, has at least {self.best_skill.text}; expect less of it on others."
        )

    @property
    def values(self) -> dict[str, CertifiedValue]:
        """Both skills and the three parts of the certified Brier score by name."""
        names = ("skill", "best_skill", "miscalibration", "resolution", "uncertainty")
        return {name: getattr(self, name) for name in names}

    def card(self) -> Card:
        """What a notebook shows."""
        rows = [(each.name, "≥" if each.side == "lower" else "≤", each.text) for each in self.values.values()]
        return Card(self.verdict, tables=(CardTable(rows, ("claim", "", "value")),))


@names_wrong_types
def information(lower: Any, upper: Any, correct: Any, *, certified: Any = None) -> Information:
    """How much of the information in confidences is certified to survive inside their intervals.

    What is claimed: for all confidences inside the intervals, the Brier score of the certified samples is at most
    miscalibration - resolution + uncertainty; no non-decreasing map has a certified Brier score below uncertainty -
    resolution, and one has it, up to the rounding of the parts to their safe sides; and the resolution of any
    confidences inside the intervals is at least the certified one. Nothing is random. The best map is fitted to these
    very samples, so nothing is claimed about others.

    Parameters
    ----------
    lower, upper
        Interval of each sample's confidence, in [0, 1].
    correct
        Whether each (certified) prediction is correct, 0 or 1.
    certified
        Which samples are certified, or None for all. There may be none.

    Examples
    --------
    >>> found = information([0.6, 0.6, 0.2, 0.2], [0.9, 0.8, 0.4, 0.7], [1, 1, 0, 1])
    >>> [each.text for each in (found.miscalibration, found.resolution, found.uncertainty)]
    ['0.1551', '0.0624', '0.1875']
    """
    intervals = check_intervals(lower, upper, correct, certified, own=False)
    if intervals.certified_count == 0:
        return decompose_brier_score(None, None)
    kept = intervals.only_certified()
    return decompose_brier_score(brier_score_of(kept), kept)


def decompose_brier_score(brier: WorstCase | None, kept: Intervals | None) -> Information:
    """The parts of a certified Brier score; of nothing when no sample is certified."""
    if brier is None or kept is None:
        return _nothing()
    n, right = len(kept), int(np.count_nonzero(kept.correct))
    uncertainty = Fraction(right * (n - right), n * n)
    constant = float(uncertainty)
    resolved, least = _best_resolution(kept, right)
    # No relative error is large: the terms behind it are not negative, and those of the constant are exact.
    resolution = 0.0 if least == 0 else move_outward(max(resolved - _NEGLIGIBLE, least), "lower", 1e-12)
    miscalibration = move_outward(max(0.0, brier.value - constant + resolved) + _ROUNDING, "upper")
    these = f"on {these_samples(n)}"
    texts = round_outward(min(1.0, miscalibration), "upper"), round_outward(resolution, "lower"), _up(uncertainty)
    return Information(
        n,
        right,
        brier.value,
        _skill(brier, constant, right, n),
        _best_skill(resolution, constant, right, n),
        CertifiedValue(
            "certified miscalibration",
            min(1.0, miscalibration),
            n,
            texts[0],
            f"certified miscalibration is at most {texts[0]} {these}: no non-decreasing map of the confidences lowers "
            "their certified Brier score by more.",
            "upper",
        ),
        CertifiedValue(
            "certified resolution",
            resolution,
            n,
            texts[1],
            f"certified resolution is at least {texts[1]} {these}: inside the given intervals, the best monotone map, "
            "fitted to these very samples, gains that over one constant confidence.",
        ),
        CertifiedValue(
            "uncertainty",
            constant if Fraction(constant) >= uncertainty else math.nextafter(constant, 1.0),
            n,
            texts[2],
            f"uncertainty is at most {texts[2]} {these}: the Brier score of the best constant confidence, "
            f"{right} of {n}.",
            "upper",
        ),
    )


def _best_resolution(kept: Intervals, right: int) -> tuple[float, float]:
    """Mean squared distance of the best map's values from the share of correct samples; the same of a map of two parts.

    The value of a flat part is the share k/m of its correct samples, so uncertainty - CBS* is the mean over samples of
    (k/m - p)². Counts and their products are whole numbers, exact in float64 up to 9·10⁷ samples. So it is known for
    certain whether the best map is constant: it is when no part that begins with the first place has a share below p.
    If one has, the map with a step where k - p m is least gains (k - p m)² / (m (n - m)).
    """
    n = len(kept)
    c = kept.correct.astype(np.float64)
    fitted = isotonic(np.where(kept.correct == 1, kept.lower, kept.upper).astype(np.float64), c)
    behind = np.cumsum(fitted.total * n - right * fitted.mass)
    step = int(np.argmin(behind))
    first = float(np.sum(fitted.mass[: step + 1]))
    least = (float(behind[step]) / n) ** 2 / (first * (n - first)) if behind[step] < 0 else 0.0
    begin = fitted.blocks[:-1]
    m, k = np.add.reduceat(fitted.mass, begin), np.add.reduceat(fitted.total, begin)
    apart = (k * n - right * m) / (m * n)
    return math.fsum(m / n * apart**2), least


def _up(value: Fraction) -> str:
    """Four digits after the point, rounded up exactly."""
    steps = math.ceil(value * 10_000)
    return f"{steps // 10_000}.{steps % 10_000:04d}"


def _skill(brier: WorstCase, constant: float, right: int, n: int) -> CertifiedValue:
    name = "certified skill"
    if right in (0, n):
        return _undefined_value(name, n, _already_perfect(right, n))
    value = move_outward(1 - move_outward(brier.value, "upper", 1e-12) / constant, "lower", 1e-12)
    text = round_outward(value, "lower")
    sentence = (
        f"{name} is at least {minus(text)} on {these_samples(n)} for all confidences inside the given intervals; "
        "above 0, the confidences are worth more than one constant confidence for all."
    )
    return CertifiedValue(name, value, n, text, sentence)


def _best_skill(resolution: float, constant: float, right: int, n: int) -> CertifiedValue:
    name = "certified skill of the best non-decreasing map"
    if right in (0, n):
        return _undefined_value(name, n, _already_perfect(right, n))
    value = 0.0 if resolution == 0 else move_outward(resolution / constant, "lower", 1e-12)
    text = round_outward(value, "lower")
    sentence = (
        f"{name} of the confidences is at least {text} on {these_samples(n)}, to which the map is fitted: an "
        "optimistic figure for others."
    )
    return CertifiedValue(name, value, n, text, sentence)


def _nothing() -> Information:
    reason = "no sample is certified"
    against = f"{reason}, so a constant confidence has nothing to be measured against"
    return Information(
        0,
        0,
        None,
        _undefined_value("certified skill", 0, against),
        _undefined_value("certified skill of the best non-decreasing map", 0, against),
        _undefined_value("certified miscalibration", 0, reason),
        _undefined_value("certified resolution", 0, reason),
        _undefined_value("uncertainty", 0, reason),
    )


def _already_perfect(right: int, n: int) -> str:
    what = "correct" if right else "wrong"
    return f"all {n} are {what}, so a constant confidence has nothing to be measured against"


def _undefined_value(name: str, n: int, reason: str) -> CertifiedValue:
    return CertifiedValue(name, math.nan, n, UNDEFINED, f"{name} is undefined: {reason}.")
