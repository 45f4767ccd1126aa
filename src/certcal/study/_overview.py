"""A table of a study at a glance: each data set in one line."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from certcal.study._table import OK, Measurement, StudyTable

_USUAL = 15


@dataclass(frozen=True)
class Overview:
    """The models of a data set and split, by the middle one of each measurement.

    Attributes
    ----------
    data, split
        On what they were measured.
    models, failed
        How many there are, and how many of them failed.
    bins
        Of the ECE: the number nearest to 15 that was measured; None when it was not.
    accuracy, before, after
        Medians of accuracy and of ECE before and after temperature scaling; NaN where there are none.
    """

    data: str
    split: str
    models: int
    failed: int
    bins: int | None
    accuracy: float
    before: float
    after: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def overview(table: StudyTable) -> list[Overview]:
    """One line per data set and split, in the order of the table.

    Examples
    --------
    >>> columns = {"model": ["a", "b"], "accuracy": [0.8, 0.9], "pre_ece_15": [0.1, 0.2]}
    >>> [(line.data, line.models, round(line.accuracy, 2)) for line in overview(StudyTable.of(columns))]
    [('data', 2, 0.85)]
    """
    counts = {found.bins for found in table.measurements if found.metric == "ece" and found.bins is not None}
    bins = min(counts, key=lambda count: (abs(count - _USUAL), count), default=None)
    good = table["status"] == OK
    pairs = dict.fromkeys(zip(table["data"].tolist(), table["split"].tolist(), strict=True))
    found: list[Overview] = []
    for data, split in pairs:
        rows = (table["data"] == data) & (table["split"] == split)

        def median(name: str, chosen: Any = rows & good) -> float:
            values = table[name][chosen] if name in table else np.empty(0)
            values = values[~np.isnan(values)]
            return float(np.median(values)) if values.size else float("nan")

        numbers = [median(name) for name in ("accuracy", *(str(Measurement(s, "ece", bins)) for s in ("pre", "post")))]
        models, failed = int(rows.sum()), int((rows & ~good).sum())
        found.append(Overview(data, split, models, failed, bins, *numbers))
    return found
