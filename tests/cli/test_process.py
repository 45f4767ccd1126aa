"""The command line as a process: exit codes, pipes, encodings, what is loaded."""

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from shutil import ignore_patterns
from tempfile import TemporaryFile

import click
import pytest

import certcal
from certcal.cli import cli
from tests.cli.copies import copies

COMMAND = [sys.executable, "-m", "certcal"]


def run(*arguments, **options):
    environment = {**os.environ, "COLUMNS": "80", "PYTHONIOENCODING": "utf-8"} | options.pop("env", {})
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        capture_output=True,
        check=False,
        text=True,
        encoding="utf-8",
        env=environment,
        **options,
    )


@pytest.fixture(scope="module")
def loaded():
    with copies() as process:
        yield process


def called(*arguments, before=""):
    """Code that calls the command line."""
    return f"{before}from certcal.cli import main; main({[str(argument) for argument in arguments]!r})"


def test_version_and_help_succeed(certcal_command):
    helps = [["--version"], ["--help"], *([name, "--help"] for name in ("measure", "demo", "report"))]
    said = [certcal_command(*words) for words in [*helps, ["completion", "bash"]]]
    assert {(ran.code, ran.err) for ran in said} == {(0, "")}
    assert said[0].out == f"certcal {certcal.__version__}\n"
    for word in ("measure", "demo", "Examples:", "certcal demo"):
        assert word in "".join(ran.out for ran in said[1:])


def every_command(group=cli, words=()):
    """The words of every command, subcommands included."""
    for name in group.commands_from:
        command = group.get_command(click.Context(group), name)
        yield (*words, name)
        if isinstance(command, click.Group):
            yield from every_command(command, (*words, name))


@pytest.mark.parametrize("words", list(every_command()), ids=" ".join)
def test_every_help_fits_and_has_examples_that_name_the_command(certcal_command, words):
    ran = certcal_command(*words, "--help")
    assert (ran.code, ran.err) == (0, "")
    described, examples = ran.out.split("Examples:")
    assert f"certcal {' '.join(words)}" in examples
    assert max(map(len, described.splitlines())) <= 80


def test_a_short_help_names_options_that_exist_and_the_long_one_has_all(certcal_command):
    from certcal.cli.common import COMMON

    assert set(COMMON) <= {" ".join(words) for words in every_command()}
    for name, chosen in COMMON.items():
        short, long = (
            set(
                re.findall(
                    r"(?<![\w-])--?[a-z][\w-]*", certcal_command(*name.split(), words).out.split("Exit codes:")[0]
                )
            )
            for words in ("--help", "--help-all")
        )
        assert set(chosen.split()) <= short, name
        assert len(short) < len(long), name
        assert "--help-all" in short, name


def test_bad_input_is_a_sentence_on_stderr_and_exit_code_two():
    ran = run("measure", "nothing.csv")
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert ran.stderr == "certcal: error: nothing.csv: there is no such file; check the path\n"


def test_a_table_is_measured(scores):
    ran = run("measure", scores)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "ECE" in ran.stdout
    assert "\x1b" not in ran.stdout


