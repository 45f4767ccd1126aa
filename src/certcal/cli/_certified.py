"""What ``certcal certify`` has found, and the forms it leaves in: JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import certcal
from certcal._checks import InputError
from certcal.cli._results import BRACKETS, NUMBERS, check_outputs, for_json
from certcal.report._files import refuse_overwriting, write_bytes
from certcal.report.certificates import Line, Method

INTERVALS = ".parquet"


@dataclass(frozen=True)
class CertifiedResults:
    """Everything that is printed or written.

    Attributes
    ----------
    source
        Name of the file or folder.
    n
        Number of rows, or of samples of a run.
    about
        Where the intervals come from, for machines: the columns of a table, or the run.
    description
        The same in a line for people.
    lines
        Per radius: all samples, then each group or kind of certificate.
    by
        What the groups are, if there are any.
    methods
        Per radius: the exact worst case and its rivals, when a comparison was asked for.
    conventions
        Bins, closure, delta and alpha.
    claims
        The sentences of the headline claim.
    notes
        What holds for all numbers.
    curves
        Whether to draw the values over the radii.
    """

    source: str
    n: int
    about: Mapping[str, Any]
    description: str
    lines: Sequence[Line]
    by: str | None
    methods: Sequence[Method]
    conventions: Mapping[str, Any]
    claims: Sequence[str]
    notes: str
    curves: bool = field(default=False)

    def methods_at(self, line: Line) -> list[Method]:
        """The comparison that belongs to a line; none for a group."""
        return [method for method in self.methods if line.group is None and method.radius == line.radius]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; what is undefined is null, what is infinite is the text Infinity."""
        results: list[dict[str, Any]] = []
        for line in self.lines:
            radius = None if line.radius is None else float(line.radius)
            entry = {"radius": radius, "group": line.group, **line.summary.to_dict()}
            if line.claim is not None:
                entry |= {"mean_width": line.width, "claim": line.claim.to_dict()}
            compared = self.methods_at(line)
            if compared:
                entry["comparison"] = [_method(method) for method in compared]
            results.append(entry)
        return for_json(
            {
                "certcal": certcal.__version__,
                "source": self.source,
                "n": self.n,
                **self.about,
                "conventions": {**self.conventions, "bins_are": BRACKETS[str(self.conventions["closed"])]},
                "results": results,
            }
        )


def to_json(results: CertifiedResults) -> str:
    """Indented JSON."""
    return json.dumps(results.to_dict(), indent=2, allow_nan=False) + "\n"


def to_csv(results: CertifiedResults) -> str:
    """One line per radius, group and claim, with all digits; methods that were compared follow their radius."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    header = ["radius", "group", "claim", "samples", "n", "value", "text", "sentence"]
    writer.writerow([*header, *(["seconds"] if results.methods else [])])
    for line in results.lines:
        place = [line.radius or "", "" if line.group is None else line.group]
        for key, samples, claim in _claims(line):
            value = "" if math.isnan(claim.value) else repr(float(claim.value))
            row = [*place, key, samples, claim.n, value, claim.text, claim.sentence]
            writer.writerow([*row, *([""] if results.methods else [])])
        for method in results.methods_at(line):
            row = [*place, method.name, "certified", line.summary.n_certified, repr(method.value), method.text]
            writer.writerow([*row, _sentence(method), f"{method.seconds:.6g}"])
    return buffer.getvalue()


def _claims(line: Line) -> Iterator[tuple[str, str, Any]]:
    yield from line.summary.claims()
    if line.claim is not None:
        yield "claimed_calibration_error", str(line.claim.settings["samples"]), line.claim


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


def write_numbers(results: CertifiedResults, paths: Sequence[Path], *, force: bool) -> None:
    """Write each file in the form its ending asks for."""
    for path in paths:
        text = to_json(results) if path.suffix.lower() == ".json" else to_csv(results)
        write_bytes(path, text.encode(errors="backslashreplace"), force=force)


def _method(method: Method) -> dict[str, Any]:
    return {
        "method": method.name,
        "value": method.value,
        "text": method.text,
        "side": "upper" if method.is_exact else "lower",
        "seconds": method.seconds,
        "sentence": _sentence(method),
    }


def _sentence(method: Method) -> str:
    if method.is_exact:
        return f"no confidences inside the given intervals have a calibration error above {method.text}."
    return f"some confidences inside the given intervals have a calibration error of at least {method.text}."
