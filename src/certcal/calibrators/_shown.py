"""A recalibration in a notebook."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from certcal._html import Raw, element, table
from certcal.calibrators._split import sizes_in_words
from certcal.claims import short_text

if TYPE_CHECKING:
    from certcal.calibrators._judged import Judged, JudgedAt
    from certcal.calibrators._recalibrate import Recalibration

_CLEAN = {"brier_score": "Brier score", "ece": "ECE", "auroc": "AUROC"}
_CERTIFIED = ("Brier score ≤", "calibration error ≤", "skill ≥", "population's calibration error ≤", "gain ≥")


def markup(found: Recalibration) -> Raw:
    """The verdict, and a line per map: estimates without a perturbation, then what is certified at each radius.

    Parameters
    ----------
    found
        From :func:`certcal.calibrators.recalibrate`.
    """
    from certcal.calibrators._verdict import verdict

    header = ["map", *(f"clean {name}" for key, name in _CLEAN.items() if key in found.identity.clean)]
    header += [f"{_place(radius)}: {name}" for radius in found.radii for name in _CERTIFIED]
    rows = [_row(line, chosen=line is found.chosen) for line in found.lines]
    fitted, others = sizes_in_words(found.n_fit, found.n_held_out)
    caption = (
        f"Fitted to {fitted}, judged on {others}. Clean numbers are estimates; the "
        f"population's hold except with probability {short_text(found.settings['delta'], 'upper')} each"
    )
    shown = table(header, rows, caption, numeric=range(1, len(header)), row_headers=True)
    return element("div", element("p", verdict(found)), shown)


def _place(radius: str) -> str:
    return f"radius {radius}" if radius else "inside the intervals"


def _row(line: Judged, *, chosen: bool) -> list[str]:
    clean = [line.clean[key].value for key in _CLEAN if key in line.clean]
    cells = ["undefined" if math.isnan(value) else f"{value:.4f}" for value in clean]
    return [f"{line.name} (chosen)" if chosen else line.name, *cells, *(text for at in line.at for text in _texts(at))]


def _texts(at: JudgedAt) -> tuple[str, ...]:
    """What is certified at a radius, rounded in the safe direction."""
    summary = at.summary
    claims = (
        summary["brier_score"].worst,
        summary["calibration_error"].worst,
        summary.skill,
        summary.population,
        at.gain,
    )
    return tuple("undefined" if claim is None else claim.text for claim in claims)
