"""``certcal compare``: two tables of predictions, or the robustness of several runs or published logs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import click

from certcal._base.checks import InputError
from certcal._base.signature import Spec, check_setting, defaults_of, specs_of
from certcal.cli.app import command
from certcal.cli.emit import DRAWN, Output, is_given, output_options
from certcal.cli.options import Typed, compare_column_options, option, verb_options
from certcal.cli.rehearsal import refuse_unanswerable
from certcal.data.schema import OPTIONS
from certcal.result import Result
from certcal.verbs.changes import compare_tables
from certcal.verbs.compare import are_tables, compare_runs, refuse_lone_table
from certcal.verbs.compare import compare as verb

_COMPARING, _TABLES = "Runs and logs", "Tables of predictions"
_OF_TABLES, _OF_RUNS = {*defaults_of(compare_tables), "key", "by", *OPTIONS}, {*defaults_of(compare_runs)}
_DRAWS, _LEVEL = Spec("", "whole", least=1, most=2**53), Spec("", "failure")


def _budgets(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> tuple[tuple[int, float], ...]:
    """Turn ``100,0.01`` into a number of noise samples and a level."""
    found: list[tuple[int, float]] = []
    for text in values:
        parts = text.split(",")
        if len(parts) != 2:
            raise click.BadParameter(f"{text!r} is not N,ALPHA, such as 100,0.01", ctx, param)
        try:
            draws, level = (
                check_setting("", Typed(spec).convert(part, param, ctx), spec)
                for part, spec in zip(parts, (_DRAWS, _LEVEL), strict=True)
            )
        except InputError as error:
            raise click.BadParameter(error.reason, ctx, param) from None
        found.append((draws, level))
    return tuple(found)


@command(
    ("certcal compare old.csv new.csv", "two tables of predictions, old and new"),
    ("certcal compare old.csv new.csv --key id --by segment -o change.html", "row by row, per segment, as a page"),
    ("certcal compare table.csv --score old,new", "two columns of scores of one table"),
    ("certcal compare old.csv new.csv --require 'difference ece <= 0.01'", "pass or fail: exit code 1 when worse"),
    ("certcal compare small-noise large-noise", "two runs"),
    ("certcal compare a.tsv b.tsv --sigma 0.25 --sigma 0.5 -n 100000", "two published logs"),
    ("certcal compare mine theirs.tsv --sigma 0.5 -n 100000 --alpha 0.001", "a run and a log"),
    ("certcal compare small-noise large-noise --radius 0,0.5,1 -o curves.csv", "at these radii, also to a file"),
    ("certcal compare small-noise large-noise -o comparison.html", "as a page"),
    ("certcal compare gaussian=g25 gaussian=g50 acr=a25 acr=a50", "methods, each at two noise levels"),
    ("certcal compare gaussian=g50 gaussian=g50-seed1 acr=a50 acr=a50-seed1", "means over two trainings each"),
    ("certcal compare gaussian=g50 acr=a50 --budget 100,0.01", "as with 100 noise samples at alpha 0.01"),
    ("certcal compare small-noise large-noise --json | jq '.dominance[0].sentence'", "for scripts"),
)
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True, type=click.Path())
@option(
    _TABLES, "--key", metavar="COLUMN", help="Column that says which sample a row is. Default: id, if it is unique."
)
@verb_options(compare_tables, _TABLES, explained_by=verb)
@compare_column_options
@verb_options(compare_runs, _COMPARING, only=("radii", "alpha"), explained_by=verb)
@option(
    _COMPARING,
    "--budget",
    "budgets",
    callback=_budgets,
    multiple=True,
    metavar="N,ALPHA",
    help=specs_of(compare_runs, verb)["budgets"].help,
)
@verb_options(compare_runs, _COMPARING, only=("samples", "sigma", "n"), explained_by=verb)
@output_options(DRAWN, mlflow=False)
def compare(sources: tuple[str, ...], output: Output, **options: Any) -> None:
    """Compare two tables of predictions, or the certified robustness of runs and published logs.

    Tables are the old and the new one, as 'certcal measure' takes them; or one, with two --score. Rows of the same
    key are the same sample. Says better, worse or unclear by a proper score, and reports old, new and the difference
    of each metric with an interval, per group if asked.

    A run is a folder that 'certcal sample' made, or a log with the columns idx, label, predict, radius and
    correct. Reports certified accuracy at each radius and the best over all runs, the average certified radius with
    its caveat, the distribution of p_A, and for each pair whether one dominates the other.

    NAME=SOURCE puts a run or a log into a family, the runs of one training method at different sigma. Several at one
    sigma are other seeds of one training: means over them, and standard deviations. Families are compared at each
    sigma and by their best over sigma: certified accuracy, the distribution of p_A, other sampling budgets, which
    method dominates which, and what is certified of the confidences.
    """
    families = family_names(sources)
    output.check(*(sources if families is None else [path for _, path in families]))
    named: dict[str, list[str]] = {}
    for name, path in families or ():
        named.setdefault(name, []).append(path)
    if len(sources) == 1 and isinstance(options["score"], str):
        options["score"] = options["score"].split(",")
    of_tables = families is None and (are_tables(sources) or (len(sources) == 1 and options["score"] is not None))
    if families is None and not of_tables:
        refuse_lone_table(sources)
    _refuse_stray(of_tables)
    chosen = {name: options[name] for name in (_OF_TABLES if of_tables else _OF_RUNS)}
    if of_tables:
        chosen["metrics"] = output.with_required(chosen["metrics"])
        refuse_unanswerable(output.require, compare_tables, chosen, tables=2)
    given: list[Any] = [named] if named else list(sources)
    found: Result = cast("Any", verb)(*given, **chosen)
    output.emit(found)


def _refuse_stray(of_tables: bool) -> None:
    """Refuse options that are about the other kind of source."""
    stray = sorted(name for name in (_OF_RUNS if of_tables else _OF_TABLES) if is_given(name))
    if stray:
        kinds = ("runs and logs", "tables of predictions")
        what, these = kinds if of_tables else kinds[::-1]
        raise InputError(f"it is for {what}, and these are {these}", argument=stray[0], remedy="leave it out")


def family_names(arguments: Sequence[str]) -> tuple[tuple[str, str], ...] | None:
    """Names and paths of NAME=PATH, or None when the arguments are paths; what exists as written is a path."""
    given = [("", text) if "=" not in text or _exists(text) else _name_and_path(text) for text in arguments]
    plain = [text for name, text in given if not name]
    if len(plain) == len(given):
        return None
    if plain:
        first = next(text for text, (name, _) in zip(arguments, given, strict=True) if name)
        what = "is a path as it stands" if "=" in plain[0] else "has no name"
        raise InputError(f"{plain[0]} {what}, and {first} has a name; name all, as NAME=PATH, or none")
    return tuple(given)


def _exists(text: str) -> bool:
    try:
        return Path(text).exists()
    except (OSError, ValueError):  # a name that is too long, or no name at all
        return False


def _name_and_path(text: str) -> tuple[str, str]:
    name, _, path = text.partition("=")
    if not name.strip() or not path:
        what = "path after" if name.strip() else "name before"
        raise InputError(f"{text} has no {what} the '='; write NAME=PATH, such as gaussian=run")
    return name.strip(), path
