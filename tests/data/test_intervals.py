"""Tables of intervals: columns found or given, values checked, errors in the words of the file."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from certcal import InputError
from certcal.data import read_intervals, resolve_interval_columns
from certcal.data._interval_files import METADATA, IntervalOrigin, intervals_as_parquet


@pytest.fixture
def table(tmp_path):
    """Writes a CSV file and returns its path."""

    def write(text: str):
        path = tmp_path / "intervals.csv"
        path.write_text(text)
        return path

    return write


@pytest.mark.parametrize(
    ("columns", "description"),
    [
        (["lower", "upper", "correct"], "lower 'lower', upper 'upper', correct 'correct'"),
        (["id", "lo", "hi", "is_correct"], "lower 'lo', upper 'hi', correct 'is_correct'"),
        (["Upper-Bound", "Lower Bound", "hit"], "lower 'Lower Bound', upper 'Upper-Bound', correct 'hit'"),
        (["lb", "ub", "y_pred", "y_true"], "lower 'lb', upper 'ub', correct where 'y_pred' equals 'y_true'"),
        (
            ["radius", "lower", "upper", "correct", "certified", "group"],
            "lower 'lower', upper 'upper', correct 'correct', certified 'certified', radius 'radius', group 'group'",
        ),
        (["eps", "low", "high", "correct"], "lower 'low', upper 'high', correct 'correct', radius 'eps'"),
        (["lower", "upper", "correct", "label"], "lower 'lower', upper 'upper', correct 'correct'"),
    ],
)
def test_sensible_names_are_found(columns, description):
    assert resolve_interval_columns(columns).description == description


def test_options_decide_what_names_leave_open():
    columns = ["a", "b", "won", "ok", "lower", "upper", "correct", "r", "site"]
    given = {"lower": "a", "upper": "b", "correct": "won", "certified": "ok", "radius": "r", "by": "site"}
    assert resolve_interval_columns(columns, given).to_dict() == {
        "lower": "a",
        "upper": "b",
        "correct": "won",
        "certified": "ok",
        "radius": "r",
        "group": "site",
    }
    layout = resolve_interval_columns([*columns, "mine", "truth"], {"prediction": "mine"})
    assert (layout.correct, layout.prediction, layout.label) == (None, "mine", "truth")


@pytest.mark.parametrize(
    ("columns", "overrides", "message"),
    [
        (
            ["lowr", "upper", "correct"],
            {},
            "no column of lower ends was found; give it with --lower; did you mean",
        ),
        (["lower", "top", "correct"], {}, "no column of upper ends was found; give it with --upper; the columns are"),
        (["lower", "upper", "label"], {}, "give it with --correct, or give both --prediction and --label"),
        (["lower", "upper", "corect"], {}, "did you mean 'corect'?"),
        (
            ["conf", "correct"],
            {},
            "no columns of lower and upper ends were found, only confidences ('conf'); use certcal",
        ),
        (
            ["p_0", "p_1", "label"],
            {},
            "only confidences ('p_0' … 'p_1'); use certcal measure (in Python read_predictions)",
        ),
        (["p_0", "p_1", "prob_0", "prob_1"], {}, "only confidences (of several kinds); use certcal measure"),
        (
            ["idx", "label", "predict", "radius", "correct", "time"],
            {},
            "a log of certified radii, which certcal compare",
        ),
        (["inputs", "labels"], {}, "these are inputs of a model, around which certcal sample draws noise"),
        (["conf", "upper", "correct"], {}, "no column of lower ends was found; give it with --lower; the columns are"),
        (["conf", "b", "correct"], {"upper": "b"}, "no column of lower ends was found; give it with --lower"),
        (["lower", "lo", "upper", "correct"], {}, "'lower' and 'lo' may each be the lower; choose with --lower"),
        (["lower", "upper", "correct"], {"certified": "certfied"}, "--certified: there is no column 'certfied'"),
        (
            ["lower", "upper", "correct", "clinic"],
            {"by": "clinik"},
            "--by: there is no column 'clinik'; did you mean",
        ),
        (
            ["lower", "upper", "correct", "radii"],
            {"radius": "radi"},
            "--radius: there is no column 'radi'; did you mean",
        ),
        (["lower", "upper", "x", "label"], {"correct": "x", "label": "label"}, "--label does not go with --correct"),
        (["lower", "upper", "correct"], {"confidence": "x"}, "there is no role 'confidence'"),
    ],
)
def test_what_is_missing_or_ambiguous_is_asked_for_by_option(columns, overrides, message):
    with pytest.raises(InputError) as error:
        resolve_interval_columns(columns, overrides)
    assert message in str(error.value)


def test_each_radius_is_a_whole_and_its_groups(table):
    path = table("radius,lo,hi,correct,site\n0.5,.1,.2,1,b\n0.25,.3,.4,0,a\n0.50,.5,.6,1,a\n1e1,.7,.8,yes,\n")
    loaded = read_intervals(path, {"by": "site"})
    parts = [(part.radius, part.group, part.lower.tolist(), part.correct.tolist()) for part in loaded.parts()]
    assert parts == [
        ("0.25", None, [0.3], [0]),
        ("0.25", "a", [0.3], [0]),
        ("0.5", None, [0.1, 0.5], [1, 1]),
        ("0.5", "a", [0.5], [1]),
        ("0.5", "b", [0.1], [1]),
        ("10", None, [0.7], [1]),
        ("10", "(missing)", [0.7], [1]),
    ]
    assert len(loaded) == 4


def test_without_radius_and_group_the_table_is_one_part(table):
    (part,) = read_intervals(table("lower,upper,correct\n0,1,true\n.25,.25,false\n")).parts()
    assert (part.radius, part.group, part.certified) == (None, None, None)
    assert (part.lower.tolist(), part.upper.tolist(), part.correct.tolist()) == ([0, 0.25], [1, 0.25], [1, 0])
    assert len(part) == 2


def test_correctness_may_be_the_equality_of_prediction_and_label(table):
    (part,) = read_intervals(table("lower,upper,pred,label\n0,1,cat,cat\n0,1,dog,cat\n0,1,3,3.0\n")).parts()
    assert part.correct.tolist() == [1, 0, 1]


@pytest.mark.parametrize("empty", ["", "nan"])
def test_rows_that_are_not_certified_may_be_empty(table, empty):
    path = table(f"lower,upper,correct,certified\n.5,.75,1,1\n{empty},{empty},,0\n.25,{empty},0,false\n")
    (part,) = read_intervals(path).parts()
    assert part.lower.tolist() == [0.5, 0, 0.25]
    assert part.upper.tolist() == [0.75, 1, 1]
    assert part.correct.tolist() == [1, 0, 0]
    assert part.certified.tolist() == [True, False, False]


def test_a_column_alpha_is_the_probability_with_which_intervals_may_fail(table):
    path = table("lower,upper,correct,certified,alpha\n.5,.75,1,1,.001\n.25,.5,0,1,2e-3\n,,,0,\n")
    loaded = read_intervals(path)
    assert (loaded.alpha, loaded.layout.alpha) == (0.002, "alpha")
    assert loaded.layout.description.endswith("certified 'certified', alpha 'alpha'")
    without = read_intervals(path, alpha=False)
    assert (without.alpha, without.layout.alpha) == (None, None)
    assert read_intervals(table("lower,upper,correct\n.5,.75,1\n")).alpha is None


@pytest.mark.parametrize("value", ["1", "-0.1", "nan", "inf", ""])
def test_what_cannot_be_an_alpha_is_refused_unless_another_is_given(table, value):
    path = table(f"lower,upper,correct,alpha\n.5,.75,1,0\n.5,.75,1,{value}\n")
    with pytest.raises(InputError, match=r"column 'alpha', row 2"):
        read_intervals(path)
    assert len(read_intervals(path, alpha=False)) == 2


@pytest.mark.parametrize(
    "said",
    [
        None,
        "",
        "[]",
        "nonsense",
        '{"confidence": "tight"}',
        '{"confidence": 1, "noise": "exact", "assumptions": []}',
        '{"confidence": "tight", "noise": "exact", "assumptions": "all"}',
        '{"confidence": "tight", "noise": "exact", "assumptions": ["' + 9999 * "x" + '"]}',
        "[" * 3000,
    ],
)
def test_an_origin_that_is_not_understood_is_no_origin(tmp_path, said):
    rows = pa.table({"lower": [0.25], "upper": [0.5], "correct": [1]})
    pq.write_table(
        rows.replace_schema_metadata({} if said is None else {METADATA: said}), tmp_path / "intervals.parquet"
    )
    loaded = read_intervals(tmp_path / "intervals.parquet")
    assert loaded.origin is None
    assert loaded.lower.tolist() == [0.25]


def test_an_origin_is_read_as_it_was_written(tmp_path):
    origin = IntervalOrigin("cdf", "exact", ("inputs lie on k/255", "α was fixed"))
    columns = {"lower": np.array([0.25]), "upper": np.array([0.5]), "correct": np.array([True])}
    (tmp_path / "intervals.parquet").write_bytes(intervals_as_parquet(columns, origin))
    assert read_intervals(tmp_path / "intervals.parquet").origin == origin


def test_what_is_given_for_uncertified_rows_is_checked_all_the_same(table):
    with pytest.raises(InputError, match=r"column 'lower', row 2 is 0.9, above 0.4"):
        read_intervals(table("lower,upper,correct,certified\n.5,.75,1,1\n.9,.4,1,0\n"))


@pytest.mark.parametrize("ending", ["parquet", "feather", "npz"])
def test_every_format_gives_the_same_intervals(tmp_path, ending):
    columns = {
        "lower": np.array([0.25, 0.5], np.float32),
        "upper": np.array([0.75, 1.0], np.float32),
        "correct": np.array([True, False]),
        "certified": np.array([1, 0]),
        "radius": np.array([0.3, 0.3], np.float32),
    }
    path = tmp_path / f"intervals.{ending}"
    if ending == "npz":
        np.savez(path, **columns)
    else:
        (pq.write_table if ending == "parquet" else feather.write_feather)(pa.table(columns), path)
    loaded = read_intervals(path)
    (part,) = loaded.parts()
    assert part.lower.dtype == np.float32
    assert (part.lower.tolist(), part.upper.tolist()) == ([0.25, 0.5], [0.75, 1])
    assert (part.correct.tolist(), part.certified.tolist()) == ([1, 0], [True, False])
    assert part.radius == "0.3"


def test_empty_entries_of_uncertified_rows_are_filled_in_typed_tables(tmp_path):
    columns = {
        "lower": pa.array([0.5, None]),
        "upper": pa.array([0.75, float("nan")]),
        "label": pa.array(["cat", None]).dictionary_encode(),
        "prediction": pa.array(["cat", None]).dictionary_encode(),
        "certified": pa.array([True, False]),
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    (part,) = read_intervals(tmp_path / "t.parquet").parts()
    assert (part.lower.tolist(), part.upper.tolist()) == ([0.5, 0], [0.75, 1])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "lower,upper,correct\n.1,.2,1\n.9,.4,1\n",
            "column 'lower', row 2 is 0.9, above 0.4 in column 'upper'; are",
        ),
        (
            "lower,upper,correct\n.1,1.2,1\n",
            "column 'upper', row 1 is 1.2, outside [0, 1]; intervals are of",
        ),
        ("lower,upper,correct\n-.1,.2,1\n", "column 'lower', row 1 is -0.1, outside [0, 1]"),
        ("lower,upper,correct\n.1,.2,1\nnan,.2,1\n", "column 'lower', row 2 is"),
        ("lower,upper,correct\n.1,,1\n", "column 'upper', row 1 is empty; fill it or drop the row"),
        ("lower,upper,correct\n.1,x,1\n", "column 'upper', row 1 (line 2) is 'x', not a number"),
        (
            "lower,upper,correct\n.1,.2,7\n",
            "column 'correct', row 1 is '7', neither 0/1 nor true/false; for classes",
        ),
        (
            "lower,upper,correct,certified\n.1,.2,1,maybe\n",
            "column 'certified', row 1 is 'maybe', neither 0/1 nor",
        ),
        ("lower,upper,correct,certified\n.1,.2,1,\n", "column 'certified', row 1 is empty"),
        (
            "lower,upper,correct,radius\n.1,.2,1,-3\n",
            "column 'radius', row 1 is -3, no radius; use finite numbers",
        ),
        ("lower,upper,correct,radius\n.1,.2,1,inf\n", "column 'radius', row 1 is inf, no radius"),
        ("lower,upper,correct\n", "the table has no rows"),
    ],
)
def test_bad_values_are_reported_with_column_row_and_remedy(table, text, message):
    path = table(text)
    with pytest.raises(InputError) as error:
        read_intervals(path)
    assert str(error.value).startswith(f"{path}: ")
    assert message in str(error.value)
    assert str(error.value).count(str(path)) == 1


def test_numbers_other_than_0_and_1_are_no_correctness(tmp_path):
    pq.write_table(pa.table({"lower": [0.1, 0.2], "upper": [0.3, 0.4], "correct": [1, 2]}), tmp_path / "t.parquet")
    with pytest.raises(InputError, match="column 'correct', row 2 is 2, neither 0 nor 1; for classes give"):
        read_intervals(tmp_path / "t.parquet")
    pq.write_table(pa.table({"lower": [True], "upper": [0.4], "correct": [1]}), tmp_path / "u.parquet")
    with pytest.raises(InputError, match="column 'lower' holds true/false"):
        read_intervals(tmp_path / "u.parquet")


def test_a_column_of_each_samples_own_radius_is_refused(table):
    rows = "".join(f".1,.2,1,{index / 8}\n" for index in range(101))
    with pytest.raises(InputError, match="column 'radius' has 101 distinct values; it must hold the radius that a row"):
        read_intervals(table("lower,upper,correct,radius\n" + rows))


def test_progress_is_told_in_rows(table):
    told = []
    read_intervals(table("lower,upper,correct\n0,1,1\n0,1,0\n"), advance=told.append)
    assert sum(told) == 2


def test_a_number_that_is_none_is_found_in_typed_tables(tmp_path):
    columns = {"lower": [0.25, float("nan")], "upper": [0.5, 0.5], "correct": [1, 0], "certified": [1, 1]}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    with pytest.raises(InputError, match="column 'lower', row 2 is nan; drop the row, or say in a column 'certified'"):
        read_intervals(tmp_path / "t.parquet")
