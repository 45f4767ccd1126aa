"""To a type checker every wrong call is one, and no right one is; words in signatures are those of the registries."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import certcal
from certcal._base.signature import defaults_of, specs_of
from certcal.calibrators import CERTIFIED_METHODS, PREDICTION_METHODS
from certcal.lab.study._battery import BINNED, UNBINNED
from certcal.lab.study._search_methods import METHODS
from certcal.smoothing import ACCOUNTINGS, CONFIDENCES, DEFAULT_KIND

HERE = Path(__file__).parent
CALLS = HERE / "wrong_calls_typed.py"
TYPED_PAGES = [HERE.parent / "README.md", *sorted((HERE.parent / "docs").glob("tutorial-*.md"))]


@pytest.fixture(scope="module")
def complaints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[int, str]]:
    """What pyright says, by file and line: of the calls by its standard settings, of the pages by its strict ones."""
    folder = tmp_path_factory.mktemp("typed")
    (folder / "calls.py").write_text(CALLS.read_text("utf-8"), "utf-8")
    for page in TYPED_PAGES:
        blocks = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.S)
        strict = "# pyright: strict, reportMissingTypeStubs=false\n"
        (folder / f"{page.stem}.py").write_text(strict + "\n".join(blocks), "utf-8")
    (folder / "pyrightconfig.json").write_text(json.dumps({"typeCheckingMode": "standard", "pythonVersion": "3.11"}))
    pyright = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(folder)]
    said = json.loads(subprocess.run(pyright, capture_output=True, text=True, check=False).stdout)
    assert said["summary"]["filesAnalyzed"] == 1 + len(TYPED_PAGES)
    found: dict[str, dict[int, str]] = {"calls": {}, **{page.stem: {} for page in TYPED_PAGES}}
    for each in said["generalDiagnostics"]:
        if each["severity"] == "error":
            found[Path(each["file"]).stem].setdefault(each["range"]["start"]["line"], each["message"])
    return found


def test_every_wrong_call_is_reported_and_no_other(complaints: dict[str, dict[int, str]]) -> None:
    lines, reported = CALLS.read_text("utf-8").splitlines(), complaints["calls"]
    wrong = [number for number, line in enumerate(lines) if "# wrong" in line]
    assert {lines[number]: message for number, message in reported.items() if number not in wrong} == {}
    assert [lines[number].strip() for number in wrong if number not in reported] == []
    assert len(wrong) >= 20


@pytest.mark.parametrize("page", TYPED_PAGES, ids=lambda page: page.stem)
def test_the_examples_of_readme_and_tutorials_are_right_to_a_strict_type_checker(
    complaints: dict[str, dict[int, str]], page: Path
) -> None:
    assert complaints[page.stem] == {}


@pytest.mark.parametrize(
    ("verb", "argument", "words"),
    [
        (certcal.certify, "kind", {*CONFIDENCES, "all"}),
        (certcal.certify, "accounting", {*ACCOUNTINGS}),
        (certcal.recalibrate, "method", {*PREDICTION_METHODS, *CERTIFIED_METHODS}),
        (certcal.recalibrate, "kind", {*CONFIDENCES}),
        (certcal.apply_map, "kind", {*CONFIDENCES}),
        (certcal.study.search, "methods", {*METHODS}),
        (certcal.study.search, "metric", {*BINNED, *UNBINNED}),
    ],
)
def test_words_in_a_signature_are_those_of_the_registry(verb: Any, argument: str, words: set[str]) -> None:
    spec = specs_of(verb)[argument]
    assert set(spec.choices) == words
    assert all(word in spec.help for word in words) or argument in ("kind", "metric")
    if argument == "kind":
        assert defaults_of(verb)["kind"] in (DEFAULT_KIND, (DEFAULT_KIND,))
