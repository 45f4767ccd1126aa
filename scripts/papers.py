"""Write docs/papers.md anew from the plans: a table of each paper between its markers.

python scripts/papers.py
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from certcal.lab.plans.plan import HERE, open_plan, plan_names

PAGE = Path(__file__).parent.parent / "docs" / "papers.md"
_MARKED = re.compile(r"<!-- plans (?P<paper>[a-z]+): begin -->\n.*?<!-- plans (?P=paper): end -->", re.DOTALL)


def section(paper: str) -> str:
    """The words and the table of one paper."""
    about: dict[str, Any] = tomllib.loads((HERE / paper / "paper.toml").read_text("utf-8"))
    plans = [open_plan(name) for name in plan_names() if open_plan(name).paper == paper]
    lines = [f"*{about['authors']}: {about['title']}.*", ""]
    lines += [f"{about['about']}\n"] if "about" in about else []
    lines += ["| in the paper | `certcal reproduce` | needs | in the paper it took | run here | what differs |"]
    lines += ["|---|---|---|---|---|---|"]
    for plan in plans:
        cells = [f"{plan.place}: {plan.title}", f"`{plan.name}`", "; ".join(plan.needs.values()), plan.cost]
        cells += [plan.here or "in the tests, at the smallest scale", plan.differs]
        lines.append(f"| {' | '.join(cell.replace('|', '/') or '–' for cell in cells)} |")
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
