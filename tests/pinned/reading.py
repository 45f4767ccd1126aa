"""How numbers are read from what a command prints and writes, and how they are compared with pinned ones.

A JSON document, a CSV file and a Parquet table become a tree without prose; of a page and of the terminal only the
printed number texts are kept. Dropped: versions, dates, paths, sizes, digests and timings.
"""

import contextlib
import csv
import io
import json
import math
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest.mock import patch

# Deliberate renames of keys, pinned path -> path of today; '*' is any one segment. A prefix takes what is below along.
RENAMED: dict[str, str] = {}
# Keys of JSON and columns of CSV that say when and by what, or that are prose even where they look like a number.
LEFT_OUT = frozenset(
    (
        "certcal",
        "provenance",
        "fingerprint",
        "digest",
        "sha256",
        "checksum",
        "bytes",
        "created",
        "version",
        "versions",
        "seconds",
        "time",
        "sentence",
    )
)
DATE = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d)?)?|\d{1,2} [A-Z][a-z]+ \d{4}(, \d\d:\d\d(:\d\d)?)?")
VERSION = re.compile(r"\d+(?:\.\d+){2,}\S*")
DURATION = re.compile(r"\d[\d.,]*\s?(?:µs|ms|s|min)\b")
PROSE = "\N{HORIZONTAL ELLIPSIS}"
NUMBER = re.compile(r"(?<![\w.])[-−]?\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][-+]?\d+)?%?(?!\w)")
NUMBER_TEXT = re.compile(r"[-+−]?(?:\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][-+]?\d+)?%?|inf(?:inity)?|nan)", re.IGNORECASE)


@dataclass(frozen=True)
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str


