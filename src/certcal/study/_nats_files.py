"""Results of NATS-Bench (Dong et al. 2021) from the files of its API, as the table of a study."""

from __future__ import annotations

import bz2
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from certcal._checks import InputError
from certcal._durable import open_regular
from certcal._progress import SILENT, Progress
from certcal.study._plain_pickle import plain_value
from certcal.study._table import FAILED, OK, StudyTable

ENDING = ".pickle.pbz2"
# One architecture takes about a megabyte; what unpacks to more than this is no such file.
MOST_BYTES = 1 << 24
_MEGA = 1_000_000
# Where sizes differ between seeds, NATS-Bench's own API takes those of this one.
_TRUSTED_SEED = 888
_KEYS = ("model", "data", "split")
_COLUMNS = (*_KEYS, "accuracy", "loss", "train_accuracy", "train_loss", "params", "flops", "epochs")
_SINGLE = re.compile(r"\d+" + re.escape(ENDING))


def read_nats_bench(
    source: Any, *, data: str | None = None, seeds: str = "mean", progress: Progress = SILENT
) -> StudyTable:
    """Accuracies, losses and sizes of NATS-Bench's architectures.

    There is one row for each architecture (``model``, as NATS-Bench writes it), data set it was trained on (``data``)
    and ``split``: the set of images and the setting of training, such as "ori-test@200" or "x-valid@12". Calibration
    is not in these files; it has to be measured, or joined from another table (:func:`certcal.study.join`).

    The files are pickles. They are read by a reader of plain values that runs nothing; files with weights (whose
    folders end in "-full") are refused. A file of a folder that cannot be read is a failed row with its reason.

    Parameters
    ----------
    source
        A file such as "000123.pickle.pbz2", a folder of them such as "NATS-tss-v1_0-3ffb9-simple", several of these,
        or a NATS-Bench API object that is loaded.
    data
        Only results on this data set, such as "cifar10".
    seeds
        "mean" for the mean over the seeds of training (``seeds`` is their number, ``accuracy_spread`` the standard
        deviation), "each" for a row per seed, whose split ends in "#777".
    progress
        Where to report how far the work is.

    Examples
    --------
    >>> read_nats_bench("nowhere")
    Traceback (most recent call last):
        ...
    certcal._checks.InputError: nowhere: there is no such file or folder; name a file that ends in .pickle.pbz2, or a
    folder of them
    """
    if seeds not in ("mean", "each"):
        raise InputError(f"seeds is {seeds!r}; use 'mean' or 'each'")
    columns: dict[str, list[Any]] = {name: [] for name in (*_COLUMNS, "seeds" if seeds == "mean" else "seed")}
    if seeds == "mean":
        columns["accuracy_spread"] = []
    broken: dict[Path, str] = {}
    known: set[str] = set()

    def add(value: Mapping[Any, Any]) -> None:
        trials = list(_trials(value))
        known.update(trial["data"] for trial in trials)
        kept = [trial for trial in trials if data in (None, trial["data"])]
        for row in _averaged(kept) if seeds == "mean" else kept:
            split = row["split"] if seeds == "mean" else f"{row['split']}#{row['seed']}"
            for name, values in columns.items():
                values.append(split if name == "split" else row[name])

    if hasattr(source, "arch2infos_dict"):
        for results in source.arch2infos_dict.values():
            add({hp: result.state_dict() for hp, result in results.items()})
    else:
        files = _files(source)
        progress.stage("reading", len(files))
        for file in files:
            try:
                add(_value(file))
            except InputError as error:
                if len(files) == 1:
                    raise InputError(f"{file}: {error}") from None
                broken[file] = f"{file}: {error}"
            progress.advance(1)
    if not columns["model"]:
        if known:
            raise InputError(f"data is {data!r}; the files have results on {', '.join(sorted(known))}")
        reason = f"{next(iter(broken.values()))}, and no other file can be read" if broken else "nothing is loaded"
        raise InputError(f"there are no results of NATS-Bench: {reason}")
    columns |= {"status": [OK] * len(columns["model"]), "reason": [""] * len(columns["model"])}
    for file, reason in broken.items():
        row = {"model": f"{file.parent.name}/{file.name}", "data": columns["data"][0], "split": columns["split"][0]}
        row |= {"status": FAILED, "reason": reason}
        for name, values in columns.items():
            values.append(row.get(name))
    return StudyTable.of(columns, {"origin": "NATS-Bench", "seeds": seeds})


def read_architectures(path: str | os.PathLike[str]) -> list[str]:
    """The architectures of NATS-Bench by their index, from "meta.pickle.pbz2".

    Examples
    --------
    >>> read_architectures("meta.pickle.pbz2")
    Traceback (most recent call last):
        ...
    certcal._checks.InputError: meta.pickle.pbz2: cannot be read (No such file or directory); check the path
    """
    try:
        value = _value(Path(path))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    names: Any = value.get("meta_archs")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):  # pyright: ignore[reportUnknownVariableType]
        raise InputError(f"{path}: there is no list of architectures ('meta_archs') in it; name meta{ENDING}")
    return names  # pyright: ignore[reportUnknownVariableType]


