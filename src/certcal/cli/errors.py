"""The edge of the program: whatever goes wrong leaves as one sentence and an exit code, never as a traceback."""

from __future__ import annotations

import codecs
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import click

from certcal._base.checks import InputError
from certcal._base.memory import is_out_of_memory
from certcal._base.text import printable, to_ascii
from certcal.cli.app import DEBUG

BAD_INPUT, UNFORESEEN, LOST, INTERRUPTED, BROKEN_PIPE = 2, 70, 75, 130, 141
_NO_MEMORY = (
    "not enough memory; free some or use a larger machine, or do less at a time: fewer rows, columns or workers, a "
    "smaller --batch, and for 'certcal measure' a Parquet file, which is read in pieces"
)


def run(command: click.Command, arguments: list[str]) -> int:
    """Run a command and return its exit code.

    Our commands take ``--debug`` anywhere before ``--``.

    Examples
    --------
    >>> @click.command()
    ... def fail() -> None:
    ...     raise InputError("the sky is empty; wait for night")
    >>> run(fail, [])
    2
    """
    with _unwinding_when_ended() as ended:
        code = _run_to_exit_code(command, arguments)
    return 128 + ended[0] if ended and code == INTERRUPTED else code


def _run_to_exit_code(command: click.Command, arguments: list[str]) -> int:
    _survive_any_text()
    try:
        with _warnings_in_a_line():
            result = command.main(
                args=list(arguments), prog_name="certcal", standalone_mode=False, obj=tuple(arguments)
            )
        sys.stdout.flush()
    except click.exceptions.Exit as leaving:
        return _exit_code_after_flush(leaving.exit_code)
    except (click.Abort, KeyboardInterrupt):
        complain("interrupted", prefix="certcal: ")
        return INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return BAD_INPUT
    except click.UsageError as error:
        complain(usage_sentence(error))
        if error.ctx is not None:
            complain(f"Try '{error.ctx.command_path} --help'.", prefix="")
        return BAD_INPUT
    except click.ClickException as error:
        complain(error.format_message())
        return BAD_INPUT
    except InputError as error:
        sentence = str(error)
        complain(_NO_MEMORY if is_out_of_memory(error) and "memory" not in sentence else sentence)
        return BAD_INPUT
    except BrokenPipeError:
        _abandon_stdout()
        return BROKEN_PIPE
    except Exception as error:
        if is_out_of_memory(error):
            _abandon_stdout()
            complain(_NO_MEMORY)
            return BAD_INPUT
        if isinstance(error, OSError):
            _abandon_stdout()
            where = f"{error.filename}: " if error.filename else ""
            complain(f"{where}{error.strerror or error}; check the disk, the path and its permissions")
            return BAD_INPUT
        if DEBUG in arguments:
            for line in traceback.format_exc().splitlines():
                complain(line, prefix="")
        complain(_bug_sentence(error))
        return UNFORESEEN
    return result if isinstance(result, int) else 0


def leave_interrupted(kept: str) -> NoReturn:
    """Say what is kept of a command that was interrupted, and leave."""
    click.echo(f"certcal: interrupted; {printable(kept)}", err=True)
    raise click.exceptions.Exit(INTERRUPTED)