def test_what_is_compiled_is_said_once_and_so_is_that_it_cannot_be_kept(tmp_path):
    # A file where a folder has to be: nobody can write there, not even root.
    package = shutil.copytree(
        Path(certcal.__file__).parent, tmp_path / "certcal", ignore=ignore_patterns("__pycache__")
    )
    (package / "_kernels" / "__pycache__").touch()
    (tmp_path / "home").touch()
    table = tmp_path / "many.csv"
    table.write_text("score,outcome\n" + "0.25,0\n0.75,1\n" * 40_000)  # few rows need no compiler
    nowhere = dict.fromkeys(["HOME", "XDG_CACHE_HOME", "LOCALAPPDATA"], str(tmp_path / "home"))
    plain = {"NUMBA_CACHE_DIR": "", "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    kept = {"NUMBA_CACHE_DIR": str(tmp_path / "kernels")}
    ran = [
        run(
            "measure",
            table,
            "--metric",
            "brier_score",  # few kernels
            *("--no-intervals", "--band", "none", "--json"),
            env=nowhere | plain | each,
            cwd=tmp_path,
        )
        for each in ({}, kept, kept)
    ]
    assert [each.stderr for each in ran] == [
        "certcal: no folder for compiled kernels is writable, so each process compiles them anew; "
        "set NUMBA_CACHE_DIR to one\n",
        "compiling numerical code for this machine (once; later runs load it) …\n",
        "",
    ]
    assert [each.returncode for each in ran] == [0, 0, 0]
    assert '"brier_score"' in ran[0].stdout
    found = [json.loads(each.stdout) for each in ran]
    moments = [each["provenance"].pop("created") for each in found]
    assert len(moments) == 3
    assert found[0] == found[1] == found[2]


def test_plain_ascii_terminals_get_plain_ascii(scores):
    ran = run("measure", scores, env={"PYTHONIOENCODING": "ascii"})
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.isascii()
    assert "\\u" not in ran.stdout
    assert "####" in ran.stdout


def test_a_reader_that_goes_away_is_no_error_message(scores, loaded):
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as out, TemporaryFile() as err:
        loaded.start(called("measure", scores), out.fileno(), err.fileno(), dict(os.environ))
        assert loaded.wait() == 141
        err.seek(0)
        assert err.read() == b""


@pytest.mark.parametrize("option", ["--json", "--no-diagram"])
def test_a_full_disk_behind_the_output_is_a_sentence(scores, option, loaded):
    with open("/dev/full", "wb") as full, TemporaryFile("w+") as err:
        loaded.start(called("measure", scores, option), full.fileno(), err.fileno(), dict(os.environ))
        assert loaded.wait() == 2
        err.seek(0)
        said = err.read()
    assert said.startswith("certcal: error: ")
    assert "No space left on device" in said
    assert "Traceback" not in said


def test_an_interrupt_leaves_with_130_and_no_traceback():
    # A command that signals itself at a known point, so that the test does not depend on timing.
    code = (
        "import os, signal, sys, certcal.data as d;"
        "d.embedded = lambda: os.kill(os.getpid(), signal.SIGINT);"
        "from certcal.cli import main; main(['demo'])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, text=True)
    assert ran.returncode == 130
    assert ran.stderr.strip() == "certcal: interrupted"


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_what_came_through_standard_input_is_gone_when_a_signal_has_ended_the_command(tmp_path, name):
    # The signal comes while the table is being kept, at a known point: when its first part has been read.
    code = (
        "import os, signal, sys\n"
        f"signal.signal(signal.{name}, signal.SIG_DFL)\n"  # or else it is ignored where the tests run under nohup
        "class Slow:\n"
        "    closed = False\n"
        "    def read(self, size):\n"
        "        print(*os.listdir(os.environ['TMPDIR']), flush=True)\n"
        f"        os.kill(os.getpid(), signal.{name})\n"
        "        return b''\n"
        "sys.stdin = Slow()\n"
        "sys.stdin.buffer = sys.stdin\n"
        "from certcal.cli import main; main(['measure', '-'])"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, text=True, env=environment)
    assert ran.stdout.startswith("certcal-")
    assert (ran.returncode, ran.stderr.strip()) == (128 + getattr(signal, name), "certcal: interrupted")
    assert list(tmp_path.iterdir()) == []


def on_a_terminal(loaded, arguments, environment, patience="2.0"):
    """What a command writes to a terminal, standard output and error together."""
    controller, terminal = pty.openpty()
    patient = f"import certcal._base.waiting as p; p.Waiting.__init__.__defaults__ = (None, {patience});"
    surroundings = {**os.environ, "TERM": "xterm-256color"} | environment
    loaded.start(called(*arguments, before=patient), terminal, terminal, surroundings)
    os.close(terminal)
    seen = bytearray()

    def drain():
        try:
            while part := os.read(controller, 65536):
                seen.extend(part)
        except OSError:  # the terminal closes with the process
            return

    reader = threading.Thread(target=drain)
    reader.start()
    code = loaded.wait()
    reader.join()
    os.close(controller)
    return code, seen.decode(errors="replace")


def test_a_log_of_long_work_has_plain_lines_and_no_control_characters(scores, loaded):
    often = "import certcal._base.waiting as p; p.APART_SECONDS = p.LIFE_SECONDS = 0.0;"
    arguments = ["measure", scores, "--metric", "ece", "--by", "site"]
    code, out, err = loaded.run(called(*arguments, before=often), dict(os.environ))
    assert code == 0
    lines = err.splitlines()
    assert [line.split(",")[0] for line in lines] == ["measuring: 1 of 3", "measuring: 2 of 3"]
    assert not set("\r\x1b\x08") & set(err + out)


def test_a_dumb_terminal_gets_no_escape_codes(scores, loaded):
    environment = {"COLUMNS": "80", "PYTHONIOENCODING": "utf-8", "TERM": "dumb", "NO_COLOR": ""}
    code, text = on_a_terminal(loaded, ["measure", scores, "--metric", "ece"], environment, patience="1e6")
    assert code == 0
    # Where colorama is installed, which numba then loads, it resets the terminal as Python leaves.
    assert "\x1b" not in text.removesuffix("\x1b[0m")
    assert "ECE" in text


@pytest.mark.parametrize(("environment", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colour_is_for_terminals_that_want_it(scores, loaded, environment, coloured):
    environment = {"COLUMNS": "80", "PYTHONIOENCODING": "utf-8", "NO_COLOR": ""} | environment
    code, text = on_a_terminal(loaded, ["measure", scores, "--metric", "ece"], environment, patience="1e6")
    assert code == 0
    assert ("\x1b[34m" in text) == coloured
    assert "ECE" in text


def test_progress_appears_on_a_terminal_and_disappears(scores, loaded):
    code, text = on_a_terminal(
        loaded, ["measure", scores, "--metric", "ece"], {"PYTHONIOENCODING": "utf-8"}, patience="0.0"
    )
    assert code == 0
    assert "reading" in text or "measuring" in text
    assert "\x1b[2K" in text  # erased again


def test_progress_never_appears_in_a_log(scores, loaded):
    at_once = "import certcal._base.waiting as p; p.Waiting.__init__.__defaults__ = (None, 0.0);"
    code, _, err = loaded.run(called("measure", scores, "--metric", "ece", before=at_once), dict(os.environ))
    assert (code, err) == (0, "")
