"""Plans about the average certified radius: from made-up logs in the authors' folders, by formulas, and trained."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import certcal
from certcal import InputError
from certcal.lab.plans.jobs import Job, JobContext
from certcal.lab.plans.plan import open_plan, plan_names
from certcal.lab.plans.robustness import planned
from certcal.smoothing.robustness import vote_radii

TINY: dict[str, Any] = {"data.name": "digits", "network.name": "mlp"}
PLANS = [open_plan(name) for name in plan_names() if name.startswith("acr-")]
TRAINED = [plan.name for plan in PLANS if plan.kind == "robustness" and "imagenet" not in plan.data.name]
IN_LOGS = [plan.name for plan in PLANS if plan.kind == "robustness" and any(row.logs for row in plan.rows)]


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("jobs")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of every row at every noise level, as in a clone of the authors' repository; CAT-RS' has the most votes."""
    folder = tmp_path_factory.mktemp("logs")
    for name in IN_LOGS:
        plan = open_plan(name)
        for row in plan.rows:
            for sigma in row.sigmas or plan.sigmas:
                for pattern in row.logs[:1]:
                    path = folder / "clone" / pattern.format(sigma=sigma)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(made_up_log(row.name, sigma))
    return folder


def made_up_votes(name: str) -> np.ndarray:
    rng = np.random.default_rng(len(name))
    share = 0.99 if name == "CAT-RS" else 0.6 + 0.3 * rng.random(30)
    return np.minimum(100_000, rng.binomial(100_000, np.full(30, share)))


def made_up_log(name: str, sigma: float) -> str:
    radii = vote_radii(made_up_votes(name), 100_000, sigma, 0.001)
    lines = [f"{k}\t{k % 10}\t{k % 10}\t{radius:.3}\t1\t0:01" for k, radius in enumerate(radii)]
    return "\n".join(["idx\tlabel\tpredict\tradius\tcorrect\ttime", *lines]) + "\n"


@pytest.mark.parametrize("name", IN_LOGS)
def test_every_plan_that_has_logs_runs_from_them(name: str, logs: Path, out: Path) -> None:
    found = certcal.reproduce(name, logs=str(logs), out=out, dry_run=name in ("acr-table2", "acr-kept"))
    assert (found.done, found.failures) == (found.jobs, ())
    assert found.charts or ("figure" not in name and found.tables)


def test_rows_come_out_as_the_logs_have_them(logs: Path, out: Path) -> None:
    found = certcal.reproduce("acr-table3", logs=str(logs), out=out)
    radii = vote_radii(made_up_votes("Ours"), 100_000, 0.5, 0.001)
    table = found.tables[0]
    average = table.cell("0.5 | Ours", "ACR")
    assert average.ours == pytest.approx(radii.mean(), abs=0.005)
    assert average.difference == pytest.approx(average.ours - 0.760)
    assert table.cell("0.5 | Ours", "0.25").ours == pytest.approx(100 * np.mean(radii >= 0.25), abs=4)
    assert any("rows come out to the last printed digit" in note for note in table.pattern())
    assert not any(cell.ours is None for cell in table.cells())


def test_orders_are_those_of_the_votes(logs: Path, out: Path) -> None:
    found = certcal.reproduce("acr-orders", logs=str(logs), out=out)
    cells = {cell.row: cell.ours for cell in found.tables[0].cells()}
    assert cells["0.25 | CAT-RS over Consistency"] == "holds"
    assert str(cells["0.25 | Ours over CAT-RS"]).startswith("the other")
    held = list(cells.values()).count("holds")
    assert found.top() == [f"{held} of 7 entries come out as printed."]


def test_a_log_that_changes_is_read_again(tmp_path: Path, out: Path) -> None:
    path = tmp_path / "data/certify/cifar10/ours/noise_1.0.tsv"
    path.parent.mkdir(parents=True)
    averages: list[Any] = []
    for name in ("Ours", "CAT-RS"):
        path.write_text(made_up_log(name, 1.0))
        found = certcal.reproduce("acr-table3", logs=str(tmp_path), out=out)
        averages.append(found.tables[0].cell("1.0 | Ours", "ACR").ours)
        assert found.tables[0].cell("0.25 | Ours", "ACR").ours is None
    assert averages[0] < averages[1]


def test_missing_logs_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no log of its rows is in that folder.*acr-weakness"):
        certcal.reproduce("acr-table3", logs=str(tmp_path), out=tmp_path)
    with pytest.raises(InputError, match="there is no such folder of logs"):
        certcal.reproduce("acr-table3", logs=str(tmp_path / "none"), out=tmp_path)


def first_row(name: str) -> dict[str, Any]:
    """The data and network of tests, and the first row of a plan."""
    return {**TINY, "rows": open_plan(name).to_plain()["rows"][:1]}


