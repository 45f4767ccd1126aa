"""Files that -o asks for: refused early, written whole, in the form that their ending says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

from certcal._checks import InputError
from certcal._files import refuse_overwriting, write_bytes
from certcal.claims import Bound
from certcal.cli._progress import tell
from certcal.report.results import (
    BoundedResults,
    CertifiedResults,
    MeasuredResults,
    RecalibratedPredictions,
    RecalibratedResults,
    SearchedResults,
    StudiedResults,
)

Results: TypeAlias = (
    MeasuredResults
    | CertifiedResults
    | BoundedResults
    | RecalibratedResults
    | RecalibratedPredictions
    | SearchedResults
    | StudiedResults
)

PAGE, INTERVALS = ".html", ".parquet"
PICTURES = (".png", ".svg", ".pdf")
NUMBERS = (PAGE, ".json", ".csv")
DRAWN = (PAGE, *PICTURES, ".json", ".csv")
_MOST_PANELS, _MOST_TERMS = 24, 8


def check_outputs(
    outputs: Iterable[str], endings: Sequence[str], *, force: bool, sources: Iterable[str | Path] = ()
) -> list[Path]:
    """Refuse what could not be written later, before anything is computed.

    Parameters
    ----------
    outputs
        Names of files.
    endings
        What the command writes.
    force
        Whether existing files may be replaced.
    sources
        Files and folders that are read: nothing replaces them, or is written into them.

    Examples
    --------
    >>> check_outputs(["diagram.gif"], NUMBERS, force=False)
    Traceback (most recent call last):
        ...
    certcal._checks.InputError: -o diagram.gif: choose one of the endings .html, .json, .csv
    """
    paths = [Path(name) for name in outputs]
    for path in paths:
        ending = path.suffix.lower()
        if ending not in endings:
            raise InputError(f"-o {path}: choose one of the endings {', '.join(endings)}")
        if ending in PICTURES and find_spec("matplotlib") is None:
            raise InputError(f"-o {path}: pictures need matplotlib; run: pip install 'certcal[report]'")
        for source in map(Path, sources):
            if source.is_dir() and path.resolve().is_relative_to(source.resolve()):
                what = "the run" if (source / "manifest.json").exists() else f"{source}, which is read"
                raise InputError(f"-o {path}: this is inside {what}; choose another folder")
            if path.exists() and source.exists() and path.samefile(source):
                raise InputError(f"-o {path}: this is the file being read; choose another name")
        refuse_overwriting(path, force=force)
    if len({path.resolve() for path in paths}) < len(paths):
        raise InputError("-o names the same file twice; give each file once")
    return paths


def write_outputs(
    results: Results,
    paths: Sequence[Path],
    *,
    force: bool,
    sources: Iterable[str | Path] = (),
    others: Mapping[str, Callable[[], bytes]] | None = None,
    **page_options: Any,
) -> None:
    """Write each file in the form its ending asks for.

    Parameters
    ----------
    results
        What was found.
    paths
        As :func:`check_outputs` returned them.
    force
        Whether existing files may be replaced.
    sources
        What was read, for what a page says of its origin.
    others
        The content of files with further endings.
    page_options
        Of :func:`certcal.report.page.page`.
    """
    for path in paths:
        ending = path.suffix.lower()
        if ending in (others or {}):
            write_bytes(path, (others or {})[ending](), force=force)
        elif ending in PICTURES:
            _draw(results, path, force=force)
        elif ending == PAGE:
            write_bytes(path, _page(results, sources, **page_options), force=force)
        else:
            text = results.to_json() if ending == ".json" else results.to_csv()
            write_bytes(path, text.encode(errors="backslashreplace"), force=force)


def announce(paths: Iterable[Path]) -> None:
    """Say which files there are now."""
    for path in paths:
        tell(f"wrote {path}")


def _page(results: Any, sources: Iterable[str | Path], **page_options: Any) -> bytes:
    from certcal.cli._provenance import provenance
    from certcal.report.page import page

    if isinstance(results, CertifiedResults) and results.review is not None:
        page_options["review"] = results.review
    made = page(results, provenance(results, sources), **page_options)
    return made.html.encode(errors="backslashreplace")


def _drawable(results: BoundedResults) -> dict[str, Bound]:
    """The upper bounds, from the first on, as many as have terms that can be told apart."""
    from certcal.report.bounds import bound_name

    shown: dict[str, Bound] = {}
    terms: set[str] = set()
    for method, bound in results.bounds.items():
        if bound.side == "upper" and len(terms | bound.terms.keys()) <= _MOST_TERMS:
            shown[bound_name(method)] = bound
            terms |= bound.terms.keys()
    return shown


def _draw(results: Results, path: Path, *, force: bool) -> None:
    from certcal.report import figures

    if isinstance(results, BoundedResults):
        figure = figures.bound_terms(_drawable(results))
    elif isinstance(results, MeasuredResults) and results.parts:
        panels = {f"{part.name} ({part.n:,})": part.reliability for part in (results.whole, *results.parts)}
        figure = figures.reliability_panels(dict(list(panels.items())[:_MOST_PANELS]))
    elif isinstance(results, MeasuredResults):
        figure = figures.reliability_diagram(results.whole.reliability, title=Path(results.source).name)
    else:
        raise InputError(f"-o {path}: there is no picture of this; choose .html, .json or .csv")
    figures.save(figure, path, force=force)
