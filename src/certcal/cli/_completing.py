"""What the shell offers after a tab, beyond commands, options, choices and files: columns and metrics."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import click

# What a shell would have to quote is not offered.
_PLAIN = re.compile(r"[\w.+-]+")


def complete_columns(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Columns of the table that the command line names, when it can be read.

    Examples
    --------
    >>> complete_columns(click.Context(click.Command("measure")), click.Option(["--by"]), "")
    []
    """
    # While an option still lacks its value, the arguments before it are not assigned to their names yet.
    named: Iterable[Any] = (ctx.params.get(name) for name in ("table", "source", "sources"))
    given = next((value for value in (*named, *ctx.args[:1]) if value), None)
    if given is None:
        return []
    from certcal._checks import InputError
    from certcal.data import open_table

    try:
        names = open_table(given if isinstance(given, str) else given[0]).names
    except (InputError, OSError):
        return []
    return [name for name in names if name.startswith(incomplete) and _PLAIN.fullmatch(name)]


def complete_metrics(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of metrics.

    Examples
    --------
    >>> complete_metrics(click.Context(click.Command("measure")), click.Option(["--metric"]), "smooth")
    ['smooth_ece']
    """
    from certcal.report.names import NAMES

    return [name for name in NAMES if name.startswith(incomplete)]
