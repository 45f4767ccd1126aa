"""A case run, and its numbers kept."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

from tests.pinned.cases import CALLS, CASES, Case
from tests.pinned.inputs import ensure, inputs_of
from tests.pinned.reading import Page, Ran, command, fresh, pages, pruned, read_files, tokens

NUMBERS = Path(__file__).parent / "numbers"
BY_NAME = {case.name: case for case in CASES}
# In place of a file of JSON that is what was printed.
AS_PRINTED = "as printed"


def run_case(folder: Path, case: Case) -> tuple[Ran, Ran, dict[str, Any], dict[str, Page]]:
    """JSON on standard output, what the terminal shows, files and pages."""
    for name in inputs_of(case.words("")):
        ensure(folder, name)
    out = fresh(folder, "out")
    asked = [word for ending in case.writes for word in ("-o", f"out/x.{ending}")]
    printed = command(folder, [*case.words("out"), *asked, "--json"])
    files = {} if (out / "run").exists() else read_files(out)  # neither shards nor weights
    shown = pages(out)
    fresh(folder, "out")  # the same names, so that what is printed about them is the same
    return printed, command(folder, case.words("out")), files, shown


def call(folder: Path, name: str) -> tuple[Any, Page]:
    """Numbers of a call, and its result as a notebook shows it."""
    needed, function = CALLS[name]
    for each in needed:
        ensure(folder, each)
    value, result = function(folder)
    markup = result._repr_html_()
    framed = re.search(r'srcdoc="([^"]*)"', markup)  # a page in a frame of its own
    return value, Page(html.unescape(framed[1]) if framed else markup)


def numbers_of(folder: Path, name: str) -> Any:
    """What is to be pinned of a case or a call."""
    if name in CALLS:
        value, page = call(folder, name)
        return {"value": value, "notebook": sorted(page.pinned)}
    case = BY_NAME[name]
    printed, shown, files, made = run_case(folder, case)
    if (printed.code, shown.code) != (case.code, case.code):
        raise AssertionError(f"{name}: exit codes {printed.code} and {shown.code}\n{printed.err}{shown.err}")
    document = pruned(json.loads(printed.out))
    return {
        "json": document,
        "files": {each: AS_PRINTED if tree == document else tree for each, tree in files.items()},
        "pages": {each: sorted(page.pinned) for each, page in made.items()},
        "terminal": sorted(tokens(shown.out)),
    }
