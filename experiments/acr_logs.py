"""Sun et al. (2025) from published certification logs: Tables 3 and 4, Figures 2 to 4, 6 to 9 and 11, appendix B.

No network and no GPU: the logs hold one line per image, and everything follows from these in seconds.

    git clone https://github.com/eth-sri/acr-weakness
    python experiments/acr_logs.py acr-weakness --out figures
    git clone https://github.com/jh-jeong/smoothmix          # five trainings each on MNIST, as Table 8 has three
    python experiments/acr_logs.py acr-weakness --out figures --mnist smoothmix
"""

from __future__ import annotations

import argparse
import re
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from _running import RESULTS, markdown, write_results
from scipy.special import ndtri
from scipy.stats import norm

from certcal._base.checks import InputError
from certcal.lab.logs import (
    Comparison,
    Dominance,
    FamilyComparison,
    LogWarning,
    compare,
    compare_families,
    dominance,
    read_curve,
    read_log,
)
from certcal.report.charts import Axis, Chart, Line, Panel, covering, ticks
from certcal.smoothing.robustness import PaDistribution, named, vote_radii

DRAWS, ALPHA = 100_000, 0.001
SIGMAS = (0.25, 0.5, 1.0)
RADII = tuple(step / 4 for step in range(11))
FINE = tuple(step / 40 for step in range(161))
METHODS = {
    "gaussian": "Gaussian",
    "macer": "MACER",
    "smoothadv": "SmoothAdv",
    "consistency": "Consistency",
    "smoothmix": "SmoothMix",
    "catrs": "CAT-RS",
    "ours": "Ours",
}
# Table 3: ACR and certified accuracy in per cent at RADII; what is left out is 0.
PUBLISHED = {
    ("gaussian", 0.25): "0.486 81.3 66.7 50.0 32.4",
    ("macer", 0.25): "0.529 78.7 68.3 55.9 40.8",
    ("smoothadv", 0.25): "0.544 73.4 65.6 57.0 47.5",
    ("consistency", 0.25): "0.547 75.8 67.4 57.5 46.0",
    ("smoothmix", 0.25): "0.543 77.1 67.6 56.8 45.0",
    ("catrs", 0.25): "0.562 76.3 68.1 58.8 48.2",
    ("ours", 0.25): "0.564 76.6 69.1 59.3 48.3",
    ("gaussian", 0.5): "0.562 68.7 57.6 45.7 34.0 23.7 15.9 9.4 4.8",
    ("macer", 0.5): "0.680 64.7 57.4 49.5 42.1 34.0 26.4 19.2 12.0",
    ("smoothadv", 0.5): "0.684 65.3 57.8 49.9 41.7 33.7 26.0 19.5 12.9",
    ("consistency", 0.5): "0.716 64.1 57.6 50.3 42.9 35.9 29.1 22.6 16.0",
    ("smoothmix", 0.5): "0.738 60.6 55.2 49.3 43.3 37.6 32.1 26.4 20.5",
    ("catrs", 0.5): "0.757 62.3 56.8 50.5 44.6 38.5 32.7 27.1 20.6",
    ("ours", 0.5): "0.760 59.3 54.8 49.6 44.4 38.9 34.1 29.0 23.0",
    ("gaussian", 1.0): "0.534 51.5 44.1 36.5 29.4 23.8 18.2 13.1 9.2 6.0 3.8 2.3",
    ("macer", 1.0): "0.760 39.5 36.9 34.6 31.7 28.9 26.4 23.8 21.1 18.6 16.0 13.8",
    ("smoothadv", 1.0): "0.790 43.7 40.3 36.9 33.8 30.5 27.0 24.0 21.4 18.4 15.9 13.4",
    ("consistency", 1.0): "0.757 45.7 42.0 37.8 33.7 30.0 26.3 22.9 19.6 16.6 13.9 11.6",
    ("smoothmix", 1.0): "0.788 42.4 39.4 36.7 33.4 30.0 26.8 23.9 20.8 18.6 15.9 13.6",
    ("catrs", 1.0): "0.815 43.2 40.2 37.2 34.3 31.0 28.1 24.9 22.0 19.3 16.8 14.2",
    ("ours", 1.0): "0.844 42.0 39.4 36.5 33.9 31.1 28.4 25.6 23.1 20.6 18.3 16.1",
}
# Table 4: ACR on ImageNet.
IMAGENET = {
    0.25: {"gaussian": 0.476, "smoothadv": 0.532, "ours": 0.529},
    0.5: {"gaussian": 0.733, "smoothadv": 0.824, "consistency": 0.822, "smoothmix": 0.846, "ours": 0.842},
    1.0: {"gaussian": 0.875, "smoothadv": 1.040, "consistency": 0.982, "smoothmix": 1.047, "catrs": 1.071}
    | {"ours": 1.042},
}
# Figures of so many steps that lines take more room than dots.
LARGE = ("acr-logs-pa", "acr-logs-imagenet")
# The orders that appendix B.3 lists: σ, better, worse.
ORDERS = (
    (0.25, "catrs", "consistency"),
    (0.25, "catrs", "smoothadv"),
    (0.25, "ours", "catrs"),
    (0.5, "catrs", "smoothmix"),
    (1.0, "catrs", "smoothmix"),
    (1.0, "catrs", "macer"),
    (1.0, "ours", "macer"),
)


