"""What a map does to samples that it was not fitted to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from certcal._base.arguments import names_wrong_types
from certcal._base.assumptions import NOT_USED_BEFORE
from certcal._base.checks import choice
from certcal._base.json import PlainValues
from certcal.binning import CLOSED, edges_for, sums
from certcal.bounds import betting, clopper_pearson
from certcal.calibrators._certified import BrierTerms, CertifiedMap
from certcal.calibrators._samples import CertifiedSamples
from certcal.claims import Bound, Estimate, Frozen, move_outward
from certcal.metrics.binned import ece_of
from certcal.metrics.scores import auroc_of, top_label_brier, weighted_mean

if TYPE_CHECKING:
    from certcal.claims import Certificate
    from certcal.worst_case import CertifiedSummary


@dataclass(frozen=True, eq=False)
class JudgedAt(PlainValues):
    """A map at one radius."""

    radius: str
    """As text."""
    summary: CertifiedSummary
    """Everything that the mapped intervals certify about these samples and their population."""
    claim: Certificate | None
    """For samples of a run: what no perturbation can make the calibration error exceed, failing certificates counted.
    """
    gain: Bound | None
    """How much the certified Brier score of the population, given that a sample is certified, is below that of one
    constant confidence, at least; None when nothing is certified among the samples, or among those of the fit."""


@dataclass(frozen=True, eq=False)
class JudgedMap(PlainValues, without="calibrator"):
    """A map on samples that it was not fitted to.

    Claims about these samples hold whatever the map was fitted to; bounds on the population hold because it was fitted
    to others. Each bound may fail with probability delta of its own.
    """

    name: str
    """Such as "before recalibration" or "isotonic, λ = 0.5"."""
    method: str | None
    tradeoff: float | None
    """Of the map; None for the identity."""
    calibrator: Any
    """The map, or None for the identity."""
    clean: Mapping[str, Estimate] = field(default_factory=dict[str, Estimate])
    """Estimates without a perturbation: "brier_score", "ece" and "auroc"; empty when those confidences are not known.
    An AUROC is NaN when all samples are correct, or none. Ties, which flat terms of a map make, count half, so a
    constant map has ½."""
    at: tuple[JudgedAt, ...] = ()
    """Per radius."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "clean", Frozen(self.clean))

    def __repr__(self) -> str:
        radii = ", ".join(at.radius for at in self.at)
        return f"Judged(name={self.name!r}, calibrator={self.calibrator!r}, radii={radii})"


@dataclass(frozen=True)
class FrontPoint(PlainValues):
    """Clean and certified Brier score of one map: on the samples it was fitted to, and on the others."""

    name: str
    tradeoff: float | None
    """Of the map."""
    fitted: tuple[float | None, float | None]
    held_out: tuple[float | None, float | None]
    """(clean, certified) Brier score; clean is None when those confidences are not known, certified when nothing is
    certified. With several radii the certified one is their weighted mean, over those where something is certified."""


@names_wrong_types
def front_of(
    fit: CertifiedSamples,
    rest: CertifiedSamples,
    lines: Sequence[JudgedMap],
    radius_weight: Sequence[float] | None = None,
) -> tuple[FrontPoint, ...]:
    """Clean against certified Brier scores of maps, on the samples they were fitted to and on the others.

    Parameters
    ----------
    fit, rest
        Samples of the fit, and the others, before the map.
    lines
        The maps.
    radius_weight
        Weights of the radii, equal when not given.
    """
    terms, held_out = BrierTerms.of(fit, radius_weight), BrierTerms.of(rest, radius_weight)
    return tuple(
        FrontPoint(
            line.name,
            line.tradeoff,
            _brier_pair(fit, line.calibrator, terms),
            _brier_pair(rest, line.calibrator, held_out),
        )
        for line in lines
    )


def _brier_pair(samples: CertifiedSamples, calibrator: Any, terms: BrierTerms) -> tuple[float | None, float | None]:
    """Clean and certified Brier score of a map; the certified one is the mean over radii by their shares."""
    if calibrator is not None and not isinstance(calibrator, CertifiedMap):  # may turn the order of confidences round
        mapped = samples.mapped(calibrator)
        c = mapped.correct.astype(np.float64)
        worst = (c[:, None] - np.where(c[:, None] == 1, mapped.lower, mapped.upper)) ** 2
        scores = [float(worst[kept, k].mean()) if kept.any() else 0.0 for k, kept in enumerate(mapped.certified.T)]
        clean = None if mapped.confidence is None else float(np.mean((c - mapped.confidence) ** 2))
        return clean, float(np.dot(terms.share, scores)) if terms.share.any() else None

    def score(level: float) -> float:
        points = terms.at(level)
        return points.score(points.x if calibrator is None else calibrator.transform(points.x))

    return None if terms.clean is None else score(0.0), score(1.0) if terms.share.any() else None


