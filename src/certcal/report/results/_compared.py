"""What was found in comparing runs and logs, and its forms for machines."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import certcal
from certcal._csv import CsvWriter
from certcal.report.results._json import as_text, for_json
from certcal.smoothing.robustness import Comparison


@dataclass(frozen=True)
class ComparedResults:
    """Everything that is printed or written: the comparison, and the file or folder behind each letter."""

    sources: tuple[str, ...]
    comparison: Comparison

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        document = self.comparison.to_dict()
        runs = [{"source": source} | run for source, run in zip(self.sources, document.pop("runs"), strict=True)]
        return for_json({"certcal": certcal.__version__, "runs": runs, **document})

    def to_json(self) -> str:
        """Indented JSON."""
        return as_text(self.to_dict())

    def to_csv(self) -> str:
        """One line per run and radius, with all digits."""
        buffer = io.StringIO(newline="")
        writer = CsvWriter(buffer)
        numbers = ("radius", "certified", "n", "value", "text", "certified_as_printed")
        writer.writerow(["run", "source", "sigma", "alpha", *numbers])
        for source, run in zip(self.sources, self.comparison.runs, strict=True):
            curve = run.curve
            for i, radius in enumerate(curve.at):
                here = [curve.certified[i], curve.n, repr(curve.values[i]), curve.texts[i], run.printed.certified[i]]
                writer.writerow([run.name, source, repr(run.sigma), repr(run.alpha), repr(radius), *here])
        return buffer.getvalue()
