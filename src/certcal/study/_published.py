"""Published tables of calibration measurements (Tao et al. 2024) as the table of a study."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from certcal._checks import InputError
from certcal.study._battery import BINNED, UNBINNED
from certcal.study._scales import Scale, to_shares
from certcal.study._table import AUROC, KEYS, ORIGIN, SIZES, STATE, StudyTable, is_own

# Names of metrics in published tables, in lower case, and ours.
_METRICS = {
    "ece": "ece",
    "ece_em": "equal_mass_ece",
    "adaece": "equal_mass_ece",
    "cwce": "classwise_ece",
    "cwece": "classwise_ece",
    "cwce_em": "classwise_equal_mass_ece",
    "cwece_em": "classwise_equal_mass_ece",
    "mce": "mce",
    "ksce": "ks_error",
    "ks": "ks_error",
    "kdece": "kde_ece",
    "kde_ece": "kde_ece",
    "mmce": "mmce",
    "nll": "nll",
    "bs": "brier_score",
    "brier": "brier_score",
    **{name: name for name in (*BINNED, *UNBINNED)},
}
_MEASURED = re.compile(r"(pre|post)_(.+?)(?:_([1-9]\d{0,5}))?")
_AREA = re.compile(r"(?:pre_)?au(?:ro)?c_(.+)")
_ACCURACY = ("accuracy", "acc", "test_acc", "top1")
_MODEL = ("model", "arch", "arch_str", "architecture", "arch_string")
_INDEX = ("index", "arch_index", "idx", "unnamed: 0", "")
_DATA = ("data", "dataset")


def read_calibration_table(
    path: str | os.PathLike[str],
    *,
    data: str | None = None,
    split: str | None = None,
    scale: Scale | None = None,
    accuracy_scale: Scale | None = None,
    architectures: Sequence[str] | None = None,
) -> StudyTable:
    r"""Read a table with columns such as ``arch``, ``acc``, ``pre_ECE_15``, ``post_cwCE_em_100`` and ``pre_KSCE``.

    Known names become ours, areas under curves become ``auroc_NAME``, and all other columns are kept as given ones.

    Accuracies and calibration errors become shares. Whether they are shares or per cent in the file is told by their
    size only where that is certain: a value above 1 is per cent, and accuracies that are all up to 1 are shares, as
    are the errors beside them. Where the two do not agree, or where there are only errors up to 1, it has to be said.
    A Brier score is taken as per cent only above 2, an area under a curve only above 1, and the logarithmic score
    is left as it is.

    Parameters
    ----------
    path
        CSV, Parquet or Arrow.
    data
        Name of the data set; by default what a column ``data`` or ``dataset`` says, or else the name of the file.
    split
        Name of the split; by default what a column ``split`` says, or else "test".
    scale, accuracy_scale
        "share" or "percent" for all of the table; for the accuracies alone, if these differ.
    architectures
        Names by index (:func:`certcal.study.read_architectures`), for tables that name models by an index only.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "cifar10_tss.csv"
    >>> _ = path.write_text("arch,acc,pre_ECE_15,post_KSCE,auc_svhn\na,93.9,4.2,0.8,91.0\nb,90.1,3.9,1.1,88.5\n")
    >>> table = read_calibration_table(path)
    >>> table.datasets, table["accuracy"].round(3).tolist(), [str(name) for name in table.measurements]
    (['cifar10_tss'], [0.939, 0.901], ['pre_ece_15', 'post_ks_error'])
    >>> folder.cleanup()
    """
    for name, value in (("scale", scale), ("accuracy_scale", accuracy_scale)):
        if value not in (None, "share", "percent"):
            raise InputError(f"{name} is {value!r}; use 'share' or 'percent'")
    file = Path(path)
    try:
        columns = _named(_columns(file), architectures)
        if data is not None:
            columns["data"] = [data] * len(columns["model"])
        columns.setdefault("data", [_stem(file)] * len(columns["model"]))
        if split is not None:
            columns["split"] = [split] * len(columns["model"])
        if not any(is_own(name) and name not in (*KEYS, *SIZES) for name in columns):
            listed = ", ".join(map(repr, list(columns)[:20]))
            raise InputError(f"there is no accuracy and no measurement such as pre_ECE_15; the columns are {listed}")
        scales = to_shares(columns, scale, accuracy_scale)
        return StudyTable.of(columns, {"origin": "published table", "scale": scales})
    except InputError as error:
        raise error if str(error).startswith(str(file)) else InputError(f"{file}: {error}") from None


def _columns(file: Path) -> dict[str, list[Any]]:
    """The columns of a file: those that must be numbers as such, the others as numbers where all entries are."""
    from certcal.data import open_table

    table = open_table(file)
    strict = [name for name in table.names if _ours(name) not in (None, "model", "data", "split")]
    batches = list(table.chunks(table.names, numbers=strict))
    if not any(batch.num_rows for batch in batches):
        raise InputError(f"{file}: the table has no rows; check how it was written")
    kinds = {column.name: column.kind for column in table.columns}
    columns: dict[str, list[Any]] = {}
    for name in table.names:
        values: list[Any] = [value for batch in batches for value in batch[name].to_pylist()]
        columns[name] = _numbers(values) if kinds[name] == "unknown" and name not in strict else values
        if name in strict and any(isinstance(value, str) for value in values):
            raise InputError(f"{file}: column {name!r} holds text; it must be numbers")
    return columns


def _numbers(values: list[str | None]) -> list[Any]:
    try:
        return [None if value is None or not value.strip() else float(value) for value in values]
    except ValueError:
        return list(values)


def _ours(name: str) -> str | None:
    """Our name for a column of a published table, or None for one that is kept as it is."""
    plain = name.strip().lower()
    for names, ours in ((_ACCURACY, "accuracy"), (_MODEL, "model"), (_DATA, "data"), (("split",), "split")):
        if plain in names:
            return ours
    if match := _AREA.fullmatch(plain):
        return AUROC + match[1]
    if plain in (*SIZES, "temperature"):
        return plain
    match = _MEASURED.fullmatch(plain)
    metric = _METRICS.get(match[2]) if match else None
    if match is None or metric is None or (metric in BINNED) != (match[3] is not None):
        return None
    return f"{match[1]}_{metric}" + (f"_{match[3]}" if match[3] else "")


def _named(columns: Mapping[str, list[Any]], architectures: Sequence[str] | None) -> dict[str, list[Any]]:
    """The columns under our names, with one that names the models."""
    found: dict[str, list[Any]] = {}
    index: str | None = None
    origin: dict[str, str] = {}
    for name, values in columns.items():
        ours = _ours(name)
        if ours is None and name.strip().lower() in _INDEX:
            index = index if index is not None else name
        new = ours or name.strip() or "index"
        if ours is None and new in (*STATE, *ORIGIN):
            new = f"published_{new}"
        if new in found:
            raise InputError(f"columns {origin[new]!r} and {name!r} are both {new!r}; drop one of them")
        found[new], origin[new] = values, name
    if "model" not in found:
        if index is None:
            raise InputError(f"there is no column with the models ({', '.join(_MODEL)}); it has {', '.join(columns)}")
        found["model"] = _by_index(columns[index], architectures)
    found["model"] = [_text(value) for value in found["model"]]
    if "" in found["model"]:
        raise InputError(f"row {found['model'].index('') + 1} names no model; fill it in or drop the row")
    return found


def _by_index(values: list[Any], architectures: Sequence[str] | None) -> list[str]:
    names: list[str] = []
    for row, value in enumerate(values, start=1):
        if not isinstance(value, int | float) or value != int(value) or value < 0:
            raise InputError(f"row {row} has the index {value!r}, which is no whole number; name the models otherwise")
        if architectures is not None and value >= len(architectures):
            raise InputError(f"row {row} has the index {value:g}, and there are {len(architectures)} architectures")
        names.append(str(int(value)) if architectures is None else architectures[int(value)])
    return names


def _text(value: Any) -> str:
    if value is None or value != value:
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


def _stem(file: Path) -> str:
    return file.name.split(".")[0] or file.name
