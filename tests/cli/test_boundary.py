"""The edge of the program: every failure leaves as a sentence and an exit code."""

import errno
import sys

import click
import numpy as np
import pyarrow as pa
import pytest

from certcal import InputError
from certcal.cli.app import ExampleCommand
from certcal.cli.errors import run


def failing(error):
    @click.command(cls=ExampleCommand)
    def command() -> None:
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (InputError("bins is 0; pass more"), 2, "certcal: error: bins is 0; pass more\n"),
        (InputError("a \x1b[31m name"), 2, "certcal: error: a \\x1b[31m name\n"),
        (click.UsageError("no such thing"), 2, "certcal: error: no such thing\nTry 'certcal --help'.\n"),
        (click.ClickException("it broke"), 2, "certcal: error: it broke\n"),
        (KeyboardInterrupt(), 130, "certcal: interrupted\n"),
        (click.Abort(), 130, "certcal: interrupted\n"),
        (BrokenPipeError(), 141, ""),
        (
            OSError(errno.ENOSPC, "No space left on device", "x.png"),
            2,
            "certcal: error: x.png: No space left on device; check the disk, the path and its permissions\n",
        ),
    ],
)
def test_every_failure_has_its_exit_code_and_sentence(capsys, error, code, text):
    assert run(failing(error), []) == code
    assert capsys.readouterr().err.lstrip("\n") == text


def _raised_from(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        np._core._exceptions._ArrayMemoryError((10**9, 10**3), np.dtype(float)),
        pa.ArrowMemoryError("malloc of size 64 failed"),
        OSError(errno.ENOMEM, "Cannot allocate memory", "x.csv"),
        RuntimeError("can't start new thread"),
        OSError("Could not find/load shared object file: failed to map segment from shared object"),
        _raised_from(
            InputError("x.csv: cannot be read; check its permissions"), OSError(errno.ENOMEM, "Cannot allocate")
        ),
    ],
)
def test_too_little_memory_is_called_that_and_not_a_bug_or_the_disk(capsys, error):
    assert run(failing(error), []) == 2
    said = capsys.readouterr().err
    assert said.startswith("certcal: error: not enough memory; free some or use a larger machine, or do less at a time")
    assert said.count("\n") == 1


def test_a_sentence_about_memory_stays(capsys):
    sentence = "t.npz: not enough memory to read this array; read fewer columns or rows"
    assert run(failing(_raised_from(InputError(sentence), MemoryError())), []) == 2
    assert capsys.readouterr().err == f"certcal: error: {sentence}\n"


BUG = "this is a bug in certcal: run the command again with --debug and report what it prints\n"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ZeroDivisionError(), "ZeroDivisionError"),
        (ValueError("two\nlines \x1b[31m"), "ValueError (two; lines \\x1b[31m)"),
        (RecursionError("too deep"), "RecursionError (too deep)"),
    ],
)
def test_an_unforeseen_error_is_one_sentence_and_exit_code_70(capsys, error, said):
    assert run(failing(error), []) == 70
    assert capsys.readouterr().err == f"certcal: error: unexpected {said}; {BUG}"


def test_debug_adds_the_traceback(capsys):
    assert run(failing(ValueError("of \x1b[31m")), ["--debug"]) == 70
    first, *others, last = capsys.readouterr().err.splitlines(keepends=True)
    assert first == "Traceback (most recent call last):\n"
    assert "ValueError: of \\x1b[31m\n" in others
    assert last.endswith(BUG)


@pytest.mark.parametrize("words", [["--debug", "measure", "none.csv"], ["measure", "none.csv", "--debug"]])
def test_debug_stands_anywhere_and_leaves_mistakes_as_they_are(certcal_command, words):
    ran = certcal_command(*words)
    assert (ran.code, ran.err) == (2, "certcal: error: none.csv: there is no such file; check the path\n")
    assert "there is no such file" in certcal_command("measure", "--", "--debug").err


def test_debug_is_a_value_where_an_option_takes_one(certcal_command, scores, tmp_path):
    page = tmp_path / "page.html"
    assert certcal_command("report", scores, "--no-intervals", "--title", "--debug", "-o", page).code == 0
    assert "<title>--debug</title>" in page.read_text()


def test_streams_that_are_closed_are_no_failure(monkeypatch):
    monkeypatch.setattr("sys.stdout", None)
    monkeypatch.setattr("sys.stderr", None)
    command = click.command()(lambda: click.echo("done"))
    codes = run(command, []), run(failing(InputError("bins is 0; pass more")), [])
    opened = sys.stdout, sys.stderr
    monkeypatch.undo()
    for stream in opened:
        stream.close()
    assert codes == (0, 2)


def test_success_is_zero(capsys):
    assert run(click.Command("nothing", callback=lambda: None), []) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("words", [(), ("runs",)])
def test_no_command_at_all_is_answered_with_the_help(certcal_command, words):
    ran = certcal_command(*words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == certcal_command(*words, "--help").out


def test_errors_of_options_point_to_the_help(capsys):
    assert run(click.Command("certcal"), ["--what"]) == 2
    assert "Try 'certcal --help'." in capsys.readouterr().err
