"""``certcal study convert``: published results as the table of a study."""

import datetime
import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from certcal.lab.study import StudyTable
from certcal.lab.study._published import read_calibration_table

ARCHITECTURE = "|nor_conv_3x3~0|+|none~0|skip_connect~1|+|none~0|none~1|nor_conv_1x1~2|"


@pytest.fixture
def published(tmp_path):
    path = tmp_path / "cifar10_tss.csv"
    path.write_text(f"arch,acc,pre_ECE_15,post_KSCE,params\n{ARCHITECTURE},93.9,4.2,0.7,12\nb,90.1,3.9,0.6,15\n")
    return path


def test_a_published_table_becomes_one_of_a_study(certcal_command, published, tmp_path):
    out = tmp_path / "tss.parquet"
    ran = certcal_command("study", "convert", published, "-o", out, "--dataset", "cifar10")
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
        *("study", "convert", published, other, "-o", out, "--force", "--dataset", "a", "--dataset", "b", "--json")
    )
    assert json.loads(ran.out)["datasets"] == ["a", "b"]


def test_models_that_are_named_by_index_get_names_from_a_list(certcal_command, tmp_path):
    path, out, names = tmp_path / "by_index.csv", tmp_path / "out.parquet", tmp_path / "names.json"
    path.write_text("index,acc\n1,0.9\n0,0.8\n")
    names.write_text(json.dumps(["zero", ARCHITECTURE]))
    assert certcal_command("study", "convert", path, "-o", out, "--architectures", names).code == 0
    assert StudyTable.read(out).models == [ARCHITECTURE, "zero"]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "the file is empty"),
        (b"[" * 100_000, "this is no JSON list of architectures"),
        (b'["a", \xff]', "this is no JSON list"),
        (b'{"meta_archs": ["a"]}', "this is no JSON list"),
        (b"[]", "this is no JSON list"),
        (b'["a", 1]', "entry 1 is not the name of an architecture"),
        (b'["a", " "]', "entry 1 is not the name"),
        (b'["\\ud800"]', "entry 0 is not the name"),
        (b'["' + b"a" * 1001 + b'"]', "entry 0 is not the name"),
        (b'["a", "b", "a"]', "entries 0 and 2 are the same; name each architecture once"),
        (b"[" + b"0," * 1_000_000 + b"0]", "it has more than 1,000,000 entries"),
        (b" " * (16 << 20) + b"[]", "bytes are more than a list of architectures can hold"),
    ],
)
def test_a_list_of_architectures_is_checked(certcal_command, tmp_path, content, complaint):
    path, out, names = tmp_path / "by_index.csv", tmp_path / "out.parquet", tmp_path / "names.json"
    path.write_text("index,acc\n0,0.9\n")
    names.write_bytes(content)
    ran = certcal_command("study", "convert", path, "-o", out, "--architectures", names)
    assert (ran.code, ran.out) == (2, "")
    assert f"{names}: " in ran.err
    assert complaint in ran.err
    assert not out.exists()


@pytest.mark.parametrize(
    ("values", "held"),
    [([datetime.date(2020, 1, 1)], "a date"), ([{"a": 1}], "a dict"), ([b"x"], "a bytes"), ([[0.5]], "a list")],
)
def test_columns_of_other_types_are_one_sentence(certcal_command, tmp_path, values, held):
    path, out = tmp_path / "odd.parquet", tmp_path / "out.parquet"
    for name in ("acc", "pre_ECE_15"):
        parquet.write_table(pa.table({"arch": ["a"], "acc": [0.9], "pre_ECE_15": [0.1]} | {name: values}), path)
        ran = certcal_command("study", "convert", path, "-o", out)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err == f"certcal: error: {path}: column {name!r} holds {held}; it must be numbers\n"


def test_the_scale_can_be_said(certcal_command, tmp_path):
    path, out = tmp_path / "small.csv", tmp_path / "out.parquet"
    path.write_text("arch,acc,post_ECE_15\na,93,0.9\n")
    ran = certcal_command("study", "convert", path, "-o", out)
    assert ran.code == 2
    assert "may be shares or per cent; give scale='share' or 'percent'" in ran.err
    assert not out.exists()
    assert certcal_command("study", "convert", path, "-o", out, "--unit", "percent").code == 0
    assert StudyTable.read(out)["post_ece_15"].tolist() == pytest.approx([0.009])
    options = ("--unit", "share", "--accuracy-unit", "percent")
    assert certcal_command("study", "convert", path, "-o", out, "--force", *options).code == 0
    assert StudyTable.read(out)["post_ece_15"].tolist() == [0.9]


def test_mistakes_are_one_sentence(certcal_command, published, tmp_path):
    out = tmp_path / "out.parquet"
    for arguments, complaint in (
        ((published,), "--output TABLE is missing"),
        ((published, "-o", "out.csv"), "-o out.csv: choose one of the endings .parquet"),
        ((tmp_path / "none.csv", "-o", out), "none.csv: there is no such file"),
        ((published, "-o", out, "--dataset", "a", "--dataset", "b"), "--dataset: it is given 2 times for 1 tables"),
        ((tmp_path, "-o", tmp_path.parent / "out.parquet"), "this is a folder"),
        ((published, "-o", out, "--unit", "both"), "--unit: 'both' is not one of 'share', 'percent'"),
    ):
        ran = certcal_command("study", "convert", *arguments)
        assert (ran.code, ran.out) == (2, "")
        assert complaint in ran.err
    assert not out.exists()
    out.write_text("mine")
    assert "exists and is not overwritten" in certcal_command("study", "convert", published, "-o", out).err
    assert out.read_text() == "mine"
