"""Decide about a radius with as few draws as that takes, for many samples at once; and the decisions on disk.

Samples that are decided leave, the others fill the batches. Why a verdict holds is with ``_sequential``.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, cast

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from certcal._base.arguments import names_wrong_types
from certcal._base.assumptions import BATCH, NOISE, fixed
from certcal._base.checks import (
    InputError,
    choice,
    failure_probability,
    noise_level,
    positive,
    random_seed,
    whole_number,
)
from certcal._base.checks import labels as class_labels
from certcal._base.durable import open_regular, write_durably
from certcal._base.files import path_of
from certcal._base.parts import part_of
from certcal._base.rounding import times_text
from certcal._base.told import Told
from certcal.claims import short_text
from certcal.data import Inputs
from certcal.data.work_folder import Work
from certcal.result import Result
from certcal.smoothing._manifest import MOST_DRAWS, MOST_SEED
from certcal.smoothing._noise import NOISES, NoiseKind
from certcal.smoothing._sampler import Sampler, check_rows, noisy_inputs, number_of_classes, spread
from certcal.smoothing._sequential import ABOVE, BELOW, UNDECIDED, Boundaries

if TYPE_CHECKING:
    from certcal.models import Model

FORMAT = "certcal decisions"
VERSION = 1
FORMS = (".json", ".parquet")
COLUMNS = ("index", "label", "predicted", "draws", "votes", "invalid")

_MOST_BYTES = 1 << 30
_READ_BYTES = 1 << 28  # of the inputs that are decided about at a time
_PIECE = 500  # samples that are decided about at a time where decisions are kept
_MOST_ROWS = 10**8
_KEY = b"certcal"


Level = Annotated[float, Meta(gt=0.0, lt=1.0)]
Draws = Annotated[int, Meta(ge=1, le=MOST_DRAWS)]
Numbers = list[Annotated[int, Meta(gt=-(2**62), lt=2**62)]]


class DecisionSetting(Told, msgspec.Struct, frozen=True):
    """How decisions were reached."""

    radius: Annotated[float, Meta(ge=0.0)]
    sigma: Annotated[float, Meta(gt=0.0)]
    noise: NoiseKind
    alpha: Level
    alpha_below: Level
    budget: Draws
    n0: Draws
    block: Draws
    seed: Annotated[int, Meta(ge=0)]
    model: str


class DecisionFile(msgspec.Struct, frozen=True):
    """What a file of decisions holds. Later versions read files of version 1; fields they do not know are ignored."""

    format: Literal["certcal decisions"]
    version: Literal[1]
    setting: DecisionSetting
    index: Numbers
    label: Numbers
    predicted: Numbers
    draws: Numbers
    votes: Numbers
    invalid: Numbers
    verdict: list[Literal["above", "below", "undecided"]]


@dataclass(frozen=True, eq=False, repr=False)
class Decisions(Result):
    """For each sample whether its certified radius is above r, decided with as few draws as that took."""

    view: ClassVar[str] = "certcal.report.views.decisions"
    forms: ClassVar[Sequence[str]] = (*Result.forms, ".parquet")

    setting: DecisionSetting
    """How they were reached."""
    index: NDArray[np.int64]
    label: NDArray[np.int64]
    predicted: NDArray[np.int64]
    """Which sample, its true class, and the class chosen."""
    decision: NDArray[np.str_]
    """"above" (certified at r), "below" (this class cannot be certified at r), "undecided" (the budget ended)."""
    draws: NDArray[np.int64]
    votes: NDArray[np.int64]
    invalid: NDArray[np.int64]
    """Counting draws used, those for the class, and those without a valid output (which count against it)."""
    source: str = ""
    """What was decided about, if it has a name."""

    def __len__(self) -> int:
        return self.index.size

    def __repr__(self) -> str:
        counts = ", ".join(f"{name}={self.count(name)}" for name in (ABOVE, BELOW, UNDECIDED))
        return f"<Decisions n={len(self)}, radius={self.setting.radius:g}, {counts}, draws={int(self.draws.sum())}>"

    @property
    def seeds(self) -> Mapping[str, int]:
        """Of the noise."""
        return {"noise": self.setting.seed}

    @property
    def correct(self) -> NDArray[np.bool_]:
        """Whether the class chosen is the label."""
        return self.predicted == self.label

    @property
    def certified(self) -> NDArray[np.bool_]:
        """Whether the class chosen is certified at the radius."""
        return self.decision == ABOVE

    def count(self, verdict: str) -> int:
        """How many samples got a verdict."""
        return int(np.count_nonzero(self.decision == verdict))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the claim rests on."""
        return NOISE[self.setting.noise], BATCH, fixed("the seed, the radius, the levels, the looks and the budget")

    def claims(self) -> Sequence[Decisions]:
        """The decisions themselves, whose sentence is the claim."""
        return (self,)

    @property
    def sentence(self) -> str:
        """What is claimed, in at most thirty words."""
        right, radius = int(np.count_nonzero(self.certified & self.correct)), short_text(self.setting.radius, "lower")
        said = "samples are classified correctly under every perturbation of norm up to"
        return f"{right:,} of {len(self):,} {said} {radius}; each of these fails {times_text(self.setting.alpha)}."

    @property
    def statement(self) -> str:
        """What is claimed, with its probability and what it assumes."""
        right = int(np.count_nonzero(self.certified & self.correct))
        s = self.setting
        assumed = " and ".join(self.assumptions)
        return (
            f"{right} of these {len(self)} samples are predicted correctly under every perturbation of norm up to "
            f"{short_text(s.radius, 'lower')}, where each fails {times_text(s.alpha)}, if {assumed}; "
            f"UNDECIDED after {s.budget} draws, and counted as not certified: {self.count(UNDECIDED)}."
        )

    def contents(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "type": "decisions",
            "format": FORMAT,
            "version": VERSION,
            "setting": msgspec.to_builtins(self.setting),
            "sentence": self.sentence,
            "statement": self.statement,
            "assumptions": list(self.assumptions),
            "verdict": self.decision.tolist(),
            **{name: getattr(self, name).tolist() for name in COLUMNS},
        }

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """One line per sample."""
        return {"verdict": self.decision.tolist(), **{name: getattr(self, name).tolist() for name in COLUMNS}}

    def to_bytes(self, form: str = ".json", **options: Any) -> bytes:
        """The content of a file; :func:`read_decisions` reads what ends in .json or .parquet."""
        if form != ".parquet":
            return super().to_bytes(form, **options)
        from certcal.data.arrow import from_numpy, pa
        from certcal.data.parquet import parquet

        about = {"format": FORMAT, "version": VERSION, "setting": msgspec.to_builtins(self.setting)}
        columns = {name: from_numpy(getattr(self, name)) for name in COLUMNS}
        table = pa.table({**columns, "verdict": self.decision.tolist()}, metadata={_KEY: json.dumps(about).encode()})
        stream = io.BytesIO()
        parquet.write_table(table, stream)
        return stream.getvalue()


