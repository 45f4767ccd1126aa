"""The page of the experiment on average certified radius: its tables in order, and its figures."""

from __future__ import annotations

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

from certcal.smoothing.robustness import FamilyComparison

LOOKED_AT = 0.5  # the σ of Table 2 and Figure 5
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
        "Average certified radius, and certified accuracy in per cent at each radius. Bold: the highest per σ. "
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
    from certcal.report.mpl import draw as drawn
    from certcal.report.mpl import save
    from certcal.report.views.comparison import accuracy_charts, dominance_charts, p_a_charts
    from certcal.report.views.training import norm_charts

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
