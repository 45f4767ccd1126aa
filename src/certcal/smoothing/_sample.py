"""Draw once, durably: begin a run, continue it, or extend it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError, choice, positive, whole_number
from certcal._durable import make_folder, only_writer, remove_leftovers
from certcal.data import Inputs
from certcal.engines import Engine, InProcess, LocalProcesses, held
from certcal.models import Model
from certcal.smoothing._beginning import Asked, begin, existing, extend
from certcal.smoothing._manifest import MOST_DRAWS, MOST_SEED, NOISES, Manifest, write_manifest
from certcal.smoothing._run import Run, survey
from certcal.smoothing._sampler import SamplingError, Selection
from certcal.smoothing._shards import (
    Columns,
    counting_columns,
    refuse_changed_run,
    selection_columns,
    set_aside,
    write_shard,
)
from certcal.smoothing._task import Drawing, Work
from certcal.smoothing._units import Unit

Progress = Callable[[int, int], None]

_MOST_BATCH = 1 << 24


def sample(
    model: Model,
    inputs: Any,
    labels: Any,
    *,
    sigma: float,
    n: int = 100_000,
    n0: int = 100,
    seed: int = 0,
    out: str | os.PathLike[str],
    noise: str = "gaussian",
    batch: int = 500,
    workers: int = 1,
    engine: Engine | None = None,
    progress: Progress | None = None,
    unit: int | None = None,
    data_source: str | None = None,
) -> Run:
    """Draw noise around every input and count what the model says, into a folder that any certificate is made from.

    ``n0`` draws choose each sample's class A; ``n`` others count the votes for A and fill the histogram of A's
    confidence. Each draw is a pure function of the seed, the sample's number and its own: the result is the same for
    any number of workers, any order and any interruption, and, when the model treats the rows of a batch each on its
    own, for any batch size.

    Called again with the same arguments, it draws what is missing; with a larger ``n``, or with more samples after the
    old ones, it adds to the run. Another model, other data or other noise in the same folder is refused.

    Parameters
    ----------
    model
        From :func:`certcal.models.wrap` or :func:`certcal.models.load`.
    inputs
        One entry per sample along the first axis, finite numbers; uint8 is taken as pixels, k as k/255.
    labels
        True classes from 0.
    sigma
        Standard deviation of the noise.
    n, n0
        Draws per sample that count, and that choose the class.
    seed
        Of the noise.
    out
        The folder of the run.
    noise
        "gaussian", or "exact" for inputs on k/255: discretised noise whose guarantee holds in floating point.
    batch
        Rows per call of the model. A run is continued with the batches it began with, unless they do not matter.
    workers
        Processes on this machine; more than one needs a model that was loaded by name or path.
    engine
        Where the work runs instead; see :mod:`certcal.engines`.
    progress
        Called with the forward passes that are finished and those of the whole run.
    unit
        Forward passes per shard, at most; chosen by the size of the run when not given. What a kill can lose.
    data_source
        Where the data came from, for the record.

    Returns
    -------
    Run
        Finished.

    Examples
    --------
    >>> import tempfile, certcal.models
    >>> from certcal.smoothing import sample
    >>> model = certcal.models.wrap(lambda batch: np.c_[batch.sum(1), -batch.sum(1)], outputs="logits")
    >>> folder = tempfile.TemporaryDirectory()
    >>> run = sample(model, [[0.5, 0.5], [-1.0, 0.2]], [0, 1], sigma=0.5, n=1_000, out=folder.name + "/run")
    >>> counts = run.counts()
    >>> counts.predicted, counts.votes > 800
    (array([0, 1]), array([ True,  True]))
    >>> folder.cleanup()
    """
    if not (isinstance(model, Model) and callable(model)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(
            f"model ({type(model).__name__}) is not a certcal model; use certcal.models.wrap or certcal.models.load"
        )
    asked = Asked(
        model=model,
        data=Inputs.from_arrays(inputs, labels),
        sigma=positive(sigma, "sigma"),
        n=whole_number(n, 1, MOST_DRAWS, "n", f"pass a number of draws from 1 to {MOST_DRAWS}"),
        n0=whole_number(n0, 1, MOST_DRAWS, "n0", f"pass a number of draws from 1 to {MOST_DRAWS}"),
        seed=whole_number(seed, 0, MOST_SEED, "seed", "pass a whole number from 0 to 2**64 - 1"),
        noise=choice(noise, NOISES, "noise"),
        batch=whole_number(batch, 1, _MOST_BATCH, "batch", f"pass a number of rows from 1 to {_MOST_BATCH}"),
        unit=None if unit is None else whole_number(unit, 1, 2**62, "unit", "pass a number of forward passes"),
        data_source=data_source,
    )
    place = engine if engine is not None else InProcess() if workers == 1 else LocalProcesses(workers)
    if place.remote and model.source is None:
        raise InputError(
            f"{model.description} lives in this process only, and workers need to load it themselves; save it and use "
            "certcal.models.load with its path or 'package.module:name', or use workers=1"
        )
    folder = Path(out)
    before = existing(folder)
    manifest, batch = begin(asked) if before is None else extend(folder, before, asked)
    with ExitStack() as kept:
        if before is None:
            kept.enter_context(held(place))  # what cannot be had is said before there is a folder
        make_folder(folder)
        kept.enter_context(only_writer(folder, "drawing into this run"))
        if existing(folder) != before:
            raise InputError(f"{folder}: another process changed the run just now; give the same command again")
        remove_leftovers(folder)
        if manifest != before:
            if before is not None:
                refuse_changed_run(folder, before)
            write_manifest(folder, manifest)
        tried = asked.tried(manifest.sizes[0].samples)
        task = Drawing.of(model, _settings(manifest, batch), tried, packed=place.remote and not place.shares_files)
        _draw(folder, manifest, task, place, asked.data, progress, kept)
    return Run(folder, manifest)


def _settings(manifest: Manifest, batch: int) -> dict[str, Any]:
    return {
        "sigma": manifest.sigma,
        "seed": manifest.seed,
        "noise": manifest.noise,
        "thresholds": np.array(manifest.thresholds),
        "batch": batch,
    }


def _draw(
    folder: Path,
    manifest: Manifest,
    task: Drawing,
    engine: Engine,
    data: Inputs,
    progress: Progress | None,
    kept: ExitStack,
) -> None:
    """Draw every unit that has no good shard, and write its shard as soon as it is drawn.

    What the engine needs is ``kept`` from the first unit that is missing.
    """
    units = manifest.units()
    predicted = np.full(manifest.samples, -1, np.int64)
    finished = 0
    for stage in ("selection", "counting"):
        missing: list[Unit] = []
        for unit, columns, reason in survey(folder, manifest, (u for u in units if u.stage == stage), predicted):
            if reason is not None:
                set_aside(folder, unit, reason)
            if columns is None:
                missing.append(unit)
            else:
                finished += unit.passes
        if progress is not None:
            progress(finished, manifest.passes)
        if not missing:
            continue
        kept.enter_context(held(engine))
        with closing(engine.run(task, _pieces(missing, data, predicted))) as results:
            try:
                for work, result in results:
                    columns = _columns(work, result, data)
                    write_shard(folder, manifest, work.unit, columns)
                    if stage == "selection":
                        predicted[work.unit.first : work.unit.last] = columns["predicted"]
                    finished += work.unit.passes
                    if progress is not None:
                        progress(finished, manifest.passes)
            except SamplingError as error:
                raise SamplingError(f"{error}; what was drawn before is kept in {folder}") from error


def _pieces(units: list[Unit], data: Inputs, predicted: NDArray[np.int64]) -> Iterator[Work]:
    for unit in units:
        own = slice(unit.first, unit.last)
        yield Work(unit, data.inputs[own], predicted[own])


def _columns(work: Work, result: Any, data: Inputs) -> Columns:
    unit = work.unit
    if isinstance(result, Selection):
        return selection_columns(unit.first, data.labels[unit.first : unit.last], result.votes, result.invalid)
    return counting_columns(unit, work.classes, result.votes, result.invalid, result.histogram)
