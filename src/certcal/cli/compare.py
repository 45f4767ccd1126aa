"""``certcal compare``: robustness of several runs or published logs beside each other."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from certcal._checks import InputError
from certcal.cli._commands import ExampleCommand
from certcal.cli._parameters import file_options, log_options, option, radii_option
from certcal.cli._parse import each, optional, parse_failure, parse_setting

_COMPARING = "Comparing"


@click.command(
    cls=ExampleCommand,
    examples=(
        ("certcal compare small-noise large-noise", "two runs"),
        ("certcal compare a.tsv b.tsv --sigma 0.25 --sigma 0.5 -n 100000", "two published logs"),
        ("certcal compare mine theirs.tsv --sigma 0.5 -n 100000 --alpha 0.001", "a run and a log"),
        ("certcal compare small-noise large-noise --radius 0,0.5,1 -o curves.csv", "at these radii, also to a file"),
        ("certcal compare small-noise large-noise -o comparison.html", "as a page"),
        ("certcal compare gaussian=g25 gaussian=g50 acr=a25 acr=a50", "methods, each at two noise levels"),
        ("certcal compare gaussian=g50 acr=a50 --setting 100,0.01", "as if 100 draws had been made, alpha 0.01"),
        ("certcal compare small-noise large-noise --json | jq '.dominance[0].sentence'", "for scripts"),
    ),
)
@click.argument("run_or_log", nargs=-1, required=True, type=click.Path())
@radii_option(_COMPARING)
@option(
    _COMPARING,
    "--alpha",
    callback=optional(partial(parse_failure, example="0.001")),
    metavar="P",
    help="Certify runs at this level (default: 0.001); of logs, the level claimed (default: inferred).",
)
@option(
    _COMPARING,
    "--setting",
    "settings",
    callback=each(parse_setting),
    multiple=True,
    metavar="N,ALPHA",
    help="Of families: also certified accuracy as N draws at level ALPHA would give it; repeatable. "
    "Default: 100,0.01 1000,0.001 and 100000,0.001.",
)
@log_options
@file_options("Also write a page (.html) or numbers (.json .csv)")
def compare(
    run_or_log: tuple[str, ...],
    radii: tuple[float, ...],
    alpha: float | None,
    settings: tuple[tuple[int, float], ...],
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

    NAME=RUN_OR_LOG puts it into a family, the runs of one training method at different sigma. Families are compared at
    each sigma and by their best over sigma: certified accuracy, the distribution of p_A, other draws and alpha, which
    method is better than which whatever the setting, and what is certified of the confidences.
    """
    from certcal.cli._compared import family_names, load_and_compare, load_families
    from certcal.cli._outputs import NUMBERS, announce, check_outputs, write_outputs
    from certcal.cli._progress import Waiting

    families = family_names(run_or_log)
    if families is None and settings:
        raise InputError("--setting is for families; name them, as in certcal compare gaussian=run-a acr=run-b")
    sources = run_or_log if families is None else tuple(path for _, path in families)
    paths = check_outputs(outputs, NUMBERS, force=force, sources=sources)
    with Waiting() as waiting:
        waiting.stage("comparing")
        if families is None:
            results = load_and_compare(run_or_log, radii, sigmas, draws, alpha)
        else:
            results = load_families(families, radii, sigmas, draws, alpha, settings)
    write_outputs(results, paths, force=force, sources=sources)
    if as_json:
        click.echo(results.to_json(), nl=False)
    else:
        _show(results)
    announce(paths)


def _show(results: Any) -> None:
    from certcal.report.results import FamilyResults

    if isinstance(results, FamilyResults):
        from certcal.cli._show_families import show_families

        show_families(results)
    else:
        from certcal.cli._show_compared import show_compared

        show_compared(results)
