"""Tables of intervals: columns found or given, values checked, errors in the words of the file."""

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from certcal import InputError
from certcal.data import IntervalOrigin, intervals_as_parquet, read_intervals, resolve_interval_columns
from certcal.data.columns import METADATA, columns_as_bytes


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
            ["radius", "lower", "upper", "correct", "certified"],
            "lower 'lower', upper 'upper', correct 'correct', certified 'certified', radius 'radius'",
        ),
        (["eps", "low", "high", "correct"], "lower 'low', upper 'high', correct 'correct', radius 'eps'"),
        (["lower", "upper", "correct", "label"], "lower 'lower', upper 'upper', correct 'correct'"),
    ],
)
def test_sensible_names_are_found(columns, description):
    assert resolve_interval_columns(columns).description == description


def test_options_decide_what_names_leave_open():
    columns = ["a", "b", "won", "ok", "lower", "upper", "correct", "r"]
    given = {"lower": "a", "upper": "b", "correct": "won", "certified": "ok", "radius": "r"}
    assert resolve_interval_columns(columns, given).to_dict() == {
        "lower": "a",
        "upper": "b",
        "correct": "won",
        "certified": "ok",
        "radius": "r",
    }
    layout = resolve_interval_columns([*columns, "mine", "truth"], {"prediction": "mine"})
    assert (layout.get("correct"), layout.get("prediction"), layout.get("label")) == (None, "mine", "truth")


@pytest.mark.parametrize(
    ("columns", "overrides", "message"),
    [
        (
            ["lowr", "upper", "correct"],
            {},
            "no column of lower ends was found; name it as lower; did you mean",
        ),
        (["lower", "top", "correct"], {}, "no column of upper ends was found; name it as upper; the columns are"),
        (["lower", "upper", "label"], {}, "name it as correct, or name both prediction and label"),
        (["lower", "upper", "corect"], {}, "did you mean 'corect'?"),
        (
            ["conf", "correct"],
            {},
            "no columns of lower and upper ends were found, only confidences ('conf'); use measure",
        ),
        (
            ["p_0", "p_1", "label"],
            {},
            "only confidences ('p_0' … 'p_1'); use measure for those",
        ),
        (["p_0", "p_1", "prob_0", "prob_1"], {}, "only confidences (of several kinds); use measure"),
        (
            ["idx", "label", "predict", "radius", "correct", "time"],
            {},
            "a log of certified radii, which certcal compare",
        ),
        (["inputs", "labels"], {}, "these are inputs of a model, around which certcal sample draws noise"),
        (["conf", "upper", "correct"], {}, "no column of lower ends was found; name it as lower; the columns are"),
        (["conf", "b", "correct"], {"upper": "b"}, "no column of lower ends was found; name it as lower"),
        (["lower", "lo", "upper", "correct"], {}, "'lower' and 'lo' may each be the lower; name one as lower"),
        (["lower", "upper", "correct"], {"certified": "certfied"}, "certified: there is no column 'certfied'"),
        (
            ["lower", "upper", "correct", "radii"],
            {"radius": "radi"},
            "radius: there is no column 'radi'; did you mean",
        ),
        (["lower", "upper", "x", "label"], {"correct": "x", "label": "label"}, "label does not go with correct"),
        (["lower", "upper", "correct"], {"confidence": "x"}, "there is no role 'confidence'"),
    ],
)
def test_what_is_missing_or_ambiguous_is_asked_for_by_option(columns, overrides, message):
    with pytest.raises(InputError) as error:
        resolve_interval_columns(columns, overrides)
    assert message in str(error.value)


def test_each_radius_is_a_whole_and_its_groups(table):
    path = table("radius,lo,hi,correct,site\n0.5,.1,.2,1,b\n0.25,.3,.4,0,a\n0.50,.5,.6,1,a\n1e1,.7,.8,yes,\n")
    loaded = read_intervals(path, by=["site"])
    parts = [
        (part.radius, part.group and part.group.name, part.lower.tolist(), part.correct.tolist())
        for part in loaded.parts()
    ]
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
    assert (loaded.alpha, loaded.layout.get("alpha")) == (0.002, "alpha")
    assert loaded.layout.description.endswith("certified 'certified', alpha 'alpha'")
    without = read_intervals(path, alpha=False)
    assert (without.alpha, without.layout.get("alpha")) == (None, None)
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
    with pytest.raises(InputError, match="column 'correct', row 2 is 2, neither 0 nor 1; for classes name"):
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


