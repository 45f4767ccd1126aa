"""Draw once, durably: create a run, resume or extend it, and draw what is missing wherever the engine runs."""

from __future__ import annotations

import math
import os
import platform
import secrets
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from certcal._base.arguments import names_wrong_types
from certcal._base.assumptions import LOGITS
from certcal._base.checks import (
    InputError,
    LogitsWarning,
    choice,
    look_like_probabilities,
    noise_level,
    random_seed,
    whole_number,
)
from certcal._base.checks import labels as class_labels
from certcal._base.durable import make_folder, only_writer, remove_leftovers
from certcal._base.files import path_of
from certcal._base.parts import PATIENCE, Part, part_of
from certcal.data import DataSettings, Inputs, Rows
from certcal.engines import Engine, InProcess, LocalProcesses, hold
from certcal.models import Model, Source
from certcal.models.devices import Fitting, device_name, shares
from certcal.models.protocol import PackedSource
from certcal.smoothing._counts import default_thresholds
from certcal.smoothing._manifest import (
    FILE,
    MOST_DRAWS,
    MOST_HISTOGRAMS,
    MOST_SAMPLES,
    MOST_UNITS,
    OLD_VERSION,
    DataRecord,
    Manifest,
    ModelRecord,
    Size,
    Unit,
    default_unit,
    existing_manifest,
    fingerprint,
    input_fingerprints,
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
    counting_columns,
    most_voted,
    refuse_changed_run,
    selection_columns,
    set_aside,
    write_shard,
)

Progress = Callable[[int, int], None]

# Settings that say which samples of a source are drawn, and how images are prepared.
_CHOSEN = ("every", "resize", "crop", "split")
PIECE_BYTES = 1 << 27  # of the inputs that are read, sent and drawn at a time, or as many as fill whole batches


@names_wrong_types
def sample(
    model: Model,
    inputs: Any,
    labels: Any = None,
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
    histograms: int = 1,
    part: str | None = None,
    data_source: str | None = None,
    data_settings: DataSettings | None = None,
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
        One entry per sample along the first axis, finite numbers; uint8 is taken as pixels, k as k/255. Or
        :class:`certcal.data.Inputs`, with their labels. What lies in files is read when it is drawn, by the workers
        themselves where they see the files.
    labels
        True classes from 0.
    sigma, n, n0, seed, out, noise, noise_threads, histograms, part
        As for :func:`certcal.sample`.
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
    data_source, data_settings
        Where the data came from, and how it was chosen there and prepared: for the record.

    Returns
    -------
    Run
        Finished, or with ``part`` as far as it is there.

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
        data=inputs if isinstance(inputs, Inputs) else Inputs.from_arrays(inputs, labels),
        sigma=noise_level(sigma),
        n=whole_number(n, 1, MOST_DRAWS, "n", f"pass a number of draws from 1 to {MOST_DRAWS}"),
        n0=whole_number(n0, 1, MOST_DRAWS, "n0", f"pass a number of draws from 1 to {MOST_DRAWS}"),
        seed=random_seed(seed),
        noise=cast("NoiseKind", choice(noise, NOISES, "noise")),
        batch=whole_number(batch, 1, MOST_BATCH, "batch", f"pass a number of rows from 1 to {MOST_BATCH}"),
        unit=None if unit is None else whole_number(unit, 1, 2**62, "unit", "pass a number of forward passes"),
        histograms=whole_number(histograms, 1, MOST_HISTOGRAMS, "histograms", f"pass 1 to {MOST_HISTOGRAMS} classes"),
        part=part_of(part),
        data_source=data_source,
        data_settings=DataSettings() if data_settings is None else data_settings,
    )
    place = engine if engine is not None else InProcess() if workers == 1 else LocalProcesses(workers)
    if place.remote and model.source is None:
        raise InputError(
            f"{model.description} lives in this process only, and workers need to load it themselves; save it and use "
            "certcal.models.load with its path or 'package.module:name', or use workers=1"
        )
    folder = path_of(out, "out")
    with ExitStack() as kept:
        manifest, batch = _begin_run(folder, wanted, place, kept)
        probes = wanted.fingerprint_inputs(manifest.sizes[0].samples)
        settings = {name: getattr(manifest, name) for name in ("sigma", "seed", "noise")}
        settings |= {"thresholds": np.array(manifest.thresholds), "batch": batch, "noise_threads": noise_threads}
        away = place.remote and not place.shares_files
        source = model.source.packed() if away and model.source is not None else model.source
        rows = wanted.data.inputs
        readable = not place.remote or (isinstance(rows, Rows) and rows.source.portable and place.shares_files)
        task = Drawing(model, source, settings, probes, manifest.model.fingerprint, rows if readable else None)
        _draw_units(folder, manifest, wanted.part, task, place, wanted.data, progress, kept)
    return Run(folder, manifest)


