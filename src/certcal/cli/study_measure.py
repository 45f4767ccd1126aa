"""``certcal study measure``: many models into one table, before and after temperature scaling."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from certcal.cli._boundary import INTERRUPTED
from certcal.cli._commands import ExampleCommand
from certcal.cli._engine_options import chosen_engine, engine_options
from certcal.cli._mlflow import Facts, log_if_asked, mlflow_option
from certcal.cli._parameters import (
    COLUMNS,
    MEASURING,
    MOST_SEED,
    OUTPUT,
    json_option,
    number,
    option,
    quiet_option,
)
from certcal.cli._parse import parse_bins, parse_share

if TYPE_CHECKING:
    from certcal.study import StudyTable

SOME_FAILED = 1
_SOURCE, _RUNNING = "What is measured", "Running"
_BINS = "5,10,15,20,25,50,100,200,500"
_ROLES = ("probabilities", "logits", "label", "weight")


@click.command(
    cls=ExampleCommand,
    examples=(
        ("certcal study measure predictions -o study.parquet", "a folder: predictions/DATA/MODEL.npz"),
        ("certcal study measure predictions -o study.parquet --layout model/data", "the other way round"),
        ("certcal study measure models.csv -o study.parquet", "a manifest, with columns of your own"),
        ("certcal study measure models.csv -o study.parquet --workers 8", "on eight processes"),
        ("certcal study measure models.csv -o study.parquet --engine ray", "on Ray; see --address"),
    ),
)
@click.argument("source", type=click.Path())
@option(
    _SOURCE,
    "--layout",
    default="data/model",
    metavar="PARTS",
    help="Of a folder: what the parts of a file's path are (data, model, split). Default: data/model.",
)
@option(COLUMNS, "--probabilities", metavar="COLUMNS", help="Per class: a prefix, 'p_*', names with commas, or lists.")
@option(COLUMNS, "--logits", metavar="COLUMNS", help="The same for logits.")
@option(COLUMNS, "--label", metavar="COLUMN", help="True classes.")
@option(COLUMNS, "--weight", metavar="COLUMN", help="Sample weights.")
@option(
    MEASURING,
    "--bins",
    callback=parse_bins,
    multiple=True,
    default=(_BINS,),
    metavar="N[,N...]",
    help="How many bins; repeatable. Default: nine numbers from 5 to 500.",
)
@option(
    MEASURING,
    "--validation",
    callback=parse_share,
    default="0.2",
    metavar="P",
    help="Share of the samples that the temperature is fitted on. Default: 0.2.",
)
@number(MEASURING, "--seed", least=0, most=MOST_SEED, default="0", metavar="N", help="Of that split. Default: 0.")
@engine_options(_RUNNING)
@json_option
@option(OUTPUT, "-o", "--output", required=True, metavar="TABLE", type=click.Path(), help="The table (.parquet).")
@option(OUTPUT, "--force", is_flag=True, help="Measure everything anew, and then replace the table.")
@quiet_option
@mlflow_option
def measure(
    source: str,
    output: str,
    as_json: bool,
    workers: int | None,
    engine: str,
    address: str | None,
    gpus: float | None,
    **settings: Any,
) -> None:
    """Measure every model in SOURCE before and after temperature scaling, into one TABLE.

    SOURCE is a folder of prediction files, or a manifest (CSV, Parquet, JSON lines): a column 'predictions' of paths,
    a column 'model', perhaps 'data', 'split' and 'ood:NAME', and any columns of your own. Files hold logits or
    probabilities with labels. The same command continues after an interruption, adds new models, and measures files
    that have changed.

    Exit code: 0 when every row was measured, 1 when some failed (the table says why), 2 for input that is wrong.
    """
    from certcal.cli._sources import existing

    place = chosen_engine(engine, address, workers, gpus)
    existing(source, "folder or manifest")
    settings["columns"] = {role: settings.pop(role) for role in _ROLES}
    notes: list[str] = []
    table = _measured(source, output, notes, engine=place, **settings)
    from certcal.cli._progress import tell
    from certcal.cli._study_measured import show_measured, to_json

    if as_json:
        click.echo(to_json(table, output, notes), nl=False)
    else:
        show_measured(table, output)
    for note in notes:
        tell(note)
    failed = sum(1 for _ in table.failures)
    counts = {"rows": len(table), "models": len(table.models), "failed": failed}
    log_if_asked(Facts({"source": source, "settings": {**table.settings, **counts}}), [Path(output)])
    if failed:
        raise click.exceptions.Exit(SOME_FAILED)


def _measured(source: str, output: str, notes: list[str], **settings: Any) -> StudyTable:
    from certcal.cli._progress import Waiting
    from certcal.study import measure as measure_all
    from certcal.study._parts import beside

    before: list[int] = []
    try:
        with Waiting(counted="files") as waiting:

            def progress(finished: int, total: int | None) -> None:
                if not before:
                    waiting.stage("measuring", total, finished)
                else:
                    waiting.advance(finished - before[-1])
                before[:] = [finished]

            waiting.stage("looking at the files")
            return measure_all(source, out=output, progress=progress, tell=notes.append, **settings)
    except KeyboardInterrupt:  # after the bar has gone, so that the sentence has a line of its own
        place = beside(Path(output))
        kept = f"what was measured is kept in {place}, the same command resumes"
        click.echo(f"certcal: interrupted; {kept if place.is_dir() else 'nothing was measured'}", err=True)
        raise click.exceptions.Exit(INTERRUPTED) from None
