"""The command line: parse, call, print. No mathematics here.

``certcal --help`` loads neither numba, SciPy, pyarrow nor matplotlib: commands load when they run.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache

import click

import certcal
from certcal._kernels import when_compiling
from certcal.cli.app import DEBUG, LazyGroup
from certcal.cli.errors import run

__all__ = ["cli", "main"]


@click.group(
    cls=LazyGroup,
    commands_from={
        "measure": ("certcal.cli.measure", "Measure the calibration of a table of predictions."),
        "bound": ("certcal.cli.bound", "Bound the true calibration error behind a table of predictions."),
        "plan": ("certcal.cli.plan", "Plan how many samples such a bound takes."),
        "compare": ("certcal.cli.compare", "Compare two tables of predictions, or runs and published logs."),
        "recalibrate": ("certcal.cli.recalibrate", "Recalibrate scores or confidences, also in the worst case."),
        "report": ("certcal.cli.report", "Write a page that others can read and check."),
        "check": ("certcal.cli.check", "Check a page against its data: compute all of it again."),
        "predict": ("certcal.cli.predict", "Predict the inputs of a data set with a model, as a table."),
        "attack": ("certcal.cli.attack", "Attack a model's confidences without changing its predictions."),
        "verify": ("certcal.cli.verify", "Verify a model over a box of inputs, without noise."),
        "sample": ("certcal.cli.sample", "Sample noise around every input of a model, once, into a folder."),
        "decide": ("certcal.cli.decide", "Decide about one certified radius, with few noise samples."),
        "certify": ("certcal.cli.certify", "Certify the calibration of a run or a table of intervals."),
        "runs": ("certcal.cli.runs", "Inspect runs on disk."),
        "train": ("certcal.cli.train", "Train a network whose confidences withstand attacks."),
        "study": ("certcal.cli.study", "Measure many models and study their calibration."),
        "reproduce": ("certcal.cli.reproduce", "Reproduce a table or figure of a paper."),
        "demo": ("certcal.cli.demo", "Run a demo on bundled data."),
        "completion": ("certcal.cli.completion", "Print tab completion for a shell."),
    },
    headings={"measure": "Tables", "predict": "Models", "train": "Research", "demo": "Other"},
    examples=(
        ("certcal demo", "a first look; needs no data"),
        ("certcal measure predictions.csv", "the metrics of a table"),
        ("certcal bound predictions.csv", "how large its true calibration error can be"),
        ("certcal certify intervals.csv", "the worst that intervals of confidences allow"),
        ("certcal sample --model net.onnx --data test.npz --sigma 0.5 -o run", "sample noise around a model's inputs"),
        ("certcal certify run", "what holds for every perturbation up to a radius"),
        ("certcal attack --model net.safetensors --data test.npz --epsilon 8/255", "how far attacks move confidences"),
        ("certcal verify --model model.json --data loans.csv --epsilon 0.1", "bounds for boosted trees, without noise"),
        ("certcal recalibrate fit run -o map.json", "recalibrate it for the worst case"),
        ("certcal report run", "the same as a page"),
        ("certcal measure --help", "what else it can do"),
    ),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(DEBUG, is_flag=True, expose_value=False, help="Show the traceback of unexpected errors.")
@click.version_option(certcal.__version__, "-V", "--version", message="certcal %(version)s")
def cli() -> None:
    """Measure, bound, certify and repair the calibration of classifiers."""


@cache
def _say_that_it_compiles() -> None:
    from certcal.cli.progress import tell

    tell("compiling numerical code for this machine (once; later runs load it) …")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code.

    0: done. 2: something given cannot be used, said in one sentence. 70: an unexpected error, a bug in certcal; its
    traceback is shown with ``--debug``. 75: Ray ended the process; the same command resumes. 130: interrupted; 129 or
    143: ended by a signal. 141: the reader of the output went away.
    """
    when_compiling(lambda kernel: _say_that_it_compiles())
    sys.exit(run(cli, sys.argv[1:] if arguments is None else list(arguments)))
