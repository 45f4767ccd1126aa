"""How large can the true calibration error be? Bounds that hold for the population behind a table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from certcal._base.checks import MOST_CHANGE, InputError
from certcal._base.progress import Progress, ProgressLike, as_reporter
from certcal._base.signature import SEED, Range, Takes, gather, settings_of, verb
from certcal._base.text import capital, counted
from certcal._base.told import Told
from certcal.claims import Bound, Estimate, TwoSidedBound, round_outward
from certcal.data import load_table
from certcal.data.grouping import GroupingColumns
from certcal.data.sources import PredictionData, PredictionSource, about_predictions
from certcal.predictions import Predictions
from certcal.result import Answer, NamedAsPrinted, Result, Sentence, answer_of_claims
from certcal.verbs.answers import command_for
from certcal.verbs.groups import ByName
from certcal.verdict import Candidate

if TYPE_CHECKING:
    from certcal.bounds import BandwidthChoice, CalibrationBand


@dataclass(frozen=True)
class BoundSettings(Told):
    """What :func:`bound` was asked; ``bound(data, **vars(settings))`` asks it again."""

    delta: float
    joint: bool
    bins: int
    closed: str
    variation: float
    lipschitz: float | None
    perturb: float | None
    scale: str
    form: str
    classwise: bool
    largest_weight: float | None
    seed: int

    def __post_init__(self) -> None:
        if self.perturb is not None and (self.lipschitz is not None or self.classwise):
            other = "lipschitz" if self.lipschitz is not None else "classwise"
            raise InputError(f"it cannot be combined with {other}", argument="perturb", remedy="leave one out")
        if self.form == "repaired" and self.perturb is None:
            reason = "only the bound of perturbed scores has this form"
            raise InputError(reason, argument="form", remedy="pass perturb, or leave it out")
        if self.form != "direct" and self.scale != "probability":
            reason = "the logit scale has the direct form only"
            raise InputError(reason, argument="form", remedy="leave it out, or scale")

    @property
    def conventions(self) -> dict[str, Any]:
        """How the numbers were computed, for machines."""
        names = "variation", "lipschitz", "perturb", "largest_weight"
        given = {name: getattr(self, name) for name in names}
        found = {"delta": self.delta, "joint": self.joint, "bins": self.bins, "closed": self.closed}
        found |= {name: value for name, value in given.items() if value is not None}
        if self.scale != "probability":
            found["scale"] = self.scale
        if self.form != "direct":
            found["form"] = self.form
        return found | {"seed": self.seed, "classwise": self.classwise}


@dataclass(frozen=True, eq=False)
class BoundedGroup(NamedAsPrinted, Told):
    """The bounds of all samples or of one group."""

    name: str
    """Name of the group; "all" for all samples."""
    n: int
    """Number of samples."""
    bounds: Mapping[str, Bound]
    """By method, the function of :mod:`certcal.bounds`; the mean over classes has "classwise_" before it."""
    interval: TwoSidedBound
    """The binned error from both sides, which hold together."""
    unproved: Mapping[str, Estimate] = field(default_factory=dict[str, Estimate])
    """What a published formula gives whose proof has a gap, by method: an estimate, not a bound."""
    where: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of a group, its value of each column."""

    def named(self) -> Mapping[str, Bound]:
        """The bounds by method."""
        return self.bounds

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        found: dict[str, Any] = {"bounds": [{"method": name, **each.to_dict()} for name, each in self.bounds.items()]}
        found["interval"] = self.interval.to_dict()
        others = [{"method": name, **each.to_dict()} for name, each in self.unproved.items()]
        return found | ({"unproved": others} if others else {})

    def lines(self) -> Iterator[tuple[Any, ...]]:
        """Rows of a table: every bound followed by its terms, then both sides at once."""
        for name, bound in self.bounds.items():
            rest = bound.delta, bound.n
            yield name, None, bound.side, bound.value, bound.text, *rest, bound.statement
            for term, value in bound.terms.items():
                yield name, term, bound.side, float(value), round_outward(value, bound.side), *rest, None
        for name, each in self.unproved.items():
            yield name, None, None, each.value, None, None, each.n, each.sentence
        for end in (self.interval.lower, self.interval.upper):
            rest = self.interval.delta, end.n, self.interval.statement
            yield "binned_interval", None, end.side, end.value, end.text, *rest


