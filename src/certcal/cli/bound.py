"""``certcal bound``: how large the true calibration error can be, from the samples at hand."""

from __future__ import annotations

from typing import Any

import click

from certcal import __version__
from certcal._base.checks import InputError
from certcal._base.json import as_text, for_json
from certcal._base.signature import Spec, settings_of
from certcal.cli.app import ExampleCommand
from certcal.cli.emit import DRAWN, Output, origin, output_options
from certcal.cli.mlflow import is_mlflow_asked
from certcal.cli.options import (
    NamedChoice,
    Typed,
    bound_column_options,
    checked_option,
    option,
    options,
    pop_columns,
    verb_options,
)
from certcal.data import OPTIONS
from certcal.verbs.bound import BoundSettings
from certcal.verbs.bound import bound as verb


@click.command(
    cls=ExampleCommand,
    examples=(
        ("certcal bound predictions.csv", "if accuracy (or observed rate) rises with confidence"),
        ("certcal bound predictions.csv --delta 0.01", "to fail with probability 0.01 only"),
        ("certcal bound predictions.csv --by hospital", "each group beside the whole"),
        ("certcal bound predictions.csv --joint", "all bounds hold together"),
        ("certcal bound predictions.csv --lipschitz 2", "if accuracy changes by at most 2 per unit of confidence"),
        ("certcal bound predictions.csv --perturb 0.1", "without such an assumption, for perturbed scores"),
        ("certcal bound predictions.csv --perturb 0.2 --scale logit", "with noise that spares rare outcomes"),
        ("certcal bound predictions.csv --perturb 0.1 --form published", "the paper's formulas, as printed"),
        ("certcal bound predictions.csv --where", "at which scores, with a band"),
        ("certcal bound --plan 0.02", "how many samples a bound of 0.02 takes, before there are any"),
        ("certcal bound others.csv --plan 0.02 --plan-error 0.01", "for scores like these and a true error of 0.01"),
        ("certcal bound others.csv --choose-bandwidth 0.001", "how much noise costs little; from other samples"),
        ("certcal bound predictions.npz --classwise", "for each class's own probability, on average"),
        ("certcal bound predictions.csv -o bounds.html -o bounds.json", "write a page and files as well"),
        ("certcal bound predictions.csv --json | jq '.bounds[0].value'", "for scripts"),
    ),
)
@click.argument("table", type=click.Path(), required=False)
@verb_options(verb, "Bounding")
@option(
    "Bounding",
    "--choose-bandwidth",
    "tolerance",
    type=Typed(Spec("", "share")),
    metavar="FALL",
    help="Only print the bandwidth that lowers AUROC by at most FALL; for use on other samples.",
)
@option(
    "Bounding",
    "--where",
    is_flag=True,
    help="Only show at which scores the model is miscalibrated: a band for the rate at every score.",
)
@options(
    checked_option(
        "Planning", "--plan", Spec("Only print how many samples a bound of at most X takes.", "share", metavar="X")
    ),
    option(
        "Planning",
        "--plan-for",
        type=NamedChoice(["binned", "ks", "kuiper", "bounded_variation"]),
        default="binned",
        metavar="BOUND",
        help="Bound to plan for: binned, ks, kuiper or bounded_variation. Default: binned.",
    ),
    checked_option(
        "Planning", "--plan-error", Spec("True error that is assumed. Default: 0.", "share", zero=True, metavar="X")
    ),
    checked_option("Planning", "--plan-power", Spec("Chance of reaching it. Default: 0.9.", "share")),
)
@bound_column_options
@output_options(DRAWN)
def bound(
    table: str | None, by: str | None, tolerance: float | None, where: bool, output: Output, **given: Any
) -> None:
    """Bound the true calibration error of the classifier behind the predictions in TABLE.

    A measured error is only an estimate. A bound holds with probability 1 - delta over the draw of the samples, at any
    sample size, under the assumptions listed with it. TABLE and its columns are those of certcal measure; the samples
    must not have been used to train, choose or recalibrate the classifier.
    """
    from certcal.cli.sources import refuse_run
    from certcal.verbs.bound import where as band

    planning = {name: given.pop(name) for name in ("plan", "plan_for", "plan_error", "plan_power")}
    columns = pop_columns(given, OPTIONS)
    settings = settings_of(verb, BoundSettings, **given)
    if planning["plan"] is not None:
        _plan(table, by, columns, settings, output, **planning)
        return
    if table is None:
        raise click.MissingParameter(param_hint="'TABLE'", param_type="argument")
    refuse_run(table)
    output.check(table)
    if tolerance is not None:
        _choose(table, tolerance, columns, settings, output)
        return
    if where:
        if by is not None:
            raise InputError("--where is for all samples; leave --by out")
        output.emit(band(table, columns=columns, **given))
        return
    found = verb(table, by=by, columns=columns, **given)
    output.emit(found)


