"""Sample noise around every input of a model, once, into a folder; or only until one question is answered."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, cast

from certcal._base.checks import InputError
from certcal._base.durable import write_durably
from certcal._base.parts import missing_text
from certcal._base.progress import Progress, ProgressLike, as_reporter
from certcal._base.signature import Option, Range, Takes, verb
from certcal._base.text import capital, counted
from certcal.claims import short_text
from certcal.data import Inputs
from certcal.data.units import described, warn_of_odd_units
from certcal.result import Command, Result
from certcal.verbs.model_and_data import (
    BATCH,
    COUNT,
    SIDE,
    DataSet,
    in_units_of_sigma,
    open_data,
    open_model,
)

if TYPE_CHECKING:
    from certcal.engines import Engine
    from certcal.smoothing import Decisions, Overview, Run, RunState


_KINDS = {"gaussian": "Gaussian", "exact": "exact, for inputs on k/255"}


@dataclass(frozen=True, eq=False, repr=False)
class RunSummary(Result):
    """A run on disk at a glance: what was sampled, with what, and how complete it is."""

    question: ClassVar[str] = "What is in this run?"
    stated = "fact"

    run: Run
    """The run."""
    state: RunState
    """Which of its shards are there."""
    overview: Overview | None
    """What the votes say, while some are missing those of the first samples; None if no sample is complete."""
    seen: int = 0
    """Number of samples that are complete."""

    def __repr__(self) -> str:
        return f"<RunSummary of {self.run.path}: {self.state.finished:,} of {self.state.total:,} noise samples>"

    @property
    def seeds(self) -> Mapping[str, int]:
        """Seed of the noise."""
        return {"noise": self.run.manifest.seed}

    @property
    def fingerprints(self) -> Mapping[str, str]:
        """Fingerprints of the model and of the sampled data."""
        return self.run.manifest.fingerprints

    @property
    def resume(self) -> str | None:
        """The command that draws what is missing; None where nothing is, or where model and data have no names.

        Every part is quoted for the shell: what a manifest says is never more than an argument.
        """
        m = self.run.manifest
        if self.state.complete or m.model.source is None or m.data.source is None:
            return None
        weights = [] if m.model.weights is None else [f"--weights={m.model.weights}"]
        words = ["certcal", "sample", f"--model={m.model.source}", *weights]
        words += ["--outputs", m.model.outputs, f"--data={m.data.source}"]
        words += ["--sigma", repr(m.sigma), "-n", str(m.n), "--n0", str(m.n0), "--seed", str(m.seed)]
        words += ["--split", m.data.split] if m.data.split else []
        words += ["--every", str(m.data.every)] if m.data.every > 1 else []
        prepared = {"--resize": m.data.resize, "--crop": m.data.crop}
        words += [word for name, side in prepared.items() if side is not None for word in (name, str(side))]
        words += ["--limit", str(m.samples)] + (["--noise", "exact"] if m.noise == "exact" else [])
        words += ["--histograms", str(m.histograms)] if m.histograms > 1 else []
        words += ["--part", f"{self.state.missing_parts[0]}/{m.parts}"] if m.parts > 1 else []
        return shlex.join([*words, "-o", str(self.run.path)])

    def contents(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "path": str(self.run.path),
            "complete": self.state.complete,
            "finished_draws": self.state.finished,
            "total_draws": self.state.total,
            "missing_shards": [unit.name for unit in self.state.missing],
            "damaged_shards": [{"shard": unit.name, "reason": reason} for unit, reason in self.state.damaged],
            "set_aside": self.run.set_aside(),
            "missing_parts": list(self.state.missing_parts) if self.run.manifest.parts > 1 else [],
            "overview": None if self.overview is None else self.overview.to_dict(),
            "resume": self.resume,
            "manifest": self.run.manifest.to_dict(),
        }

    @property
    def source(self) -> str:
        """The folder."""
        return str(self.run.path)

    @property
    def description(self) -> str:
        """What was sampled, in a line."""
        m = self.run.manifest
        shape = "×".join(map(str, m.data.shape))
        return f"{m.samples:,} samples of shape {shape}, {m.model.classes:,} classes; begun {m.created}"

    def top(self) -> Sequence[str]:
        """How much of the run is there."""
        share = f"{self.state.finished:,} of {self.state.total:,}"
        done = f"{share}, {100 * self.state.finished / self.state.total:.1f} %,"
        return [f"{f'All {share}' if self.state.complete else done} noise samples are there."]

    def parts(self) -> Mapping[str, Any]:
        """What was sampled, what the votes say, and what is missing."""
        m, aside = self.run.manifest, len(self.run.set_aside())
        contents = {
            "noise": f"{_KINDS[m.noise]}, sigma {m.sigma:g}, seed {m.seed}",
            "noise samples per input": f"{m.n0:,} for class selection, {m.n:,} for estimation",
            "model": f"{m.model.description}, {m.model.outputs}, fingerprint {m.model.fingerprint[:12]}",
            "data": f"{m.data.source or 'arrays'}, fingerprint {m.data.inputs[:12]}",
        }
        if m.data.range is not None:
            contents["input values"] = described(m.data.range, m.data.shape, m.sigma)
        if m.histograms > 1:
            contents["histograms"] = f"of {m.histograms} classes, and of the rest"
        if aside:
            contents["set aside"] = f"{counted(aside, 'damaged shard')}, sampled again"
        if not m.rows_independent:
            contents["batches"] = f"of {m.batch:,}; the last bits of the model depend on that, so it is kept"
        divided = m.parts > 1 and not self.state.complete
        missing = [
            *(f"Damaged: {unit.name}: {why}." for unit, why in self.state.damaged),
            *([f"{capital(missing_text(self.state.missing_parts, m.parts))}."] if divided else []),
            "The first of them is sampled by:" if divided else "What is missing is sampled by:",
            Command(self.resume or "certcal.sample, called again with the same model and data"),
        ]
        so_far = "Votes" if self.state.complete else f"Votes of the first {counted(self.seen, 'sample')}"
        following = Command(shlex.join(["certcal", "certify", str(self.run.path)])) if self.state.complete else None
        rest = {"Next": following} if self.state.complete else {"Missing": missing}
        return {"Contents": contents, so_far: self._votes(), **rest}

    def _votes(self) -> Mapping[str, str] | None:
        seen, m = self.overview, self.run.manifest
        if seen is None:
            return None
        invalid = "0"
        if seen.invalid:
            what = "NaN, below 0, or not adding up to 1; are they logits?"
            what = what if m.model.outputs == "probabilities" else "NaN or infinite"
            share = f"{seen.invalid / (m.samples * m.n):.1%} of the noise samples"
            invalid = f"{seen.invalid:,}, {share}, counted against the class: {what}"
        return {
            "correct": f"{seen.correct:.1%} of samples",
            "certified": f"{seen.certified:.1%} correct and certified at radius {seen.radius:g}",
            "abstained": f"{seen.abstained:.1%} of samples, at alpha {short_text(seen.alpha, 'upper')}",
            "votes": f"{seen.votes:.1%} for the selected class, on average",
            "invalid outputs": invalid,
        }

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """One line with the size of the run and what its votes say."""
        m = self.run.manifest
        known = {} if self.overview is None else self.overview.to_dict()
        facts = {"path": str(self.run.path), "sigma": m.sigma, "n": m.n, "n0": m.n0, "seed": m.seed}
        facts |= {"samples": m.samples, "complete": self.state.complete, **known}
        return {name: [value] for name, value in facts.items()}


@verb()
def summarize(run: Run | str | os.PathLike[str], *, progress: ProgressLike = True) -> RunSummary:
    """Read and check every shard of a run.

    Parameters
    ----------
    run
        The run, or its folder.
    progress
        Whether to show how far the work is; or a function or an object that is told.

    Examples
    --------
    >>> import tempfile, certcal
    >>> model = certcal.models.wrap(lambda batch: [[x, -x] for x in batch[:, 0]], outputs="logits")
    >>> folder = tempfile.TemporaryDirectory()
    >>> run = certcal.sample(model, ([[0.5], [-1.0]], [0, 1]), sigma=0.5, n=100, out=folder.name + "/run")
    >>> certcal.summarize(run).overview.correct
    1.0
    >>> folder.cleanup()
    """
    progress = as_reporter(progress)
    from certcal.data.formats import existing
    from certcal.smoothing import Run, open_run, overview, usable_counts

    opened = run if isinstance(run, Run) else open_run(existing(run, "run"))
    progress.stage("checking")
    state = opened.state()
    try:
        counts = usable_counts(opened, drawn_only=True)
    except InputError:
        return RunSummary(opened, state, None)
    return RunSummary(opened, state, overview(counts), len(counts))


@verb()
def sample(
    model: object,
    data: str | os.PathLike[str] | Inputs | DataSet,
    *,
    outputs: Annotated[Literal["logits", "probabilities"] | None, Option(metavar="KIND")] = None,
    weights: Annotated[str | os.PathLike[str] | None, Takes("file"), Option(metavar="FILE")] = None,
    split: Literal["train", "test"] | None = None,
    limit: Annotated[int | None, COUNT] = None,
    every: Annotated[int, COUNT] = 1,
    resize: Annotated[int | None, SIDE, Option(metavar="PIXELS")] = None,
    crop: Annotated[int | None, SIDE, Option(metavar="PIXELS")] = None,
    sigma: Annotated[float | str, Takes("noise"), Option(metavar="S")],
    out: str | os.PathLike[str],
    n: Annotated[int, Range(1, 2**31 - 1), Option("-n")] = 100_000,
    n0: Annotated[int, Range(1, 2**31 - 1)] = 100,
    seed: Annotated[int, Range(0, 2**64 - 1)] = 0,
    noise: Literal["gaussian", "exact"] = "gaussian",
    batch: Annotated[int, BATCH] = 500,
    device: Annotated[str, Takes("text"), Option(metavar="D")] = "auto",
    noise_threads: Annotated[int | None, Range(0, 1024)] = None,
    histograms: Annotated[int, Range(1, 100)] = 1,
    part: Annotated[str | None, Takes("text"), Option(metavar="I/N")] = None,
    workers: int = 1,
    engine: Engine | None = None,
    progress: ProgressLike = True,
) -> Run:
    """Sample noise around every input and count what the model says, into a folder that any certificate is made from.

    This is the expensive part and is done once. Called again with the same arguments, it draws what is missing; with a
    larger ``n`` or more samples it adds to the run; another model, other data or other noise is refused. See
    :func:`certcal.smoothing.sample` for what does and does not change the result. The noise is the same on every
    device; a run may be continued on another one.

    Large data is read when it is needed, by the workers themselves where they see the files; one pass over it comes
    first, for its fingerprint. Noise is numbered 0, 1, … along the samples that are drawn; in the counts of the run,
    ``index`` is the number in the data, i·every, as in published logs.

    Parameters
    ----------
    model
        A certcal model, a function or torch module, a file (.onnx .safetensors) or "module:name".
    data
        :class:`~certcal.data.Inputs`, a pair of inputs and labels, a file, a folder, "digits" or "fashion-mnist", a
        torch ``Dataset`` or ``DataLoader``, whatever else gives inputs and labels by number, or "module:name" of one;
        see :func:`certcal.data.open_inputs`.
    outputs
        Model outputs: logits or probabilities. Default: as the model file says.
    weights
        Weights of the network: .safetensors, or a checkpoint (.pth .pth.tar .pt .ckpt .bin).
    split
        Split of the data. Default: test.
    limit
        Sample around the first N inputs. Default: all.
    every
        Use samples 0, N, 2N, … of the data; Cohen et al. take N = 20 on CIFAR-10.
    resize
        Resize images of a folder: pixels of the shorter side. Needed if sizes differ.
    crop
        Crop the centre of images of a folder: pixels of both sides. Needed if shapes differ.
    sigma
        Standard deviation of the noise; for tables also 0.1sd, in standard deviations of each feature.
    out
        The folder of the run, new or begun before.
    n
        Noise samples for estimation (n).
    n0
        Noise samples for class selection (n0).
    seed
        Random seed of the noise.
    noise
        Kind of noise; exact is discretised for inputs on k/255, without rounding error.
    batch
        Inputs per call of the model.
    device
        Where the model computes: auto (an accelerator if there is one), cpu, cuda, cuda:1, mps, … Default: auto.
    noise_threads
        Threads that make noise while the model computes. Default: free cores.
    histograms
        Classes whose confidences get a histogram each, by votes; with several the rest gets one, too.
    part
        Sample part I of N of the inputs, such as 3/16; other processes may sample the others into the same folder.
    workers, engine
        Processes on this machine, which take its accelerators in turn, or where the work runs instead; see
        :mod:`certcal.engines`.
    progress
        Whether to show how far the work is; or a function or an object that is told.

    Examples
    --------
    >>> import tempfile, certcal
    >>> folder = tempfile.TemporaryDirectory()
    >>> model = certcal.models.wrap(lambda batch: [[x, -x] for x in batch[:, 0]], outputs="logits")
    >>> run = certcal.sample(model, ([[0.5], [-1.0]], [0, 1]), sigma=0.5, n=100, out=folder.name + "/run")
    >>> run.counts().predicted.tolist()
    [0, 1]
    >>> folder.cleanup()
    """
    progress = as_reporter(progress)
    asked = locals()
    from certcal.smoothing import sample as draw

    here, elsewhere = _local_and_worker_device(device, getattr(engine, "gpus", None))
    opened = open_data(data, asked)
    network = open_model(model, asked, here, opened.inputs)
    if elsewhere is not None and network.source is not None and network.source.device != elsewhere:
        cast("Any", network).source = replace(network.source, device=elsewhere)
    network, inputs, deviation = in_units_of_sigma(network, opened.inputs, sigma)
    warn_of_odd_units(inputs, sigma=deviation)
    progress.stage("trying the model")
    return draw(
        network,
        inputs,
        sigma=deviation,
        n=n,
        n0=n0,
        seed=seed,
        noise=noise,
        batch=batch,
        noise_threads=noise_threads,
        out=out,
        histograms=histograms,
        part=part,
        workers=workers,
        engine=engine,
        progress=_report_steps(progress, "drawing"),
        data_source=opened.name if isinstance(data, str | os.PathLike) else None,
        data_settings=opened.settings,
    )


@verb()
def decide(
    model: object,
    data: str | os.PathLike[str] | Inputs | DataSet,
    *,
    outputs: Annotated[Literal["logits", "probabilities"] | None, Option(metavar="KIND")] = None,
    weights: Annotated[str | os.PathLike[str] | None, Takes("file"), Option(metavar="FILE")] = None,
    split: Literal["train", "test"] | None = None,
    limit: Annotated[int | None, COUNT] = None,
    every: Annotated[int, COUNT] = 1,
    resize: Annotated[int | None, SIDE, Option(metavar="PIXELS")] = None,
    crop: Annotated[int | None, SIDE, Option(metavar="PIXELS")] = None,
    sigma: Annotated[float | str, Takes("noise"), Option(metavar="S")],
    radius: Annotated[float, Range(0), Option(metavar="R")],
    alpha: Annotated[float, Takes("failure")] = 0.001,
    n: Annotated[int, Range(1, 2**31 - 1), Option("-n")] = 100_000,
    n0: Annotated[int, Range(1, 2**31 - 1)] = 100,
    seed: Annotated[int, Range(0, 2**64 - 1)] = 0,
    noise: Literal["gaussian", "exact"] = "gaussian",
    batch: Annotated[int, BATCH] = 500,
    device: Annotated[str, Takes("text"), Option(metavar="D")] = "auto",
    noise_threads: Annotated[int | None, Range(0, 1024)] = None,
    out: str | os.PathLike[str] | None = None,
    part: Annotated[str | None, Takes("text"), Option(metavar="I/N")] = None,
    progress: ProgressLike = True,
) -> Decisions:
    """Sample each input only until it is clear whether its certified radius is above ``radius``, at most n times.

    The claim is that of :func:`certcal.smoothing.decide`.

    Parameters
    ----------
    model, data, outputs, weights, split, limit, every, resize, crop, sigma
        As for :func:`certcal.sample`.
    radius
        Radius in question.
    alpha
        Failure probability of each decision. Default: 0.001.
    n, n0, seed, noise, batch, device, noise_threads, progress
        As for :func:`certcal.sample`.
    out, part
        A folder that keeps decisions as they are reached, and a part of the inputs such as "3/16"; see
        :func:`certcal.smoothing.decide`.

    Examples
    --------
    >>> import certcal
    >>> model = certcal.models.wrap(lambda batch: [[x, -x] for x in batch[:, 0]], outputs="logits")
    >>> certcal.decide(model, ([[1.0], [0.1]], [0, 0]), sigma=0.5, radius=0.5).decision.tolist()
    ['above', 'below']
    """
    progress = as_reporter(progress)
    asked = locals()
    from certcal.smoothing import decide as draw

    opened = open_data(data, asked)
    network = open_model(model, asked, device, opened.inputs)
    network, inputs, deviation = in_units_of_sigma(network, opened.inputs, sigma)
    warn_of_odd_units(inputs, sigma=deviation)
    progress.stage("deciding", len(inputs), unit="samples")
    found = draw(
        network,
        inputs,
        sigma=deviation,
        radius=radius,
        budget=n,
        alpha=alpha,
        n0=n0,
        seed=seed,
        noise=noise,
        batch=batch,
        noise_threads=noise_threads,
        out=out,
        part=part,
        progress=_report_steps(progress),
    )
    found = replace(found, source=opened.name, index=opened.settings.every * found.index)
    if out is not None and every > 1:
        write_durably(Path(out) / "decisions.parquet", found.to_bytes(".parquet"))
    return found


def _local_and_worker_device(device: str, gpus: float | None) -> tuple[str, str | None]:
    """The device of this process, and that of the workers on a cluster, which give their GPUs by number."""
    if gpus is None:
        return device, None
    kind, _, number = device.partition(":")
    if number:
        remedy = f"give {kind!r}: a worker takes what it was promised"
        raise InputError(
            f"{device!r} is of one machine, and the work is for a cluster", argument="device", remedy=remedy
        )
    if kind == "cuda" and not gpus:
        raise InputError("a worker was promised none, and 'cuda' is the device", argument="gpus", remedy="give 1")
    return device if device == "cpu" else "auto", device


def _report_steps(progress: Progress, stage: str | None = None) -> Callable[[int, int], None]:
    """Numbers of what is finished as steps; with a stage the first of them begins it."""
    before: list[int] = [] if stage else [0]

    def tell(finished: int, total: int) -> None:
        if before:
            progress.advance(finished - before[-1])
        elif stage:
            progress.stage(stage, total, finished, "draws")
        before[:] = [finished]

    return tell
