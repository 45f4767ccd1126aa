"""click commands that load when they run and show examples in their help."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from certcal._base.checks import InputError
from certcal._base.text import did_you_mean

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Examples = Sequence[tuple[str, str]]
DEBUG = "--debug"
_ALL = "certcal.help-all"
# Letters of an option beside which its help begins; that of a longer one begins on the next line.
_WIDEST = 34


def nearest(word: str, words: Iterable[str], otherwise: str = "") -> str:
    """The end of an error's sentence: the known word that was probably meant, or else something to say instead."""
    hint = did_you_mean(word, words, otherwise)
    return f"; {hint}" if hint else ""


def _write_examples(formatter: click.HelpFormatter, examples: Examples) -> None:
    """Commands to copy, each under what it does; commands are never re-wrapped."""
    if examples:
        formatter.write("\nExamples:\n")
        for line, meaning in examples:
            formatter.write(f"  # {meaning}\n  {line}\n")


def _show_all(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.meta[_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


class SectionedOption(click.Option):
    """An option that stands under a heading in the help."""

    def __init__(self, *args: Any, section: str = "Options", **options: Any) -> None:
        super().__init__(*args, **options)
        self.section = section


def _takes_debug(command: click.Command) -> None:
    """Let a command take the flag; what it does is done where the command is run."""
    if not any(DEBUG in each.opts for each in command.params):
        command.params.append(click.Option([DEBUG], is_flag=True, expose_value=False, hidden=True))


class ExampleCommand(click.Command):
    """A command whose help has its options under headings and ends with examples.

    ``one`` is what exit code 1 says, if not that a requirement is not met.
    """

    def __init__(self, *args: Any, examples: Examples = (), one: str = "", **options: Any) -> None:
        super().__init__(*args, **options)
        self.examples, self.one = examples, one
        _takes_debug(self)
        shows: dict[str, Any] = {"is_flag": True, "is_eager": True, "expose_value": False, "callback": _show_all}
        self.params.append(click.Option(["--help-all"], hidden=True, **shows))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, and say what the command takes when there is more."""
        ctx.allow_extra_args = True
        if not ctx.resilient_parsing:
            self._refuse_repeated(ctx, args)
        extra = super().parse_args(ctx, args)
        if extra and not ctx.resilient_parsing:
            takes = " ".join(self.collect_usage_pieces(ctx)[1:]) or "options only"
            ctx.fail(f"unexpected argument {extra[0]!r}; {ctx.command_path} takes {takes}")
        return extra

    def _refuse_repeated(self, ctx: click.Context, words: list[str]) -> None:
        """Refuse a second value of an option that takes one: click would keep the last without a word."""
        given = self.make_parser(ctx).parse_args(args=list(words))[2]
        for each, times in Counter(given).items():
            single = isinstance(each, click.Option) and not (each.multiple or each.is_flag or each.count)
            if single and times > 1:
                raise click.BadParameter(f"it is given {times} times and takes one value; give it once", ctx, each)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error of the library names options instead of an argument and beside roles."""
        from certcal._base.parts import PartsMissingError
        from certcal.cli.progress import tell

        try:
            return super().invoke(ctx)
        except PartsMissingError as error:  # this part is done, and others are for other processes
            tell(str(error))
        except InputError as error:
            if error.argument is None and not (error.roles or error.add):
                raise
            raise InputError(self.in_options(ctx, error)) from error

    def in_options(self, ctx: click.Context, error: InputError) -> str:
        """What an error of the library says, with options in place of arguments and roles."""
        words = (*error.roles, *error.add)
        options = {role: spelled for role in words if (spelled := self._option_of_argument(role)) != role}
        argument = None if error.argument is None else self._option_of_argument(error.argument)
        replaced = {options.get(role) for role in error.add}
        given = list[str](ctx.find_root().obj or ())
        for place in reversed(range(len(given))):
            option, equals, _ = given[place].partition("=")
            if option in replaced:
                del given[place : place + (1 if equals else 2)]
        return error.said(argument, options, shlex.join(("certcal", *given)))

    def _option_of_argument(self, argument: str) -> str:
        """The option that sets an argument of a verb or names the column of a role; the argument itself without one."""
        for each in self.params:
            if each.name in (argument, f"{argument}_column"):
                return max(each.opts, key=len) if isinstance(each, click.Option) else each.human_readable_name
        return argument

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their headings, all aligned; those that few need only where all are asked for."""
        from certcal.cli.common import is_common

        sections: dict[str, list[tuple[str, str]]] = {}
        left_out = 0
        parameters = [parameter for parameter in self.get_params(ctx) if isinstance(parameter, click.Option)]
        for parameter in sorted(parameters, key=lambda parameter: not isinstance(parameter, SectionedOption)):
            record = parameter.get_help_record(ctx)
            own = isinstance(parameter, SectionedOption) and not parameter.required and _ALL not in ctx.meta
            if record is not None and own and not is_common(ctx.command_path, parameter.opts):
                left_out += 1
            elif record is not None:
                text = f"{parameter.help or ''}{' Required.' if parameter.required else ''}"
                sections.setdefault(getattr(parameter, "section", "Help"), []).append((record[0], text))
        if left_out:
            sections["Help"].append(("--help-all", f"Show the other {left_out} options as well."))
        lengths = [len(name) for rows in sections.values() for name, _ in rows]
        column = max(length for length in lengths if length <= _WIDEST)
        for title, rows in sections.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:<{column}}", text) for name, text in rows], col_max=column)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the exit codes and the examples."""
        judged = any("--require" in each.opts for each in self.params)
        one = self.one or ("a requirement is not met or not shown" if judged else "")
        formatter.write(f"\nExit codes:\n  0 done{one and f', 1 {one}'}, 2 bad input\n")
        _write_examples(formatter, self.examples)


def command(
    *examples: tuple[str, str], cls: type[ExampleCommand] = ExampleCommand, one: str = ""
) -> Callable[[Callable[..., Any]], ExampleCommand]:
    """A function as a command whose help ends with these examples."""
    return click.command(cls=cls, examples=examples, one=one)


class LazyGroup(click.Group):
    """A group that knows its commands' names and one-line helps, and imports a command when it is called.

    Parameters
    ----------
    commands_from
        For each command the module that holds it (under the command's own name) and its one-line help.
    headings
        The command with which each part of the list begins.
    examples
        Commands and what they do.
    """

    def __init__(
        self,
        *args: Any,
        commands_from: Mapping[str, tuple[str, str]],
        headings: Mapping[str, str] | None = None,
        examples: Examples = (),
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self.commands_from = commands_from
        self.headings = headings or {next(iter(commands_from)): "Commands"}
        self.examples = examples
        _takes_debug(self)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order in which they are given."""
        return list(self.commands_from)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command."""
        if cmd_name not in self.commands_from:
            return None
        module, _ = self.commands_from[cmd_name]
        return getattr(import_module(module), cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or suggest the nearest."""
        name = args[0]
        if name not in self.commands_from and not name.startswith("-") and not ctx.resilient_parsing:
            hint = nearest(name, self.commands_from, f"the commands are {', '.join(self.commands_from)}")
            ctx.fail(f"there is no command {name!r}{hint}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Commands for the tab key, without importing any of them, and the group's own options."""
        from click.shell_completion import CompletionItem

        known = self.commands_from.items()
        found = [CompletionItem(name, help=text) for name, (_, text) in known if name.startswith(incomplete)]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the one-line helps without importing anything."""
        parts: dict[str, list[tuple[str, str]]] = {}
        for name, (_, text) in self.commands_from.items():
            parts.setdefault(self.headings.get(name) or list(parts)[-1], []).append((name, text))
        longest = max(map(len, self.commands_from))
        for title, rows in parts.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:<{longest}}", text) for name, text in rows])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        _write_examples(formatter, self.examples)
