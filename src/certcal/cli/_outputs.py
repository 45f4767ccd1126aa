"""Files that -o asks for: refused early, written whole."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from certcal._checks import InputError
from certcal.report._files import refuse_overwriting, write_bytes
from certcal.report.results import CertifiedResults, ComparedResults, MeasuredResults

PICTURES = (".png", ".svg", ".pdf")
NUMBERS = (".json", ".csv")
INTERVALS = ".parquet"


def check_outputs(outputs: Sequence[str], *, force: bool, source: Path | None = None) -> list[Path]:
    """Refuse what could not be written later, before anything is computed.

    Examples
    --------
    >>> check_outputs(["diagram.gif"], force=False)
    Traceback (most recent call last):
        ...
    certcal._checks.InputError: -o diagram.gif: choose one of the endings .png, .svg, .pdf, .json, .csv
    """
    paths = [Path(name) for name in outputs]
    for path in paths:
        ending = path.suffix.lower()
        if ending not in PICTURES + NUMBERS:
            raise InputError(f"-o {path}: choose one of the endings {', '.join(PICTURES + NUMBERS)}")
        if ending in PICTURES and find_spec("matplotlib") is None:
            raise InputError(f"-o {path}: pictures need matplotlib; run: pip install 'certcal[report]'")
        if source is not None and path.exists() and source.exists() and path.samefile(source):
            raise InputError(f"-o {path}: this is the table being measured; choose another name")
        refuse_overwriting(path, force=force)
    if len(set(paths)) < len(paths):
        raise InputError("-o names the same file twice; give each file once")
    return paths


def write_outputs(results: MeasuredResults, paths: Sequence[Path], *, force: bool) -> None:
    """Write each file in the form its ending asks for."""
    for path in paths:
        ending = path.suffix.lower()
        if ending == ".json":
            write_bytes(path, results.to_json().encode(), force=force)
        elif ending == ".csv":
            write_bytes(path, results.to_csv().encode(errors="backslashreplace"), force=force)
        else:
            from certcal.report import figures

            if results.parts:
                panels = {f"{part.name} ({part.n:,})": part.reliability for part in (results.whole, *results.parts)}
                figure = figures.reliability_panels(dict(list(panels.items())[:24]))
            else:
                figure = figures.reliability_diagram(results.whole.reliability, title=Path(results.source).name)
            figures.save(figure, path, force=force)


def check_number_outputs(outputs: Sequence[str], *, force: bool, source: Path) -> list[Path]:
    """Refuse what could not be written later, before anything is computed.

    Examples
    --------
    >>> check_number_outputs(["certified.png"], force=False, source=Path("intervals.csv"))
    Traceback (most recent call last):
        ...
    certcal._checks.InputError: -o certified.png: choose one of the endings .json, .csv
    """
    for name in outputs:
        if Path(name).suffix.lower() not in NUMBERS:
            raise InputError(f"-o {name}: choose one of the endings {', '.join(NUMBERS)}")
    return check_outputs(outputs, force=force, source=source)


def check_run_outputs(outputs: Sequence[str], *, force: bool, run: Path) -> list[Path]:
    """The same for a run, whose intervals can be written too; nothing is written into the run itself.

    Examples
    --------
    >>> check_run_outputs(["certified.png"], force=False, run=Path("run"))
    Traceback (most recent call last):
        ...
    certcal._checks.InputError: -o certified.png: choose one of the endings .json, .csv, .parquet
    """
    paths = [Path(name) for name in outputs]
    for path in paths:
        if path.suffix.lower() not in (*NUMBERS, INTERVALS):
            raise InputError(f"-o {path}: choose one of the endings {', '.join((*NUMBERS, INTERVALS))}")
        if path.resolve().is_relative_to(run.resolve()):
            raise InputError(f"-o {path}: this is inside the run; choose another folder")
        refuse_overwriting(path, force=force)
    if len(set(paths)) < len(paths):
        raise InputError("-o names the same file twice; give each file once")
    return paths


def write_numbers(results: CertifiedResults | ComparedResults, paths: Sequence[Path], *, force: bool) -> None:
    """Write each file in the form its ending asks for."""
    for path in paths:
        text = results.to_json() if path.suffix.lower() == ".json" else results.to_csv()
        write_bytes(path, text.encode(errors="backslashreplace"), force=force)
