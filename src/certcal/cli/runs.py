"""``certcal runs``: look at runs on disk."""

from __future__ import annotations

import click

from certcal.cli._commands import ExampleCommand, LazyGroup
from certcal.cli._parameters import json_option, quiet_option

_EXAMPLES = (
    ("certcal runs show run", "what was drawn, with what, and how complete it is"),
    ("certcal runs show run --json | jq .complete", "for scripts"),
)


@click.group(
    cls=LazyGroup,
    commands_from={"show": ("certcal.cli.runs", "What was drawn, with what, and how complete it is.")},
    examples=_EXAMPLES,
)
def runs() -> None:
    """Look at runs on disk."""


@click.command(cls=ExampleCommand, examples=_EXAMPLES)
@click.argument("run", type=click.Path())
@json_option
@quiet_option
def show(run: str, as_json: bool) -> None:
    """Show what is in the folder RUN that certcal sample wrote.

    Every shard is read and checked; a damaged one is named, and drawn again by the command that is shown.
    """
    from certcal.cli._progress import Waiting
    from certcal.cli._run_shown import show_run, to_json
    from certcal.cli._sources import existing
    from certcal.smoothing import open_run

    opened = open_run(existing(run, "run"))
    with Waiting() as waiting:
        waiting.stage("checking")
        state = opened.state()
    if as_json:
        click.echo(to_json(opened, state), nl=False)
    else:
        show_run(opened, state)
