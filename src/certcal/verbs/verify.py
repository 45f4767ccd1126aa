"""How wrong can the confidences be when inputs move inside a box? Certificates without noise, for the model itself."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, cast

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError
from certcal._base.json import PlainValues
from certcal._base.progress import Progress, ProgressLike, as_reporter
from certcal._base.rounding import claim_text, share_text
from certcal._base.signature import Option, Range, Takes, gather, verb
from certcal._base.text import counted
from certcal._base.told import Told
from certcal.claims import Bound, Estimate, assumptions_of
from certcal.data import Inputs, IntervalOrigin, intervals_as_parquet, read_features
from certcal.data.columns import METADATA, columns_as_table
from certcal.data.features import is_table
from certcal.data.sources import ArrowStream
from certcal.result import Answer, NamedAsPrinted, Result, answer_of_claims
from certcal.verbs.certification import INTERVALS
from certcal.verbs.model_and_data import COUNT, SIDE, DataSet, model_on_data, open_data, open_model
from certcal.verdict import Candidate
from certcal.verification import InputBox, Verified
from certcal.verification.boxes import short
from certcal.verification.kinds import kind_of

if TYPE_CHECKING:
    from certcal.verification import Perturbations, Verifier
    from certcal.worst_case import CertifiedSummary, WorstCase

PIECE = 20_000
_SWEEPS = 20
_MOST_SEARCHED = 200_000


_NONE_CERTIFIED = " of all samples (none is certified),"
# Letters of a box that the answer describes whole.
_LONGEST = 60
_DRAWN = "anything about samples that are drawn differently"


@dataclass(frozen=True)
class VerifySettings(Told):
    """What :func:`verify` was asked; ``verify(model, data, box, **vars(settings))`` asks it again."""

    label: str | None
    split: str | None
    limit: int | None
    every: int
    resize: int | None
    crop: int | None
    epsilon: tuple[float, ...]
    effort: int
    attack: bool
    bins: int
    closed: str
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", tuple(sorted(set(self.epsilon))))
        if not self.epsilon:
            raise InputError("there is none", argument="epsilon", remedy="give at least one")


@dataclass(frozen=True, eq=False)
class VerifiedAt(
    NamedAsPrinted,
    PlainValues,
    keys="epsilon mean_width=width mean_reached_width=reached_width reached_at_both_ends=exact classes_changed reached "
    "**summary",
):
    """What was verified at one multiple of the box."""

    epsilon: float
    """Multiple of the box's amounts."""
    verified: Verified
    """Intervals of the scores, and what an attack reached inside the box."""
    summary: CertifiedSummary
    """What the intervals mean together: worst cases over these samples, and the bound for the population."""
    reached: Estimate
    """The largest calibration error for which an attack found inputs: a lower end of the worst case over the samples
    that the summary's is over. Without an attack the calibration error of the samples as they are."""

    def named(self) -> Mapping[str, Any]:
        """The claims by their keys, about certified samples where there are some; and what an attack reached."""
        claims = sorted(self.summary.claims(), key=lambda each: each[1] != "all")
        return {key: claim for key, _, claim in claims} | {"reached": self.reached}

    @property
    def worst(self) -> WorstCase:
        """The worst calibration error: of the certified samples, or of all when none is certified."""
        found = self.summary["calibration_error"]
        return found.worst or found.worst_all

    @property
    def population(self) -> Bound:
        """The bound for the population behind those samples."""
        return self.summary.population or self.summary.population_all

    @property
    def width(self) -> float:
        """Mean width of the intervals."""
        return float((self.verified.upper - self.verified.lower).mean())

    @property
    def reached_width(self) -> float:
        """Mean distance between the smallest and the largest score that the attack reached."""
        return float((self.verified.reached_upper - self.verified.reached_lower).mean())

    @property
    def exact(self) -> float:
        """Share of samples whose interval is reached at both ends, to within 0.0001."""
        found = self.verified
        inside = np.maximum(found.upper - found.reached_upper, found.reached_lower - found.lower)
        return float((inside <= 1e-4).mean())

    @property
    def classes_changed(self) -> int:
        """How many predicted classes the attack changed."""
        return int(self.verified.flipped.sum())


