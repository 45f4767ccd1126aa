"""What ``certcal compare`` compares: runs and logs one by one, or under the names of families."""

from __future__ import annotations

import string
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from certcal._checks import InputError
from certcal._text import counted
from certcal.cli._sources import existing
from certcal.report.results import ComparedResults, FamilyResults
from certcal.smoothing.robustness import compare, compare_families
from certcal.smoothing.robustness._settings import DEFAULT
from certcal.smoothing.robustness._votes import named

_ALPHA = 0.001


def family_names(arguments: Sequence[str]) -> tuple[tuple[str, str], ...] | None:
    """Names and paths of NAME=PATH, or None when the arguments are paths; what exists as written is a path.

    Examples
    --------
    >>> family_names(["gaussian=run-a", "acr=run-b"])
    (('gaussian', 'run-a'), ('acr', 'run-b'))
    >>> family_names(["run-a", "run-b"]) is None
    True
    >>> family_names(["gaussian=run-a", "run-b"])
    Traceback (most recent call last):
        ...
    certcal._checks.InputError: run-b has no name, and gaussian=run-a has a name; name all, as NAME=PATH, or none
    """
    given = [("", text) if "=" not in text or _exists(text) else _split(text) for text in arguments]
    plain = [text for name, text in given if not name]
    if len(plain) == len(given):
        return None
    if plain:
        first = next(text for text, (name, _) in zip(arguments, given, strict=True) if name)
        what = "is a path as it stands" if "=" in plain[0] else "has no name"
        raise InputError(f"{plain[0]} {what}, and {first} has a name; name all, as NAME=PATH, or none")
    return tuple(given)


def load_and_compare(
    paths: Sequence[str],
    radii: Sequence[float],
    sigmas: Sequence[float],
    draws: Sequence[int],
    alpha: float | None,
) -> ComparedResults:
    """Read runs (folders) and logs (files), name them by letters, and compare them."""
    sources = [
        named(source, name)
        for source, name in zip(_read(paths, sigmas, draws, alpha), letters(len(paths)), strict=True)
    ]
    found = compare(sources, list(radii) or None, alpha=_ALPHA if alpha is None else alpha)
    return ComparedResults(tuple(paths), found)


def load_families(
    sources: Sequence[tuple[str, str]],
    radii: Sequence[float] = (),
    sigmas: Sequence[float] = (),
    draws: Sequence[int] = (),
    alpha: float | None = None,
    settings: Sequence[tuple[int, float]] = (),
) -> FamilyResults:
    """Read runs and logs, put them into their families, and compare these.

    Parameters
    ----------
    sources
        Names of families and paths.
    radii, alpha
        Of the comparison.
    sigmas, draws
        Of logs.
    settings
        Draws and alpha to read certified accuracy at.
    """
    read = _read([path for _, path in sources], sigmas, draws, alpha)
    families: dict[str, list[Any]] = {}
    paths: dict[tuple[str, float], str] = {}
    for (name, path), source in zip(sources, read, strict=True):
        if (name, source.sigma) in paths:
            raise InputError(
                f"{name}={path} and {name}={paths[name, source.sigma]} have the same sigma {source.sigma:g}, and a "
                "family has one run per noise level; give one of them another name"
            )
        families.setdefault(name, []).append(source)
        paths[name, source.sigma] = path
    found = compare_families(
        families, list(radii) or None, alpha=_ALPHA if alpha is None else alpha, settings=settings or DEFAULT
    )
    origins = ((family.name, paths[family.name, run.sigma]) for family in found.families for run in family.runs)
    return FamilyResults(tuple(origins), found)


def letters(count: int) -> list[str]:
    """Names for runs: A to Z, then A2, B2 and so on.

    Examples
    --------
    >>> letters(3), letters(28)[-2:]
    (['A', 'B', 'C'], ['A2', 'B2'])
    """
    alphabet = string.ascii_uppercase
    return [alphabet[i % 26] + (str(i // 26 + 1) if i >= 26 else "") for i in range(count)]


def _spread(values: Sequence[Any], logs: int, option: str) -> list[Any]:
    """One value for all logs, or one for each in their order."""
    if not values:
        return [None] * logs
    if not logs:
        raise InputError(f"{option} is for logs, and all given are runs, which know their own; leave it out")
    if len(values) not in (1, logs):
        raise InputError(
            f"{option} is given {len(values)} times for {counted(logs, 'log')}; give it once for all, or once for "
            "each in order"
        )
    return list(values) * (logs if len(values) == 1 else 1)


def _read(paths: Sequence[str], sigmas: Sequence[float], draws: Sequence[int], alpha: float | None) -> list[Any]:
    """Counts of runs, and logs."""
    logs = sum(not Path(path).is_dir() for path in paths)
    said = zip(_spread(sigmas, logs, "--sigma"), _spread(draws, logs, "-n"), strict=True)
    sources: list[Any] = []
    for path in paths:
        if Path(path).is_dir():
            from certcal.smoothing import open_run

            sources.append(open_run(path).counts())
        else:
            sources.append(_log(path, *next(said), alpha))
    return sources


def _log(path: str, sigma: float | None, n: int | None, alpha: float | None) -> Any:
    from certcal.smoothing import LogWarning, read_log

    existing(path, "run or log")
    if sigma is None or n is None:
        missing = " and ".join(
            option for option, value in (("--sigma", sigma), ("-n (draws per sample)", n)) if value is None
        )
        raise InputError(f"{path}: a log does not say how it was certified; give {missing}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LogWarning)  # it is in the log's notes, which are shown
        return read_log(path, sigma=sigma, n=n, alpha=alpha)


def _exists(text: str) -> bool:
    try:
        return Path(text).exists()
    except (OSError, ValueError):  # a name that is too long, or no name at all
        return False


def _split(text: str) -> tuple[str, str]:
    name, _, path = text.partition("=")
    if not name.strip() or not path:
        what = "path after" if name.strip() else "name before"
        raise InputError(f"{text} has no {what} the '='; write NAME=PATH, such as gaussian=run")
    return name.strip(), path
