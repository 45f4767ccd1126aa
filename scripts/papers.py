"""Write docs/papers.md anew from the plans: a table of each paper between its markers, with notes that rows share.

python scripts/papers.py
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

from certcal.lab.plans.plan import HERE, PaperPlan, open_plan, plan_names

PAGE = Path(__file__).parent.parent / "docs" / "papers.md"
_MARKED = re.compile(r"<!-- plans (?P<paper>[a-z]+): begin -->\n.*?<!-- plans (?P=paper): end -->", re.DOTALL)


def _told(plan: PaperPlan) -> tuple[str, str]:
    """What a plan needs, with what it took in the paper, and what differs."""
    cost = f"{plan.cost} in the paper" if plan.cost not in ("", "not printed") else ""
    return "; ".join(each for each in (*plan.needs.values(), cost) if each), plan.differs


def section(paper: str) -> str:
    """The words and the table of one paper."""
    about: dict[str, Any] = tomllib.loads((HERE / paper / "paper.toml").read_text("utf-8"))
    plans = [open_plan(name) for name in plan_names() if open_plan(name).paper == paper]
    count = Counter(text for plan in plans for text in _told(plan))
    shared = {text: f"{number}" for number, text in enumerate((text for text in count if text and count[text] > 1), 1)}
    lines = [f"*{about['authors']}: {about['title']}.*", ""]
    lines += [f"{about['about']}\n"] if "about" in about else []
    lines += ["|plan|in the paper|needs|run here|what differs|", "|---|---|---|---|---|"]
    before = ""
    for plan in plans:
        needs, differs = (f"[{shared[text]}]" if text in shared else text for text in _told(plan))
        title = "the same" if plan.title == before else plan.title
        place = re.sub(r"^(Table|Figure) \w+, ", "", plan.place).replace("section ", "§")  # the name says which
        cells = (f"`{plan.name}`", f"{place}: {title}", needs, plan.here or "tests", differs)
        lines.append(f"|{'|'.join(cell.replace('|', '/') or '–' for cell in cells)}|")
        before = plan.title
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