# Networks as small as these are right about few classes, whose samples are then all that is kept.
@pytest.mark.filterwarnings("ignore:class.* no sample left")
@pytest.mark.parametrize("name", TRAINED)
def test_every_plan_trains_at_the_smallest_scale(name: str, out: Path) -> None:
    found = certcal.reproduce(name, changes=first_row(name), scale=1e-6, out=out, device="cpu")
    assert (found.done, found.failures) == (found.jobs, ())
    assert found.charts or ("figure" not in name and found.tables)


def test_curves_of_p_a_begin_at_0_where_all_votes_are_known_and_at_a_half_in_logs(logs: Path, out: Path) -> None:
    trained = certcal.reproduce("acr-figure3", changes=first_row("acr-figure3"), scale=1e-6, out=out, device="cpu")
    read = certcal.reproduce("acr-figure3", logs=str(logs), out=out)
    for found, low in ((trained, 0.0), (read, 0.5)):
        line = found.charts[0].panels[0].marks[0]
        assert line.x[0] == low
        assert line.y[0] == 1.0
        assert np.all(np.diff(line.y) <= 0)


def test_plans_that_call_a_network_differently_train_it_once(out: Path) -> None:
    settings: dict[str, Any] = {"changes": {**TINY, "rows": None}, "scale": 1e-6, "out": out, "device": "cpu"}
    rows = [[{"name": name, "method": "gaussian"}] for name in ("one", "another")]
    jobs = [len(list((out / "jobs").glob("train-*")))]
    for each in rows:
        settings["changes"]["rows"] = each
        assert certcal.reproduce("acr-table3", **settings).failures == ()
        jobs.append(len(list((out / "jobs").glob("train-*"))))
    assert jobs[1] == jobs[2]


# Networks as small as these are right about few classes, whose samples are then all that is kept.
@pytest.mark.filterwarnings("ignore:class.* no sample left")
def test_plans_for_imagenet_train_what_judges_and_what_votes_first(out: Path) -> None:
    """On digits: the recipes of ImageNet, in which a Gaussian network judges for ACR's own method and for CAT-RS."""
    rows = {row["name"]: row for row in open_plan("acr-table4").to_plain()["rows"]}
    trained: dict[str, Job] = {}
    for name in ("Gaussian", "CAT-RS", "Ours"):
        changes = {**TINY, "sigmas": [1.0], "sample.every": 1, "rows": [rows[name]]}
        found = certcal.reproduce("acr-table4", changes=changes, scale=1e-6, out=out, device="cpu")
        assert (found.done, found.failures) == (found.jobs, ())
        ((_, network), _), *_ = planned(open_plan("acr-table4", changes, scale=1e-6))
        assert network.trained is not None
        trained[name] = network.trained
    assert trained["Ours"].arguments["judge"] == trained["Gaussian"].fingerprint
    assert trained["CAT-RS"].arguments["recipe"]["own"]["confidence"] == "soft"
    context, votes = JobContext(out / "jobs"), trained["CAT-RS"].arguments["soft"]
    shares = np.load(context.folder_of(votes) / context.result_of(votes)["file"])
    assert shares.shape[1] == 10
    assert np.allclose(shares.sum(1), 1)


def test_formulas_give_the_printed_numbers(out: Path) -> None:
    for name in ("acr-figure2", "acr-table6", "acr-table7"):
        found = certcal.reproduce(name, out=out)
        assert [each.text for each in found.answer] == ["Every number comes out as printed."]
        assert found.question == f"Does {found.plan.place.partition(',')[0]} come out as printed?"
        assert len([cell for cell in found.tables[0].cells() if cell.difference is not None]) >= 3
    theorem = certcal.reproduce("acr-theorem1", out=out)
    assert [each.text for each in theorem.answer] == [
        "5 of 6 entries come out as printed; the largest difference is +0.001 (100; p_A = 0.9)."
    ]
    assert theorem.tables[0].text("100", "p_A = 0.9") == "0.756 / 0.757 / +0.001"
    weights = certcal.reproduce("acr-figure4", out=out).tables[0].ours.rows["16 of 16"]
    assert [round(float(each), 2) for each in weights] == [1.64, 7.21]


def test_printed_tables_agree_with_each_other() -> None:
    rows = {plan.name: plan.published["table"].rows for plan in PLANS if "table" in plan.published}
    for sigma in ("0.25", "0.5", "1.0"):
        assert rows["acr-table3"][f"{sigma} | Ours"] == rows["acr-table5"][f"{sigma} | discard + weight + attack"]
    ours = rows["acr-table3"]["0.5 | Ours"][:9]
    for table, row in (("table9", "70"), ("table10", "0.4"), ("table11", "0.250"), ("table12", "6")):
        assert rows[f"acr-{table}"][row] == ours
    assert rows["acr-table13"]["0.250"] == rows["acr-table14"]["6"]
    for sigma, best in (("0.25", "SmoothAdv"), ("0.5", "SmoothMix"), ("1.0", "CAT-RS")):
        own, other, first = (rows["acr-table4"][f"{sigma} | {name}"][0] for name in ("Ours", best, "Gaussian"))
        share = 100 * (own - first) / (other - first)  # type: ignore[operator]
        assert round(share, 1) == rows["acr-recovered"][sigma][0]
