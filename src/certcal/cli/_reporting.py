"""What a source is, told by its folders, columns and options."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from certcal._checks import InputError
from certcal.cli._sources import existing, plain_names
from certcal.data import open_table
from certcal.data._roles import LOWER, UPPER
from certcal.smoothing import open_run

# What a source can be, and in how many words.
KINDS = {
    "predictions": "a table of predictions",
    "intervals": "a table of intervals",
    "run": "a run",
    "comparison": "runs or logs to compare",
    "families": "families to compare",
    "study": "a table of a study",
}
_LOG = {"idx", "predict", "radius"}
_CERTIFIED = ("lower", "upper", "certified")


def kind_of(sources: Sequence[str], given: Iterable[str]) -> str:
    """Tell by folders, columns and options what is given.

    Parameters
    ----------
    sources
        Files and folders, or NAME=PATH for the runs of families.
    given
        Names of the options that were given.
    """
    paths = [existing(source, "table, run or log") for source in paths_of(sources)]
    if families_of(sources) is not None:
        _refuse_tables(paths)
        return "families"
    if len(paths) > 1:
        _refuse_tables(paths)
        return "comparison"
    if paths[0].is_dir():
        open_run(paths[0])  # or else it is some other folder
        return "run"
    options = set(given)
    if options & {"sigma", "n"}:
        return "comparison"
    names = plain_names(open_table(paths[0]).names)
    if names >= _LOG:
        return "comparison"
    if options & set(_CERTIFIED):
        return "intervals"
    if _is_study(names):
        return "study"
    if options & {"confidence", "probabilities", "logits"}:
        return "predictions"
    return "intervals" if names & set(LOWER) and names & set(UPPER) else "predictions"


def families_of(sources: Sequence[str]) -> tuple[tuple[str, str], ...] | None:
    """Names and paths where the sources are named, else None."""
    from certcal.cli.compare import family_names

    return family_names(sources)


def paths_of(sources: Sequence[str]) -> list[str]:
    """The files and folders of the sources, without the names of families.

    Examples
    --------
    >>> paths_of(["gaussian=runs/a", "acr=runs/b"]), paths_of(["a", "b"])
    (['runs/a', 'runs/b'], ['a', 'b'])
    """
    named = families_of(sources)
    return list(sources) if named is None else [path for _, path in named]


def _is_study(names: Iterable[str]) -> bool:
    """Whether columns are those of a study: all that every one has, or models and measurements."""
    from certcal.study import Measured
    from certcal.study._table import KEYS, STATE

    known = set(names)
    return known >= {*KEYS, *STATE} or ("model" in known and any(Measured.parse(name) for name in known))


def _refuse_tables(paths: Iterable[Path]) -> None:
    """Tables where runs and logs are compared; what cannot be read as a table may be a log all the same."""
    for path in paths:
        if path.is_file():
            try:
                names = plain_names(open_table(path).names)
            except InputError:
                continue
            if not names & _LOG:
                raise InputError(f"{path}: this is a table, and only runs and logs are compared; report on each alone")