BY_SAMPLE = """radius,lower,upper,correct,certified,confidence,sample
0.5,.1,.9,1,1,.7,b
0.25,.2,.4,0,1,.3,a
0.25,.5,.8,1,1,.7,b
0.5,,,0,0,.3,a
"""


def test_clean_confidences_and_samples_are_looked_for_only_when_asked():
    columns = ["lower", "upper", "correct", "confidence", "sample"]
    assert resolve_interval_columns(columns).columns == ("lower", "upper", "correct")
    layout = resolve_interval_columns(columns, samples=True)
    assert layout.description.endswith("confidence 'confidence', sample 'sample'")
    assert layout.numbers == ("lower", "upper", "confidence")
    given = resolve_interval_columns([*columns, "z", "id"], {"confidence": "z", "sample": "id"}, samples=True)
    assert (given.get("confidence"), given.get("sample")) == ("z", "id")
    with pytest.raises(InputError, match="there is no role 'sample'"):
        resolve_interval_columns(columns, {"sample": "sample"})


def test_the_rows_of_a_sample_are_put_beside_each_other_whatever_their_order(table):
    found = read_intervals(table(BY_SAMPLE), samples=True).by_sample()
    assert (found.radii, found.names, len(found)) == (("0.25", "0.5"), ("b", "a"), 2)
    assert found.lower.tolist() == [[0.5, 0.1], [0.2, 0.0]]
    assert found.upper.tolist() == [[0.8, 0.9], [0.4, 1.0]]
    assert found.certified.tolist() == [[True, True], [True, False]]
    assert (found.correct.tolist(), found.confidence.tolist()) == ([1, 0], [0.7, 0.3])


def test_one_radius_needs_no_column_of_samples(table):
    found = read_intervals(table("lower,upper,correct\n.1,.2,1\n.3,.4,0\n"), samples=True).by_sample()
    assert (found.radii, found.names, found.confidence) == ((), None, None)
    assert found.lower.tolist() == [[0.1], [0.3]]


def test_without_clean_confidences_rows_that_are_not_certified_need_not_say_whether_they_are_correct(table):
    text = "radius,lower,upper,correct,certified,sample\n1,.1,.2,1,1,a\n2,,,,0,a\n"
    assert read_intervals(table(text), samples=True).by_sample().correct.tolist() == [1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BY_SAMPLE.replace("sample", "who"), "rows at 2 radii and no column says which are of the same sample"),
        (BY_SAMPLE + "0.5,.1,.2,1,1,.7,b\n", "sample 'b' has 2 rows at radius 0.5; give one row"),
        (BY_SAMPLE + "0.5,.1,.2,1,1,.7,c\n", "sample 'c' has no row at radius 0.25; add one, with certified = 0"),
        (BY_SAMPLE.replace(".5,.8,1,1", ".5,.8,0,1"), "sample 'b' is correct at one radius and not at another"),
        (
            BY_SAMPLE.replace("1,.7,b\n0.25", "1,.6,b\n0.25"),
            "sample 'b' is of one confidence without a perturbation at one radius and of another at another",
        ),
        (BY_SAMPLE.replace("0,0,.3", ",0,.3"), "column 'correct', row 4 is empty"),
        (BY_SAMPLE.replace("0,0,.3", "0,0,"), "column 'confidence', row 4 is empty"),
        (BY_SAMPLE.replace("0,0,.3", "0,0,1.5"), r"column 'confidence', row 4 is 1.5, outside \[0, 1\]; name the"),
        (BY_SAMPLE.replace(".3,a", ".3,"), "column 'sample', row 2 is empty"),
    ],
)
def test_samples_that_do_not_fit_together_are_refused(table, text, message):
    with pytest.raises(InputError, match=message):
        read_intervals(table(text), samples=True).by_sample()


