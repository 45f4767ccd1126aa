"""A run on disk: a manifest and shards, asked for what they hold."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.arguments import names_wrong_types
from certcal._base.checks import InputError, to_numpy, whole_number
from certcal._base.files import path_of
from certcal._base.notebook import Card, CardTable, NotebookCard
from certcal._base.parts import missing_text
from certcal._base.told import Told
from certcal.smoothing._manifest import OLD_VERSION, Manifest, Size, Unit, input_fingerprints, read_manifest
from certcal.smoothing._shards import (
    DAMAGED,
    Columns,
    DamagedShardError,
    read_shard,
    refuse_changed,
    refuse_changed_run,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from certcal.data import Rows
    from certcal.smoothing._certificates import Certificates
    from certcal.smoothing._counts import Counts


@dataclass(frozen=True)
class RunState(Told):
    """How complete a run is."""

    finished: int
    total: int
    """Forward passes on disk, and of the whole run."""
    missing: tuple[Unit, ...]
    """Units that are still to be drawn, damaged ones included."""
    damaged: tuple[tuple[Unit, str], ...]
    """Units whose shard cannot be used, and why."""

    @property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return not self.missing

    @property
    def missing_parts(self) -> tuple[int, ...]:
        """Numbers of the parts of which something is missing, from 1."""
        return tuple(sorted({unit.part for unit in self.missing}))


class Run(NotebookCard):
    """What was drawn, on disk. Everything after drawing needs only this: no model, no data.

    Made by :func:`certcal.smoothing.sample` and :func:`certcal.smoothing.open_run`.

    Attributes
    ----------
    path
        The folder.
    manifest
        What it was drawn with.
    """

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self.manifest = manifest
        self._known: dict[tuple[int, int], Counts] = {}

    def __repr__(self) -> str:
        m = self.manifest
        return f"Run({str(self.path)!r}: {m.samples:,} samples, n={m.n:,}, n0={m.n0:,}, sigma={m.sigma:g})"

    def card(self) -> Card:
        """What a notebook shows."""
        m = self.manifest
        facts = [
            ("folder", str(self.path)),
            ("samples", f"{m.samples:,}"),
            ("draws per sample", f"{m.n:,}, and {m.n0:,} to choose the class"),
            ("noise", f"{m.noise}, sigma {m.sigma:g}, seed {m.seed}"),
            ("model", m.model.description),
            ("data", m.data.source or "not named"),
            ("created", m.created),
        ]
        return Card(tables=(CardTable(facts, caption="Run on disk"),))

    def state(self) -> RunState:
        """Read and check every shard."""
        finished = 0
        missing: list[Unit] = []
        damaged: list[tuple[Unit, str]] = []
        for unit, columns, reason in survey(self.path, self.manifest, self.manifest.units()):
            finished += unit.passes if columns is not None else 0
            missing += [unit] if columns is None else []
            damaged += [(unit, reason)] if reason is not None else []
        return RunState(finished, self.manifest.passes, tuple(missing), tuple(damaged))

    def set_aside(self) -> list[str]:
        """Names of damaged shards that were moved out of the way and drawn again."""
        return sorted(path.name for path in (self.path / DAMAGED).glob("*.parquet"))

    def counts(self, samples: int | None = None, n: int | None = None) -> Counts:
        """Votes and confidence histograms of every sample.

        Parameters
        ----------
        samples
            Only the first so many; all when not given.
        n
            Only draws 0 to ``n`` - 1, where the run ended once; all when not given. A run that is being extended can
            so be used at its former size. A certificate holds for a size that was fixed beforehand: choosing among
            several after looking at them spends α for each.

        Raises
        ------
        InputError
            If the run never had this size, or some of what is asked for is not drawn yet, or damaged: the text says
            what to do.
        """
        m = self.manifest
        limit = f"pass a number of samples from 1 to {m.samples}"
        size = m.samples if samples is None else whole_number(samples, 1, m.samples, "samples", limit)
        draws = m.n if n is None else whole_number(n, 1, m.n, "n", f"pass a number of draws from 1 to {m.n}")
        if (size, draws) not in self._known:
            self._known[size, draws] = self._collect(size, draws, self._grown_from(size, draws))
        return self._known[size, draws]

    def class_votes(self) -> csr_array:
        """Votes of the counting draws for every class: a sparse matrix with a row per sample.

        Examples
        --------
        >>> import tempfile, certcal.models
        >>> from certcal.smoothing import sample
        >>> model, folder = certcal.models.wrap(lambda batch: batch, outputs="logits"), tempfile.TemporaryDirectory()
        >>> run = sample(model, [[0.1, 2.0, 1.5]], [1], sigma=0.5, n=100, out=f"{folder.name}/run")
        >>> run.class_votes().toarray()
        array([[ 0, 73, 27]])
        >>> folder.cleanup()
        """
        from scipy.sparse import csr_array

        found = [np.empty((3, 0), np.int64)]
        for unit, columns in self._read_counting("votes of all classes", self.manifest.version > OLD_VERSION):
            rows = np.repeat(np.arange(unit.first, unit.last), columns["voted"])
            found.append(np.stack([rows, columns["classes"], columns["class_votes"]]))
        rows, classes, votes = np.concatenate(found, axis=1)
        return csr_array((votes, (rows, classes)), shape=(self.manifest.samples, self.manifest.model.classes))

    def class_histograms(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Classes (N, L) with the most votes after class A, and histograms (N, L + 1, cells) of their confidences.

        The last histogram is of all classes together that are neither among these nor A. Cells are those of
        :attr:`Counts.thresholds`. For runs that were sampled with ``histograms`` = L + 1.
        """
        m = self.manifest
        classes = np.zeros((m.samples, m.histograms - 1), np.int64)
        histograms = np.zeros((m.samples, m.histograms, len(m.thresholds) + 1), np.int64)
        for unit, columns in self._read_counting("histograms of several classes", m.histograms > 1):
            rows = slice(unit.first, unit.last)
            classes[rows] = columns["others"]
            histograms[rows] += columns["other_histograms"].reshape(histograms[rows].shape)
        return classes, histograms

    def _read_counting(self, what: str, kept: bool) -> Iterator[tuple[Unit, Columns]]:
        if not kept:
            raise InputError(f"{self.path}: the run has no {what}; sample it again into a new folder")
        for unit, columns, reason in survey(self.path, self.manifest, self.manifest.units()):
            if columns is None:
                raise InputError(self._unusable([unit], reason))
            if unit.stage == "counting":
                yield unit, columns

    def certificates(self, radius: float, *rest: Any, **settings: Any) -> Certificates:
        """Certificates at a radius, with the arguments of :func:`certcal.smoothing.certificates`."""
        from certcal.smoothing._certificates import certificates

        return certificates(self.counts(), radius, *rest, **settings)

    def _grown_from(self, samples: int, n: int) -> tuple[Size, ...]:
        """The sizes that the run had before the one that is asked for."""
        sizes = self.manifest.sizes
        for place, size in enumerate(sizes):
            if size.n == n and size.samples >= samples:
                return sizes[:place]
        had = ", ".join(f"samples={size.samples} with n={size.n}" for size in sizes)
        raise InputError(
            f"n is {n} for {samples} samples, which is no size that the run ever had; pass one of: {had} (or fewer "
            "samples)"
        )

    def _collect(self, samples: int, n: int, earlier: tuple[Size, ...]) -> Counts:
        from certcal.smoothing._counts import Counts

        m = self.manifest
        needed = self._units_needed(samples, n)
        # Before there is memory for what may only be promised.
        absent = [unit for unit in needed if not (self.path / unit.name).exists()]
        if absent:
            refuse_changed_run(self.path, m)
            raise InputError(self._unusable(absent, None))
        cells = len(m.thresholds) + 1
        label, predicted = np.zeros(samples, np.int64), np.zeros(samples, np.int64)
        draws, votes, invalid, sums = (np.zeros(samples, np.int64) for _ in range(4))
        histogram = np.zeros((samples, cells), np.int64)
        for unit, columns, reason in survey(self.path, m, needed):
            if columns is None:
                raise InputError(self._unusable([unit], reason))
            keep = slice(unit.first, min(unit.last, samples))
            some = slice(0, keep.stop - keep.start)
            if unit.stage == "selection":
                label[keep], predicted[keep] = columns["label"][some], columns["predicted"][some]
                continue
            draws[keep] += unit.stop - unit.start
            votes[keep] += columns["votes"][some]
            invalid[keep] += columns["invalid"][some]
            histogram[keep] += columns["histogram"][some]
            if "sums" in columns:
                sums[keep] += columns["sums"][some]
        return Counts(
            thresholds=np.array(m.thresholds),
            sigma=m.sigma,
            index=m.data.every * np.arange(samples),
            label=label,
            predicted=predicted,
            draws=draws,
            votes=votes,
            invalid=invalid,
            histogram=histogram,
            noise=m.noise,
            earlier=earlier,
            seed=m.seed,
            sums=sums if m.version > OLD_VERSION else None,
        )

    def _units_needed(self, samples: int, n: int) -> list[Unit]:
        return [
            unit
            for unit in self.manifest.units()
            if unit.first < samples and (unit.stage == "selection" or unit.start < n)
        ]

    def _unusable(self, units: Sequence[Unit], reason: str | None) -> str:
        m, unit = self.manifest, units[0]
        if reason is None and m.parts > 1:
            return f"{self.path}: {missing_parts(m, (unit.part for unit in units))}"
        what = f"{unit} are not drawn yet" if reason is None else f"the shard of {unit} is damaged: {reason}"
        former = [size for size in m.sizes[:-1] if size != m.sizes[-1]]
        at = f", or use what was there before: counts(samples={former[-1].samples}, n={former[-1].n})" if former else ""
        return f"{self.path}: {what}; give the same sample command again to draw what is missing{at}"


