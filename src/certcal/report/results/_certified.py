"""What was certified of a run or of a table of intervals, and its forms for machines."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import certcal
from certcal._csv import CsvWriter
from certcal.claims import Certificate
from certcal.report.results._json import BRACKETS, as_text, for_json
from certcal.worst_case import CertifiedSummary

if TYPE_CHECKING:
    from certcal.smoothing import Review


@dataclass(frozen=True)
class Line:
    """What is certified at one radius for one group; None where the table has no such column, or for all groups.

    Attributes
    ----------
    claim
        The calibration error that is claimed when intervals may fail: what those that do can add is included.
    width
        Mean width of the certified intervals.
    """

    radius: str | None
    group: str | None
    summary: CertifiedSummary
    claim: Certificate | None = None
    width: float | None = None


@dataclass(frozen=True)
class Method:
    """What one way of finding the worst calibration error found, and how long it took.

    Attributes
    ----------
    text
        The value, rounded up when no confidences exceed it and down when some reach it.
    is_exact
        Whether no confidences inside the intervals exceed the value.
    """

    radius: str | None
    name: str
    value: float
    text: str
    seconds: float
    is_exact: bool


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
    review
        All that is behind the lines of a run, for its page; no part of the JSON.
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
    review: Review | None = field(default=None, repr=False, compare=False)

    def methods_at(self, line: Line) -> list[Method]:
        """The comparison that belongs to a line; none for a group."""
        return [method for method in self.methods if line.group is None and method.radius == line.radius]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; what is undefined is null, what is infinite is the text Infinity."""
        results: list[dict[str, Any]] = []
        for line in self.lines:
            radius = None if line.radius is None else float(line.radius)
            entry: dict[str, Any] = {"radius": radius, "group": line.group, **line.summary.to_dict()}
            entry["information"]["verdict"] = line.summary.information.verdict_at(line.radius)
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

    def to_json(self) -> str:
        """Indented JSON."""
        return as_text(self.to_dict())

    def to_csv(self) -> str:
        """One line per radius, group and claim, with all digits; methods that were compared follow their radius."""
        buffer = io.StringIO(newline="")
        writer = CsvWriter(buffer)
        header = ["radius", "group", "claim", "samples", "n", "value", "text", "sentence"]
        writer.writerow([*header, *(["seconds"] if self.methods else [])])
        for line in self.lines:
            place = [line.radius or "", "" if line.group is None else line.group]
            for key, samples, claim in _claims(line):
                value = "" if math.isnan(claim.value) else repr(float(claim.value))
                row = [*place, key, samples, claim.n, value, claim.text, claim.sentence]
                writer.writerow([*row, *([""] if self.methods else [])])
            for method in self.methods_at(line):
                row = [*place, method.name, "certified", line.summary.n_certified, repr(method.value), method.text]
                writer.writerow([*row, _sentence(method), f"{method.seconds:.6g}"])
        return buffer.getvalue()


def _claims(line: Line) -> Iterator[tuple[str, str, Any]]:
    yield from line.summary.claims()
    if line.claim is not None:
        yield "claimed_calibration_error", str(line.claim.settings["samples"]), line.claim


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
