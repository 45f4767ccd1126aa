"""A run's log as event files for TensorBoard."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from certcal._checks import InputError
from certcal.training._log import read_log

# What a line is counted by, rather than a curve.
_COUNTERS = ("epoch", "step", "samples")


def export_events(folder: str | os.PathLike[str], to: str | os.PathLike[str]) -> int:
    """Write every number of a run's log as an event file, and say how many epochs there were.

    Parameters
    ----------
    folder
        The run's, finished or not.
    to
        A new or empty folder, for ``tensorboard --logdir``.

    Examples
    --------
    >>> import tempfile
    >>> from certcal.training._log import append
    >>> place = tempfile.TemporaryDirectory()
    >>> append(Path(place.name), {"epoch": 0, "step": 12, "loss": 1.5})
    >>> export_events(place.name, place.name + "/events")
    1
    >>> place.cleanup()
    """
    lines = read_log(folder)
    place = Path(to)
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise InputError(f"{place}: is not an empty folder; choose a new one")
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise InputError("event files need tensorboard; install it with: pip install tensorboard") from error
    writer: Any = SummaryWriter(str(place))
    try:
        for line in lines:
            for name, value in line.items():
                if name not in _COUNTERS and isinstance(value, int | float):
                    writer.add_scalar(name, value, line["step"])
    finally:
        writer.close()
    return len(lines)
