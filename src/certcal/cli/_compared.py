"""What ``certcal compare`` compares."""

from __future__ import annotations

import string
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from certcal._checks import InputError
from certcal.cli._sources import existing
from certcal.report.results import ComparedResults
from certcal.smoothing.robustness import VoteRecord, compare


def load_and_compare(
    paths: Sequence[str],
    radii: Sequence[float],
    sigmas: Sequence[float],
    draws: Sequence[int],
    alpha: float | None,
) -> ComparedResults:
    """Read runs (folders) and logs (files), name them by letters, and compare them."""
    names = letters(len(paths))
    logs = [path for path in paths if not Path(path).is_dir()]
    each_sigma = _spread(sigmas, logs, "--sigma")
    each_draws = _spread(draws, logs, "-n")
    sources: list[Any] = []
    for path, name in zip(paths, names, strict=True):
        if Path(path).is_dir():
            from certcal.smoothing import open_run

            sources.append(VoteRecord.from_counts(open_run(path).counts(), name))
        else:
            sources.append(_log(path, name, each_sigma.get(path), each_draws.get(path), alpha))
    found = compare(sources, list(radii) or None, alpha=0.001 if alpha is None else alpha)
    return ComparedResults(tuple(paths), found)


def letters(count: int) -> list[str]:
    """Names for runs: A to Z, then A2, B2 and so on.

    Examples
    --------
    >>> letters(3), letters(28)[-2:]
    (['A', 'B', 'C'], ['A2', 'B2'])
    """
    alphabet = string.ascii_uppercase
    return [alphabet[i % 26] + (str(i // 26 + 1) if i >= 26 else "") for i in range(count)]


def _spread(values: Sequence[Any], logs: Sequence[str], option: str) -> dict[str, Any]:
    """One value for all logs, or one for each in their order."""
    if not values:
        return {}
    if not logs:
        raise InputError(f"{option} is for logs, and all given are runs, which know their own; leave it out")
    if len(values) not in (1, len(logs)):
        raise InputError(
            f"{option} is given {len(values)} times for {len(logs)} logs; give it once for all, or once for "
            "each in order"
        )
    return dict(zip(logs, list(values) * (len(logs) if len(values) == 1 else 1), strict=True))


class _Named:
    """A log under a name of its own."""

    def __init__(self, log: Any, name: str) -> None:
        self.radii, self.alpha, self.notes = log.radii, log.alpha, log.notes
        self._log, self._name = log, name

    def record(self, name: str = "") -> VoteRecord:
        return self._log.record(name or self._name)


def _log(path: str, name: str, sigma: float | None, n: int | None, alpha: float | None) -> _Named:
    from certcal.smoothing import LogWarning, read_log

    existing(path, "run or log")
    if sigma is None or n is None:
        missing = " and ".join(
            option for option, value in (("--sigma", sigma), ("-n (draws per sample)", n)) if value is None
        )
        raise InputError(f"{path}: a log does not say how it was certified; give {missing}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LogWarning)  # it is in the log's notes, which are shown
        return _Named(read_log(path, sigma=sigma, n=n, alpha=alpha), name)
