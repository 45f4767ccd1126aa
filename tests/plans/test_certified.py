"""Plans of certified calibration: counts against the appendices, the rule of its tables, all plans at tiny scale."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import certcal
from certcal import InputError
from certcal.lab.plans.certified import BaselinePart
from certcal.lab.plans.certified_layouts import (
    LAYOUTS,
    CertifiedNetwork,
    best_of_each_method,
    comparable,
    every_baseline,
)
from certcal.lab.plans.jobs import JobContext, JobTask
from certcal.lab.plans.plan import open_plan, plan_names
from tests.smoothing.drawing import draw

OURS = [name for name in plan_names() if name.startswith("cc-")]
_SETS = {f"sets.{k}.{part}.name": value for k in (0, 1) for part, value in (("data", "digits"), ("network", "mlp"))}
_DIGITS = {"data.name": "digits", "network.name": "mlp", "recipe.scratch.set.batch": 32, "sample.every": 1}
TINY: Mapping[str, dict[str, Any]] = {
    "certified": {**_DIGITS, "data.train": 250},
    "search": {**_DIGITS, "data.train": 250, "radii": [0.05, 3.0]},
    "attacks": _SETS,
    "worked": {},
}


def test_every_plan_runs_at_the_smallest_scale(tmp_path: Path) -> None:
    for name in OURS:
        kind = open_plan(name).kind
        changes = TINY[kind]
        if "changes" in open_plan(name).layout:  # networks that learnt little certify small radii only
            changes = {**changes, "radii": [0.05], "baselines.0.radii": [0.05], "baselines.1.radii": [0.05]}
        if kind == "search" and open_plan(name).radius is not None:
            changes = {**changes, "radius": 0.05}
        found = certcal.reproduce(name, out=tmp_path, changes=changes, scale=1e-6, device="cpu", progress=False)
        assert (name, found.done, found.failures) == (name, found.jobs, ())
        numbers = [cell for table in found.tables for cell in table.cells() if isinstance(cell.ours, float | int)]
        assert numbers, name
        assert found.charts or "figure" not in name
        assert found.plan.place in found.to_bytes(".md").decode()
        if name == "cc-figure4":
            assert {".html", ".md", ".tex", ".csv", ".json", ".svg"} == {path.suffix for path in found.write(tmp_path)}


def test_fine_tuning_has_the_published_schedule_and_equal_noise_has_folders_of_its_own() -> None:
    from certcal.lab.plans.certified import planned

    models = [model for model, _ in planned(open_plan("cc-table7"))]
    recipes = {each.name: each.run.needs[0].arguments["recipe"] for each in models}
    scratch = recipes["AT-sigma0.5-eps2-m2-T10"]
    assert (scratch["epochs"], scratch["milestones"], scratch["sigma_warmup"]) == (150, [50, 100], 8)
    tuned = [recipe for name, recipe in recipes.items() if name.startswith("Brier-ACT")]
    assert {(each["epochs"], *each["milestones"]) for each in tuned} == {(10, 4, 8)}
    assert {each["batch"] for name, each in recipes.items() if name.startswith("ACCE-ACT")} == {2048}
    half = [each for each in models if each.baseline.sigma == 0.5 and each.row == "AT"]
    assert len({each.run.folder for each in half}) == len(half) == 3


def published(name: str) -> list[CertifiedNetwork]:
    """The rows of Table 4 as networks."""
    plan = open_plan(name)
    found: list[CertifiedNetwork] = []
    for baseline in plan.baselines:
        row = f"T={baseline.attack_steps}, m={baseline.draws}, σ={baseline.sigma:g}, ε={baseline.epsilon:g}"
        cells = dict(zip(plan.published["table"].columns, plan.published["table"].rows[row], strict=True))
        at = [
            None
            if isinstance(cells[f"ACCE {radius:.2f}"], str)
            else {
                "accuracy": cells[f"CA {radius:.2f}"] / 100,
                "admm-grid": cells[f"ACCE {radius:.2f}"] / 100,
                "exact": cells[f"ACCE {radius:.2f}"] / 100,
                "brier": cells[f"CBS {radius:.2f}"] / 100,
            }
            for radius in plan.radii
        ]
        found.append(CertifiedNetwork("AT", baseline.title, baseline, "cdf", None, at, {}))
    return found


def test_the_rule_gives_table_2_from_table_4() -> None:
    networks, table = published("cc-table4"), open_plan("cc-table2").published["table"]
    for place, (radius, range_) in enumerate(zip(table.columns, table.rows["CA"], strict=True)):
        highest = float(str(range_).strip("[]").split(", ")[1]) / 100  # reached by a fine-tuned model, not by these
        line = {"accuracy": highest, "admm-grid": 1.0, "brier": 1.0}
        best = CertifiedNetwork("ACT", "best", networks[0].baseline, "cdf", None, [line] * 4, {})
        # The printed ends are rounded, and those of R = 0.2 are 4 apart.
        _, near = comparable([*networks, best], place, 0.03 if radius != 0.2 else 0.04)
        own = [each for each in near if each.row == "AT"]
        for metric, key in (("ACCE", "admm-grid"), ("CBS", "brier")):
            least = min(value for each in own if (value := each.value(place, key)) is not None)
            assert round(100 * least, 2) == table.rows[f"{metric} | AT"][place], (radius, metric)


def test_each_method_shows_its_best_and_a_dash_where_nothing_is_certified() -> None:
    plan = open_plan("cc-table7")

    def network(row: str, *lines: tuple[float, float] | None) -> CertifiedNetwork:
        at = [
            None if each is None else {"accuracy": each[0], "admm-grid": each[1], "exact": each[1], "brier": each[1]}
            for each in lines
        ]
        return CertifiedNetwork(row, row, BaselinePart(sigma=0.5), "cdf", None, [*at, None, None, None, None][:5], {})

    networks = [network("AT", (0.8, 0.3)), network("ACCE-ACT", (0.78, 0.2)), network("ACCE-ACT", (0.7, 0.1))]
    (table,) = best_of_each_method(plan, networks).tables
    assert table.rows["CA"] == ["[77, 80]", "–", "–", "–", "–"]
    assert (table.rows["ACCE | AT"][0], table.rows["ACCE | ACCE-ACT"][0]) == (30.0, 20.0)
    assert table.rows["ACCE | Brier-ACT"] == ["–"] * 5
    (found,) = every_baseline(open_plan("cc-table4"), published("cc-table4")).tables
    chosen = open_plan("cc-table4").published["table"]
    for row, cells in chosen.rows.items():
        ours = [round(cell, 2) if isinstance(cell, float) else cell for cell in found.rows[row][:12]]
        assert ours == cells[:12], row


def test_runs_that_are_there_are_compared_without_training(tmp_path: Path) -> None:
    first, second = draw(tmp_path / "a").path, draw(tmp_path / "b", seed=1).path
    baselines = [{"row": "AT", "name": "a", "sigma": 0.25, "run": str(first)}]
    baselines.append({"row": "ACT", "name": "b", "sigma": 0.25, "run": str(second)})
    changes: dict[str, Any] = {"baselines": baselines, "methods": [], "radii": [0.05, 9.0], "certify.solvers": []}
    found = certcal.reproduce("cc-table7", changes=changes, out=tmp_path / "out", progress=False)
    assert (found.jobs, found.done) == (2, 2)
    table = found.tables[0]
    assert isinstance(table.cell("exact | ACT", "0.05").ours, float)
    assert table.cell("exact | ACT", "9").ours == "–"


def test_runs_of_different_samples_are_not_ranked(tmp_path: Path) -> None:
    plan = open_plan("cc-table7", {"methods": []})
    from certcal.lab.plans.certified import outcome, planned

    done = [(model, {"at": [None] * 5, "data": str(number)}) for number, (model, _) in enumerate(planned(plan))]
    with pytest.raises(InputError, match="different samples"):
        outcome(plan, done)
    assert set(LAYOUTS) >= {"best", "baselines", "changes", "correlations"}


def test_published_checkpoints_are_sampled_and_fine_tuned_instead_of_training(tmp_path: Path) -> None:
    import torch

    from certcal.models.networks import by_name

    folder = tmp_path / "checkpoints"
    weights = folder / open_plan("cc-table2").baselines[0].checkpoint
    weights.parent.mkdir(parents=True)
    torch.save({"state_dict": by_name("resnet20-cifar", (1, 8, 8), 10).state_dict()}, weights)
    first = {"sigma": 0.25, "epsilon": 1.0, "radii": [0.05], "checkpoint": str(weights.relative_to(folder))}
    changes: dict[str, Any] = {**_DIGITS, "network.name": "resnet20-cifar", "radii": [0.05], "data.train": 16}
    changes["baselines"] = [first, {**first, "checkpoint": "missing.pth.tar"}]
    changes |= {"sample.n": 20, "sample.n0": 10, "sample.images": 2}
    changes["methods"] = [{"row": "Brier-ACT", "method": "brier-act"}]
    found = certcal.reproduce(
        "cc-table2",
        changes=changes,
        scale=1e-6,
        out=tmp_path / "out",
        checkpoints=str(folder),
        device="cpu",
        progress=False,
    )
    assert {each.work: each.jobs for each in found.cost} == {"sample": 4, "train": 2, "certify": 4}
    assert found.done == 5
    assert all("missing.pth.tar: there is no such checkpoint" in each for each in found.failures)


def test_each_worker_has_a_device_of_its_own(tmp_path: Path) -> None:
    task = JobTask(JobContext(tmp_path), ["cuda:0", "cuda:1"])
    assert [task.placed(number).context.device for number in range(3)] == ["cuda:0", "cuda:1", "cuda:0"]


def test_the_worked_example_comes_out_as_printed(tmp_path: Path) -> None:
    found = certcal.reproduce("cc-table3", out=tmp_path, progress=False)
    assert found.top() == ["Every number comes out as printed."]
    assert found.tables[1].cell("largest", "calibration error").ours == pytest.approx(0.9)
