"""Tables as the benchmark study released them: what each column is, isomorphic cells, matrices of parts, widths."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from certcal import InputError
from certcal.lab.study import Cell, Lines, Matrix, SizeSpace, StudyTable, TopologySpace, review
from certcal.lab.study._designs import architecture_columns, first_equal_models
from certcal.lab.study._published import read_calibration_table

ATTACKS = [f"{name}_Linf_acc{k}_0" for name in ("fgsm", "pgd", "aa_apgd_ce", "aa_square") for k in (1, 8)]
CORRUPTIONS = ["gaussian_noise", "shot_noise", "frost", "glass_blur", "snow", "fog"]
# One data set's columns in the order of the README, with fewer bins.
HEAD = [
    *("config", "acc", "correct_confidence", "incorrect_confidence", "arch"),
    *(f"{stage}_{name}" for name in ("ECE_15", "ECE_em_15", "cwCE_15", "MCE_15", "KSCE") for stage in ("pre", "post")),
    *("pre_auc_cifar10c", "pre_auc_svhn", *ATTACKS, *CORRUPTIONS),
]
FIGURES = ["fgsm_Linf_acc1_0", "pgd_Linf_acc1_0", "aa_apgd_ce_Linf_acc1_0", "aa_square_Linf_acc1_0", *CORRUPTIONS[:5]]
AREAS = ["auroc_cifar10c", "auroc_svhn"]


def released(path: Path, models: list[str]) -> StudyTable:
    rng = np.random.default_rng(0)
    values: dict[str, Any] = {name: rng.uniform(0.01, 0.2, len(models)).round(5) for name in HEAD}
    values |= {"config": range(len(models)), "arch": models, "acc": rng.uniform(0.5, 0.95, len(models)).round(5)}
    with (path / "cifar10.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([HEAD, *zip(*(values[name] for name in HEAD), strict=True)])
    return read_calibration_table(path / "cifar10.csv")


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> StudyTable:
    return released(tmp_path_factory.mktemp("tss"), list(TopologySpace())[::83])


def test_columns_of_the_released_tables_have_their_roles(cells: StudyTable) -> None:
    found = review(cells, resamples=20)
    assert found.settings["robustness"] == [*AREAS, *FIGURES]
    assert found.settings["sizes"] == ["cell_parameters"]
    assert found.settings["architecture"] == [f"edge_{edge}" for edge in range(1, 7)]
    chosen = review(cells, robustness="aa_*", sizes=["cell_*", "config"], architecture="edge_[12]", resamples=20)
    assert chosen.settings["robustness"] == [*ATTACKS[4:], *AREAS]
    assert chosen.settings["sizes"] == ["cell_parameters", "config"]
    assert chosen.settings["architecture"] == ["edge_1", "edge_2"]
    for role in ("robustness", "sizes", "architecture", "matrix"):
        with pytest.raises(InputError, match=rf"{role}: no column fits 'zoo\*'; the table has config, "):
            review(cells, **{role: "zoo*"})
    others = StudyTable.of({name: values for name, values in cells.columns.items() if name not in FIGURES})
    assert review(others, resamples=20).settings["robustness"] == [*AREAS, *ATTACKS[1::2], "fog"]


def test_names_of_architectures_tell_edges_parameters_and_widths() -> None:
    cell = Cell(("nor_conv_3x3", "nor_conv_3x3", "nor_conv_1x1", "none", "avg_pool_3x3", "skip_connect"))
    found = architecture_columns([str(cell), "8:16:8:8:8", "24:24:24:24:24", "resnet"])
    assert [found[f"edge_{edge}"][0] for edge in range(1, 7)] == list(cell.operations)
    assert found["cell_parameters"] == [19, None, None, None]
    assert (found["kernels"], found["width"]) == ([None, 48, 120, None], [None, None, 24, None])
    assert [found[f"width_{layer}"][1] for layer in range(1, 6)] == [8, 16, 8, 8, 8]
    assert architecture_columns(["resnet"]) == {}


def test_cells_that_are_the_same_count_once(cells: StudyTable) -> None:
    assert len(set(first_equal_models(list(TopologySpace()), "published").values())) == 6466
    models = cells.models
    for rule, kind in (("published", "published"), ("function", "function")):
        first = {getattr(Cell.parse(name), kind): name for name in reversed(models)}
        found = review(cells, unique=rule, resamples=20)
        assert found.models == len(first) < len(models)
        assert any(
            each.startswith(f"{len(models) - len(first)} models are the same cell") and f"({rule} rule)" in each
            for each in found.cautions
        )
    every = review(cells, unique="none", resamples=20)
    assert every.models == len(models)
    assert any("all are reviewed: intervals count copies as further evidence" in each for each in every.cautions)


def test_there_is_a_matrix_of_each_part_that_was_asked_for(cells: StudyTable) -> None:
    names = ["accuracy", "pre_ece_15", "pgd_Linf_acc1_0", "pgd_Linf_acc8_0"]
    patterns = ["accuracy", "pre_ece_*", "pgd_*"]
    found = review(cells, matrix=patterns, tops=[5, 20, 50, 10**6], unique="none", resamples=20)
    drawn = [each for each in found.charts if isinstance(each, Matrix)]
    assert [(each.n, each.method, list(each.names)) for each in drawn] == [
        (len(cells), "Kendall", names),
        (len(cells), "Spearman", names),
        (20, "Kendall", names),
        (50, "Kendall", names),
    ]
    best = cells.select(np.argsort(-cells["accuracy"], kind="stable")[:20])
    expected = review(best, matrix=patterns, unique="none", resamples=20).charts[0]
    assert isinstance(expected, Matrix)
    np.testing.assert_array_equal(drawn[2].values, expected.values)
    assert drawn[2].title == "cifar10: chosen columns, the 20 most accurate models (Kendall)"
    plain = [each for each in review(cells, resamples=20).charts if isinstance(each, Matrix)]
    assert len(plain) == 2


def test_widths_are_drawn_before_and_after_scaling(tmp_path: Path) -> None:
    table = released(tmp_path, [":".join([str(width)] * 5) for width in SizeSpace().channels] + list(SizeSpace())[1:40])
    answer = review(table, resamples=20).answers[6]
    (lines,) = [each for each in answer.charts if isinstance(each, Lines)]
    assert lines.x == tuple(float(width) for width in SizeSpace().channels)
    np.testing.assert_array_equal(lines.values, [table[f"{stage}_ece_15"][:8] for stage in ("pre", "post")])
    assert not any("too few to say anything" in each for each in answer.cautions)
    page = review(table, resamples=20).report().to_html()
    assert "cifar10: ECE by width" in page
