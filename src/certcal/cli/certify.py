"""``certcal certify``: the worst that certified intervals allow, exactly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from certcal.cli._commands import ExampleCommand, SectionedOption

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

# The time grows with the square of the number of bins: this many take seconds.
MOST_BINS = 10_000

_COLUMNS = "Columns (found by their names when not given)"
_CERTIFYING = "Certifying"
_OUTPUT = "Output"


def _option(section: str, *names: str, **settings: Any) -> Callable[[Decorated], Decorated]:
    return click.option(*names, cls=SectionedOption, section=section, show_default=False, **settings)


@click.command(
    cls=ExampleCommand,
    examples=(
        ("certcal certify intervals.csv", "everything the intervals certify"),
        ("certcal certify bounds.parquet --lower lb --upper ub --correct hit", "say which columns to use"),
        ("certcal certify intervals.csv --by hospital", "each group beside the whole"),
        ("certcal certify intervals.csv --alpha 0.001 --delta 0.01", "intervals that hold with probability 0.999"),
        ("certcal certify intervals.csv --compare", "what ADMM and gradient ascent would have said"),
        ("certcal certify intervals.csv -o certified.json -o certified.csv", "write files as well"),
        ("certcal certify intervals.csv --json | jq '.results[0].calibration_error.certified.value'", "for scripts"),
    ),
)
@click.argument("table", type=click.Path())
@_option(_COLUMNS, "--lower", metavar="COLUMN", help="Lower ends of the intervals.")
@_option(_COLUMNS, "--upper", metavar="COLUMN", help="Upper ends of the intervals.")
@_option(_COLUMNS, "--correct", metavar="COLUMN", help="0/1: is the prediction right?")
@_option(_COLUMNS, "--prediction", metavar="COLUMN", help="Predicted classes, compared with the label.")
@_option(_COLUMNS, "--label", metavar="COLUMN", help="True classes.")
@_option(_COLUMNS, "--certified", metavar="COLUMN", help="0/1: is the row certified? Default: all are.")
@_option(_COLUMNS, "--radius", metavar="COLUMN", help="Radius that a row's interval is for: one line each.")
@_option(_COLUMNS, "--by", metavar="COLUMN", help="Certify each value of this column beside the whole.")
@_option(
    _CERTIFYING,
    "--bins",
    type=click.IntRange(1, MOST_BINS),
    default=15,
    metavar="N",
    help="Bins of the calibration error. Default: 15.",
)
@_option(
    _CERTIFYING, "--closed", type=click.Choice(["left", "right"]), default="left", help="Bins are [a, b) or (a, b]."
)
@_option(
    _CERTIFYING,
    "--delta",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.05,
    metavar="P",
    help="Chance that a population bound may fail. Default: 0.05.",
)
@_option(
    _CERTIFYING,
    "--alpha",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.0,
    metavar="P",
    help="Chance that a row's interval is wrong. Default: 0.",
)
@_option(_CERTIFYING, "--compare", is_flag=True, help="Also run ADMM and gradient ascent (needs torch; slow).")
@_option(_OUTPUT, "--json", "as_json", is_flag=True, help="Print JSON for machines, with all digits.")
@_option(
    _OUTPUT,
    "-o",
    "--output",
    "outputs",
    multiple=True,
    metavar="FILE",
    help="Also write the numbers (.json .csv); repeatable.",
)
@_option(_OUTPUT, "--force", is_flag=True, help="Let -o replace existing files.")
def certify(
    table: str,
    bins: int,
    closed: str,
    delta: float,
    alpha: float,
    compare: bool,
    as_json: bool,
    outputs: tuple[str, ...],
    force: bool,
    **columns: str | None,
) -> None:
    """Certify the calibration of the confidence intervals in TABLE.

    Each row says that, whatever an attacker does, a sample's confidence stays between lower and upper, and whether its
    prediction is correct. What is printed holds for every choice of confidences inside the intervals: it is computed
    exactly, and rounded in the safe direction. Any verifier's output will do, as Parquet, CSV, TSV, npz or Arrow.
    """
    from certcal.cli._certified import CertifiedResults, check_number_outputs, to_json, write_numbers
    from certcal.cli._progress import Waiting
    from certcal.cli._rivals import prepare_rivals, run_methods
    from certcal.data import read_intervals
    from certcal.report.certificates import Line, Method
    from certcal.worst_case import certify as certified_summary

    paths = check_number_outputs(outputs, force=force, source=Path(table))
    lines: list[Line] = []
    methods: list[Method] = []
    with Waiting() as waiting:
        if compare:
            waiting.stage("preparing the comparison")
            prepare_rivals()
        waiting.stage("reading")
        loaded = read_intervals(table, columns)
        waiting.stage("certifying")
        for part in loaded.parts():
            summary = certified_summary(
                part.lower,
                part.upper,
                part.correct,
                certified=part.certified,
                bins=bins,
                closed=closed,
                delta=delta,
                alpha=alpha,
            )
            lines.append(Line(part.radius, part.group, summary))
            if compare and part.group is None and summary.n_certified:
                methods += run_methods(part, bins, closed, waiting)
    results = CertifiedResults(
        source=str(loaded.path),
        n=len(loaded),
        layout=loaded.layout,
        lines=lines,
        methods=methods,
        conventions={"bins": bins, "closed": closed, "delta": delta, "alpha": alpha},
    )
    write_numbers(results, paths, force=force)
    if as_json:
        click.echo(to_json(results), nl=False)
    else:
        from certcal.cli._show_certified import show_certified

        show_certified(results)
    for path in paths:
        click.echo(f"wrote {path}", err=True)
