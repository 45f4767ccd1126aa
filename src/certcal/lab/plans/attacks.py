"""Plans about attacks that keep labels: networks without noise, and their calibration under each attack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Struct, field

from certcal.lab.plans.certified import DataPart, NetworkPart, RecipePart
from certcal.lab.plans.jobs import Job, Passes
from certcal.lab.plans.networks import facts_of, jobs_among, named, train_job
from certcal.lab.plans.outcome import Done, Number, Outcome, table_of
from certcal.lab.plans.plan import OF_GROUP, Count, Floor, PaperPlan, Whole


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


def planned(plan: AttacksPlan) -> list[tuple[Any, Job]]:
    """The attacks on each network, by data set and network."""
    from certcal.lab.training import recipe

    found: list[tuple[Any, Job]] = []
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
            found.append(((each, one), job))
    return found


def outcome(plan: AttacksPlan, done: Done) -> Outcome:
    """AdaECE in per cent of each network under each attack, and reliability diagrams."""
    cells: dict[Any, Number] = {}
    charts: list[Any] = []
    names = {"": "unattacked", **{attack: row for row, attack in plan.attacks.items()}}
    for (each, one), lines in done:
        for line in lines:
            row = names[line["attack"]]
            # Without an attack no distance matters.
            heads = [f"{each.title} {k}/255" for k in each.epsilons if not line["attack"] or k == line["epsilon"]]
            cells |= {(f"{one.row}{OF_GROUP}{row}", head): 100 * line["equal_mass_ece"] for head in heads}
            if plan.layout == "reliability" and heads[0] == f"{each.title} {each.epsilons[0]}/255":
                charts.append(_diagram(line, f"{heads[0]}, {row}"))
    return Outcome([table_of("table", cells, corner="network, attack")], charts)


def _diagram(line: Mapping[str, Any], title: str) -> Any:
    from certcal.binning import BinTable
    from certcal.metrics import Reliability
    from certcal.report.reliability import reliability_chart

    count, confidence, correct = (np.asarray(line[name], float) for name in ("count", "confidence", "correct"))
    table = BinTable(np.asarray(line["edges"]), "left", count.astype(np.int64), count, count, confidence, correct)
    return reliability_chart(Reliability(table, line["ece"]), title, size="small")
