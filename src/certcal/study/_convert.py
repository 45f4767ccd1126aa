"""Published results as the table of a study."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from certcal._checks import InputError
from certcal._progress import SILENT, Progress
from certcal._settings import Settings, setting, takes
from certcal.study._joining import stack
from certcal.study._nats_files import read_architectures, read_nats_bench
from certcal.study._published import read_calibration_table
from certcal.study._table import StudyTable

_SCALES = ("share", "percent")


@dataclass(frozen=True)
class StudyConvertSettings(Settings):
    """What published results are.

    Examples
    --------
    >>> StudyConvertSettings(data="cifar10").data
    ('cifar10',)
    """

    data: tuple[str, ...] = setting(
        (),
        "Data set: one for all tables, or one for each in order; of NATS-Bench, the one to take. Default: a column, or "
        "the file's name.",
        "text",
        many=True,
        metavar="NAME",
    )
    split: str | None = setting(None, "Split. Default: a column, or test.", "text", metavar="NAME")
    scale: str | None = setting(
        None,
        "Scale of accuracies and errors, share or percent. Default: told by their values where that is certain.",
        "word",
        choices=_SCALES,
        metavar="SCALE",
    )
    accuracy_scale: str | None = setting(
        None, "Scale of the accuracies, where it differs.", "word", choices=_SCALES, metavar="SCALE"
    )
    architectures: str | tuple[str, ...] | None = setting(
        None,
        "NATS-Bench's meta.pickle.pbz2, for tables that name architectures by index.",
        "file",
        metavar="META",
    )
    seeds: str | None = setting(
        None,
        "Mean over the seeds of training, or a row for each. Default: mean.",
        "word",
        choices=("mean", "each"),
        metavar="HOW",
    )


@takes(StudyConvertSettings)
def convert(
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    progress: Progress = SILENT,
    settings: StudyConvertSettings,
) -> StudyTable:
    r"""Make one table of a study of published tables or of NATS-Bench's files.

    Published tables go through :func:`read_calibration_table`, files and folders of NATS-Bench through
    :func:`read_nats_bench`, which runs nothing that is in them. Keywords beside those below are the fields of
    :class:`StudyConvertSettings`: data, split, scale, accuracy_scale and architectures for published tables, data and
    seeds for NATS-Bench.

    Parameters
    ----------
    sources
        Published tables (CSV, Parquet, Arrow), or files that end in .pickle.pbz2 and folders of them.
    progress
        Where to report how far the work is.
    settings
        All settings at once. ``architectures`` may also be the names themselves.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "tss.csv"
    >>> _ = path.write_text("arch,acc,pre_ECE_15\na,93.9,4.2\nb,90.1,3.9\n")
    >>> convert(path, data="cifar10")["pre_ece_15"].round(3).tolist()
    [0.042, 0.039]
    >>> folder.cleanup()
    """
    paths = [Path(each) for each in ([sources] if isinstance(sources, str | os.PathLike) else sources)]
    if not paths:
        raise InputError("there is nothing to convert; name at least one file or folder")
    nats = [path.is_dir() or path.name.endswith(".pbz2") for path in paths]
    if len(set(nats)) > 1:
        raise InputError(
            f"{paths[nats.index(True)]} is of NATS-Bench and {paths[nats.index(False)]} is not; convert them one after "
            "the other, and join the tables with certcal.study.join"
        )
    if nats[0]:
        _refuse(settings, ("split", "scale", "accuracy_scale", "architectures"), "published tables", paths[0])
        if len(settings.data) > 1:
            raise InputError(
                f"it is given {len(settings.data)} times; take one data set of NATS-Bench", argument="data"
            )
        return read_nats_bench(
            paths, data=next(iter(settings.data), None), seeds=settings.seeds or "mean", progress=progress
        )
    _refuse(settings, ("seeds",), "NATS-Bench's files", paths[0])
    return _published(paths, settings)


def _refuse(settings: StudyConvertSettings, names: Sequence[str], whose: str, path: Path) -> None:
    """Settings that are for the other kind of files."""
    for name in names:
        if getattr(settings, name) is not None:
            raise InputError(f"it is for {whose}, and {path} is none", argument=name, remedy="leave it out")


def _published(paths: Sequence[Path], settings: StudyConvertSettings) -> StudyTable:
    data = settings.data
    if len(data) not in (0, 1, len(paths)):
        reason = f"it is given {len(data)} times for {len(paths)} tables; give it once for all, or once for each"
        raise InputError(reason, argument="data")
    names = list(data) * (len(paths) if len(data) == 1 else 1) or [None] * len(paths)
    known = settings.architectures
    if isinstance(known, str | os.PathLike):
        known = read_architectures(known)
    return stack(
        [
            read_calibration_table(
                path,
                data=name,
                split=settings.split,
                scale=settings.scale,  # pyright: ignore[reportArgumentType]
                accuracy_scale=settings.accuracy_scale,  # pyright: ignore[reportArgumentType]
                architectures=known,
            )
            for path, name in zip(paths, names, strict=True)
        ]
    )
