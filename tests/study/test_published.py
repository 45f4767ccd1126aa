"""Published tables of measurements, and tables beside and below each other."""

import numpy as np
import pytest

from certcal import InputError
from certcal.lab.study import Cell, StudyTable, TopologySpace, join, stack
from certcal.lab.study._published import read_calibration_table

HEAD = (
    "arch,config,acc,pre_ECE_15,pre_ECE_em_15,pre_cwCE_15,pre_cwCE_em_15,pre_MCE_15,pre_KSCE,pre_KDECE,pre_MMCE,pre_NLL,"
    "pre_BS,post_ECE_5,post_KSCE,auc_svhn,gaussian_noise,temp"
)
SHARES = (
    "a,7,0.939,0.042,0.041,0.011,0.012,0.2,0.041,0.039,0.037,0.25,0.10,0.008,0.007,0.91,0.5,1.5",
    "b,8,0.901,0.039,0.038,0.010,0.013,0.3,0.038,0.037,0.034,0.31,0.15,0.009,0.006,0.89,0.4,1.2",
)
PERCENT = (
    "a,7,93.9,4.2,4.1,1.1,1.2,20,4.1,3.9,3.7,0.25,0.10,0.8,0.7,91,0.5,1.5",
    "b,8,90.1,3.9,3.8,1.0,1.3,30,3.8,3.7,3.4,0.31,0.15,0.9,0.6,89,0.4,1.2",
)
NAMES = {
    "accuracy": 0.939,
    "pre_ece_15": 0.042,
    "pre_equal_mass_ece_15": 0.041,
    "pre_classwise_ece_15": 0.011,
    "pre_classwise_equal_mass_ece_15": 0.012,
    "pre_mce_15": 0.2,
    "pre_ks_error": 0.041,
    "pre_kde_ece": 0.039,
    "pre_mmce": 0.037,
    "pre_nll": 0.25,
    "pre_brier_score": 0.10,
    "post_ece_5": 0.008,
    "post_ks_error": 0.007,
    "auroc_svhn": 0.91,
}


@pytest.fixture
def write(tmp_path):
    def make(*lines, name="cifar10_tss.csv"):
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n")
        return path

    return make


@pytest.mark.parametrize("rows", [SHARES, PERCENT], ids=["share", "percent"])
def test_known_columns_get_our_names_and_become_shares(write, rows):
    table = read_calibration_table(write(HEAD, *rows))
    assert table.models == ["a", "b"]
    assert {name: table[name][0] for name in NAMES} == pytest.approx(NAMES)
    assert len(table.measurements) == 12
    assert table.given == ["config", "gaussian_noise", "temp"]
    assert table["gaussian_noise"].tolist() == [0.5, 0.4]


def test_what_the_numbers_were_is_kept(write):
    assert read_calibration_table(write(HEAD, *PERCENT)).settings == {
        "origin": "published table",
        "scale": {"accuracy": "percent", "errors": "percent"},
    }


def test_data_and_split_are_given_or_in_the_table_or_the_name_of_the_file(write):
    plain = write("arch,acc", "a,0.5")
    assert read_calibration_table(plain).datasets == ["cifar10_tss"]
    assert read_calibration_table(plain).splits == ["test"]
    table = read_calibration_table(plain, data="cifar10", split="200")
    assert (table.datasets, table.splits) == (["cifar10"], ["200"])
    inside = write("model,dataset,split,accuracy", "a,x,s,0.5", "a,y,s,0.6")
    assert read_calibration_table(inside).datasets == ["x", "y"]
    assert read_calibration_table(inside).splits == ["s"]


def test_our_own_names_are_known_too(write):
    table = read_calibration_table(write("model,accuracy,pre_equal_mass_ece_15,post_brier_score", "a,0.5,0.1,0.2"))
    assert [str(name) for name in table.measurements] == ["pre_equal_mass_ece_15", "post_brier_score"]


def test_a_table_in_parquet_is_read_as_well(tmp_path):
    StudyTable.of({"model": ["a", "b"], "acc": [93.0, 90.0], "pre_ECE_15": [4.0, 3.0]}).write(tmp_path / "t.parquet")
    table = read_calibration_table(tmp_path / "t.parquet")
    assert table["pre_ece_15"].tolist() == pytest.approx([0.04, 0.03])
    assert "status" in table
    assert table["published_status"].tolist() == ["ok", "ok"]


def test_missing_values_stay_missing(write):
    table = read_calibration_table(write("arch,acc,pre_ECE_15,depth", "a,0.9,,3", "b,,0.1,", "c,0.8,0.2,5"))
    np.testing.assert_array_equal(table["pre_ece_15"], [np.nan, 0.1, 0.2])
    np.testing.assert_array_equal(table["accuracy"], [0.9, np.nan, 0.8])
    np.testing.assert_array_equal(table["depth"], [3, np.nan, 5])