def bound_in_words(bound: Bound) -> tuple[Bound, str, str]:
    """A bound with what it is about and over what; a binned error says nothing without its bins."""
    over = "" if "the population" in bound.name else "in the population"
    return bound, capital(bound.name), f"with {bound.settings['bins']:,} bins" if "bins" in bound.settings else over


@dataclass(frozen=True, eq=False, repr=False)
class Bounds(Result):
    """Bounds on the true calibration error behind a table.

    Examples
    --------
    >>> import certcal
    >>> b = certcal.bound({"confidence": [0.75] * 400, "correct": [1, 1, 1, 0] * 100})
    >>> b["binned"].text, b.interval.text
    ('0.0643', '0.0000 to 0.0706')
    """

    view: ClassVar[str] = "certcal.report.views.bounds"

    source: str
    """Name of the file, or what was bounded."""
    about: Mapping[str, Any]
    """Further facts for machines: columns, kind, classes."""
    description: str
    """What was read, in a line for people."""
    whole: BoundedGroup
    """The bounds of all samples."""
    by: str | None
    """The column of the groups, or None."""
    groups: ByName[BoundedGroup]
    """The bounds of each group, by place or name. Those of one method hold together: each has its share of delta."""
    conventions: Mapping[str, Any]
    """Delta and what else was asked for."""
    settings: BoundSettings | None = None
    """What was asked: ``bound(data, **vars(b.settings))`` gives the same bounds."""
    groupings: Sequence[GroupingColumns] = ()
    """What the groups are made of, and how columns were cut."""

    @property
    def n(self) -> int:
        """Number of samples."""
        return self.whole.n

    @property
    def bounds(self) -> Mapping[str, Bound]:
        """The bounds of all samples, by method."""
        return self.whole.bounds

    @property
    def interval(self) -> TwoSidedBound:
        """The binned error of all samples from both sides at one delta."""
        return self.whole.interval

    def named(self) -> Mapping[str, Bound]:
        """The bounds of all samples by method."""
        return self.bounds

    def __repr__(self) -> str:
        first = next(iter(self.bounds.values()))
        return f"<Bounds of {self.source}: {counted(self.n, 'sample')}, {first.name} at most {first.text}>"

    @property
    def seeds(self) -> Mapping[str, int]:
        """Seed of noise and folds."""
        return {"noise and folds": self.conventions["seed"]}

    def claims(self) -> Sequence[Bound | TwoSidedBound | Estimate]:
        """Every bound, both sides at once, and what a published formula without a proof gives."""
        parts = (self.whole, *self.groups)
        every = ((*part.bounds.values(), part.interval, *part.unproved.values()) for part in parts)
        return [each for some in every for each in some]

    def top(self) -> Sequence[Any]:
        """The first bound."""
        return [bound_in_words(next(iter(self.bounds.values())))]

    @property
    def answer(self) -> Answer:
        """The first bound, and where to look."""
        where = command_for(["measure"], "measure", self.source, self.about.get("columns", {}))
        unsaid = ["where the error is, and in which direction", "anything about samples that are drawn differently"]
        look = Sentence("next", "Where it is, and in which direction:", data={"command": where})
        return answer_of_claims(self.top(), look, unsaid)

    def candidates(self) -> Sequence[Candidate]:
        """Every bound, also by its method."""
        whole = [Candidate(bound, (method,)) for method, bound in self.bounds.items()]
        return whole + [
            Candidate.of_group(bound, (method,), group, self.by)
            for group in self.groups
            for method, bound in group.bounds.items()
        ]

    def contents(self) -> dict[str, Any]:
        """Plain values for JSON."""
        document: dict[str, Any] = {
            "source": self.source,
            "n": self.n,
            **self.about,
            "conventions": dict(self.conventions),
            **self.whole.to_dict(),
        }
        if self.by is not None:
            document["by"] = self.by
            document["groupings"] = [each.to_dict() for each in self.groupings]
            document["groups"] = [
                {"group": each.name, "n": each.n, "where": dict(each.where), **each.to_dict()} for each in self.groups
            ]
        return document

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """One line per bound with all digits, followed by its terms."""
        names = ("method", "term", "side", "value", "text", "delta", "n", "sentence")
        lines = list(self.whole.lines())
        if self.by is not None:
            names = (self.by if len(self.groupings) < 2 else "group", *names)
            lines = [(part.name, *line) for part in (self.whole, *self.groups) for line in part.lines()]
        return dict(zip(names, zip(*lines, strict=True), strict=True))


