"""``certcal study convert``: published results as the table of a study."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from certcal.cli._commands import ExampleCommand
from certcal.cli._parameters import OUTPUT, force_option, json_option, option, quiet_option
from certcal.cli._parse import Choice

if TYPE_CHECKING:
    from certcal.study import StudyTable

SOME_FAILED = 1
_READING, _NATS = "Published tables", "NATS-Bench"


@click.command(
    cls=ExampleCommand,
    examples=(
        ("certcal study convert cifar10_tss.csv -o tss.parquet --data cifar10", "columns such as acc and pre_ECE_15"),
        ("certcal study convert a.csv b.csv -o both.parquet --data cifar10 --data cifar100", "several data sets"),
        ("certcal study convert small.csv -o small.parquet --scale percent", "where it cannot be told"),
        ("certcal study convert NATS-tss-v1_0-3ffb9-simple -o nats.parquet", "accuracies and sizes of NATS-Bench"),
    ),
)
@click.argument("file_or_folder", nargs=-1, required=True, type=click.Path())
@option(
    _READING,
    "--data",
    multiple=True,
    metavar="NAME",
    help="Data set: once for all tables, or once for each in order (default: a column, or the file's name); of "
    "NATS-Bench, the one to take.",
)
@option(_READING, "--split", metavar="NAME", help="Split. Default: a column, or test.")
@option(
    _READING,
    "--scale",
    type=Choice(["share", "percent"]),
    metavar="SCALE",
    help="Whether accuracies and errors are share or percent. Default: told where that is certain.",
)
@option(
    _READING,
    "--accuracy-scale",
    type=Choice(["share", "percent"]),
    metavar="SCALE",
    help="The same of the accuracies, if they differ.",
)
@option(
    _READING,
    "--architectures",
    metavar="META",
    type=click.Path(),
    help="NATS-Bench's meta.pickle.pbz2, for tables that name architectures by index.",
)
@option(
    _NATS,
    "--seeds",
    type=Choice(["mean", "each"]),
    metavar="HOW",
    help="The mean over seeds of training, or a row for each. Default: mean.",
)
@json_option
@option(OUTPUT, "-o", "--output", required=True, metavar="TABLE", type=click.Path(), help="The table (.parquet).")
@force_option()
@quiet_option
def convert(
    file_or_folder: tuple[str, ...],
    data: tuple[str, ...],
    split: str | None,
    scale: str | None,
    accuracy_scale: str | None,
    architectures: str | None,
    seeds: str | None,
    as_json: bool,
    output: str,
    force: bool,
) -> None:
    """Make the table of a study of published tables (CSV, Parquet) or of NATS-Bench's files.

    Published tables have a column 'arch' or 'model', 'acc', and measurements such as pre_ECE_15 and post_KSCE.
    NATS-Bench's files are those of a folder that ends in -simple; nothing in them is run. They hold no calibration.

    Exit code: 0 when everything was read, 1 when some files of NATS-Bench failed (the table says why), 2 for input
    that is wrong.
    """
    from certcal.cli._outputs import announce, check_outputs
    from certcal.cli._show_converted import converted_json, show_converted
    from certcal.cli._sources import only_for

    paths = check_outputs([output], (".parquet",), force=force, sources=file_or_folder)
    nats = [_is_nats(path) for path in file_or_folder]
    options = {"split": split, "scale": scale, "accuracy_scale": accuracy_scale, "architectures": architectures}
    if all(nats):
        only_for("published tables", file_or_folder[0], "of NATS-Bench", options)
        table = _of_nats_bench(file_or_folder, data, seeds or "mean")
    elif any(nats):
        from certcal._checks import InputError

        raise InputError(
            f"{file_or_folder[nats.index(True)]} is of NATS-Bench and {file_or_folder[nats.index(False)]} is not; "
            "convert them one after the other, and join the tables with certcal.study.join"
        )
    else:
        only_for("NATS-Bench's files", file_or_folder[0], "a published table", {"seeds": seeds})
        table = _of_tables(file_or_folder, data, **options)
    table.write(paths[0])
    if as_json:
        click.echo(converted_json(table, output), nl=False)
    else:
        show_converted(table, output)
    announce(paths)
    if any(True for _ in table.failures):
        raise click.exceptions.Exit(SOME_FAILED)


def _is_nats(path: str) -> bool:
    from certcal.cli._sources import existing

    return existing(path, "file or folder").is_dir() or path.endswith(".pbz2")


def _of_nats_bench(paths: Sequence[str], data: Sequence[str], seeds: str) -> StudyTable:
    from certcal._checks import InputError
    from certcal.cli._progress import Waiting
    from certcal.study import read_nats_bench

    if len(data) > 1:
        raise InputError(f"--data is given {len(data)} times; of NATS-Bench take one data set, or all without it")
    with Waiting(counted="files") as waiting:

        def progress(done: int, total: int) -> None:
            if done == 1:
                waiting.stage("reading", total)
            waiting.advance(1)

        return read_nats_bench(
            [Path(path) for path in paths], data=data[0] if data else None, seeds=seeds, progress=progress
        )


def _of_tables(
    paths: Sequence[str],
    data: Sequence[str],
    *,
    split: str | None,
    scale: str | None,
    accuracy_scale: str | None,
    architectures: str | None,
) -> StudyTable:
    from certcal._checks import InputError
    from certcal.study import read_architectures, read_calibration_table, stack

    if len(data) not in (0, 1, len(paths)):
        raise InputError(
            f"--data is given {len(data)} times for {len(paths)} tables; give it once for all, or once for each"
        )
    names = list(data) * (len(paths) if len(data) == 1 else 1) or [None] * len(paths)
    known = None if architectures is None else read_architectures(architectures)
    return stack(
        [
            read_calibration_table(
                path,
                data=name,
                split=split,
                scale=scale,  # pyright: ignore[reportArgumentType]
                accuracy_scale=accuracy_scale,  # pyright: ignore[reportArgumentType]
                architectures=known,
            )
            for path, name in zip(paths, names, strict=True)
        ]
    )
