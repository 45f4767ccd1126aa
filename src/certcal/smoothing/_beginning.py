"""Beginning a run, and deciding whether an existing one may be continued or extended."""

from __future__ import annotations

import hashlib
import platform
import secrets
import sys
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError
from certcal._checks import labels as class_labels
from certcal._durable import LOCK, is_leftover
from certcal.data import Inputs
from certcal.models import Model
from certcal.smoothing._grid import default_thresholds
from certcal.smoothing._manifest import FILE, MOST_SAMPLES, DataRecord, Manifest, ModelRecord, read_manifest
from certcal.smoothing._noise import grid_levels
from certcal.smoothing._probe import check_rows, noisy_inputs, number_of_classes, same_in_every_batch, spread
from certcal.smoothing._sampler import Sampler
from certcal.smoothing._units import MOST_UNITS, Size, default_unit, number_of_units

_ROWS_AT_A_TIME = 256


@dataclass(frozen=True, eq=False)
class Asked:
    """What the caller of :func:`certcal.smoothing.sample` wants."""

    model: Model
    data: Inputs
    sigma: float
    n: int
    n0: int
    seed: int
    noise: str
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


def existing(folder: Path) -> Manifest | None:
    """The manifest in a folder, None for a folder that is free, and an error for one that holds something else."""
    if (folder / FILE).exists():
        return read_manifest(folder)
    try:
        others = [entry.name for entry in folder.iterdir() if not _ours(entry.name)] if folder.is_dir() else []
    except OSError as error:
        raise InputError(f"{folder}: cannot be read ({error.strerror or error}); check its permissions") from error
    if others:
        raise InputError(
            f"{folder}: holds other files ({sorted(others)[0]}) and no {FILE}; choose an empty or new folder"
        )
    return None


def _ours(name: str) -> bool:
    """Whether a file was left by a process that was killed before it wrote the manifest."""
    return name == LOCK or is_leftover(name)


