"""What a population of models says about calibration, and its forms for machines."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import certcal
from certcal._csv import CsvWriter
from certcal._text import counted
from certcal.report.results._json import as_text, for_json

if TYPE_CHECKING:
    from certcal.study import Finding, StudyReview

# Findings of nearly as many models as the largest are as telling as that.
_NEARLY = 0.9


@dataclass(frozen=True, eq=False)
class StudiedResults:
    """Everything that is printed or written about a population of models.

    Attributes
    ----------
    source
        Name of the file that holds the table of the study.
    review
        The answers to the seven questions, and what is drawn beside them.

    Examples
    --------
    >>> from certcal.study import Answer, Finding, StudyReview
    >>> answer = Answer(1, "Does it transfer?", "Hardly.", (Finding("a and b", 0.25, 0.125, 0.5, 9),))
    >>> results = StudiedResults("study.parquet", StudyReview((answer,), (), 9, ("a", "b"), "test", 0, {"level": 0.95}))
    >>> results.description
    "9 models on 2 data sets (a, b), split 'test'"
    >>> print(results.to_csv(), end="")
    question,finding,value,low,high,models,note
    1,a and b,0.25,0.125,0.5,9,
    """

    source: str
    review: StudyReview

    @property
    def description(self) -> str:
        """What was reviewed, in a line for people."""
        review = self.review
        named = f" ({', '.join(review.datasets)})" if review.datasets else ""
        split = f", split {review.split!r}" if review.split else ""
        failed = f"; {counted(review.failed, 'row')} failed and left out" if review.failed else ""
        models, datasets = counted(review.models, "model"), counted(len(review.datasets), "data set")
        return f"{models} on {datasets}{named}{split}{failed}"

    def paragraphs(self, text: str) -> list[str]:
        """The sentences of an answer, in a paragraph for each data set that they begin with.

        Parameters
        ----------
        text
            Of :class:`certcal.study.Answer`.
        """
        start = rf"On (?:{'|'.join(map(re.escape, self.review.datasets))})(?=[ ,:])" if self.review.datasets else "$."
        found: list[str] = []
        for part in re.split(rf"(?<=[.)])\s+(?={start})|\n+", text):
            about = re.match(start, part)
            if found and about is not None and found[-1].startswith(about[0]):
                found[-1] += f" {part}"
            elif part.strip():
                found.append(part)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; what is undefined is null."""
        document = {"certcal": certcal.__version__, "type": "study_review", "source": self.source}
        return for_json({**document, **self.review.to_dict()})

    def to_json(self) -> str:
        """Indented JSON."""
        return as_text(self.to_dict())

    def to_csv(self) -> str:
        """One line per finding, with all digits; a number that does not exist is left empty."""
        buffer = io.StringIO(newline="")
        writer = CsvWriter(buffer)
        writer.writerow(["question", "finding", "value", "low", "high", "models", "note"])
        for answer in self.review:
            for found in answer.findings:
                numbers = [
                    "" if math.isnan(each) else repr(float(each)) for each in (found.value, found.low, found.high)
                ]
                writer.writerow([answer.number, found.name, *numbers, found.n, found.note])
        return buffer.getvalue()


def leading(findings: Sequence[Finding], most: int) -> list[Finding]:
    """Some findings, in their order: those of all models before those of parts of them.

    Examples
    --------
    >>> from certcal.study import Finding
    >>> found = [Finding("top 10", 0.1, 0.0, 0.2, 10), Finding("all", 0.3, 0.2, 0.4, 99)]
    >>> [each.name for each in leading(found, 1)], len(leading(found, 2))
    (['all'], 2)
    """
    largest = max((each.n for each in findings), default=0)
    order = sorted(range(len(findings)), key=lambda place: (findings[place].n < _NEARLY * largest, place))
    return [findings[place] for place in sorted(order[:most])]
