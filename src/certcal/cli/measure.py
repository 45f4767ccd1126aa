"""``certcal measure``: the calibration of a table of predictions."""

from __future__ import annotations

from typing import Any, cast

import click

from certcal.cli.app import command
from certcal.cli.emit import DRAWN, Output, output_options
from certcal.cli.options import model_options, option, prediction_column_options, verb_options
from certcal.cli.rehearsal import refuse_unanswerable
from certcal.verbs.measure import measure as verb
from certcal.verbs.predict import predict

_MEASURING, _PREDICTING = "Measuring", "A model instead of a table"


@command(
    ("certcal measure predictions.csv", "a dozen metrics, with a reliability diagram"),
    ("certcal measure scores.parquet --score pd --outcome status --positive default", "say which columns to use"),
    ("certcal measure predictions.npz --bins 5,10,15,20", "several numbers of bins"),
    ("certcal measure predictions.csv --metric all", "every metric there is"),
    ("certcal measure predictions.csv --by hospital", "each group beside the whole"),
    ("certcal measure predictions.csv --level 0.9", "with 90 % intervals"),
    ("certcal measure predictions.csv --require 'ece <= 0.05'", "pass or fail: exit code 1 when it is not met"),
    ("certcal measure predictions.csv --bounds --require 'ece <= 5%'", "with guarantees, one of which must be met"),
    ("certcal measure --model net.onnx --data test.npz", "what a model says, without a table"),
    ("certcal measure predictions.csv -o report.html -o numbers.json", "write a page and files as well"),
    ("certcal measure predictions.csv --json | jq '.measurements[0].value'", "for scripts"),
)
@click.argument("table", type=click.Path(), required=False, metavar="TABLE")
@prediction_column_options
@model_options(predict, _PREDICTING, required=False)
@verb_options(verb, _MEASURING, skip=("bootstrap", "seed", "memory"))
@option(_MEASURING, "--no-intervals", is_flag=True, help="Leave out the intervals of the metrics.")
@verb_options(verb, _MEASURING, only=("memory",))
@output_options(DRAWN)
def measure(
    table: str | None,
    model: str | None,
    data: str | None,
    weights: str | None,
    outputs: str | None,
    no_intervals: bool,
    output: Output,
    **options: Any,
) -> None:
    """Measure the calibration of the predictions in TABLE.

    TABLE is Parquet, CSV, Excel, JSON lines, npz or Arrow, or - for standard input. Columns are found by their names: a
    binary score with an outcome, a confidence with whether it was correct (or with a prediction and a label), or
    probabilities or logits per class with a label. Options name other columns. Or the predictions are made here, by
    --model on --data.
    """
    from certcal.cli.sources import existing_files, refuse_run

    options |= {"bootstrap": 0} if no_intervals else {}
    options["metrics"] = output.with_required(options["metrics"])
    if table is not None:
        given = {"--model": model, "--data": data, "--weights": weights, "--outputs": outputs}
        if stray := next((name for name, value in given.items() if value is not None), None):
            raise click.UsageError(f"{stray} is for predictions made here, and {table} has them; leave one out")
        refuse_run(table)
        output.check(table)
        refuse_unanswerable(output.require, verb, options)
        output.emit(verb(table, **options))
        return
    if model is None or data is None:
        raise click.UsageError("TABLE is missing; give one, or --model and --data")
    read = existing_files(model, weights, data)
    output.check(*read)
    refuse_unanswerable(output.require, verb, options)
    found = predict(model, data, outputs=cast("Any", outputs), weights=weights)
    output.emit(verb(found, source=f"{model} on {data}", **options), sources=read)
