"""Numbers that no change of presentation may change: those of ``tests/pinned/numbers``.

Each case is a command line, run in this process. What it prints as JSON, what it writes and its exit code are compared
with what was written before; of pages and the terminal, every number text must still be there, as it was rounded.
No table of any form may lose a row or a column, no page a figure, and no command a kind of file that it writes.
``python -m tests.pinned NAME...`` writes them anew, see there. Left out is ``certcal demo``, which takes too long.
"""

import hashlib
import json
import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import pytest

from certcal import lab, verbs
from certcal.result import Result
from tests.pinned import reading
from tests.pinned.__main__ import main as write_anew
from tests.pinned.cases import CALLS, CASES, REFUSED, Case
from tests.pinned.inputs import ensure, inputs_of
from tests.pinned.making import AS_PRINTED, NUMBERS, call, page_tables, run_case
from tests.pinned.reading import (
    Page,
    command,
    differences,
    flattened,
    fresh,
    json_tables,
    lost_tables,
    pruned,
    same,
    sentences,
    terminal_tables,
    tokens,
)

JSON_PAGE = Path(__file__).parents[2] / "docs" / "reports.md"


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where inputs are made and commands run."""
    return tmp_path_factory.mktemp("pinned")


def pinned(name: str) -> Any:
    return json.loads((NUMBERS / f"{name}.json").read_text("utf-8"))


def documented() -> dict[str, tuple[set[str], set[str]]]:
    """By schema, the keys that docs/reports.md says are always there, and those that may be."""
    rows = re.findall(
        r"^\| `(certcal/[a-z-]+/\d+)` \|[^|]*\|([^|]*)\|([^|]*)\|$", JSON_PAGE.read_text("utf-8"), re.MULTILINE
    )
    return {name: tuple(set(re.findall(r"`(\w+)`", keys)) for keys in both) for name, *both in rows}


def undocumented(document: dict[str, Any]) -> set[str]:
    """Keys of an answer's JSON that the page does not name, or that it promises in vain."""
    always, sometimes = documented()[document["schema"]]
    found = set(document) - {"schema", "certcal", "provenance", "answer"}
    return (found - always - sometimes) | (always - found)


# What stands behind the numbers besides NumPy, and of what there are fingerprints, by the first word of the command.
USED = {"attack": "torch", "train": "torch"}
KNOWN = {"attack": {"model", "data"}, "train": {"model", "data"}, "sample": {"model", "data", "labels"}}
UNREAD = {"zoo"}  # a folder of many files, each of which its table tells about


def check_origin(folder: Path, case: Case, origin: dict[str, Any]) -> None:
    """The command, the versions, and a digest of everything that was read: what a page says of how it came about."""
    words = case.words("out")
    assert origin["command"][: len(words) + 1] == ["certcal", *words]
    assert {"certcal", "python", "numpy", USED.get(words[0], "numpy")} <= set(origin["versions"])
    assert KNOWN.get(words[0], set()) <= set(origin["fingerprints"])
    digests = {each["name"]: each["sha256"] for each in origin["inputs"]}
    read = {word.partition("=")[2] or word for word in words[1:]} & set(inputs_of(words)) - UNREAD
    assert set(digests) == read
    for name in read:
        if (folder / name).is_file():
            assert digests[name] == hashlib.sha256((folder / name).read_bytes()).hexdigest()


# A hyphen where people read a minus sign. Names of columns and groups may begin with one.
HYPHEN = re.compile(r"(?<!\S)\(?-\d")


def lost(before: list[str], now: set[str]) -> list[str]:
    return sorted({text.replace("−", "-") for text in before} - now)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_numbers_of_a_command_stay(folder: Path, case: Case) -> None:
    made = run_case(folder, case)
    printed, shown, files, pages = made.printed, made.shown, made.files, made.pages
    assert (printed.code, shown.code) == (case.code, case.code), printed.err + shown.err
    assert undocumented(json.loads(printed.out)) == set()
    check_origin(folder, case, json.loads(printed.out)["provenance"])
    assert [each for each in sentences(json.loads(printed.out)) if len(each.split()) > 30] == []
    before, document = pinned(case.name), pruned(json.loads(printed.out))
    assert differences(before["json"], document, case.rtol) == []
    assert sorted(before["files"]) == sorted(files)
    for name, tree in before["files"].items():
        assert differences(before["json"] if tree == AS_PRINTED else tree, files[name], case.rtol) == [], name
    assert sorted(before["pages"]) == sorted(pages)
    for name, texts in before["pages"].items():
        assert lost(texts, pages[name].shown) == [], name
        if pages[name].document:
            assert json.loads(pages[name].document[0])["provenance"] == json.loads(printed.out)["provenance"]
            assert dict(flattened(pruned(json.loads(pages[name].document[0])))) == dict(flattened(document))
    assert lost(before["terminal"], tokens(shown.out)) == []
    said = [*shown.out.splitlines(), *(text for page in pages.values() for text in page.visible)]
    assert [text for text in said if HYPHEN.search(text) and "certcal " not in text] == []
    tables = made.tables()
    for form, shapes in before["tables"].items():
        assert lost_tables(shapes, tables[form]) == [], form
    if case.name.startswith("hostile"):
        assert "\x1b" not in printed.out + printed.err + shown.out + shown.err
        assert not any(markup in page.text for page in pages.values() for markup in ("<script>alert", "<b>=1"))