def missing_parts(manifest: Manifest, missing: Iterable[int]) -> str:
    """Which parts of a run are missing, and what to do."""
    numbers = sorted(set(missing))
    first = f"part {numbers[0]}/{manifest.parts}{', and so on' if len(numbers) > 1 else ''}"
    return f"{missing_text(numbers, manifest.parts)}; give the same sample command for {first}"


@names_wrong_types
def open_run(path: str | os.PathLike[str]) -> Run:
    """Open a run on disk. Its shards are read and checked when they are asked for.

    Parameters
    ----------
    path
        The folder.

    Examples
    --------
    >>> open_run("no-such-run")
    Traceback (most recent call last):
        ...
    certcal.InputError: no-such-run: there is no run here (no manifest.json); check the path
    """
    folder = path_of(path)
    return Run(folder, read_manifest(folder))


def survey(
    folder: Path, manifest: Manifest, units: Iterable[Unit], predicted: NDArray[np.int64] | None = None
) -> Iterator[tuple[Unit, Columns | None, str | None]]:
    """Each unit with its columns, or None and, when there is a shard that cannot be used, why."""
    checked = False
    # Zeros take no memory before they are written to, however many samples a manifest promises: classes count from 1.
    classes, first = (np.zeros(manifest.samples, np.int64), 1) if predicted is None else (predicted, 0)
    for unit in units:
        own = classes[unit.first : unit.last]
        try:
            columns = read_shard(folder, manifest, unit)
            counted = None if columns is None or unit.stage != "counting" else columns["predicted"] + first
            if counted is not None and np.any((own >= first) & (own != counted)):
                raise DamagedShardError("it counts another class than was selected")
        except DamagedShardError as damage:
            if not checked:
                refuse_changed_run(folder, manifest)
            checked = True
            refuse_changed(folder / unit.name, manifest)
            yield unit, None, str(damage)
            continue
        if columns is None and not checked:
            refuse_changed_run(folder, manifest)
        checked = True
        if columns is not None and unit.stage == "selection":
            own[:] = columns["predicted"] + first
        yield unit, columns, None


