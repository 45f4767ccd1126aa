"""``certcal study convert``: published results as the table of a study."""

from __future__ import annotations

import bz2
import json
import pickle

import numpy as np
import pytest

from certcal.study import StudyTable, read_calibration_table

ARCHITECTURE = "|nor_conv_3x3~0|+|none~0|skip_connect~1|+|none~0|none~1|nor_conv_1x1~2|"


@pytest.fixture
def published(tmp_path):
    path = tmp_path / "cifar10_tss.csv"
    path.write_text(f"arch,acc,pre_ECE_15,post_KSCE,params\n{ARCHITECTURE},93.9,4.2,0.7,12\nb,90.1,3.9,0.6,15\n")
    return path


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "NATS-tss-v1_0-3ffb9-simple"
    place.mkdir()
    trial = {"epochs": 1, "params": 0.5, "flop": 7.5, "train_acc1es": {0: 80.0}, "train_losses": {0: 0.5}}
    trial |= {"eval_acc1es": {"ori-test@0": 75.0}, "eval_losses": {"ori-test@0": 0.9}}
    value = {"12": {"arch_str": ARCHITECTURE, "all_results": {("cifar10", 777): trial, ("cifar100", 777): trial}}}
    (place / "000000.pickle.pbz2").write_bytes(bz2.compress(pickle.dumps(value)))
    (place / "meta.pickle.pbz2").write_bytes(bz2.compress(pickle.dumps({"meta_archs": ["zero", ARCHITECTURE]})))
    return place


def test_a_published_table_becomes_one_of_a_study(certcal_command, published, tmp_path):
    out = tmp_path / "tss.parquet"
    ran = certcal_command("study", "convert", published, "-o", out, "--data", "cifar10")
    assert ran.code == 0
    assert ran.err == f"wrote {out}\n"
    shown = " ".join(ran.out.split())
    assert "2 models, 1 data set, 2 rows measured" in shown
    assert "measurements pre_ece_15, post_ks_error" in shown
    assert "other columns accuracy, params" in shown
    assert "accuracies: percent, calibration errors: percent" in shown
    table, expected = StudyTable.read(out), read_calibration_table(published, data="cifar10")
    assert table.settings == expected.settings
    assert {"edge_1", "cell_parameters"} <= {*table.columns}
    np.testing.assert_equal(dict(table.columns), dict(expected.columns))


def test_several_tables_become_one(certcal_command, published, tmp_path):
    out = tmp_path / "both.parquet"
    other = tmp_path / "cifar100_tss.csv"
    other.write_text("arch,acc,pre_MMCE\nb,70.1,13.9\n")
    ran = certcal_command("study", "convert", published, other, "-o", out, "--json")
    document = json.loads(ran.out)
    assert document["datasets"] == ["cifar10_tss", "cifar100_tss"]
    assert document["measurements"] == ["pre_ece_15", "post_ks_error", "pre_mmce"]
    assert document["failures"] == []
    assert len(StudyTable.read(out)) == 3
    ran = certcal_command(
        *("study", "convert", published, other, "-o", out, "--force", "--data", "a", "--data", "b", "--json")
    )
    assert json.loads(ran.out)["datasets"] == ["a", "b"]


def test_the_files_of_nats_bench_become_a_table(certcal_command, folder, tmp_path):
    out = tmp_path / "nats.parquet"
    ran = certcal_command("study", "convert", folder, "-o", out, "--data", "cifar100")
    assert (ran.code, ran.err) == (0, f"wrote {out}\n")
    assert "measurements none" in " ".join(ran.out.split())
    table = StudyTable.read(out)
    assert table.models == [ARCHITECTURE]
    assert (table["data"].tolist(), table["split"].tolist()) == (["cifar100"], ["ori-test@12"])
    assert (table["accuracy"].tolist(), table["params"].tolist()) == ([0.75], [500_000.0])
    ran = certcal_command("study", "convert", folder, "-o", out, "--force", "--seeds", "each", "--json")
    assert json.loads(ran.out)["splits"] == ["ori-test@12#777"]


def test_a_broken_file_of_nats_bench_is_told_and_the_exit_code_says_so(certcal_command, folder, tmp_path):
    class Hostile:
        def __reduce__(self):
            return print, ("run",)

    (folder / "000001.pickle.pbz2").write_bytes(bz2.compress(pickle.dumps({"12": Hostile()})))
    out = tmp_path / "nats.parquet"
    ran = certcal_command("study", "convert", folder, "-o", out)
    assert ran.code == 1
    flat = " ".join(ran.out.split())
    assert "it asks for builtins.print, which is no plain value, and nothing in it was run" in flat
    assert len(list(StudyTable.read(out).failures)) == 1
    assert len(StudyTable.read(out).where()) == 2


def test_models_that_are_named_by_index_get_the_names_of_nats_bench(certcal_command, folder, tmp_path):
    path, out = tmp_path / "by_index.csv", tmp_path / "out.parquet"
    path.write_text("index,acc\n1,0.9\n0,0.8\n")
    meta = folder / "meta.pickle.pbz2"
    assert certcal_command("study", "convert", path, "-o", out, "--architectures", meta).code == 0
    assert StudyTable.read(out).models == [ARCHITECTURE, "zero"]


def test_the_scale_can_be_said(certcal_command, tmp_path):
    path, out = tmp_path / "small.csv", tmp_path / "out.parquet"
    path.write_text("arch,acc,post_ECE_15\na,93,0.9\n")
    ran = certcal_command("study", "convert", path, "-o", out)
    assert ran.code == 2
    assert "may be shares or per cent; give scale='share' or 'percent'" in ran.err
    assert not out.exists()
    assert certcal_command("study", "convert", path, "-o", out, "--scale", "percent").code == 0
    assert StudyTable.read(out)["post_ece_15"].tolist() == pytest.approx([0.009])
    options = ("--scale", "share", "--accuracy-scale", "percent")
    assert certcal_command("study", "convert", path, "-o", out, "--force", *options).code == 0
    assert StudyTable.read(out)["post_ece_15"].tolist() == [0.9]


def test_mistakes_are_one_sentence(certcal_command, published, folder, tmp_path):
    out = tmp_path / "out.parquet"
    for arguments, complaint in (
        ((published,), "--output TABLE is missing"),
        ((published, "-o", "out.csv"), "-o out.csv: choose one of the endings .parquet"),
        ((tmp_path / "none.csv", "-o", out), "there is no such file or folder"),
        ((published, folder, "-o", out), "is of NATS-Bench and"),
        ((folder, "-o", out, "--scale", "percent"), "--scale: it is for published tables, and"),
        ((folder, "-o", out, "--data", "a", "--data", "b"), "--data: it is given 2 times"),
        ((published, "-o", out, "--data", "a", "--data", "b"), "--data: it is given 2 times for 1 tables"),
        ((tmp_path, "-o", tmp_path.parent / "out.parquet"), "there is no file such as 000123.pickle.pbz2"),
        ((published, "-o", out, "--seeds", "each"), "--seeds: it is for NATS-Bench's files, and"),
        ((published, "-o", out, "--scale", "both"), "--scale: 'both' is not one of 'share', 'percent'"),
    ):
        ran = certcal_command("study", "convert", *arguments)
        assert (ran.code, ran.out) == (2, "")
        assert complaint in ran.err
    assert not out.exists()
    out.write_text("mine")
    assert "exists and is not overwritten" in certcal_command("study", "convert", published, "-o", out).err
    assert out.read_text() == "mine"