def log_at(folder: Path, data: str, method: str, sigma: float) -> Any:
    """One log, or None where there is none."""
    place = folder / "data" / "certify" / data / method
    for name in (f"noise_{sigma}.tsv", f"noise_{sigma}"):
        if (place / name).exists():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", LogWarning)
                return read_log(place / name, sigma=sigma, n=DRAWS, alpha=ALPHA)
    return None


def families_of(folder: Path, at: Sequence[float] = RADII) -> FamilyComparison:
    """The methods of Table 3 on CIFAR-10."""
    sources: dict[str, list[Any]] = {}
    for method, title in METHODS.items():
        logs = [log for sigma in SIGMAS if (log := log_at(folder, "cifar10", method, sigma)) is not None]
        if logs:
            sources[title] = logs
    if not sources:
        raise InputError(f"{folder} has no logs such as data/certify/cifar10/ours/noise_0.5.tsv; clone the repository")
    return compare_families(sources, at, alpha=ALPHA)


def methods_table(found: FamilyComparison) -> tuple[str, str]:
    """Table 3 as the logs have it, and how far it is from the printed one."""
    keys = {title: method for method, title in METHODS.items()}
    rows: list[list[str]] = []
    other: list[str] = []
    cells: list[str] = []
    for sigma in found.sigmas:
        for name, run in found.at_sigma(sigma):
            values = [run.average.value, *(100 * value for value in run.printed.values)]
            rows.append([f"{sigma:g}", name, f"{values[0]:.4f}", *(f"{each:.1f}" for each in values[1:])])
            printed = [float(each) for each in PUBLISHED[keys[name], sigma].split()]
            printed += [0.0] * (len(values) - len(printed))
            gaps = [abs(a - b) for a, b in zip(values[1:], printed[1:], strict=True)]
            beyond = [i for i, gap in enumerate(gaps) if gap > 0.0501]  # half of the last digit that is printed
            if len(beyond) > 2 or abs(values[0] - printed[0]) > 0.000501:
                at = int(np.argmax(gaps))
                worst = f"{values[1 + at]:.1f} for {printed[1 + at]:g} at R = {RADII[at]:g}"
                other.append(f"{name} at σ = {sigma:g} (ACR {values[0]:.3f} for {printed[0]:.3f}, accuracy {worst})")
            else:
                cells += [
                    f"{name} σ = {sigma:g} R = {RADII[i]:g}: {values[1 + i]:.2f} for {printed[1 + i]:g}" for i in beyond
                ]
    told = (
        f"{len(rows) - len(other)} of {len(rows)} rows are those of the printed table, but for single cells "
        f"({'; '.join(cells) or 'none'}). The others are not what these logs say: {'; '.join(other) or 'none'}."
    )
    return markdown(["σ", "method", "ACR", *(f"{radius:.2f}" for radius in RADII)], rows), told


