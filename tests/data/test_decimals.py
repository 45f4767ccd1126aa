"""Which mark is decimal: 1.234 may be little more than one or than a thousand, and nothing is guessed in silence."""

import numpy as np
import openpyxl
import pytest

import certcal
from certcal import InputError
from certcal.data import PredictionStream

SCORES, OUTCOMES = ("0.2", "0.7", "0.4", "0.9"), (0, 1, 0, 1)


def written(tmp_path, weights, *, mark=";", comma=False, scores=SCORES):
    """A table with weights as they are written, quoted where they must be."""
    scores = [score.replace(".", ",") for score in scores] if comma else scores
    cells = [f'"{each}"' if mark in each else each for each in weights]
    lines = [f"{s}{mark}{y}{mark}{w}" for s, y, w in zip(scores, OUTCOMES, cells, strict=True)]
    path = tmp_path / "table.csv"
    path.write_text("\n".join([mark.join(("score", "outcome", "exposure")), *lines]) + "\n")
    return path


def weights_of(path, **options):
    found = certcal.data.load_table(path, {"weight": "exposure", **options})
    return found.predictions.sample_weight.tolist(), found.layout.description


@pytest.mark.parametrize(
    ("weights", "mark", "comma", "expected", "said"),
    [
        # Other columns tell: decimal commas, and points between thousands.
        (["1.400", "600", "2.500", "1.234.567"], ";", True, [1400, 600, 2500, 1234567], "points between thousands"),
        (["1.234,5", "600", "2.500", "12"], ";", True, [1234.5, 600, 2500, 12], "points between thousands"),
        (["280.000", "260.000", "500.000", "1.000"], ";", True, [280e3, 260e3, 5e5, 1e3], "points between thousands"),
        # And decimal points, and commas between thousands.
        (["1,400", "600", "2,500", "1,234.5"], ",", False, [1400, 600, 2500, 1234.5], "commas between thousands"),
        # Ordinary numbers with three decimals stay what they are.
        (["1.400", "600", "2.500", "9"], ",", False, [1.4, 600, 2.5, 9], None),
        (["1.400", "0.600", "2.500", "9.125"], ";", False, [1.4, 0.6, 2.5, 9.125], None),
        (["1,4", "0,6", "2,500", "9"], ";", True, [1.4, 0.6, 2.5, 9], "'exposure' has decimal commas"),
        # The column's own numbers win over those of other columns.
        (["1.4", "600", "2.500", "9"], ";", True, [1.4, 600, 2.5, 9], None),
    ],
)  # fmt: skip
def test_the_mark_between_thousands_is_known_from_other_numbers_of_the_table(
    tmp_path, weights, mark, comma, expected, said
):
    path = written(tmp_path, weights, mark=mark, comma=comma)
    columns = {"decimal": ","} if comma and mark == "," else {}
    found, description = weights_of(path, **columns)
    assert found == expected
    assert ("'exposure' has" in description) is (said is not None)
    assert said is None or said in description
    for size in (1, 3):
        stream = PredictionStream(path, {"weight": "exposure", **columns}, size=size)
        assert np.concatenate([each.sample_weight for each in stream]).tolist() == expected
        assert stream.layout.description == description


@pytest.mark.parametrize("percent", [False, True])
def test_three_decimals_between_0_and_1_and_up_to_100_are_read_as_ever(tmp_path, percent):
    scores = ["12.345", "0.500", "100", "20.001"] if percent else ["0.123", "1.000", "0.999", "0"]
    path = written(tmp_path, ["1", "1", "1", "1"], scores=scores)
    found = certcal.data.read_predictions(path)
    np.testing.assert_allclose(found.confidence * (100 if percent else 1), list(map(float, scores)))


WHOLE_SCORES = ("1", "0", "1", "0")


