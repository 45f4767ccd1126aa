"""Maps that are best in the worst case: what they minimise, the best monotone one, and the best logistic ones."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from certcal._base.arguments import names_wrong_types
from certcal._base.checks import InputError, choice, positive, to_numpy
from certcal.calibrators._base import ConfidenceMap
from certcal.calibrators._isotonic import CurveMap, curve_through
from certcal.calibrators._logistic import LogisticMap, log_odds
from certcal.calibrators._samples import CertifiedSamples
from certcal.calibrators._search import search
from certcal.calibrators.scores import Floats
from certcal.metrics.isotonic import count_places, pool

Part = tuple[Floats, NDArray[np.uint8]]

TRADEOFFS = (0.0, 0.25, 0.5, 0.75, 1.0)
# The steepest map that is looked for: log-odds that differ by 0.01 are 10 apart after it.
STEEPEST = 1000.0
# Log-odds beyond which a sigmoid differs from 0 or 1 by less than 1e-17.
_SATURATED = 40.0


class CertifiedMap(ConfidenceMap):
    """A monotone map that makes (1 - λ)·clean + λ·certified Brier score small on the samples it is fitted to."""

    tradeoff: float

    def fit(
        self,
        lower: Any,
        upper: Any,
        correct: Any,
        confidence: Any = None,
        *,
        certified: Any = None,
        radius_weight: Sequence[float] | None = None,
    ) -> Self:
        """Fit to intervals of confidences at one radius, or at several (one column each).

        Parameters
        ----------
        lower, upper, correct, confidence, certified
            As for :meth:`CertifiedSamples.from_intervals`. ``confidence`` is needed unless the trade-off is 1.
        radius_weight
            Weights of the radii, equal when not given.
        """
        check_tradeoff(self.tradeoff)
        samples = CertifiedSamples.from_intervals(lower, upper, correct, confidence, certified=certified)
        return self.fit_samples(samples, radius_weight)

    def fit_samples(self, samples: CertifiedSamples, radius_weight: Sequence[float] | None = None) -> Self:
        """Fit to certified samples, at all their radii."""
        return self._fit_terms(BrierTerms.of(samples, radius_weight))

    def _fit_terms(self, terms: BrierTerms) -> Self:
        """Fit to terms that other trade-offs may share."""
        self._fit_points(terms.at(check_tradeoff(self.tradeoff)))
        return self

    @abstractmethod
    def _fit_points(self, points: BrierPoints) -> None:
        """Minimise the squared error at the points."""


class CertifiedIsotonic(CurveMap, CertifiedMap):
    """The exact minimiser of (1 - λ)·clean + λ·certified Brier score over all monotone maps into [0, 1].

    What is claimed of the samples it is fitted to: no monotone (never falling) map g of them into [0, 1] has a smaller
    (1 - λ) mean (c - g(z))² + λ mean max over [l, u] of (c - g)², the second mean over the certified samples (with
    several radii, their weighted mean). Why: the maximum is at l for a correct sample and at u for an incorrect one,
    whatever g is, so the sum is the squared error of an isotonic regression of c on known places; pooling adjacent
    violators minimises it exactly. It determines g at these places only; between them g is a straight line. So at
    λ = 0 other maps with the same clean Brier score may have a smaller certified one, and at λ = 1 the other way round.
    About other samples nothing is claimed by the fit: judge the map on samples that it was not fitted to
    (:func:`certcal.recalibrate` does).

    Parameters
    ----------
    tradeoff
        λ from 0 (plain isotonic regression on the clean confidences) to 1 (the certified Brier score alone).

    Attributes
    ----------
    curve_
        The map: knots and values.

    Examples
    --------
    >>> lower, upper, correct = [0.1, 0.4, 0.7, 0.8], [0.3, 0.6, 0.9, 0.95], [0, 1, 0, 1]
    >>> fitted = CertifiedIsotonic(tradeoff=1).fit(lower, upper, correct)
    >>> fitted.transform([0.2, 0.5, 0.85]).round(6).tolist()
    [0.0, 0.666667, 0.666667]
    """

    def __init__(self, tradeoff: float = 0.5) -> None:
        self.tradeoff = tradeoff

    def _fit_points(self, points: BrierPoints) -> None:
        self.curve_ = curve_through(pool(points.x, points.right + points.wrong, points.right))


class CertifiedLogistic(LogisticMap, CertifiedMap):
    """sigmoid(slope·logit(z) + intercept), by a search that proves how near to the best map it is."""

    tolerance: float
    objective_: float
    gap_: float

    def __init__(self, tradeoff: float = 0.5, tolerance: float = 1e-7) -> None:
        self.tradeoff = tradeoff
        self.tolerance = tolerance

    def _coefficients(self) -> tuple[float, ...]:
        return self.slope_, self.intercept_

    def _search(self, points: BrierPoints, places: Floats, centre: float, far: float) -> None:
        """Search slopes up to STEEPEST and offsets up to ``far``, at log-odds that are ``places`` + ``centre``."""
        corners = np.array([0.0, 0.0 - far]), np.array([STEEPEST, far])
        found = search(places, points.right, points.wrong, *corners, positive(self.tolerance, "tolerance"))
        self.slope_, self.intercept_ = found.slope, found.offset - found.slope * centre
        self.objective_ = points.score(self._apply(points.x))  # of the map as it is applied
        self.gap_ = max(0.0, self.objective_ - max(found.least, 0.0))


class CertifiedTemperature(CertifiedLogistic):
    """g(z) = sigmoid(logit(z) / T) with the least (1 - λ)·clean + λ·certified Brier score.

    What is claimed of the samples it is fitted to: no temperature from 0.001 up, infinity included (g = ½), has a score
    smaller by more than ``gap_``. The score is that of :class:`CertifiedIsotonic`, and it may have several local
    minima; :func:`certcal.calibrators._search.search` says why the gap is proved. This is a temperature of the log-odds
    of the confidence, which is all that a certificate is about; for more than two classes it differs from dividing all
    logits, and draws confidences to ½. Confidences nearer to 0 or 1 than 2^-24 are taken as that far away, so that an
    interval that reaches 1 can be moved at all.

    Parameters
    ----------
    tradeoff
        λ from 0 (clean) to 1 (certified).
    tolerance
        The gap that ends the search.

    Attributes
    ----------
    temperature_
        T, infinite where the best map is ½ for all.
    objective_
        Score of the map on the samples of the fit.
    gap_
        No other T has a score below ``objective_ - gap_``. At most the tolerance, unless the search would have taken
        more than some ten seconds.

    Examples
    --------
    >>> z = np.array([0.7, 0.8, 0.9, 0.95])
    >>> fitted = CertifiedTemperature(tradeoff=1).fit(z - 0.1, z + 0.05, [1, 0, 1, 1])
    >>> round(fitted.temperature_, 2), fitted.gap_ <= 1e-7
    (2.0, True)
    """

    intercept_ = 0.0
    _kept: ClassVar = {"slope": (0.0, STEEPEST), "objective": (0.0, 1.0), "gap": (0.0, 1.0)}

    def _fit_points(self, points: BrierPoints) -> None:
        low, high = log_odds(points.x)
        self._search(points, low + high, 0.0, 0.0)

    @property
    def temperature_(self) -> float:
        """T, infinite where the best map is ½ for all."""
        self._require_fitted()
        return 1 / self.slope_ if self.slope_ > 0 else float("inf")


class CertifiedBeta(CertifiedLogistic):
    """g(z) = sigmoid(a·logit(z) + c) with a >= 0 and the least (1 - λ)·clean + λ·certified Brier score.

    This is the beta map of Kull et al. (2017) with a = b. Of the families with two parameters it is the one that has
    the identity (a = 1, c = 0), every temperature (c = 0) and every constant (a = 0) in it, so on the samples of the
    fit it is not worse than any of those by more than ``gap_``; with c = 0 and two slopes there would be no constant
    but ½. The third parameter of the full beta map would cost a search in three dimensions.

    What is claimed of the samples it is fitted to: no a from 0 to 1000 and no c has a score smaller by more than
    ``gap_``; see :class:`CertifiedTemperature`, also for confidences of 0 and 1.

    Parameters
    ----------
    tradeoff, tolerance
        As for :class:`CertifiedTemperature`.

    Attributes
    ----------
    slope_, intercept_
        a and c.
    objective_, gap_
        Score of the map on the samples of the fit, and how much lower another could be at most.

    Examples
    --------
    >>> z = np.array([0.7, 0.8, 0.9, 0.95])
    >>> fitted = CertifiedBeta(tradeoff=1).fit(z - 0.1, z + 0.05, [1, 0, 1, 1])
    >>> round(fitted.slope_, 2), fitted.transform([0.9]).round(3).tolist()
    (0.0, [0.75])
    """

    _kept: ClassVar = {"slope": (0.0, STEEPEST), "intercept": (-1e6, 1e6), "objective": (0.0, 1.0), "gap": (0.0, 1.0)}

    def _fit_points(self, points: BrierPoints) -> None:
        low, high = log_odds(points.x)
        weight = points.right + points.wrong
        centre = float(weight @ (low + high) / weight.sum())
        places = low + high - centre
        # Beyond this offset every place is saturated, whatever the slope, and nothing changes any more.
        self._search(points, places, centre, STEEPEST * float(np.abs(places).max()) + _SATURATED)


_KINDS: dict[str, Callable[[float], CertifiedMap]] = {
    "isotonic": CertifiedIsotonic,
    "temperature": CertifiedTemperature,
    "beta": CertifiedBeta,
}
METHODS = tuple(_KINDS)


@names_wrong_types
def certified_path(
    samples: CertifiedSamples,
    tradeoffs: Sequence[float] = TRADEOFFS,
    *,
    method: str = "isotonic",
    radius_weight: Sequence[float] | None = None,
) -> tuple[CertifiedMap, ...]:
    """The best map of a family for each trade-off between the clean and the certified Brier score.

    The samples are checked and sorted once. With "isotonic", as λ grows the clean Brier score on them does not fall and
    the certified one does not rise; the pairs of scores lie on a convex curve, and no monotone map is below it: the set
    of pairs that monotone maps reach, with everything above them, is convex, because both scores are convex in the map.
    The maps at λ = 0 and λ = 1 are best in one score, and others that share it may be better in the second. For the
    families with parameters the order holds up to the gaps of their searches, and the curve need not be convex.

    Parameters
    ----------
    samples
        To fit to.
    tradeoffs
        λ from 0 to 1, in any order.
    method
        "isotonic" (all monotone maps), "temperature" or "beta" (families with one and two parameters).
    radius_weight
        Weights of the radii, equal when not given.

    Examples
    --------
    >>> lower, upper, correct = [0.1, 0.4, 0.7, 0.8], [0.3, 0.6, 0.9, 0.95], [0, 1, 0, 1]
    >>> samples = CertifiedSamples.from_intervals(lower, upper, correct, [0.2, 0.5, 0.8, 0.9])
    >>> [each.transform([0.5]).round(3).item() for each in certified_path(samples, [0, 0.5, 1])]
    [0.5, 0.667, 0.667]
    """
    kind = _KINDS[choice(method, METHODS, "method")]
    levels = [check_tradeoff(level) for level in tradeoffs]
    if not levels:
        raise InputError("tradeoffs is empty; pass at least one number from 0 (clean) to 1 (certified)")
    terms = BrierTerms.of(samples, radius_weight)
    return tuple(kind(level)._fit_terms(terms) for level in levels)  # pyright: ignore[reportPrivateUsage]


@dataclass(frozen=True, eq=False)
class BrierPoints:
    """Places and weights whose squared error is (1 - λ)·clean + λ·certified Brier score of a map into [0, 1].

    For a monotone map g and a sample with interval [l, u], the largest (c - g(z))² inside is (1 - g(l))² when c = 1
    and g(u)² when c = 0: one place per sample, whatever g is. So (1 - λ) times the clean Brier score plus λ times the
    certified one is Σ w (c - g(x))² over the clean confidences, each of weight (1 - λ)/N, and these places, each of
    weight λ v_r / N_r, with N_r samples certified at radius r and v_r the radius's share.

    Places are ascending, each once; ``right`` and ``wrong`` are the weights of the correct samples there and of the
    others, which together add up to 1.
    """

    x: Floats
    right: Floats
    wrong: Floats

    def score(self, values: Floats) -> float:
        """Σ w (c - g)², for a map's values at the places."""
        return float(np.sum(self.right * (1 - values) ** 2 + self.wrong * values**2))


