"""The verb behind ``certcal.sample_until`` and its result. Why the claim holds is with ``_until``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError, choice, failure_probability, noise_level, random_seed, whole_number
from certcal._checks import labels as class_labels
from certcal.binning import CLOSED
from certcal.claims import Certificate, in_full, round_outward
from certcal.data import Inputs
from certcal.result import Result
from certcal.smoothing._certificates import CONFIDENCE, NAME, Certificates, check_radius
from certcal.smoothing._kinds import CONFIDENCES, DEFAULT_KIND
from certcal.smoothing._manifest import MOST_DRAWS
from certcal.smoothing._noise import NOISES
from certcal.smoothing._sampler import Sampler, check_rows, noisy_inputs, number_of_classes, spread
from certcal.smoothing._until import PART, Climb, draw
from certcal.verdict import HEADLINE, Candidate, Requirement

if TYPE_CHECKING:
    from certcal.models import Model

NAMES = ("ece", "calibration_error")
SAMPLES = ("certified", "all")
_COLUMNS = ("index", "label", "predicted", "draws", "votes", "invalid", "refuted")
_INTERVALS = ("certified", "lower", "upper", "radii")


class UntilSetting(msgspec.Struct, frozen=True):
    """What was asked, and how noise was drawn."""

    require: str
    radius: float
    sigma: float
    noise: str
    alpha: float
    confidence: str
    samples: str
    bins: int
    closed: str
    n: int
    n0: int
    seed: int
    model: str
    model_fingerprint: str = ""
    data_fingerprint: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class SampledUntil(Result):
    """A requirement on the calibration error under perturbation, and the draws that it took to decide it.

    Attributes
    ----------
    setting
        What was asked, and how noise was drawn.
    outcome
        "holds", "cannot" (proved: no number of draws will do) or "spent" (every sample that may help has n draws).
    index, label, predicted
        Which sample, its true class, and the class chosen.
    draws, votes, invalid
        Counted draws, those for the class, and those without a valid output (which count against it).
    refuted
        Whose votes show that they cannot be certified at the radius.
    certificates
        Intervals, which hold for all numbers of draws at which anybody looked.
    value
        The bound that was held against the limit: with open samples free. Over all samples, it is the claim.
    certified_value
        The bound on the certified samples alone.
    reach
        With "cannot": a lower bound of what any number of draws can certify, with probability 1 - alpha; else None.
    fixed
        Draws per sample with which a fixed design would have met the claim, estimated from the draws made: None where
        that is more than n, or where the requirement is not met.
    looks, stakes
        How often a sample might have been looked at, and how many times fresh draws were staked on sums.
    source
        What was sampled, if it has a name.
    """

    view: ClassVar[str] = "certcal.report.views.sampled_until"

    setting: UntilSetting
    outcome: str
    index: NDArray[np.int64]
    label: NDArray[np.int64]
    predicted: NDArray[np.int64]
    draws: NDArray[np.int64]
    votes: NDArray[np.int64]
    invalid: NDArray[np.int64]
    refuted: NDArray[np.bool_]
    certificates: Certificates
    value: float
    certified_value: float
    reach: float | None
    fixed: int | None
    looks: int
    stakes: int
    source: str = ""

    def __len__(self) -> int:
        return self.index.size

    def __bool__(self) -> bool:
        return self.outcome == "holds"

    def __repr__(self) -> str:
        drawn = f"certified={self.certificates.n_certified}, open={self.n_open}, draws={self.total}"
        return f"<SampledUntil {self.setting.require!r} {self.outcome}, n={len(self)}, {drawn}>"

    @property
    def total(self) -> int:
        """Counted draws of all samples; those that chose classes come on top, n0 each."""
        return int(self.draws.sum())

    @property
    def n_open(self) -> int:
        """Samples that are neither certified nor refuted, and have fewer than n draws."""
        return int(np.count_nonzero(~self.certificates.certified & ~self.refuted & (self.draws < self.setting.n)))

    @property
    def seeds(self) -> Mapping[str, int]:
        """Of the noise."""
        return {"noise": self.setting.seed}

    @property
    def sources(self) -> Sequence[str]:
        """The data."""
        return (self.source,) if self.source else ()

    @cached_property
    def claim(self) -> Certificate:
        """The certified calibration error: of the certified samples, or of all (also when none is certified)."""
        s, found = self.setting, self.certificates
        everyone = s.samples == "all" or not found.n_certified
        settings = {"confidence": CONFIDENCE, "intervals": s.confidence, "sums": "staked"}
        settings |= {"bins": s.bins, "closed": s.closed, "samples": "all" if everyone else s.samples}
        n, value = (len(self), self.value) if everyone else (found.n_certified, self.certified_value)
        return Certificate(NAME, value, "upper", s.radius, found.ledger, n, found.assumptions, settings)

    def claims(self) -> Sequence[Certificate]:
        """The one claim."""
        return (self.claim,)

    def candidates(self) -> Sequence[Candidate]:
        """The one claim, by its short names too."""
        return (Candidate(self.claim, NAMES),)

    @property
    def comparison(self) -> str:
        """How many draws it took, and how many a fixed design would have taken."""
        if self.outcome == "cannot":
            least = round_outward(self.reach or 0.0, "lower")
            among = " of the samples not refuted" if self.setting.samples == "certified" and self.refuted.any() else ""
            return f"{self.total:,} noise samples. No number certifies a calibration error{among} below {least}."
        if self.outcome == "spent":
            return f"{self.total:,} noise samples."
        more, each = ("about", self.fixed) if self.fixed is not None else ("more than", self.setting.n)
        fixed = f"A fixed design needs {more} {each:,} for each input, {each * len(self):,} in all"
        return f"{self.total:,} noise samples. {fixed} (an estimate, from these noise samples)."

    def contents(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "type": "sampled until",
            "setting": msgspec.to_builtins(self.setting),
            "outcome": self.outcome,
            "claim": self.claim.to_dict(),
            "sentence": in_full(self.claim),
            "value_with_open_samples": self.value,
            "certified_value": self.certified_value,
            "reach": self.reach,
            "total_draws": self.total,
            "fixed_design_draws_each": self.fixed,
            "looks": self.looks,
            "stakes": self.stakes,
            "n_open": self.n_open,
            **self.columns(),
        }

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """One line per sample."""
        own = {name: getattr(self, name).tolist() for name in _COLUMNS}
        return own | {name: getattr(self.certificates, name).tolist() for name in _INTERVALS}


def sample_until(
    model: Model,
    inputs: Any,
    labels: Any,
    require: str | Requirement,
    *,
    sigma: float,
    radius: float,
    n: int = 100_000,
    alpha: float = 0.001,
    confidence: str = DEFAULT_KIND,
    samples: str = "certified",
    bins: int = 15,
    closed: str = "left",
    n0: int = 100,
    seed: int = 0,
    noise: str = "gaussian",
    batch: int = 500,
    noise_threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> SampledUntil:
    """Draw until the certified calibration error is as required, or cannot be; draws go where that needs them.

    The claim means what that of :meth:`certcal.smoothing.Certificates.claim` with ``familywise`` means, and holds
    whatever made the drawing stop. What is random, what is assumed and why it holds: :mod:`certcal.smoothing._until`.
    Nothing is written to disk. The same arguments give the same draws and the same result, for any batch size.

    Parameters
    ----------
    model
        See :func:`certcal.models.wrap`.
    inputs, labels
        Samples and their true classes, or :class:`certcal.data.Inputs` and None. What lies in files is read in pieces.
    require
        Such as "ece <= 0.2".
    sigma
        Standard deviation of the noise.
    radius
        Of the perturbations.
    n
        Most counted draws per sample.
    alpha
        Probability with which the claim, and any of its intervals, may fail.
    confidence
        Kind of the samples' intervals, as for :func:`certificates`; one of those that are built in.
    samples
        "certified": the error of the certified samples. "all": of all, those that are not certified being free.
    bins, closed
        As for :func:`certcal.metrics.ece`.
    n0
        Draws that choose the class, apart from the others.
    seed, noise, batch, noise_threads
        As for :func:`sample`.
    progress
        Called with the draws made so far, and the most there may be.

    Examples
    --------
    >>> from certcal.models import wrap
    >>> model = wrap(lambda batch: np.stack([3 * batch[:, 0], -3 * batch[:, 0]], axis=1), outputs="logits")
    >>> points = np.linspace(0.1, 2, 40)[:, None]
    >>> found = sample_until(model, points, np.zeros(40, int), "ece <= 0.4", sigma=0.5, radius=0.25, n=2_000)
    >>> found.outcome, found.claim.value <= 0.4
    ('holds', True)
    """
    asked = _requirement(require)
    data = inputs if isinstance(inputs, Inputs) else Inputs.from_arrays(inputs, labels)
    setting = UntilSetting(
        require=asked.text,
        radius=check_radius(radius),
        sigma=noise_level(sigma),
        noise=choice(noise, NOISES, "noise"),
        alpha=failure_probability(alpha, "alpha"),
        confidence=choice(confidence, CONFIDENCES, "confidence"),
        samples=choice(samples, SAMPLES, "samples"),
        bins=whole_number(bins, 1, 10_000, "bins", "pass a number of bins from 1 to 10000"),
        closed=choice(closed, CLOSED, "closed"),
        n=whole_number(n, 1, MOST_DRAWS, "n", "pass the most draws per sample, at least 1"),
        n0=whole_number(n0, 1, MOST_DRAWS, "n0", "pass the number of draws that choose the class, at least 1"),
        seed=random_seed(seed),
        model=str(getattr(model, "description", type(model).__name__)),
    )
    sampler = Sampler(
        model, sigma=setting.sigma, seed=setting.seed, noise=noise, batch=batch, noise_threads=noise_threads
    )
    index = np.arange(len(data))
    tried = noisy_inputs(data.inputs[spread(len(data))], sigma=setting.sigma, seed=setting.seed, noise=noise)
    check_rows(model, tried, sampler.batch)
    setting = msgspec.structs.replace(
        setting, model_fingerprint=model.fingerprint(tried), data_fingerprint=data.fingerprint
    )
    class_labels(data.labels, number_of_classes(sampler, data.inputs))
    parts = np.array_split(index, -(-index.size // PART))  # inputs may be read from disk
    votes = [sampler.select(data.inputs[part], part, setting.n0).votes for part in parts]
    predicted = np.concatenate(votes).argmax(axis=1).astype(np.int64)
    climb, most = Climb(setting, sampler, data, predicted), setting.n * len(data)
    outcome, now = draw(climb, asked.met_by, asked.limit, lambda spent: progress and progress(spent, most))
    return SampledUntil(
        setting,
        outcome,
        index,
        data.labels,
        predicted,
        climb.draws,
        climb.votes,
        climb.invalid,
        climb.refuted,
        climb.certificates(),
        now.value,
        now.certified,
        climb.within_reach(now.signs) if outcome == "cannot" else None,
        climb.fixed_design(asked.met_by) if outcome == "holds" else None,
        climb.looks,
        climb.attempts,
    )


def _requirement(require: str | Requirement) -> Requirement:
    """What is required, if that is an upper limit of the calibration error."""
    asked = Requirement.parse(require)
    wrong = asked.name not in (*NAMES, HEADLINE) or asked.side != "upper"
    if wrong or asked.estimate or asked.every or asked.settings:
        reason = f"{asked.text!r} is no upper limit of the calibration error alone"
        raise InputError(reason, argument="require", remedy="write it as 'ece <= 0.2'; bins are a setting of their own")
    return asked