@pytest.mark.parametrize("name", CALLS)
def test_the_numbers_of_a_call_stay(folder: Path, name: str) -> None:
    before, (value, shown) = pinned(name), call(folder, name)
    assert differences(before["value"], value, 1e-9) == []
    assert sorted(before["tables"]) == sorted(shown)
    for form, shapes in before["tables"].items():
        assert lost(before[form], shown[form].shown) == [], form
        assert lost_tables(shapes, page_tables(shown[form])) == [], form


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_used_is_refused_and_nothing_is_written(folder: Path, name: str) -> None:
    words = shlex.split(REFUSED[name].replace("{out}", "out"))
    for each in inputs_of(words):
        ensure(folder, each)
    out = fresh(folder, "out")
    before = sorted(folder.rglob("*"))
    for more in ([], ["--json"]):
        ran = command(folder, [*words, *more])
        assert (ran.code, ran.out) == (2, "")
        assert "Traceback" not in ran.err
    assert list(out.iterdir()) == []
    assert sorted(folder.rglob("*")) == before


def test_the_page_about_json_names_the_schema_of_every_answer() -> None:
    for room in (verbs, lab):
        for module in walk_packages(room.__path__, f"{room.__name__}."):
            import_module(module.name)
    assert {kind.schema for kind in answers(Result)} | {"certcal/bandwidth/1"} == set(documented())


def answers(kind: type[Result]) -> Iterator[type[Result]]:
    """Every kind of answer of the package."""
    for each in kind.__subclasses__():
        if each.__module__.startswith("certcal."):
            yield each
            yield from answers(each)


FORMS = {
    "attack bound compare demo measure report reproduce": {".html", ".txt", ".png", ".svg", ".pdf", ".json", ".csv"},
    "certify verify": {".html", ".txt", ".png", ".svg", ".pdf", ".json", ".csv", ".parquet"},
    "decide": {".html", ".txt", ".json", ".csv", ".parquet"},
    "plan": {".html", ".txt", ".png", ".svg", ".pdf", ".json", ".csv"},
    "recalibrate-fit": {".html", ".txt", ".png", ".svg", ".pdf", ".json", ".csv"},
    "recalibrate-apply": {".parquet", ".csv"},
    "study-measure study-convert": {".parquet"},
    "study-review study-search": {".html", ".txt", ".json", ".csv"},
}


@pytest.mark.parametrize(("name", "forms"), [(name, forms) for names, forms in FORMS.items() for name in names.split()])
def test_a_command_writes_every_form_that_it_wrote(folder: Path, name: str, forms: set[str]) -> None:
    said = command(folder, [*name.split("-"), "--help"]).out.partition("-o, --output")[2].partition("--force")[0]
    assert set(re.findall(r"\.[a-z]+\b", said)) >= forms


def test_every_file_of_numbers_belongs_to_a_case() -> None:
    assert {path.stem for path in NUMBERS.iterdir()} == {*(case.name for case in CASES), *CALLS}


# --- the comparison itself -------------------------------------------------------------------------------------------

DOCUMENT = {"n": 3, "name": "ece", "lines": [{"value": 0.125, "text": "0.1250", "why": "it is"}, {"value": None}]}


def test_prose_may_change_and_numbers_may_be_added() -> None:
    other = {**DOCUMENT, "name": "expected calibration error", "more": 7}
    assert differences(pruned(DOCUMENT), pruned(other), 1e-9) == []


@pytest.mark.parametrize(
    ("other", "line"),
    [
        ({"n": 4, "lines": DOCUMENT["lines"]}, "n: 3 became 4"),
        ({"n": True, "lines": DOCUMENT["lines"]}, "n: 3 became True"),
        ({"lines": DOCUMENT["lines"]}, "n: 3 is lost or moved"),
        ({"m": 3, "lines": DOCUMENT["lines"]}, "n: 3 is lost or moved"),
        ({"n": 3, "lines": [{"value": 0.12500001, "text": "0.1250"}, {"value": None}]}, "0.125 became 0.12500001"),
        ({"n": 3, "lines": [{"value": 0.125, "text": "0.125"}, {"value": None}]}, "'0.1250' became '0.125'"),
        ({"n": 3, "lines": [{"value": 0.125, "text": "0.1250"}, {"value": 0}]}, "None became 0"),
        ({"n": 3, "lines": [*DOCUMENT["lines"], {"value": 1}]}, "lines/#: 2 became 3"),
        ({"n": 3, "lines": DOCUMENT["lines"][::-1]}, "0.125 became None"),
    ],
)
def test_a_changed_a_lost_and_a_moved_number_are_noticed(other: Any, line: str) -> None:
    assert any(line in each for each in differences(pruned(DOCUMENT), pruned(other), 1e-9))


