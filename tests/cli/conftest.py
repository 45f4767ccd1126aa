"""The command line called in this process, through the same edge as the real one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from certcal.cli import cli
from certcal.cli.errors import run

RNG = np.random.default_rng(8)
N = 400
SCORE = RNG.random(N).round(3)
OUTCOME = (RNG.random(N) < SCORE**1.5).astype(int)
SITE = np.array(["north", "south"])[RNG.integers(0, 2, N)]


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


def flat(text: str) -> str:
    """What was printed, without its line breaks."""
    return " ".join(text.split())


def with_defaults(given: Sequence[object], defaults: Sequence[object]) -> tuple[object, ...]:
    """Words of a command line, and those options with a value that are not among them: none may be given twice."""
    pairs = zip(defaults[::2], defaults[1::2], strict=True)
    return (*(word for pair in pairs if pair[0] not in given for word in pair), *given)


@pytest.fixture
def certcal_command(capsys, monkeypatch) -> Callable[..., Ran]:
    monkeypatch.setenv("COLUMNS", "80")

    def call(*arguments: object) -> Ran:
        code = run(cli, [str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return call


@pytest.fixture
def scores(tmp_path):
    path = tmp_path / "scores.csv"
    lines = [f"{score},{outcome},{site}" for score, outcome, site in zip(SCORE, OUTCOME, SITE, strict=True)]
    path.write_text("score,outcome,site\n" + "\n".join(lines) + "\n")
    return path