def orders_table(folder: Path) -> str:
    """Appendix B.3: what the logs say of each order, at every p, and the authors' own points, at theirs."""
    rows: list[list[str]] = []
    for sigma, better, worse in ORDERS:
        logs = [log_at(folder, "cifar10", method, sigma) for method in (better, worse)]
        if None in logs:
            continue
        seen = [PaDistribution.of(named(log, METHODS[m])) for log, m in zip(logs, (better, worse), strict=True)]
        found = dominance(*seen)
        told = _verdict(found), _at_points(folder, sigma, better, worse)
        rows.append([f"{sigma:g}", f"{METHODS[better]} over {METHODS[worse]}", *told])
    return markdown(["σ", "order in B.3", "by the logs, at every p", "by data/ecdf, at its 501 points"], rows)


def _verdict(found: Dominance) -> str:
    if found.edge == (found.first, found.second):
        how = "above" if found.everywhere else "nowhere below"
        return f"{how} for every p ≥ {'1/2' if found.open_below is None else '0.505, open below'}"
    if found.verdict == "unclear":
        spots = ", ".join(f"{each.start:.5g} to {each.stop:.5g}" for each in found.unsettled)
        return f"above for p ≥ 0.505 but where rounded radii leave it open: {spots}"
    lost = [each for each in found.stretches if each.ahead == found.second]
    first, last = lost[0], lost[-1]
    return f"**does not hold**: below on {len(lost)} stretches, from p = {first.start:.5g} to {last.stop:.5g}"


def _at_points(folder: Path, sigma: float, better: str, worse: str) -> str:
    paths = [folder / "data" / "ecdf" / f"{method}_{sigma}.csv" for method in (better, worse)]
    if not all(path.exists() for path in paths):
        return "no file"
    one, other = (read_curve(path, sigma=sigma) for path in paths)
    lost = one.p[one.share <= other.share]
    return "above" if not lost.size else f"not above at p = {', '.join(f'{p:g}' for p in lost)}"


def ecdf_check(folder: Path) -> str:
    """Whether the authors' points are those of their logs."""
    inside = total = 0
    ends: list[float] = []
    for method in METHODS:
        for sigma in SIGMAS:
            path, log = folder / "data" / "ecdf" / f"{method}_{sigma}.csv", log_at(folder, "cifar10", method, sigma)
            if log is None or not path.exists():
                continue
            points, seen = read_curve(path, sigma=sigma), PaDistribution.of(log)
            kept = points.p > seen.open_to
            low, high = seen.survival(points.p[kept])
            fits = (low - 1e-9 <= points.share[kept]) & (points.share[kept] <= high + 1e-9)
            inside, total = inside + int(fits.sum()), total + fits.size
            ends.append(float(points.share[-1] - high[-1]))
    if not ends:
        return ""
    return (
        f"Of the {total:,} points of `data/ecdf` above p = 0.505, {inside:,} are what the logs allow. The last one of "
        f"every file, p = 1, is higher than the share of images with all {DRAWS:,} votes, by {min(ends):.4f} to "
        f"{max(ends):.4f}."
    )


def budget_example(folder: Path) -> str:
    """Appendix B.1: certified accuracy with 100 draws at level 0.01, read off the distribution of p_A."""
    log = log_at(folder, "cifar10", "ours", 1.0)
    if log is None:
        return ""
    asked = PaDistribution.of(log).certified_accuracy([0.5], n=100, alpha=0.01)
    return (
        f"Appendix B.1 asks for R = 0.5 with 100 draws at α = 0.01 (their method, σ = 1): p_A must be at least "
        f"{asked.p[0]:.2f} and certified accuracy would be {asked.lower[0]:.3f}{_of_ecdf(folder)}; the paper has "
        "0.81 and 0.316."
    )


def _of_ecdf(folder: Path) -> str:
    path = folder / "data" / "ecdf" / "ours_1.0.csv"
    return f" ({float(read_curve(path, sigma=1.0).survival(0.81)[0]):.3f} by data/ecdf)" if path.exists() else ""