def begin(asked: Asked) -> tuple[Manifest, int]:
    """The manifest of a new run, and the batch size to draw with. The model is tried first."""
    samples = len(asked.data)
    if samples > MOST_SAMPLES:
        raise InputError(f"inputs has {samples} samples; draw at most {MOST_SAMPLES} into one run")
    _check_grid(asked, 0)
    probe = asked.probe(samples)
    classes = number_of_classes(_sampler(asked, asked.batch), asked.data.inputs)
    class_labels(asked.data.labels, classes)
    to_the_last_bit = check_rows(asked.model, asked.noisy(samples), asked.batch)
    size, pilot = Size(samples, asked.n), max(1, asked.n // 10)
    unit = default_unit(samples, asked.n0, asked.n, asked.batch) if asked.unit is None else asked.unit
    _check_units((size,), asked.n0, pilot, unit)
    manifest = Manifest(
        run=secrets.token_hex(16),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        sigma=asked.sigma,
        noise=asked.noise,
        seed=asked.seed,
        n0=asked.n0,
        pilot=pilot,
        thresholds=tuple(default_thresholds().tolist()),
        batch=asked.batch,
        unit=unit,
        rows_independent=to_the_last_bit and same_in_every_batch(asked.model, probe, {asked.batch}),
        sizes=(size,),
        model=ModelRecord(
            description=asked.model.description[:1000],
            fingerprint=asked.model.fingerprint(asked.tried(samples)),
            outputs=asked.model.outputs,
            classes=classes,
            source=None if asked.model.source is None else asked.model.source.name,
            weights=None if asked.model.source is None else asked.model.source.weights,
        ),
        data=_data_record(asked, samples),
        versions=_versions(),
    )
    return manifest, asked.batch


def extend(folder: Path, manifest: Manifest, asked: Asked) -> tuple[Manifest, int]:
    """The manifest as it is or grown, and the batch size to draw with; or one sentence that says what differs."""
    for name in ("sigma", "seed", "n0", "noise"):
        drawn, wanted = getattr(manifest, name), getattr(asked, name)
        if drawn != wanted:
            raise _differs(folder, name, drawn, wanted)
    samples = len(asked.data)
    if asked.n < manifest.n:
        raise InputError(
            f"{folder}: the run is for n = {manifest.n} draws per sample, and n = {asked.n} is asked for; "
            f"draws are only ever added: give n = {manifest.n} or more, or open the run as it is"
        )
    _same_data(folder, manifest, asked)
    probe = asked.probe(manifest.sizes[0].samples)
    if asked.model.outputs != manifest.model.outputs:
        raise _differs(folder, "outputs", manifest.model.outputs, asked.model.outputs)
    fingerprint = asked.model.fingerprint(asked.tried(manifest.sizes[0].samples))
    if fingerprint != manifest.model.fingerprint:
        raise InputError(
            f"{folder}: the run was drawn from another model: {manifest.model.description}, fingerprint "
            f"{manifest.model.fingerprint[:12]}, and this is {asked.model.description}, {fingerprint[:12]}; "
            "give the same model, or choose another folder"
        )
    class_labels(asked.data.labels, manifest.model.classes)
    batch = manifest.batch
    if asked.batch != batch and manifest.rows_independent:
        batch = asked.batch if same_in_every_batch(asked.model, probe, {batch, asked.batch}) else batch
    size = Size(samples, asked.n)
    if size == manifest.sizes[-1]:
        return manifest, batch
    _check_grid(asked, manifest.samples)
    sizes = (*manifest.sizes, size)
    _check_units(sizes, manifest.n0, manifest.pilot, manifest.unit)
    return replace(manifest, sizes=sizes, data=_data_record(asked, samples)), batch


def _same_data(folder: Path, manifest: Manifest, asked: Asked) -> None:
    """Raise unless the data begins with that of the run."""
    samples, shape = len(asked.data), asked.data.inputs.shape[1:]
    if shape != manifest.data.shape:
        raise _differs(folder, "the shape of an input", manifest.data.shape, shape)
    if samples < manifest.samples:
        raise InputError(
            f"{folder}: the run is for {manifest.samples} samples, and {samples} are given; samples are only ever "
            "added: give all of them, or open the run as it is"
        )
    record = _data_record(asked, manifest.samples)
    for name in ("inputs", "labels"):
        drawn, wanted = getattr(manifest.data, name), getattr(record, name)
        if drawn != wanted:
            raise InputError(
                f"{folder}: the run was drawn from other data: its {manifest.samples} {name} have fingerprint "
                f"{drawn[:12]}, and the first {manifest.samples} given have {wanted[:12]}; give the same data (more "
                "samples may follow it), or choose another folder"
            )


def _differs(folder: Path, name: str, drawn: Any, wanted: Any) -> InputError:
    return InputError(
        f"{folder}: the run was drawn with {name} = {drawn}, and {wanted} is asked for; give the same, or choose "
        "another folder"
    )


def _sampler(asked: Asked, batch: int) -> Sampler:
    return Sampler(asked.model, sigma=asked.sigma, seed=asked.seed, noise=asked.noise, batch=batch)


def _check_grid(asked: Asked, first: int) -> None:
    """Exact noise is for inputs on k/255: say so before anything is drawn, not when the first bad sample comes."""
    if asked.noise == "exact":
        for start in range(first, len(asked.data), _ROWS_AT_A_TIME):
            rows = asked.data.inputs[start : start + _ROWS_AT_A_TIME]
            grid_levels(rows, np.arange(start, start + len(rows)))


def _check_units(sizes: tuple[Size, ...], n0: int, pilot: int, unit: int) -> None:
    if number_of_units(sizes, n0, pilot, unit) > MOST_UNITS:
        raise InputError(f"unit is {unit}, which cuts the run into more than {MOST_UNITS} shards; make it larger")


def _data_record(asked: Asked, samples: int) -> DataRecord:
    """Fingerprints of the first samples."""
    inputs, labels = asked.data.inputs[:samples], asked.data.labels[:samples]
    return DataRecord(
        inputs=fingerprint(inputs, "<f4"),
        labels=fingerprint(labels, "<i8"),
        shape=tuple(inputs.shape[1:]),
        source=asked.data_source,
    )


def fingerprint(values: NDArray[Any], kind: str) -> str:
    """Of the shape of an array and its bytes in a type, as it stands in a manifest."""
    array = np.ascontiguousarray(values, kind)
    total = hashlib.sha256(f"{array.shape}\n".encode())
    total.update(array.reshape(-1).view(np.uint8).data)
    return total.hexdigest()


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "platform": platform.platform()}
    for name in ("certcal", "numpy", "onnxruntime", "torch", "sklearn"):
        if name in sys.modules:
            try:
                found[name] = version({"sklearn": "scikit-learn"}.get(name, name))
            except PackageNotFoundError:
                continue
    return found
