"""``certcal decide``: is each input's certified radius above R? One question, answered with few noise samples."""

from __future__ import annotations

from typing import Any

from certcal.cli.app import command
from certcal.cli.emit import Output, force_option, json_option, output_option, quiet_option
from certcal.cli.options import model_options, verb_options
from certcal.cli.sources import existing_files, existing_single_files
from certcal.verbs.sample import decide as verb
from certcal.verbs.sample import sample

ENDINGS = (".html", ".txt", ".json", ".csv", ".parquet")
_WHAT, _DRAWING, _RUNNING = "Model and data", "Deciding", "Running"


@command(
    ("certcal decide --model net.onnx --data test.npz --sigma 0.5 --radius 0.5", "is R > 0.5?"),
    ("certcal decide --model n.onnx --data t.npz --sigma 1 --radius 0.5 -o decided.json", "keep the decisions"),
    ("certcal decide --model n.onnx --data t.npz --sigma 1 --radius 0.5 --part 3/16 -o decided", "in a job array"),
)
@model_options(sample, _WHAT)
@verb_options(verb, _DRAWING, only=("radius", "alpha"))
@verb_options(sample, _DRAWING, only=("sigma", "n", "n0", "seed", "noise"))
@verb_options(sample, _RUNNING, only=("batch", "device", "noise_threads", "part"))
@json_option
@output_option(
    "FILE",
    "Also write a page (.html), a text (.txt) or the decisions (.json .csv .parquet); with --part, the folder that "
    "keeps them.",
    required=False,
)
@force_option
@quiet_option
def decide(model: str, data: str, out: str | None, force: bool, as_json: bool, **options: Any) -> None:
    """Decide for each input of DATA whether its certified radius is above a radius R.

    Noise is sampled only until that is clear, at most n times. There is no run: another radius is another question.
    """
    whole = options["part"] is None
    output = Output(ENDINGS, as_json, (out,) if whole and out else (), force)
    output.check(*existing_files(data))
    found = verb(model, data, out=None if whole else out, **options)
    output.emit(found, sources=existing_single_files(model, options["weights"], data))
