"""``certcal completion``: a real bash completes commands, options, choices, columns, metrics and files."""

import os
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from certcal.cli.measure import measure
from certcal.cli.options import complete_columns

# Files are the shell's own business: all that can be seen outside of a prompt is that it is asked for them.
SCRIPT = """
set -e
eval "$OFFERED"
compopt() { printf 'compopt %%s %%s\\n' "$1" "$2"; }
complete -p certcal
COMP_WORDS=(%s)
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_certcal_completion certcal
printf '%%s\\n' "${COMPREPLY[@]}"
"""


ENVIRONMENT = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


@cache
def offered():
    """What ``certcal completion bash`` has for bash to evaluate."""
    return subprocess.check_output(["certcal", "completion", "bash"], env=ENVIRONMENT, text=True)


def completed(*words, folder=None):
    """What bash offers for the last word."""
    environment = {**ENVIRONMENT, "OFFERED": offered()}
    script = SCRIPT % " ".join(map(shlex.quote, ("certcal", *map(str, words))))
    ran = subprocess.run(
        ["bash", "--norc", "-c", script], capture_output=True, text=True, env=environment, cwd=folder, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    registered, *found = ran.stdout.splitlines()
    assert registered == "complete -o nosort -F _certcal_completion certcal"
    return [entry for entry in found if entry]


def test_bash_completes_commands():
    assert completed("mea") == ["measure"]
    assert {"measure", "certify", "report", "completion"} <= set(completed(""))


def test_bash_completes_options_and_choices():
    assert completed("measure", "x.csv", "--no-i") == ["--no-intervals"]
    assert completed("certify", "run", "--kind", "t") == ["tangent", "tight"]


def test_bash_completes_columns_of_the_table_and_metrics(scores):
    assert completed("measure", scores.name, "--by", "s", folder=scores.parent) == ["score", "site"]
    assert completed("measure", scores.name, "--metric", "smooth") == ["smooth_ece"]


def test_bash_is_asked_for_files_where_files_are_wanted():
    assert completed("measure", "") == ["compopt -o default"]
    assert completed("report", "run", "-o", "") == ["compopt -o default"]


def test_a_command_that_is_not_there_completes_to_nothing_without_a_word():
    assert completed("mesure", "--b") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(certcal_command, shell):
    ran = certcal_command("completion", shell)
    assert (ran.code, ran.err) == (0, "")
    assert f"_CERTCAL_COMPLETE={shell}_complete" in ran.out


def test_another_shell_is_answered_with_the_nearest(certcal_command):
    ran = certcal_command("completion", "bsh")
    assert ran.code == 2
    assert "SHELL: 'bsh' is not one of 'bash', 'zsh', 'fish'; did you mean 'bash'?" in ran.err


@pytest.mark.parametrize("content", [None, b"", b"PAR1nonsense"])
def test_a_table_that_cannot_be_read_has_no_columns_to_offer(tmp_path, content):
    path = tmp_path / "broken.parquet"
    if content is not None:
        path.write_bytes(content)
    context = measure.make_context("measure", [str(path)], resilient_parsing=True)
    assert complete_columns(context, measure.params[0], "") == []


def test_names_that_a_shell_would_take_apart_are_not_offered(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("conf,is correct,$(rm x),site;a\n0.5,1,2,3\n")
    context = measure.make_context("measure", [str(path)], resilient_parsing=True)
    assert complete_columns(context, measure.params[0], "") == ["conf"]