@dataclass(frozen=True, eq=False)
class BrierTerms:
    """Clean and worst-case places of samples, ready to be weighted by any trade-off: sorted once for all of them.

    ``clean`` is None when the confidences without a perturbation are not known; ``worst`` has the places of the
    certified samples of each radius, and ``share`` what each radius counts: 1 together, 0 where nothing is certified.
    """

    clean: Part | None
    worst: tuple[Part, ...]
    share: Floats

    @classmethod
    def of(cls, samples: CertifiedSamples, radius_weight: Sequence[float] | None = None) -> BrierTerms:
        count = len(samples.radii)
        share = _radius_weights(radius_weight, count)
        worst: list[Part] = []
        for k in range(count):
            kept = samples.certified[:, k]
            place = np.where(samples.correct == 1, samples.lower[:, k], samples.upper[:, k])
            worst.append((place, samples.correct) if kept.all() else (place[kept], samples.correct[kept]))
            share[k] = share[k] if kept.any() else 0.0
        total = share.sum()
        clean = None if samples.confidence is None else (samples.confidence, samples.correct)
        return cls(clean, tuple(worst), share / total if total > 0 else share)

    def at(self, tradeoff: float) -> BrierPoints:
        if tradeoff < 1 and self.clean is None:
            raise InputError(
                f"confidence is missing: with tradeoff {tradeoff:g} the map is also fitted to the confidences without "
                "a perturbation; pass them, or tradeoff=1"
            )
        if tradeoff > 0 and not self.share.any():
            raise InputError(
                "no sample to fit to is certified at a radius that counts; pass a smaller radius, or tradeoff=0"
            )
        if tradeoff == 0:
            return self._clean
        return self._worst_points if tradeoff == 1 else self._clean_and_worst.at(tradeoff)

    @cached_property
    def _clean(self) -> BrierPoints:
        assert self.clean is not None
        return _brier_points(*self.clean)

    @cached_property
    def _worst_points(self) -> BrierPoints:
        found = [(_brier_points(x, c), float(v)) for (x, c), v in zip(self.worst, self.share, strict=True) if v > 0]
        mixed, weight = found[0]
        for points, v in found[1:]:
            weight += v
            mixed = _Mixture(mixed, points).at(v / weight)
        return mixed

    @cached_property
    def _clean_and_worst(self) -> _Mixture:
        return _Mixture(self._clean, self._worst_points)


