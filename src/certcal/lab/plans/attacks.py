"""Plans about attacks that keep labels: networks without noise, and their calibration under each attack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Struct, field

from certcal.lab.plans.certified import DataPart, NetworkPart, RecipePart
from certcal.lab.plans.jobs import Job, Passes
from certcal.lab.plans.networks import facts_of, jobs_among, named, train_job
from certcal.lab.plans.outcome import MISSING, Number, OurTable, Outcome
from certcal.lab.plans.plan import Count, Floor, PaperPlan, Whole

UNATTACKED = "unattacked"


class AttackedNetwork(Struct, frozen=True, forbid_unknown_fields=True):
    """A network that is attacked: trained here by a recipe, or a checkpoint."""

    row: str
    method: str
    recipe: RecipePart
    checkpoint: str = ""


class AttackedData(Struct, frozen=True, forbid_unknown_fields=True):
    """A data set, its networks, and how far attacks may go."""

    title: str
    data: DataPart
    network: NetworkPart
    networks: list[AttackedNetwork]
    epsilons: list[Whole]
    """ℓ∞ distances in 255ths."""


class AttacksPlan(PaperPlan, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Fields of a plan of this kind."""

    layout: Literal["", "reliability"] = ""
    sets: list[AttackedData]
    attacks: dict[str, str]
    """Attacks of :func:`certcal.attack` by the names of their rows."""
    images: Annotated[Count, Floor(20)] = 10_000
    steps: Annotated[Count, Floor(3)] = 100
    only: dict[str, str] = field(default_factory=dict[str, str])
    """The data set and the network of a figure, by title and row."""


Settings = AttacksPlan


def _attack_jobs(plan: AttacksPlan) -> list[tuple[AttackedData, AttackedNetwork, Job]]:
    from certcal.lab.training import recipe

    found: list[tuple[AttackedData, AttackedNetwork, Job]] = []
    for each in plan.sets:
        if each.title != plan.only.get("set", each.title):
            continue
        network, facts = each.network.arguments, facts_of(each.data.name)
        images = min(plan.images, facts.test)
        backward = images * plan.steps * len(plan.attacks) * len(each.epsilons)
        for one in each.networks:
            if one.row != plan.only.get("network", one.row):
                continue
            title = f"{one.row} {each.title}"
            weights: Any = one.checkpoint if one.checkpoint and plan.given.get("checkpoints") else None
            if weights is None:
                made = recipe(one.method, fine_tune=False, epochs=one.recipe.epochs, **one.recipe.set)
                weights = train_job(title, each.data.name, network, made, each.data.train)
            arguments = {"data": each.data.name, "network": network, "model": named(weights), "images": plan.images}
            arguments |= {"epsilons": each.epsilons, "attacks": list(plan.attacks.values()), "steps": plan.steps}
            passes = Passes(network, facts.shape, facts.classes, images, backward)
            job = Job("networks.attack", f"attack {title}", arguments, jobs_among(weights), passes)
            found.append((each, one, job))
    return found


def jobs(plan: AttacksPlan) -> list[Job]:
    """All jobs of a plan."""
    return [job for _, _, job in _attack_jobs(plan)]


def outcome(plan: AttacksPlan, found: Mapping[str, Any]) -> Outcome:
    """AdaECE in per cent of each network under each attack, and reliability diagrams."""
    rows: dict[str, list[Number]] = {}
    columns: list[str] = []
    charts: list[Any] = []
    for each, one, job in _attack_jobs(plan):
        lines = found.get(job.fingerprint)
        for epsilon in each.epsilons:
            head = f"{each.title} {epsilon}/255"
            columns += [] if head in columns else [head]
            for row, attack in {UNATTACKED: "", **plan.attacks}.items():
                wanted = (attack, epsilon if attack else 0)
                line = next((x for x in lines or () if (x["attack"], x["epsilon"]) == wanted), None)
                cells = rows.setdefault(f"{one.row} | {row}", [])
                cells += [MISSING] * (columns.index(head) - len(cells))
                cells.append(MISSING if line is None else 100 * line["equal_mass_ece"])
                if plan.layout == "reliability" and line is not None and epsilon == each.epsilons[0]:
                    charts.append(_diagram(line, f"{head}, {row}"))
    for cells in rows.values():
        cells += [MISSING] * (len(columns) - len(cells))
    return Outcome([OurTable("table", columns, rows, "network, attack")], charts)


def _diagram(line: Mapping[str, Any], title: str) -> Any:
    from certcal.binning import BinTable
    from certcal.metrics import Reliability
    from certcal.report.reliability import reliability_chart

    count, confidence, correct = (np.asarray(line[name], float) for name in ("count", "confidence", "correct"))
    table = BinTable(np.asarray(line["edges"]), "left", count.astype(np.int64), count, count, confidence, correct)
    return reliability_chart(Reliability(table, line["ece"]), title, size="small")
