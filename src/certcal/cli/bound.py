"""``certcal bound``: how large the true calibration error can be, from the samples at hand."""

from __future__ import annotations

from typing import Any

import click

from certcal import __version__
from certcal._base.checks import InputError
from certcal._base.json import as_text, for_json
from certcal._base.signature import Spec, settings_of
from certcal.cli.app import command
from certcal.cli.emit import DRAWN, Output, origin, output_options
from certcal.cli.options import Typed, bound_column_options, option, pop_columns, verb_options
from certcal.cli.rehearsal import refuse_unanswerable
from certcal.data.schema import OPTIONS
from certcal.verbs.bound import BoundSettings
from certcal.verbs.bound import bound as verb


@command(
    ("certcal bound predictions.csv", "if accuracy (or observed rate) rises with confidence"),
    ("certcal bound predictions.csv --delta 0.01", "to fail with probability 0.01 only"),
    ("certcal bound predictions.csv --by hospital", "each group beside the whole"),
    ("certcal bound predictions.csv --joint", "all bounds hold together"),
    ("certcal bound predictions.csv --lipschitz 2", "if accuracy changes by at most 2 per unit of confidence"),
    ("certcal bound predictions.csv --perturb 0.1", "without such an assumption, for perturbed scores"),
    ("certcal bound predictions.csv --perturb 0.2 --scale logit", "with noise that spares rare outcomes"),
    ("certcal bound predictions.csv --perturb 0.1 --form published", "the paper's formulas, as printed"),
    ("certcal bound predictions.csv --where", "at which scores, with a band"),
    ("certcal bound others.csv --choose-bandwidth 0.001", "how much noise costs little; from other samples"),
    ("certcal bound predictions.npz --classwise", "for each class's own probability, on average"),
    ("certcal bound predictions.csv -o bounds.html -o bounds.json", "write a page and files as well"),
    ("certcal bound predictions.csv --json | jq '.bounds[0].value'", "for scripts"),
)
@click.argument("table", type=click.Path())
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
@bound_column_options
@output_options(DRAWN)
def bound(table: str, by: str | None, tolerance: float | None, where: bool, output: Output, **given: Any) -> None:
    """Bound the true calibration error of the classifier behind the predictions in TABLE.

    A measured error is only an estimate. A bound holds with probability 1 - delta over the draw of the samples, at any
    sample size, under the assumptions listed with it. TABLE and its columns are those of certcal measure; the samples
    must not have been used to train, choose or recalibrate the classifier.
    """
    from certcal.cli.sources import refuse_run
    from certcal.verbs.bound import where as band

    columns = pop_columns(given, OPTIONS)
    settings = settings_of(verb, BoundSettings, **given)
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
    refuse_unanswerable(output.require, verb, {**columns, **given, "by": by})
    output.emit(verb(table, by=by, columns=columns, **given))


def _choose(table: str, tolerance: float, columns: dict[str, Any], settings: BoundSettings, output: Output) -> None:
    from certcal.verbs.bound import choose_bandwidth

    if settings.perturb is not None or output.paths:
        raise InputError("--choose-bandwidth prints a bandwidth and nothing else; leave --perturb and -o out")
    if settings.form != "direct":
        raise InputError("--choose-bandwidth looks at AUROC, not at a bound; leave --form out")
    if output.mlflow:
        raise InputError("--choose-bandwidth finds nothing to log; leave --mlflow out")
    chosen = choose_bandwidth(table, tolerance, columns=columns, scale=settings.scale)
    scale = "" if settings.scale == "probability" else f" --scale {settings.scale}"
    asked = f"certcal bound TABLE --perturb {chosen.bandwidth:g}{scale}"
    lines = [chosen.sentence[:1].upper() + chosen.sentence[1:], f"For samples that had no part in this choice: {asked}"]
    if not output.as_json:
        click.echo("\n".join(lines))  # at once: a reader that goes away after two lines is no failure
        return
    document = {"schema": "certcal/bandwidth/1", "certcal": __version__, "provenance": origin(table), "source": table}
    click.echo(as_text(for_json({**document, **chosen.to_dict()})), nl=False)
