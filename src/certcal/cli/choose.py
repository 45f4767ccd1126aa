"""``certcal choose``: the best certified calibration among models that are about as accurate."""

from __future__ import annotations

from typing import Any

import click

from certcal._base.checks import InputError
from certcal.cli.app import ExampleCommand
from certcal.cli.compare import family_names
from certcal.cli.emit import DRAWN, Output, output_options
from certcal.cli.options import verb_options
from certcal.lab.choose import choose as verb


@click.command(
    cls=ExampleCommand,
    examples=(
        ("certcal choose AT=at-25/run AT=at-50/run ACT=act-25/run ACT=act-50/run", "two methods, two runs each"),
        ("certcal choose AT=a/run ACT=b/run --radius .05,.1,.2,.5,1", "at these radii"),
        ("certcal choose AT=a/run ACT=b/run --confidence standard --within .03 -o choice.html", "as papers do, a page"),
        ("certcal choose AT=a/run ACT=b/run --json | jq '.chosen[0].by_calibration_error'", "for scripts"),
    ),
)
@click.argument("models", metavar="METHOD=RUN...", nargs=-1, required=True, type=click.Path())
@verb_options(verb, "Choosing")
@output_options(DRAWN, mlflow=False)
def choose(models: tuple[str, ...], output: Output, **options: Any) -> None:
    """Choose each method's best certified calibration among models that are about as accurate.

    At each radius, runs whose certified accuracy is within 3 % of the highest are compared, and each method is
    represented by the one with the smallest certified calibration error, and by the one with the smallest Brier score.
    Also says which models are Pareto-optimal, how the numbers correlate over models, and what is certified of samples
    that are certified at all radii.
    """
    named = family_names(models)
    if named is None:
        raise InputError(f"{models[0]} has no method; write METHOD=RUN")
    output.check(*(path for _, path in named))
    families: dict[str, list[str]] = {}
    for method, path in named:
        families.setdefault(method, []).append(path)
    found = verb(families, **options)
    output.emit(found)
