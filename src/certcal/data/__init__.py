"""Readers of predictions, intervals and model inputs (tables, npz, folders of images), and the embedded default.

Importing this loads NumPy only; pyarrow and scikit-learn load when a file is opened or the embedded data is asked
for.
"""

from certcal.data._aligned import fingerprint_of
from certcal.data._columns import columns_as_bytes, columns_as_table
from certcal.data._embedded import digits_images, embedded, embedded_network
from certcal.data._fashion import fashion_mnist
from certcal.data._idx import read_idx
from certcal.data._input_files import read_inputs
from certcal.data._inputs import Inputs
from certcal.data._interval_files import METADATA, NOISE_NAMES, IntervalOrigin, intervals_as_parquet
from certcal.data._interval_layout import SAMPLE_OPTIONS, IntervalLayout, resolve_interval_columns
from certcal.data._intervals import IntervalPart, IntervalTable, read_intervals
from certcal.data._layout import OPTIONS, Layout, Overrides, by_role, resolve_columns
from certcal.data._pieces import DoesNotFit, natural_order
from certcal.data._read import LoadedTable, PredictionStream, load_table, read_predictions
from certcal.data._roles import LOWER, UPPER
from certcal.data._scores import LoadedScores, load_scores
from certcal.data._sources import OpenedInputs, first_of, open_inputs, read_split
from certcal.data._split import Parts, Split
from certcal.data._table import Chunks, Column, Table, physical_memory
from certcal.data._trained import Embedded, EmbeddedNetwork, naive_bayes, noisy_network
from certcal.data.families import Family
from certcal.data.formats import existing, open_table

__all__ = [
    "LOWER",
    "METADATA",
    "NOISE_NAMES",
    "OPTIONS",
    "SAMPLE_OPTIONS",
    "UPPER",
    "Chunks",
    "Column",
    "DoesNotFit",
    "Embedded",
    "EmbeddedNetwork",
    "Family",
    "Inputs",
    "IntervalLayout",
    "IntervalOrigin",
    "IntervalPart",
    "IntervalTable",
    "Layout",
    "LoadedScores",
    "LoadedTable",
    "OpenedInputs",
    "Overrides",
    "Parts",
    "PredictionStream",
    "Split",
    "Table",
    "by_role",
    "columns_as_bytes",
    "columns_as_table",
    "digits_images",
    "embedded",
    "embedded_network",
    "existing",
    "fashion_mnist",
    "fingerprint_of",
    "first_of",
    "intervals_as_parquet",
    "load_scores",
    "load_table",
    "naive_bayes",
    "natural_order",
    "noisy_network",
    "open_inputs",
    "open_table",
    "physical_memory",
    "read_idx",
    "read_inputs",
    "read_intervals",
    "read_predictions",
    "read_split",
    "resolve_columns",
    "resolve_interval_columns",
]
