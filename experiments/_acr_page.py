"""The page of the experiment on average certified radius: its tables in order, and its figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from _acr_jobs import METHODS, gradients_of
from _acr_tables import (
    Network,
    ablation_table,
    best_table,
    calibration_table,
    confidence_table,
    differences_table,
    families_of,
    methods_table,
    of,
    orders,
    seeds_table,
)
from _running import markdown

from certcal._base.text import three_digits
from certcal.lab.logs import FamilyComparison
from certcal.lab.plans.gradient_norms import GradientNorms
from certcal.report.charts import Axis, Boxes, Chart, Panel, Segments, Words, named_axis
from certcal.report.document import Column, Table

LOOKED_AT = 0.5  # the σ of Table 2 and Figure 5
# A norm of 0 has no place on a logarithmic axis: it is drawn at its end, so many times below the least of the others.
BELOW = 0.3
FINE = tuple(step / 40 for step in range(101))  # radii of a figure


def gradients_table(networks: Sequence[Network]) -> str:
    """Table 2: mean gradient norms of easy and hard training images by each method's own loss."""
    rows: list[list[str]] = []
    for method in METHODS:
        network = of(networks, method, LOOKED_AT)
        if network is None:
            continue
        found = gradients_of(network.job)
        for what, way in found.ways.items():
            ratio, interval = way.ratio, way.ratio_interval
            name = network.job.title + (f", {what}" if found.before is not None else "")
            within = "" if interval is None else f" [{interval[0]:.2f}, {interval[1]:.2f}]"
            texts = [f"{each.mean:.2f} ({each.count})" if each.count else "–" for each in (way.easy, way.hard)]
            rows.append([name, f"{network.average:.3f}", *texts, "–" if ratio is None else f"{ratio:.2f}{within}"])
    return markdown(["method", "ACR", "easy (images)", "hard (images)", "easy / hard [95 %]"], rows)


def page(networks: Sequence[Network]) -> tuple[str, FamilyComparison]:
    """All tables, and what the figures are drawn from."""
    families = families_of(networks)
    parts = [
        "### Methods (the layout of Table 3)",
        "Average certified radius, and certified accuracy in per cent at each radius. "
        "↓: below Gaussian training at the same σ.",
        methods_table(networks),
        "### What average certified radius hides",
        "Shares of the test images in per cent; differences to Gaussian training on the same images ± one standard "
        "error over the images; share of the training images that the method keeps to the end.",
        differences_table(networks),
        "### Parts of the recipe (the layout of Table 5)",
        ablation_table(networks),
        "### Best σ at each radius",
        best_table(families),
        "### Who is better than whom",
        orders(families),
        f"### Gradients of easy and hard training images at σ = {LOOKED_AT:g} (the layout of Table 2)",
        gradients_table(networks),
        "### Confidence without an attack",
        "In per cent. Accuracy is of the class chosen by the first 100 draws, certified or not.",
        confidence_table(networks),
        "### Certified calibration",
        "In per cent, the exact largest value that the certified intervals allow, over the certified images and over "
        "all, where uncertified ones may be anything. Skill above 0: the confidences of certified images tell more "
        "than their accuracy alone.",
        calibration_table(networks),
    ]
    again = seeds_table(networks)
    if again:
        parts += ["### A second seed", again]
    spent = sum(each.record["train"] + each.record["sample"] for each in networks) / 3600
    parts.append(f"{len(networks)} networks were trained and sampled in {spent:.2g} hours of one busy core.")
    return "\n\n".join(parts), families


def draw(networks: Sequence[Network], families: FamilyComparison, folder: Path) -> list[Path]:
    """The figures, as files."""
    from certcal.lab.logs.view import accuracy_charts, dominance_charts, p_a_charts
    from certcal.report.mpl import draw as drawn
    from certcal.report.mpl import save

    figures: dict[str, Any] = {
        "acr-pa": drawn(p_a_charts(families)),
        "acr-accuracy": drawn(accuracy_charts(families_of(networks, FINE))),
        "acr-graphs": drawn(dominance_charts(families)),
    }
    recipe = of(networks, "acr", LOOKED_AT)
    if recipe is not None:
        figures["acr-gradients"] = drawn(norm_charts(gradients_of(recipe.job)))
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in figures.items():
        save(figure, folder / f"{name}.svg", force=True)
    return [folder / f"{name}.svg" for name in figures]


def norm_charts(found: GradientNorms) -> list[Chart]:
    """Gradient norms of single samples by their p_A, on a logarithmic axis.

    Boxes hold the middle half with the median as a line, lines reach from 5 to 95 per cent; the number of samples is
    below each. A method that attacks its noise has two charts on one scale, before and after the attack: Figure 5 of
    Sun et al. (2025). Norms of 0 are drawn at the lower edge.
    """
    series = list(found.ways.values())
    values = [each for one in series for box in one.bins for each in box.quantiles or ()]
    positive = [each for each in values if each > 0]
    low = BELOW * min(positive) if len(positive) < len(values) else min(positive)
    axis = decades(low, max(positive))
    zero = " Norms of 0 are drawn at the lower edge." if len(positive) < len(values) else ""
    titles = [""] if len(series) == 1 else [", noise as drawn", ", noise after its attack"]
    return [boxes(one, title, axis, zero) for one, title in zip(series, titles, strict=True)]


def decades(low: float, high: float) -> Axis:
    """A logarithmic axis with a tick at every power of ten, or at both ends."""
    start, end = low / 1.1, high * 1.1
    powers = range(math.ceil(math.log10(start)), math.floor(math.log10(end)) + 1)
    step = max(1, len(powers) // 5)
    ticks = tuple((10.0**power, f"{10.0**power:g}") for power in powers[::step])
    if len(ticks) < 2:
        ticks = ((low, f"{low:.2g}"), (high, f"{high:.2g}"))
    return Axis(start, end, ticks, "gradient norm", log=True)


def boxes(found: GradientNorms, title: str, axis: Axis, note: str) -> Chart:
    bins = found.bins
    quantiles = [
        tuple(max(each, axis.low) for each in box.quantiles) if box.quantiles else (math.nan,) * 5 for box in bins
    ]
    across = named_axis([f"{box.low:g}–{box.high:g}" for box in bins], "p_A, share of noisy copies with the true label")
    middle = len(bins) / 2
    marks = [
        Segments([(middle, axis.low, middle, axis.high)], "ideal"),
        Boxes(*zip(*quantiles, strict=True)),
        Words([middle - 0.7, middle + 0.7], [axis.low * (axis.high / axis.low) ** 0.92] * 2, ["hard", "easy"]),
    ]
    columns = [Column("p_A"), Column("samples", "count"), *(Column(f"{share} %") for share in (5, 25, 50, 75, 95))]
    rows = [
        [f"{box.low:g}–{box.high:g}", box.count, *(map(three_digits, box.quantiles) if box.quantiles else [None] * 5)]
        for box in bins
    ]
    name = f"{found.method}, σ = {found.sigma:g}{title}"
    caption = f"Boxes: middle half and median of the norms of single samples; lines: 5 to 95 %.{note}"
    numbers = Table(columns, rows, f"Gradient norms: {name}")
    return Chart(name, found.statement, [Panel(across, axis, marks)], caption, numbers, "medium")
