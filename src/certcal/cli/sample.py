"""``certcal sample``: sample noise around every input, once, into a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from certcal.cli.app import ExampleCommand
from certcal.cli.emit import OUTPUT, Output, json_option, quiet_option
from certcal.cli.engine import chosen_engine, engine_options
from certcal.cli.errors import INTERRUPTED
from certcal.cli.options import model_options, option, verb_options
from certcal.verbs.sample import decide
from certcal.verbs.sample import sample as verb

_WHAT, _DRAWING, _RUNNING = "Model and data", "Sampling", "Running"
_DECIDING = "Deciding one radius, without a run"
_ENDINGS = (".json", ".parquet")


@click.command(
    cls=ExampleCommand,
    old={"--exact-noise": "--noise=exact"},
    examples=(
        ("certcal sample --model net.onnx --data test.npz --sigma 0.5 -o run", "begin, or resume"),
        ("certcal sample --model net.onnx --data test.npz --sigma 0.5 -n 200000 -o run", "add noise samples to it"),
        ("certcal sample --model mine:f --outputs logits --data t.npz --sigma 1 -o run", "a Python function"),
        ("certcal sample --model n.onnx --data t.npz --sigma 1 --workers 8 -o run", "on eight processes"),
        ("certcal sample --model n.onnx --data t.npz --sigma 1 --device cuda -o run", "on a GPU"),
        ("certcal sample --model n.onnx --data t.npz --sigma 1 --engine ray -o run", "on Ray; see --address"),
        ("certcal sample --model n.onnx --data t.npz --sigma 1 --decide-radius 0.5", "only: is R > 0.5?"),
    ),
)
@model_options(verb, _WHAT)
@verb_options(verb, _WHAT, only=("split", "limit", "every", "resize", "crop"))
@verb_options(verb, _DRAWING, only=("sigma", "n", "n0", "seed", "noise", "histograms"))
@engine_options(_RUNNING)
@verb_options(verb, _RUNNING, only=("batch", "device", "noise_threads", "part"))
@verb_options(decide, _DECIDING, only=("radius", "alpha"), optional=True)
@json_option
@option(
    OUTPUT,
    "-o",
    "--output",
    "out",
    metavar="RUN",
    type=click.Path(),
    help="Folder of the run; new, or to be continued. With --decide-radius, a file (.json .parquet); with --part, too, "
    "a folder.",
)
@option(OUTPUT, "--force", is_flag=True, help="Replace an existing file.")
@quiet_option
def sample(
    model: str,
    data: str,
    workers: int | None,
    engine: str,
    address: str | None,
    gpus: float | None,
    radius: float | None,
    alpha: float | None,
    out: str | None,
    force: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Sample noise around every input of DATA and count what MODEL says, into the folder RUN.

    This is the expensive part, and it is done once: every certificate comes from the run. The same command continues
    a run that was interrupted; a larger -n or --limit adds to it; another model, other data or another sigma is
    refused. With --decide-radius there is no run: sampling ends when that is answered.
    """
    from certcal.cli.progress import tell
    from certcal.cli.sources import existing_files, refuse_inside
    from certcal.data import PartsMissingError
    from certcal.verbs.sample import summarize

    place = chosen_engine(engine, address, workers, gpus, options["device"])
    whole = radius is not None and options["part"] is None
    output = Output(_ENDINGS, as_json, (out,) if whole and out else (), force)
    if place is not None and radius is not None:
        what = "--engine ray" if engine == "ray" else "--workers"
        raise click.UsageError(f"{what} is for runs, and --decide-radius samples in this process; leave one out")
    # Of a folder of data the run's fingerprint tells.
    read = [each for each in existing_files(model, *filter(None, [options["weights"]]), data) if Path(each).is_file()]
    level = {} if alpha is None else {"alpha": alpha}
    if radius is not None:
        output.check(*existing_files(data))
        if options.pop("histograms") > 1:
            raise click.UsageError("--histograms is for runs, and --decide-radius makes none; leave one out")
        try:
            decisions = decide(model, data, radius=radius, out=None if whole else out, **level, **options)
        except PartsMissingError as error:
            tell(str(error))
            return
        output.emit(decisions, sources=read)
        return
    if out is None:
        raise click.UsageError("-o RUN is missing; say in which folder the noise samples go")
    if force or alpha is not None:
        raise click.UsageError(f"{'--force' if force else '--alpha'} is for --decide-radius; leave it out")
    refuse_inside("-o", out, existing_files(data))
    try:
        run = verb(model, data, out=out, engine=place, **options)
    except KeyboardInterrupt:
        kept = f"what was drawn is kept in {out}, the same command resumes"
        click.echo(f"certcal: interrupted; {kept if Path(out).is_dir() else 'nothing was drawn'}", err=True)
        raise click.exceptions.Exit(INTERRUPTED) from None
    found = summarize(run)
    output.emit(found, sources=read)