@dataclass(frozen=True, eq=False, repr=False)
class Verification(Result, keys="source n=correct.size **about box assumptions conventions alpha results=lines"):
    """Intervals of a model's scores over a perturbation set, without noise, and what they certify.

    What is claimed at each multiple: whatever becomes of the inputs inside their boxes, all at once, the model's own
    score of each sample stays in its interval. This holds for certain, so alpha is 0. For a binary score the outcome
    does not depend on the inputs, and every sample counts; otherwise a sample is certified when its class cannot
    change. :func:`certcal.certify` and :func:`certcal.recalibrate` take a verification in place of a table.

    Examples
    --------
    >>> import certcal, numpy as np
    >>> from sklearn.ensemble import GradientBoostingClassifier
    >>> x = np.random.default_rng(0).normal(size=(300, 3))
    >>> y = (x[:, 0] + x[:, 1] > 0).astype(int)
    >>> model = GradientBoostingClassifier(n_estimators=10, max_depth=2, random_state=0).fit(x[:200], y[:200])
    >>> v = certcal.verify(model, (x[200:], y[200:]), 0.05)
    >>> bool((v.at().verified.lower <= v.confidence).all()), len(v)
    (True, 100)
    >>> v.at().reached.value <= v.at().worst.value
    True
    """

    view: ClassVar[str] = "certcal.report.views.verification"
    forms: ClassVar[Sequence[str]] = (*Result.forms, INTERVALS)
    alpha: ClassVar[float] = 0.0  # no interval can fail

    source: str
    about: Mapping[str, Any]
    description: str
    """What was verified: for people, for machines, and in a line."""
    box: InputBox
    """What may change."""
    lines: tuple[VerifiedAt, ...]
    """Per multiple of the box, the smallest first."""
    correct: NDArray[np.uint8]
    """The outcome of a binary score; otherwise whether the predicted class is right."""
    confidence: NDArray[np.float64]
    """The score, or the predicted class's confidence, of the samples as they are."""
    binary: bool
    """Whether it is a binary score."""
    assumptions: tuple[str, ...]
    """What the intervals rest on."""
    settings: VerifySettings
    """What was asked for."""

    def __len__(self) -> int:
        return self.correct.size

    def __iter__(self) -> Iterator[VerifiedAt]:
        return iter(self.lines)

    def at(self, epsilon: float | None = None) -> VerifiedAt:
        """What was verified at a multiple of the box; the largest when not given."""
        found = [line for line in self.lines if epsilon in (None, line.epsilon)]
        if not found:
            known = ", ".join(f"{line.epsilon:g}" for line in self.lines)
            raise InputError(f"{epsilon:g} is not one of {known}", argument="epsilon")
        return found[-1]

    @property
    def sizes(self) -> str:
        """The box and the multiples of its amounts, for people."""
        return _sizes_text(self.box, self.settings)

    def __repr__(self) -> str:
        one = self.at()
        said = f"calibration error from {one.reached.value:.4f} to {one.worst.text}"
        return f"<Verification of {self.source}: {counted(len(self), 'sample')}, {said}>"

    def claims(self) -> Sequence[Any]:
        """The bound for the population at the largest multiple, the worst case, what is reached; then all others."""
        first = [claim for line in reversed(self.lines) for claim in (line.population, line.worst, line.reached)]
        rest = [claim for line in self.lines for _, _, claim in line.summary.claims()]
        return tuple({id(claim): claim for claim in (*first, *rest)}.values())

    def top(self) -> Sequence[Any]:
        """The bound for the population at the largest multiple, and between what the worst case of the samples lies."""
        one, some = self.at(), self.at().summary.n_certified
        which = f" of certified samples ({some:,} of {len(self):,})" if some else _NONE_CERTIFIED
        size = self.box.times(one.epsilon)
        told = [size if len(size) <= _LONGEST else f"{short(one.epsilon)} × the amounts below"]
        told += [f"the largest of {len(self.lines)}"] if len(self.lines) > 1 else []
        over = "the samples whose class cannot change" if some and not self.binary else "all samples"
        between = f"{share_text(one.reached.value, 'lower')}, which an attack reached, and {claim_text(one.worst)}"
        return [
            (
                one.population,
                f"ECE of the population{'' if self.binary else which}",
                f"whatever inputs do inside the box ({'; '.join(told)})",
            ),
            (one.worst, f"On these samples the worst ECE over {over} is between {between}, which is certified."),
        ]

    @property
    def answer(self) -> Answer:
        """What holds of the population and of these samples, whatever inputs do inside the box."""
        found = answer_of_claims(self.top(), unsaid=["what inputs outside their boxes do", _DRAWN])
        return replace(found, assumptions=(*assumptions_of(self.at().population), *self.assumptions))

    def candidates(self) -> Sequence[Candidate]:
        """The claims of the largest multiple first."""
        found: list[Candidate] = []
        for line in reversed(self.lines):
            where = {"epsilon": line.epsilon}
            found.append(Candidate.certified(line.population, "population_bound", where, "ece"))
            found += [
                Candidate.certified(claim, key, {**where, "samples": samples})
                for key, samples, claim in line.summary.claims()
            ]
            found.append(Candidate(line.reached, ("reached", "reached_ece"), None, where))
        return found

    @property
    def conventions(self) -> Mapping[str, Any]:
        """How the numbers were computed."""
        return {each: getattr(self.settings, each) for each in ("effort", "attack", "bins", "closed", "delta")}

    def intervals(self) -> dict[str, NDArray[Any]]:
        """The table of intervals by column, as :func:`certcal.certify` reads it: a row per sample and multiple."""
        n, several = len(self), len(self.lines)
        found = {
            "radius": np.repeat([line.epsilon for line in self.lines], n),
            "sample": np.tile(np.arange(n), several),
            "lower": np.concatenate([line.verified.lower for line in self.lines]),
            "upper": np.concatenate([line.verified.upper for line in self.lines]),
            "outcome" if self.binary else "correct": np.tile(self.correct, several),
            "confidence": np.tile(self.confidence, several),
            "reached_lower": np.concatenate([line.verified.reached_lower for line in self.lines]),
            "reached_upper": np.concatenate([line.verified.reached_upper for line in self.lines]),
            "alpha": np.zeros(n * several),
        }
        if not self.binary:
            found["certified"] = np.concatenate([line.verified.certified for line in self.lines])
        return found

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """The table of intervals with all digits."""
        return {name: values.tolist() for name, values in self.intervals().items()}

    @property
    def origin(self) -> IntervalOrigin:
        """What the intervals are and rest on."""
        return IntervalOrigin("deterministic", f"no noise; {self.sizes}", self.assumptions)

    def table(self) -> Any:
        """The intervals as a pyarrow Table that says what they rest on."""
        return columns_as_table(self.intervals(), {METADATA: self.origin.text})

    def to_bytes(self, form: str, **options: Any) -> bytes:
        """The content of a file of the answer; of .parquet the intervals, which can be certified again."""
        if form != INTERVALS:
            return super().to_bytes(form, **options)
        return intervals_as_parquet(self.intervals(), self.origin)