@names_wrong_types
def usable_counts(run: Run, *, drawn_only: bool = False) -> Counts:
    """The counts of a run, or of those of its first samples that are drawn completely.

    Parameters
    ----------
    run
        The run.
    drawn_only
        Be content with what is drawn. Which samples these are depends on how far drawing got, and not on its results.

    Raises
    ------
    InputError
        If the run is not complete and ``drawn_only`` is not set, or no sample is complete.
    """
    try:
        return run.counts()
    except InputError:
        state = run.state()
        if state.complete:
            raise
    if drawn_only:
        size = _complete_prefix(run.manifest, state.missing)
        if size is not None:
            return run.counts(*size)
        raise InputError(f"{run.path}: no sample is drawn completely; give the same sample command again to go on")
    damaged = f", and {len(state.damaged)} of its shards are damaged" if state.damaged else ""
    if run.manifest.parts > 1:
        damaged += f"; {missing_text(state.missing_parts, run.manifest.parts)}"
    raise InputError(
        f"{run.path}: the run is not complete, {state.finished:,} of {state.total:,} draws are there{damaged}",
        remedy="give the same sample command again to draw the rest, or add {drawn_only} to use what is drawn",
        roles=("drawn_only",),
    )


def _complete_prefix(manifest: Manifest, missing: Sequence[Unit]) -> tuple[int, int] | None:
    """How many of the first samples have all their draws, and how many draws that is: the most draws that any have."""
    for n in sorted({size.n for size in manifest.sizes}, reverse=True):
        most = max(size.samples for size in manifest.sizes if size.n == n)
        first = min((unit.first for unit in missing if unit.stage == "selection" or unit.start < n), default=most)
        if first:
            return min(first, most), n
    return None