@pytest.mark.parametrize("mark", [";", ",", "\t"])
def test_points_between_whole_numbers_alone_are_refused_with_both_remedies_which_work(tmp_path, mark):
    path = written(tmp_path, ["546", "1.234", "60", "35"], mark=mark, scores=WHOLE_SCORES)
    said = r"row 2 is '1\.234', and others are whole numbers: the point may be decimal or separate thousands; give "
    with pytest.raises(InputError, match=said + r"decimal \. if it is decimal, and decimal , if not; add decimal=','$"):
        weights_of(path)
    assert weights_of(path, decimal=",")[0] == [546, 1234, 60, 35]
    assert "'exposure' has points between thousands" in weights_of(path, decimal=",")[1]
    assert weights_of(path, decimal=".")[0] == [546, 1.234, 60, 35]


def test_a_doubt_that_comes_up_far_below_is_a_doubt(tmp_path):
    lines = [f"{k % 2};{k % 2};{100 + k % 800}" for k in range(20_000)]
    path = tmp_path / "table.csv"
    path.write_text("\n".join(["score;outcome;exposure", *lines, "1;1;1.234"]) + "\n")
    for size in (None, 700):
        with pytest.raises(InputError, match=r"row 20001 is '1\.234', and others are whole numbers"):
            list(PredictionStream(path, {"weight": "exposure"}, size=size))
    assert weights_of(path, decimal=",")[0][-1] == 1234


def test_commas_between_whole_numbers_beside_commas_between_columns_separate_thousands(tmp_path):
    path = written(tmp_path, ["546", "1,234", "60", "35"], mark=",", scores=WHOLE_SCORES)
    assert weights_of(path)[0] == [546, 1234, 60, 35]
    assert "'exposure' has commas between thousands" in weights_of(path)[1]
    path = written(tmp_path, ["1,546", "1,234", "1,060", "1,035"], mark=",", scores=WHOLE_SCORES)
    with pytest.raises(InputError, match=r"if the comma separates thousands, .*; add decimal='\.'$"):
        weights_of(path)
    assert weights_of(path, decimal=".")[0] == [1546, 1234, 1060, 1035]
    assert weights_of(path, decimal=",")[0] == [1.546, 1.234, 1.06, 1.035]
    path = written(tmp_path, ["546", "1,234", "60", "35"], scores=WHOLE_SCORES)
    with pytest.raises(InputError, match=r"the comma may be decimal or separate thousands; .*; add decimal='\.'$"):
        weights_of(path)


def test_points_that_may_be_thousands_everywhere_are_said_to_be_taken_for_decimal_ones(tmp_path):
    found, said = weights_of(written(tmp_path, ["1.546", "1.234", "1.060", "1.035"], scores=WHOLE_SCORES))
    assert found == [1.546, 1.234, 1.06, 1.035]
    assert "'exposure' has points, which were taken for decimal ones" in said


@pytest.mark.parametrize(
    ("weights", "decimal", "sentence"),
    [
        (["0,5", "0.25", "1", "1"], None, r"has numbers with decimal points and others with commas; write all in one"),
        (["0,5", "0.25", "1", "1"], ",", r"row 2 is '0\.25', with a point; leave decimal out"),
        (["1,5", "12", "1", "1"], ".", r"row 1 is '1,5', not a number"),
        (["1.23.456", "1", "1", "1"], ",", r"row 1 is '1\.23\.456', with a point"),
        (["1,234.5", "1.234,5", "1", "1"], None, "has numbers with decimal points and others with commas"),
    ],
)
def test_numbers_written_in_two_ways_are_refused(tmp_path, weights, decimal, sentence):
    with pytest.raises(InputError, match=sentence):
        weights_of(written(tmp_path, weights, comma=decimal == ","), **({"decimal": decimal} if decimal else {}))


def test_a_line_that_is_cut_at_the_end_of_what_is_looked_at_says_nothing(tmp_path):
    # Of the last line within 64 KiB only "1.2" is seen.
    head = "score;outcome;exposure\n" + "1;1;546\n"
    path = tmp_path / "table.csv"
    lines = "0;0;1.234\n" * 6551
    path.write_text((head + lines).replace("0;0;1.234", "0;0;546", 900) + "0;0;1.234\n" * 2000)
    with pytest.raises(InputError, match="the point may be decimal or separate thousands"):
        weights_of(path)