@verb()
def verify(
    model: object,
    data: str | os.PathLike[str] | Inputs | DataSet | ArrowStream,
    box: float | Mapping[str, float | str] | InputBox | None = None,
    *,
    outputs: Annotated[Literal["logits", "probabilities"] | None, Option(metavar="KIND")] = None,
    weights: Annotated[str | os.PathLike[str] | None, Takes("file"), Option(metavar="FILE")] = None,
    label: Annotated[str | None, Takes("text"), Option(metavar="COLUMN")] = None,
    split: Literal["train", "test"] | None = None,
    limit: Annotated[int | None, COUNT] = None,
    every: Annotated[int, COUNT] = 1,
    resize: Annotated[int | None, SIDE, Option(metavar="PIXELS")] = None,
    crop: Annotated[int | None, SIDE, Option(metavar="PIXELS")] = None,
    epsilon: Annotated[float | Iterable[float], Takes("distance", zero=True), Option(metavar="E")] = 1.0,
    effort: Annotated[int, Range(0, 10_000_000)] = 100,
    attack: bool = True,
    bins: Annotated[int, Range(1, 10_000)] = 15,
    closed: Literal["left", "right"] = "left",
    delta: Annotated[float, Takes("failure")] = 0.05,
    source: str | None = None,
    progress: ProgressLike = True,
) -> Verification:
    """Bound a model's scores over everything that its inputs may become, without noise, and certify their calibration.

    Parameters
    ----------
    model
        A fitted classifier of scikit-learn (random forests, extra trees, gradient boosting, histogram gradient
        boosting), XGBoost or LightGBM, one of their Boosters, the file that XGBoost (.json, .ubj) or LightGBM (.txt)
        has saved; a torch network of linear layers and ReLU in sequence, or its file; or "module:name" of these.
    data
        A table of which one column holds the labels and every other is a feature, or a pair of features and labels; NaN
        is missing. Columns go by name where the model stores the names it was fitted on, in any order, and by position
        where it does not, as networks do. For networks also inputs as :func:`certcal.attack` takes them.
    box
        What may change: an :class:`~certcal.verification.InputBox`, amounts by feature, or one number for all features,
        in units of their standard deviations for tables and as it is for other inputs. By default one standard
        deviation, which is for use with ``epsilon``.
    outputs
        Model outputs: logits or probabilities. Default: as the model file says.
    weights
        Weights of the network: .safetensors, or a checkpoint (.pth .pth.tar .pt .ckpt .bin).
    label
        Column of the labels in a table of features.

        By default the one whose name says it.
    split
        Split of the data. Default: test.
    limit
        Verify the first N samples. Default: all.
    every
        Use samples 0, N, 2N, … of the data; Cohen et al. take N = 20 on CIFAR-10.
    resize
        Resize images of a folder: pixels of the shorter side. Needed if sizes differ.
    crop
        Crop the centre of images of a folder: pixels of both sides. Needed if shapes differ.
    epsilon
        Sizes of the perturbation, as multiples of the amounts of the box, each verified.
    effort
        Effort per sample to tighten its bounds: boxes into which its box may be split, or neurons of each layer of a
        network with bounds of their own; 0 for the first bounds only.
    attack
        Also search the box for scores that are reached.
    bins
        Number of bins of the calibration error.
    closed
        Closed end of each bin.
    delta
        Failure probability of each population bound.
    source
        What is verified, in a few words.
    progress
        Whether to show how far the work is; or a function or an object that is told.

    Examples
    --------
    >>> import certcal, numpy as np
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> x = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = (x[:, 0] > 0).astype(int)
    >>> model = RandomForestClassifier(5, max_depth=2, random_state=0).fit(x, y)
    >>> v = certcal.verify(model, (x, y), {"0": 0.1, "1": "+5%"}, epsilon=[0.5, 1])
    >>> [line.epsilon for line in v], certcal.certify(v).radii
    ([0.5, 1.0], (0.5, 1.0))
    """
    progress = as_reporter(progress)
    given = locals()
    asked = gather(VerifySettings, given)
    found = open_model(model, given)
    kind = kind_of(found)
    verifier = kind.make(found)
    tabular = kind.tabular or is_table(data)
    around = _open_box(box, tabular=tabular)
    rows, labels, names, columns, name, placed = _read_rows(data, tabular, verifier, around, given)
    if labels.max(initial=0) >= verifier.classes:
        worst = int(np.argmax(labels))
        reason = f"the label of sample {worst} is {labels[worst]}, and the model has {verifier.classes} classes"
        raise InputError(reason, argument="data", remedy="number the classes as the model does, from 0")
    changes = around.on(rows, names, columns)
    progress.stage("verifying", len(rows) * len(asked.epsilon), unit="samples")
    parts = [_verify_piece(verifier, changes, start, asked, progress) for start in range(0, len(rows), PIECE)]
    predicted, score = np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
    binary = verifier.classes == 2
    correct = np.asarray(labels if binary else np.equal(predicted, labels), np.uint8)
    progress.stage("certifying")
    lines = [
        _certify_at(epsilon, _join_pieces([part[2][k] for part in parts]), correct, score, binary, asked)
        for k, epsilon in enumerate(asked.epsilon)
    ]
    assumptions = ["every input stays inside its box", *around.conditions]
    if around.uses_deviations:
        assumptions.append("the amounts, in standard deviations of these samples, are taken as given")
    text = f"{counted(len(rows), 'sample')}, {verifier.description}; {verifier.method}; {_sizes_text(around, asked)}"
    text += "; columns by position" if placed else ""
    return Verification(
        source or model_on_data(model, verifier.description, name),
        {"model": verifier.description, "data": name, "method": verifier.method, "classes": verifier.classes},
        text,
        around,
        tuple(lines),
        correct,
        score,
        binary,
        tuple(assumptions),
        asked,
    )


