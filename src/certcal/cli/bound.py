"""``certcal bound``: how large the true calibration error can be, from the samples at hand."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from certcal._checks import MOST_CHANGE
from certcal.cli._commands import ExampleCommand
from certcal.cli._mlflow import is_mlflow_asked, log_if_asked, mlflow_option
from certcal.cli._parameters import (
    MOST_SEED,
    bin_count_option,
    closed_option,
    delta_option,
    file_options,
    number,
    option,
    score_column_options,
)
from certcal.cli._parse import optional, parse_positive, parse_share
from certcal.data._layout import OPTIONS

_BOUNDING = "Bounding"


@click.command(
    cls=ExampleCommand,
    examples=(
        ("certcal bound predictions.csv", "if accuracy rises with confidence"),
        ("certcal bound predictions.csv --delta 0.01", "to fail with probability 0.01 only"),
        ("certcal bound predictions.csv --lipschitz 2", "if accuracy changes by at most 2 per unit of confidence"),
        ("certcal bound predictions.csv --perturb 0.1", "without such an assumption, for perturbed scores"),
        ("certcal bound others.csv --choose-bandwidth 0.001", "how much noise costs little; from other samples"),
        ("certcal bound predictions.npz --classwise", "for each class's own probability, on average"),
        ("certcal bound predictions.csv -o bounds.html -o bounds.json", "write a page and files as well"),
        ("certcal bound predictions.csv --json | jq '.bounds[0].value'", "for scripts"),
    ),
)
@click.argument("table", type=click.Path())
@delta_option(_BOUNDING)
@bin_count_option(_BOUNDING)
@closed_option(_BOUNDING)
@option(
    _BOUNDING,
    "--variation",
    callback=optional(partial(parse_positive, most=MOST_CHANGE)),
    default="1",
    metavar="V",
    help="By how much accuracy goes up and down in all. Default: 1, enough if it rises with confidence.",
)
@option(
    _BOUNDING,
    "--lipschitz",
    callback=optional(partial(parse_positive, most=MOST_CHANGE)),
    metavar="L",
    help="How fast accuracy may change per unit of confidence.",
)
@option(
    _BOUNDING,
    "--perturb",
    callback=optional(parse_positive),
    metavar="H",
    help="Add noise of bandwidth H to the scores first. Then accuracy cannot change fast, whatever it was.",
)
@option(
    _BOUNDING,
    "--choose-bandwidth",
    "tolerance",
    callback=optional(partial(parse_share, example="0.001")),
    metavar="FALL",
    help="Only say which H lowers AUROC by at most FALL; use it on other samples than these.",
)
@option(_BOUNDING, "--classwise", is_flag=True, help="Also bound each class's probability, on average.")
@number(_BOUNDING, "--seed", least=0, most=MOST_SEED, default="0", metavar="N", help="Of noise and folds. Default: 0.")
@score_column_options
@file_options("Also write a page (.html), a diagram of the terms (.png .svg .pdf) or numbers (.json .csv)")
@mlflow_option
def bound(
    table: str,
    variation: float,
    lipschitz: float | None,
    perturb: float | None,
    tolerance: float | None,
    as_json: bool,
    outputs: tuple[str, ...],
    force: bool,
    **options: Any,
) -> None:
    """Bound the true calibration error of the classifier behind the predictions in TABLE.

    A measured error is an estimate that can be wrong by any amount. A bound holds with probability 1 - delta over the
    draw of the samples, for any number of them, under the assumption that stands beside it. TABLE and its columns are
    those of certcal measure; the samples must not have been used to train, choose or recalibrate the classifier.
    """
    from certcal._checks import InputError
    from certcal.cli._bounding import Question, bound_table, choose_for_table
    from certcal.cli._outputs import DRAWN, announce, check_outputs, write_outputs
    from certcal.cli._sources import refuse_run

    if perturb is not None and (lipschitz is not None or options["classwise"]):
        other = "--lipschitz" if lipschitz is not None else "--classwise"
        raise InputError(f"--perturb and {other} exclude each other; leave one of them out")
    refuse_run(table)
    if tolerance is not None and (perturb is not None or outputs):
        raise InputError("--choose-bandwidth prints a bandwidth and nothing else; leave --perturb and -o out")
    if tolerance is not None and is_mlflow_asked():
        raise InputError("--choose-bandwidth finds nothing to log; leave --mlflow out")
    paths = check_outputs(outputs, DRAWN, force=force, sources=[table])
    overrides = {role: options.pop(role) for role in OPTIONS if role in options}
    if tolerance is not None:
        choose_for_table(table, overrides, tolerance, as_json=as_json)
        return
    asked = Question(variation=variation, slope=lipschitz, bandwidth=perturb, **options)
    results = bound_table(table, overrides, asked)
    write_outputs(results, paths, force=force, sources=[table])
    if as_json:
        click.echo(results.to_json(), nl=False)
    else:
        from certcal.cli._show_bounds import show_bounds

        show_bounds(results)
    announce(paths)
    log_if_asked(results, paths)
