"""Options that several commands share."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from certcal.cli._commands import SectionedOption

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

MOST_BINS = 1_000_000


def parse_bins(ctx: click.Context | None, param: click.Parameter | None, values: Sequence[str]) -> tuple[int, ...]:
    """Turn ``15``, ``5,10,15`` and repetitions of these into numbers of bins, each once, smallest first.

    Examples
    --------
    >>> parse_bins(None, None, ["15", "5,10,15"])
    (5, 10, 15)
    """
    counts: set[int] = set()
    for part in (part.strip() for value in values for part in value.split(",")):
        if not (part.isdecimal() and len(part) <= 7 and 1 <= int(part) <= MOST_BINS):
            raise click.BadParameter(f"{part!r} is not a whole number from 1 to {MOST_BINS}", ctx, param)
        counts.add(int(part))
    return tuple(sorted(counts))


def parse_level(ctx: click.Context | None, param: click.Parameter | None, value: str) -> float:
    """Turn ``0.95`` or ``95%`` into a level strictly between 0 and 1.

    Examples
    --------
    >>> parse_level(None, None, "95%"), parse_level(None, None, ".9")
    (0.95, 0.9)
    """
    text = value.strip()
    try:
        level = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        level = 0.0
    if not 0 < level < 1:
        raise click.BadParameter(f"{text!r} is not between 0 and 1, such as 0.95", ctx, param)
    return level


def parse_size(ctx: click.Context | None, param: click.Parameter | None, value: str | None) -> int | None:
    """Turn ``2GB``, ``500 MB`` or ``1.5GiB`` into bytes.

    Examples
    --------
    >>> parse_size(None, None, "2GB"), parse_size(None, None, "1.5 GiB"), parse_size(None, None, None)
    (2000000000, 1610612736, None)
    """
    if value is None:
        return None
    match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*([kmgt]?)(i?)b?", value.strip().lower())
    if match is None or (match[3] and not match[2]):
        raise click.BadParameter(f"{value!r} is not a size such as 500MB or 2GB", ctx, param)
    return int(float(match[1]) * (1024 if match[3] else 1000) ** " kmgt".index(match[2] or " "))


def column_options(command: Decorated) -> Decorated:
    """Which column holds what."""
    several = "COLUMNS"
    return _with_options(
        command,
        "Columns (found by their names when not given)",
        _option("--confidence", metavar="COLUMN", help="Confidences, or binary scores."),
        _option("--correct", metavar="COLUMN", help="0/1: was the prediction right (binary: the outcome)?"),
        _option("--prediction", metavar="COLUMN", help="Predicted classes, compared with the label."),
        _option("--label", metavar="COLUMN", help="True classes."),
        _option("--probabilities", metavar=several, help="Per class: a prefix, 'p_*', names with commas, or lists."),
        _option("--logits", metavar=several, help="The same for logits."),
        _option("--weight", metavar="COLUMN", help="Sample weights."),
        _option("--by", metavar="COLUMN", help="Measure each value of this column beside the whole."),
    )


def measuring_options(command: Decorated) -> Decorated:
    """Bins and bootstrap."""
    methods = click.Choice(["percentile", "bca"])
    return _with_options(
        command,
        "Measuring",
        _option(
            "--bins",
            callback=parse_bins,
            multiple=True,
            default=("15",),
            metavar="N[,N...]",
            help="How many bins; repeatable. Default: 15.",
        ),
        _option(
            "--closed",
            type=click.Choice(["left", "right"]),
            default="left",
            help="Bins are [a, b) or (a, b].",
        ),
        _option(
            "--bootstrap", type=click.IntRange(0, 1_000_000), default=0, metavar="N", help="Intervals from N resamples."
        ),
        _option("--method", type=methods, default="percentile", help="Kind of interval. Default: percentile."),
        _option(
            "--level", callback=parse_level, default="0.95", metavar="LEVEL", help="Of the intervals. Default: 0.95."
        ),
        _option("--seed", type=click.IntRange(min=0), default=0, metavar="N", help="Of the bootstrap. Default: 0."),
    )


def memory_option(command: Decorated) -> Decorated:
    """When to read in pieces."""
    text = "Read larger tables in pieces. Default: half of this machine's."
    return _with_options(command, "Measuring", _option("--memory", callback=parse_size, metavar="SIZE", help=text))


def output_options(command: Decorated) -> Decorated:
    """Where the result goes."""
    return _with_options(
        command,
        "Output",
        _option("--metric", "metrics", multiple=True, metavar="NAME", help="Only this metric; repeatable."),
        _option("--explain", is_flag=True, help="Say in a sentence what each number claims."),
        _option("--no-diagram", is_flag=True, help="Leave out the reliability diagram."),
        _option("--json", "as_json", is_flag=True, help="Print JSON for machines, with all digits."),
        _option(
            "-o",
            "--output",
            "outputs",
            multiple=True,
            metavar="FILE",
            help="Also write a diagram (.png .svg .pdf) or numbers (.json .csv); repeatable.",
        ),
        _option("--force", is_flag=True, help="Let -o replace existing files."),
    )


def _option(*names: str, **settings: Any) -> tuple[tuple[str, ...], dict[str, Any]]:
    return names, settings


def _with_options(command: Decorated, section: str, *options: tuple[tuple[str, ...], dict[str, Any]]) -> Decorated:
    for names, settings in reversed(options):
        command = click.option(*names, cls=SectionedOption, section=section, show_default=False, **settings)(command)
    return command
