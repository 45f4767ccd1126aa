"""What was measured in a table of predictions, and its forms for machines."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import certcal
from certcal._csv import CsvWriter
from certcal.claims import Bound, Estimate
from certcal.report.results._json import BRACKETS, as_text, for_json

if TYPE_CHECKING:
    from certcal.metrics import Measurements, Reliability


@dataclass(frozen=True)
class Part:
    """The measurements of all samples or of one group."""

    name: str
    n: int
    rows: Sequence[Estimate]
    reliability: Reliability


@dataclass(frozen=True)
class MeasuredResults:
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
    bounds
        Bounds on the true calibration error, each with a probability of its own to fail.
    """

    source: str
    about: Mapping[str, Any]
    description: str
    whole: Part
    by: str | None = None
    parts: Sequence[Part] = ()
    conventions: Mapping[str, Any] = field(default_factory=dict[str, Any])
    bounds: Sequence[Bound] = ()

    @classmethod
    def of(
        cls,
        measurements: Measurements,
        reliability: Reliability,
        *,
        source: str = "predictions",
        bounds: Sequence[Bound] = (),
        by: str | None = None,
        groups: Mapping[str, tuple[Measurements, Reliability]] | None = None,
    ) -> MeasuredResults:
        """What was measured from Python, for a page in two lines.

        Parameters
        ----------
        measurements, reliability
            Of :func:`certcal.measure` and :func:`certcal.metrics.reliability` of the same predictions.
        source
            What was measured, in a few words.
        bounds
            Of :mod:`certcal.bounds`, to be shown with their terms and assumptions.
        by, groups
            What the groups are, and the measurements of each.

        Examples
        --------
        >>> import certcal
        >>> from certcal.report.page import page
        >>> predictions = certcal.Predictions.from_confidence([0.9, 0.8, 0.6, 0.3], [1, 1, 0, 0])
        >>> prepared = certcal.metrics.reliability(predictions.confidence, predictions.correct, bins=5)

        The page itself takes two lines; ``page(results).save("report.html")`` writes it:

        >>> results = MeasuredResults.of(certcal.measure(predictions, bins=5), prepared, source="four samples")
        >>> page(results)
        Page('How calibrated are the confidences?')
        """
        rows = measurements.rows
        closed = reliability.table.closed
        counts = dict.fromkeys(row.settings["bins"] for row in rows if "bins" in row.settings)
        conventions: dict[str, Any] = {"bins": list(counts), "closed": closed, "bins_are": BRACKETS[closed]}
        spreads = [row.interval for row in rows if row.interval is not None]
        if spreads:
            conventions |= {"method": spreads[0].method, "level": spreads[0].level}
        parts = [Part(name, found.n, found.rows, prepared) for name, (found, prepared) in (groups or {}).items()]
        return cls(
            source=source,
            about={"kind": measurements.kind},
            description=f"{measurements.n:,} samples",
            whole=Part("all", measurements.n, rows, reliability),
            by=(by or "group") if groups else None,
            parts=parts,
            conventions=conventions,
            bounds=tuple(bounds),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; what is undefined is null, what is infinite is the text Infinity."""
        document: dict[str, Any] = {
            "certcal": certcal.__version__,
            "source": self.source,
            **self.about,
            "conventions": dict(self.conventions),
            **part_to_dict(self.whole),
        }
        if self.bounds:
            document["bounds"] = [bound.to_dict() for bound in self.bounds]
        if self.by is not None:
            document["by"] = self.by
            document["groups"] = [{"group": part.name} | part_to_dict(part) for part in self.parts]
        return for_json(document)

    def to_json(self) -> str:
        """Indented JSON."""
        return as_text(self.to_dict())

    def to_csv(self) -> str:
        """One line per group and metric, with all digits."""
        buffer = io.StringIO(newline="")
        writer = CsvWriter(buffer)
        grouped = [self.by] if self.by is not None else []
        header = ("metric", "bins", "closed", "value", "lower", "upper", "level", "method", "n", "sentence")
        writer.writerow([*grouped, *header])
        for part in (self.whole, *self.parts):
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


def part_to_dict(part: Part) -> dict[str, Any]:
    """Plain values for JSON: the number of samples, the measurements and the diagram."""
    rows = [row.to_dict() for row in part.rows]
    return {"n": part.n, "measurements": rows, "reliability": part.reliability.to_dict()}
