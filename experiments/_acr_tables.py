"""Tables of the experiment on average certified radius, in the layouts of Sun et al. (2025)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from _acr_jobs import ABLATION, METHODS, SWEEPS, Job, record_of
from _running import markdown

from certcal.lab.logs import FamilyComparison, compare_families
from certcal.smoothing import certificates, open_run
from certcal.smoothing.robustness import VoteRecord

ALPHA = 0.001
RADII = tuple(step / 4 for step in range(11))
SHARES = (0.5, 0.9, 0.99)
BELOW = " ↓"


@dataclass(frozen=True, eq=False)
class Network:
    """A trained network with its draws."""

    job: Job
    record: dict[str, Any]

    @cached_property
    def counts(self) -> Any:
        return open_run(self.job.folder / "run").counts()

    @cached_property
    def votes(self) -> VoteRecord:
        return VoteRecord.from_counts(self.counts, self.job.name)

    @cached_property
    def radii(self) -> np.ndarray:
        """Certified radius per test image; below 0 where it is wrong or abstained, as it is certified at none."""
        radii = self.votes.radii(ALPHA)
        return np.where(self.votes.correct & ~np.isnan(radii), radii, -1.0)

    @cached_property
    def p_a(self) -> np.ndarray:
        return self.votes.values()[0]

    @property
    def average(self) -> float:
        """Average certified radius."""
        return float(np.mean(np.maximum(self.radii, 0.0)))

    @property
    def accuracies(self) -> list[float]:
        return [float(np.mean(self.radii >= radius)) for radius in RADII]


def finished(jobs: Sequence[Job]) -> list[Network]:
    """Those that were trained and sampled."""
    found = ((job, record_of(job)) for job in jobs)
    return [Network(job, record) for job, record in found if record is not None]


def of(networks: Sequence[Network], method: str, sigma: float, seed: int = 0) -> Network | None:
    """One of them, if it is there."""
    same = (each for each in networks if (each.job.method, each.job.sigma, each.job.seed) == (method, sigma, seed))
    return next(same, None)


def sigmas(networks: Sequence[Network]) -> list[float]:
    return sorted({each.job.sigma for each in networks})


def methods_table(networks: Sequence[Network]) -> str:
    """Table 3: average certified radius and certified accuracy, the best in bold, those below Gaussian marked."""
    rows: list[list[str]] = []
    for sigma in sigmas(networks):
        several = [each for method in METHODS if (each := of(networks, method, sigma)) is not None]
        rows += _accuracy_rows(several, lambda each: [each.job.title], of(networks, "gaussian", sigma), f"{sigma:g}")
    return markdown(["σ", "method", "ACR", *(f"{radius:.2f}" for radius in RADII)], rows)


def ablation_table(networks: Sequence[Network]) -> str:
    """Table 5: the same by which parts of the recipe there are."""
    parts = {"gaussian": (False, False, False), **ABLATION, "acr": (True, True, True)}
    rows: list[list[str]] = []
    for sigma in sigmas(networks):
        several = [each for method in parts if (each := of(networks, method, sigma)) is not None]
        rows += _accuracy_rows(
            several,
            lambda each: ["✓" if on else "" for on in parts[each.job.method]],
            of(networks, "gaussian", sigma),
            f"{sigma:g}",
        )
    head = ["σ", "discard", "weigh", "attack", "ACR", *(f"{radius:.2f}" for radius in RADII)]
    return markdown(head, rows)


def sweep_table(networks: Sequence[Network], sweep: str) -> str:
    """One of Tables 9 to 14: a constant of the recipe against ACR and certified accuracy."""
    name, _ = SWEEPS[sweep]
    several = [each for each in networks if each.job.sweep == sweep]
    several.sort(key=lambda each: each.job.value)
    columns = np.array([[each.average, *each.accuracies] for each in several])
    best = columns.max(axis=0, initial=0.0)
    rows = [
        [f"{each.job.value:g}", *(_shown(v, top, i) for i, (v, top) in enumerate(zip(values, best, strict=True)))]
        for each, values in zip(several, columns, strict=True)
    ]
    return markdown([name, "ACR", *(f"{radius:.2f}" for radius in RADII)], rows)


def _shown(value: float, top: float, column: int) -> str:
    text = f"{value:.3f}" if column == 0 else f"{100 * value:.1f}"
    return f"**{text}**" if value == top > 0 else text


def _accuracy_rows(
    several: Sequence[Network], names: Callable[[Network], list[str]], base: Network | None, sigma: str
) -> list[list[str]]:
    columns = np.array([[each.average, *each.accuracies] for each in several])
    best = columns.max(axis=0, initial=0.0)
    rows: list[list[str]] = []
    for network, values in zip(several, columns, strict=True):
        texts = [f"{values[0]:.3f}", *(f"{100 * value:.1f}" for value in values[1:])]
        shown = [
            f"**{text}**" if value == top > 0 else text for text, value, top in zip(texts, values, best, strict=True)
        ]
        if base is not None:
            below = values < [base.average, *base.accuracies]
            shown = [text + BELOW if worse else text for text, worse in zip(shown, below, strict=True)]
        rows.append([sigma, *names(network), *shown])
    return rows


def paired(one: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """Mean difference over the images, and its standard error, the images being the same."""
    differences = one - other
    return float(np.mean(differences)), float(np.std(differences, ddof=1)) / math.sqrt(differences.size)


def differences_table(networks: Sequence[Network]) -> str:
    """P(p_A ≥ p), differences to Gaussian training on the same images, and the share of the data that was kept."""
    rows: list[list[str]] = []
    for sigma in sigmas(networks):
        base = of(networks, "gaussian", sigma)
        for method in (*METHODS, *ABLATION):
            network = of(networks, method, sigma)
            if network is None:
                continue
            shares = [f"{100 * np.mean(network.p_a >= share):.1f}" for share in SHARES]
            kept = network.record["kept"]
            compared = ["", "", ""]
            if base is not None and base is not network:
                both = np.maximum(network.radii, 0.0), np.maximum(base.radii, 0.0)
                compared = [_difference(*paired(*both), 1, 3)]
                for share in (SHARES[0], SHARES[-1]):
                    compared.append(_difference(*paired(network.p_a >= share, 1.0 * (base.p_a >= share)), 100, 1))
            rows.append([f"{sigma:g}", network.job.title, *shares, *compared, "" if kept is None else f"{kept:.0%}"])
    head = ["σ", "method", *(f"P(p_A ≥ {share:g})" for share in SHARES)]
    return markdown(
        [*head, "ACR − Gaussian's", "P(p_A ≥ 0.5) − Gaussian's", "P(p_A ≥ 0.99) − Gaussian's", "kept"], rows
    )


def _difference(mean: float, error: float, times: float, digits: int) -> str:
    text = f"{times * mean:+.{digits}f} ± {times * error:.{digits}f}"
    return text.replace("-", "−")


def seeds_table(networks: Sequence[Network]) -> str:
    """What another seed of first weights, order and noise changes; empty without one."""
    again = [each for each in networks if each.job.seed]
    rows: list[list[str]] = []
    for other in again:
        first = of(networks, other.job.method, other.job.sigma)
        for each in (first, other):
            if each is not None:
                shares = [f"{100 * np.mean(each.p_a >= share):.1f}" for share in SHARES]
                rows.append([f"{each.job.sigma:g}", each.job.title, str(each.job.seed), f"{each.average:.3f}", *shares])
    rows.sort(key=lambda row: (float(row[0]), list(METHODS.values()).index(row[1]), row[2]))
    head = ["σ", "method", "seed", "ACR", *(f"P(p_A ≥ {share:g})" for share in SHARES)]
    return markdown(head, rows) if rows else ""


def families_of(networks: Sequence[Network], at: Sequence[float] = RADII) -> FamilyComparison:
    """The methods of Table 3 as families over σ."""
    sources = {
        title: [each.counts for sigma in sigmas(networks) if (each := of(networks, method, sigma)) is not None]
        for method, title in METHODS.items()
    }
    there = {name: several for name, several in sources.items() if several}
    return compare_families(there, at, alpha=ALPHA, calibration_at=())


def best_table(families: FamilyComparison) -> str:
    """Certified accuracy of each family with the best σ at each radius."""
    highest = families.best.values
    rows = [
        [family.name, *(_bold(value, top) for value, top in zip(family.best.values, highest, strict=True))]
        for family in families.families
    ]
    return markdown(["method", *(f"{radius:.2f}" for radius in families.at)], rows)


def _bold(value: float, top: float) -> str:
    text = f"{100 * value:.1f}"
    return f"**{text}**" if value == top > 0 else text


def confidence_table(networks: Sequence[Network]) -> str:
    """Without any attack: how sure the smoothed classifiers are, how often right, and how often sure and wrong."""
    rows: list[list[str]] = []
    for sigma in sigmas(networks):
        for method in METHODS:
            network = of(networks, method, sigma)
            if network is None:
                continue
            sure = float(np.mean(network.counts.confidence_estimates().values))
            right = float(np.mean(network.votes.correct))
            wrong = float(np.mean(~network.votes.correct & (network.votes.lowest >= 0.9 * network.votes.draws)))
            gap = f"{100 * (sure - right):+.1f}".replace("-", "−")
            texts = [f"{100 * sure:.1f}", f"{100 * right:.1f}", gap, f"{100 * wrong:.1f}"]
            rows.append([f"{sigma:g}", network.job.title, *texts])
    return markdown(["σ", "method", "mean confidence", "accuracy", "difference", "wrong with 90 % of the votes"], rows)


def calibration_table(networks: Sequence[Network]) -> str:
    """Exact worst-case calibration at R = 0, σ/2 and σ."""
    rows: list[list[str]] = []
    for sigma in sigmas(networks):
        for part in (0.0, 0.5, 1.0):
            for method in METHODS:
                network = of(networks, method, sigma)
                if network is None:
                    continue
                found = certificates(network.counts, part * sigma, ALPHA, "tight").summary()
                error, brier = found["calibration_error"], found["brier_score"]
                values = [
                    found.n_certified / found.n,
                    float(found.accuracy.value),
                    None if error.worst is None else error.worst.value,
                    error.worst_all.value,
                    None if brier.worst is None else brier.worst.value,
                    brier.worst_all.value,
                ]
                skill = "–" if found.n_certified == 0 else f"{found.skill.value:+.2f}".replace("-", "−")
                shown = ["–" if value is None else f"{100 * value:.1f}" for value in values]
                rows.append([f"{sigma:g}", f"{part * sigma:g}", network.job.title, *shown, skill])
    head = ["σ", "R", "method", "certified", "and right", "calibration error, certified", "over all"]
    return markdown([*head, "Brier, certified", "over all", "skill"], rows)


def orders(families: FamilyComparison) -> str:
    """Who is better than whom, in sentences."""
    return "\n".join(f"- {sentence}" for sentence in families.sentences)
