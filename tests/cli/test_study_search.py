"""``certcal study search``: searches shown, printed as JSON and written to files."""

import json

import numpy as np
import pytest

from certcal.lab.study import SizeSpace, StudyTable, search

NAMES = list(SizeSpace([1, 2, 3]))


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    n = len(NAMES)
    columns = {"model": NAMES * 2, "data": ["digits"] * 2 * n, "split": ["early"] * n + ["test"] * n}
    columns |= {"accuracy": rng.random(2 * n), "pre_ece_15": 0.3 * rng.random(2 * n), "params": rng.random(2 * n)}
    columns |= {"pre_mmce": 0.1 * rng.random(2 * n), "pre_ks_error": 0.1 * rng.random(2 * n)}
    path = tmp_path / "study.parquet"
    StudyTable.of(columns).write(path)
    return path


def expected(table, **options):
    return search(table, split="early", **options)


FEW = ("--split", "early", "--evaluations", 15, "--repeats", 3)


def test_the_rows_of_table_1_are_shown_in_per_cent(certcal_command, table):
    ran = certcal_command("study", "search", table, *FEW)
    assert (ran.code, ran.err) == (0, "")
    found = expected(table, budget=15, repeats=3)
    header = next(line for line in ran.out.splitlines() if "HCS1" in line)
    assert header.split() == ["method", "Acc", "ECE", "HCS1", "HCS2", "HCS3", "MMCE", "KSCE"]
    for row in (*found.rows, *found.oracle):
        line = " ".join(f"{100 * row.mean[name]:.2f}" for name in found.shown)
        assert line in " ".join(ran.out.split())
    assert "±" in ran.out
    assert "optimistic" in ran.out
    assert "243 architectures on digits (early); 3 searches of 15 evaluations" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80


def test_another_split_can_judge(certcal_command, table):
    ran = certcal_command("study", "search", table, *FEW, "--judge-split", "test", "--objective", "ece,min:params")
    assert ran.code == 0
    found = expected(table, objectives=["ece", "min:params"], budget=15, repeats=3, judge_split="test")
    assert "Measured on digits (test)" in " ".join(ran.out.split())
    assert "optimistic" not in ran.out
    for row in found.rows:
        assert f"{row.judged_regret:.4f}" in ran.out
        assert f"{100 * row.mean['accuracy']:.2f}" in ran.out


def test_another_table_can_judge(certcal_command, table, tmp_path):
    other = tmp_path / "other.parquet"
    StudyTable.of({"model": NAMES, "data": ["svhn"] * 243, "accuracy": np.linspace(0, 1, 243)}).write(other)
    options = ("--judge-table", other, "--judge-dataset", "svhn", "--judge-split", "test", "--objective", "accuracy")
    ran = certcal_command("study", "search", table, *FEW, *options, "--json")
    assert json.loads(ran.out)["settings"]["judge"] == {"data": "svhn", "split": "test"}


def test_a_table_without_structure_is_searched_at_random(certcal_command, table):
    ran = certcal_command("study", "search", table, *FEW, "--space", "table", "--objective", "hcs")
    assert ran.code == 0
    assert "random" in ran.out
    assert "evolution" not in ran.out


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("NONE",), "there is no such file"),
        (("FOLDER",), "this is a folder; measure its predictions first, with certcal study measure"),
        (("FAILED",), "no row of the table was measured; measure some models first"),
        ((), "--split: the table has 2 splits ('early', 'test'); choose one"),
        (("--split", "late"), "split is 'late'; the table has 'early', 'test'"),
        (("--split", "early", "--objective", ""), "--objective: a name is empty"),
        (("--split", "early", "--objective", "min:flops"), "the table has no column 'flops'"),
        (("--split", "early", "--objective", "params"), "say which way is better, max:params or min:params"),
        (("--split", "early", "--objective", "nll"), "the table has no column 'pre_nll'"),
        (("--split", "early", "--method", "annealing"), "--method: there is no 'annealing'"),
        (("--split", "early", "--evaluations", "0"), "--evaluations: 0 is not"),
        (("--split", "early", "--space", "cells"), "--space: 'cells' is not one of"),
        (("--split", "early", "--space", "topology"), "the table has no architecture of the space"),
        (("--split", "early", "--space", "table", "--method", "local"), "--method: 'local' needs neighbours"),
        (("--split", "early", "--judge-dataset", "svhn"), "data is 'svhn'; the table has 'digits'"),
        (("--split", "early", "-o", "page.png"), "-o page.png: choose one of the endings .html, .txt, .json, .csv"),
    ],
)
def test_mistakes_are_one_sentence(certcal_command, table, tmp_path, options, complaint):
    failed = tmp_path / "failed.parquet"
    StudyTable.of({"model": ["a"], "status": ["failed"], "reason": ["lost"]}).write(failed)
    others = {"NONE": tmp_path / "none.parquet", "FOLDER": tmp_path, "FAILED": failed}
    given = [others[options[0]]] if options and options[0] in others else [table, *options]
    ran = certcal_command("study", "search", *given)
    assert ran.code == 2
    assert ran.out == ""
    assert complaint in ran.err
