"""A band for the calibration function η(s) = P(y = 1 | s): where it lies, and where the diagonal leaves it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import confidences
from certcal._base.rounding import round_outward, sure_text
from certcal._base.told import in_lines
from certcal.claims import Frozen, full_statement, like_these
from certcal.result import Result

Floats = NDArray[np.float64]


class Region(NamedTuple):
    """Scores that are wrong beyond sampling error, and by how much at the worst of them.

    Examples
    --------
    >>> print(Region(0.62, 0.71, "lower", 0.62, 0.75).sentence)
    Scores from 0.6200 to 0.7100 under-predict: at 0.6200 the rate is at least 0.7500.
    """

    start: float
    end: float
    """First and last score."""
    side: str
    """"lower" where the rate is above the score (which under-predicts), "upper" where it is below."""
    score: float
    rate: float
    """The score that is wrong most, and the end of the band there: a rate of at least (or at most) so much."""

    @property
    def sentence(self) -> str:
        """What the band says of these scores."""
        verb, relation = ("under", "at least") if self.side == "lower" else ("over", "at most")
        span = f"Scores from {self.start:.4f} to {self.end:.4f} {verb}-predict"
        return f"{span}: at {self.score:.4f} the rate is {relation} {round_outward(self.rate, self.side)}."

    def __str__(self) -> str:
        return in_lines(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**self._asdict(), "sentence": self.sentence}


class StepFunction(NamedTuple):
    """A function that is constant from each of its scores up to the next.

    Examples
    --------
    >>> StepFunction(np.array([0.1, 0.5]), np.array([0.2, 0.7])).at([0.0, 0.4, 0.5]).tolist()
    [0.2, 0.2, 0.7]
    """

    scores: Floats
    """Where each step begins, rising; the first one also holds below."""
    values: Floats
    """The value of each step."""

    def at(self, scores: Any) -> Floats:
        """Values at given scores."""
        s = confidences(scores, "scores").astype(np.float64)
        return self.values[np.maximum(np.searchsorted(self.scores, s, side="right") - 1, 0)]


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationBand(Result):
    """A band that holds the calibration function at every score at once, except with probability ``delta``.

    Examples
    --------
    >>> from certcal.bounds import isotonic_band
    >>> band = isotonic_band([0.2] * 100 + [0.8] * 100, [0, 1] * 50 + [1] * 100)
    >>> lower, upper = band.at([0.2, 0.8])
    >>> lower.round(3).tolist(), upper.round(3).tolist()
    ([0.373, 0.951], [0.627, 1.0])
    >>> for region in band.regions:
    ...     print(region.sentence)
    Scores from 0.2000 to 0.3726 under-predict: at 0.2000 the rate is at least 0.3725.
    Scores from 0.8000 to 0.8000 under-predict: at 0.8000 the rate is at least 0.9505.
    """

    view: ClassVar[str] = "certcal.report.views.calibration_band"

    kind: str
    """"isotonic", "perturbed" or "Lipschitz": what is known of η."""
    scores: Floats
    """Places from 0 to 1 at which the band is written down."""
    lower: Floats
    upper: Floats
    """Ends of the band there. Between two places an isotonic band is a staircase: the lower end is that of the place
    before, the upper end that of the place after. The other bands are straight between their places."""
    estimate: Floats | None
    """Local averages of the outcomes (NaN where no sample is near), or None."""
    delta: float
    """Probability with which the band misses η somewhere."""
    n: int
    """Number of samples."""
    span: tuple[float, float]
    """Smallest and largest score among the samples."""
    assumptions: tuple[str, ...]
    settings: Mapping[str, Any]
    """What the claim rests on, and how it was computed."""
    source: str | None = None
    """Name of the file that the samples are from, if they are from one."""
    denoised: StepFunction | None = None
    """The reconstruction of η by :func:`certcal.bounds.denoised`, if it was asked for; an estimate, like the other."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", Frozen(self.settings))

    @property
    def steps(self) -> bool:
        """Whether the band is a staircase between its places."""
        return self.kind == "isotonic"

    @property
    def level(self) -> float:
        """Probability with which the band holds η everywhere."""
        return 1 - self.delta

    @property
    def contradicts(self) -> bool:
        """Whether no function fits: the assumption about η is refuted, or an event of probability δ has happened."""
        return bool((self.lower > self.upper).any())

    @property
    def sentence(self) -> str:
        """What is claimed."""
        if self.contradicts:
            return f"No {self.kind} calibration function fits: the band contradicts itself ({sure_text(self.delta)})."
        sure = like_these(self.delta, self.n)
        return f"the {self.kind} band holds the calibration function at every score at once: {sure}."

    @property
    def statement(self) -> str:
        """The sentence with all that it depends on."""
        return full_statement(self.sentence, self.assumptions, self.settings)

    def at(self, scores: Any) -> tuple[Floats, Floats]:
        """Lower and upper end of the band at given scores."""
        s = confidences(scores, "scores").astype(np.float64)
        if not self.steps:
            return np.interp(s, self.scores, self.lower), np.interp(s, self.scores, self.upper)
        before = np.searchsorted(self.scores, s, side="right") - 1
        after = np.searchsorted(self.scores, s, side="left")
        return self.lower[before], self.upper[after]

    @property
    def regions(self) -> tuple[Region, ...]:
        """Where the diagonal leaves the band, among the scores that there are; empty when the band says nothing."""
        if self.contradicts:
            return ()
        found = [*self._outside("lower"), *self._outside("upper")]
        return tuple(sorted(found, key=lambda region: region.start))

    def _outside(self, side: str) -> list[Region]:
        """Regions on one side. Between two places the end is straight, so is the gap, and its sign changes once."""
        sign, values = (1.0, self.lower) if side == "lower" else (-1.0, self.upper)
        start, end = self.scores[:-1], self.scores[1:]
        first, last = values[:-1], values[1:]
        if self.steps:
            first = last = first if side == "lower" else last
        low, high = self.span  # what lies beyond the scores that were seen is not looked at
        a, b = np.clip(start, low, high), np.clip(end, low, high)
        slope = (last - first) / (end - start)
        at_a, at_b = sign * (first + slope * (a - start) - a), sign * (first + slope * (b - start) - b)
        regions: list[Region] = []
        there = (start <= high) & (end >= low)
        if self.steps:  # a step has only one of its ends
            there &= (a < b) | (start == high if side == "lower" else end == low)
        for m in np.flatnonzero(there & ((at_a > 0) | (at_b > 0))).tolist():
            crossing = a[m] + (b[m] - a[m]) * at_a[m] / (at_a[m] - at_b[m]) if at_a[m] != at_b[m] else a[m]
            ends = (a[m] if at_a[m] > 0 else crossing), (b[m] if at_b[m] > 0 else crossing)
            place = float(a[m] if at_a[m] >= at_b[m] else b[m])
            rate = float(first[m] + slope[m] * (place - start[m]))
            region = Region(float(ends[0]), float(ends[1]), side, place, rate)
            if regions and region.start <= regions[-1].end:
                before = regions.pop()
                worst = max(before, region, key=lambda each: abs(each.rate - each.score))
                region = Region(before.start, region.end, side, worst.score, worst.rate)
            regions.append(region)
        return regions

    def __repr__(self) -> str:
        return f"<CalibrationBand, {self.kind}: {self.n} samples, {len(self.regions)} miscalibrated regions>"

    def claims(self) -> Sequence[CalibrationBand]:
        """The band itself."""
        return (self,)

    def contents(self) -> dict[str, Any]:
        """Plain values for JSON."""
        estimate = None if self.estimate is None else [None if np.isnan(each) else each for each in self.estimate]
        steps = self.denoised and {name: values.tolist() for name, values in self.denoised._asdict().items()}
        return {
            "kind": self.kind,
            "n": self.n,
            "delta": self.delta,
            "sentence": self.sentence,
            "assumptions": list(self.assumptions),
            "settings": dict(self.settings),
            "between": "steps" if self.steps else "lines",
            "scores": self.scores.tolist(),
            "lower": self.lower.tolist(),
            "upper": self.upper.tolist(),
            "estimate": estimate,
            "denoised": steps,
            "regions": [region.to_dict() for region in self.regions],
        }

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """One line per place."""
        estimates = {} if self.estimate is None else {"estimate": self.estimate.tolist()}
        if self.denoised is not None:
            estimates["denoised"] = self.denoised.at(self.scores).tolist()
        return {
            "score": self.scores.tolist(),
            **estimates,
            "lower": self.lower.tolist(),
            "upper": self.upper.tolist(),
        }
