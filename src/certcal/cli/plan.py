"""``certcal plan``: how many samples a bound takes, before there are any."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from certcal._base.signature import Spec
from certcal.cli.app import command
from certcal.cli.emit import DRAWN, Output, output_options
from certcal.cli.options import Typed, column_options, pop_columns, verb_options
from certcal.data.schema import READING
from certcal.verbs.plan import plan as verb

_ROLES = ("score", "confidence", "probabilities", "logits", *READING)


@command(
    ("certcal plan 0.02", "how many samples a bound of 0.02 takes"),
    ("certcal plan 0.02 others.csv --error 0.01", "for scores like these and a true error of 0.01"),
    ("certcal plan 0.05 --method ks --power 0.5", "another bound, reached every other time"),
    ("certcal plan 0.02 --json | jq .n", "for scripts"),
)
@click.argument("target", type=Typed(Spec("", "share")))
@click.argument("table", type=click.Path(), required=False)
@verb_options(verb, "Planning")
@column_options(*_ROLES)
@output_options(DRAWN, judged=False, mlflow=False)
def plan(target: float, table: str | None, output: Output, **options: Any) -> None:
    """Plan how many samples a bound of at most TARGET takes, before there are any.

    An estimate by simulation: for scores spread evenly, or for scores like those of TABLE, which needs no outcomes.
    """
    from certcal.cli.sources import refuse_run

    columns = pop_columns(options, _ROLES)
    if table is not None:
        refuse_run(table)
    output.check(*([] if table is None else [table]))
    output.emit(replace(verb(target, table, columns=columns, **options), source=table))
