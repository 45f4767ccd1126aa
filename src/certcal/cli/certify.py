"""``certcal certify``: the worst that certified intervals allow, exactly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from certcal.cli._commands import ExampleCommand
from certcal.cli._mlflow import log_if_asked, mlflow_option
from certcal.cli._parameters import certifying_options, interval_column_options, number_output_options, run_options

if TYPE_CHECKING:
    from certcal.report.results import CertifiedResults

_ALPHA_OF_RUNS = 0.001


@click.command(
    cls=ExampleCommand,
    examples=(
        ("certcal certify run", "a run of certcal sample, at radii up to the largest certified one"),
        ("certcal certify run --radius .25,.5,1 --familywise", "at these, for all samples together"),
        ("certcal certify run --radius .5 --confidence all", "the kinds of certificates side by side"),
        ("certcal certify run --radius .5 -o intervals.parquet", "keep the intervals"),
        ("certcal certify intervals.csv", "the intervals of any verifier"),
        ("certcal certify bounds.parquet --lower lb --upper ub --correct hit", "say which columns to use"),
        ("certcal certify intervals.csv --by hospital", "each group beside the whole"),
        ("certcal certify intervals.csv --alpha 0.001 --delta 0.01", "intervals that hold with probability 0.999"),
        ("certcal certify intervals.csv --compare", "what ADMM and gradient ascent would have said"),
        ("certcal certify intervals.csv -o report.html -o certified.csv", "write a page and files as well"),
        ("certcal certify intervals.csv --json | jq '.results[0].headline'", "for scripts"),
    ),
)
@click.argument("source", metavar="RUN_OR_TABLE", type=click.Path())
@certifying_options
@run_options
@interval_column_options
@number_output_options
@mlflow_option
def certify(
    source: str,
    radius: str | None,
    bins: int,
    closed: str,
    delta: float,
    alpha: float | None,
    compare: bool,
    confidence: str | None,
    familywise: bool,
    drawn_only: bool,
    as_json: bool,
    outputs: tuple[str, ...],
    force: bool,
    **columns: str | None,
) -> None:
    """Certify the calibration of a smoothed classifier, or of any confidence intervals.

    A run is a folder that certcal sample wrote: certificates are made from its draws at each radius. Each row of a
    table says that, whatever an attacker does, a sample's confidence stays between lower and upper, and whether its
    prediction is correct; any verifier's output will do, as Parquet, CSV, TSV, npz or Arrow. What is printed holds for
    every choice of confidences inside the intervals: it is computed exactly, and rounded in the safe direction.
    """
    from certcal.cli._outputs import INTERVALS, NUMBERS, announce, check_outputs, write_outputs
    from certcal.cli._sources import existing, only_for, refuse_number

    path = existing(source, "run or table")
    settings: dict[str, Any] = {"bins": bins, "closed": closed, "delta": delta}
    if path.is_dir():
        only_for("tables of intervals", source, "a run", columns)
        paths = check_outputs(outputs, (*NUMBERS, INTERVALS), force=force, sources=[path])
        options = {"confidence": confidence or "tight", "familywise": familywise, "drawn_only": drawn_only}
        level = _ALPHA_OF_RUNS if alpha is None else alpha
        results, others = _from_run(path, radius, level, options, settings, compare=compare, paths=paths)
    else:
        given = {"confidence": confidence, "familywise": familywise or None, "drawn_only": drawn_only or None}
        only_for("runs of certcal sample", source, "no folder", given)
        paths = check_outputs(outputs, NUMBERS, force=force, sources=[path])
        from certcal.cli._certified_table import certify_table

        refuse_number(radius, source)
        settings["alpha"] = alpha
        results, others = certify_table(path, {**columns, "radius": radius}, settings, compare=compare), {}
    write_outputs(results, paths, force=force, sources=[path], others=others)
    if as_json:
        click.echo(results.to_json(), nl=False)
    else:
        from certcal.cli._show_certified import show_certified

        show_certified(results)
    announce(paths)
    log_if_asked(results, paths)


def _from_run(
    folder: Path,
    radius: str | None,
    alpha: float,
    options: dict[str, Any],
    settings: dict[str, Any],
    *,
    compare: bool,
    paths: list[Path],
) -> tuple[CertifiedResults, dict[str, Callable[[], bytes]]]:
    """What is certified of a run, and the content of a file of intervals."""
    from certcal._checks import InputError
    from certcal.cli._certified_run import Request, certify_run, intervals_file, kinds_of, parse_radii
    from certcal.cli._outputs import INTERVALS

    kinds = kinds_of(options.pop("confidence"))
    tables = [path for path in paths if path.suffix.lower() == INTERVALS]
    if alpha == 0:
        raise InputError("--alpha is 0, and certificates from noise may fail; give a probability such as 0.001")
    for word, wanted in (("--compare", compare), (f"-o {tables[0] if tables else ''}", bool(tables))):
        if wanted and len(kinds) > 1:
            raise InputError(f"{word} needs one kind of certificate; choose it with --confidence")
    asked = Request(None if radius is None else parse_radii(radius), kinds, alpha, compare=compare, **options)
    results, found = certify_run(folder, asked, settings)

    def intervals() -> bytes:
        assert results.review is not None
        return intervals_file(found, results.review)

    return results, {INTERVALS: intervals}