def test_models_may_be_named_by_an_index(write):
    path = write("index,acc", "1,0.9", "0,0.8")
    assert read_calibration_table(path).models == ["1", "0"]
    assert read_calibration_table(path, architectures=["zero", "one"]).models == ["one", "zero"]
    with pytest.raises(InputError, match="row 1 has the index 1, and there are 1 architectures"):
        read_calibration_table(path, architectures=["zero"])
    pandas = write(",acc", "1,0.9", "0,0.8")
    assert read_calibration_table(pandas).models == ["1", "0"]
    assert read_calibration_table(pandas).given == ["index"]
    for bad in ("1.5", "-1", "x", "nan", "inf", ""):
        with pytest.raises(InputError, match=r"row 1 has the index .*, which is no whole number"):
            read_calibration_table(write("index,acc", f"{bad},0.9"))


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        (["arch,acc,pre_ECE_15", "a,93,0.9"], r"no calibration error is above 1 .*beside accuracies in per cent"),
        (["arch,pre_ECE_15", "a,0.9"], "no calibration error is above 1 .*so they may be shares or per cent"),
        (["arch,acc,pre_ECE_15", "a,0.93,4"], "the ones seem to be shares and the others per cent"),
        (["arch,acc,pre_ECE_15", "a,101,4"], "accuracy, row 1, is 1.01, outside 0 to 1 when read as percent"),
        (["arch,acc,pre_ECE_15", "a,-0.1,0"], "accuracy, row 1, is -0.1, outside 0 to 1 when read as share"),
        (["arch,acc,pre_ECE_15", "a,0.5,inf"], "pre_ece_15, row 1, is inf, which is not finite"),
        (["arch,acc,pre_ECE_15", "a,0.5,x"], "'pre_ECE_15', row 1 .* is 'x', not a number"),
        (["arch,acc,auc_x", "a,0.5,120"], "auroc_x, row 1, is 120, too large even for per cent"),
        (["arch,acc,pre_BS", "a,0.5,300"], "pre_brier_score, row 1, is 300, too large even for per cent"),
        (["name,acc", "a,0.5"], "there is no column with the models"),
        (["arch,acc", ",0.5"], "row 1 names no model"),
        (["arch,acc", "a,0.5", "a,0.6"], "row 1 is the second one of model 'a'"),
        (["arch,model,acc", "a,b,0.5"], "columns 'arch' and 'model' are both 'model'"),
        (["arch,acc,accuracy", "a,0.4,0.5"], "columns 'acc' and 'accuracy' are both 'accuracy'"),
        (["arch,acc"], "the table has no rows"),
    ],
)
def test_what_cannot_be_told_or_cannot_be_is_refused(write, lines, complaint):
    path = write(*lines)
    with pytest.raises(InputError, match=complaint) as caught:
        read_calibration_table(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert str(caught.value).count(str(path)) == 1


def test_what_cannot_be_told_can_be_said(write):
    small = write("arch,acc,post_ECE_15", "a,93,0.9")
    for scale, error in (("percent", 0.009), ("share", 0.9)):
        table = read_calibration_table(small, scale=scale, accuracy_scale="percent")
        assert table["post_ece_15"].tolist() == pytest.approx([error])
        assert table["accuracy"].tolist() == pytest.approx([0.93])
    assert read_calibration_table(small, scale="percent")["post_ece_15"].tolist() == pytest.approx([0.009])
    mixed = write("arch,acc,pre_ECE_15", "a,0.93,4.0")
    assert read_calibration_table(mixed, accuracy_scale="share")["pre_ece_15"].tolist() == pytest.approx([0.04])
    table = read_calibration_table(mixed, scale="percent", accuracy_scale="share")
    assert (table["accuracy"][0], table["pre_ece_15"][0]) == pytest.approx((0.93, 0.04))
    alone = write("arch,pre_ECE_15", "a,0.9")
    assert read_calibration_table(alone, scale="percent")["pre_ece_15"].tolist() == pytest.approx([0.009])


def test_an_estimate_that_may_exceed_one_does_not_make_errors_per_cent(write):
    path = write("arch,acc,pre_ECE_15,pre_KDECE", "a,93,0.042,1.2")
    with pytest.raises(InputError, match="no calibration error is above 1"):
        read_calibration_table(path)
    table = read_calibration_table(path, scale="share", accuracy_scale="percent")
    assert (table["pre_ece_15"][0], table["pre_kde_ece"][0]) == pytest.approx((0.042, 1.2))


def test_what_is_said_wrongly_is_refused(write):
    with pytest.raises(InputError, match="outside 0 to 1 when read as share"):
        read_calibration_table(write(HEAD, *PERCENT), scale="share")
    with pytest.raises(InputError, match=r"accuracies are up to 0.939, which are hardly per cent"):
        read_calibration_table(write(HEAD, *SHARES), scale="percent")


def test_scores_that_are_no_shares_are_scaled_only_beyond_their_range(write):
    table = read_calibration_table(write("arch,acc,pre_NLL,pre_BS,post_BS", "a,93,150,12,0.12", "b,90,2,1.9,1.9"))
    assert table["pre_nll"].tolist() == [150, 2]
    assert table["pre_brier_score"].tolist() == pytest.approx([0.12, 0.019])
    assert table["post_brier_score"].tolist() == [0.12, 1.9]


def test_columns_that_only_look_like_measurements_are_given(write):
    table = read_calibration_table(write("arch,acc,pre_ECE,pre_MMCE_15,pre_foo_15,prefix", "a,0.9,0.1,0.1,0.1,x"))
    assert table.measurements == []
    assert table.given == ["pre_ECE", "pre_MMCE_15", "pre_foo_15", "prefix"]


def test_a_file_that_is_not_there_is_one_sentence(tmp_path):
    with pytest.raises(InputError, match="there is no such file"):
        read_calibration_table(tmp_path / "none.csv")


def test_tables_are_stacked_with_all_columns():
    one = StudyTable.of({"model": ["a"], "depth": [3], "kind": ["x"]}, {"seed": 0})
    two = StudyTable.of({"model": ["b"], "accuracy": [0.5]}, {"seed": 0})
    both = stack([one, two])
    assert both.models == ["a", "b"]
    assert both["kind"].tolist() == ["x", ""]
    np.testing.assert_array_equal(both["depth"], [3, np.nan])
    assert both.settings == {"seed": 0}
    assert stack([one, StudyTable.of({"model": ["b"]}, {"seed": 1})]).settings == {}
    with pytest.raises(InputError, match="second one of model 'a'"):
        stack([one, one])


@pytest.fixture
def measured():
    return StudyTable.of(
        {
            "model": ["a", "b", "a"],
            "data": ["x", "x", "y"],
            "accuracy": [0.1, 0.2, 0.3],
            "status": ["ok", "failed", "ok"],
        }
    )


def test_columns_of_another_table_are_joined_by_model_and_data(measured):
    other = StudyTable.of(
        {
            **{"model": ["a", "a", "c", "b"], "data": ["y", "x", "x", "x"], "params": [1, 2, 3, 4]},
            **{"accuracy": [9, 9, 9, 9], "kind": ["u", "v", "w", "z"], "status": ["ok", "ok", "ok", "failed"]},
        }
    )
    joined = join(measured, other)
    np.testing.assert_array_equal(joined.table["params"], [2, np.nan, 1])
    assert joined.table["kind"].tolist() == ["v", "", "u"]
    assert joined.table["accuracy"].tolist() == [0.1, 0.2, 0.3]
    assert joined.table["status"].tolist() == ["ok", "failed", "ok"]
    assert (joined.matched, joined.unmatched, joined.unused) == (2, 1, 1)
    assert (joined.added, joined.left_out) == (("params", "kind"), ("accuracy",))


def test_a_join_by_model_alone_gives_every_data_set_the_same(measured):
    other = StudyTable.of({"model": ["a"], "data": ["z"], "params": [7]})
    joined = join(measured, other, on=["model"], columns=["params"])
    np.testing.assert_array_equal(joined.table["params"], [7, np.nan, 7])


def test_a_join_that_would_have_to_choose_is_refused(measured):
    twice = StudyTable.of({"model": ["a", "a"], "data": ["x", "x"], "split": ["1", "2"], "params": [1, 2]})
    with pytest.raises(InputError, match=r"other has two rows of model 'a', data 'x'; choose one"):
        join(measured, twice)
    assert join(measured, twice.where(split="2")).table["params"][0] == 2
    with pytest.raises(InputError, match="columns has 'accuracy', which the table has itself"):
        join(measured, measured, columns=["accuracy"])
    with pytest.raises(InputError, match="name columns of text"):
        join(measured, measured, on=["accuracy"])
    with pytest.raises(InputError, match="no column 'flops'"):
        join(measured, twice.where(split="1"), columns=["flops"])
    with pytest.raises(InputError, match="name columns of text"):
        join(measured, measured, on=[])


def test_cells_that_are_the_same_can_share_a_row():
    space = TopologySpace()
    unique = space.unique()
    known = set(unique)
    others = [name for name in space if name not in known][:50]
    table = StudyTable.of({"model": others})
    values = StudyTable.of({"model": unique, "noise": np.arange(len(unique))})
    assert join(table, values, on=["model"]).matched == 0
    joined = join(table, values, on=["model"], same_cells=True)
    assert joined.unmatched == 0
    for name, place in zip(others, joined.table["noise"].astype(int), strict=True):
        assert Cell.parse(unique[place]).published == Cell.parse(name).published


def test_a_table_of_something_else_is_refused(tmp_path):
    path = tmp_path / "models.csv"
    path.write_text("model,predictions,depth\na,a.npz,3\n")
    with pytest.raises(InputError, match=r"models.csv: there is no accuracy and no measurement such as pre_ECE_15"):
        read_calibration_table(path)
