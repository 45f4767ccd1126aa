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
    optional,
    parse_bin_count,
    parse_bins,
    parse_failure,
    parse_level,
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
interval_column_options = options(
    *_ENDS,
    column("--correct", "0/1: is the prediction right?"),
    _PREDICTION,
    _LABEL,
    _CERTIFIED,
    _by("Certify"),
)
report_column_options = options(
    column("--confidence", "Confidences, or binary scores; of a run, the kind of interval.", "COLUMN"),
    column("--correct", "0/1: is the prediction right (binary: the outcome)?"),
    _PREDICTION,
    _LABEL,
    *_PER_CLASS,
    _WEIGHT,
    *_ENDS,
    _CERTIFIED,
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
    metavar="R[,R...]",
    help="Of a run: radii to certify at. Default: quarters of sigma. Of a table: its column of radii.",
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
certifying_options = options(
    radius_option,
    bin_count_option(CERTIFYING),
    closed_option(CERTIFYING),
    delta_option(CERTIFYING),
    alpha_option,
    option(CERTIFYING, "--compare", is_flag=True, help="Also run ADMM and gradient ascent (needs torch; slow)."),
)
familywise_options = options(
    option(RUN, "--familywise", is_flag=True, help="Let alpha be the chance that any sample's certificate is wrong."),
    option(RUN, "--drawn-only", is_flag=True, help="Certify the samples that are drawn, if the run is not complete."),
)
run_options = options(
    option(
        RUN,
        "--confidence",
        type=Choice(KINDS),
        metavar="KIND",
        help="Kind of interval: tight, tangent, bernstein, cdf or standard; or all side by side. Default: tight.",
    ),
    familywise_options,
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
number_output_options = file_options("Also write a page (.html), numbers (.json .csv), or a run's intervals (.parquet)")
keep_option = option(
    OUTPUT, "--keep", metavar="RUN", type=click.Path(), help="Keep the draws in this folder, for certcal certify."
)
