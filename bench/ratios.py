"""What the benchmarks of smoothing end with: ratios against their targets, on the screen and in the documentation."""

from __future__ import annotations

from pathlib import Path

from tables import markdown, write_page

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
# What is measured, the ratio, the limit as text, and whether it holds.
Row = tuple[str, float, str, bool]


def at_least(name: str, value: float, target: float) -> Row:
    """A ratio that should not be smaller."""
    return name, value, f"≥ {target:g}", value >= target


def at_most(name: str, value: float, target: float) -> Row:
    """A ratio that should not be larger."""
    return name, value, f"≤ {target:g}", value <= target


def worst(rows: list[Row]) -> list[Row]:
    """Of rows "case: measure" with one limit the worst case, and of how many it is."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row[0].partition(": ")[2] or row[0], row[2]), []).append(row)
    picked = [
        (len(group), (min if limit[0] == "≥" else max)(group, key=lambda row: row[1]))
        for (_, limit), group in found.items()
    ]
    return [(f"{row[0]} (worst of {n})" if n > 1 else row[0], *row[1:]) for n, row in picked]


def conclude(rows: list[Row], section: str, write_docs: bool) -> int:
    """Print the verdicts, write the worst of each measure into a section of the page when asked to; the exit code."""
    print()
    for name, value, limit, good in rows:
        print(f"{'ok  ' if good else 'MISS'}  {name:<60} {value:>10.3g}   target {limit}")
    if write_docs:
        cells = [
            [name, limit, f"{value:.3g}" if good else f"{value:.3g}, MISSED"]
            for name, value, limit, good in worst(rows)
        ]
        write_page(PAGE, section, markdown(["what", "limit", "measured"], cells))
    return 0 if all(good for *_, good in rows) else 1