def _begin_run(folder: Path, wanted: RunRequest, place: Engine, kept: ExitStack) -> tuple[Manifest, int]:
    """The manifest, on disk, and the batch size; what is drawn belongs to this process as long as it is ``kept``."""
    before, part = existing_manifest(folder), wanted.part
    part = None if part is None or part.of == 1 else part  # the only part is the whole
    manifest, batch = create(wanted) if before is None else resume(folder, before, wanted)
    if before is None:
        kept.enter_context(hold(place))  # what cannot be had is said before there is a folder
    make_folder(folder)
    with ExitStack() as writing:
        whole = only_writer(folder, "drawing into this run", patience=0.0 if part is None else PATIENCE)
        (kept if part is None else writing).enter_context(whole)
        now = existing_manifest(folder)
        if now != before:
            if part is None or now is None:
                raise InputError(f"{folder}: another process changed the run just now; give the same command again")
            # Another part was first: if it asked for the same, then its manifest is the one.
            same = {name: getattr(now, name) for name in ("run", "created", "versions")}
            if msgspec.structs.replace(manifest, **same) == now:
                manifest = now
            else:
                manifest, batch = resume(folder, now, wanted)
        if manifest != now:
            if now is not None:
                refuse_changed_run(folder, now)
            write_manifest(folder, manifest)
        if part is None:
            remove_leftovers(folder)
            for number in range(1, manifest.parts + 1) if manifest.parts > 1 else ():
                lock = Part(number, manifest.parts).lock
                kept.enter_context(only_writer(folder, f"drawing part {number} of this run", lock=lock))
        else:
            kept.enter_context(only_writer(folder, "drawing this part", lock=part.lock))
            remove_leftovers(folder, {Path(unit.name).name for unit in _units(manifest, part)} | {FILE})
    return manifest, batch


