"""``certcal runs``: look at runs on disk."""

from __future__ import annotations

import click

from certcal.cli.app import LazyGroup, command
from certcal.cli.emit import Output, json_option, quiet_option

_EXAMPLES = (
    ("certcal runs show run", "what was sampled, with what, and how complete it is"),
    ("certcal runs show run --json | jq .complete", "for scripts"),
)


@click.group(
    cls=LazyGroup,
    commands_from={"show": ("certcal.cli.runs", "Show what was sampled, with what, and how complete it is.")},
    examples=_EXAMPLES,
)
def runs() -> None:
    """Inspect runs on disk."""


@command(*_EXAMPLES)
@click.argument("run", type=click.Path())
@json_option
@quiet_option
def show(run: str, as_json: bool) -> None:
    """Show what is in the folder RUN that certcal sample wrote.

    Every shard is read and checked; a damaged one is named, and sampled again by the command that is shown.
    """
    from certcal.verbs.sample import summarize

    found = summarize(run)
    Output((), as_json, (), force=False).emit(found, sources=[run])