def command(folder: Path, words: Sequence[str]) -> Ran:
    """Run ``certcal`` in this process, in a folder, in a terminal of 100 columns without colour."""
    from certcal.cli import main

    out, err, before = io.StringIO(), io.StringIO(), Path.cwd()
    os.chdir(folder)
    try:
        with (
            patch.dict(os.environ, {"COLUMNS": "100", "NO_COLOR": "1"}),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            main(list(words))
    except SystemExit as left:
        return Ran(int(left.code or 0), out.getvalue(), err.getvalue())
    finally:
        os.chdir(before)
    raise AssertionError("main returned without an exit code")


# --- reading -------------------------------------------------------------------------------------------------------


def pruned(value: Any) -> Any:
    """A document without prose: what is left are numbers, booleans, nulls and texts that are numbers."""
    if isinstance(value, Mapping):
        kept = {key: pruned(part) for key, part in value.items() if key not in LEFT_OUT}
        return {key: part for key, part in kept.items() if not _is_prose(part)} or PROSE
    if isinstance(value, list):
        parts = [pruned(part) for part in value]
        return PROSE if all(map(_is_prose, parts)) else parts
    if isinstance(value, str) and not NUMBER_TEXT.fullmatch(value):
        return PROSE
    return value


def _is_prose(value: Any) -> bool:
    return isinstance(value, str) and value == PROSE


def read_csv(path: Path) -> Any:
    """Header and cells; a column of prose is left out, and so are cells of several words."""
    header, *rows = csv.reader(io.StringIO(path.read_text("utf-8")))
    kept = [place for place, name in enumerate(header) if name not in LEFT_OUT]
    return {
        "header": [header[place] for place in kept],
        "rows": [[_cell(row[place]) for place in kept] for row in rows],
    }


def _cell(text: str) -> str:
    return PROSE if " " in text else text


def read_parquet(path: Path) -> Any:
    """Columns of numbers."""
    import pyarrow.parquet as pq

    return pruned(pq.read_table(path).to_pydict())


def tokens(text: str) -> set[str]:
    """The numbers that are printed in a text, as they are printed; a minus sign and a hyphen are the same."""
    return set(NUMBER.findall(DURATION.sub(" ", DATE.sub(" ", text)).replace("−", "-")))


class Page(HTMLParser):
    """Visible texts of a page, those among them that hold results, and the JSON that it carries."""

    VOID = frozenset(
        ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr")
    )
    UNSEEN = frozenset(("script", "style", "svg", "head", "template"))
    CELLS = frozenset(("td", "th", "dd", "output"))

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
        self.visible: list[str] = []
        self.results: list[str] = []
        self.document: list[str] = []
        self.tables: list[Shape] = []
        self.charts = self._cells = 0
        self._open: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self._open.append((tag, dict(attrs)))
        if self._is_about_the_page():
            return
        self.charts += tag == "figure"
        if tag in ("table", "dl"):
            self.tables.append([0, 0])
            self._cells = 0
        elif self.tables and tag in ("tr", "dt"):
            self.tables[-1][0] += not any(outer == "thead" for outer, _ in self._open)
            self._cells = 0
        if self.tables and tag in ("td", "th", "dt", "dd"):
            self._cells += int(dict(attrs).get("colspan") or 1)
            self.tables[-1][1] = max(self.tables[-1][1], self._cells)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        tags = [tag for tag, _ in self._open]
        if tags[-1:] == ["script"] and self._open[-1][1].get("type") == "application/json":
            self.document.append(data)
        if self.UNSEEN.intersection(tags) or self._is_about_the_page():
            return
        data = VERSION.sub("", data)
        self.visible.append(data)
        classes = {name for _, about in self._open for name in (about.get("class") or "").split()}
        if self.CELLS.intersection(tags) or ("card" in classes and not {"note", "assumptions"} & classes):
            self.results.append(data)

    def _is_about_the_page(self) -> bool:
        return any(about.get("id") == "reproducibility" for _, about in self._open)

    @property
    def shown(self) -> set[str]:
        """All visible numbers."""
        return {token for text in self.visible for token in tokens(text)}

    @property
    def pinned(self) -> set[str]:
        """The numbers in tables, lists of key numbers, cards and beside the slider."""
        return {token for text in self.results for token in tokens(text)}


# --- counting ------------------------------------------------------------------------------------------------------

# Rows and columns of a table.
Shape = list[int]


def json_tables(document: Any) -> list[Shape]:
    """Every list of a JSON document, those of prose too: its length, and the keys of its members (1 for a scalar)."""
    if isinstance(document, Mapping):
        return [shape for key, part in document.items() if key not in LEFT_OUT for shape in json_tables(part)]
    if not isinstance(document, list):
        return []
    keys = {key for row in document if isinstance(row, Mapping) for key in row}
    return [[len(document), len(keys) or 1], *(shape for row in document for shape in json_tables(row))]


def terminal_tables(text: str) -> list[Shape]:
    """Runs of lines that are padded to one width and keep two blank columns apart; the header is no row."""
    runs = [[""]]
    for line in text.splitlines():
        if len(line) != len(runs[-1][-1]):
            runs.append([])
        runs[-1].append(line)
    shapes: list[Shape] = []
    for run in runs:
        cells = [line for line in run if line.strip(" ─")]
        inked = "".join("x" if any(map(str.strip, column)) else " " for column in zip(*cells, strict=True))
        columns = len(re.findall(r"x(?: ?x)*", inked))
        if columns > 1:
            rule = next((place for place, line in enumerate(run) if "───" in line), 0)
            shapes.append([len(cells) - rule, columns])
    return shapes


def file_tables(path: Path) -> list[Shape]:
    """Tables of a file that a command wrote."""
    if path.suffix == ".json":
        return json_tables(json.loads(path.read_text("utf-8")))
    if path.suffix == ".csv":
        header, *rows = csv.reader(io.StringIO(path.read_text("utf-8")))
        return [[len(rows), len(header)]]
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        return [list(pq.read_table(path).shape)]
    return []


def lost_tables(pinned: Sequence[Shape], found: Sequence[Shape]) -> list[str]:
    """Pinned tables without a table of their own today that has at least their rows and columns, a line each."""
    left, lines = sorted(found), []
    missing = [shape for shape in sorted(pinned, reverse=True) if shape not in left or left.remove(shape)]
    for rows, columns in missing:
        larger = [shape for shape in left if columns and shape[0] >= rows and shape[1] >= columns]
        if larger:
            left.remove(larger[0])
        else:
            lines.append(f"a table of {rows} rows and {columns} columns is lost; left are {left}")
    return lines


# --- comparing -----------------------------------------------------------------------------------------------------


def flattened(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Path and leaf of everything in a pruned document; of a list also how long it is."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from flattened(part, f"{path}/{key}".lstrip("/"))
    elif isinstance(value, list):
        yield f"{path}/#", len(value)
        for place, part in enumerate(value):
            yield from flattened(part, f"{path}/{place}")
    elif not _is_prose(value):
        yield path, value


def renamed(path: str) -> str:
    """Where a pinned path is today."""
    parts = path.split("/")
    for old, new in RENAMED.items():
        pattern = old.split("/")
        pairs = list(zip(pattern, parts, strict=False))
        if len(pairs) == len(pattern) and all(wanted in ("*", part) for wanted, part in pairs):
            kept = [part for wanted, part in pairs if wanted == "*"]
            parts = [kept.pop(0) if word == "*" else word for word in new.split("/")] + parts[len(pattern) :]
    return "/".join(parts)


def differences(pinned: Any, found: Any, rtol: float) -> list[str]:
    """What of a pinned document is lost, moved or changed, a line each; what is new is none."""
    now = dict(flattened(found))
    lines = []
    for path, value in flattened(pinned):
        place = renamed(path)
        if place not in now:
            lines.append(f"{place}: {value!r} is lost or moved")
        elif not same(value, now[place], rtol):
            lines.append(f"{place}: {value!r} became {now[place]!r}")
    return lines


def same(pinned: Any, found: Any, rtol: float) -> bool:
    """Equal, but for the last digits of a float that is written with all of them."""
    if isinstance(pinned, bool) or isinstance(found, bool) or pinned is None or found is None:
        return pinned is found
    if isinstance(pinned, str) and isinstance(found, str):
        digits = [_digits(text) for text in (pinned, found)]
        return pinned == found or (all(digits) and max(digits) >= 12 and same(float(pinned), float(found), rtol))
    if isinstance(pinned, str) or isinstance(found, str):
        return False
    if isinstance(pinned, int) and isinstance(found, int):
        return pinned == found
    return math.isclose(pinned, found, rel_tol=rtol, abs_tol=rtol * 1e-3) or (pinned != pinned and found != found)


def _digits(text: str) -> int:
    """How many digits a float's text has: all of them, or few because it is rounded for reading."""
    return sum(map(str.isdigit, text.lower().split("e")[0])) if re.fullmatch(r"-?\d*\.?\d+(e-?\d+)?", text) else 0


# --- cases ---------------------------------------------------------------------------------------------------------


def read_files(folder: Path) -> dict[str, Any]:
    """Numbers of every JSON, CSV, Parquet file and page below a folder, by its name."""
    readers = {".json": lambda path: pruned(json.loads(path.read_text("utf-8"))), ".csv": read_csv}
    readers |= {".parquet": read_parquet}
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix in readers:
            found[path.relative_to(folder).as_posix()] = readers[path.suffix](path)
    return found


def pages(folder: Path) -> dict[str, Page]:
    """Every page in a folder, by its name."""
    return {path.name: Page(path.read_text("utf-8")) for path in sorted(folder.glob("*.html"))}


def fresh(folder: Path, name: str) -> Path:
    """An empty folder of that name."""
    shutil.rmtree(folder / name, ignore_errors=True)
    (folder / name).mkdir(parents=True)
    return folder / name


def sentences(document: Any) -> Iterator[str]:
    """Every ``sentence`` in a JSON document."""
    if isinstance(document, dict):
        yield from [document["sentence"]] if isinstance(document.get("sentence"), str) else []
        document = list(document.values())
    for each in document if isinstance(document, list) else ():
        yield from sentences(each)
