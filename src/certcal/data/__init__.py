"""Readers of predictions, intervals and model inputs (tables, npz, folders of images), and the embedded default.

Importing this loads NumPy only; pyarrow and scikit-learn load when a file is opened or the embedded data is asked
for.
"""

from certcal.data.bundled import (
    Embedded,
    EmbeddedNetwork,
    digits_images,
    embedded,
    embedded_network,
    example,
)
from certcal.data.features import Features, is_table, read_features
from certcal.data.formats import Chunks, OpenTable, TableColumn, existing, local_file, open_table, physical_memory
from certcal.data.image_files import fashion_mnist, read_idx
from certcal.data.inputs import Inputs, Parts, Split
from certcal.data.interval_table import IntervalPart, IntervalTable
from certcal.data.intervals import IntervalLayout, read_intervals, resolve_interval_columns
from certcal.data.layout import Family, Layout, Overrides, find_families, resolve_columns
from certcal.data.opening import DataSettings, OpenedInputs, open_inputs, read_inputs, read_split
from certcal.data.pieces import DoesNotFit, fingerprint_of, natural_order
from certcal.data.predictions import (
    LoadedScores,
    LoadedTable,
    PredictionStream,
    load_scores,
    load_table,
    other_columns,
    read_predictions,
    sample_keys,
    split_by,
)
from certcal.data.roles import (
    IDENTIFIER,
    LOG,
    LOWER,
    OPTIONS,
    ROLES,
    SAMPLE_OPTIONS,
    UPPER,
    Role,
    by_role,
    log_columns,
    plain_name,
    table_kind,
)
from certcal.data.rows import Rows, RowSource, blocks, hash_rows
from certcal.data.sources import (
    ArrowStream,
    Estimator,
    FrameLike,
    PredictionSource,
    PredictionVerb,
    Table,
    Values,
    about_predictions,
)
from certcal.data.writing import (
    METADATA,
    NOISE_NAMES,
    IntervalOrigin,
    columns_as_bytes,
    columns_as_table,
    intervals_as_parquet,
)

__all__ = [
    "IDENTIFIER",
    "LOG",
    "LOWER",
    "METADATA",
    "NOISE_NAMES",
    "OPTIONS",
    "ROLES",
    "SAMPLE_OPTIONS",
    "UPPER",
    "ArrowStream",
    "Chunks",
    "DataSettings",
    "DoesNotFit",
    "Embedded",
    "EmbeddedNetwork",
    "Estimator",
    "Family",
    "Features",
    "FrameLike",
    "Inputs",
    "IntervalLayout",
    "IntervalOrigin",
    "IntervalPart",
    "IntervalTable",
    "Layout",
    "LoadedScores",
    "LoadedTable",
    "OpenTable",
    "OpenedInputs",
    "Overrides",
    "Parts",
    "PredictionSource",
    "PredictionStream",
    "PredictionVerb",
    "Role",
    "RowSource",
    "Rows",
    "Split",
    "Table",
    "TableColumn",
    "Values",
    "about_predictions",
    "blocks",
    "by_role",
    "columns_as_bytes",
    "columns_as_table",
    "digits_images",
    "embedded",
    "embedded_network",
    "example",
    "existing",
    "fashion_mnist",
    "find_families",
    "fingerprint_of",
    "hash_rows",
    "intervals_as_parquet",
    "is_table",
    "load_scores",
    "load_table",
    "local_file",
    "log_columns",
    "natural_order",
    "open_inputs",
    "open_table",
    "other_columns",
    "physical_memory",
    "plain_name",
    "read_features",
    "read_idx",
    "read_inputs",
    "read_intervals",
    "read_predictions",
    "read_split",
    "resolve_columns",
    "resolve_interval_columns",
    "sample_keys",
    "split_by",
    "table_kind",
]