def _sizes_text(box: InputBox, settings: VerifySettings) -> str:
    if settings.epsilon == (1.0,):
        return box.text
    several = "multiples" if len(settings.epsilon) > 1 else "multiple"
    return f"at {several} {', '.join(map(short, settings.epsilon))} of {box.text}"


def _open_box(box: Any, *, tabular: bool) -> InputBox:
    if isinstance(box, InputBox):
        return box
    if hasattr(box, "shape"):
        raise InputError("inputs and labels are one argument", remedy="write certcal.verify(model, (X, y))")
    if box is None:
        return InputBox("1sd" if tabular else 1.0)
    if isinstance(box, int | float) and not isinstance(box, bool):
        return InputBox(f"{box!r}sd" if tabular and box >= 0 else box)
    return InputBox(box)


def _read_rows(
    data: Any, tabular: bool, verifier: Verifier, box: InputBox, asked: Mapping[str, Any]
) -> tuple[NDArray[Any], NDArray[np.int64], tuple[str, ...], Mapping[str, Any], str, bool]:
    """Rows, labels, names, further columns and the data's name; and whether named columns go by position."""
    if not tabular:
        if asked["label"] is not None:
            raise InputError("it is for tables of features", argument="label", remedy="leave it out")
        opened = open_data(data, asked)
        inputs = opened.inputs.in_memory()
        return np.asarray(inputs.inputs), inputs.labels, (), dict[str, Any](), opened.name, False
    if asked["split"] is not None:
        raise InputError("it is for data in two parts", argument="split", remedy="leave it out")
    asked["progress"].stage("reading")
    features = read_features(data, label=asked["label"], beside=box.columns)
    features = features.subset(every=asked["every"], limit=asked["limit"])
    name = os.fspath(cast("str", data)) if isinstance(data, str | os.PathLike) else "data"
    ordered = features.in_order(verifier.names)
    placed, used = ordered is None and bool(features.names), ordered or features
    return used.values, used.labels, used.names, used.columns, name, placed