def test_a_clean_confidence_that_is_no_number_is_found_in_typed_tables(tmp_path):
    columns = {"lower": [0.1, 0.2], "upper": [0.3, 0.4], "correct": [True, False], "confidence": [0.2, float("nan")]}
    pq.write_table(pa.table(columns), tmp_path / "nan.parquet")
    with pytest.raises(InputError, match="column 'confidence', row 2 is nan; fill it in, or rename the column"):
        read_intervals(tmp_path / "nan.parquet", samples=True)
    assert len(read_intervals(tmp_path / "nan.parquet")) == 2


def test_the_fingerprint_is_of_the_numbers_and_not_of_the_file(table, tmp_path):
    first = read_intervals(table(BY_SAMPLE), samples=True).by_sample()
    kinds = {"radius": float, "certified": bool, "correct": bool, "sample": str}
    rows = [line.split(",") for line in BY_SAMPLE.splitlines()]
    columns = {}
    for name, values in zip(rows[0], zip(*rows[1:], strict=True), strict=True):
        kind = kinds.get(name, float)
        columns[name] = [None if value == "" else bool(int(value)) if kind is bool else kind(value) for value in values]
    pq.write_table(pa.table(columns), tmp_path / "same.parquet")
    assert read_intervals(tmp_path / "same.parquet", samples=True).by_sample().fingerprint == first.fingerprint
    for old, new in ((".1,.9", ".1,.8"), (".2,.4,0,1,.3", ".2,.4,0,0,.3"), ("1,.7,b", "1,.6,b")):
        other = read_intervals(table(BY_SAMPLE.replace(old, new)), samples=True).by_sample()
        assert other.fingerprint != first.fingerprint


@pytest.mark.parametrize(("order", "known"), [([0, 1, 2], True), ([1, 0, 2], False)])
def test_the_fingerprint_of_a_run_counts_while_its_samples_are_in_order(tmp_path, order, known):
    columns = {name: np.array([0.1, 0.2, 0.3]) for name in ("lower", "upper")}
    columns |= {"correct": np.ones(3, bool), "sample": np.array(order)}
    origin = IntervalOrigin("tight", "exact", samples="ab" * 32)
    (tmp_path / "intervals.parquet").write_bytes(intervals_as_parquet(columns, origin))
    found = read_intervals(tmp_path / "intervals.parquet", samples=True).by_sample().fingerprint
    assert (found == "ab" * 32) is known


def test_an_origin_says_which_map_the_confidences_went_through():
    origin = IntervalOrigin("tight", "gaussian", ("all is well",), "a map, fitted to others")
    assert IntervalOrigin.parse(origin.text) == origin
    assert origin.sentence == (
        "tight certificates, Gaussian noise, which hold if all is well; recalibrated by a map, fitted to others"
    )
    assert IntervalOrigin("", "", recalibration="a map").sentence == "recalibrated by a map"
    before = '{"confidence": "tight", "noise": "exact", "assumptions": []}'
    assert IntervalOrigin.parse(before) == IntervalOrigin("tight", "exact")
    assert IntervalOrigin.parse(before.replace("}", ', "recalibration": 3}')) is None


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_columns_are_read_as_they_were_written(tmp_path, ending):
    lower = np.array([0.1, 1 / 3, 5e-324, 1.0])
    columns = {"sample": ["a", 'b"', "c,d", "é"], "lower": lower, "upper": np.ones(4), "correct": np.eye(4)[0] == 1}
    path = tmp_path / f"made{ending}"
    path.write_bytes(columns_as_bytes(columns, ending))
    found = read_intervals(path, samples=True)
    np.testing.assert_array_equal(found.lower, lower)
    assert (found.sample_names, found.correct.tolist()) == (("a", 'b"', "c,d", "é"), [1, 0, 0, 0])
    with pytest.raises(InputError, match=r"files called \.txt are not written"):
        columns_as_bytes(columns, ".txt")


def test_ends_of_several_radii_in_one_column_are_refused_with_the_layout_that_is_read(tmp_path):
    ends = np.full((4, 2), 0.5)
    np.savez(tmp_path / "radii.npz", lower=ends, upper=ends, correct=np.ones(4, int))
    message = "column 'lower' holds lists; give lower ends one by one, a row per sample and radius"
    with pytest.raises(InputError, match=message):
        read_intervals(tmp_path / "radii.npz")
