"""Draw once, durably: create a run, resume or extend it, and draw what is missing wherever the engine runs."""

from __future__ import annotations

import os
import platform
import secrets
import sys
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError, choice, noise_level, random_seed, whole_number
from certcal._checks import labels as class_labels
from certcal._durable import make_folder, only_writer, remove_leftovers
from certcal.data import Inputs
from certcal.engines import Engine, InProcess, LocalProcesses, held
from certcal.models import Model, Source
from certcal.models.protocol import PackedSource
from certcal.smoothing._counts import default_thresholds
from certcal.smoothing._manifest import (
    MOST_DRAWS,
    MOST_SAMPLES,
    MOST_UNITS,
    DataRecord,
    Manifest,
    ModelRecord,
    Size,
    Unit,
    default_unit,
    existing_manifest,
    number_of_units,
    write_manifest,
)
from certcal.smoothing._noise import NOISES, NoiseKind, grid_levels
from certcal.smoothing._run import Run, survey
from certcal.smoothing._sampler import (
    MOST_BATCH,
    Sampler,
    SamplingError,
    Selection,
    Tally,
    check_rows,
    check_threads,
    noisy_inputs,
    number_of_classes,
    same_in_every_batch,
    spread,
)
from certcal.smoothing._shards import (
    Columns,
    counting_columns,
    refuse_changed_run,
    selection_columns,
    set_aside,
    write_shard,
)

Progress = Callable[[int, int], None]

