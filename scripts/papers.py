"""Write docs/papers.md anew from the plans: a table of each paper between its markers, with notes that rows share.

Neighbours that need, did and differ in the same share a row, if their titles begin alike.

python scripts/papers.py
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from itertools import takewhile
from pathlib import Path
from typing import Any

from certcal.lab.plans.plan import HERE, PaperPlan, open_plan, plan_names

PAGE = Path(__file__).parent.parent / "docs" / "papers.md"
_MARKED = re.compile(r"<!-- plans (?P<paper>[a-z]+): begin -->\n.*?<!-- plans (?P=paper): end -->", re.DOTALL)


def _told(plan: PaperPlan) -> tuple[str, str, str]:
    """What a plan needs, what of it was run here, and what differs."""
    return "; ".join(each for each in plan.needs.values() if each), plan.here, plan.differs


def _range(names: list[str]) -> str:
    """Names of neighbours: `bsc-figure24` … `27`."""
    first, last = names[0], names[-1]
    short = re.sub(r"^.*?(table|figure)(?=\d)", "", last)
    return f"`{first}`" if first == last else f"`{first}`{',' if len(names) == 2 else ' …'} `{short}`"


def section(paper: str) -> str:
    """The words and the table of one paper."""
    about: dict[str, Any] = tomllib.loads((HERE / paper / "paper.toml").read_text("utf-8"))
    plans = [open_plan(name) for name in plan_names() if open_plan(name).paper == paper]
    count = Counter(text for plan in plans for text in _told(plan)[::2])
    shared = {text: f"{number}" for number, text in enumerate((text for text in count if text and count[text] > 1), 1)}
    lines = [f"*{about['authors']}: {about['title']}.*", ""]
    lines += [f"{about['about']}\n"] if "about" in about else []
    lines += ["|plan|in the paper|needs|run here|what differs|", "|---|---|---|---|---|"]
    rows: list[tuple[list[str], list[str], tuple[str, ...]]] = []  # names, title in words, the other cells
    for plan in plans:
        cells, words = _told(plan), plan.title.split()
        alike = takewhile(lambda pair: pair[0] == pair[1], zip(rows[-1][1], words, strict=False)) if rows else ()
        common = [word for word, _ in alike] if rows and rows[-1][2] == cells else []
        if len(common) >= 4 or common == words:
            rows[-1] = ([*rows[-1][0], plan.name], common, cells)
        else:
            rows.append(([plan.name], words, cells))
    before: list[str] = []
    for names, words, (needs, here, differs) in rows:
        notes = (f"[{shared[text]}]" if text in shared else text for text in (needs, here, differs))
        title = re.sub(r"(,| (by|on|of|before|after|in|the|top|for|and|with|every|trained))+$", "", " ".join(words))
        cells = (_range(names), "the same" if words == before else title, *notes)
        lines.append(f"|{'|'.join(cell.replace('|', '/') or '–' for cell in cells)}|")
        before = words
    lines += ["", *(f"[{number}] {text}.<br>" for text, number in shared.items())]
    lines += ["", about["without"]] if "without" in about else []
    return "\n".join(lines)


def page(text: str) -> str:
    """The page with every marked section made anew."""

    def made(found: re.Match[str]) -> str:
        paper = found["paper"]
        return f"<!-- plans {paper}: begin -->\n{section(paper)}\n<!-- plans {paper}: end -->"

    return _MARKED.sub(made, text)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), encoding="utf-8")
