"""``certcal sample``: sample noise around every input, once, into a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from certcal.cli.app import command
from certcal.cli.emit import Output, json_option, output_option, quiet_option
from certcal.cli.engine import engine_options, pop_engine
from certcal.cli.errors import leave_interrupted
from certcal.cli.options import model_options, verb_options
from certcal.verbs.sample import sample as verb

_WHAT, _DRAWING, _RUNNING = "Model and data", "Sampling", "Running"


@command(
    ("certcal sample --model net.onnx --data test.npz --sigma 0.5 -o run", "begin, or resume"),
    ("certcal sample --model net.onnx --data test.npz --sigma 0.5 -n 200000 -o run", "add noise samples to it"),
    ("certcal sample --model mine:f --outputs logits --data t.npz --sigma 1 -o run", "a Python function"),
    ("certcal sample --model n.onnx --data t.npz --sigma 1 --workers 8 -o run", "on eight processes"),
    ("certcal sample --model n.onnx --data t.npz --sigma 1 --device cuda -o run", "on a GPU"),
    ("certcal sample --model n.onnx --data t.npz --sigma 1 --engine ray -o run", "on Ray; see --address"),
)
@model_options(verb, _WHAT)
@verb_options(verb, _DRAWING, only=("sigma", "n", "n0", "seed", "noise", "histograms"))
@engine_options(_RUNNING)
@verb_options(verb, _RUNNING, only=("batch", "device", "noise_threads", "part"))
@json_option
@output_option("RUN", "Folder of the run; new, or to be continued.")
@quiet_option
def sample(model: str, data: str, out: str, as_json: bool, **options: Any) -> None:
    """Sample noise around every input of DATA and count what MODEL says, into the folder RUN.

    This is the expensive part, and it is done once: every certificate comes from the run. The same command continues
    a run that was interrupted; a larger -n or --limit adds to it; another model, other data or another sigma is
    refused.
    """
    from certcal.cli.sources import existing_files, existing_single_files, refuse_inside
    from certcal.verbs.sample import summarize

    place = pop_engine(options)
    refuse_inside("-o", out, existing_files(data))
    try:
        run = verb(model, data, out=out, engine=place, **options)
    except KeyboardInterrupt:
        kept = f"what was drawn is kept in {out}, the same command resumes"
        leave_interrupted(kept if Path(out).is_dir() else "nothing was drawn")
    found = summarize(run)
    # Of a folder of data the run's fingerprint tells.
    read = existing_single_files(model, options["weights"], data)
    Output((), as_json, (), force=False).emit(found, sources=read)
