"""Page, JSON, terminal and table of every answer agree on its numbers, and three lines of Python make all of them."""

import json
import math
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import certcal
from certcal.report.document import text_of
from tests.pinned.reading import Page, tokens
from tests.report.attacked import attack_result
from tests.report.compared_families import record, with_confidences
from tests.report.recalibrated import run_samples
from tests.report.studied import review
from tests.smoothing.drawing import draw

RNG = np.random.default_rng(5)
SCORE = RNG.beta(6, 2, 300).round(4)
TABLE = {
    "confidence": SCORE,
    "correct": (RNG.random(300) < SCORE**1.4).astype(int),
    "site": np.array(["north", "south"])[RNG.integers(0, 2, 300)],
}
INTERVALS = {
    "lower": np.maximum(SCORE - 0.07, 0),
    "upper": np.minimum(SCORE + 0.07, 1),
    "correct": TABLE["correct"],
    "radius": np.repeat([0.25, 0.5, 1.0], 100),
}


@cache
def run() -> Any:
    """A run of a small model, in memory."""
    return certcal.smoothing.Counts.from_confidences(
        RNG.beta(30, 4, (40, 400)),
        np.linspace(0.05, 0.95, 19),
        votes=RNG.integers(230, 401, 40),
        sigma=0.5,
        correct=RNG.random(40) < 0.8,
    )


ANSWERS: dict[str, Callable[[], certcal.Result]] = {
    "measure": lambda: certcal.measure(TABLE, bootstrap=20),
    "measure groups": lambda: certcal.measure(TABLE, by="site", bounds=True),
    "bound": lambda: certcal.bound(TABLE, lipschitz=2.0),
    "certify a table": lambda: certcal.certify(INTERVALS),
    "certify a run": lambda: certcal.certify(run(), radii=[0.125, 0.25]),
    "certify by every kind": lambda: certcal.certify(run(), radii=[0.125], kind="all"),
    "compare": lambda: certcal.compare(record(0, 0.5), record(1, 0.5)),
    "compare families": with_confidences,
    "compare measurements": lambda: certcal.compare(certcal.measure(TABLE), certcal.measure(TABLE, closed="right")),
    "attack": attack_result,
    "recalibrate a run": lambda: certcal.recalibrate(run_samples(80)),
    "recalibrate a table": lambda: certcal.recalibrate(TABLE),
    "study review": review,
}
each_answer = pytest.mark.parametrize("name", ANSWERS)


@cache
def answer(name: str) -> certcal.Result:
    return ANSWERS[name]()


@cache
def page(name: str) -> Page:
    return Page(answer(name).report().to_html())


@cache
def terminal(name: str) -> str:
    return answer(name).report().to_text(width=120)


@cache
def json_numbers(name: str) -> set[float]:
    return numbers(json.loads(answer(name).to_json()))


def numbers(value: Any) -> set[float]:
    """Every number of a document."""
    if isinstance(value, dict):
        return set().union(*map(numbers, value.values()))
    if isinstance(value, list | tuple):
        return set().union(*map(numbers, value))
    return {float(value)} if isinstance(value, int | float) and not isinstance(value, bool) else set()


def decimals(texts: set[str]) -> set[str]:
    """Tokens with three decimals or more, two in percent: numbers that were computed, not counts and settings."""
    return {text for text in texts if re.fullmatch(r"[-−]?\d+\.(\d{3,}|\d\d%)", text)}


@each_answer
def test_every_number_of_the_table_is_in_the_json(name: str) -> None:
    result = answer(name)
    known = json_numbers(name)
    frame = result.to_pandas()
    cells = [float(cell) for column in frame.select_dtypes("number") for cell in frame[column] if not math.isnan(cell)]
    assert len(cells) > 3
    assert [cell for cell in cells if math.isfinite(cell) and cell not in known] == []
    assert result.to_arrow().column_names == list(frame.columns)
    assert result.to_arrow().num_rows == len(frame)


@each_answer
def test_the_terminal_shows_no_number_that_the_page_does_not(name: str) -> None:
    result = answer(name)
    shown = decimals(tokens(result.report().to_text(width=120, diagrams=False)))
    assert shown
    assert sorted(shown - page(name).shown) == []
    inside = json.loads(page(name).document[0])
    assert (inside["schema"], inside["certcal"]) == (result.schema, certcal.__version__)
    assert next(iter(result.to_dict())) == "schema"


@each_answer
def test_claims_are_in_the_json_and_the_first_is_on_the_page_and_in_the_terminal(name: str) -> None:
    result = answer(name)
    claims = [claim for claim in result.claims() if hasattr(claim, "value")]
    assert all(claim.sentence.endswith(".") for claim in result.claims())
    known = json_numbers(name)
    values = [float(claim.value) for claim in claims]
    assert [value for value in values if math.isfinite(value) and value not in known] == []
    if claims and (isinstance(claims[0], certcal.Estimate) or hasattr(claims[0], "text")):
        texts = {text_of(claims[0]), getattr(claims[0], "text", f"{claims[0].value:.4f}")}  # in sentences and in tables
        assert texts & page(name).shown
        assert texts & tokens(terminal(name))


@each_answer
def test_three_lines_of_python_write_every_form(name: str, tmp_path: Path) -> None:
    result = answer(name)
    assert str(result) == result.report().to_text()
    assert "\n" not in repr(result)
    assert result._repr_html_().startswith("<iframe")
    for ending in ("html", "json", "csv", "txt", "svg"):
        made = result.save(tmp_path / f"answer.{ending}")
        assert made.stat().st_size > 100, ending
    assert result.plot().axes


def test_a_run_on_disk_is_certified_like_its_counts(tmp_path: Path) -> None:
    made = draw(tmp_path / "run")
    found = certcal.certify(tmp_path / "run", radii=[0.1])
    assert found.at().claim == certcal.certify(made, radii=[0.1]).at().claim
    assert found.sources == (str(tmp_path / "run"),)