_ROWS_AT_A_TIME = 256


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
    noise_threads: int | None = None,
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
    noise_threads
        Threads that make noise while the model computes, in each worker; unless given, as many as cores are free.
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
    check_threads(noise_threads)
    wanted = RunRequest(
        model=model,
        data=Inputs.from_arrays(inputs, labels),
        sigma=noise_level(sigma),
        n=whole_number(n, 1, MOST_DRAWS, "n", f"pass a number of draws from 1 to {MOST_DRAWS}"),
        n0=whole_number(n0, 1, MOST_DRAWS, "n0", f"pass a number of draws from 1 to {MOST_DRAWS}"),
        seed=random_seed(seed),
        noise=cast("NoiseKind", choice(noise, NOISES, "noise")),
        batch=whole_number(batch, 1, MOST_BATCH, "batch", f"pass a number of rows from 1 to {MOST_BATCH}"),
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
    before = existing_manifest(folder)
    manifest, batch = create(wanted) if before is None else resume(folder, before, wanted)
    with ExitStack() as kept:
        if before is None:
            kept.enter_context(held(place))  # what cannot be had is said before there is a folder
        make_folder(folder)
        kept.enter_context(only_writer(folder, "drawing into this run"))
        if existing_manifest(folder) != before:
            raise InputError(f"{folder}: another process changed the run just now; give the same command again")
        remove_leftovers(folder)
        if manifest != before:
            if before is not None:
                refuse_changed_run(folder, before)
            write_manifest(folder, manifest)
        tried = wanted.tried(manifest.sizes[0].samples)
        settings = {name: getattr(manifest, name) for name in ("sigma", "seed", "noise")}
        settings |= {"thresholds": np.array(manifest.thresholds), "batch": batch, "noise_threads": noise_threads}
        away = place.remote and not place.shares_files
        source = model.source.packed() if away and model.source is not None else model.source
        task = Drawing(model, source, settings, tried, manifest.model.fingerprint)
        _draw(folder, manifest, task, place, wanted.data, progress, kept)
    return Run(folder, manifest)


# --- creating a run, or deciding whether an existing one may be resumed or extended -----------------------------------


@dataclass(frozen=True, eq=False)
class RunRequest:
    """The checked arguments of :func:`sample`."""

    model: Model
    data: Inputs
    sigma: float
    n: int
    n0: int
    seed: int
    noise: NoiseKind
    batch: int
    unit: int | None
    data_source: str | None

    def probe(self, samples: int) -> NDArray[np.float32]:
        """The inputs that the model is tried on: some of those the run began with."""
        return self.data.inputs[spread(samples)]

    def noisy(self, samples: int) -> NDArray[np.float32]:
        """The same with noise, several times each."""
        return noisy_inputs(self.probe(samples), sigma=self.sigma, seed=self.seed, noise=self.noise)

    def tried(self, samples: int) -> NDArray[np.float32]:
        """What a model is known again by: its answers to these inputs, without noise and with."""
        clean, noisy = self.probe(samples), self.noisy(samples)
        return np.concatenate([clean, noisy[:: len(noisy) // (2 * len(clean))]])

    def record(self, samples: int) -> DataRecord:
        """Fingerprints of the first samples."""
        return DataRecord.of(self.data.inputs[:samples], self.data.labels[:samples], self.data_source)


def create(wanted: RunRequest) -> tuple[Manifest, int]:
    """The manifest of a new run, and the batch size to draw with. The model is tried first."""
    samples = len(wanted.data)
    if samples > MOST_SAMPLES:
        raise InputError(f"inputs has {samples} samples; draw at most {MOST_SAMPLES} into one run")
    _check_grid(wanted, 0)
    probe = wanted.probe(samples)
    sampler = Sampler(wanted.model, sigma=wanted.sigma, seed=wanted.seed, noise=wanted.noise, batch=wanted.batch)
    classes = number_of_classes(sampler, wanted.data.inputs)
    class_labels(wanted.data.labels, classes)
    to_the_last_bit = check_rows(wanted.model, wanted.noisy(samples), wanted.batch)
    size, pilot = Size(samples, wanted.n), max(1, wanted.n // 10)
    unit = default_unit(samples, wanted.n0, wanted.n, wanted.batch) if wanted.unit is None else wanted.unit
    _check_units((size,), wanted.n0, pilot, unit)
    manifest = Manifest(
        run=secrets.token_hex(16),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        sigma=wanted.sigma,
        noise=wanted.noise,
        seed=wanted.seed,
        n0=wanted.n0,
        pilot=pilot,
        thresholds=tuple(default_thresholds().tolist()),
        batch=wanted.batch,
        unit=unit,
        rows_independent=to_the_last_bit and same_in_every_batch(wanted.model, probe, {wanted.batch}, tried=True),
        sizes=(size,),
        model=ModelRecord(
            description=wanted.model.description[:1000],
            fingerprint=wanted.model.fingerprint(wanted.tried(samples)),
            outputs=wanted.model.outputs,
            classes=classes,
            source=None if wanted.model.source is None else wanted.model.source.name,
            weights=None if wanted.model.source is None else wanted.model.source.weights,
        ),
        data=wanted.record(samples),
        versions=_versions(),
    )
    return manifest, wanted.batch


def resume(folder: Path, manifest: Manifest, wanted: RunRequest) -> tuple[Manifest, int]:
    """The manifest as it is or grown, and the batch size to draw with; or one sentence that says what differs."""
    for name in ("sigma", "seed", "n0", "noise"):
        drawn, given = getattr(manifest, name), getattr(wanted, name)
        if drawn != given:
            raise _differs(folder, name, drawn, given)
    samples = len(wanted.data)
    if wanted.n < manifest.n:
        raise InputError(
            f"{folder}: the run is for n = {manifest.n} draws per sample, and n = {wanted.n} is asked for; "
            f"draws are only ever added: give n = {manifest.n} or more, or open the run as it is"
        )
    _same_data(folder, manifest, wanted)
    probe = wanted.probe(manifest.sizes[0].samples)
    if wanted.model.outputs != manifest.model.outputs:
        raise _differs(folder, "outputs", manifest.model.outputs, wanted.model.outputs)
    fingerprint = wanted.model.fingerprint(wanted.tried(manifest.sizes[0].samples))
    if fingerprint != manifest.model.fingerprint:
        raise InputError(
            f"{folder}: the run was drawn from another model: {manifest.model.description}, fingerprint "
            f"{manifest.model.fingerprint[:12]}, and this is {wanted.model.description}, {fingerprint[:12]}; "
            "give the same model, or choose another folder"
        )
    class_labels(wanted.data.labels, manifest.model.classes)
    batch = manifest.batch
    if wanted.batch != batch and manifest.rows_independent:
        batch = wanted.batch if same_in_every_batch(wanted.model, probe, {batch, wanted.batch}) else batch
    size = Size(samples, wanted.n)
    if size == manifest.sizes[-1]:
        return manifest, batch
    _check_grid(wanted, manifest.samples)
    sizes = (*manifest.sizes, size)
    _check_units(sizes, manifest.n0, manifest.pilot, manifest.unit)
    return msgspec.structs.replace(manifest, sizes=sizes, data=wanted.record(samples)), batch


def _same_data(folder: Path, manifest: Manifest, wanted: RunRequest) -> None:
    """Raise unless the data begins with that of the run."""
    samples, shape = len(wanted.data), wanted.data.inputs.shape[1:]
    if shape != manifest.data.shape:
        raise _differs(folder, "the shape of an input", manifest.data.shape, shape)
    if samples < manifest.samples:
        raise InputError(
            f"{folder}: the run is for {manifest.samples} samples, and {samples} are given; samples are only ever "
            "added: give all of them, or open the run as it is"
        )
    record = wanted.record(manifest.samples)
    for name in ("inputs", "labels"):
        drawn, given = getattr(manifest.data, name), getattr(record, name)
        if drawn != given:
            raise InputError(
                f"{folder}: the run was drawn from other data: its {manifest.samples} {name} have fingerprint "
                f"{drawn[:12]}, and the first {manifest.samples} given have {given[:12]}; give the same data (more "
                "samples may follow it), or choose another folder"
            )


def _differs(folder: Path, name: str, drawn: Any, given: Any) -> InputError:
    return InputError(
        f"{folder}: the run was drawn with {name} = {drawn}, and {given} is asked for; give the same, or choose "
        "another folder"
    )


def _check_grid(wanted: RunRequest, first: int) -> None:
    """Exact noise is for inputs on k/255: say so before anything is drawn, not when the first bad sample comes."""
    if wanted.noise == "exact":
        for start in range(first, len(wanted.data), _ROWS_AT_A_TIME):
            rows = wanted.data.inputs[start : start + _ROWS_AT_A_TIME]
            grid_levels(rows, np.arange(start, start + len(rows)))


def _check_units(sizes: tuple[Size, ...], n0: int, pilot: int, unit: int) -> None:
    if number_of_units(sizes, n0, pilot, unit) > MOST_UNITS:
        raise InputError(f"unit is {unit}, which cuts the run into more than {MOST_UNITS} shards; make it larger")


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "platform": platform.platform()}
    for name in ("certcal", "numpy", "onnxruntime", "torch", "sklearn"):
        version = getattr(sys.modules.get(name), "__version__", None)
        if version is not None:
            found[name] = str(version)
    return found


# --- drawing ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class UnitInputs:
    """A unit with the samples it needs; ``classes`` are those that are counted."""

    unit: Unit
    inputs: NDArray[np.float32]
    classes: NDArray[np.int64]

    def __str__(self) -> str:
        return str(self.unit)


@dataclass
class Drawing:
    """The task of drawing units. In another process the model is loaded again, and must be the one of the manifest."""

    model: Model | None
    source: Source | PackedSource | None
    settings: dict[str, Any]
    probe: NDArray[np.float32]
    fingerprint: str

    def __getstate__(self) -> dict[str, Any]:
        return vars(replace(self, model=None))  # what travels: the model itself does not

    def prepare(self) -> None:
        """Load the model and make the sampler."""
        if self.model is None:
            if self.source is None:
                raise SamplingError("the model lives in the process that made it; load it by name or path instead")
            self.model = self.source.load()
            if self.model.fingerprint(self.probe) != self.fingerprint:
                raise SamplingError(
                    f"{self.source.name} is another model in a worker process than here; "
                    "check that both load the same file and packages"
                )
        self._sampler = Sampler(self.model, **{name: _own(value) for name, value in self.settings.items()})

    def __call__(self, work: UnitInputs) -> Selection | Tally:
        """Draw one unit."""
        unit = work.unit
        indices = np.arange(unit.first, unit.last)
        if unit.stage == "selection":
            return self._sampler.select(_own(work.inputs), indices, unit.stop)
        return self._sampler.count(_own(work.inputs), indices, _own(work.classes), unit.start, unit.stop)


def _own(value: Any) -> Any:
    """The value; an array as one that can be written to, as kernels are compiled for: those that travel cannot be."""
    flags = getattr(value, "flags", None)
    return value if flags is None or flags.writeable else value.copy()


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
        work = (UnitInputs(u, data.inputs[u.first : u.last], predicted[u.first : u.last]) for u in missing)
        with closing(engine.run(task, work)) as results:
            try:
                for done, result in results:
                    columns = _columns(done, result, data)
                    write_shard(folder, manifest, done.unit, columns)
                    if stage == "selection":
                        predicted[done.unit.first : done.unit.last] = columns["predicted"]
                    finished += done.unit.passes
                    if progress is not None:
                        progress(finished, manifest.passes)
            except SamplingError as error:
                raise SamplingError(f"{error}; what was drawn before is kept in {folder}") from error


def _columns(done: UnitInputs, result: Any, data: Inputs) -> Columns:
    unit = done.unit
    if isinstance(result, Selection):
        return selection_columns(unit.first, data.labels[unit.first : unit.last], result.votes, result.invalid)
    return counting_columns(unit, done.classes, result.votes, result.invalid, result.histogram)