def imagenet_table(folder: Path) -> str:
    """Table 4 as the logs have it, with the number of images of each."""
    at = tuple(step / 2 for step in range(8))
    rows: list[list[str]] = []
    notes: list[str] = []
    for sigma, published in IMAGENET.items():
        logs = {method: log for method in published if (log := log_at(folder, "imagenet", method, sigma)) is not None}
        if not logs:
            continue
        found = compare([named(log, METHODS[method]) for method, log in logs.items()], at)
        for method, run in zip(logs, found.runs, strict=True):
            accuracies = [f"{100 * value:.1f}" for value in run.printed.values]
            average = f"{run.average.value:.4f}"
            rows.append([f"{sigma:g}", METHODS[method], str(run.n), average, f"{published[method]:.3f}", *accuracies])
        notes += [note for note in found.notes if "different samples" in note]
    head = ["σ", "method", "images", "ACR", "printed", *(f"{radius:.1f}" for radius in at)]
    return "\n\n".join([markdown(head, rows), *dict.fromkeys(notes)]) if rows else ""


def mnist_table(folder: Path) -> str:
    """Mean ± standard deviation over five trainings, as Table 8 has it over three; empty where there are none."""
    base = folder / "data" / "certify" / "mnist"
    places = {
        "Gaussian": ("cohen", r"noise_(\d\.\d+)_\d+"),
        "Consistency": ("consistency/cohen/num_2/lbd_5.0/eta_0.5", r"noise_(\d\.\d+)_[1-5]"),
        "SmoothAdv": ("salman/pgd_255.0_10_10/num_4", r"noise_(\d\.\d+)_\d+"),
    }
    sources: dict[str, list[Any]] = {}
    for name, (place, pattern) in places.items():
        paths = sorted((base / place).glob("noise_*"))
        known = [(path, match[1]) for path in paths if (match := re.fullmatch(pattern, path.name))]
        own = [(path, float(sigma)) for path, sigma in known if float(sigma) in (0.5, 1.0)]
        sources[name] = [read_log(path, sigma=sigma, n=DRAWS, alpha=ALPHA) for path, sigma in own]
    sources = {name: logs for name, logs in sources.items() if logs}
    if not sources:
        return ""
    found = compare_families(sources, (0.0, 0.5, 1.0, 1.5, 2.0), alpha=ALPHA)
    rows = [
        [
            f"{each.sigma:g}",
            each.family,
            str(len(each.runs)),
            f"{each.average.mean:.4f} ± {each.average.deviation:.4f}",
            *(f"{100 * spread.mean:.2f} ± {100 * spread.deviation:.2f}" for spread in each.printed),
        ]
        for each in sorted(found.repeats, key=lambda each: each.sigma)
    ]
    return markdown(["σ", "method", "trainings", "ACR", *(f"{radius:.1f}" for radius in found.at)], rows)


def radius_charts() -> list[Chart]:
    """Figure 2: certified radius and its slope against p_A, σ = 1, 100,000 draws at α = 0.001."""
    votes = np.unique(np.concatenate([np.arange(51_000, 100_001, 250), np.arange(99_000, 100_001, 10)]))
    p, radii = votes / DRAWS, vote_radii(votes, DRAWS, 1.0, ALPHA)
    inner = p[p < 1]
    slope = 1 / norm.pdf(ndtri(inner))
    across = Axis(0.5, 1.0, ticks(0.5, 1), "p_A")
    up = Axis(1.0, 10**4, tuple((10.0**k, f"{10**k:,}") for k in range(5)), "slope of the radius", log=True)
    return [
        Chart(
            "Certified radius against p_A",
            f"It rises from 0 at 0.505 to {radii[-1]:.2f} at 1.",
            [Panel(across, covering(radii, "certified radius / σ"), [Line(p, radii, 0, markers=False)])],
        ),
        Chart(
            "Slope of the certified radius",
            f"It rises from {slope[0]:.1f} at 0.51 to {slope[-1]:,.0f} at {inner[-1]:g}.",
            [Panel(across, up, [Line(inner, slope, 0, markers=False)])],
        ),
    ]