def _files(source: Any) -> list[Path]:
    """Files of single architectures, in the order of their numbers."""
    given: list[Any] = [source] if isinstance(source, str | os.PathLike) else list(source)
    found: list[Path] = []
    for path in map(Path, given):
        if path.is_dir():
            inside = sorted((each for each in path.iterdir() if _SINGLE.fullmatch(each.name)), key=lambda p: p.name)
            if not inside:
                raise InputError(
                    f"{path}: there is no file such as 000123{ENDING} in it; name the folder that has them"
                )
            found += inside
        elif path.is_file():
            found.append(path)
        else:
            raise InputError(
                f"{path}: there is no such file or folder; name a file that ends in {ENDING}, or a folder of them"
            )
    return found


def _value(path: Path) -> dict[Any, Any]:
    """The dictionary that a file holds."""
    try:
        with open_regular(path) as packed, bz2.open(packed) as stream:
            content = stream.read(MOST_BYTES + 1)
    except (OSError, EOFError, ValueError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise InputError(f"cannot be read ({error.strerror}); check the path") from None
        raise InputError("it is not compressed by bzip2, or cut short; download it again") from None
    if len(content) > MOST_BYTES:
        raise InputError(
            f"it unpacks to more than {MOST_BYTES >> 20} MiB, which one architecture does not; use the files of "
            "a folder that ends in -simple"
        )
    try:
        value = plain_value(content)
    except InputError as error:
        raise InputError(f"{error}; use the files of a folder that ends in -simple") from None
    if not isinstance(value, dict):
        raise InputError("it does not hold a dictionary; is it a file of NATS-Bench?")
    return value  # pyright: ignore[reportUnknownVariableType]


def _trials(value: Mapping[Any, Any]) -> Iterator[dict[str, Any]]:
    """What all trainings of one architecture reached on each set of images after their last epochs."""
    for hp, result in value.items():
        model, trials = _entry(result, "arch_str", str), _entry(result, "all_results", dict)
        for key, trial in trials.items():
            if not (isinstance(key, tuple) and len(key) == 2 and isinstance(key[0], str)):  # pyright: ignore[reportUnknownArgumentType]
                raise InputError("its trainings are not named by data set and seed; is it a file of NATS-Bench?")
            seed = int(_number(key[1], "seed"))
            epochs = int(_number(_entry(trial, "epochs", (int, float)), "epochs"))
            accuracies, losses = _entry(trial, "eval_acc1es", dict), _entry(trial, "eval_losses", dict)
            of_training = {
                "params": round(_number(trial.get("params"), "params") * _MEGA),
                "flops": round(_number(trial.get("flop"), "flop") * _MEGA),
                "train_accuracy": _share(_last(trial.get("train_acc1es"), epochs)),
                "train_loss": _last(trial.get("train_losses"), epochs),
            }
            for place, accuracy in accuracies.items():
                images, _, epoch = str(place).partition("@")
                if epoch == str(epochs - 1):
                    yield {
                        **{"model": model, "data": key[0], "split": f"{images}@{hp}", "seed": seed, "epochs": epochs},
                        "accuracy": _share(_number(accuracy, "eval_acc1es")),
                        "loss": _number(losses.get(place), "eval_losses"),
                        **of_training,
                    }


def _entry(value: Any, name: str, kind: Any) -> Any:
    found = value.get(name) if isinstance(value, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if not isinstance(found, kind):
        raise InputError(f"it has no {name!r} as results of NATS-Bench do; is it one of its files?")
    return found  # pyright: ignore[reportUnknownVariableType]


def _number(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e15:
        raise InputError(f"{name!r} is not a number where one is needed; download the file again")
    return float(value)


def _last(values: Any, epochs: int) -> float:
    """The value after the last epoch; of a list or by number of the epoch."""
    if isinstance(values, dict):
        value = values.get(epochs - 1)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    else:
        value = values[epochs - 1] if isinstance(values, list) and 0 < epochs <= len(values) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return float("nan") if value is None else _number(value, "train")


def _share(percent: float) -> float:
    if not (0 <= percent <= 100 or percent != percent):
        raise InputError(f"an accuracy is {percent:g}, outside 0 to 100 per cent; download the file again")
    return percent / 100


def _averaged(trials: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Means over the seeds of one architecture."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for trial in trials:
        groups.setdefault((trial["data"], trial["split"]), []).append(trial)
    for group in groups.values():
        trusted = next((trial for trial in group if trial["seed"] == _TRUSTED_SEED), group[0])
        means = {
            name: fmean(trial[name] for trial in group) for name in ("accuracy", "loss", "train_accuracy", "train_loss")
        }
        spread = stdev(trial["accuracy"] for trial in group) if len(group) > 1 else None
        yield {**trusted, **means, "seeds": len(group), "accuracy_spread": spread}
