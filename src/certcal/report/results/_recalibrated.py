"""What recalibrating certified samples or predictions does, and its forms for machines."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import certcal
from certcal._csv import CsvWriter
from certcal.report.results._json import BRACKETS, as_text, for_json

if TYPE_CHECKING:
    from certcal.calibrators import Judged, Recalibration
    from certcal.calibrators._predictions import PredictionRecalibration

Found = TypeVar("Found", bound="Recalibration | PredictionRecalibration")


@dataclass(frozen=True)
class _Recalibrated(Generic[Found]):
    """What both kinds of results have in common; their attributes are described there."""

    source: str
    description: str
    found: Found
    claims: Sequence[str]
    notes: str
    about: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; what is undefined is null."""
        document = self.found.to_dict()
        settings = document.pop("settings")
        return for_json(
            {
                "certcal": certcal.__version__,
                **document,
                "map": self.found.calibrator.to_dict(),
                "source": self.source,
                **self.about,
                "conventions": {**settings, "bins_are": BRACKETS[str(settings["closed"])]},
                "claims": list(self.claims),
            }
        )

    def to_json(self) -> str:
        """Indented JSON."""
        return as_text(self.to_dict())


@dataclass(frozen=True)
class RecalibratedResults(_Recalibrated["Recalibration"]):
    """Everything that is printed or written about maps of certified confidences.

    Attributes
    ----------
    source
        Name of the file or folder.
    description
        What it holds and how it was split, in a line for people.
    found
        The maps and what they do to samples that they were not fitted to.
    claims
        The sentences of the headline claim, the verdict last.
    notes
        What holds for all numbers.
    about
        Where the intervals come from, for machines: the columns of a table, or the run.
    """

    def to_csv(self) -> str:
        """One line per map, radius and claim, with all digits; estimates without a perturbation have no radius."""
        buffer = io.StringIO(newline="")
        writer = CsvWriter(buffer)
        writer.writerow(["map", "tradeoff", "chosen", "radius", "claim", "samples", "n", "value", "text", "sentence"])
        for line in self.found.lines:
            tradeoff = "" if line.tradeoff is None else repr(line.tradeoff)
            start = [line.name, tradeoff, int(line is self.found.chosen)]
            for radius, key, samples, claim in _claims(line):
                value = "" if math.isnan(claim.value) else repr(float(claim.value))
                text = getattr(claim, "text", value)
                writer.writerow([*start, radius, key, samples, claim.n, value, text, claim.sentence])
        return buffer.getvalue()


@dataclass(frozen=True)
class RecalibratedPredictions(_Recalibrated["PredictionRecalibration"]):
    """Everything that is printed or written about a calibrator of predictions.

    Attributes
    ----------
    source, description, claims, notes, about
        As for :class:`RecalibratedResults`; the claims are estimates.
    found
        The map and what it does to samples that it was not fitted to.
    """

    def to_csv(self) -> str:
        """One line per metric before and after the map, with all digits."""
        buffer = io.StringIO(newline="")
        writer = CsvWriter(buffer)
        writer.writerow(["map", "metric", "bins", "value", "n"])
        for name, table in (("as it is", self.found.before), (self.found.method, self.found.after)):
            for row in table.rows:
                value = "" if math.isnan(row.value) else repr(float(row.value))
                writer.writerow([name, row.name, row.settings.get("bins", ""), value, row.n])
        return buffer.getvalue()


def _claims(line: Judged) -> Iterator[tuple[str, str, str, Any]]:
    """Radius, key, samples and claim."""
    for key, estimate in line.clean.items():
        yield "", key, "all", estimate
    for one in line.at:
        for key, samples, claim in one.summary.claims():
            yield one.radius, key, samples, claim
        if one.claim is not None:
            yield one.radius, "claimed_calibration_error", str(one.claim.settings["samples"]), one.claim
        if one.gain is not None:
            yield one.radius, "gain_over_constant", "certified", one.gain