class _Mixture:
    """Two sets of points on the places of both."""

    def __init__(self, first: BrierPoints, second: BrierPoints) -> None:
        x = np.concatenate([first.x, second.x])
        x.sort()
        self.x: Floats = x[np.concatenate(([True], x[1:] != x[:-1]))]
        self.first = _on_more_places(first, self.x)
        self.second = _on_more_places(second, self.x)

    def at(self, share: float) -> BrierPoints:
        (a, b), (c, d) = self.first, self.second
        right, wrong = (1 - share) * a + share * c, (1 - share) * b + share * d
        some = right + wrong > 0  # a share may be too small to leave anything
        return BrierPoints(self.x, right, wrong) if some.all() else BrierPoints(self.x[some], right[some], wrong[some])


def _on_more_places(points: BrierPoints, x: Floats) -> tuple[Floats, Floats]:
    right, wrong = np.zeros(x.size), np.zeros(x.size)
    place = np.searchsorted(x, points.x)
    right[place], wrong[place] = points.right, points.wrong
    return right, wrong


def _brier_points(places: Floats, correct: NDArray[np.uint8]) -> BrierPoints:
    """Points of samples that weigh the same. Their numbers are counted, so the order of samples changes no bit."""
    x, n, right = count_places(places, correct)
    return BrierPoints(x, right / places.size, (n - right) / places.size)


