"""``certcal study review``: what a population of models says about calibration and about its metrics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from certcal.cli._commands import ExampleCommand
from certcal.cli._completing import complete_columns
from certcal.cli._mlflow import log_if_asked, mlflow_option
from certcal.cli._parameters import MOST_SEED, bin_count_option, file_options, number, option
from certcal.cli._parse import each, parse_level, parse_positive, whole_number

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

_REVIEWING, _COLUMNS = "Reviewing", "Columns that came with the models"
_MOST_MODELS = 10**9


def _listed(ctx: click.Context | None, param: click.Parameter | None, values: Sequence[str]) -> tuple[str, ...] | None:
    """Turn ``params,flops`` and repetitions of it into names, each once; None when there are none."""
    found = [part.strip() for value in values for part in value.split(",")]
    if not all(found):
        raise click.BadParameter("a name is empty; give columns with commas between them", ctx, param)
    return tuple(dict.fromkeys(found)) or None


def _tops(ctx: click.Context | None, param: click.Parameter | None, values: Sequence[str]) -> tuple[int, ...] | None:
    """Turn ``100,1000`` and repetitions of it into numbers of models, smallest first; None when there are none."""
    parts = [part for value in values for part in value.split(",")]
    return tuple(sorted(set(each(whole_number(2, _MOST_MODELS))(ctx, param, parts)))) or None


def _tell_of_tops(tops: Sequence[int] | None, models: int) -> None:
    """Say which parts of the models were asked for and are none."""
    from certcal._text import counted
    from certcal.cli._progress import tell
    from certcal.study._population import SMALLEST_TOP

    for top in tops or ():
        if top > models:
            tell(f"--top {top}: there are only {counted(models, 'model')}, so nothing more was asked")
        elif top < SMALLEST_TOP:
            tell(f"--top {top}: fewer than {SMALLEST_TOP} models are too few to be asked, so they were not")


def _columns(name: str, target: str, text: str) -> Callable[[Decorated], Decorated]:
    return option(
        _COLUMNS,
        name,
        target,
        callback=_listed,
        multiple=True,
        metavar="COLUMN[,...]",
        shell_complete=complete_columns,
        help=text,
    )


@click.command(
    cls=ExampleCommand,
    examples=(
        ("certcal study review study.parquet", "the seven questions, answered for these models"),
        ("certcal study review study.parquet -o study.html", "with all figures and matrices, as a page"),
        ("certcal study review study.parquet --metric ks_error --top 100,500", "another metric; the best 100 and 500"),
        ("certcal study review study.parquet --robustness fgsm,pgd --size params,flops", "what the columns are"),
        ("certcal study review study.parquet --json | jq '.answers[2].answer'", "for scripts"),
    ),
)
@click.argument("table", type=click.Path())
@option(_REVIEWING, "--metric", default="ece", metavar="NAME", help="What models are ordered by. Default: ece.")
@bin_count_option(_REVIEWING)
@option(_REVIEWING, "--split", metavar="NAME", help="Of the table. Default: its only one, or test.")
@option(
    _REVIEWING,
    "--top",
    "tops",
    callback=_tops,
    multiple=True,
    metavar="N[,N...]",
    help="Also ask the N most accurate models. Default: some shares of all.",
)
@option(
    _REVIEWING,
    "--beta",
    "hcs_beta",
    callback=parse_positive,
    default="1",
    metavar="B",
    help="Weight of calibration in the harmonic calibration score. Default: 1.",
)
@number(
    _REVIEWING,
    "--resamples",
    least=20,
    most=100_000,
    default="200",
    metavar="N",
    help="Of the models, for the intervals. Default: 200.",
)
@option(_REVIEWING, "--level", callback=parse_level, default="0.95", metavar="P", help="Of intervals. Default: 0.95.")
@number(_REVIEWING, "--seed", least=0, most=MOST_SEED, default="0", metavar="N", help="Of the resamples. Default: 0.")
@_columns("--robustness", "robustness", "Robustness, such as accuracy under attack. Default: AUROC on other data only.")
@_columns("--size", "sizes", "Sizes: parameters, width, depth. Default: all numbers.")
@_columns(
    "--architecture", "architecture", "Choices of the design, such as an operation. Default: all texts of few values."
)
@file_options("Also write a page (.html) or numbers (.json .csv)")
@mlflow_option
def review(table: str, as_json: bool, outputs: tuple[str, ...], force: bool, **settings: Any) -> None:
    """Answer the benchmark study's seven questions for the models of a table.

    TABLE is what 'certcal study measure' or 'certcal study convert' wrote. Does calibration carry over to other data
    sets? Does robustness stand for it? Do the metrics agree? Does temperature scaling treat all models alike? What has
    accuracy to do with it, the number of bins, the architecture? Every number comes with an interval from resampling
    the models.
    """
    from certcal.cli._outputs import NUMBERS, announce, check_outputs, write_outputs
    from certcal.cli._reviewing import review_table

    paths = check_outputs(outputs, NUMBERS, force=force, sources=[table])
    results = review_table(table, **settings)
    write_outputs(results, paths, force=force, sources=[table])
    if as_json:
        click.echo(results.to_json(), nl=False)
    else:
        from certcal.cli._show_study import show_study

        show_study(results, page=any(path.suffix.lower() == ".html" for path in paths))
    _tell_of_tops(settings["tops"], results.review.models)
    announce(paths)
    log_if_asked(results, paths)
