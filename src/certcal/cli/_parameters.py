"""Options that several commands share: one name, one meaning, one wording each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import click

from certcal.cli._commands import SectionedOption
from certcal.cli._completing import complete_columns, complete_metrics
from certcal.cli._parse import (
    Choice,
    each,
    optional,
    parse_bin_count,
    parse_bins,
    parse_failure,
    parse_level,
    parse_positive,
    parse_radii,
    parse_radius_texts,
    parse_resamples,
    parse_size,
    whole_number,
)
from certcal.cli._progress import be_quiet

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
Decorator = Callable[[Decorated], Decorated]

COLUMNS, MEASURING, CERTIFYING = "Columns (found by their names when not given)", "Measuring", "Certifying"
FITTING = "Fitting and judging"
RUN, LOGS, OUTPUT = "Certificates from a run", "Published logs (a run knows these itself)", "Output"
KINDS = ("tight", "tangent", "bernstein", "cdf", "standard", "all")
MOST_SEED = 2**63 - 1


def option(section: str, *names: str, **settings: Any) -> Callable[[Decorated], Decorated]:
    """An option under a heading of the help."""
    return click.option(*names, cls=SectionedOption, section=section, show_default=False, **settings)


def options(*decorators: Callable[[Any], Any]) -> Callable[[Decorated], Decorated]:
    """Several options, in the order in which the help shows them."""

    def decorate(command: Decorated) -> Decorated:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


def number(section: str, *names: str, least: int, most: int, **settings: Any) -> Callable[[Decorated], Decorated]:
    """An option that takes a whole number."""
    return option(section, *names, callback=optional(whole_number(least, most)), **settings)


def column(name: str, text: str, metavar: str = "COLUMN") -> Callable[[Decorated], Decorated]:
    """An option that names a column of the table."""
    return option(COLUMNS, name, metavar=metavar, help=text, shell_complete=complete_columns)


def _by(verb: str) -> Callable[[Any], Any]:
    return column("--by", f"{verb} each value of this column beside the whole.")


_PREDICTION = column("--prediction", "Predicted classes, compared with the label.")
_LABEL = column("--label", "True classes.")
_PER_CLASS = (
    column("--probabilities", "Per class: a prefix, 'p_*', names with commas, or lists.", "COLUMNS"),
    column("--logits", "The same for logits.", "COLUMNS"),
)
_WEIGHT = column("--weight", "Sample weights.")
_ENDS = (
    column("--lower", "Lower ends of the intervals."),
    column("--upper", "Upper ends of the intervals."),
)
_CERTIFIED = column("--certified", "0/1: is the row certified? Default: all are.")

score_column_options = options(
    column("--confidence", "Confidences, or binary scores."),
    column("--correct", "0/1: was the prediction right (binary: the outcome)?"),
    _PREDICTION,
    _LABEL,
    *_PER_CLASS,
)
column_options = options(score_column_options, _WEIGHT, _by("Measure"))
report_column_options = options(
    column("--confidence", "Confidences, or binary scores; of a run, the kind of interval.", "COLUMN"),
    column("--correct", "0/1: is the prediction right (binary: the outcome)?"),
    _PREDICTION,
    _LABEL,
    *_PER_CLASS,
    _WEIGHT,
    *_ENDS,
    _CERTIFIED,
    column("--radius-column", "Of intervals: the radius of each row."),
    _by("Show"),
)
recalibrated_column_options = options(
    column("--confidence", "Confidences; of intervals, without a perturbation; of a run, the kind of interval."),
    column("--correct", "0/1: is the prediction right (binary: the outcome)?"),
    _PREDICTION,
    _LABEL,
    *_PER_CLASS,
    _WEIGHT,
    *_ENDS,
    _CERTIFIED,
    column("--radius-column", "Of intervals: the radius of each row."),
    column("--sample", "Of intervals at several radii: which sample a row is of."),
)


def model_options(section: str) -> Callable[[Decorated], Decorated]:
    """A model and the inputs that it is tried on."""
    return options(
        option(
            section,
            "--model",
            required=True,
            metavar="MODEL",
            type=click.Path(),
            help="A file (.onnx .safetensors), or module:name.",
        ),
        option(
            section,
            "--weights",
            metavar="FILE",
            type=click.Path(),
            help="Weights (.safetensors) of a torch network that is given as module:name.",
        ),
        option(
            section,
            "--outputs",
            "kind",
            type=Choice(["logits", "probabilities"]),
            metavar="KIND",
            help="What the model returns, logits or probabilities, unless its file says so.",
        ),
        option(
            section,
            "--data",
            required=True,
            metavar="DATA",
            type=click.Path(),
            help="npz with inputs and labels, any table with a label, a folder of images (idx, CIFAR, one folder per "
            "class), digits or fashion-mnist.",
        ),
    )


def closed_option(section: str) -> Callable[[Decorated], Decorated]:
    """Which end of a bin belongs to it."""
    text = "Bins are [a, b) or (a, b]. Default: left."
    return option(section, "--closed", type=Choice(["left", "right"]), default="left", help=text)


def delta_option(section: str) -> Callable[[Decorated], Decorated]:
    """The failure probability of a bound."""
    return option(
        section,
        "--delta",
        callback=partial(parse_failure, example="0.05"),
        default="0.05",
        metavar="P",
        help="Chance that a population bound may fail. Default: 0.05.",
    )


def bin_counts_option(section: str) -> Callable[[Decorated], Decorated]:
    """Numbers of bins."""
    return option(
        section,
        "--bins",
        callback=parse_bins,
        multiple=True,
        default=("15",),
        metavar="N[,N...]",
        help="How many bins; repeatable. Default: 15.",
    )


def bin_count_option(section: str) -> Callable[[Decorated], Decorated]:
    """The number of bins of a guarantee."""
    text = "Bins of the calibration error. Default: 15."
    return option(section, "--bins", callback=parse_bin_count, default="15", metavar="N", help=text)


def bootstrap_option(default: str | None, text: str) -> Callable[[Decorated], Decorated]:
    """The number of resamples."""
    return option(
        MEASURING,
        "--bootstrap",
        callback=optional(parse_resamples),
        default=default,
        metavar="N",
        help=f"Intervals from {text}",
    )


resampling_options = options(
    option(
        MEASURING,
        "--method",
        type=Choice(["percentile", "bca"]),
        default="percentile",
        help="Kind of interval. Default: percentile.",
    ),
    option(
        MEASURING,
        "--level",
        callback=parse_level,
        default="0.95",
        metavar="P",
        help="Of the intervals. Default: 0.95.",
    ),
    number(
        MEASURING, "--seed", least=0, most=MOST_SEED, default="0", metavar="N", help="Of the bootstrap. Default: 0."
    ),
)
measuring_options = options(
    bin_counts_option(MEASURING),
    closed_option(MEASURING),
    bootstrap_option("0", "N resamples. Default: 0, none."),
    resampling_options,
)
memory_option = option(
    MEASURING,
    "--memory",
    callback=optional(parse_size),
    metavar="SIZE",
    help="Read larger tables in pieces. Default: half of this machine's.",
)

radius_option = option(
    CERTIFYING,
    "--radius",
    "radii",
    callback=parse_radii,
    multiple=True,
    metavar="R[,R...]",
    help="Radii to certify at. Default: quarters of sigma for a run, all radii of a table.",
)
chosen_radii_option = option(
    CERTIFYING,
    "--radius",
    "radii",
    callback=optional(parse_radius_texts),
    metavar="R[,R...]",
    help="Radii. Default: half of sigma for a run, all radii of a table.",
)
alpha_option = option(
    CERTIFYING,
    "--alpha",
    callback=optional(partial(parse_failure, example="0.001", zero=True)),
    metavar="P",
    help="Chance that a sample's interval is wrong. Default: 0.001 for a run; what a table says in its column "
    "alpha, or 0; rows that the verifier abstained on must stay in the table, with certified = 0.",
)
familywise_options = options(
    option(RUN, "--familywise", is_flag=True, help="Let alpha be the chance that any sample's certificate is wrong."),
    option(RUN, "--drawn-only", is_flag=True, help="Certify the samples that are drawn, if the run is not complete."),
)
log_options = options(
    option(
        LOGS,
        "--sigma",
        "sigmas",
        callback=each(parse_positive),
        multiple=True,
        metavar="S",
        help="Noise of the logs: once for all, or once for each in order.",
    ),
    option(
        LOGS,
        "-n",
        "draws",
        callback=each(whole_number(1, 10**9)),
        multiple=True,
        metavar="N",
        help="Draws per sample of the logs: once for all, or once for each.",
    ),
)


def radii_option(section: str) -> Callable[[Decorated], Decorated]:
    """Radii at which runs are compared."""
    return option(
        section,
        "--radius",
        "radii",
        callback=parse_radii,
        multiple=True,
        metavar="R[,R...]",
        help="Radii; repeatable. Default: steps up to the largest.",
    )


json_option = option(OUTPUT, "--json", "as_json", is_flag=True, help="Print JSON for machines, with all digits.")


def force_option(replacing: str = "-o") -> Callable[[Decorated], Decorated]:
    """Whether existing files may be replaced, by those options."""
    return option(OUTPUT, "--force", is_flag=True, help=f"Let {replacing} replace existing files.")


quiet_option = option(
    OUTPUT,
    "-q",
    "--quiet",
    is_flag=True,
    expose_value=False,
    callback=be_quiet,
    help="Nothing on standard error but errors.",
)


def files_option(text: str) -> Callable[[Decorated], Decorated]:
    """Files to write."""
    return option(
        OUTPUT,
        "-o",
        "--output",
        "outputs",
        multiple=True,
        metavar="FILE",
        type=click.Path(),
        help=f"{text}; repeatable.",
    )


def file_options(text: str, replacing: str = "-o") -> Callable[[Decorated], Decorated]:
    """JSON, files, and how loud."""
    return options(json_option, files_option(text), force_option(replacing), quiet_option)


output_options = options(
    option(
        OUTPUT,
        "--metric",
        "metrics",
        multiple=True,
        metavar="NAME",
        shell_complete=complete_metrics,
        help="Only this metric; repeatable.",
    ),
    option(OUTPUT, "--explain", is_flag=True, help="Say in a sentence what each number claims."),
    option(OUTPUT, "--no-diagram", is_flag=True, help="Leave out the reliability diagram."),
    file_options("Also write a page (.html), a diagram (.png .svg .pdf) or numbers (.json .csv)"),
)
keep_option = option(
    OUTPUT, "--keep", metavar="RUN", type=click.Path(), help="Keep the draws in this folder, for certcal certify."
)
