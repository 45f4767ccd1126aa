"""What was found in comparing families of runs, and its forms for machines."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import certcal
from certcal._csv import CsvWriter
from certcal.report.results._json import as_text, for_json
from certcal.smoothing.robustness import CertifiedCalibration, Compared, Families

_WHERE = ("draws", "alpha", "radius", "p", "other")
COLUMNS: tuple[str, ...] = ("family", "sigma", "quantity", "samples", *_WHERE, "value", "upper", "text")
# Where the curve P(p_A >= p) is written and shown.
AT_P = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)

Row = dict[str, Any]


@dataclass(frozen=True)
class FamilyResults:
    """Everything that is printed or written: the families, and the file or folder behind each run.

    Attributes
    ----------
    sources
        Family and path of each run, in the order of the families and of their runs.
    families
        What was found.
    """

    sources: tuple[tuple[str, str], ...]
    families: Families

    @property
    def runs(self) -> tuple[tuple[str, str, Compared], ...]:
        """Family, path and run."""
        found = [(family.name, run) for family in self.families.families for run in family.runs]
        return tuple((name, source, run) for (_, source), (name, run) in zip(self.sources, found, strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        sources = [
            {"family": name, "sigma": run.sigma, "run": run.name, "source": source} for name, source, run in self.runs
        ]
        return for_json({"certcal": certcal.__version__, "sources": sources, **self.families.to_dict()})

    def to_json(self) -> str:
        """Indented JSON."""
        return as_text(self.to_dict())

    def to_csv(self) -> str:
        """One line per number, with all digits: what it is, of whom, and where."""
        buffer = io.StringIO(newline="")
        writer = CsvWriter(buffer)
        writer.writerow(COLUMNS)
        for row in self._rows():
            values = [row.get(name, "") for name in COLUMNS]
            writer.writerow([repr(value) if isinstance(value, float) else value for value in values])
        return buffer.getvalue()

    def _rows(self) -> Iterator[Row]:
        found = self.families
        for name, _, run in self.runs:
            yield from _of_run(name, run)
        for family in found.families:
            for radius, value, text in zip(found.at, family.best.values, family.best.texts, strict=True):
                best = {"quantity": "best_certified_accuracy", "samples": "all"}
                yield {"family": family.name, **best, "radius": radius, "value": value, "text": text}
        for table in found.settings:
            for name, values in table.rows:
                for i, radius in enumerate(values.at.tolist()):
                    yield {
                        "family": name,
                        "sigma": table.sigma,
                        "quantity": "converted_certified_accuracy",
                        "samples": "all",
                        **table.setting.to_dict(),
                        "radius": radius,
                        "p": float(values.p[i]),
                        "value": float(values.lower[i]),
                        "upper": float(values.upper[i]),
                    }
        for one in found.calibration:
            yield from _of_calibration(one)
        for graph in found.graphs:
            where = {} if graph.sigma is None else {"sigma": graph.sigma}
            for quantity, edges in (
                ("better_than", graph.edges),
                ("strictly_better_than", graph.strict_edges),
                ("better_than_beyond_chance", graph.firm_edges),
            ):
                for better, worse in edges:
                    yield {"family": better, **where, "quantity": quantity, "other": worse}


def _of_run(name: str, run: Compared) -> Iterator[Row]:
    about = {"family": name, "sigma": run.sigma, "samples": "all", "draws": run.draws[0], "alpha": run.alpha}
    for radius, value, text in zip(run.curve.at, run.curve.values, run.curve.texts, strict=True):
        yield {**about, "quantity": "certified_accuracy", "radius": radius, "value": value, "text": text}
    printed = {"text": "as printed"} if run.average.as_printed else {}
    yield {**about, "quantity": "average_certified_radius", "value": run.average.value, **printed}
    lower, upper = run.distribution.survival(AT_P)
    for p, low, high in zip(AT_P, lower.tolist(), upper.tolist(), strict=True):
        yield {**about, "quantity": "share_with_p_a_at_least", "p": p, "value": low, "upper": high}


def _of_calibration(one: CertifiedCalibration) -> Iterator[Row]:
    about = {"family": one.family, "sigma": one.sigma, "alpha": one.alpha}
    for radius, summary in zip(one.radii, one.summaries, strict=True):
        here = {**about, "radius": radius}
        yield {**here, "quantity": "certified_samples", "samples": "all", "value": summary.n_certified}
        for metric in ("calibration_error", "brier_score"):
            ranges = summary[metric]
            for samples, worst in (("certified", ranges.worst), ("all", ranges.worst_all)):
                if worst is not None:
                    worded = {"quantity": f"certified_{metric}", "samples": samples, "text": worst.text}
                    yield {**here, **worded, "value": worst.value}
        skill = summary.skill
        if skill.value == skill.value:  # not undefined
            worded = {"quantity": "certified_skill", "samples": "certified", "text": skill.text}
            yield {**here, **worded, "value": skill.value}
