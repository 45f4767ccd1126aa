"""Options that several commands share: one name, one meaning, one wording each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from certcal.cli._commands import SectionedOption
from certcal.cli._completing import complete_metrics
from certcal.cli._parse import (
    Choice,
    optional,
    parse_bins,
    parse_level,
    parse_resamples,
    whole_number,
)
from certcal.cli._progress import be_quiet

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

COLUMNS, MEASURING, CERTIFYING = "Columns (found by their names when not given)", "Measuring", "Certifying"
RUN, LOGS, OUTPUT = "Certificates from a run", "Published logs (a run knows these itself)", "Output"
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


def closed_option(section: str) -> Callable[[Decorated], Decorated]:
    """Which end of a bin belongs to it."""
    text = "Bins are [a, b) or (a, b]. Default: left."
    return option(section, "--closed", type=Choice(["left", "right"]), default="left", help=text)


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
