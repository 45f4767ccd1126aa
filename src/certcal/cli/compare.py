"""``certcal compare``: robustness of several runs or published logs beside each other."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from certcal.cli._commands import ExampleCommand, SectionedOption

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

_COMPARING, _LOGS, _OUTPUT = "Comparing", "Published logs (a run knows these itself)", "Output"


def _option(section: str, *names: str, **settings: Any) -> Callable[[Decorated], Decorated]:
    return click.option(*names, cls=SectionedOption, section=section, show_default=False, **settings)


def parse_radii(ctx: click.Context | None, param: click.Parameter | None, values: Sequence[str]) -> tuple[float, ...]:
    """Turn ``0.5``, ``0,0.25,0.5`` and repetitions of these into radii.

    Examples
    --------
    >>> parse_radii(None, None, ["0.5", "0,0.25"])
    (0.0, 0.25, 0.5)
    """
    radii: set[float] = set()
    for part in (part.strip() for value in values for part in value.split(",")):
        try:
            radius = float(part)
        except ValueError:
            radius = math.nan
        if not 0 <= radius < math.inf:
            raise click.BadParameter(f"{part!r} is not a radius, a number >= 0 such as 0.5", ctx, param)
        radii.add(abs(radius))
    return tuple(sorted(radii))


@click.command(
    cls=ExampleCommand,
    examples=(
        ("certcal compare small-noise large-noise", "two runs"),
        ("certcal compare a.tsv b.tsv --sigma 0.25 --sigma 0.5 -n 100000", "two published logs"),
        ("certcal compare mine theirs.tsv --sigma 0.5 -n 100000 --alpha 0.001", "a run and a log"),
        ("certcal compare small-noise large-noise --radius 0,0.5,1 -o curves.csv", "at these radii, also to a file"),
        ("certcal compare small-noise large-noise --json | jq '.dominance[0].sentence'", "for scripts"),
    ),
)
@click.argument("run_or_log", nargs=-1, required=True, type=click.Path())
@_option(
    _COMPARING,
    "--radius",
    "radii",
    callback=parse_radii,
    multiple=True,
    metavar="R[,R...]",
    help="Radii; repeatable. Default: steps up to the largest.",
)
@_option(
    _COMPARING,
    "--alpha",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="P",
    help="Certify runs at this level (default: 0.001); of logs, the level claimed (default: inferred).",
)
@_option(
    _LOGS,
    "--sigma",
    "sigmas",
    type=click.FloatRange(0, min_open=True),
    multiple=True,
    metavar="S",
    help="Noise of the logs: once for all, or once for each in order.",
)
@_option(
    _LOGS,
    "-n",
    "draws",
    type=click.IntRange(1, 10**9),
    multiple=True,
    metavar="N",
    help="Draws per sample of the logs: once for all, or once for each.",
)
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
    from certcal.cli._outputs import check_number_outputs, write_numbers
    from certcal.cli._progress import Waiting

    paths = [path for source in run_or_log for path in check_number_outputs(outputs, force=force, source=Path(source))]
    paths = list(dict.fromkeys(paths))
    with Waiting() as waiting:
        waiting.stage("comparing")
        results = load_and_compare(run_or_log, radii, sigmas, draws, alpha)
    write_numbers(results, paths, force=force)
    if as_json:
        click.echo(results.to_json(), nl=False)
    else:
        from certcal.cli._show_compared import show_compared

        show_compared(results)
    for path in paths:
        click.echo(f"wrote {path}", err=True)
