"""Readers of predictions, intervals and model inputs (tables, npz, folders of images), and the embedded default.

Importing this loads NumPy only; pyarrow and scikit-learn load when a file is opened or the embedded data is asked
for.
"""

from certcal._base.parts import PartsMissingError
from certcal.data.bundled import Embedded, EmbeddedNetwork, digits_images, embedded, embedded_network, example
from certcal.data.columns import IntervalOrigin, intervals_as_parquet
from certcal.data.features import Features, read_features
from certcal.data.formats import OpenTable, TableColumn, open_table
from certcal.data.image_files import fashion_mnist, read_idx
from certcal.data.inputs import Inputs, Parts, Rows, Split
from certcal.data.intervals import IntervalTable, read_intervals
from certcal.data.layout import resolve_columns, resolve_interval_columns
from certcal.data.opening import DataSettings, OpenedInputs, open_inputs, read_inputs, read_split
from certcal.data.predictions import LoadedTable, PredictionStream, load_table, read_predictions
from certcal.data.schema import Layout

__all__ = [
    "DataSettings",
    "Embedded",
    "EmbeddedNetwork",
    "Features",
    "Inputs",
    "IntervalOrigin",
    "IntervalTable",
    "Layout",
    "LoadedTable",
    "OpenTable",
    "OpenedInputs",
    "Parts",
    "PartsMissingError",
    "PredictionStream",
    "Rows",
    "Split",
    "TableColumn",
    "digits_images",
    "embedded",
    "embedded_network",
    "example",
    "fashion_mnist",
    "intervals_as_parquet",
    "load_table",
    "open_inputs",
    "open_table",
    "read_features",
    "read_idx",
    "read_inputs",
    "read_intervals",
    "read_predictions",
    "read_split",
    "resolve_columns",
    "resolve_interval_columns",
]
