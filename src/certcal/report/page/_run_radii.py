"""A run over the radius: clean beside worst case, and the curves of what is certified."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from certcal._html import Raw, element, join, table
from certcal.claims import round_outward
from certcal.report.numbers import number
from certcal.report.page._curves import BETWEEN, curves
from certcal.report.page._diagrams import MOST_BARS, MOST_SIGNS, counts_of, reliability_legend, reliability_states
from certcal.report.page._frames import slider
from certcal.report.page._pieces import figure, note, row, scrolling
from certcal.smoothing import Review, Reviewed

KEY = "radius"
NOTHING = "–"


def clean_and_worst(review: Review, frames: Sequence[int]) -> Raw:
    """The reliability diagram without a perturbation beside that of the worst case, at each of some radii.

    Parameters
    ----------
    review
        What the run certifies.
    frames
        Places of the radii among those of the review.
    """
    start = frames.index(review.headline)
    lines = [review.at(place) for place in frames]
    clean = [review.clean_bins(place) for place in frames]
    before = [None if each is None else each.table for each in clean]
    worst = [None if one.worst_bins is None else one.worst_bins.table for one in lines]
    names = [f"radius {one.radius}" for one in lines]
    texts = [_said(one, None if each is None else each.ece) for one, each in zip(lines, clean, strict=True)]
    shared: Any = {"chosen_by": KEY, "start": start, "count_axis": counts_of([*before, *worst])}
    unperturbed, clean_numbers = reliability_states(
        "clean", "Reliability diagram without a perturbation", before, names, **shared
    )
    signs = [None if one.worst is None else one.worst.signs for one in lines]
    perturbed, worst_numbers = reliability_states(
        "worst-case", "Reliability diagram of the worst case", worst, names, signs=signs, **shared
    )
    many = review.bins > MOST_BARS
    drawn = " Neighbouring bins are drawn as one." if many else ""
    if not any(one.summary.n_certified for one in lines):
        return element("p", texts[start], "; the other radii have none either." if len(frames) > 1 else ".")
    return join(
        slider(KEY, "Radius", names, start, texts=texts) if len(frames) > 1 else element("p", texts[start]),
        note(f"The slider has {len(frames):,} of {len(review.radii):,} radii; the table of values has all.")
        if len(frames) < len(review.radii)
        else None,
        row(
            figure(
                unperturbed,
                "The certified samples as they are: an estimate. Each smoothed confidence is the mean of its draws, "
                f"read off a histogram, which moves it by at most {_off(review)}.{drawn}",
                heading="Nobody perturbs the inputs",
                legend=reliability_legend(many=many),
                numbers=clean_numbers,
            ),
            figure(
                perturbed,
                "The same samples with confidences inside their certified intervals that reach the worst calibration "
                f"error: each goes where it opens the gap of a bin most. No other choice is worse.{drawn}",
                heading="The worst that the certificates leave possible",
                legend=reliability_legend(signs=review.bins <= MOST_SIGNS, many=many),
                numbers=worst_numbers,
            ),
        ),
    )


def _said(one: Reviewed, ece: float | None) -> Raw:
    """What a position of the slider means, in one line."""
    certified = f"{one.summary.n_certified:,} of {one.summary.n:,} samples certified"
    if one.worst is None or ece is None:
        return element("span", f"radius {one.radius}: no sample is certified, so there is nothing to draw")
    failing = "" if one.certificates.familywise else f" (claimed: {one.claim.text}, with certificates that fail)"
    return element(
        "span",
        f"radius {one.radius}: calibration error {number(ece)} (estimate) without a perturbation, at most ",
        element("strong", one.worst.text),
        f" in the worst case{failing}; {certified}",
    )


def _off(review: Review) -> str:
    return round_outward(float(review.clean.error.max()), "upper")


def over_radii(review: Review, frames: Sequence[int]) -> Raw:
    """Certified accuracy, calibration errors and Brier score against the radius."""
    lines = [review.at(place) for place in frames]
    radii = [one.certificates.radius for one in lines]
    slides = any(one.summary.n_certified for one in lines)
    mark = (KEY, tuple(range(len(frames))), frames.index(review.headline)) if slides else None
    clean = [review.clean_bins(place) for place in frames]

    def values(found: Sequence[Any], name: str = "value") -> list[float]:
        return [math.nan if each is None else float(getattr(each, name)) for each in found]

    together = lines[0].certificates.familywise
    claimed = [one.claim if one.summary.n_certified else None for one in lines]
    accuracies = [one.summary.accuracy for one in lines]
    accuracy, accuracy_keys = curves(
        "accuracy-curve",
        "Certified accuracy against the radius",
        radii,
        {"certified accuracy, at least": values(accuracies)},
        x_label="radius",
        y_label="certified accuracy",
        description=_ends("Certified accuracy", lines, accuracies),
        most=1.0,
        mark=mark,
    )
    worst = [one.worst for one in lines]
    errors, error_keys = curves(
        "error-curve",
        "Calibration error against the radius",
        radii,
        {
            "worst case of these samples": values(worst),
            "claimed" if together else "claimed, with certificates that fail": values(claimed),
            "bound for the population": values([one.summary.population for one in lines]),
            "without a perturbation (estimate)": values(clean, "ece"),
        },
        x_label="radius",
        y_label="calibration error",
        description=_ends("The worst calibration error of the certified samples", lines, worst),
        most=1.0,
        mark=mark,
    )
    briers = [one.summary["brier_score"].worst for one in lines]
    brier, brier_keys = curves(
        "brier-curve",
        "Brier score against the radius",
        radii,
        {"Brier score, at most": values(briers)},
        x_label="radius",
        y_label="Brier score",
        description=_ends("The worst Brier score of the certified samples", lines, briers),
        most=1.0,
        mark=mark,
    )
    whole = [one.summary["calibration_error"].worst_all for one in lines]
    bounds = [one.summary.population_all for one in lines]
    everything, whole_keys = curves(
        "all-curve",
        "Calibration error of all samples against the radius",
        radii,
        {"worst case of these samples": values(whole), "bound for the population": values(bounds)},
        x_label="radius",
        y_label="calibration error",
        description=_ends("The worst calibration error of all samples", lines, whole),
        most=1.0,
        mark=mark,
    )
    dotted = " The dotted upright line is the radius that the slider has chosen." if slides else ""
    populations = [one.summary.population for one in lines]
    estimates = [NOTHING if each is None else number(each.ece) for each in clean]

    def numbers(caption: str, header: Sequence[str], *columns: Sequence[str]) -> Raw:
        rows = [(one.radius, *cells) for one, *cells in zip(lines, *columns, strict=True)]
        heads = ["radius", *header]
        return scrolling(table(heads, rows, caption, numeric=range(len(heads)), row_headers=True), caption)

    between = f" {BETWEEN}"
    return row(
        figure(
            errors,
            f"The certified samples become fewer as the radius grows, and the easier ones are left.{dotted}{between}",
            legend=error_keys,
            heading="Calibration error (ECE), certified samples",
            numbers=numbers(
                "Calibration error of the certified samples",
                ["estimate without a perturbation", "worst case ≤", "claimed ≤", "population ≤"],
                estimates,
                _texts(worst),
                _texts(claimed),
                _texts(populations),
            ),
        ),
        figure(
            accuracy,
            f"The share of all samples whose prediction is certified and correct.{between}",
            legend=accuracy_keys,
            heading="Certified accuracy",
            numbers=numbers("Certified accuracy", ["accuracy ≥"], _texts(accuracies)),
        ),
        figure(
            everything,
            "The same samples at every radius: those that are not certified may have any confidence and be right or "
            f"wrong.{between}",
            legend=whole_keys,
            heading="Calibration error (ECE), all samples",
            numbers=numbers(
                "Calibration error of all samples", ["worst case ≤", "population ≤"], _texts(whole), _texts(bounds)
            ),
        ),
        figure(
            brier,
            f"The largest mean squared distance between confidence and correctness.{between}",
            legend=brier_keys,
            heading="Brier score, certified samples",
            numbers=numbers("Brier score of the certified samples", ["Brier score ≤"], _texts(briers)),
        ),
    )


def _texts(found: Sequence[Any]) -> list[str]:
    return [NOTHING if each is None else str(each.text) for each in found]


def _ends(name: str, lines: Sequence[Reviewed], found: Sequence[Any]) -> str:
    texts = ["undefined" if found[place] is None else str(found[place].text) for place in (0, -1)]
    first, last = lines[0].radius, lines[-1].radius
    return f"{name} is {texts[0]} at radius {first}" + (f" and {texts[1]} at radius {last}." if len(lines) > 1 else ".")
