"""``certcal measure``: the calibration of a table of predictions."""

from __future__ import annotations

from typing import Any

import click

from certcal.cli._commands import ExampleCommand
from certcal.cli._mlflow import log_if_asked, mlflow_option
from certcal.cli._parameters import (
    MEASURING,
    column_options,
    measuring_options,
    memory_option,
    option,
    output_options,
)
from certcal.data._layout import OPTIONS

_DELTA = 0.05


@click.command(
    cls=ExampleCommand,
    examples=(
        ("certcal measure predictions.csv", "every metric, with a reliability diagram"),
        ("certcal measure scores.parquet --confidence score --correct won", "say which columns to use"),
        ("certcal measure predictions.npz --bins 5,10,15,20", "several numbers of bins"),
        ("certcal measure predictions.csv --by hospital", "each group beside the whole"),
        ("certcal measure predictions.csv --bootstrap 1000 --method bca", "with intervals"),
        ("certcal measure predictions.csv -o report.html -o numbers.json", "write a page and files as well"),
        ("certcal measure predictions.csv --json | jq '.measurements[0].value'", "for scripts"),
    ),
)
@click.argument("table", type=click.Path())
@column_options
@measuring_options
@memory_option
@option(MEASURING, "--bounds", is_flag=True, help="Also bound the true calibration error, as certcal bound does.")
@output_options
@mlflow_option
def measure(
    table: str,
    by: str | None,
    memory: int | None,
    bounds: bool,
    metrics: tuple[str, ...],
    explain: bool,
    no_diagram: bool,
    as_json: bool,
    outputs: tuple[str, ...],
    force: bool,
    **options: Any,
) -> None:
    """Measure the calibration of the predictions in TABLE.

    TABLE is Parquet, CSV, TSV, npz or Arrow. Columns are found by their names: a confidence with whether it was
    correct (or with a prediction and a label, or a 0/1 outcome), or probabilities or logits per class with a label.
    Options name others.
    """
    from certcal._checks import InputError
    from certcal.cli._measured_table import measure_table
    from certcal.cli._measuring import Settings, check_metrics
    from certcal.cli._outputs import DRAWN, announce, check_outputs, write_outputs
    from certcal.cli._sources import refuse_run

    check_metrics(metrics)
    refuse_run(table)
    paths = check_outputs(outputs, DRAWN, force=force, sources=[table])
    overrides = {role: options.pop(role) for role in OPTIONS}
    settings = Settings(**options)
    results = measure_table(table, overrides, by, settings, metrics, memory=memory, delta=_DELTA if bounds else None)
    if bounds and not results.bounds:
        raise InputError(
            "--bounds needs samples of equal weight that fit in memory; leave it, --weight or --memory out"
        )
    write_outputs(results, paths, force=force, sources=[table])
    if as_json:
        click.echo(results.to_json(), nl=False)
    else:
        from certcal.cli._show import show

        show(results, diagram=not no_diagram, explain=explain)
    announce(paths)
    log_if_asked(results, paths)
