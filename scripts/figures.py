"""Draws the figures of the documentation: run `python scripts/figures.py` after changing what they show.

Most are what the code on docs/reports.md saves, so the page shows exactly what its code draws.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from pathlib import Path

import numpy as np

from certcal.report import sign_runs
from certcal.report.mpl import save
from certcal.worst_case import calibration_error

ROOT = Path(__file__).parent.parent
FIGURES = ROOT / "docs" / "figures"

sys.path.insert(0, str(ROOT))

from tests.test_docs import blocks, commands, run_command


def draw_sign_runs() -> None:
    """Draw the figure of docs/worst-case.md."""
    rng = np.random.default_rng(4)
    centre = rng.beta(3, 1.5, 18)
    width = rng.beta(2, 6, 18)
    lower, upper = np.clip(centre - width, 0, 1), np.clip(centre + width, 0, 1)
    correct = (rng.random(18) < centre).astype(int)
    worst = calibration_error(lower, upper, correct, bins=8)
    save(sign_runs(worst, lower, upper, correct).figure(), FIGURES / "sign-runs.svg", force=True)


def draw_page(page: Path) -> None:
    """Run a page and keep the figures that it saves."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for block in blocks(page.read_text("utf-8")):
            if block.kind == "python":
                exec(block.text, namespace)
            for command, _ in commands(block.text) if block.kind == "console" else ():
                run_command(command, Path(folder))
        for drawn in Path(folder).glob("*.svg"):
            (FIGURES / drawn.name).write_bytes(drawn.read_bytes())


if __name__ == "__main__":
    draw_sign_runs()
    draw_page(ROOT / "docs" / "reports.md")
