"""Draws the figures of the documentation: run `python scripts/figures.py` after changing what they show."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from certcal.report.figures import save
from certcal.report.sign_runs import sign_runs
from certcal.worst_case import calibration_error

FIGURES = Path(__file__).parent.parent / "docs" / "figures"


def main() -> None:
    """Draw all figures."""
    rng = np.random.default_rng(4)
    centre = rng.beta(3, 1.5, 18)
    width = rng.beta(2, 6, 18)
    lower, upper = np.clip(centre - width, 0, 1), np.clip(centre + width, 0, 1)
    correct = (rng.random(18) < centre).astype(int)
    worst = calibration_error(lower, upper, correct, bins=8)
    save(sign_runs(worst, lower, upper, correct), FIGURES / "sign-runs.svg", force=True)


if __name__ == "__main__":
    main()