@about_predictions
@verb()
def bound(
    data: PredictionSource,
    *,
    score: str | Iterable[Any] | None = None,
    outcome: str | Iterable[Any] | None = None,
    positive: Any = None,
    negative: Any = None,
    confidence: str | Iterable[Any] | None = None,
    correct: str | Iterable[Any] | None = None,
    prediction: str | Iterable[Any] | None = None,
    label: str | Iterable[Any] | None = None,
    probabilities: str | Iterable[Any] | None = None,
    logits: str | Iterable[Any] | None = None,
    weight: str | Iterable[Any] | None = None,
    decimal: Literal[".", ","] | None = None,
    percent: bool | None = None,
    encoding: str | None = None,
    missing: Literal["drop"] | None = None,
    skip: int | None = None,
    sheet: str | None = None,
    columns: Mapping[str, Any] | None = None,
    by: str | Iterable[Any] | None = None,
    delta: Annotated[float, Takes("failure")] = 0.05,
    joint: bool = False,
    bins: Annotated[int, Range(1, 10_000)] = 15,
    closed: Literal["left", "right"] = "left",
    variation: Annotated[float, Takes("positive", most=MOST_CHANGE)] = 1.0,
    lipschitz: Annotated[float | None, Takes("positive", most=MOST_CHANGE)] = None,
    perturb: Annotated[float | None, Takes("positive")] = None,
    scale: Literal["probability", "logit"] = "probability",
    form: Literal["direct", "repaired", "published"] = "direct",
    classwise: bool = False,
    largest_weight: Annotated[float | None, Takes("positive")] = None,
    seed: Annotated[int, SEED] = 0,
    source: str | None = None,
    progress: ProgressLike = True,
) -> Bounds:
    """Bound the true calibration error of the classifier behind the predictions, in every way that is allowed.

    A measured error is an estimate that can be wrong by any amount. A bound holds with probability 1 - delta over the
    draw of the samples, for any number of them, under the assumptions that it lists. The samples must not have been
    used to train, choose or recalibrate the classifier.

    The bounds of k groups fail with probability at most delta/k each, so those of one method hold together with
    probability 1 - delta, given how many samples each group has. Samples with weights are bounded by the binned error
    of the weighted population; the other bounds are for samples of equal weight.

    Parameters
    ----------
    data
        Predictions from any source: a table, ``bound(y_true, y_prob)``, ``bound(estimator, X, y)`` or
        ``bound(model, data)``, as for :func:`certcal.measure`.
    score, outcome, positive, negative, confidence, correct, prediction, label, probabilities, logits, weight
        Columns of a table by role, or their values; as for :func:`certcal.measure`.
    decimal, percent, encoding, missing, skip, sheet
        How a table is read; as for :func:`certcal.measure`.
    columns
        The same, as a dictionary.
    by
        Bound each group beside the whole, as for :func:`certcal.measure`: of columns, and of crossings of them.
    delta
        Failure probability of each bound; groups share it.
    joint
        Share delta among all bounds, so that they hold together.
    bins
        Number of bins of the binned error.
    closed
        Closed end of each bin.
    variation
        Total variation of the accuracy (observed rate) as a function of confidence (score); 1 suffices if it rises.
    lipschitz
        Lipschitz constant of the accuracy (observed rate) as a function of confidence (score).
    perturb
        Bandwidth of noise added to the scores first; the bound is about the perturbed scores.
    scale
        Scale of the noise, or of the Lipschitz constant; logit suits rare outcomes.
    form
        Form of the bounds that have several: direct, the tightest; published, the paper's formulas; or repaired, the
        published one of perturbed scores with its proof mended.
    classwise
        Also bound the classwise calibration error, averaged over classes.
    largest_weight
        Largest weight in the population. Default: the largest in the table, as an assumption.
    seed
        Random seed of the noise and the folds.
    source
        What is bounded, in a few words; by default the file's name.
    progress
        Whether to show how far the work is; or a function or an object that is told.

    Examples
    --------
    >>> import certcal
    >>> table = {"confidence": [0.75] * 400, "correct": [1, 1, 1, 0] * 100, "site": ["a", "b"] * 200}
    >>> b = certcal.bound(table, by="site")
    >>> [(each.name, each.bounds["binned"].delta, each.bounds["binned"].text) for each in b.groups]
    [('a', 0.025, '0.2689'), ('b', 0.025, '0.3588')]
    """
    progress = as_reporter(progress)
    asked = gather(BoundSettings, locals())
    progress.stage("reading")
    read = data.load(columns, locals(), by)
    _refuse_impossible_settings(read, asked)
    progress.stage("bounding", 1 + len(read.groups))
    parts = _bound_groups(read, asked, progress)
    name = source or read.name
    about = (read.about, read.description, parts[0], read.by, ByName(parts[1:]), asked.conventions, asked)
    return Bounds(name, *about, read.groupings)


