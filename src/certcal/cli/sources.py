"""What a command is given to read: there at all, and of the kind that its options are for."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from certcal._base.checks import InputError
from certcal.data.formats import existing as existing
from certcal.data.opening import NAMED


def refuse_run(source: str) -> None:
    """A folder where a table is asked for.

    Examples
    --------
    >>> refuse_run(".")
    Traceback (most recent call last):
        ...
    certcal.InputError: .: this is a folder; give one file, or a run to certcal certify or certcal report
    """
    if Path(source).is_dir():
        raise InputError(f"{source}: this is a folder; give one file, or a run to certcal certify or certcal report")


def existing_files(*names: str | None) -> list[str]:
    """Those of the names that are files or folders.

    Examples
    --------
    >>> existing_files(".", "package.module:name")
    ['.']
    """
    return [name for name in names if name is not None and name not in NAMED and Path(name).exists()]


def existing_single_files(*names: str | None) -> list[str]:
    """Those of the names that are files."""
    return [name for name in existing_files(*names) if Path(name).is_file()]


def refuse_inside(option: str, output: str | Path, sources: Iterable[str | Path]) -> None:
    """Refuse to write into a folder that is read: a run is no class of images.

    Examples
    --------
    >>> refuse_inside("-o", "/usr/run", ["/usr"])
    Traceback (most recent call last):
        ...
    certcal.InputError: -o /usr/run: this is inside /usr, which is read; choose another folder
    """
    for source in map(Path, sources):
        if source.is_dir() and Path(output).resolve().is_relative_to(source.resolve()):
            raise InputError(f"{option} {output}: this is inside {source}, which is read; choose another folder")


def needing_torch(what: str) -> None:
    """Say how to get torch where it is missing, before anything is read."""
    if find_spec("torch") is None:
        raise InputError(f"{what} need torch; run: pip install 'certcal[torch]'")
