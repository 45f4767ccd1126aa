"""Results as tables: in the terminal, and as Markdown for the documentation."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

from cases import CASES, OURS, Case
from judge import Results, Verdict, our_row, speedup
from peers import NOTES
from race import Row

TIME_HEADER = ["library", "version", "n", "time", "time / ours", "value", "minus ours", ""]
MEMORY_HEADER = ["library: metric", "version", "n", "extra", "copies of the input", "value", "", ""]
CSV = "benchmarks-libraries.csv"
MEASURED = ["time or extra memory", "times ours or copies of the input"]
CSV_HEADER = ["case", "library", "version", "n", *MEASURED, "value", "minus ours", "note"]
TARGET_HEADER = ["case", "target", "limit", "measured", "against", ""]


def power(n: int) -> str:
    """10000000 as 10⁷."""
    exponent = round(math.log10(n))
    if n == 10**exponent:
        return "10" + "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] for digit in str(exponent))
    return f"{n:,}".replace(",", " ")


def seconds(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value * 1000:.3g} ms" if value < 1 else f"{value:.3g} s"


def ratio(value: float | None) -> str:
    if value is None:
        return ""
    near_a_limit = abs(value - 1) < 0.005  # 1.0002 copies are more than one
    return f"{value:.4f}" if near_a_limit else f"{value:.2f}" if value < 10 else f"{value:.0f}"


def lines(case: Case, rows: list[Row]) -> list[list[str]]:
    """The cells of a case's table."""
    return [_memory_line(row) if case.measures == "memory" else _time_line(case, rows, row) for row in rows]


def _time_line(case: Case, rows: list[Row], row: Row) -> list[str]:
    note = row.error or NOTES.get((case.metric, row.library), "")
    twin = our_row(rows, row.n)
    same = twin is None or twin is row or row.value is None or twin.value is None
    difference = "" if same else f"{row.value - twin.value:+.1e}"
    value = "" if row.value is None else f"{row.value:.9f}"
    times = "" if row.library == OURS and row is our_row(rows) else ratio(speedup(rows, row))
    return [row.library, row.version, power(row.n), seconds(row.seconds), times, value, difference, note]


def _memory_line(row: Row) -> list[str]:
    library, _, metric = row.library.partition(": ")
    extra = "" if row.bytes is None else f"{row.bytes / 1e6:.0f} MB"
    copies = "" if row.bytes is None or not row.input_bytes else ratio(row.bytes / row.input_bytes)
    value = "" if row.value is None else f"{row.value:.9f}"
    note = row.error or ("" if library == OURS else NOTES.get((metric, library), ""))
    return [row.library, row.version, power(row.n), extra, copies, value, "", note]


def verdict_lines(found: list[Verdict]) -> list[list[str]]:
    words = {True: "holds", False: "MISSED", None: "not measured"}
    return [[v.case, v.text, v.limit, ratio(v.measured), v.against, words[v.holds]] for v in found]


def header(case: Case) -> list[str]:
    return MEMORY_HEADER if case.measures == "memory" else TIME_HEADER


def show(results: Results, found: list[Verdict]) -> None:
    """Print every table."""
    from rich.console import Console
    from rich.table import Table

    console = Console(width=None if Console().is_terminal else 150)

    def draw(title: str, columns: list[str], cells: list[list[str]]) -> None:
        table = Table(title=title, title_justify="left", title_style="bold")
        for column in columns:
            table.add_column(column, justify="right" if column in {"n", "time", "time / ours", "extra"} else "left")
        for line in cells:
            table.add_row(*line, style="bold" if line[0].startswith(OURS) else "red" if "MISSED" in line else None)
        console.print(table)

    for case in CASES:
        if case.name in results:
            draw(case.title, header(case), lines(case, results[case.name]))
    draw("Targets", TARGET_HEADER, verdict_lines(found))


def markdown(columns: list[str], cells: list[list[str]]) -> str:
    rows = [columns, ["---"] * len(columns), *cells]
    return "\n".join(f"|{'|'.join(cell.replace('|', '/') for cell in row)}|" for row in rows)


def page(results: Results, found: list[Verdict], environment: dict[str, Any]) -> str:
    """The measured part of the documentation page."""
    machine = (
        f"Measured on {environment['date']} with `{environment['command']}`: {environment['cpu']}, "
        f"{environment['cores']} cores, {environment['system']}, Python {environment['python']}, "
        f"numpy {environment['numpy']}.{_again(environment)}"
    )
    everything = f"Times, values and memory of every library in every case: [{CSV}]({CSV})."
    return "\n\n".join([machine, "### Targets", markdown(TARGET_HEADER, verdict_lines(found)), everything])


def write_csv(folder: Path, results: Results) -> None:
    """Every line of every case, beside the documentation page."""
    with (folder / CSV).open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(CSV_HEADER)
        for case in CASES:
            table.writerows([case.title, *line] for line in lines(case, results.get(case.name, [])))


def _again(environment: dict[str, Any]) -> str:
    """Which cases were measured on their own after the run."""
    cases: dict[str, str] = environment.get("again", {})
    return "".join(f" The case {case} was measured again on its own on {date}." for case, date in cases.items())


def write_page(path: Path, name: str, text: str) -> None:
    """Replace what stands between the markers of a name."""
    begin, end = f"<!-- begin: {name} -->", f"<!-- end: {name} -->"
    old = path.read_text(encoding="utf-8")
    if begin not in old or end not in old:
        raise SystemExit(f"{path} has no '{begin}' … '{end}' to replace")
    before, _, rest = old.partition(begin)
    after = rest.partition(end)[2]
    path.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8")
