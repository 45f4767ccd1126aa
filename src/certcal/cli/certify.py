"""``certcal certify``: the worst that certified intervals allow, exactly."""

from __future__ import annotations

from typing import Any

import click

from certcal._base.signature import settings_of
from certcal.cli.app import command
from certcal.cli.emit import DRAWN, Output, output_options
from certcal.cli.options import column_options, option, pop_columns, verb_options
from certcal.verbs.certification import INTERVALS
from certcal.verbs.certify import CertifySettings, images_of
from certcal.verbs.certify import certify as verb

ROLES = ("lower", "upper", "correct", "outcome", "prediction", "label", "certified")
OF_RUNS = ("kind", "familywise", "accounting", "drawn_only")
_RUN = "Certificates from a run"


@command(
    ("certcal certify run", "a run of certcal sample, at radii up to the largest certified one"),
    ("certcal certify run --radius .25,.5,1 --familywise", "at these, for all samples together"),
    ("certcal certify run --radius .5 --kind all", "the kinds of certificates side by side"),
    ("certcal certify run --radius .5 -o intervals.parquet", "keep the intervals"),
    ("certcal certify intervals.csv", "the intervals of any verifier"),
    ("certcal certify bounds.parquet --lower lb --upper ub --correct hit", "say which columns to use"),
    ("certcal certify intervals.csv --by hospital", "each group beside the whole"),
    ("certcal certify intervals.csv --alpha 0.001 --delta 0.01", "intervals that hold with probability 0.999"),
    ("certcal certify intervals.csv --compare", "what ADMM and gradient ascent would have said"),
    ("certcal certify run --compare --grid --accounting published", "as papers count and search"),
    ("certcal certify run --edges equal-mass --adaptive", "equal-mass bins, frozen and recomputed"),
    ("certcal certify intervals.csv -o report.html -o certified.csv", "write a page and files as well"),
    ("certcal certify run --radius .5 --json | jq '.headline'", "for scripts"),
)
@click.argument("source", metavar="RUN_OR_TABLE", type=click.Path())
@verb_options(verb, "Certifying", skip=OF_RUNS)
@verb_options(verb, _RUN, only=OF_RUNS)
@option(
    _RUN, "--data", metavar="DATA", type=click.Path(), help="Inputs of the run, to show the most influential samples."
)
@column_options(
    *ROLES, "radius_column", by="Certify", texts={"outcome": "Outcomes of a binary score, in place of correct (0/1)."}
)
@output_options((*DRAWN, INTERVALS))
def certify(
    source: str, by: str | None, radius_column: str | None, data: str | None, output: Output, **options: Any
) -> None:
    """Certify the calibration of a smoothed classifier, or of any confidence intervals.

    A run is a folder that certcal sample wrote: certificates are made from its draws at each radius. Each row of a
    table says that, whatever an attacker does, a sample's confidence stays between lower and upper, and whether its
    prediction is correct; any verifier's output will do, as any table that measure reads. What is printed holds for
    every choice of confidences inside the intervals: it is computed exactly, and rounded in the safe direction.
    """
    from certcal._base.checks import InputError
    from certcal.cli.sources import existing

    columns = {**pop_columns(options, ROLES), "radius": radius_column}
    asked = settings_of(verb, CertifySettings, **options)
    path = existing(source, "run or table")
    if not path.is_dir():
        output.endings = DRAWN
    output.check(path)
    tables = [each for each in output.paths if each.suffix.lower() == INTERVALS]
    if tables and len(asked.kind) > 1:
        raise InputError(f"-o {tables[0]} needs one kind of certificate; choose it with --kind")
    found = verb(path, by=by, columns=columns, **options)
    shown = {} if data is None else images_of(found, data)
    output.emit(found, sources=[path] if data is None else [path, data], **shown)
