"""What searches of a table found, and its forms for machines."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import certcal
from certcal._csv import CsvWriter
from certcal.report.results._json import as_text, for_json

if TYPE_CHECKING:
    from certcal.study.search import SearchComparison


@dataclass(frozen=True, eq=False)
class SearchedResults:
    """Everything that is printed or written about searches.

    Attributes
    ----------
    source
        Name of the file that holds the table.
    comparison
        What was found for each objective by each method.

    Examples
    --------
    >>> from certcal.study import StudyTable
    >>> from certcal.study.search import Benchmark, compare
    >>> table = StudyTable.of({"model": ["a", "b"], "accuracy": [0.5, 0.75]})
    >>> found = SearchedResults("study.parquet", compare(Benchmark(table), ["accuracy"], budget=2, repeats=2))
    >>> print(found.to_csv(), end="")
    objective,method,accuracy,accuracy_spread,regret,regret_spread,judged_regret,hits,most_often_found
    accuracy,random,0.75,0.0,0.0,0.0,,2,b
    accuracy,best,0.75,,0.0,,,1,b
    """

    source: str
    comparison: SearchComparison

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; what is undefined is null."""
        document = {"certcal": certcal.__version__, "type": "study_search", "source": self.source}
        return for_json({**document, **self.comparison.to_dict()})

    def to_json(self) -> str:
        """Indented JSON."""
        return as_text(self.to_dict())

    def to_csv(self) -> str:
        """One line per objective and method, with all digits; the best that exists at the end."""
        shown = self.comparison.shown
        buffer = io.StringIO(newline="")
        writer = CsvWriter(buffer)
        numbers = [each for name in shown for each in (name, f"{name}_spread")]
        ends = ("regret", "regret_spread", "judged_regret", "hits", "most_often_found")
        writer.writerow(["objective", "method", *numbers, *ends])
        for row in (*self.comparison.rows, *self.comparison.oracle):
            values = [each for name in shown for each in (row.mean[name], row.spread[name])]
            texts = [_text(value) for value in (*values, row.regret, row.regret_spread, row.judged_regret)]
            writer.writerow([row.objective, row.method, *texts, row.hits, next(iter(row.architectures))])
        return buffer.getvalue()


def _text(value: float) -> str:
    return "" if value != value else repr(value)
