"""``certcal compare``: robustness of several runs or published logs beside each other."""

from __future__ import annotations

from functools import partial

import click

from certcal.cli._commands import ExampleCommand
from certcal.cli._parameters import file_options, log_options, option, radii_option
from certcal.cli._parse import optional, parse_share

_COMPARING = "Comparing"


@click.command(
    cls=ExampleCommand,
    examples=(
        ("certcal compare small-noise large-noise", "two runs"),
        ("certcal compare a.tsv b.tsv --sigma 0.25 --sigma 0.5 -n 100000", "two published logs"),
        ("certcal compare mine theirs.tsv --sigma 0.5 -n 100000 --alpha 0.001", "a run and a log"),
        ("certcal compare small-noise large-noise --radius 0,0.5,1 -o curves.csv", "at these radii, also to a file"),
        ("certcal compare small-noise large-noise -o comparison.html", "as a page"),
        ("certcal compare small-noise large-noise --json | jq '.dominance[0].sentence'", "for scripts"),
    ),
)
@click.argument("run_or_log", nargs=-1, required=True, type=click.Path())
@radii_option(_COMPARING)
@option(
    _COMPARING,
    "--alpha",
    callback=optional(partial(parse_share, example="0.001")),
    metavar="P",
    help="Certify runs at this level (default: 0.001); of logs, the level claimed (default: inferred).",
)
@log_options
@file_options("Also write a page (.html) or numbers (.json .csv)")
def compare(
    run_or_log: tuple[str, ...],
    radii: tuple[float, ...],
    alpha: float | None,
    sigmas: tuple[float, ...],
    draws: tuple[int, ...],
    as_json: bool,
    outputs: tuple[str, ...],
    force: bool,
) -> None:
    """Compare the certified robustness of runs and published logs.

    RUN_OR_LOG is a folder that 'certcal sample' made, or a log with the columns idx, label, predict, radius and
    correct. Shown are certified accuracy at each radius and its best over all given, the average certified radius with
    its warning, quantiles of p_A, and for each pair whether one is better whatever the setting.
    """
    from certcal.cli._compared import load_and_compare
    from certcal.cli._outputs import NUMBERS, announce, check_outputs, write_outputs
    from certcal.cli._progress import Waiting

    paths = check_outputs(outputs, NUMBERS, force=force, sources=run_or_log)
    with Waiting() as waiting:
        waiting.stage("comparing")
        results = load_and_compare(run_or_log, radii, sigmas, draws, alpha)
    write_outputs(results, paths, force=force, sources=run_or_log)
    if as_json:
        click.echo(results.to_json(), nl=False)
    else:
        from certcal.cli._show_compared import show_compared

        show_compared(results)
    announce(paths)