def _verify_piece(
    verifier: Verifier, changes: Perturbations, start: int, settings: VerifySettings, progress: Progress
) -> tuple[NDArray[np.int64], NDArray[np.float64], list[Verified]]:
    """Predicted classes, scores and intervals of some rows."""
    stop = min(start + PIECE, len(changes))
    probabilities = verifier.predict(changes.rows[start:stop])
    predicted = probabilities.argmax(axis=1)
    score = probabilities[:, 1] if verifier.classes == 2 else probabilities.max(axis=1)
    found: list[Verified] = []
    for epsilon in settings.epsilon:
        region = changes.region(start, stop, epsilon)
        found.append(verifier.verify(region, predicted, budget=settings.effort, attack=settings.attack))
        progress.advance(stop - start)
    return predicted, score, found


def _join_pieces(parts: list[Verified]) -> Verified:
    names = [each.name for each in fields(Verified)]
    return Verified(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def _certify_at(
    epsilon: float,
    found: Verified,
    correct: NDArray[np.uint8],
    score: NDArray[np.float64],
    binary: bool,
    settings: VerifySettings,
) -> VerifiedAt:
    from certcal.worst_case import certify

    binned: dict[str, Any] = {"bins": settings.bins, "closed": settings.closed}
    mask = None if binary else found.certified
    arrays = (found.lower, found.upper, correct)
    summary = certify(*arrays, certified=mask, delta=settings.delta, binary=binary, **binned)
    worst = summary["calibration_error"]
    kept = slice(None) if binary or worst.worst is None else found.certified
    # Where the class changed, confidences of the first class say nothing about the calibration of the new one.
    ends = [np.where(found.flipped, score, each) for each in (found.reached_lower, found.reached_upper)]
    options = np.stack([score, *ends], axis=1)[kept]
    start = (worst.worst or worst.worst_all).witness[kept] if worst.worst is not None else score
    value = _largest_reached_error(options, correct[kept], start, settings)
    told = {**binned, "attack": "inside the box", "epsilon": epsilon}
    return VerifiedAt(epsilon, found, summary, Estimate("ece", value, n=options.shape[0], settings=told))


def _largest_reached_error(
    options: NDArray[np.float64], outcomes: NDArray[np.uint8], target: NDArray[np.float64], settings: VerifySettings
) -> float:
    """The largest calibration error found among confidences that are reached, each sample at one of its options."""
    from certcal._kernels.attained import ascend, sums_of
    from certcal.binning import assign, equal_width_edges
    from certcal.metrics import ece

    edges = equal_width_edges(settings.bins)
    places = assign(options.reshape(-1), edges, settings.closed).reshape(options.shape)
    truth = outcomes.astype(np.float64)
    rows, best = np.arange(truth.size), 0.0
    starts = [np.zeros(truth.size, np.int64), np.abs(options - target[:, None]).argmin(axis=1)]
    starts += [np.where(outcomes == k, 1, 2) for k in (0, 1)]
    for chosen in starts:
        sums = sums_of(options, places, truth, chosen, settings.bins)
        ascend(options, places, truth, chosen, sums, _SWEEPS if truth.size <= _MOST_SEARCHED else 2)
        picked = options[rows, chosen]
        best = max(best, ece(picked, outcomes, settings.bins, closed=settings.closed))
    return best
