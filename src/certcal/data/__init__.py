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
from certcal.data.columns import (
    METADATA,
    NOISE_NAMES,
    IntervalOrigin,
    columns_as_bytes,
    columns_as_table,
    intervals_as_parquet,
    other_columns,
    sample_keys,
)
from certcal.data.features import Features, is_table, read_features
from certcal.data.formats import OpenTable, TableColumn, existing, local_file, open_table, physical_memory
from certcal.data.image_files import fashion_mnist, read_idx
from certcal.data.inputs import Inputs, Parts, Split
from certcal.data.intervals import IntervalTable, read_intervals
from certcal.data.layout import log_columns, resolve_columns, resolve_interval_columns, table_kind
from certcal.data.opening import DataSettings, OpenedInputs, open_inputs, read_inputs, read_split
from certcal.data.pieces import DoesNotFit, fingerprint_of, natural_order
from certcal.data.predictions import (
    LoadedScores,
    LoadedTable,
    PredictionStream,
    load_scores,
    load_table,
    read_predictions,
    split_by,
)
from certcal.data.rows import Rows, blocks, hash_rows
from certcal.data.schema import (
    IDENTIFIER,
    LOG,
    LOWER,
    OPTIONS,
    ROLES,
    SAMPLE_OPTIONS,
    UPPER,
    Layout,
    by_role,
    find_families,
    plain_name,
)
from certcal.data.sources import (
    ArrowStream,
    DataLike,
    Estimator,
    FrameLike,
    ModelLike,
    PredictionSource,
    PredictionVerb,
    Table,
    Values,
    about_predictions,
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
    "DataLike",
    "DataSettings",
    "DoesNotFit",
    "Embedded",
    "EmbeddedNetwork",
    "Estimator",
    "Features",
    "FrameLike",
    "Inputs",
    "IntervalOrigin",
    "IntervalTable",
    "Layout",
    "LoadedScores",
    "LoadedTable",
    "ModelLike",
    "OpenTable",
    "OpenedInputs",
    "Parts",
    "PredictionSource",
    "PredictionStream",
    "PredictionVerb",
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
