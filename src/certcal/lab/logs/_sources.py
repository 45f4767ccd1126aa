"""Folders of runs and files of logs, read and compared."""

from __future__ import annotations

import os
import string
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from certcal._base.checks import InputError
from certcal._base.text import counted, ends_of_paths
from certcal.data.formats import existing
from certcal.data.layout import log_columns
from certcal.lab.logs._budgets import DEFAULT_BUDGETS
from certcal.lab.logs._compare import compare
from certcal.lab.logs._comparison import Comparison
from certcal.lab.logs._log import COLUMNS, LogWarning, read_log
from certcal.smoothing import Run, open_run
from certcal.verbs.compare import TABLE, CompareSettings, as_list, is_path, source_kind

_ALPHA = 0.001


def compare_sources(sources: Sequence[Any], asked: CompareSettings) -> Comparison:
    """Read and compare runs and logs, or one mapping of families of them."""
    if not sources:
        raise InputError("there is nothing to compare; pass at least one run or log")
    first: Any = sources[0]
    families = cast("Mapping[str, Any]", first) if isinstance(first, Mapping) else None
    several = [("", each) for each in sources]
    if families is not None:
        named = ((name, each) for name, own in families.items() for each in as_list(own))
        several = [(name, log) for name, each in named for log in _logs_of_folder(each)]
    read, origins = _read_sources([source for _, source in several], asked)
    given: Any = read
    files: dict[str, str] = {}
    if families is not None:
        given = {name: list[Any]() for name in families}
        for (name, _), source in zip(several, read, strict=True):
            given[name].append(source)
        files = _files_by_run([name for name, _ in several], read, origins)
    found = compare(
        given,
        asked.radii or None,
        alpha=_ALPHA if asked.alpha is None else asked.alpha,
        budgets=asked.budgets or DEFAULT_BUDGETS,
        samples=asked.samples,
        names=_run_names(read, origins),
    )
    if families is None:
        files = dict(zip((run.name for run in found.runs), origins, strict=True))
    return replace(found, origins=files, settings=asked)


def _files_by_run(families: Sequence[str], sources: Sequence[Any], origins: Sequence[str]) -> dict[str, str]:
    """Files by the names of runs: each of repeated ones, and all of a method at a noise level."""
    paths: dict[str, list[str]] = {}
    for family, source, origin in zip(families, sources, origins, strict=True):
        same = paths.setdefault(f"{family} {float(source.sigma):g}", [])
        if origin and origin in same:
            raise InputError(f"{family}={origin} is given twice; give each run once")
        same.append(origin)
    known = {name: several for name, several in paths.items() if any(several)}
    own = {f"{name} #{i}": path for name, several in known.items() for i, path in enumerate(several, 1)}
    return own | {
        name: several[0] + (f" and {len(several) - 1} more" if len(several) > 1 else "")
        for name, several in known.items()
    }


def _run_names(read: Sequence[Any], origins: Sequence[str]) -> list[str]:
    """Names for runs: the ends of their paths, in memory their own; letters where these do not tell them apart."""
    own = [origin or str(getattr(one, "name", "")) for one, origin in zip(read, origins, strict=True)]
    known = ends_of_paths([name or letter for name, letter in zip(own, letters(len(own)), strict=True)])
    return letters(len(own)) if known is None else known


def letters(count: int) -> list[str]:
    """Names for runs: A to Z, then A2, B2 and so on."""
    alphabet = string.ascii_uppercase
    return [alphabet[i % 26] + (str(i // 26 + 1) if i >= 26 else "") for i in range(count)]


def _logs_of_folder(source: Any) -> Sequence[Any]:
    """The logs below a folder that is no run; anything else as it is."""
    if not is_path(source) or not Path(source).is_dir() or (Path(source) / "manifest.json").exists():
        return [source]
    logs = [path for path in sorted(Path(source).rglob("*")) if path.is_file() and _is_log(path)]
    if not logs:
        remedy = "give the folder of a run, or one with logs in it"
        raise InputError(f"{source}: neither a run nor a folder of certification logs", remedy=remedy)
    return logs


def _is_log(path: Path) -> bool:
    with path.open(encoding="utf-8", errors="replace") as stream:
        names = stream.readline(4096).rstrip("\r\n").split("\t")
    return len(set(names)) == len(names) and set(COLUMNS) <= log_columns(names).keys()


def _read_sources(sources: Sequence[Any], asked: CompareSettings) -> tuple[list[Any], list[str]]:
    """Sources of votes, and the path of each; empty for one in memory."""
    logs = sum(is_path(source) and not Path(source).is_dir() for source in sources)
    said = zip(_one_per_log(asked.sigma, logs, "sigma"), _one_per_log(asked.n, logs, "n"), strict=True)
    read: list[Any] = []
    for place, source in enumerate(sources):
        if isinstance(source, Run):
            read.append(source.counts())
        elif not is_path(source):
            if not hasattr(source, "sigma"):
                raise InputError(
                    f"source {place + 1} is {type(source).__name__}; pass a run, a log or a VoteRecord, or compare two "
                    "tables: compare(Predictions.from_scores(old, y), Predictions.from_scores(new, y))"
                )
            read.append(source)
        else:
            read.append(
                open_run(source).counts() if Path(source).is_dir() else _read_log_file(Path(source), said, asked.alpha)
            )
    return read, [str(getattr(each, "path", "")) if not is_path(each) else os.fspath(each) for each in sources]


def _one_per_log(values: Sequence[Any], logs: int, argument: str) -> list[Any]:
    """One value for all logs, or one for each in their order."""
    if not values:
        return [None] * logs
    if not logs:
        raise InputError("it is for logs, and runs know their own", argument=argument, remedy="leave it out")
    if len(values) not in (1, logs):
        reason = f"{len(values)} values are given for {counted(logs, 'log')}"
        raise InputError(reason, argument=argument, remedy="give one for all, or one for each in order")
    return list(values) * (logs if len(values) == 1 else 1)


def _read_log_file(path: Path, said: Iterator[tuple[float | None, int | None]], alpha: float | None) -> Any:
    sigma, n = next(said)
    existing(path, "run or log")
    if n is None:
        if source_kind(path) == TABLE:
            remedy = "compare it with one other table, without names"
            raise InputError(f"{path}: this is {TABLE}, and runs and logs are compared here", remedy=remedy)
        reason = f"{path}: a log does not say how it was certified"
        raise InputError(reason, argument="n", remedy="give its noise samples per input")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LogWarning)  # it is in the log's notes, which are shown
        return read_log(path, sigma=sigma, n=n, alpha=alpha)
