"""``certcal report``: a page about a table, a run or several runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from certcal._checks import InputError
from certcal.cli._commands import ExampleCommand
from certcal.cli._parameters import (
    CERTIFYING,
    MEASURING,
    OUTPUT,
    RUN,
    alpha_option,
    bin_counts_option,
    bootstrap_option,
    closed_option,
    delta_option,
    familywise_options,
    files_option,
    force_option,
    json_option,
    memory_option,
    option,
    quiet_option,
    radius_option,
    report_column_options,
    resampling_options,
)
from certcal.cli.compare import log_options
from certcal.cli.emit import WRITTEN, Output


@click.command(
    cls=ExampleCommand,
    examples=(
        ("certcal report predictions.csv", "a table of predictions: writes predictions.html"),
        ("certcal report predictions.csv --by hospital -o review.html", "with each group, under a name of its own"),
        ("certcal report intervals.parquet", "a table of certified intervals"),
        ("certcal report run --data test.npz", "a run of certcal sample, with its images"),
        ("certcal report run --radius .25,.5,1 --familywise", "at these radii, for all samples together"),
        ("certcal report small-noise large-noise", "runs beside each other: writes comparison.html"),
        ("certcal report gaussian=g25 gaussian=g50 acr=a25 acr=a50", "training methods, each at two noise levels"),
        ("certcal report predictions.csv --title 'Triage model, July' --open", "open it in a browser"),
    ),
)
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True, type=click.Path())
@bin_counts_option(MEASURING)
@closed_option(MEASURING)
@bootstrap_option(None, "N resamples. Default: 200 for tables of up to a million rows, else 0.")
@resampling_options
@memory_option
@radius_option
@delta_option(CERTIFYING)
@alpha_option
@familywise_options
@option(
    RUN,
    "--data",
    metavar="DATA",
    type=click.Path(),
    help="What the run was drawn around, to show the images that matter most.",
)
@report_column_options
@log_options
@option(OUTPUT, "--title", metavar="TEXT", help="Title of the page. Default: what it is about.")
@option(OUTPUT, "--open", "open_it", is_flag=True, help="Open the page in a browser.")
@json_option
@files_option("The page (.html). Default: named after SOURCE, here. Numbers beside it (.json .csv)")
@force_option()
@quiet_option
@click.pass_context
def report(
    ctx: click.Context,
    sources: tuple[str, ...],
    as_json: bool,
    outputs: tuple[str, ...],
    force: bool,
    title: str | None,
    open_it: bool,
    **options: Any,
) -> None:
    """Write a page about SOURCE that a colleague can read and a reviewer can check.

    SOURCE is a table of predictions or of certified intervals (its columns tell which), the folder of a run, or several
    runs and published logs, which are compared; NAME=SOURCE puts each into a family, as certcal compare does. The page
    is one file that needs no network: the claim in a sentence with what it rests on, figures, tables, how each number
    was computed, and the command that makes it again.
    """
    from certcal.cli._outputs import NUMBERS, PAGE, announce, check_outputs, write_outputs
    from certcal.cli._reporting import KINDS, default_name, kind_of, paths_of, reported, show_reported, unused

    given = [name for name in options if _is_given(ctx, name)]
    kind = kind_of(sources, given)
    unused(kind, sources, given)
    if not any(Path(name).suffix.lower() == PAGE for name in outputs):
        outputs = (default_name(sources), *outputs)
    if kind in ("comparison", "families"):
        _compare(sources, options, Output(WRITTEN, as_json, outputs, force, page={"title": title} if title else {}))
        if open_it:
            _open(next(Path(name) for name in outputs if name.lower().endswith(PAGE)))
        return
    files = paths_of(sources)
    paths = check_outputs(outputs, NUMBERS, force=force, sources=files)
    found = reported(kind, sources, options)
    read = [*files, *([options["data"]] if options["data"] else [])]
    titled = {} if title is None else {"title": title}
    write_outputs(found.results, paths, force=force, sources=read, **titled, **found.page_options)
    if as_json:
        click.echo(found.results.to_json(), nl=False)
    else:
        show_reported(found.results, KINDS[kind], found.notes)
    announce(paths)
    if open_it:
        _open(next(path for path in paths if path.suffix.lower() == PAGE))


def _compare(sources: tuple[str, ...], options: dict[str, Any], output: Output) -> None:
    from certcal.cli._parse import parse_radii
    from certcal.cli.compare import show
    from certcal.verbs.compare import CompareSettings

    if options["alpha"] == 0:
        raise InputError("--alpha is 0, and certificates from noise may fail; give a probability such as 0.001")
    radii = () if options["radius"] is None else parse_radii(None, None, [options["radius"]])
    show(sources, output, CompareSettings(radii, options["alpha"], sigma=options["sigma"], n=options["n"]))


def _is_given(ctx: click.Context, name: str) -> bool:
    return ctx.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT


def _open(path: Path) -> None:
    from certcal.cli._progress import tell

    if click.launch(path.resolve().as_uri()) != 0:
        tell(f"no browser could be started; open {path} in one")
