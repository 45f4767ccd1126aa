"""What a measuring command has found, and the forms it leaves in: JSON, CSV, pictures."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import certcal
from certcal._checks import InputError
from certcal.claims import Estimate
from certcal.report._files import refuse_overwriting, write_bytes

if TYPE_CHECKING:
    from certcal.metrics import Reliability

PICTURES = (".png", ".svg", ".pdf")
NUMBERS = (".json", ".csv")
BRACKETS = {"left": "[a, b), the last one closed", "right": "(a, b], the first one closed"}


@dataclass(frozen=True)
class Part:
    """The measurements of all samples or of one group."""

    name: str
    n: int
    rows: Sequence[Estimate]
    reliability: Reliability


@dataclass(frozen=True)
class Results:
    """Everything that is printed or written.

    Attributes
    ----------
    source
        File name or what was measured.
    about
        Further facts for machines: columns, kind, classes.
    description
        The same in a line for people.
    whole
        All samples.
    by
        Column of groups, or None.
    parts
        The groups.
    conventions
        How the numbers were computed.
    """

    source: str
    about: Mapping[str, Any]
    description: str
    whole: Part
    by: str | None = None
    parts: Sequence[Part] = ()
    conventions: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; what is undefined is null, what is infinite is the text Infinity."""
        document: dict[str, Any] = {
            "certcal": certcal.__version__,
            "source": self.source,
            **self.about,
            "conventions": dict(self.conventions),
            **_part(self.whole),
        }
        if self.by is not None:
            document["by"] = self.by
            document["groups"] = [{"group": part.name} | _part(part) for part in self.parts]
        return for_json(document)


def to_json(results: Results) -> str:
    """Indented JSON."""
    return json.dumps(results.to_dict(), indent=2, allow_nan=False) + "\n"


def to_csv(results: Results) -> str:
    """One line per group and metric, with all digits."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    grouped = [results.by] if results.by is not None else []
    header = ("metric", "bins", "closed", "value", "lower", "upper", "level", "method", "n", "sentence")
    writer.writerow([*grouped, *header])
    for part in (results.whole, *results.parts):
        for row in part.rows:
            spread = row.interval.to_dict() if row.interval else {}
            writer.writerow(
                [
                    *([part.name] if grouped else []),
                    row.name,
                    row.settings.get("bins", ""),
                    row.settings.get("closed", ""),
                    "" if math.isnan(row.value) else repr(float(row.value)),
                    *(spread.get(key, "") for key in ("lower", "upper", "level", "method")),
                    row.n,
                    row.sentence,
                ]
            )
    return buffer.getvalue()


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


def write_outputs(results: Results, paths: Sequence[Path], *, force: bool) -> None:
    """Write each file in the form its ending asks for."""
    for path in paths:
        ending = path.suffix.lower()
        if ending == ".json":
            write_bytes(path, to_json(results).encode(), force=force)
        elif ending == ".csv":
            write_bytes(path, to_csv(results).encode(errors="backslashreplace"), force=force)
        else:
            from certcal.report import figures

            if results.parts:
                panels = {f"{part.name} ({part.n:,})": part.reliability for part in (results.whole, *results.parts)}
                figure = figures.reliability_panels(dict(list(panels.items())[:24]))
            else:
                figure = figures.reliability_diagram(results.whole.reliability, title=Path(results.source).name)
            figures.save(figure, path, force=force)


def _part(part: Part) -> dict[str, Any]:
    rows = [row.to_dict() for row in part.rows]
    return {"n": part.n, "measurements": rows, "reliability": part.reliability.to_dict()}


def for_json(value: Any) -> Any:
    """Plain values that every JSON parser takes: null for what is undefined, the word for what is infinite."""
    if isinstance(value, dict):
        return {str(key): for_json(entry) for key, entry in value.items()}  # pyright: ignore
    if isinstance(value, list | tuple):
        return [for_json(entry) for entry in value]  # pyright: ignore
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
