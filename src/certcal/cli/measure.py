"""``certcal measure``: the calibration of a table of predictions."""

from __future__ import annotations

from typing import Any

import click

from certcal.cli.app import ExampleCommand
from certcal.cli.emit import DRAWN, Output, output_options
from certcal.cli.options import option, prediction_column_options, verb_options
from certcal.verbs.measure import measure as verb

_MEASURING = "Measuring"


@click.command(
    cls=ExampleCommand,
    examples=(
        ("certcal measure predictions.csv", "every metric, with a reliability diagram"),
        ("certcal measure scores.parquet --score pd --outcome status --positive default", "say which columns to use"),
        ("certcal measure predictions.npz --bins 5,10,15,20", "several numbers of bins"),
        ("certcal measure predictions.csv --by hospital", "each group beside the whole"),
        ("certcal measure predictions.csv --level 0.9", "with 90 % intervals"),
        ("certcal measure predictions.csv --require 'ece <= 0.05'", "pass or fail: exit code 1 when it is not met"),
        ("certcal measure predictions.csv --bounds --at-most 0.05", "with guarantees, of which the first must be met"),
        ("certcal measure predictions.csv -o report.html -o numbers.json", "write a page and files as well"),
        ("certcal measure predictions.csv --json | jq '.measurements[0].value'", "for scripts"),
    ),
)
@click.argument("table", type=click.Path())
@prediction_column_options
@verb_options(verb, _MEASURING, skip=("bootstrap", "seed", "memory"))
@option(_MEASURING, "--no-intervals", is_flag=True, help="Leave out the intervals of the metrics.")
@verb_options(verb, _MEASURING, only=("memory",))
@output_options(DRAWN)
def measure(table: str, no_intervals: bool, output: Output, **options: Any) -> None:
    """Measure the calibration of the predictions in TABLE.

    TABLE is Parquet, CSV, TSV, JSON lines, npz or Arrow, or - for standard input. Columns are found by their names:
    a binary score with an outcome, a confidence with whether it was correct (or with a prediction and a label), or
    probabilities or logits per class with a label. Options name other columns.
    """
    from certcal.cli.sources import refuse_run

    refuse_run(table)
    output.check(table)
    options |= {"bootstrap": 0} if no_intervals else {}
    found = verb(table, **options)
    output.emit(found)
