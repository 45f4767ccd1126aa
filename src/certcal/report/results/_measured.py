"""What was measured in a table of predictions, and its forms for machines."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import certcal
from certcal.claims import Estimate
from certcal.report.results._json import as_text, for_json

if TYPE_CHECKING:
    from certcal.metrics import Reliability


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

    def to_json(self) -> str:
        """Indented JSON."""
        return as_text(self.to_dict())

    def to_csv(self) -> str:
        """One line per group and metric, with all digits."""
        buffer = io.StringIO(newline="")
        writer = csv.writer(buffer, lineterminator="\n")
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


def _part(part: Part) -> dict[str, Any]:
    rows = [row.to_dict() for row in part.rows]
    return {"n": part.n, "measurements": rows, "reliability": part.reliability.to_dict()}