def test_a_deliberate_rename_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    other = {"samples": 3, "lines": [{"estimate": line["value"], "text": "0.1250"} for line in DOCUMENT["lines"]]}
    assert len(differences(pruned(DOCUMENT), pruned(other), 1e-9)) == 3
    monkeypatch.setattr(reading, "RENAMED", {"n": "samples", "lines/*/value": "lines/*/estimate"})
    assert differences(pruned(DOCUMENT), pruned(other), 1e-9) == []


def test_floats_may_differ_in_their_last_digits_and_rounded_texts_may_not() -> None:
    assert same(0.1234567890123, 0.1234567890124, 1e-9)
    assert same("0.1234567890123", "0.1234567890124", 1e-9)
    assert not same("0.1234", "0.1235", 1e-2)
    assert same("0.3", "0.30000000000000004", 1e-9)
    assert not same("0.1234", "0.12341234567890", 1e-9)
    assert not same("0.1250", "0.125", 1e-9)
    assert not same("ece", "0.1234567890123", 1e-9)
    assert not same(1.0, 1.0001, 1e-5)


def test_a_page_is_read_as_people_see_it() -> None:
    page = Page(
        "<head><title>7</title></head><style>8</style><p>in prose 9</p><td>12,345<b>-0.5000</b></td><dd>1.2e-05</dd>"
        "<div class='card'><p>at most 0.4233</p><p class='note'>2</p></div><svg><text>0.25</text></svg>"
        "<section id='reproducibility'><td>77</td></section><td>2026-01-31 12:30</td><td>net0, 3f, 0.2 s</td>"
        "<script type='application/json'>{}</script>"
    )
    assert page.pinned == {"12,345", "-0.5000", "1.2e-05", "0.4233"}
    assert page.shown == page.pinned | {"9", "2"}
    assert page.document == ["{}"]


def test_a_lost_row_column_and_figure_are_noticed() -> None:
    row, head = "<tr><th>a</th><td colspan='2'>1</td></tr>", "<thead><tr><th>x</th></tr></thead>"
    page = Page(
        f"<table>{head}<tbody>{row}{row}</tbody></table><dl><dt>n</dt><dd>3</dd></dl><figure><svg></svg></figure>"
        f"<section id='reproducibility'><table>{row}</table></section>"
    )
    assert page_tables(page) == [[2, 3], [1, 2], [0, 0]]
    shown = "prose of two lines \nthat are equal long\n\n" + "\n".join(
        [
            "name     value ",
            "───────────────",
            "group          ",
            "  a        0.1 ",
            "               ",
            "  b c     0.25 ",
        ]
    )
    assert terminal_tables(shown) == [[3, 2]]
    assert json_tables({"lines": [{"a": 1}, {"b": "x", "c": ["why"]}], "provenance": [1, 2]}) == [[2, 3], [1, 1]]
    assert lost_tables([[2, 3], [1, 2]], [[1, 2], [1, 1], [2, 4]]) == []
    for fewer in ([[1, 3], [1, 2]], [[2, 2], [1, 2]], [[2, 3]]):
        assert len(lost_tables([[2, 3], [1, 2]], fewer)) == 1


def test_a_csv_file_is_compared_by_its_cells(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("metric,value,sentence\nece,0.12345678901234,as it is 1\n")
    before = reading.read_csv(path)
    for text, count in (("ece,0.12345678901235,other", 0), ("ece,0.1234567,as", 1), ("mce,0.12345678901234,as", 1)):
        path.write_text(f"metric,value,sentence\n{text}\n")
        assert len(differences(before, reading.read_csv(path), 1e-9)) == count


def test_pinned_numbers_are_not_replaced_by_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tests.pinned.__main__.NUMBERS", tmp_path)
    assert write_anew(["python-measure"]) == 0
    path = tmp_path / "python-measure.json"
    right = path.read_text()
    path.write_text(right.replace("90", "91"))
    assert write_anew(["python-measure"]) == 1
    assert "became 90" in capsys.readouterr().err
    assert path.read_text() != right
    assert write_anew(["--force", "python-measure"]) == 0
    assert path.read_text() == right
    assert write_anew(["no-such-case"]) == 2
