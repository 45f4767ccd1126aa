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


def conclude(rows: list[Row], section: str, write_docs: bool) -> int:
    """Print the verdicts, write them between the markers of a section when asked to, and return the exit code."""
    print()
    for name, value, limit, good in rows:
        print(f"{'ok  ' if good else 'MISS'}  {name:<60} {value:>10.3g}   target {limit}")
    if write_docs:
        cells = [[name, limit, f"{value:.3g}" if good else f"{value:.3g}, MISSED"] for name, value, limit, good in rows]
        write_page(PAGE, section, markdown(["what", "limit", "measured"], cells))
    return 0 if all(good for *_, good in rows) else 1
