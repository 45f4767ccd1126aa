"""``certcal completion``: the tab key completes commands, options, choices, columns and files."""

from __future__ import annotations

import click

from certcal.cli.app import command
from certcal.cli.options import NamedChoice


@command(
    ('eval "$(certcal completion bash)"', "for this bash; in ~/.bashrc, for every bash to come"),
    ('eval "$(certcal completion zsh)"', "the same for zsh, in ~/.zshrc after compinit"),
    ("certcal completion fish > ~/.config/fish/completions/certcal.fish", "for fish, once"),
)
@click.argument("shell", type=NamedChoice(["bash", "zsh", "fish"]), metavar="SHELL")
def completion(shell: str) -> None:
    """Print the script that teaches SHELL (bash, zsh or fish) to complete certcal's command lines.

    The tab key then completes commands, options, choices, files, names of metrics and columns of the table. bash needs
    version 4.4 or later.
    """
    from click.shell_completion import ShellComplete, get_completion_class

    from certcal.cli import cli

    kind = get_completion_class(shell)
    assert kind is not None  # the three come with click
    # The base class's method: bash's own runs whatever bash is found, to complain about its version.
    click.echo(ShellComplete.source(kind(cli, {}, "certcal", "_CERTCAL_COMPLETE")))
