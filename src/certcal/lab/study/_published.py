"""Published results (Tao et al. 2024) as the table of a study."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from numbers import Number
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from certcal._base.arguments import names_wrong_types
from certcal._base.checks import InputError
from certcal._base.files import path_of, read_bytes
from certcal._base.signature import Option, Takes, verb
from certcal.lab.study._battery import BINNED, UNBINNED
from certcal.lab.study._designs import INDEX, architecture_columns
from certcal.lab.study._entries import numbers_or_texts
from certcal.lab.study._overview import StudyOverview, overview
from certcal.lab.study._table import AUROC, KEYS, ORIGIN, SIZES, STATE, MeasuredColumn, StudyTable, is_own, stack

Scale = Literal["share", "percent"]
Floats = NDArray[np.float64]

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
_UNNAMED = ("unnamed: 0", "")
_DATA = ("data", "dataset")
# Scores that are no shares of anything: the logarithmic one is never scaled, the other only if it is beyond its range.
_FREE = ("nll", "brier_score")
_LARGEST_BRIER = 2.0
# Estimates that need not lie in [0, 1].
_UNBOUNDED = ("kde_ece", "mmce")
_ROUNDING = 1e-6
_MOST_BYTES, _MOST_NAMES = 16 << 20, 1_000_000


@verb()
def convert(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    data: Annotated[str | Iterable[str], Takes("text"), Option("--dataset", "NAME")] = (),
    split: Annotated[str | None, Takes("text"), Option(metavar="NAME")] = None,
    scale: Annotated[Literal["share", "percent"] | None, Option("--unit", "UNIT")] = None,
    accuracy_scale: Annotated[Literal["share", "percent"] | None, Option("--accuracy-unit", "UNIT")] = None,
    architectures: Annotated[str | os.PathLike[str] | None, Takes("file"), Option(metavar="FILE")] = None,
) -> StudyOverview:
    r"""Make one table of a study of published tables.

    Known names of columns become ours, areas under curves become ``auroc_NAME``, and all other columns are kept as
    given ones. Architectures of NATS-Bench get columns that their names tell: ``edge_1`` to ``edge_6`` and
    ``cell_parameters`` of a cell; ``kernels``, ``width`` (where all layers are equally wide) and ``width_1`` to
    ``width_5`` of a size.

    Accuracies and calibration errors become shares. Whether they are shares or per cent in the file is told by their
    size only where that is certain: a value above 1 is per cent, and accuracies that are all up to 1 are shares, as are
    the errors beside them. Where the two do not agree, or where there are only errors up to 1, it has to be said. A
    Brier score is taken as per cent only above 2, an area under a curve only above 1, and the logarithmic score is left
    as it is.

    Parameters
    ----------
    sources
        Published tables (CSV, Parquet, Arrow).
    data
        Data set: one for all tables, or one for each in order. Default: a column, or the file's name.
    split
        Split. Default: a column, or test.
    scale
        Scale of accuracies and errors, share or percent. Default: told by their values where that is certain.
    accuracy_scale
        Scale of the accuracies, where it differs.
    architectures
        JSON list of architectures in the order of their index, for tables that name them by index.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "tss.csv"
    >>> _ = path.write_text("arch,acc,pre_ECE_15\na,93.9,4.2\nb,90.1,3.9\n")
    >>> convert(path, data="cifar10").table["pre_ece_15"].round(3).tolist()
    [0.042, 0.039]
    >>> folder.cleanup()
    """
    paths = [Path(each) for each in ([sources] if isinstance(sources, str | os.PathLike) else sources)]
    if not paths:
        raise InputError("there is nothing to convert; name at least one table")
    given = tuple(data)
    if len(given) not in (0, 1, len(paths)):
        reason = f"it is given {len(given)} times for {len(paths)} tables; give it once for all, or once for each"
        raise InputError(reason, argument="data")
    names = list(given) * (len(paths) if len(given) == 1 else 1) or [None] * len(paths)
    known = None if architectures is None else read_architectures(architectures)
    shared: Any = {"split": split, "scale": scale, "accuracy_scale": accuracy_scale, "architectures": known}
    tables = [read_calibration_table(path, data=name, **shared) for path, name in zip(paths, names, strict=True)]
    return overview(stack(tables))


@names_wrong_types
def read_architectures(path: str | os.PathLike[str]) -> list[str]:
    r"""Read the names of architectures by their index: a JSON list of texts, the first of which has the index 0.

    For NATS-Bench that is what its API has as ``meta_archs``: ``json.dump(api.meta_archs, file)``.

    Parameters
    ----------
    path
        The file, of at most 16 MiB and a million names; each is named once, in at most 1000 printable characters.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "sizes.json"
    ...     _ = path.write_text('["8:8:8:8:8", "8:8:8:8:16"]')
    ...     read_architectures(path)
    ['8:8:8:8:8', '8:8:8:8:16']
    """
    file = path_of(path)
    content = read_bytes(file, _MOST_BYTES, "a list of architectures")
    try:
        names: Any = json.loads(content)
    except (ValueError, RecursionError):
        names = None
    if not isinstance(names, list) or not names:
        raise InputError(
            f'{file}: this is no JSON list of architectures; write one such as ["8:8:8:8:8", "8:8:8:8:16"]'
        )
    if len(names) > _MOST_NAMES:  # pyright: ignore[reportUnknownArgumentType]
        raise InputError(f"{file}: it has more than {_MOST_NAMES:,} entries; check what it is")
    first: dict[str, int] = {}
    for index, name in enumerate(names):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        if not isinstance(name, str) or not 0 < len(name.strip()) <= len(name) <= 1000 or not name.isprintable():
            raise InputError(f"{file}: entry {index} is not the name of an architecture; write printable texts only")
        if first.setdefault(name, index) != index:
            raise InputError(f"{file}: entries {first[name]} and {index} are the same; name each architecture once")
    return [*first]


def read_calibration_table(
    path: str | os.PathLike[str],
    *,
    data: str | None = None,
    split: str | None = None,
    scale: Scale | None = None,
    accuracy_scale: Scale | None = None,
    architectures: Sequence[str] | None = None,
) -> StudyTable:
    """Read a table with columns such as ``arch``, ``acc``, ``pre_ECE_15``, ``post_cwCE_em_100`` and ``pre_KSCE``.

    Architectures are named by index where the table names models by an index only; ``data`` and ``split`` are by
    default what columns of these names say, or else the file's name and "test".
    """
    file = path_of(path)
    try:
        columns = _rename_columns(_columns(file), architectures)
        if data is not None:
            columns["data"] = [data] * len(columns["model"])
        columns.setdefault("data", [file.name.split(".")[0] or file.name] * len(columns["model"]))
        if split is not None:
            columns["split"] = [split] * len(columns["model"])
        if not any(is_own(name) and name not in (*KEYS, *SIZES) for name in columns):
            listed = ", ".join(map(repr, list(columns)[:20]))
            raise InputError(f"there is no accuracy and no measurement such as pre_ECE_15; the columns are {listed}")
        scales = _to_shares(columns, scale, accuracy_scale)
        columns |= {
            name: values for name, values in architecture_columns(columns["model"]).items() if name not in columns
        }
        return StudyTable.of(columns, {"origin": "published table", "scale": scales})
    except InputError as error:
        raise error if str(error).startswith(str(file)) else InputError(f"{file}: {error}") from None


def _columns(file: Path) -> dict[str, list[Any]]:
    """The columns of a file: those that must be numbers as such, the others as numbers where all entries are."""
    from certcal.data import open_table

    table = open_table(file)
    strict = [name for name in table.names if _certcal_column(name) not in (None, "model", "data", "split")]
    batches = list(table.chunks(table.names, numbers=strict))
    if not any(batch.num_rows for batch in batches):
        raise InputError(f"{file}: the table has no rows; check how it was written")
    kinds = {column.name: column.kind for column in table.columns}
    columns: dict[str, list[Any]] = {}
    for name in table.names:
        values: list[Any] = [value for batch in batches for value in batch[name].to_pylist()]
        columns[name] = numbers_or_texts(values) if kinds[name] == "unknown" and name not in strict else values
        odd = next((value for value in values if not (value is None or isinstance(value, Number))), None)
        if name in strict and odd is not None:
            held = "text" if isinstance(odd, str) else f"a {type(odd).__name__}"
            raise InputError(f"{file}: column {name!r} holds {held}; it must be numbers")
    return columns


def _certcal_column(name: str) -> str | None:
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


def _rename_columns(columns: Mapping[str, list[Any]], architectures: Sequence[str] | None) -> dict[str, list[Any]]:
    """The columns under our names, with one that names the models."""
    found: dict[str, list[Any]] = {}
    index: str | None = None
    origin: dict[str, str] = {}
    for name, values in columns.items():
        ours = _certcal_column(name)
        if ours is None and name.strip().lower() in (*INDEX, *_UNNAMED):
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
        found["model"] = _names_by_index(columns[index], architectures)
    found["model"] = [_model_text(value) for value in found["model"]]
    if "" in found["model"]:
        raise InputError(f"row {found['model'].index('') + 1} names no model; fill it in or drop the row")
    return found


def _names_by_index(values: list[Any], architectures: Sequence[str] | None) -> list[str]:
    names: list[str] = []
    for row, value in enumerate(values, start=1):
        if not isinstance(value, int | float) or not 0 <= value < float("inf") or value != int(value):
            raise InputError(f"row {row} has the index {value!r}, which is no whole number; name the models otherwise")
        if architectures is not None and value >= len(architectures):
            raise InputError(f"row {row} has the index {value:g}, and there are {len(architectures)} architectures")
        names.append(str(int(value)) if architectures is None else architectures[int(value)])
    return names


def _model_text(value: Any) -> str:
    if value is None or value != value:
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


def _to_shares(columns: dict[str, Any], scale: Scale | None, accuracy_scale: Scale | None) -> dict[str, str]:
    """Turn accuracies, calibration errors and areas under curves into shares, in place; what the first two were."""
    metrics = {name: found.metric for name in columns if (found := MeasuredColumn.parse(name)) is not None}
    areas = [name for name in columns if name.startswith(AUROC)]
    accuracy = ["accuracy"] if "accuracy" in columns else []
    errors = [name for name, metric in metrics.items() if metric not in _FREE]
    for name in (*accuracy, *metrics, *areas):
        values = np.array([np.nan if value is None else value for value in columns[name]], np.float64)
        _refuse_values(name, values, np.isinf(values), "which is not finite; repair or drop the row")
        columns[name] = values
    bounded = [name for name in errors if metrics[name] not in _UNBOUNDED]
    most, worst = _largest(columns, accuracy), _largest(columns, bounded or errors)
    of_accuracies = _scale_of_accuracies(most[0], scale, accuracy_scale)
    of_errors = _scale_of_errors(worst, scale, most[0], of_accuracies, accuracy_scale is not None)
    for names, of in ((accuracy, of_accuracies), (errors, of_errors)):
        for name in names:
            values = columns[name] / 100 if of == "percent" else columns[name]
            if metrics.get(name) not in _UNBOUNDED:
                why = f"outside 0 to 1 when read as {of}; give the right scale, 'share' or 'percent'"
                _refuse_values(name, values, (values < 0) | (values > 1 + _ROUNDING), why)
                values = np.minimum(values, 1.0)
            columns[name] = values
    briers = [name for name, metric in metrics.items() if metric == "brier_score"]
    for names, limit in ((areas, 1.0), (briers, _LARGEST_BRIER)):
        for name in names:
            if np.any(columns[name] > limit):
                _refuse_values(
                    name, columns[name], columns[name] > 100 * limit, "too large even for per cent; check the column"
                )
                columns[name] = columns[name] / 100
    return {"accuracy": of_accuracies, "errors": of_errors}


def _scale_of_accuracies(most: float, scale: Scale | None, accuracy_scale: Scale | None) -> Scale:
    """All accuracies up to 1 per cent are not believed unless it is said of the accuracies themselves."""
    if accuracy_scale is not None:
        return accuracy_scale
    if scale == "percent" and most <= 1:
        raise InputError(
            f"accuracies are up to {most:g}, which are hardly per cent; give accuracy_scale='share' "
            "if only the errors are, or scale='share'"
        )
    return scale or ("percent" if most > 1 + _ROUNDING else "share")


def _scale_of_errors(
    worst: tuple[float, str], scale: Scale | None, most: float, of_accuracies: Scale, said: bool
) -> Scale:
    """Errors above 1 are per cent; smaller ones are what the accuracies are, if these are shares."""
    largest, name = worst
    if scale is not None or np.isnan(largest):
        return scale or of_accuracies
    if largest > 1 + _ROUNDING:
        if not np.isnan(most) and of_accuracies == "share" and not said:
            raise InputError(
                f"accuracies are up to {most:g} and errors up to {largest:g} ({name}), so the ones seem to be shares "
                "and the others per cent; give scale= of the errors and accuracy_scale="
            )
        return "percent"
    if not np.isnan(most) and of_accuracies == "share":
        return "share"
    beside = "" if np.isnan(most) else f", beside accuracies in per cent (up to {most:g})"
    raise InputError(
        f"no calibration error is above 1 (the largest is {largest:g}, {name}){beside}, so they may be shares or per "
        "cent; give scale='share' or 'percent'"
        + (" of the errors, and accuracy_scale='percent' if they differ" if beside else "")
    )


def _largest(columns: Mapping[str, Any], names: Sequence[str]) -> tuple[float, str]:
    """The largest value of some columns, and in which it is; NaN if there is none."""
    found = [(float(np.nanmax(columns[name])), name) for name in names if np.isfinite(columns[name]).any()]
    return max(found, default=(float("nan"), ""))


def _refuse_values(name: str, values: Floats, bad: NDArray[np.bool_], why: str) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"{name}, row {row + 1}, is {values[row]:g}, {why}")
