"""The log of a run: ``metrics.jsonl``, one line per epoch, and the same as event files for TensorBoard."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from certcal._base.checks import InputError
from certcal._base.durable import write_durably
from certcal._base.files import read_bytes
from certcal._base.text import reason

LOG = "metrics.jsonl"
_LARGEST = 2**28
# What a line is counted by, rather than a curve.
_COUNTERS = ("epoch", "step", "samples")


def append(folder: Path, line: Mapping[str, Any]) -> None:
    """Add a line, on the disk when this returns."""
    path = folder / LOG
    try:
        with path.open("ab") as stream:
            stream.write(_line_bytes(line))
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written ({error.strerror or error}); make room, and give the same command again"
        ) from error


def rewrite(folder: Path, lines: Sequence[Mapping[str, Any]]) -> None:
    """Bring the log to these lines, unless they are what it holds."""
    path = folder / LOG
    content = b"".join(map(_line_bytes, lines))
    if not path.exists() or path.read_bytes() != content:
        write_durably(path, content)


def read_log(folder: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The lines of a run's log, also while it is being trained.

    Parameters
    ----------
    folder
        The run's.

    Examples
    --------
    >>> import tempfile
    >>> place = tempfile.TemporaryDirectory()
    >>> append(Path(place.name), {"epoch": 0, "loss": 1.5})
    >>> read_log(place.name)
    [{'epoch': 0, 'loss': 1.5}]
    >>> place.cleanup()
    """
    path = Path(folder) / LOG
    whole, _, _ = read_bytes(path, _LARGEST, "a log").rpartition(b"\n")
    log: list[dict[str, Any]] = []
    for number, text in enumerate(whole.splitlines(), 1):
        try:
            line: Any = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}, line {number}: is damaged ({reason(error)}); resume the training") from error
        if not isinstance(line, dict):
            raise InputError(f"{path}, line {number}: is no table; resume the training")
        log.append(cast("dict[str, Any]", line))
    return log


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


def _line_bytes(line: Mapping[str, Any]) -> bytes:
    return (json.dumps(line) + "\n").encode()
