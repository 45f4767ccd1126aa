"""A case run, and its numbers kept."""

import base64
import gzip
import html
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.pinned.cases import CALLS, CASES, Case
from tests.pinned.inputs import ensure, inputs_of
from tests.pinned.reading import (
    Page,
    Ran,
    Shape,
    command,
    file_tables,
    fresh,
    json_tables,
    pages,
    pruned,
    read_files,
    terminal_tables,
    tokens,
)

NUMBERS = Path(__file__).parent / "numbers"
BY_NAME = {case.name: case for case in CASES}
# In place of a file of JSON that is what was printed.
AS_PRINTED = "as printed"


@dataclass(frozen=True)
class Forms:
    """What a case left behind: JSON on standard output, what the terminal shows, files and pages."""

    printed: Ran
    shown: Ran
    files: dict[str, Any]
    pages: dict[str, Page]
    written: dict[str, list[Shape]]

    def tables(self) -> dict[str, list[Shape]]:
        """Rows and columns of every table, form by form; a page's figures are those without either."""
        return {
            "json": json_tables(json.loads(self.printed.out)),
            "terminal": terminal_tables(self.shown.out),
            **self.written,
            **{name: page_tables(page) for name, page in self.pages.items()},
        }


def page_tables(page: Page) -> list[Shape]:
    """Tables and lists of key numbers on a page; a figure counts as a table of nothing."""
    return [*page.tables, *([0, 0] for _ in range(page.charts))]


def run_case(folder: Path, case: Case) -> Forms:
    """Run a command for JSON and files, and once more for the terminal."""
    for name in inputs_of(case.words("")):
        ensure(folder, name)
    out = fresh(folder, "out")
    asked = [word for ending in case.writes for word in ("-o", f"out/x.{ending}")]
    printed = command(folder, [*case.words("out"), *asked, "--json"])
    files = {} if (out / "run").exists() else read_files(out)  # neither shards nor weights
    shown, written = pages(out), {name: file_tables(out / name) for name in files}
    fresh(folder, "out")  # the same names, so that what is printed about them is the same
    return Forms(printed, command(folder, case.words("out")), files, shown, written)


def call(folder: Path, name: str) -> tuple[Any, dict[str, Page]]:
    """Numbers of a call, its result as a notebook shows it, and the page that a card there opens."""
    needed, function = CALLS[name]
    for each in needed:
        ensure(folder, each)
    value, result = function(folder)
    markup = result._repr_html_()
    framed = re.search(r'srcdoc="([^"]*)"', markup)
    if framed is None:
        return value, {"notebook": Page(markup)}
    card = html.unescape(framed[1])
    (packed,) = re.findall(r'<script type="text/plain" id="page">([^<]*)</script>', card)
    return value, {"card": Page(card), "notebook": Page(gzip.decompress(base64.b64decode(packed)).decode("utf-8"))}


def numbers_of(folder: Path, name: str) -> Any:
    """What is to be pinned of a case or a call."""
    if name in CALLS:
        value, shown = call(folder, name)
        return {
            "value": value,
            **{form: sorted(page.pinned) for form, page in shown.items()},
            "tables": {form: sorted(page_tables(page)) for form, page in shown.items()},
        }
    case = BY_NAME[name]
    made = run_case(folder, case)
    codes = (made.printed.code, made.shown.code)
    if codes != (case.code, case.code):
        raise AssertionError(f"{name}: exit codes {codes}\n{made.printed.err}{made.shown.err}")
    document = pruned(json.loads(made.printed.out))
    return {
        "json": document,
        "files": {each: AS_PRINTED if tree == document else tree for each, tree in made.files.items()},
        "pages": {each: sorted(page.pinned) for each, page in made.pages.items()},
        "terminal": sorted(tokens(made.shown.out)),
        "tables": {form: sorted(shapes) for form, shapes in made.tables().items()},
    }
