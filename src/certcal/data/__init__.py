"""Readers of prediction tables (Parquet, CSV, npz, Arrow) and the embedded default.

Importing this loads NumPy only; pyarrow and scikit-learn load when a file is opened or the embedded data is asked
for.
"""

from certcal.data._embedded import Embedded, embedded
from certcal.data._families import Family
from certcal.data._interval_layout import IntervalLayout, resolve_interval_columns
from certcal.data._intervals import IntervalPart, IntervalTable, read_intervals
from certcal.data._layout import Layout, Overrides, resolve_columns
from certcal.data._open import open_table
from certcal.data._read import LoadedTable, PredictionStream, load_table, read_predictions
from certcal.data._table import Chunks, Column, Table

__all__ = [
    "Chunks",
    "Column",
    "Embedded",
    "Family",
    "IntervalLayout",
    "IntervalPart",
    "IntervalTable",
    "Layout",
    "LoadedTable",
    "Overrides",
    "PredictionStream",
    "Table",
    "embedded",
    "load_table",
    "open_table",
    "read_intervals",
    "read_predictions",
    "resolve_columns",
    "resolve_interval_columns",
]
