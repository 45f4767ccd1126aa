"""``certcal sample``: draw noise around every input, once, into a folder."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from certcal.cli._boundary import INTERRUPTED
from certcal.cli._commands import ExampleCommand
from certcal.cli._engine_options import chosen_engine, engine_options
from certcal.cli._parameters import OUTPUT, json_option, number, option, quiet_option
from certcal.cli._parse import optional, parse_failure, parse_positive, parse_radius
from certcal.cli.options import model_options

if TYPE_CHECKING:
    from certcal.cli._progress import Waiting
    from certcal.models import Model
    from certcal.smoothing import Run

_WHAT, _DRAWING, _RUNNING = "What is sampled", "Drawing", "Running"
_DECIDING = "Deciding instead of keeping a run"
_MOST = 2**31 - 1


@click.command(
    cls=ExampleCommand,
    examples=(
        ("certcal sample --model net.onnx --data test.npz --sigma 0.5 -o run", "begin, or resume"),
        ("certcal sample --model net.onnx --data test.npz --sigma 0.5 -n 200000 -o run", "add draws to it"),
        ("certcal sample --model mine:f --outputs logits --data t.npz --sigma 1 -o run", "a Python function"),
        ("certcal sample --model n.onnx --data t.npz --sigma 1 --workers 8 -o run", "on eight processes"),
        ("certcal sample --model n.onnx --data t.npz --sigma 1 --engine ray -o run", "on Ray; see --address"),
        ("certcal sample --model n.onnx --data t.npz --sigma 1 --decide-radius 0.5", "only: is R > 0.5?"),
    ),
)
@model_options(_WHAT)
@number(_WHAT, "--limit", least=1, most=10**9, metavar="N", help="Only the first N samples. Default: all.")
@option(
    _DRAWING,
    "--sigma",
    required=True,
    callback=optional(parse_positive),
    metavar="S",
    help="Standard deviation of the noise.",
)
@number(
    _DRAWING, "-n", "n", least=1, most=_MOST, default="100000", metavar="N", help="Draws that count. Default: 100000."
)
@number(
    _DRAWING, "--n0", least=1, most=_MOST, default="100", metavar="N", help="Draws that choose the class. Default: 100."
)
@number(_DRAWING, "--seed", least=0, most=2**64 - 1, default="0", metavar="N", help="Of the noise. Default: 0.")
@option(_DRAWING, "--exact-noise", is_flag=True, help="Discretised noise for inputs on k/255; no rounding error.")
@engine_options(_RUNNING)
@number(_RUNNING, "--batch", least=1, most=1 << 24, default="500", metavar="N", help="Rows per call. Default: 500.")
@option(
    _DECIDING,
    "--decide-radius",
    callback=optional(parse_radius),
    metavar="R",
    help="Draw only until it is clear whether a sample's radius is above R, at most -n times.",
)
@option(
    _DECIDING,
    "--alpha",
    callback=optional(partial(parse_failure, example="0.001")),
    metavar="P",
    help="Chance that a verdict on a sample is wrong. Default: 0.001.",
)
@json_option
@option(
    OUTPUT,
    "-o",
    "--output",
    metavar="RUN",
    type=click.Path(),
    help="The folder of the run, new or begun before; when deciding, a file (.json .parquet).",
)
@option(OUTPUT, "--force", is_flag=True, help="Let -o replace a file of decisions.")
@quiet_option
def sample(
    model: str,
    weights: str | None,
    kind: Any,
    data: str,
    limit: int | None,
    sigma: float,
    n: int,
    n0: int,
    seed: int,
    exact_noise: bool,
    workers: int | None,
    engine: str,
    address: str | None,
    gpus: float | None,
    batch: int,
    decide_radius: float | None,
    alpha: float | None,
    output: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Draw noise around every input of DATA and count what MODEL says, into the folder RUN.

    This is the expensive part, and it is done once: every certificate comes from the run. The same command continues
    a run that was interrupted; a larger -n or --limit adds to it; another model, other data or another sigma is
    refused. With --decide-radius there is no run: one question is answered with far fewer draws.
    """
    from certcal.cli._progress import Waiting
    from certcal.cli._sources import existing_files, refuse_inside

    place = chosen_engine(engine, address, workers, gpus)
    drawing = {"sigma": sigma, "n0": n0, "seed": seed, "noise": "exact" if exact_noise else "gaussian", "batch": batch}
    if decide_radius is not None:
        from certcal.cli._deciding import check_decisions_file, decided, hand_over

        if engine == "ray":
            raise click.UsageError("--engine ray is for runs, and --decide-radius draws in this process; leave one out")
        file = check_decisions_file(output, force=force, workers=workers or 1)
        question = {"radius": decide_radius, "budget": n, "alpha": 0.001 if alpha is None else alpha}
        with Waiting(counted="samples") as waiting:
            decisions = decided(*_loaded(model, weights, kind, data, limit, waiting), waiting, **question, **drawing)
        hand_over(decisions, data, file, force=force, as_json=as_json)
        return
    if output is None:
        raise click.UsageError("-o RUN is missing; say in which folder the draws go")
    if force or alpha is not None:
        raise click.UsageError(f"{'--force' if force else '--alpha'} is for --decide-radius; leave it out")
    refuse_inside("-o", output, existing_files(data))
    with Waiting(counted="draws") as waiting:
        arguments = _loaded(model, weights, kind, data, limit, waiting)
        run = _drawn(*arguments, waiting, **drawing, n=n, out=output, engine=place, data_source=data)
        waiting.stage("checking")
        state = run.state()
    from certcal.cli._run_shown import show_run, to_json

    if as_json:
        click.echo(to_json(run, state), nl=False)
    else:
        show_run(run, state)


def _loaded(
    model: str, weights: str | None, kind: Any, data: str, limit: int | None, waiting: Waiting
) -> tuple[Model, Any, Any]:
    """The model, the inputs and the labels."""
    from certcal.cli._sources import loaded

    found, samples = loaded(model, weights, kind, data, None, limit, waiting)
    return found, samples.inputs, samples.labels


def _drawn(model: Model, inputs: Any, labels: Any, waiting: Waiting, **settings: Any) -> Run:
    """A run with all its draws."""
    from certcal.smoothing import sample as draw

    before: list[int] = []

    def progress(finished: int, total: int) -> None:
        if not before:
            waiting.stage("drawing", total, finished)
        else:
            waiting.advance(finished - before[-1])
        before[:] = [finished]

    waiting.stage("trying the model")
    try:
        return draw(model, inputs, labels, progress=progress, **settings)
    except KeyboardInterrupt:
        begun = Path(settings["out"]).is_dir()
        kept = (
            f"what was drawn is kept in {settings['out']}, the same command resumes" if begun else "nothing was drawn"
        )
        click.echo(f"certcal: interrupted; {kept}", err=True)
        raise click.exceptions.Exit(INTERRUPTED) from None
