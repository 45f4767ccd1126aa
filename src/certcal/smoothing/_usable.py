"""What of a run can be used when it is not finished, and whether given inputs are the ones it was drawn from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError, to_numpy
from certcal.smoothing._beginning import fingerprint
from certcal.smoothing._counts import Counts
from certcal.smoothing._manifest import Manifest
from certcal.smoothing._run import Run
from certcal.smoothing._units import Unit


def usable_counts(
    run: Run, *, drawn_only: bool = False, remedy: str = "set this to use the samples that are drawn"
) -> Counts:
    """The counts of a run, or of those of its first samples that are drawn completely.

    Parameters
    ----------
    run
        The run.
    drawn_only
        Be content with what is drawn. Which samples these are depends on how far drawing got, and not on its results.
    remedy
        What the error of an incomplete run offers, besides drawing the rest.

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
        size = _drawn(run.manifest, state.missing)
        if size is not None:
            return run.counts(*size)
        raise InputError(f"{run.path}: no sample is drawn completely; give the same sample command again to go on")
    damaged = f", and {len(state.damaged)} of its shards are damaged" if state.damaged else ""
    raise InputError(
        f"{run.path}: the run is not complete, {state.finished:,} of {state.total:,} draws are there{damaged}",
        argument="drawn_only",
        remedy=f"give the same sample command again to draw the rest, or {remedy}",
    )


def _drawn(manifest: Manifest, missing: Sequence[Unit]) -> tuple[int, int] | None:
    """How many of the first samples have all their draws, and how many draws that is: the most draws that any have."""
    for n in sorted({size.n for size in manifest.sizes}, reverse=True):
        most = max(size.samples for size in manifest.sizes if size.n == n)
        first = min((unit.first for unit in missing if unit.stage == "selection" or unit.start < n), default=most)
        if first:
            return min(first, most), n
    return None


def check_inputs(manifest: Manifest, inputs: Any) -> NDArray[np.float32]:
    """The inputs of a run's samples, once it is sure that they are the ones it was drawn from.

    Parameters
    ----------
    manifest
        Of the run.
    inputs
        One entry per sample along the first axis, as they were given for sampling (uint8 is taken as pixels, k as
        k/255), or what :func:`certcal.data.read_inputs` returns. There may be more of them than the run has samples.

    Raises
    ------
    InputError
        If they are other inputs.

    Examples
    --------
    >>> import tempfile, certcal.models
    >>> from certcal.smoothing import sample
    >>> model = certcal.models.wrap(lambda batch: batch, outputs="logits")
    >>> folder, x = tempfile.TemporaryDirectory(), np.array([[0.1, 0.9], [0.8, 0.2]])
    >>> run = sample(model, x, [1, 0], sigma=0.5, n=100, out=f"{folder.name}/run")
    >>> check_inputs(run.manifest, x).shape
    (2, 2)
    >>> check_inputs(run.manifest, x + 1)
    Traceback (most recent call last):
        ...
    certcal._checks.InputError: inputs are not the data that the run was drawn from, by their fingerprint; pass the data that was sampled, scaled and ordered as it was then
    >>> folder.cleanup()
    """  # noqa: E501
    from certcal.data import Inputs

    if isinstance(inputs, Inputs):
        array = inputs.inputs
    else:
        given = to_numpy(inputs, "inputs")
        array = Inputs.from_arrays(given, np.zeros(given.shape[0] if given.ndim else 1, np.int64)).inputs
    shape, n = manifest.data.shape, manifest.samples
    if tuple(array.shape[1:]) != tuple(shape) or array.shape[0] < n:
        raise InputError(
            f"inputs has shape {array.shape}, and the run is of {n} samples of shape {tuple(shape)}; pass the data "
            "that was sampled"
        )
    used = array[:n]
    if fingerprint(used, "<f4") != manifest.data.inputs:
        raise InputError(
            "inputs are not the data that the run was drawn from, by their fingerprint; pass the data that was "
            "sampled, scaled and ordered as it was then"
        )
    return used