def _radius_weights(value: Sequence[float] | None, count: int) -> Floats:
    if value is None:
        return np.ones(count)
    weights = np.atleast_1d(np.array(to_numpy(value, "radius_weight"), np.float64))
    if weights.shape != (count,):
        raise InputError(f"radius_weight has shape {weights.shape}; pass one weight for each of {count} radii")
    bad = ~((weights >= 0) & (weights <= 1e100))
    if bad.any():
        index = int(np.argmax(bad))
        raise InputError(f"radius_weight[{index}] is {weights[index]:g}; pass ordinary numbers of at least 0")
    if not weights.max() >= 1e-100:
        raise InputError("radius_weight is 0 for every radius; at least one must be positive")
    return weights


@names_wrong_types
def radius_shares(samples: CertifiedSamples, radius_weight: Sequence[float] | None = None) -> tuple[float, ...]:
    """Per radius, its share of the certified Brier score of samples; 0 where nothing is certified.

    Parameters
    ----------
    samples
        Certified.
    radius_weight
        Weights of the radii, equal when not given.
    """
    return tuple(float(share) for share in BrierTerms.of(samples, radius_weight).share)


def check_tradeoff(tradeoff: Any) -> float:
    try:
        value = float(tradeoff)
    except (TypeError, ValueError, OverflowError):
        value = -1.0
    if isinstance(tradeoff, bool) or not 0 <= value <= 1:
        raise InputError(f"tradeoff is {tradeoff!r}; pass a number from 0 (clean) to 1 (certified)")
    return value