def _refuse_impossible_settings(read: PredictionData, settings: BoundSettings) -> None:
    predictions, name, kind = read.predictions, read.name, read.about["kind"]
    if settings.scale != "probability" and settings.perturb is None and settings.lipschitz is None:
        raise InputError("it is of perturb or lipschitz", argument="scale", remedy="pass one of them, or leave it out")
    if settings.classwise and predictions.probabilities is None:
        reason = f"it needs a probability for each class, and {name} has {kind} only"
        raise InputError(reason, argument="classwise")
    if predictions.sample_weight is None:
        if settings.largest_weight is not None:
            raise InputError("the samples have no weights", argument="largest_weight", remedy="leave it out")
        return
    for asked in ("lipschitz", "perturb", "classwise", "form"):
        if getattr(settings, asked) not in (None, False, "direct"):
            reason = f"only the binned error has a bound for weighted samples, and {name} has weights"
            raise InputError(reason, argument=asked, remedy="leave it out, or the weights")


def _bound_groups(read: PredictionData, settings: BoundSettings, progress: Progress) -> Sequence[BoundedGroup]:
    """The bounds of the whole and of its groups, each at its level."""
    from certcal.bounds import equal_share

    whole = ("all", read.predictions, dict[str, str]())
    every = [whole, *((each.name, each.predictions, dict(each.where)) for each in read.groups)]
    asked = [(name, part, where, _functions(part, settings)) for name, part, where in every]
    several = sum(len(functions) for *_, functions in asked)
    found: list[BoundedGroup] = []
    for name, part, where, functions in asked:
        level = settings.delta if not found else equal_share(settings.delta, len(read.groups))
        each = equal_share(settings.delta, several) if settings.joint else level
        bounds = {
            method: replace(bound, assumptions=(*bound.assumptions, *part.doubts))
            for method, bound in ((method, function(each)) for method, function in functions.items())
        }
        ends = (functions[method](level / 2) for method in ("binned_lower", "binned"))
        interval = TwoSidedBound(*((bounds["binned_lower"], bounds["binned"]) if settings.joint else ends))
        found.append(
            BoundedGroup(name, len(part), bounds, interval, _estimate_by_published_formula(part, settings, each), where)
        )
        progress.advance(1)
    return found


def _estimate_by_published_formula(part: Predictions, asked: BoundSettings, delta: float) -> dict[str, Estimate]:
    """The published formula for perturbed scores, if it is asked for."""
    from certcal.bounds import smooth

    if asked.form != "published" or asked.perturb is None:
        return {}
    z, c, h = part.confidence, part.correct, asked.perturb
    return {"smooth": smooth(z, c, h, delta, form="published", seed=asked.seed, perturb=True)}