@names_wrong_types
def check_inputs(manifest: Manifest, inputs: Any) -> NDArray[np.float32] | Rows:
    """The inputs of a run's samples, once it is sure that they are the ones it was drawn from.

    Parameters
    ----------
    manifest
        Of the run.
    inputs
        One entry per sample along the first axis, as they were given for sampling (uint8 is taken as pixels, k as
        k/255), or what :func:`certcal.data.read_inputs` returns. There may be more of them than the run has samples, and
        of a run over every k-th sample, all may be given.

    Raises
    ------
    InputError
        If they are other inputs.

    Examples
    --------
    >>> import tempfile, certcal.models
    >>> from certcal.smoothing import sample
    >>> model = certcal.models.wrap(lambda batch: batch, outputs="logits")
    >>> folder, x = tempfile.TemporaryDirectory(), np.array([[0.1, 2.0], [3.0, 0.2]])
    >>> run = sample(model, x, [1, 0], sigma=0.5, n=100, out=f"{folder.name}/run")
    >>> check_inputs(run.manifest, x).shape
    (2, 2)
    >>> check_inputs(run.manifest, x + 1)
    Traceback (most recent call last):
        ...
    certcal.InputError: inputs are not the data that the run was drawn from, by their fingerprint; pass the data that was sampled, scaled and ordered as it was then
    >>> folder.cleanup()
    """  # noqa: E501
    from certcal.data import Inputs, Rows

    if isinstance(inputs, Inputs):
        given = inputs
    else:
        array: Any = inputs if isinstance(inputs, Rows) else to_numpy(inputs, "inputs")
        given = Inputs.from_arrays(array, np.zeros(array.shape[0] if array.ndim else 1, np.int64))
    shape, n = tuple(manifest.data.shape), manifest.samples
    if tuple(given.inputs.shape[1:]) != shape or len(given) < n:
        raise InputError(
            f"inputs has shape {given.inputs.shape}, and the run is of {n} samples of shape {shape}; pass the data "
            "that was sampled"
        )
    for every in dict.fromkeys((manifest.data.every, 1)):
        if len(given) > (n - 1) * every:
            used = given.subset(every=every, limit=n).inputs
            if input_fingerprints(used, n) == [manifest.data.inputs]:
                return used
    raise InputError(
        "inputs are not the data that the run was drawn from, by their fingerprint; pass the data that was "
        "sampled, scaled and ordered as it was then"
    )
