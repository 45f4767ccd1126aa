"""What of the information in the confidences survives, on a page: the verdict, and the Brier score taken apart."""

from __future__ import annotations

from certcal._html import Raw, element, join, table
from certcal.report.page._pieces import note
from certcal.worst_case import CertifiedSummary

TITLE = "What the confidences still tell"
_CAPTION = "The certified Brier score, taken apart"


def information_part(summary: CertifiedSummary, radius: str | None) -> Raw:
    """The verdict in words, and the parts of the certified Brier score in a table.

    Parameters
    ----------
    summary
        Of the samples.
    radius
        As text; None to speak of the given intervals.

    Examples
    --------
    >>> from certcal.worst_case import certify
    >>> part = information_part(certify([0.75, 0.75, 0.25], [1, 1, 0.5], [1, 1, 0]), "0.5")
    >>> "At radius 0.5, these confidences carry information" in part, "0.2222" in part
    (True, True)
    """
    found, brier = summary.information, summary["brier_score"].worst
    verdict = element("p", found.verdict_at(radius))
    if brier is None:
        return verdict
    rows = [
        ("uncertainty: the best constant confidence", "at most", found.uncertainty.text),
        ("− resolution: what the best monotone map gains on it", "at least", found.resolution.text),
        ("+ miscalibration: what a monotone map could take away", "at most", found.miscalibration.text),
        ("= certified Brier score", "at most", brier.text),
        ("skill of these confidences", *_side(found.skill.text)),
        ("skill of the best monotone map", *_side(found.best_skill.text)),
    ]
    return join(
        verdict,
        element(
            "div", table(["part", "side", "value"], rows, _CAPTION, numeric=(2,), row_headers=True), class_="narrow"
        ),
        note(
            "Over the certified samples, each number rounded in the safe direction. The best monotone map is fitted to "
            "these very samples, so its numbers are optimistic for others. Skill is what a score is below that of the "
            "best constant confidence, as a share of it."
        ),
    )


def _side(text: str) -> tuple[str, str]:
    return ("" if text == "undefined" else "at least"), text
