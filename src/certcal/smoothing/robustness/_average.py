"""The average certified radius, with what is wrong with it.

Three defects (Sun et al., "Average Certified Radius is a Poor Metric for Randomized Smoothing", ICML 2025): it has no
upper limit but the budget's, so a classifier that always answers one class can reach any value; dr/dp_A grows without
limit as p_A approaches 1, so it pays to improve samples that are already easy and to give up hard ones; and which of
two models is ahead changes with the number of draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from certcal._checks import whole_number
from certcal.smoothing.robustness._accuracy import check_radii
from certcal.smoothing.robustness._binomial import vote_radii

# What stands beside every average certified radius.
WARNING = (
    "do not rank models by it: it rewards making easy samples easier and giving up hard ones, and the order of two "
    "models can change with the number of draws"
)


@dataclass(frozen=True)
class AverageCertifiedRadius:
    """Mean certified radius, abstained and wrong samples counting zero. Kept for comparison with published tables.

    Attributes
    ----------
    name
        Of the run.
    value
        The mean.
    n
        Number of samples.
    top_tenth
        Share of the sum that comes from the tenth of the samples with the largest radii; NaN when the sum is 0.
    trivial
        What a classifier that always answers the most frequent label would score at the same σ, draws and α, when
        these are known.
    as_printed
        Whether the radii are those that a log prints, rounded to nearest.

    Examples
    --------
    >>> average = average_certified_radius([0.2, 1.0, float("nan"), 0.6], [1, 1, 1, 0])
    >>> print(average.sentence)
    average certified radius is 0.3000 on these 4 samples; do not rank models by it: it rewards making easy samples
    easier and giving up hard ones, and the order of two models can change with the number of draws (here the tenth with
    the largest radii makes up 83.3 % of it).
    """

    name: str
    value: float
    n: int
    top_tenth: float
    trivial: float | None = None
    as_printed: bool = False

    @property
    def sentence(self) -> str:
        """The number and its warning."""
        facts: list[str] = []
        if self.top_tenth == self.top_tenth:
            facts.append(f"here the tenth with the largest radii makes up {100 * self.top_tenth:.1f} % of it")
        if self.trivial is not None:
            facts.append(f"always answering the most frequent class would score {self.trivial:.4f}")
        aside = f" ({'; '.join(facts)})" if facts else ""
        printed = " as printed" if self.as_printed else ""
        return f"average certified radius{printed} is {self.value:.4f} on these {self.n} samples; {WARNING}{aside}."

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "type": "average certified radius",
            "name": self.name,
            "value": self.value,
            "n": self.n,
            "top_tenth": self.top_tenth,
            "trivial": self.trivial,
            "as_printed": self.as_printed,
            "sentence": self.sentence,
        }


def average_certified_radius(
    radii: Any,
    correct: Any,
    *,
    abstained: Any = None,
    trivial: float | None = None,
    name: str = "",
    as_printed: bool = False,
) -> AverageCertifiedRadius:
    """Mean over all samples of the certified radius, zero where wrong or abstained. Its sentence says what it hides.

    Parameters
    ----------
    radii
        Certified radius per sample.
    correct
        Is the prediction right?
    abstained
        Samples that are not certified at all. Default: those whose radius is NaN.
    trivial
        What :func:`trivial_average_radius` gives for the same data, to be said beside it.
    name
        Of the run.
    as_printed
        Say that the radii are those that a log prints, rounded to nearest.
    """
    r, c, no_claim = check_radii(radii, correct, abstained)
    counted = np.sort(np.where((c == 1) & ~no_claim, r, 0.0))[::-1]
    total = float(np.sum(counted))
    top = float(np.sum(counted[: -(-r.size // 10)]))
    tenth = top / total if total > 0 else float("nan")
    return AverageCertifiedRadius(name, total / r.size, r.size, tenth, trivial, as_printed)


def trivial_average_radius(labels: Any, *, sigma: float, n: int, alpha: float = 0.001) -> float:
    """Average certified radius of a classifier that always answers the most frequent of ``labels``.

    Every draw is a vote for its one answer, so its samples of that class have the largest radius there is,
    σΦ⁻¹(α^(1/n)), and the others count zero.

    Examples
    --------
    >>> [round(trivial_average_radius([0, 1], sigma=1.0, n=n), 3) for n in (50, 100, 200)]
    [0.565, 0.75, 0.913]
    """
    n = whole_number(n, 1, 2**53, "n", "pass the number of draws")
    _, counts = np.unique(np.asarray(labels), return_counts=True)
    largest = float(vote_radii(n, n, sigma, alpha))
    return 0.0 if largest != largest else float(counts.max() / counts.sum()) * largest