def _plan(
    table: str | None,
    by: str | None,
    columns: dict[str, Any],
    settings: BoundSettings,
    output: Output,
    *,
    plan: float,
    plan_for: str,
    plan_error: float | None,
    plan_power: float | None,
) -> None:
    from certcal._base.progress import watching
    from certcal.verbs.bound import plan as verb

    if output.files or is_mlflow_asked():
        raise InputError("--plan prints a number of samples and nothing else; leave -o and --mlflow out")
    if by is not None or output.require or columns["weight"] is not None:
        raise InputError("--plan is for all samples, of equal weight; leave --by, --weight and --require out")
    if settings.form != "direct":
        raise InputError("--plan is for the direct form; leave --form out")
    chosen: dict[str, Any] = {name: getattr(settings, name) for name in ("delta", "bins", "seed")}
    chosen |= {"error": plan_error or 0.0, "power": 0.9 if plan_power is None else plan_power, "method": plan_for}
    with watching(True) as waiting:
        waiting.stage("simulating")
        found = verb(plan, table, columns=columns, **chosen)
    lines = [found.sentence[:1].upper() + found.sentence[1:], "", f"{'samples':>10}  typical bound  chance"]
    lines += [f"{each.n:>10,}  {each.bound:13.4f}  {each.chance:6.0%}" for each in found.curve]
    _print_plan_or_bound(found, "certcal/plan/1", table, lines, output)


def _choose(table: str, tolerance: float, columns: dict[str, Any], settings: BoundSettings, output: Output) -> None:
    from certcal.verbs.bound import choose_bandwidth

    if settings.perturb is not None or output.paths:
        raise InputError("--choose-bandwidth prints a bandwidth and nothing else; leave --perturb and -o out")
    if settings.form != "direct":
        raise InputError("--choose-bandwidth looks at AUROC, not at a bound; leave --form out")
    if is_mlflow_asked():
        raise InputError("--choose-bandwidth finds nothing to log; leave --mlflow out")
    chosen = choose_bandwidth(table, tolerance, columns=columns, scale=settings.scale)
    scale = "" if settings.scale == "probability" else f" --scale {settings.scale}"
    asked = f"certcal bound TABLE --perturb {chosen.bandwidth:g}{scale}"
    lines = [chosen.sentence[:1].upper() + chosen.sentence[1:], f"For samples that had no part in this choice: {asked}"]
    _print_plan_or_bound(chosen, "certcal/bandwidth/1", table, lines, output)


def _print_plan_or_bound(found: Any, schema: str, table: str | None, lines: list[str], output: Output) -> None:
    if not output.as_json:
        click.echo("\n".join(lines))  # at once: a reader that goes away after two lines is no failure
        return
    made = origin(*([] if table is None else [table]))
    document = {"schema": schema, "certcal": __version__, "provenance": made, "source": table, **found.to_dict()}
    click.echo(as_text(for_json(document)), nl=False)
