"""What smoothing certifies of the confidences of families, against the radius: exact worst cases."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from certcal._html import Raw, element, join
from certcal.claims import short_text
from certcal.report.document import NOTHING
from certcal.report.page._axes import Axis, covering, ticks
from certcal.report.page._curves import BETWEEN
from certcal.report.page._families_drawn import (
    TOGETHER,
    Line,
    grouped_table,
    key_of,
    left_out,
    lines_figure,
    names_legend,
)
from certcal.report.page._pieces import clipped, details, note, row, scrolling
from certcal.smoothing.robustness import CertifiedCalibration, Families
from certcal.worst_case import CertifiedSummary

_LOWEST_SKILL = -1.0


def _certified(metric: str) -> Callable[[CertifiedSummary], Any]:
    return lambda summary: summary[metric].worst


def _all(metric: str) -> Callable[[CertifiedSummary], Any]:
    return lambda summary: summary[metric].worst_all


def _skill(summary: CertifiedSummary) -> Any:
    return summary.skill


# What is drawn and printed: a key of our own, the words over a chart, those over a column, and where it is.
_QUANTITIES: tuple[tuple[str, str, str, Callable[[CertifiedSummary], Any]], ...] = (
    ("error", "Calibration error, certified samples", "calibration error ≤", _certified("calibration_error")),
    ("error-all", "Calibration error, all samples", "of all samples ≤", _all("calibration_error")),
    ("brier", "Brier score, certified samples", "Brier score ≤", _certified("brier_score")),
    ("skill", "Skill, certified samples", "skill ≥", _skill),
)
_EXPLAINED = (
    "Exact worst cases on these samples when every input may be perturbed up to the radius, where the certificates of "
    "the samples hold. The certified samples differ between families, and are the easier ones: a family that gives up "
    "hard inputs is not charged for them there. Over all samples, those that are not certified may have any confidence "
    "and be right or wrong. Skill is what the Brier score is below that of the best constant confidence, as a share of "
    "it; where it is not above 0, the confidences need not tell more than a constant."
)


def calibration_part(found: Families) -> Raw:
    """Four charts and a table for each noise level."""
    by_sigma = {sigma: [each for each in found.calibration if each.sigma == sigma] for sigma in found.sigmas}
    by_sigma = {sigma: own for sigma, own in by_sigma.items() if own}
    together = len(found.families) <= TOGETHER
    drawn = dict.fromkeys(each.family for each in found.calibration)
    keys = names_legend([(found.names.index(name), name) for name in drawn]) if together else None
    charts = [
        element(
            "div",
            element("h3", title),
            keys,
            row(*_charts(found, by_sigma, key, title, of, keys=not together), small=True),
            class_="block",
        )
        for key, title, _, of in _QUANTITIES
    ]
    there = {(each.family, each.sigma) for each in found.calibration}
    missing = [run.name for family in found.families for run in family.runs if (family.name, run.sigma) not in there]
    return join(
        element("p", f"{_EXPLAINED} {BETWEEN}"),
        charts,
        note("Skill below -1 is drawn at the lower edge.") if _is_cut(found) else None,
        [details(f"The numbers at sigma {sigma:g}", _numbers(sigma, own)) for sigma, own in by_sigma.items()],
        note(f"Not among them, since only their votes are known: {clipped(', '.join(missing), 400)}.")
        if missing
        else None,
        left_out(found),
    )


def _is_cut(found: Families) -> bool:
    return any(summary.skill.value < _LOWEST_SKILL for each in found.calibration for summary in each.summaries)


def _charts(
    found: Families,
    by_sigma: Mapping[float, Sequence[CertifiedCalibration]],
    key: str,
    title: str,
    of: Callable[[CertifiedSummary], Any],
    *,
    keys: bool,
) -> list[Raw]:
    """One quantity at every noise level."""
    figures: list[Raw] = []
    for sigma, own in by_sigma.items():
        # The same axis at every noise level, so that charts can be compared.
        everything = [_value(of(summary)) for each in found.calibration for summary in each.summaries]
        figures += lines_figure(
            f"{key}-{key_of(sigma, found)}",
            f"{title}, against the radius, sigma {sigma:g}",
            own[0].radii,
            [
                Line(found.names.index(each.family), each.family, [_value(of(summary)) for summary in each.summaries])
                for each in own
            ],
            _axis(key, everything),
            [_said(each, of) for each in own],
            caption=f"Sigma {sigma:g}",
            height=190,
            width=320,
            keys=keys,
        )
    return figures


def _axis(key: str, values: Sequence[float]) -> Axis:
    if key != "skill":
        return covering(values, "at most", most=1.0)
    finite = [value for value in values if math.isfinite(value)]
    low = max(_LOWEST_SKILL, covering([*finite, 0.0], "", low=None).low)
    return Axis(low, 1.0, ticks(low, 1), "at least")


def _value(found: Any) -> float:
    return math.nan if found is None else float(found.value)


def _text(found: Any) -> str:
    return NOTHING if found is None or found.text == "undefined" else str(found.text)


def _said(each: CertifiedCalibration, of: Callable[[CertifiedSummary], Any]) -> str:
    near, far = (
        f"{_text(of(each.summaries[place])).replace(NOTHING, 'undefined')} at radius "
        f"{short_text(each.radii[place], 'lower')}"
        for place in (0, -1)
    )
    return f"{clipped(each.family, 60)}: {near}, {far}."


def _numbers(sigma: float, own: Sequence[CertifiedCalibration]) -> Raw:
    caption = f"Certified calibration at sigma {sigma:g}, by radius; each number rounded to the safe side"
    header = ["family", "certified samples", *(words for _, _, words, _ in _QUANTITIES)]
    parts = [
        (
            f"radius {short_text(radius, 'lower')}",
            [
                (
                    each.family,
                    f"{each.summaries[i].n_certified:,} of {each.summaries[i].n:,}",
                    *(_text(of(each.summaries[i])) for _, _, _, of in _QUANTITIES),
                )
                for each in own
            ],
        )
        for i, radius in enumerate(own[0].radii)
    ]
    return scrolling(grouped_table(header, parts, caption), caption)
