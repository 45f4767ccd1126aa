"""What a command says on standard error, unless it was told to be quiet."""

from __future__ import annotations

import click

from certcal._base.progress import IS_TAKEN

_QUIET = "certcal.quiet"


def be_quiet(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    """Remember for the rest of the command that nobody wants to hear of progress."""
    if value:
        ctx.meta[_QUIET] = True
        taken = IS_TAKEN.set(True)
        ctx.call_on_close(lambda: IS_TAKEN.reset(taken))


def is_quiet() -> bool:
    """Whether the command that is running was told to be.

    Examples
    --------
    >>> is_quiet()
    False
    """
    ctx = click.get_current_context(silent=True)
    return ctx is not None and _QUIET in ctx.meta


def tell(sentence: str) -> None:
    """Say something on standard error that is good to know, unless told to be quiet."""
    from certcal._base.text import printable

    if not is_quiet():
        click.echo(printable(sentence), err=True)  # names of files may hold anything
