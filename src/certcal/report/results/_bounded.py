"""Bounds on the calibration error of a table of predictions, and their forms for machines."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import certcal
from certcal._csv import CsvWriter
from certcal.claims import Bound, round_outward
from certcal.report.results._json import as_text, for_json


@dataclass(frozen=True)
class BoundedResults:
    """Everything that is printed or written.

    Attributes
    ----------
    source
        Name of the file.
    n
        Number of samples.
    about
        Further facts for machines: columns, kind, classes.
    description
        The same in a line for people.
    bounds
        By method, the function of :mod:`certcal.bounds`; the mean over classes has "classwise_" before it.
    conventions
        Delta and what else was asked for.
    notes
        What holds for all bounds.
    """

    source: str
    n: int
    about: Mapping[str, Any]
    description: str
    bounds: Mapping[str, Bound]
    conventions: Mapping[str, Any]
    notes: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return for_json(
            {
                "certcal": certcal.__version__,
                "source": self.source,
                "n": self.n,
                **self.about,
                "conventions": dict(self.conventions),
                "bounds": [{"method": name, **bound.to_dict()} for name, bound in self.bounds.items()],
            }
        )

    def to_json(self) -> str:
        """Indented JSON."""
        return as_text(self.to_dict())

    def to_csv(self) -> str:
        """One line per bound with all digits, followed by its terms."""
        buffer = io.StringIO(newline="")
        writer = CsvWriter(buffer)
        writer.writerow(["method", "term", "side", "value", "text", "delta", "n", "sentence"])
        for name, bound in self.bounds.items():
            rest = [repr(bound.delta), bound.n]
            writer.writerow([name, "", bound.side, repr(bound.value), bound.text, *rest, bound.sentence])
            for term, value in bound.terms.items():
                text = round_outward(value, bound.side)
                writer.writerow([name, term, bound.side, repr(float(value)), text, *rest, ""])
        return buffer.getvalue()