def weight_charts() -> list[Chart]:
    """Figure 4: sampling weights of the recipe against the share of 16 votes, by both readings of the floor."""
    from certcal.lab.training.acr import radius_weights

    votes = np.arange(8, 17)
    p = np.linspace(0.505, 0.999, 200)
    lines = [Line(p, ndtri(p) / ndtri(0.75), 0, "radius, divided by that at 0.75", markers=False)]
    for look, (floor, label) in enumerate(((0.75, "weight by the formula"), (0.561078, "weight by the code")), 1):
        lines.append(Line(votes / 16, radius_weights(votes, 16, 0.1, floor), look, label))
    across, up = Axis(0.5, 1.0, ticks(0.5, 1), "p_A"), Axis(0.0, 8.0, ticks(0, 8), "weight")
    said = "Weights stay 1 up to 14 of 16 votes by the formula and up to 12 by the code."
    return [Chart("Sampling weight against p_A", said, [Panel(across, up, lines)])]


def draw(folder: Path, found: FamilyComparison, imagenet: Mapping[float, Comparison], out: Path) -> None:
    """All figures, as files."""
    from certcal.lab.logs.view import accuracy_charts, dominance_charts, p_a_charts
    from certcal.report.mpl import draw as drawn
    from certcal.report.mpl import save

    out.mkdir(parents=True, exist_ok=True)
    figures = {
        "acr-logs-radius": radius_charts(),
        "acr-logs-weights": weight_charts(),
        "acr-logs-pa": p_a_charts(found),
        "acr-logs-graphs": dominance_charts(found),
        "acr-logs-accuracy": accuracy_charts(families_of(folder, FINE)),
        "acr-logs-imagenet": [chart for each in imagenet.values() for chart in p_a_charts(each)],
    }
    for name, charts in figures.items():
        if charts:
            ending = "png" if name in LARGE else "svg"
            save(drawn(charts), out / f"{name}.{ending}", force=True, dpi=110)


def imagenet_runs(folder: Path) -> dict[float, Comparison]:
    """Figure 11: the logs of ImageNet at each noise level."""
    found: dict[float, Comparison] = {}
    for sigma, published in IMAGENET.items():
        logs = {method: log for method in published if (log := log_at(folder, "imagenet", method, sigma)) is not None}
        if logs:
            found[sigma] = compare([named(log, METHODS[method]) for method, log in logs.items()], [0.0])
    return found


def page(folder: Path, found: FamilyComparison, mnist: Path | None) -> str:
    """All tables."""
    table, told = methods_table(found)
    imagenet, repeated = imagenet_table(folder), "" if mnist is None else mnist_table(mnist)
    parts = [
        "### Table 3: CIFAR-10, ResNet-110",
        "Average certified radius, and certified accuracy in per cent at each radius, by the radii as printed.",
        table,
        told,
        "### Appendix B.3: who is above whom",
        orders_table(folder),
        ecdf_check(folder),
        "All verdicts at each σ, and by the best σ at each radius:",
        "\n".join(f"- {sentence}" for sentence in found.sentences),
        "### Appendix B.1: another budget",
        budget_example(folder),
    ]
    parts += ["### Table 4: ImageNet, ResNet-50", imagenet] if imagenet else []
    parts += ["### Several trainings (the layout of Table 8), MNIST", repeated] if repeated else []
    return "\n\n".join(part for part in parts if part)


def main() -> None:
    """Read, compare, print, draw."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("logs", type=Path, help="clone of github.com/eth-sri/acr-weakness")
    parser.add_argument("--mnist", type=Path, help="clone of github.com/jh-jeong/smoothmix")
    parser.add_argument("--out", type=Path, help="folder for the figures")
    parser.add_argument("--write-docs", action="store_true")
    options = parser.parse_args()
    began = time.perf_counter()
    found = families_of(options.logs)
    tables = page(options.logs, found, options.mnist)
    print(tables)
    out = RESULTS if options.write_docs else options.out
    if out is not None:
        draw(options.logs, found, imagenet_runs(options.logs), out)
    print(f"\n{time.perf_counter() - began:.0f} s")
    if options.write_docs:
        given = "" if options.mnist is None else " --mnist smoothmix"
        command = f"python experiments/acr_logs.py acr-weakness{given} --write-docs"
        write_results("acr-logs", command, tables, "numpy", "scipy")


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        raise SystemExit(str(error)) from None
