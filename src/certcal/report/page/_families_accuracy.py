"""Certified accuracy of families: at each noise level, at the best one for each radius, and at other settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from certcal._html import Raw, element, join, table
from certcal.claims import short_text
from certcal.report.numbers import number
from certcal.report.page._axes import Axis, ticks
from certcal.report.page._curves import BETWEEN
from certcal.report.page._families_drawn import (
    Line,
    grouped_table,
    key_of,
    left_out,
    lines_figure,
    members,
)
from certcal.report.page._pieces import beside, clipped, note, row, scrolling, shown
from certcal.smoothing.robustness import Families, Family

_AT_LEAST = (
    "At least this share of all samples is predicted correctly under every perturbation up to the radius, where the "
    "radii of the samples hold."
)


def accuracy_part(found: Families) -> Raw:
    """A chart and a table for each noise level."""
    figures: list[Raw] = []
    parts: list[tuple[str, list[tuple[str, ...]]]] = []
    for sigma in found.sigmas:
        runs = members(found, sigma)
        figures += lines_figure(
            f"accuracy-{key_of(sigma, found)}",
            f"Certified accuracy against the radius, sigma {sigma:g}",
            found.at,
            [Line(place, name, run.curve.values) for place, name, run in runs],
            _axis(),
            [_said(name, run.curve.texts, found.at) for _, name, run in runs],
            caption=None,
            heading=f"Sigma {sigma:g}",
        )
        parts.append((f"sigma {sigma:g}", [(name, *run.curve.texts) for _, name, run in runs]))
    caption = "Certified accuracy, rounded down"
    header = ["radius", *_radii(found)]
    return join(
        element("p", f"{_AT_LEAST} {BETWEEN}"),
        row(*figures),
        scrolling(grouped_table(header, parts, caption), caption),
        left_out(found),
    )


def best_part(found: Families) -> Raw:
    """What each family reaches when the noise level is chosen at each radius, and which family is ahead there."""
    figures = lines_figure(
        "best",
        "Best certified accuracy over sigma, against the radius",
        found.at,
        [Line(place, family.name, family.best.values) for place, family in enumerate(found.families)],
        _axis(),
        [_said(family.name, family.best.texts, found.at) for family in found.families],
        caption=f"The highest certified accuracy over the noise levels of a family. {BETWEEN}",
    )
    caption = "Best certified accuracy over sigma, rounded down, with the sigma that reaches it"
    rows = [
        (
            short_text(radius, "lower"),
            *(_two_lines(family.best.texts[i], _reached(family, i)) for family in found.families),
            _two_lines(found.best.texts[i], _ahead(found, i)),
        )
        for i, radius in enumerate(found.at)
    ]
    header = ["radius", *(shown(name, 40) for name in found.names), "best"]
    numbers = table(header, rows, caption, numeric=range(len(header)), row_headers=True)
    chosen = note(
        "A sigma that is chosen after looking costs something: each run's radius of a sample may fail with probability "
        "alpha, so the best of several with up to their sum."
    )
    shown_numbers = join(scrolling(numbers, caption), chosen)
    if len(figures) == 1 and len(found.families) <= 3:
        return join(beside(figures[0], shown_numbers), left_out(found))
    return join(row(*figures), shown_numbers, left_out(found))


def _two_lines(value: str, below: str) -> Raw:
    return join(value, element("span", below, class_="spread"))


def _reached(family: Family, i: int) -> str:
    """The noise levels that reach the best at a radius."""
    names = family.best.names[i]
    if len(names) == len(family.runs) > 1:
        return "any σ"
    return f"σ {', '.join(f'{run.sigma:g}' for run in family.runs if run.name in names)}"


def _ahead(found: Families, i: int) -> str:
    """The families that reach the best at a radius."""
    names = found.best.names[i]
    return "all" if len(names) == len(found.families) > 1 else clipped(", ".join(names), 60)


def settings_part(found: Families) -> Raw:
    """Certified accuracy as it would be at other budgets and levels: one table per noise level."""
    made: list[Raw] = []
    for sigma in found.sigmas:
        own = [each for each in found.settings if each.sigma == sigma]
        # Beyond some radius nothing is certified at this noise level, whatever the setting.
        highest = [max(float(values.upper[i]) for each in own for _, values in each.rows) for i in range(len(found.at))]
        reach = min(len(found.at), 1 + max((i for i, value in enumerate(highest) if value > 0), default=0))
        beyond = "; 0 at every further radius" if reach < len(found.at) else ""
        parts = [
            (
                each.setting.text,
                [
                    (name, *_cells(values, resolved)[:reach])
                    for (name, values), resolved in zip(each.rows, each.resolved, strict=True)
                ],
            )
            for each in own
        ]
        caption = f"Certified accuracy to be expected at sigma {sigma:g}, by radius{beyond}"
        made.append(scrolling(grouped_table(["radius", *_radii(found)[:reach]], parts, caption), caption))
    notes = dict.fromkeys(each.note for each in found.settings if each.note)
    return join(
        element(
            "p",
            "Estimates: what N draws at level alpha would certify, if every sample's votes came in the proportion seen "
            "here. Each value is one look at the distribution of p_A; nothing was drawn anew.",
        ),
        made,
        [note(each) for each in notes],
    )


def _cells(values: Any, resolved: Sequence[bool]) -> list[str]:
    cells: list[str] = []
    for low, high, sure in zip(values.lower.tolist(), values.upper.tolist(), resolved, strict=True):
        text = number(low) if low == high else f"{number(low)} – {number(high)}"
        cells.append(text if sure else f"~{text}")
    return cells


def _axis() -> Axis:
    return Axis(0.0, 1.0, ticks(0, 1), "certified accuracy")


def _radii(found: Families) -> list[str]:
    return [short_text(radius, "lower") for radius in found.at]


def _said(name: str, texts: Sequence[str], radii: Sequence[float]) -> str:
    near, far = (short_text(radii[place], "lower") for place in (0, -1))
    return f"{clipped(name, 60)}: {texts[0]} at radius {near}, {texts[-1]} at radius {far}."
