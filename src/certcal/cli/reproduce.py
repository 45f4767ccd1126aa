"""``certcal reproduce``: a table or figure of a paper, beside what is printed."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from certcal._base.checks import InputError
from certcal.cli.app import command
from certcal.cli.emit import DRAWN, Output, output_options, provenance
from certcal.cli.engine import engine_options, pop_engine
from certcal.cli.options import option, verb_options
from certcal.cli.progress import tell
from certcal.lab.plans.plan import open_plan
from certcal.lab.reproduce import list_plans
from certcal.lab.reproduce import reproduce as verb

SOME_FAILED = 1
_PLAN, _RUNNING = "Plan", "Running"


def _parse_changes(ctx: click.Context | None, param: click.Parameter | None, values: Sequence[str]) -> dict[str, Any]:
    """Turn ``sample.n=1000`` and ``network.name=mlp`` into values by field: TOML where it is, else text.

    Examples
    --------
    >>> _parse_changes(None, None, ["sample.n=1000", "network.name=mlp", "radii=[0.5, 1.0]"])
    {'sample.n': 1000, 'network.name': 'mlp', 'radii': [0.5, 1.0]}
    """
    found: dict[str, Any] = {}
    for text in values:
        name, equals, value = text.partition("=")
        if not (equals and name.strip()):
            raise click.BadParameter(f"{text!r} is not FIELD=VALUE, such as sample.n=1000", ctx, param)
        try:
            found[name.strip()] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            found[name.strip()] = value
    return found


def _parse_data(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> str | dict[str, str] | None:
    """One folder, or NAME=FOLDER for each data set."""
    named = [text.partition("=") for text in values]
    if all(equals for _, equals, _ in named) and named:
        return {name: folder for name, _, folder in named}
    if len(values) > 1:
        raise click.BadParameter("several folders need names, such as cifar-10=FOLDER", ctx, param)
    return values[0] if values else None


@command(
    ("certcal reproduce", "what there is, what it needs, what it took"),
    ("certcal reproduce cc-table7 --dry-run --device cuda", "jobs, passes and hours"),
    ("certcal reproduce cc-table7 --shrink 0.01 -o out", "the same plan, shrunk"),
    ("certcal reproduce cc-table7 --set network.name=resnet20 -o out -o table.tex", "another network; LaTeX too"),
    ("certcal reproduce cc-table2 --data cifar --checkpoints salman --part 3/8 -o out", "in a job array"),
    ("certcal reproduce mine.toml -o out", "a plan of your own"),
    one="some jobs failed",
)
@click.argument("plan", required=False, type=click.Path())
@option(
    _PLAN,
    "--set",
    "changes",
    callback=_parse_changes,
    multiple=True,
    metavar="FIELD=VALUE",
    help="Another value for a field of the plan, such as network.name=resnet20; repeatable.",
)
@option(
    _PLAN,
    "--data",
    callback=_parse_data,
    multiple=True,
    metavar="FOLDER",
    help="Where the data are; NAME=FOLDER for each of several data sets.",
)
@verb_options(verb, _PLAN, only=("scale", "checkpoints", "logs"))
@verb_options(verb, _RUNNING, only=("device", "part", "dry_run", "probe"))
@engine_options(_RUNNING)
@output_options(
    DRAWN, judged=False, mlflow=False, what="Folder for jobs, page, tables and figures; or a file of its own:"
)
def reproduce(plan: str | None, output: Output, **options: Any) -> None:
    """Run the PLAN of a table or figure and put what comes out beside what is printed.

    Without PLAN, list them. Jobs keep their state in the folder: the same command resumes, several plans share them,
    and several processes may each do a part. Differences are shown where data, networks, recipe and scale are the
    paper's; otherwise order and pattern are compared.
    """
    folders = [name for name in output.files if not Path(name).suffix]
    output.files = tuple(name for name in output.files if Path(name).suffix)
    output.check()
    if plan is None:
        output.emit(list_plans())
        return
    if len(folders) > 1:
        raise InputError(f"-o {folders[1]}: there is a folder already; give one")
    if not folders and not options["dry_run"]:
        open_plan(plan, options["changes"])
        raise InputError("-o is missing; give a folder for the jobs, or add --dry-run")
    place = pop_engine(options)
    found = verb(plan, out=folders[0] if folders else None, engine=place, **options)
    output.emit(found)
    if folders and found.ran:
        for path in found.write(folders[0], provenance=provenance(found, [])):
            tell(f"wrote {path}")
    if found.failures:
        raise click.exceptions.Exit(SOME_FAILED)
