"""What plans would take: passes through networks as they are counted in training, and jobs against the appendices."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import certcal
from certcal.lab.plans.networks import training_passes
from certcal.lab.plans.plan import open_plan, plan_names
from certcal.lab.training import METHODS, recipe, train
from tests.training.digits import TWO_CLASSES, data, network

SETTINGS: dict[str, dict[str, Any]] = {
    "smoothadv": {"epsilon_delay": 1},
    "macer": {"deferred": 0},
    "acr": {"begin": 1, "sphere_steps": 3, "weigh_every": 2, "discard_below": 0.05},
}


@pytest.mark.filterwarnings("ignore:class.* no sample left")
@pytest.mark.parametrize("method", METHODS)
def test_passes_of_a_training_are_those_that_are_counted(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sigma = {"sigma": 0.3} if method not in ("standard", "focal", "mmce", "perturbed") else {}
    made = recipe(method, epochs=4, batch=20, **sigma, **SETTINGS.get(method, {}))
    own = {"method": method} if method in TWO_CLASSES else {}
    model, inputs = network(**own), data(40, *own.values())
    counted = {True: 0, False: 0}
    forward = type(model).forward

    def counting(self: Any, x: torch.Tensor) -> Any:
        counted[torch.is_grad_enabled()] += len(x)
        return forward(self, x)

    monkeypatch.setattr(type(model), "forward", counting)
    train(model, inputs, made, device="cpu")
    looks, backward = training_passes(made, 40)
    if method == "acr":  # samples that are wrong are discarded, or need no further step
        assert looks / 2 < counted[False] <= looks + 40
        assert 4 * 40 * made.draws < counted[True] <= backward
    else:
        assert looks <= counted[False] <= looks + 40  # the network is tried before
        assert counted[True] == backward


# Networks that are trained, sampled, and certified or measured, and other work. Emde et al.: appendix I.3 has 16 models
# of each of seven baselines by each method (two in Tables 2, 7 to 9, three in 6), Table 4 22 networks of Salman et al.,
# appendix J own baselines, J.4 six models of each of four by three methods, G.2 and M.2 four noise levels at five radii
# (ImageNet: three at six). Sun et al.: seven methods at three noise levels (Table 3), of which CAT-RS needs votes of a
# further network, eight sets of parts (5), three seeds (8), and one network per value (9 to 14, Figure 10).
FULL: dict[str, tuple[int, int, int, dict[str, int]]] = {
    **{f"cc-{name}": (224, 246, 246, {}) for name in ("table2", "figure4", "figure17")},
    **{f"cc-{name}": (336, 358, 358, {}) for name in ("table6", "figure18", "figure19")},
    **{f"cc-table{number}": (7 + 7 * 2 * 16, 231, 231, {}) for number in (7, 8, 9)},
    **{"cc-table4": (0, 22, 22, {}), "cc-table5": (0, 4, 4, {}), "cc-table10": (72, 76, 76, {})},
    **{"cc-table1": (3, 0, 0, {"attack": 4}), "cc-figure6": (0, 0, 0, {"attack": 1})},
    **{"cc-figure7": (1, 0, 0, {"attack": 1}), "cc-figure8": (0, 4, 8, {})},
    **{f"cc-{name}": (0, 3, 3, {}) for name in ("figure2", "figure3")},
    **{f"cc-{name}": (0, 4, 4, {}) for name in ("figure15", "figure16a", "figure16b")},
    **{f"cc-figure{number}": (0, 1, 0, {"converge": 1}) for number in (9, 10, 11)},
    **{f"cc-{name}": (0, 4, 0, {"search": 20}) for name in ("figure13", "figure14", "appendix-g2", "appendix-m")},
    **{"cc-figure12": (0, 3, 0, {"search": 18}), "cc-sign-ablation": (42, 42, 42, {})},
    **{
        f"acr-{name}": (22, 21, 21, {"count_votes": 1}) for name in ("curve", "table3", "figure3", "figure6", "figure9")
    },
    **{f"acr-{name}": (12, 12, 12, {"count_votes": 1}) for name in ("table4", "figure11", "recovered")},
    **{f"acr-{name}": (5, 4, 4, {"count_votes": 1}) for name in ("figure7", "figure8")},
    **{"acr-orders": (22, 21, 21, {"count_votes": 1, "order": 7}), "acr-kept": (3, 3, 3, {})},
    **{"acr-table2": (6, 5, 5, {"count_votes": 1, "gradients": 5}), "acr-figure5": (1, 1, 1, {"gradients": 1})},
    **{"acr-table5": (24, 24, 24, {}), "acr-table8": (9, 9, 9, {}), "acr-figure10": (9, 9, 9, {})},
    **{f"acr-table{number}": (5, 5, 5, {}) for number in (9, 11, 12)},
    **{"acr-table10": (6, 6, 6, {}), "acr-table13": (4, 4, 4, {}), "acr-table14": (6, 6, 6, {})},
    **{"muc-table1": (0, 0, 0, {"values": 160}), "muc-figure3": (0, 0, 0, {"values": 160})},
    **{"muc-figure2": (64 * 6, 0, 0, {}), "muc-figure4": (0, 0, 0, {"values": 20})},
    "muc-figure5": (0, 0, 0, {"curves": 5}),
}


def test_dry_runs_of_all_plans_at_full_scale_have_the_jobs_and_draws_of_the_appendices() -> None:
    plans = [plan for plan in map(open_plan, plan_names()) if plan.paper != "bsc"]  # whose files are made up elsewhere
    assert {plan.name for plan in plans if plan.kind not in ("formulas", "worked")} == set(FULL)
    for name, (trained, sampled, certified, more) in FULL.items():
        plan = open_plan(name)
        given = {"checkpoints": "published"} if "checkpoints" in plan.needs else {}
        cost = {
            each.work: each for each in certcal.reproduce(name, dry_run=True, probe=0, progress=False, **given).cost
        }
        last = "measure" if plan.paper == "acr" else "certify"
        expected = {"train": trained, "sample": sampled, last: certified, **more}
        assert (name, {work: each.jobs for work, each in cost.items()}) == (
            name,
            {k: v for k, v in expected.items() if v},
        )
        if sampled:
            assert cost["sample"].forward == sampled * plan.sample.images * (plan.sample.n + plan.sample.n0)
    # Emde et al., appendices I.2, J and J.4; Sun et al. have the same number (Figures 2 and 7).
    draws = {name: (open_plan(name).sample.images, open_plan(name).sample.n) for name in FULL if FULL[name][1]}
    assert {draws[f"cc-table{number}"] for number in (2, 4, 6)} == {draws["acr-table3"]} == {(10_000, 100_000)}
    assert {draws[f"cc-table{number}"] for number in (7, 8, 9)} == {draws["acr-table4"]} == {(500, 100_000)}
    assert draws["cc-table10"] == (500, 10_000)