@names_wrong_types
def judge(
    samples: CertifiedSamples,
    calibrator: Any,
    constant: tuple[float | None, ...],
    *,
    name: str,
    method: str | None = None,
    tradeoff: float | None = None,
    bins: int = 15,
    closed: str = "left",
    delta: float = 0.05,
    assumptions: tuple[str, ...] = (),
) -> JudgedMap:
    """Judge a map on samples that it was not fitted to.

    That they are others cannot be seen from the samples, so it is not checked; :func:`certcal.recalibrate` splits
    them.

    Parameters
    ----------
    samples
        Others than those of the fit.
    calibrator
        The map; None for the identity.
    constant
        Per radius, the one confidence that the map is compared with, from the samples of the fit; None when unknown.
    name, method, tradeoff
        Kept.
    bins, closed, delta
        As for :func:`certcal.worst_case.certify`.
    assumptions
        What the bounds on the population assume besides, such as :data:`certcal.claims.ORDER`.
    """

    def assuming(bound: Bound) -> Bound:
        return replace(bound, assumptions=(*bound.assumptions, *assumptions))

    mapped = samples.mapped(calibrator)
    clean: dict[str, Estimate] = {}
    if mapped.confidence is not None:
        z, c, n = mapped.confidence, mapped.correct, len(mapped)
        binned = {"bins": bins, "closed": choice(closed, CLOSED, "closed")}
        clean = {
            "brier_score": Estimate("Brier score", weighted_mean(top_label_brier(z, c), None), n),
            "ece": Estimate("ECE", ece_of(sums(z, c, None, edges_for(bins, None), closed)), n, binned),
            "auroc": Estimate("AUROC of correctness", auroc_of(z, c, None), n),
        }
    at: list[JudgedAt] = []
    for k, radius in enumerate(mapped.radii):
        claim = None
        if mapped.certificates:
            one = mapped.certificates[k]
            claim = one.claim_of_intervals(bins=bins, closed=closed)  # a map is of intervals; before it, as after it
        summary = mapped.summary(k, bins=bins, closed=closed, delta=delta)
        summary = replace(
            summary,
            population=None if summary.population is None else assuming(summary.population),
            population_all=assuming(summary.population_all),
        )
        gain = gain_over(mapped, k, constant[k], delta)
        at.append(JudgedAt(radius, summary, claim, None if gain is None else assuming(gain)))
    return JudgedMap(name, method, tradeoff, calibrator, clean, tuple(at))


@names_wrong_types
def gain_over(samples: CertifiedSamples, radius: int, constant: float | None, delta: float) -> Bound | None:
    """How much lower the certified Brier score of the population is than that of a constant confidence, at least.

    What is random: the samples with their intervals, independent draws from the population and independent of the map
    and of the constant m (both were fitted to others). What is claimed, with probability at least 1 - delta over them:
    given that a sample is certified, E (c - m)² - E max (c - z)² is at least ``value``, the maximum over all
    perturbations up to the radius. Why: D = (c - m)² - max over the mapped interval of (c - z)² lies between
    min(m², (1 - m)²) - 1 and max(m², (1 - m)²), which are known beforehand; given which samples are certified, their D
    are independent draws of one variable, and betting limits its expectation from below. Where a certificate fails, the
    confidence may leave the interval and the outcome c may be the other one, so that D is off by the whole length of
    that range, 1 + |1 - 2m|. A sample is certified and fails with probability at most alpha; so that length times alpha
    over a lower limit of the certified share is subtracted, and delta is halved between that limit and the bet.

    The bound is for one map, one constant and one radius that were chosen without these samples. For the best of k that
    were looked at on them, pass delta / k.

    Parameters
    ----------
    samples
        After the map.
    radius
        Its place.
    constant
        m, or None when there is none.
    delta
        Probability with which the bound may fail.
    """
    kept = samples.certified[:, radius]
    n = int(np.count_nonzero(kept))
    if n == 0 or constant is None:
        return None
    c = samples.correct[kept].astype(np.float64)
    z = np.where(c == 1, samples.lower[kept, radius], samples.upper[kept, radius])
    gains = (c - constant) ** 2 - (c - z) ** 2
    smaller, larger = sorted((constant**2, (1 - constant) ** 2))
    least, width = smaller - 1, larger - smaller + 1
    alpha, level, failures = samples.alpha[radius], delta, 0.0
    if alpha > 0:
        level = delta / 2
        failures = width * alpha / float(clopper_pearson(n, len(samples), delta / 2, side="lower").lower)
    lowest = least + width * float(betting(np.clip((gains - least) / width, 0, 1), level, side="lower").lower)
    value = max(-1.0, move_outward(lowest - failures, "lower", 1e-14))
    mean = math.fsum(gains) / n
    return Bound(
        "certified gain over one constant confidence in the population, given that a sample is certified,",
        value,
        "lower",
        delta,
        n,
        (
            "samples with their intervals are independent draws from the population",
            NOT_USED_BEFORE,
            "map and constant were fitted to other samples",
            "each interval and correctness holds except with probability alpha",
        ),
        {"mean gain": mean, "deviation": lowest - mean, "certificate failures": -failures},
        {"constant": constant, "alpha": alpha},
    )
