"""Plans of the benchmark study: from made-up tables with the released columns, and from a notebook's printed frames."""

import json
from pathlib import Path

import numpy as np
import pytest

import certcal
from certcal import InputError
from certcal.lab.plans.plan import open_plan, plan_names
from certcal.lab.study import StudyTable, kendall

PLANS = [name for name in plan_names() if name.startswith("bsc-")]
BINNED = {"ece": "ECE", "equal_mass_ece": "ECE_em", "classwise_ece": "cwCE"}
BINNED |= {"classwise_equal_mass_ece": "cwCE_em", "mce": "MCE"}
OTHERS = {"ks_error": "KSCE", "kde_ece": "KDECE", "mmce": "MMCE", "nll": "NLL", "brier_score": "BS"}
BINS = (5, 10, 15, 20, 25, 50, 100, 200, 500)
ROBUSTNESS = ("fgsm_Linf_acc1_0", "pgd_Linf_acc1_0", "aa_apgd_ce_Linf_acc1_0", "aa_square_Linf_acc1_0")
ROBUSTNESS += ("gaussian_noise", "shot_noise", "frost", "glass_blur", "snow", "auc_cifar10c", "auc_svhn")
OPERATIONS = ("none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3")
FRAMES = """cifar10
        ece    ECE_em     cwECE      KSCE     KDECE      MMCE
1  0.021262  0.020629  0.004864  0.020636  0.017670  0.018919
2  0.019303  0.018491  0.004194  0.018498  0.015548  0.016779
10  0.013804  0.012853  0.005130  0.012856  0.010762  0.011884

[3 rows x 6 columns]
other text
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The released tables, those that would be measured, and the notebook."""
    folder, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    for space in ("tss", "sss"):
        for data in ("cifar10", "cifar100", "ImageNet"):
            (folder / f"{data}_{space}.csv").write_text(released(rng, space))
    names = [f"net{k}-{loss}" for k in range(6) for loss in ("ce", "focal", "mmce")]
    columns = [f"{stage}_{metric}_{bins}" for stage in ("pre", "post") for metric in BINNED for bins in BINS]
    columns += [f"{stage}_{metric}" for stage in ("pre", "post") for metric in OTHERS]
    sets = [data for data in ("cifar10", "cifar100", "imagenet") for _ in names]
    values = {column: rng.uniform(0.01, 0.1, len(sets)) for column in ("accuracy", *columns)}
    table = StudyTable.of({"model": names * 3, "data": sets, **values})
    for name in ("transformers", "losses", "pretrained"):
        table.write(folder / f"{name}.parquet")
    notebook = folder / open_plan("bsc-figure13").notebook
    notebook.parent.mkdir(parents=True)
    notebook.write_text(json.dumps({"cells": [{"outputs": [{"text": FRAMES.splitlines(keepends=True)}]}]}))
    return folder


def released(rng: np.random.Generator, space: str, rows: int = 30) -> str:
    def architecture() -> str:
        if space == "sss":
            return ":".join(str(8 * k) for k in rng.integers(1, 9, 5))
        a, b, c, d, e, f = (OPERATIONS[k] for k in rng.integers(0, 5, 6))
        return f"|{a}~0|+|{b}~0|{c}~1|+|{d}~0|{e}~1|{f}~2|"

    stages = [f"{stage}_{name}" for stage in ("pre", "post") for name in OTHERS.values()]
    names = [f"{stage}_{name}_{bins}" for stage in ("pre", "post") for name in BINNED.values() for bins in BINS]
    head = ["arch", "acc", *names, *stages, *(ROBUSTNESS if space == "tss" else ())]
    models = list(dict.fromkeys(architecture() for _ in range(2 * rows)))[:rows]
    lines = [[name, *(f"{value:.6f}" for value in rng.uniform(0.01, 0.9, len(head) - 1))] for name in models]
    return "\n".join(",".join(line) for line in [head, *lines]) + "\n"


@pytest.mark.parametrize("name", PLANS)
def test_every_plan_runs(name: str, data: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    out = tmp_path_factory.getbasetemp() / "bsc"
    found = certcal.reproduce(name, data=str(data), out=out, scale=1e-6)
    assert (found.done, found.failures) == (found.jobs, ())
    assert found.tables
    assert found.charts or "figure" not in name


def test_a_matrix_is_of_the_least_accurate_models_as_in_the_notebooks(data: Path, tmp_path: Path) -> None:
    found = certcal.reproduce("bsc-figure44", data=str(data), out=tmp_path, changes={"subsets.0.least": 20})
    lines = [line.split(",") for line in (data / "cifar100_tss.csv").read_text().splitlines()]
    column = {name: np.array([float(line[k]) for line in lines[1:]]) for k, name in enumerate(lines[0]) if k}
    least = np.argsort(column["acc"])[:20]
    cell = found.tables[0].cell("acc", "pre_ECE_15")
    assert cell.paper == 0.43
    assert cell.ours == pytest.approx(kendall(column["acc"][least], column["pre_ECE_15"][least]))


def test_measurements_that_a_notebook_prints_are_correlated(data: Path, tmp_path: Path) -> None:
    found = certcal.reproduce("bsc-figure13", data=str(data), out=tmp_path)
    rows = {table.ours.name: table for table in found.tables}
    assert [*rows] == ["cifar10"]
    assert rows["cifar10"].cell("ECE", "KSCE").ours == 1.0
    assert rows["cifar10"].cell("ECE", "cwCE").ours == pytest.approx(-1 / 3)
    assert rows["cifar10"].cell("ECE", "cwCE").paper == 0.93
    assert rows["cifar10"].pattern()[0].startswith("cifar10: ")
    assert "Figure 13, appendix A.3, cifar10: paper / here / difference" in found.to_bytes(".md").decode()


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="needs the six released tables"):
        certcal.reproduce("bsc-figure2", out=tmp_path)
    with pytest.raises(InputError, match=r"cifar10_tss\.csv: there is no such file"):
        certcal.reproduce("bsc-figure4b", data=str(tmp_path), out=tmp_path)