def choose_bandwidth(
    data: Predictions | str | os.PathLike[str] | Any,
    tolerance: float,
    *,
    columns: Mapping[str, Any] | None = None,
    scale: str = "probability",
) -> BandwidthChoice:
    """The largest bandwidth of noise that lowers AUROC by at most the tolerance.

    Parameters
    ----------
    data, columns
        As for :func:`certcal.measure`. Bound other samples with the bandwidth than those it was chosen with.
    tolerance
        The fall that is allowed.
    scale
        Scale of the noise: "probability" or "logit".
    """
    from certcal.bounds import choose_bandwidth as choose

    predictions = data if isinstance(data, Predictions) else load_table(data, columns).predictions
    if predictions.sample_weight is not None:
        raise InputError("a bandwidth is chosen with samples of equal weight; leave the weights out")
    return choose(predictions.confidence, predictions.correct, tolerance, scale=scale)


def where(
    data: Predictions | str | os.PathLike[str] | Any,
    *,
    columns: Mapping[str, Any] | None = None,
    **options: Any,
) -> CalibrationBand:
    """At which scores the classifier is miscalibrated: a band for the rate of outcome 1 at every score at once.

    Beside the band it has the rate as total variation denoising reconstructs it (:func:`certcal.bounds.denoised`).

    Parameters
    ----------
    data, columns
        As for :func:`certcal.measure`.
    options
        Those of :func:`bound`: delta and seed; with lipschitz or perturb the band of
        :func:`certcal.bounds.surrogate`, otherwise that of :func:`certcal.bounds.isotonic_band`, for a rate that does
        not fall as the score rises.

    Examples
    --------
    >>> print(where({"score": [0.2] * 100 + [0.8] * 100, "outcome": [0, 1] * 50 + [1] * 100}).regions[0].sentence)
    Scores from 0.2000 to 0.3726 under-predict: at 0.2000 the rate is at least 0.3725.
    """
    from certcal.bounds import denoised, isotonic_band, perturb, surrogate

    asked = settings_of(bound, BoundSettings, **options)
    if asked.form != "direct":
        raise InputError("a band has one form", argument="form", remedy="leave it out")
    if asked.scale != "probability":
        raise InputError("a band has noise on the probability scale", argument="scale", remedy="leave it out")
    given = isinstance(data, Predictions)
    loaded = None if given else load_table(data, columns)
    predictions: Predictions = data if given else loaded.predictions  # pyright: ignore
    if predictions.sample_weight is not None:
        raise InputError("a band is for samples of equal weight; leave the weights out")
    z, c = predictions.confidence, predictions.correct
    if asked.perturb is not None:
        z = perturb(z, asked.perturb, asked.seed)
    if asked.perturb is None and asked.lipschitz is None:
        found = isotonic_band(z, c, asked.delta)
    else:
        found = surrogate(z, c, asked.perturb, asked.delta, constant=asked.lipschitz)
    return replace(found, denoised=denoised(z, c, asked.delta), source=None if loaded is None else loaded.path.name)


def plain_bounds(predictions: Predictions, delta: float, bins: int, closed: str) -> tuple[Bound, ...]:
    """The upper bounds that need no further question; the first is on the true calibration error, if there is one."""
    asked = settings_of(bound, BoundSettings, delta=delta, bins=bins, closed=closed)
    functions = _functions(predictions, asked)
    return tuple(functions[name](delta) for name in ("bounded_variation", "binned") if name in functions)


def _functions(predictions: Predictions, asked: BoundSettings) -> dict[str, Callable[[float], Bound]]:
    from certcal.bounds import bound_functions

    classes = {"probabilities": predictions.probabilities, "labels": predictions.labels} if asked.classwise else {}
    return bound_functions(
        predictions.confidence,
        predictions.correct,
        bins=asked.bins,
        closed=asked.closed,
        variation=asked.variation,
        constant=asked.lipschitz,
        bandwidth=asked.perturb,
        scale=asked.scale,
        form=asked.form,
        seed=asked.seed,
        sample_weight=predictions.sample_weight,
        largest_weight=asked.largest_weight,
        **classes,
    )