@names_wrong_types
def decide(
    model: Model,
    inputs: Any,
    labels: Any = None,
    *,
    sigma: float,
    radius: float,
    budget: int = 100_000,
    alpha: float = 0.001,
    alpha_below: float | None = None,
    n0: int = 100,
    seed: int = 0,
    noise: str = "gaussian",
    batch: int = 500,
    noise_threads: int | None = None,
    block: int = 100,
    out: str | os.PathLike[str] | None = None,
    part: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Decisions:
    """Decide for each sample whether its certified radius is above ``radius``, drawing only until that is clear.

    The claim, per sample: unless the smoothed classifier's radius R = σΦ⁻¹(p_A) of the chosen class is above
    ``radius``, "above" is said with probability at most ``alpha``; if it is, "below" is said with probability at most
    ``alpha_below``; a verdict is wrong with probability at most the larger. Random are the draws; assumed is
    that they are independent Gaussian noise, and that the model's output for an input does not depend on the other
    inputs in its batch: a few inputs are asked beside several neighbours, and a model that minds them is refused. The
    proof is in :mod:`certcal.smoothing._sequential`. Samples that are not clear after ``budget`` draws are UNDECIDED.

    Draws are numbered per sample and looks are at fixed numbers of them, so the result does not depend on the batch
    size or on the other samples. The draws are those of :func:`certcal.smoothing.sample` with the same seed: choose
    another seed if the radius was chosen after looking at such a run.

    Parameters
    ----------
    model
        See :func:`certcal.models.wrap`.
    inputs, labels
        Samples and their true classes, or both as :class:`certcal.data.Inputs`. What lies in files is read in pieces.
    sigma
        Standard deviation of the noise.
    radius
        The radius in question, >= 0.
    budget
        Most counting draws per sample. Deciding those that are UNDECIDED again with a larger one spends alpha again.
    alpha, alpha_below
        See above. ``alpha_below`` is ``alpha`` unless given.
    n0
        Draws that choose the class, apart from the others.
    seed, noise, batch, noise_threads
        As for :func:`certcal.sample`.
    block
        Looks are at multiples of this many draws.
    out
        A folder that keeps decisions as they are reached, and all of them in the end (decisions.parquet): the same call
        resumes.
    part
        "3/16" decides the third of sixteen parts of the samples, into the same folder as other processes the others.
        Until all are there, :class:`certcal.data.PartsMissingError` says which are missing.
    progress
        Called after each look with the number of samples decided and the draws made so far.

    Examples
    --------
    >>> class Sign:  # predicts class 1 right of zero; the radius of a point is its distance from zero
    ...     outputs = "probabilities"
    ...
    ...     def __call__(self, batch):
    ...         right = (batch[:, 0] > 0).astype(np.float64)
    ...         return np.stack([1 - right, right], axis=1)
    >>> decisions = decide(Sign(), [[1.0], [0.2], [-1.0]], [1, 1, 1], sigma=0.5, radius=0.5)
    >>> decisions.decision.tolist(), decisions.draws.tolist(), decisions.correct.tolist()
    (['above', 'below', 'above'], [200, 200, 100], [True, True, False])
    """
    data = inputs if isinstance(inputs, Inputs) else Inputs.from_arrays(inputs, labels)
    setting = _checked_setting(model, sigma, radius, budget, alpha, alpha_below, n0, seed, noise, block)
    # One threshold: confidences are not asked for, and a histogram of two cells costs nothing.
    how: dict[str, Any] = {"thresholds": [0.5], "batch": batch, "noise_threads": noise_threads}
    sampler = Sampler(model, sigma=setting.sigma, seed=setting.seed, noise=noise, **how)
    tried = data.inputs[spread(len(data))]
    check_rows(model, noisy_inputs(tried, sigma=setting.sigma, seed=setting.seed, noise=noise), sampler.batch)
    class_labels(data.labels, number_of_classes(sampler, data.inputs))
    boundaries, own_part = _boundaries(setting), part_of(part)
    if own_part is not None and out is None:
        raise InputError("there is no folder", argument="part", remedy="say with {out} where it is", roles=("out",))
    folder = None if out is None else path_of(out, "out")
    rows, settings = max(1, _READ_BYTES * len(data) // data.inputs.nbytes), dict[str, Any]()
    if folder is not None:
        rows = min(rows, _PIECE, -(-len(data) // (1 if own_part is None else own_part.of)))
        settings = msgspec.to_builtins(setting) | {"model": model.fingerprint(tried), "data": data.fingerprint}
    before = 0, 0
    with ExitStack() as held:
        work = Work(len(data), rows, folder, settings, own_part, held)
        for first, last in work.missing():
            piece = _decide_piece(sampler, data.inputs[first:last], first, setting.n0, boundaries, progress, before)
            work.write(first, last, piece)
            before = before[0] + last - first, before[1] + int(piece["draws"].sum())
        found: dict[str, Any] = work.joined()
    index = np.arange(len(data), dtype=np.int64)
    verdict = boundaries.verdicts(found["votes"], found["draws"])
    decisions = Decisions(setting, index, data.labels, decision=verdict, **found)
    if folder is not None:
        write_durably(folder / "decisions.parquet", decisions.to_bytes(".parquet"))
    return decisions


def _decide_piece(
    sampler: Sampler,
    points: NDArray[np.float32],
    first: int,
    n0: int,
    boundaries: Boundaries,
    progress: Callable[[int, int], None] | None,
    before: tuple[int, int],
) -> dict[str, NDArray[np.int64]]:
    """Draw for some samples until all are decided; ``before`` are the samples and draws that progress knows already."""
    numbers = np.arange(first, first + len(points), dtype=np.int64)
    draws, votes, invalid = (np.zeros(len(points), np.int64) for _ in range(3))
    predicted = sampler.select(points, numbers, n0).votes.argmax(axis=1)
    left, start = np.arange(len(points)), 0
    for stop in boundaries.sizes:
        tally = sampler.count(points[left], numbers[left], predicted[left], start, stop)
        votes[left] += tally.votes
        invalid[left] += tally.invalid
        draws[left] = stop
        left, start = left[boundaries.verdicts(votes[left], stop) == UNDECIDED], stop
        if progress is not None:
            progress(before[0] + len(points) - left.size, before[1] + int(draws.sum()))
        if left.size == 0:
            break
    return {"predicted": predicted, "draws": draws, "votes": votes, "invalid": invalid}


def _checked_setting(
    model: Model,
    sigma: float,
    radius: float,
    budget: int,
    alpha: float,
    alpha_below: float | None,
    n0: int,
    seed: int,
    noise: str,
    block: int,
) -> DecisionSetting:
    """The arguments, checked."""
    if radius != 0:
        radius = positive(radius, "radius")
    alpha = failure_probability(alpha, "alpha")
    return DecisionSetting(
        radius=float(radius),
        sigma=noise_level(sigma),
        noise=cast("NoiseKind", choice(noise, NOISES, "noise")),
        alpha=alpha,
        alpha_below=alpha if alpha_below is None else failure_probability(alpha_below, "alpha_below"),
        budget=whole_number(budget, 1, 2**31 - 1, "budget", "pass the most draws per sample, at least 1"),
        n0=whole_number(n0, 1, 2**31 - 1, "n0", "pass the number of draws that choose the class, at least 1"),
        block=whole_number(block, 1, 2**31 - 1, "block", "pass a number of draws, at least 1"),
        seed=random_seed(seed),
        model=str(getattr(model, "description", type(model).__name__)),
    )


def _boundaries(s: DecisionSetting) -> Boundaries:
    how = {name: getattr(s, name) for name in ("radius", "sigma", "alpha", "alpha_below", "budget", "block")}
    return Boundaries(**how)


@names_wrong_types
def read_decisions(path: str | os.PathLike[str]) -> Decisions:
    """Read decisions from a JSON or Parquet file.

    Parameters
    ----------
    path
        A file that holds what :meth:`Decisions.to_bytes` gave, or the folder that :func:`decide` wrote to.
    """
    file = path_of(path)
    if file.is_dir():
        file /= "decisions.parquet"
    if file.suffix not in FORMS:
        raise InputError(f"{file}: decisions end in {' or '.join(FORMS)}; check the file's name")
    try:
        with open_regular(file) as stream:
            content = stream.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise InputError(f"{file}: larger than {_MOST_BYTES >> 20} MiB, which no file of decisions is; check it")
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror or error}); check the path") from error
    try:
        document: Any = msgspec.json.decode(content) if file.suffix == ".json" else _from_parquet(content)
        version = cast("dict[str, Any]", document).get("version") if isinstance(document, dict) else None
        if type(version) is int and version > VERSION:
            raise InputError(f"{file}: format version {version}, and this certcal reads {VERSION}; update certcal")
        found = msgspec.convert(document, DecisionFile)
        arrays: dict[str, Any] = {name: np.array(getattr(found, name), np.int64) for name in COLUMNS}
        verdict = np.array(found.verdict, dtype="<U9")
        if found.setting.seed > MOST_SEED or len({len(each) for each in (*arrays.values(), verdict)}) > 1:
            raise ValueError("columns of different lengths, or a seed above 2**64")
    except InputError:
        raise
    except (ValueError, TypeError, KeyError, OSError, RecursionError) as error:
        reason = str(error).replace("`", "").splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"{file}: holds no decisions of version {VERSION} ({reason[:200]}); restore it or decide anew"
        ) from error
    if np.any(
        (arrays["votes"] < 0) | (arrays["invalid"] < 0) | (arrays["votes"] + arrays["invalid"] > arrays["draws"])
    ):
        raise InputError(f"{file}: has more votes than draws; restore it or decide anew")
    decisions = Decisions(found.setting, decision=verdict, **arrays)
    _follow(file, decisions)
    return decisions


def _from_parquet(content: bytes) -> dict[str, Any]:
    from certcal.data.arrow import pa
    from certcal.data.parquet import parquet

    try:
        file = parquet.ParquetFile(pa.BufferReader(content))
        if file.metadata.num_rows > _MOST_ROWS:
            raise ValueError("too many rows")
        table: Any = file.read(columns=[*COLUMNS, "verdict"])
        about = msgspec.json.decode(table.schema.metadata[_KEY], type=dict[str, Any])
        return about | {name: table.column(name).to_pylist() for name in (*COLUMNS, "verdict")}
    except Exception as error:  # whatever a broken Parquet file makes pyarrow do
        raise ValueError("not Parquet") from error


def _follow(file: Path, decisions: Decisions) -> None:
    """Raise unless every verdict is what its votes say, at a look that the setting has."""
    s = decisions.setting
    boundaries = _boundaries(s)
    if not np.isin(decisions.draws, boundaries.sizes).all():
        raise InputError(f"{file}: has numbers of draws at which nobody looked; restore it or decide anew")
    expected = boundaries.verdicts(decisions.votes, decisions.draws)
    early = (expected == UNDECIDED) & (decisions.draws < s.budget)
    wrong = (expected != decisions.decision) | early
    if wrong.any():
        place = int(np.argmax(wrong))
        raise InputError(
            f"{file}: verdict[{place}] is {str(decisions.decision[place])!r}, which does not follow from "
            f"{decisions.votes[place]} votes in {decisions.draws[place]} draws; restore it or decide anew"
        )
