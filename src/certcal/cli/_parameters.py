"""Options that several commands share."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import click

from certcal.cli._commands import SectionedOption

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

MOST_BINS = 1_000_000
# The time of a worst case grows with the square of the number of bins: this many take seconds.
MOST_CERTIFIED_BINS = 10_000

Option = tuple[tuple[str, ...], dict[str, Any]]


def parse_bins(ctx: click.Context | None, param: click.Parameter | None, values: Sequence[str]) -> tuple[int, ...]:
    """Turn ``15``, ``5,10,15`` and repetitions of these into numbers of bins, each once, smallest first.

    Examples
    --------
    >>> parse_bins(None, None, ["15", "5,10,15"])
    (5, 10, 15)
    """
    number = whole_number(1, MOST_BINS)
    return tuple(sorted({number(ctx, param, part) for value in values for part in value.split(",")}))


def parse_bin_count(ctx: click.Context | None, param: click.Parameter | None, value: str) -> int:
    """Turn ``15`` into a number of bins; several numbers are refused in words of their own.

    Examples
    --------
    >>> parse_bin_count(None, None, "15")
    15
    """
    if "," in value:
        raise click.BadParameter(
            f"{value!r} is several numbers of bins; give one, and run it once for each", ctx, param
        )
    return whole_number(1, MOST_CERTIFIED_BINS)(ctx, param, value)


def whole_number(least: int, most: int) -> Callable[[click.Context | None, click.Parameter | None, str], int]:
    """A parser of whole numbers in a range.

    Examples
    --------
    >>> whole_number(0, 9)(None, None, " 7 ")
    7
    """

    def parse(ctx: click.Context | None, param: click.Parameter | None, value: str) -> int:
        text = value.strip()
        if text[:1] == "-" and text[1:].isdecimal():
            raise click.BadParameter(f"{text} is not in the range from {least} to {most}", ctx, param)
        if not (text.isdecimal() and len(text) <= len(str(most)) and least <= int(text) <= most):
            raise click.BadParameter(f"{text!r} is not a whole number from {least} to {most}", ctx, param)
        return int(text)

    return parse


def parse_share(
    ctx: click.Context | None, param: click.Parameter | None, value: str, *, example: str = "0.95", zero: bool = False
) -> float:
    """Turn ``0.95`` or ``95%`` into a number strictly between 0 and 1, or 0 where that is allowed.

    Examples
    --------
    >>> parse_share(None, None, "95%"), parse_share(None, None, ".9"), parse_share(None, None, "0", zero=True)
    (0.95, 0.9, 0.0)
    """
    text = value.strip()
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = math.nan
    if not (0 < share < 1 or (zero and share == 0)):
        allowed = "neither 0 nor" if zero else "not"
        raise click.BadParameter(f"{text!r} is {allowed} between 0 and 1, such as {example}", ctx, param)
    return share


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


def _parse_alpha(ctx: click.Context | None, param: click.Parameter | None, value: str | None) -> float | None:
    return None if value is None else parse_share(ctx, param, value, example="0.001", zero=True)


def _option(*names: str, **settings: Any) -> Option:
    return names, settings


_COLUMNS, _OUTPUT = "Columns (found by their names when not given)", "Output"
_PREDICTION = _option("--prediction", metavar="COLUMN", help="Predicted classes, compared with the label.")
_LABEL = _option("--label", metavar="COLUMN", help="True classes.")
_CLOSED = _option("--closed", type=click.Choice(["left", "right"]), default="left", help="Bins are [a, b) or (a, b].")
_JSON = _option("--json", "as_json", is_flag=True, help="Print JSON for machines, with all digits.")
_FORCE = _option("--force", is_flag=True, help="Let -o replace existing files.")


def _files(text: str) -> Option:
    return _option("-o", "--output", "outputs", multiple=True, metavar="FILE", help=f"Also write {text}; repeatable.")


def _by(verb: str) -> Option:
    return _option("--by", metavar="COLUMN", help=f"{verb} each value of this column beside the whole.")


def column_options(command: Decorated) -> Decorated:
    """Which column of a table of predictions holds what."""
    several = "COLUMNS"
    return _with_options(
        command,
        _COLUMNS,
        _option("--confidence", metavar="COLUMN", help="Confidences, or binary scores."),
        _option("--correct", metavar="COLUMN", help="0/1: was the prediction right (binary: the outcome)?"),
        _PREDICTION,
        _LABEL,
        _option("--probabilities", metavar=several, help="Per class: a prefix, 'p_*', names with commas, or lists."),
        _option("--logits", metavar=several, help="The same for logits."),
        _option("--weight", metavar="COLUMN", help="Sample weights."),
        _by("Measure"),
    )


def interval_column_options(command: Decorated) -> Decorated:
    """Which column of a table of intervals holds what."""
    return _with_options(
        command,
        _COLUMNS,
        _option("--lower", metavar="COLUMN", help="Lower ends of the intervals."),
        _option("--upper", metavar="COLUMN", help="Upper ends of the intervals."),
        _option("--correct", metavar="COLUMN", help="0/1: is the prediction right?"),
        _PREDICTION,
        _LABEL,
        _option("--certified", metavar="COLUMN", help="0/1: is the row certified? Default: all are."),
        _by("Certify"),
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
        _CLOSED,
        _option(
            "--bootstrap",
            callback=whole_number(0, 1_000_000),
            default="0",
            metavar="N",
            help="Intervals from N resamples.",
        ),
        _option("--method", type=methods, default="percentile", help="Kind of interval. Default: percentile."),
        _option(
            "--level", callback=parse_share, default="0.95", metavar="LEVEL", help="Of the intervals. Default: 0.95."
        ),
        _option(
            "--seed",
            callback=whole_number(0, 2**63 - 1),
            default="0",
            metavar="N",
            help="Of the bootstrap. Default: 0.",
        ),
    )


def certifying_options(command: Decorated) -> Decorated:
    """Radii, bins, failure probabilities and rivals."""
    return _with_options(
        command,
        "Certifying",
        _option(
            "--radius",
            metavar="R[,R...]",
            help="Of a run: radii to certify at. Default: quarters of sigma. Of a table: its column of radii.",
        ),
        _option(
            "--bins",
            callback=parse_bin_count,
            default="15",
            metavar="N",
            help="Bins of the calibration error. Default: 15.",
        ),
        _CLOSED,
        _option(
            "--delta",
            callback=partial(parse_share, example="0.05"),
            default="0.05",
            metavar="P",
            help="Chance that a population bound may fail. Default: 0.05.",
        ),
        _option(
            "--alpha",
            callback=_parse_alpha,
            metavar="P",
            help="Chance that a sample's interval is wrong. Default: 0.001 for a run; what a table says in its column "
            "alpha, or 0; rows that the verifier abstained on must stay in the table, with certified = 0.",
        ),
        _option("--compare", is_flag=True, help="Also run ADMM and gradient ascent (needs torch; slow)."),
    )


def run_options(command: Decorated) -> Decorated:
    """How certificates are made from a run."""
    kinds = click.Choice(["tight", "tangent", "bernstein", "cdf", "standard", "all"])
    return _with_options(
        command,
        "Certificates from a run",
        _option("--confidence", type=kinds, help="Kind of interval, or all side by side. Default: tight."),
        _option("--familywise", is_flag=True, help="Let alpha be the chance that any sample's certificate is wrong."),
        _option("--drawn-only", is_flag=True, help="Certify the samples that are drawn, if the run is not complete."),
    )


def memory_option(command: Decorated) -> Decorated:
    """When to read in pieces."""
    text = "Read larger tables in pieces. Default: half of this machine's."
    return _with_options(command, "Measuring", _option("--memory", callback=parse_size, metavar="SIZE", help=text))


def output_options(command: Decorated) -> Decorated:
    """What is shown of measurements and where it goes."""
    return _with_options(
        command,
        _OUTPUT,
        _option("--metric", "metrics", multiple=True, metavar="NAME", help="Only this metric; repeatable."),
        _option("--explain", is_flag=True, help="Say in a sentence what each number claims."),
        _option("--no-diagram", is_flag=True, help="Leave out the reliability diagram."),
        _JSON,
        _files("a diagram (.png .svg .pdf) or numbers (.json .csv)"),
        _FORCE,
    )


def keep_option(command: Decorated) -> Decorated:
    """Where a run goes that would be thrown away."""
    text = "Keep the draws in this folder, for certcal certify."
    return _with_options(command, _OUTPUT, _option("--keep", metavar="RUN", help=text))


def number_output_options(command: Decorated) -> Decorated:
    """Where numbers without a diagram go."""
    files = _files("the numbers (.json .csv), or a run's intervals (.parquet)")
    return _with_options(command, _OUTPUT, _JSON, files, _FORCE)


def _with_options(command: Decorated, section: str, *options: Option) -> Decorated:
    for names, settings in reversed(options):
        command = click.option(*names, cls=SectionedOption, section=section, show_default=False, **settings)(command)
    return command