@contextmanager
def _unwinding_when_ended() -> Generator[list[int]]:
    """Leave as after Ctrl-C when a signal asks this process to end, so that nothing temporary stays behind.

    A second signal ends it at once. What was told to ignore a signal (nohup) still does.
    """
    ended: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield ended
        return

    def leave(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        ended.append(number)
        raise KeyboardInterrupt

    asked = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    asked = [each for each in asked if signal.getsignal(each) is signal.SIG_DFL]
    for each in asked:
        signal.signal(each, leave)
    try:
        yield ended
    finally:
        for each in asked:
            signal.signal(each, signal.SIG_DFL)


def _bug_sentence(error: Exception) -> str:
    what = "; ".join(filter(None, map(str.strip, str(error).splitlines())))
    said = f"{type(error).__name__}{f' ({what})' if what else ''}"
    return f"unexpected {said}; this is a bug in certcal: run the command again with {DEBUG} and report what it prints"


def usage_sentence(error: click.UsageError) -> str:
    """What is wrong with a command line, in our form: the option, what is wrong, what would be right.

    Examples
    --------
    >>> usage_sentence(click.NoSuchOption("--bin", possibilities=["--bins", "--by"]))
    "there is no option '--bin'; did you mean '--bins'?"
    >>> usage_sentence(click.NoSuchOption("--html"))
    "there is no option '--html'; write -o page.html"
    >>> usage_sentence(click.BadParameter("'x' is not a number", param=click.Option(["-b", "--bins"])))
    "--bins: 'x' is not a number"
    >>> usage_sentence(click.MissingParameter(param=click.Option(["--data"], metavar="FILE")))
    '--data FILE is missing'
    """
    if isinstance(error, click.NoSuchOption):
        from certcal.cli.emit import DRAWN

        called = error.option_name.lstrip("-").replace("-", "_")
        # What an argument is called in Python leads to its flag.
        known = [each for each in (error.ctx.command.params if error.ctx else ()) if isinstance(each, click.Option)]
        flags = [each.opts[0] for each in known if each.name == called]
        nearest = [*flags, *(error.possibilities or ())][:1]
        hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
        if f".{called}" in DRAWN:  # the name of the file says what is written
            hint = f"; write -o page.{called}"
        return f"there is no option {error.option_name!r}{hint}"
    if isinstance(error, click.MissingParameter) and error.param is not None:
        name = parameter_name(error.param)
        metavar = error.param.metavar if isinstance(error.param, click.Option) else None
        choices = getattr(error.param.type, "choices", ())
        one = f"; give one of {', '.join(choices)}" if choices else ""
        return f"{name}{f' {metavar}' if metavar else ''} is missing{one}"
    if isinstance(error, click.BadParameter) and error.param is not None:
        return f"{parameter_name(error.param)}: {error.message}"
    if isinstance(error, click.BadOptionUsage):
        return f"{error.option_name} needs a value" if "requires" in error.message else error.message
    return error.format_message()


def parameter_name(parameter: click.Parameter) -> str:
    """The long name of an option, or what an argument is called in the help.

    Examples
    --------
    >>> parameter_name(click.Option(["-o", "--output"])), parameter_name(click.Argument(["table"]))
    ('--output', 'TABLE')
    """
    if isinstance(parameter, click.Option):
        return max(parameter.opts, key=len)
    return parameter.human_readable_name.removesuffix("...")


def _exit_code_after_flush(code: int) -> int:
    """The exit code, or that of a reader that went away before the output was through."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _abandon_stdout()
        return BROKEN_PIPE
    except OSError as error:
        _abandon_stdout()
        complain(f"the output cannot be written ({error.strerror})")
        return BAD_INPUT
    return code


def complain(sentence: str, prefix: str = "certcal: error: ") -> None:
    """Say on standard error what is wrong."""
    try:
        sys.stderr.write(f"{prefix}{printable(sentence)}\n")
        sys.stderr.flush()
    except OSError:
        pass  # nobody is listening; the exit code says it all


@contextmanager
def _warnings_in_a_line() -> Generator[None]:
    """Say our own warnings as sentences, without the file and the line of code that they come from."""
    from certcal.cli.progress import tell

    with warnings.catch_warnings():
        others = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *rest: Any) -> None:
            if category.__module__.startswith("certcal."):
                tell(f"certcal: {message}")
            else:
                others(message, category, *rest)

        warnings.showwarning = show
        yield


def _abandon_stdout() -> None:
    """Point standard output at nothing, so that the interpreter's last flush does not fail again."""
    try:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)
    except (OSError, ValueError):  # standard output is no file, as in tests
        pass


def _survive_any_text() -> None:
    """Let characters that the terminal's encoding lacks appear in other letters instead of failing."""
    codecs.register_error("certcal.ascii", _in_ascii)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started us
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        reconfigure: Any = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="certcal.ascii")


def _in_ascii(error: UnicodeError) -> tuple[str | bytes, int]:
    """Dashes, minus signs, dots and the letters of formulas have ASCII cousins; anything else is escaped."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lost = error.object[error.start : error.end]
    return to_ascii(lost), error.end