def _units(manifest: Manifest, part: Part | None) -> list[Unit]:
    return [unit for unit in manifest.units() if part is None or unit.part == part.number]


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
    histograms: int
    part: Part | None
    data_source: str | None
    data_settings: DataSettings

    def probe(self, samples: int) -> NDArray[np.float32]:
        """The inputs that the model is tried on: some of those the run began with."""
        return self.data.inputs[spread(samples)]

    def noisy(self, samples: int) -> NDArray[np.float32]:
        """The same with noise, several times each."""
        return noisy_inputs(self.probe(samples), sigma=self.sigma, seed=self.seed, noise=self.noise)

    def fingerprint_inputs(self, samples: int) -> NDArray[np.float32]:
        """What a model is known again by: its answers to these inputs, without noise and with."""
        clean, noisy = self.probe(samples), self.noisy(samples)
        return np.concatenate([clean, noisy[:: len(noisy) // (2 * len(clean))]])

    def records(self, *sizes: int, new: int = 0) -> list[DataRecord]:
        """Fingerprints of the first so many samples, for each of some numbers, in one pass over all inputs.

        Exact noise is for inputs on k/255: whether samples from number ``new`` on are is seen on the way, as are the
        smallest and largest values of all.
        """
        low, high = math.inf, -math.inf

        def look(first: int, block: NDArray[np.float32]) -> None:
            nonlocal low, high
            low, high = min(low, float(block.min())), max(high, float(block.max()))
            if self.noise == "exact" and first + len(block) > new:
                grid_levels(block, np.arange(first, first + len(block)))

        found = list(zip(sizes, input_fingerprints(self.data.inputs, *sizes, look=look), strict=True))
        rest = (tuple(self.data.inputs.shape[1:]), self.data_source)
        chosen: dict[str, Any] = {name: getattr(self.data_settings, name) for name in _CHOSEN}
        chosen["range"] = low, high
        return [DataRecord(one, fingerprint(self.data.labels[:size], "<i8"), *rest, **chosen) for size, one in found]


def create(wanted: RunRequest) -> tuple[Manifest, int]:
    """The manifest of a new run, and the batch size to draw with. The model is tried first."""
    samples = len(wanted.data)
    if samples > MOST_SAMPLES:
        raise InputError(f"inputs has {samples} samples; draw at most {MOST_SAMPLES} into one run")
    probe = wanted.probe(samples)
    sampler = Sampler(wanted.model, sigma=wanted.sigma, seed=wanted.seed, noise=wanted.noise, batch=wanted.batch)
    classes = number_of_classes(sampler, wanted.data.inputs)
    class_labels(wanted.data.labels, classes)
    description = _model_name(wanted.model, probe)
    to_the_last_bit = check_rows(wanted.model, wanted.noisy(samples), wanted.batch)
    size, pilot = Size(samples, wanted.n), max(1, wanted.n // 10)
    unit = default_unit(samples, wanted.n0, wanted.n, wanted.batch) if wanted.unit is None else wanted.unit
    parts = 1 if wanted.part is None else wanted.part.of
    _check_units((size,), wanted.n0, pilot, unit, parts)
    if wanted.histograms > classes:
        raise InputError(
            f"histograms is {wanted.histograms}, and the model has {classes} classes; pass at most that number"
        )
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
            description=description,
            fingerprint=wanted.model.fingerprint(wanted.fingerprint_inputs(samples)),
            outputs=wanted.model.outputs,
            classes=classes,
            source=None if wanted.model.source is None else wanted.model.source.name,
            weights=None if wanted.model.source is None else wanted.model.source.weights,
        ),
        data=wanted.records(samples)[0],
        versions=_versions(wanted.model),
        histograms=wanted.histograms,
        parts=parts,
    )
    return manifest, wanted.batch


def _model_name(model: Model, probe: NDArray[np.float32]) -> str:
    """What a run calls its model; where its outputs look like probabilities and are read as logits, that it is so."""
    if model.outputs != "logits" or not look_like_probabilities(np.asarray(model(probe))):
        return model.description[:1000]
    warnings.warn(
        f"all outputs of {model.description} that were tried lie in [0, 1] and sum to 1: these look like "
        "probabilities, of which another softmax is taken; if they are, declare outputs as probabilities",
        LogitsWarning,
        stacklevel=2,
    )
    return f"{model.description[:800]}; assumed: {LOGITS}"


def resume(folder: Path, manifest: Manifest, wanted: RunRequest) -> tuple[Manifest, int]:
    """The manifest as it is or grown, and the batch size to draw with; or one sentence that says what differs."""
    for name in ("sigma", "seed", "n0", "noise", "histograms"):
        drawn, given = getattr(manifest, name), getattr(wanted, name)
        if drawn != given:
            raise _differs(folder, name, drawn, given)
    if wanted.part is not None and wanted.part.of != manifest.parts:
        divided = f"was begun in {manifest.parts} parts" if manifest.parts > 1 else "was not begun in parts"
        remedy = f"give a part of {manifest.parts}" if manifest.parts > 1 else "leave it out"
        raise InputError(
            f"{folder}: the run {divided}, and {wanted.part.number}/{wanted.part.of} is asked for",
            argument="part",
            remedy=f"{remedy}, or choose another folder",
        )
    samples = len(wanted.data)
    if wanted.n < manifest.n:
        raise InputError(
            f"{folder}: the run is for n = {manifest.n} draws per sample, and n = {wanted.n} is asked for; "
            f"draws are only ever added: give n = {manifest.n} or more, or open the run as it is"
        )
    record = _same_data(folder, manifest, wanted)
    probe = wanted.probe(manifest.sizes[0].samples)
    if wanted.model.outputs != manifest.model.outputs:
        raise _differs(folder, "outputs", manifest.model.outputs, wanted.model.outputs)
    probes = wanted.fingerprint_inputs(manifest.sizes[0].samples)
    if not _is_known_as(wanted.model, manifest.model.fingerprint, probes):
        known = wanted.model.fingerprint(probes)
        raise InputError(
            f"{folder}: the run was drawn from another model: {manifest.model.description}, fingerprint "
            f"{manifest.model.fingerprint[:12]}, and this is {wanted.model.description}, {known[:12]}; "
            "give the same model, or choose another folder"
        )
    class_labels(wanted.data.labels, manifest.model.classes)
    batch = manifest.batch
    if wanted.batch != batch and manifest.rows_independent:
        batch = wanted.batch if same_in_every_batch(wanted.model, probe, {batch, wanted.batch}) else batch
    size = Size(samples, wanted.n)
    if size == manifest.sizes[-1]:
        return manifest, batch
    sizes = (*manifest.sizes, size)
    _check_units(sizes, manifest.n0, manifest.pilot, manifest.unit, manifest.parts)
    if manifest.version == OLD_VERSION:
        record = msgspec.structs.replace(record, split=None, range=None)
    return msgspec.structs.replace(manifest, sizes=sizes, data=record), batch


def _is_known_as(model: Model, digits: str, probe: NDArray[np.float32]) -> bool:
    """Whether a fingerprint is of this model; answers may be rounded otherwise on another device."""
    known: Any = getattr(model, "known_as", None)
    return model.fingerprint(probe) == digits if known is None else known(digits, probe)


def _same_data(folder: Path, manifest: Manifest, wanted: RunRequest) -> DataRecord:
    """The record of the data, which must begin with that of the run."""
    samples, shape = len(wanted.data), wanted.data.inputs.shape[1:]
    if shape != manifest.data.shape:
        raise _chosen_otherwise(folder, manifest, wanted) or _differs(
            folder, "the shape of an input", manifest.data.shape, shape
        )
    if samples < manifest.samples:
        raise _chosen_otherwise(folder, manifest, wanted) or InputError(
            f"{folder}: the run is for {manifest.samples} samples, and {samples} are given; samples are only ever "
            "added: give all of them, or open the run as it is"
        )
    record, whole = wanted.records(manifest.samples, samples, new=manifest.samples)
    for name in ("inputs", "labels"):
        drawn, given = getattr(manifest.data, name), getattr(record, name)
        if drawn != given:
            raise _chosen_otherwise(folder, manifest, wanted) or InputError(
                f"{folder}: the run was drawn from other data: its {manifest.samples} {name} have fingerprint "
                f"{drawn[:12]}, and the first {manifest.samples} given have {given[:12]}; give the same data (more "
                "samples may follow it), or choose another folder"
            )
    if wanted.data_source is None:  # the same samples from memory: where they came from is known already
        kept = ("source", *_CHOSEN)
        return msgspec.structs.replace(whole, **{name: getattr(manifest.data, name) for name in kept})
    return whole


def _chosen_otherwise(folder: Path, manifest: Manifest, wanted: RunRequest) -> InputError | None:
    """Why data differs, where samples were chosen or prepared in another way."""
    for name in _CHOSEN:
        drawn, given = getattr(manifest.data, name), getattr(wanted.data_settings, name)
        known = name != "split" or drawn is not None
        if wanted.data_source is not None and known and drawn != given:
            return _differs(folder, name, "none" if drawn is None else drawn, "none" if given is None else given)
    return None


def _differs(folder: Path, name: str, drawn: Any, given: Any) -> InputError:
    return InputError(
        f"{folder}: the run was drawn with {name} = {drawn}, and {given} is asked for; give the same, or choose "
        "another folder"
    )


def _check_units(sizes: tuple[Size, ...], n0: int, pilot: int, unit: int, parts: int) -> None:
    if number_of_units(sizes, n0, pilot, unit, parts) > MOST_UNITS:
        raise InputError(f"unit is {unit}, which cuts the run into more than {MOST_UNITS} shards; make it larger")


def _versions(model: Model) -> dict[str, str]:
    """What the run began with, for the record: software, and the device."""
    versions = {"python": platform.python_version(), "platform": platform.platform()}
    if isinstance(device := getattr(model, "device", None), str):
        versions["device"] = device_name(device)
    for name in ("certcal", "numpy", "onnxruntime", "torch", "sklearn"):
        version = getattr(sys.modules.get(name), "__version__", None)
        if version is not None:
            versions[name] = str(version)
    return versions


# --- drawing ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class UnitPiece:
    """Samples ``first`` to ``last`` - 1 of a unit; without ``inputs``, whoever draws reads them."""

    unit: Unit
    first: int
    last: int
    inputs: NDArray[np.float32] | None
    classes: NDArray[np.int64]

    def __str__(self) -> str:
        return str(self.unit)


def pieces(
    units: Iterable[Unit], inputs: NDArray[np.float32] | Rows, classes: NDArray[np.int64], batch: int, *, read: bool
) -> Iterator[UnitPiece]:
    """Units in pieces that fill whole batches, so that a piece is never large and batches are those of the unit."""
    in_bytes = max(1, PIECE_BYTES * len(inputs) // inputs.nbytes)
    for unit in units:
        step = batch // math.gcd(batch, unit.stop - unit.start)
        rows = max(1, in_bytes // step) * step
        for first in range(unit.first, unit.last, rows):
            last = min(first + rows, unit.last)
            yield UnitPiece(unit, first, last, inputs[first:last] if read else None, classes[first:last])


@dataclass
class Drawing:
    """The task of drawing units. In another process the model is loaded again, and must be the one of the manifest."""

    model: Model | None
    source: Source | PackedSource | None
    settings: dict[str, Any]
    probe: NDArray[np.float32]
    fingerprint: str
    rows: NDArray[np.float32] | Rows | None = None

    def __getstate__(self) -> dict[str, Any]:
        return vars(replace(self, model=None))  # what travels: the model itself does not

    def on_next_device(self, number: int) -> Drawing:
        """The task of one worker of several on this machine: each takes the next device of the model's kind."""
        device = getattr(self.model, "device", None)
        if self.source is None or not isinstance(device, str):
            return self
        several = shares(device)
        return replace(self, source=replace(self.source, device=several[number % len(several)]))

    def prepare(self) -> None:
        """Load the model and make the sampler."""
        if self.model is None:
            if self.source is None:
                raise SamplingError("the model lives in the process that made it; load it by name or path instead")
            self.model = self.source.load()
            if isinstance(fitting := getattr(self.model, "fitting", None), Fitting):
                fitting.said = True  # by the process that tried the same batches first
            if not _is_known_as(self.model, self.fingerprint, self.probe):
                raise SamplingError(
                    f"{self.source.name} is another model in a worker process than here; "
                    "check that both load the same file and packages"
                )
        self._sampler = Sampler(self.model, **{name: _writable(value) for name, value in self.settings.items()})

    def __call__(self, work: UnitPiece) -> Selection | Tally:
        """Draw one piece of a unit."""
        unit, inputs = work.unit, work.inputs
        if inputs is None:
            assert self.rows is not None
            inputs = self.rows[work.first : work.last]
        indices = np.arange(work.first, work.last)
        if unit.stage == "selection":
            return self._sampler.select(_writable(inputs), indices, unit.stop)
        classes = _writable(np.ascontiguousarray(work.classes.T))  # the one that is counted, and others
        return self._sampler.count(_writable(inputs), indices, classes[0], unit.start, unit.stop, classes[1:].T.copy())


def _writable(value: Any) -> Any:
    """The value; an array as one that can be written to, as kernels are compiled for: those that travel cannot be."""
    flags = getattr(value, "flags", None)
    return value if flags is None or flags.writeable else value.copy()


def _draw_units(
    folder: Path,
    manifest: Manifest,
    part: Part | None,
    task: Drawing,
    engine: Engine,
    data: Inputs,
    progress: Progress | None,
    kept: ExitStack,
) -> None:
    """Draw every unit of a part that has no good shard, and write its shard as soon as it is drawn.

    What the engine needs is ``kept`` from the first unit that is missing.
    """
    units = _units(manifest, part)
    classes = np.full((manifest.samples, manifest.histograms), -1, np.int64)
    finished, total = 0, sum(unit.passes for unit in units)
    for stage in ("selection", "counting"):
        missing: list[Unit] = []
        of_stage = (unit for unit in units if unit.stage == stage)
        for unit, columns, reason in survey(folder, manifest, of_stage, classes[:, 0]):
            if reason is not None:
                set_aside(folder, unit, reason)
            if columns is None:
                missing.append(unit)
            else:
                finished += unit.passes
                if stage == "selection":
                    classes[unit.first : unit.last] = most_voted(columns["votes"], manifest.histograms)
        if progress is not None:
            progress(finished, total)
        if not missing:
            continue
        kept.enter_context(hold(engine))
        work = pieces(missing, data.inputs, classes, task.settings["batch"], read=task.rows is None)
        drawn: dict[Unit, dict[int, Any]] = {}
        with closing(engine.run(task, work)) as results:
            try:
                for done, result in results:
                    unit = done.unit
                    parts = drawn.setdefault(unit, {})
                    parts[done.first] = result
                    finished += unit.passes * (done.last - done.first) // (unit.last - unit.first)
                    if sum(len(part.invalid) for part in parts.values()) == unit.last - unit.first:
                        del drawn[unit]
                        whole = _concatenate([parts[first] for first in sorted(parts)])
                        own = slice(unit.first, unit.last)
                        if stage == "selection":
                            columns = selection_columns(unit.first, data.labels[own], whole.votes, whole.invalid)
                            classes[own] = most_voted(whole.votes, manifest.histograms)
                        else:
                            columns = counting_columns(unit, manifest, classes[own, 0], classes[own, 1:], whole)
                        write_shard(folder, manifest, unit, columns)
                    if progress is not None:
                        progress(finished, total)
            except SamplingError as error:
                raise SamplingError(f"{error}; what was drawn before is kept in {folder}") from error


def _concatenate(parts: list[Any]) -> Any:
    """What was counted in the pieces of a unit, as one."""
    names = [each.name for each in fields(parts[0])]
    return replace(parts[0], **{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})