def test_texts_in_a_workbook_are_read_by_the_same_rule(tmp_path):
    book = openpyxl.Workbook()
    for line in (["score", "outcome", "exposure"], ["0,2", 0, "1.234"], ["0,7", 1, "546"], ["0,5", 1, "60"]):
        book.active.append(line)
    book.save(tmp_path / "t.xlsx")
    with pytest.raises(InputError, match=r"is '1\.234', and others are whole numbers"):
        weights_of(tmp_path / "t.xlsx")
    assert weights_of(tmp_path / "t.xlsx", decimal=",")[0] == [1234, 546, 60]


def test_groups_are_cut_by_numbers_as_they_are_meant(tmp_path):
    exposures = [f"{500 + 25 * k:,}".replace(",", ".") for k in range(60)]
    lines = [f"0,{100 + k};{k % 2};{each};{k // 3 % 2},5" for k, each in enumerate(exposures)]
    (tmp_path / "table.csv").write_text("\n".join(["score;outcome;exposure;half", *lines]) + "\n")
    found = certcal.data.load_table(tmp_path / "table.csv", by=["exposure", "half"])
    names = ["500–775", "800–1075", "1100–1375", "1400–1675", "1700–1975"]
    assert [each for group in found.groups for each in group.where.values()] == [*names, "0.5", "1.5"]
    assert "'exposure' has points between thousands" in found.layout.description


def test_three_decimals_between_commas_are_decimals_without_a_word(tmp_path):
    path, rng = tmp_path / "weights.csv", np.random.default_rng(0)
    scores, weights = rng.random(60), 1 + 9 * rng.random(60)
    rows = [f"{s:.3f},{int(s > 0.5)},{w:.3f}" for s, w in zip(scores, weights, strict=True)]
    path.write_text("\n".join(["score,outcome,weight", *rows]) + "\n")
    found = certcal.measure(path, weight="weight")
    assert "points" not in found.description
    assert found.whole.effective_n == pytest.approx(weights.round(3).sum() ** 2 / (weights.round(3) ** 2).sum())


def test_pieces_of_a_column_that_tell_of_two_marks_are_refused(tmp_path):
    for rows, last in (("1;1;1.234\n0;0;2.500\n", "0;0;1.234,50\n"), ("1;1;1,234\n0;0;2,500\n", "0;0;1,234.50\n")):
        path = tmp_path / "long.csv"
        path.write_text("score;outcome;exposure\n" + rows * 2000 + last)
        with pytest.raises(InputError, match="has numbers with decimal points and others with commas"):
            list(PredictionStream(path, {"weight": "exposure"}, size=700))


def test_a_time_with_a_point_says_nothing_of_the_commas_of_another_column(tmp_path):
    path = tmp_path / "times.csv"
    path.write_text("score;outcome;weight;time\n" + "1;1;1,234;10.30\n0;0;1,950;11.45\n" * 20)
    with pytest.raises(InputError, match="the comma may be decimal or separate thousands"):
        certcal.measure(path, weight="weight")
    assert certcal.data.load_table(path, {"weight": "weight", "decimal": ","}).predictions.sample_weight.max() == 1.95


def test_groups_of_a_column_in_doubt_are_refused(tmp_path):
    path = tmp_path / "income.csv"
    rows = [f"{k % 2};{int(k % 3 > 0)};1.{k % 900 + 100}" for k in range(300)]
    rows += [f"{k % 2};{int(k % 3 > 0)};{k % 899 + 100}" for k in range(300)]
    path.write_text("score;outcome;income\n" + "\n".join(rows) + "\n")
    with pytest.raises(InputError, match="'income' has '1\\.100' beside whole numbers"):
        certcal.measure(path, by="income")
    assert len(certcal.measure(path, by="income", decimal=",").groups) == 5
