"""``certcal bound``: how large the true calibration error can be, from the samples at hand."""

from __future__ import annotations

from typing import Any

import click

from certcal._settings import Spec
from certcal.cli.app import ExampleCommand
from certcal.cli.emit import DRAWN, Output, output_options
from certcal.cli.mlflow import is_mlflow_asked
from certcal.cli.options import Typed, collected, option, score_column_options, settings_options, taken
from certcal.data import OPTIONS
from certcal.verbs.bound import BoundSettings

_SCHEMA = "certcal/bandwidth/1"


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
@settings_options(BoundSettings, "Bounding")
@option(
    "Bounding",
    "--choose-bandwidth",
    "tolerance",
    type=Typed(Spec("", "share")),
    metavar="FALL",
    help="Only print the bandwidth that lowers AUROC by at most FALL; for use on other samples.",
)
@score_column_options
@output_options(DRAWN)
def bound(table: str, tolerance: float | None, output: Output, **options: Any) -> None:
    """Bound the true calibration error of the classifier behind the predictions in TABLE.

    A measured error is only an estimate. A bound holds with probability 1 - delta over the draw of the samples, at any
    sample size, under the assumptions listed with it. TABLE and its columns are those of certcal measure; the samples
    must not have been used to train, choose or recalibrate the classifier.
    """
    from certcal.cli.progress import Waiting
    from certcal.cli.sources import refuse_run
    from certcal.verbs.bound import bound as verb

    columns = taken(options, OPTIONS)
    settings = collected(BoundSettings, options)
    refuse_run(table)
    output.check(table)
    if tolerance is not None:
        _choose(table, tolerance, columns, settings, output)
        return
    with Waiting() as waiting:
        found = verb(table, columns=columns, progress=waiting, settings=settings)
    output.emit(found)


def _choose(table: str, tolerance: float, columns: dict[str, Any], settings: BoundSettings, output: Output) -> None:
    from certcal import __version__
    from certcal._checks import InputError
    from certcal._json import as_text, for_json
    from certcal.verbs.bound import choose_bandwidth

    if settings.perturb is not None or output.paths:
        raise InputError("--choose-bandwidth prints a bandwidth and nothing else; leave --perturb and -o out")
    if is_mlflow_asked():
        raise InputError("--choose-bandwidth finds nothing to log; leave --mlflow out")
    chosen = choose_bandwidth(table, tolerance, columns=columns)
    if output.as_json:
        document = {"schema": _SCHEMA, "certcal": __version__, "source": table, **chosen.to_dict()}
        click.echo(as_text(for_json(document)), nl=False)
        return
    click.echo(chosen.sentence[:1].upper() + chosen.sentence[1:])
    click.echo(f"For samples that had no part in this choice: certcal bound TABLE --perturb {chosen.bandwidth:g}")
