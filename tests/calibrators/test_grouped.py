"""Maps by group: a common map, corrections that shrink to it, and files, exports and cuts that say the same."""

import copy
import io
import json
import re
import sqlite3
import subprocess
import sys
import warnings

import numpy as np
import onnxruntime
import openpyxl
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit

from certcal import InputError, export_map, recalibrate
from certcal.calibrators import (
    Calibrator,
    GroupedMap,
    IsotonicCalibration,
    MapInput,
    PlattScaling,
    RealScores,
    VennAbers,
    fit_by_group,
    load,
    save,
)
from certcal.calibrators._grouped import _corrections
from certcal.data.predictions import group_samples
from certcal.predictions import Predictions

with warnings.catch_warnings():
    warnings.simplefilter("ignore", SyntaxWarning)  # of its own code, which loads when it is needed
    import formulas

    formulas.get_functions()

HOSTILE = ['=HYPERLINK("x")', "o'brien'); drop table t; --", "a*b?", "{1/0}", "north", "NORTH"]
RNG = np.random.default_rng(39)
N = 4000
Z = RNG.random(N).round(3)
REGION = RNG.choice(HOSTILE, N).astype(object)
REGION[:200] = None
AGE = RNG.integers(18, 80, N) + 0.5
Y = (RNG.random(N) < expit(logit(Z.clip(0.01, 0.99)) + np.where(REGION == "north", 1.5, 0) + (AGE > 60))).astype(int)


def fitted(common, by, y=Y, z=Z, real=None, w=None):
    given = Predictions.from_scores(z, y, w)
    cut, _, codes = group_samples(given, by)
    return fit_by_group(MapInput(given, real, codes), cut.rules, common, 0)


COLUMNS = {'re"gion{x}': REGION, "age": AGE}
COUNT = RNG.integers(0, 4, N)
COUNTED = (RNG.random(N) < expit(logit(Z.clip(0.01, 0.99)) + COUNT - 1.5 + (AGE > 60))).astype(int)
NUMBERS = {"age": AGE, "count": COUNT}
MAPS = {
    "two columns": (fitted(PlattScaling().fit(Z, Y), COLUMNS), COLUMNS),
    "single numbers": (fitted(PlattScaling().fit(Z, COUNTED), NUMBERS, COUNTED), NUMBERS),
    "isotonic": (fitted(IsotonicCalibration().fit(Z, Y), COLUMNS), COLUMNS),
    "Venn-Abers": (fitted(VennAbers().fit(Z[:300], Y[:300]), COLUMNS), COLUMNS),
    "real scores": (
        fitted(RealScores("platt").fit(600 - 100 * Z, Y), COLUMNS, real=600 - 100 * Z),
        COLUMNS,
    ),
}
every_map = pytest.mark.parametrize("name", MAPS)


def new_samples(name):
    """Scores and groups, known ones and others."""
    made, columns = MAPS[name]
    rng = np.random.default_rng(1)
    rows = rng.integers(0, N, 60)
    groups = {key: values[rows].copy() for key, values in columns.items()}
    groups["age"][:4] = 1.0, 99.0, 30.5, np.nan
    if "count" in groups:
        groups["count"][:3] = 9, 2, 3
    else:
        groups['re"gion{x}'][:6] = "unseen", None, "north", " north", "north ", "(missing)"
    scores = np.concatenate([[0, 1, 0.5], rng.random(57)])
    scores = 600 - 100 * scores if name == "real scores" else scores
    return made, scores, groups


def test_a_group_with_few_rows_keeps_the_common_map_and_a_large_one_gets_its_own():
    rng = np.random.default_rng(0)
    n = 20_000
    z = rng.random(n)
    group = np.where(np.arange(n) < 10, "tiny", np.where(np.arange(n) < n // 2, "low", "high"))
    shift = np.select([group == "tiny", group == "low"], [2.0, -1.0], 1.0)
    y = (rng.random(n) < expit(logit(z) + shift)).astype(int)
    y[:10] = 1
    made = fitted(PlattScaling().fit(z, y), group, y, z)
    (found,) = made.corrections_
    intercept = dict(zip(("high", "low", "tiny"), found.intercept, strict=True))
    assert found.move > 0.4
    assert intercept["low"] == pytest.approx(-1, abs=0.15)
    assert intercept["high"] == pytest.approx(1, abs=0.15)
    alone = PlattScaling("outcomes").fit(z[:10], y[:10]).intercept_
    assert 0 < intercept["tiny"] < alone / 3


def test_groups_that_are_alike_get_one_map_in_most_draws():
    moved = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        z = rng.random(2000)
        y = (rng.random(2000) < z).astype(int)
        made = fitted(PlattScaling().fit(z, y), rng.choice(["a", "b", "c"], 2000), y, z)
        moved += made.corrections_[0].move > 0
        assert made.corrections_[0].move or np.array_equal(
            made.transform([0.2, 0.7], ["a", "q"]), made.common_.transform([0.2, 0.7])
        )
    assert moved <= 1


def test_corrections_have_the_least_penalised_loss():
    rng = np.random.default_rng(3)
    x, w = rng.normal(0.5, 2, 900), rng.random(900)
    group = rng.integers(0, 3, 900)
    y = (rng.random(900) < expit(np.select([group == 0, group == 1], [x - 1, -2 * x], 0.3))).astype(float)
    centre = np.average(x, weights=w)
    unit = np.sqrt(np.average((x - centre) ** 2, weights=w))
    for move in (0.1, 1.6, 50.0):
        slope, intercept = _corrections(x, y, w, group, 3, move)
        for k in range(3):
            mine = group == k

            def loss(theta, mine=mine, move=move):
                t = x[mine] + theta[1] + theta[0] * (x[mine] - centre) / unit
                return w[mine] @ (np.logaddexp(0, t) - y[mine] * t) + (theta @ theta) / 2 / move**2

            best = minimize(loss, [0.0, 0.0], bounds=[(-unit, None), (None, None)], tol=1e-14)
            a, b = (slope[k] - 1) * unit, intercept[k] + (slope[k] - 1) * centre
            assert loss(np.array([a, b])) <= best.fun + 1e-9
            assert slope[k] >= 0
    assert slope[1] == 0  # a falling group becomes constant, and not turned round


def test_weights_count_like_copies():
    twice = np.concatenate([np.arange(N), np.arange(500)])
    w = np.where(np.arange(N) < 500, 2.0, 1.0)
    x = logit(Z.clip(0.01, 0.99))
    group = (REGION == "north").astype(int)
    one = _corrections(x, Y.astype(float), w, group, 2, 0.4)
    other = _corrections(x[twice], Y[twice].astype(float), np.ones(twice.size), group[twice], 2, 0.4)
    np.testing.assert_allclose(one, other, atol=1e-8)


@every_map
def test_a_file_gives_the_same_map(name, tmp_path):
    made, scores, groups = new_samples(name)
    save(made, tmp_path / "map.json")
    again = load(tmp_path / "map.json").calibrator
    assert again.to_dict() == made.to_dict()
    np.testing.assert_array_equal(again.transform(scores, groups), made.transform(scores, groups))


@every_map
def test_unknown_groups_get_the_common_map(name):
    made, scores, groups = new_samples(name)
    some = {key: np.full(len(scores), "unheard of", object) for key in groups}
    np.testing.assert_array_equal(made.transform(scores, some), made.common_.transform(scores))
    assert not np.array_equal(made.transform(scores, groups), made.common_.transform(scores))


def test_numbers_below_and_above_all_seen_belong_to_the_outer_ranges():
    made = MAPS["two columns"][0]
    north = {key: np.array([each] * 2, object) for key, each in (('re"gion{x}', "north"),)}
    low, high = ({**north, "age": np.array(ages)} for ages in ([-1e9, 18.5], [79.5, 1e9]))
    for ages in (low, high):
        first, second = made.transform([0.3, 0.3], ages)
        assert first == second
    assert made.transform([0.3, 0.3], low)[0] != made.transform([0.3, 0.3], high)[0]
    with pytest.raises(InputError, match="groups: the map needs 'age'"):
        made.transform([0.3, 0.3], north)


def test_truth_values_are_the_same_groups_as_true_and_false_in_a_text(tmp_path):
    flag = RNG.random(N) < 0.5
    y = (RNG.random(N) < expit(logit(Z.clip(0.01, 0.99)) + np.where(flag, 1.0, -1.0))).astype(int)
    path = tmp_path / "t.csv"
    path.write_text("score,outcome,flag\n" + "".join(f"{z},{o},{f}\n" for z, o, f in zip(Z, y, flag, strict=True)))
    made = recalibrate(path, by="flag", method="platt").map
    text, truth = (made.transform([0.5, 0.5], given) for given in (["True", "False"], np.array([True, False])))
    assert text[0] - text[1] > 0.2
    assert np.array_equal(text, truth)
    space = {}
    exec(export_map(made, to="python"), space)
    assert [space["calibrate"](0.5, each) for each in (True, False)] == pytest.approx(text.tolist())


def test_dates_cannot_name_the_groups_of_a_map():
    days = np.array(["2024-01-01", "2024-02-01"] * (N // 2))
    with pytest.raises(InputError, match="by: 'group' holds dates, and a map cannot know those to come"):
        recalibrate(Y, Z, by=days)
    assert recalibrate(Y, Z, by=days, common_map=True).groups


@every_map
def test_sql_gives_the_map(name):
    made, scores, groups = new_samples(name)
    connection = sqlite3.connect(":memory:")
    quoted = ['"' + key.replace('"', '""') + '"' for key in groups]
    connection.execute(f"CREATE TABLE t (pd REAL, {', '.join(quoted)})")
    rows = zip(scores.tolist(), *([plain(each) for each in values] for values in groups.values()), strict=True)
    connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * (1 + len(groups)))})", rows)
    text = export_map(made, to="sql", column="pd")
    found = [row[0] for row in connection.execute(f"SELECT {text} FROM t").fetchall()]
    tables = connection.execute("SELECT count(*) FROM t").fetchone()
    connection.close()
    np.testing.assert_allclose(found, made.transform(scores, groups), atol=1e-9)
    assert tables == (60,)


# In a process of its own, as for maps without groups.
DUCKDB = """
import json, sys
import duckdb
connection, found = duckdb.connect(), []
for text, names, kinds, rows in json.load(sys.stdin):
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(names, kinds))
    connection.execute(f"CREATE OR REPLACE TABLE t (place INTEGER, {columns})")
    marks = ", ".join("?" * (1 + len(names)))
    connection.executemany(f"INSERT INTO t VALUES ({marks})", [[k, *row] for k, row in enumerate(rows)])
    found.append([row[0] for row in connection.execute(f"SELECT {text} FROM t ORDER BY place").fetchall()])
print(json.dumps(found))
"""


def test_duckdb_gives_the_maps_and_nan_is_no_large_number():
    asked, wanted = [], []
    for name in MAPS:
        made, scores, groups = new_samples(name)
        names = ["pd", *('"' + key.replace('"', '""') + '"' for key in groups)]
        kinds = ["DOUBLE", *("DOUBLE" if key != 're"gion{x}' else "VARCHAR" for key in groups)]
        values = [
            [None if each is None else each.item() if hasattr(each, "item") else each for each in column]
            for column in groups.values()
        ]
        asked.append(
            [export_map(made, to="sql", column="pd"), names, kinds, list(zip(scores.tolist(), *values, strict=True))]
        )
        wanted.append(made.transform(scores, groups))
    call = [sys.executable, "-W", "error", "-c", DUCKDB]
    ran = subprocess.run(call, input=json.dumps(asked), capture_output=True, text=True, check=True)
    for found, each in zip(json.loads(ran.stdout), wanted, strict=True):
        np.testing.assert_allclose(found, each, atol=1e-9)


def plain(value):
    """A value as other programs have it: what is missing is None."""
    value = value.item() if hasattr(value, "item") else value
    return None if value is None or value != value else value


@every_map
def test_a_bare_python_gives_the_map(name):
    made, scores, groups = new_samples(name)
    rows = [list(row) for row in zip(scores.tolist(), *(map(plain, each) for each in groups.values()), strict=True)]
    ask = "import json, sys\nprint(json.dumps([calibrate(*row) for row in json.load(sys.stdin)]))\n"
    call = [sys.executable, "-I", "-S", "-W", "error", "-c", export_map(made, to="python") + ask]
    ran = subprocess.run(call, input=json.dumps(rows), capture_output=True, text=True, check=True)
    np.testing.assert_allclose(json.loads(ran.stdout), made.transform(scores, groups), atol=1e-9)


def test_python_takes_numbers_as_files_write_them_and_an_empty_text_is_a_group_where_it_was_one():
    code = np.where(REGION == "north", "1", "").astype(object)
    code[:9] = "x", "1.0", "1", "1e0", "007", " 1", None, "(missing)", ""
    made, space = fitted(PlattScaling().fit(Z, Y), {"code": code}), {}
    exec(export_map(made, to="python"), space)
    wanted = made.transform(np.full(9, 0.5), code[:9])
    assert len(set(wanted)) == 6
    assert [space["calibrate"](0.5, each) for each in code[:9]] == pytest.approx(wanted.tolist(), abs=1e-12)
    exec(export_map(MAPS["two columns"][0], to="python"), space)
    assert space["calibrate"](0.5, "north", "70.5") == space["calibrate"](0.5, "north", 70.5)


def test_python_says_which_columns_are_missing():
    space = {}
    exec(export_map(MAPS["two columns"][0], to="python"), space)
    with pytest.raises(ValueError, match=re.escape("""expected one value each of 're"gion{x}', 'age'""")):
        space["calibrate"](0.5)


@every_map
def test_onnx_gives_the_map(name):
    made, scores, groups = new_samples(name)
    session = onnxruntime.InferenceSession(export_map(made, to="onnx"))
    given = {"scores": np.asarray(scores, float)}
    for place, (key, values) in enumerate(groups.items()):
        texts = ["" if plain(each) is None else str(plain(each)).strip() for each in values]
        given[f"group_{place}"] = np.asarray(values, float) if key == "age" else np.array(texts, object)
    assert {each.name for each in session.get_inputs()} == set(given)
    np.testing.assert_allclose(session.run(None, given)[0], made.transform(scores, groups), atol=1e-9)


@pytest.mark.parametrize("name", ["two columns", "single numbers", "real scores"])
def test_excel_gives_the_map_and_no_cell_but_one_is_a_formula(name):
    made, scores, groups = new_samples(name)
    book = openpyxl.load_workbook(io.BytesIO(export_map(made, to="excel")))
    sheet, table = book["scores"], book["map"]
    assert [cell.value for cell in sheet[1]][:4] == ["score", *groups, "calibrated"]
    cells = [cell for page in (sheet, table) for row in page.iter_rows() for cell in row]
    assert [cell.coordinate for cell in cells if cell.data_type == "f"] == ["D2"]
    function = formulas.Parser().ast(sheet["D2"].value)[1].compile()
    found = []
    for row in range(30):
        given = {"A2": scores[row], **dict(zip("BC", [plain(each[row]) for each in groups.values()], strict=True))}
        values = []
        for place in function.inputs:
            cell = place.replace("$", "")
            if cell in ("A2", "B2", "C2"):
                value = given["A2"] if cell == "A2" else given[cell[0]]
                values.append(np.array([["" if value is None else value]], object))
                continue
            column, last = re.fullmatch(r".*MAP'?!([A-Z]+)2:[A-Z]+(\d+)", cell).groups()
            values.append(np.array([[table[f"{column}{k}"].value] for k in range(2, int(last) + 1)], object))
        found.append(np.asarray(function(*values)).item())
    missing = np.array([any(plain(each[row]) is None for each in groups.values()) for row in range(30)])
    wanted = made.transform(scores, groups)[:30]
    # The evaluator has no empty cells.
    np.testing.assert_allclose(np.array(found, float)[~missing], wanted[~missing], atol=1e-9)


def damaged(change):
    document = copy.deepcopy(MAPS["two columns"][0].to_dict())
    change(document["fitted"])
    return document


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(corrections=[]), "corrections is damaged"),
        (lambda d: d.update(corrections=[1]), "expected"),
        (lambda d: d.update(common=None), "common is damaged"),
        (lambda d: d.update(common=MAPS["isotonic"][0].to_dict()), "common is damaged"),
        (lambda d: d["corrections"][0].update(slope=[-1.0] * 7), "slope"),
        (lambda d: d["corrections"][0].update(slope=[1e300] * 7), "slope"),
        (lambda d: d["corrections"][0].update(intercept=[0.0]), "slope or intercept is damaged"),
        (lambda d: d["corrections"][0].update(codes=[0, 0]), "codes is damaged"),
        (lambda d: d["corrections"][0].update(codes=[2**70]), "codes"),
        (lambda d: d["corrections"][0].update(move=-1), "move"),
        (lambda d: d["corrections"][0].update(extra=1), "extra"),
        (lambda d: d["corrections"][0]["columns"][0].update(groups=["a", "a"]), "groups is damaged"),
        (lambda d: d["corrections"][0]["columns"][0].update(name=""), "name"),
        (lambda d: d["corrections"][1]["columns"][0].update(starts=[2.0, 1.0]), "starts is damaged"),
        (lambda d: d["corrections"][1]["columns"][0].update(starts=["a"]), "starts"),
        (lambda d: d["corrections"][0].update(columns=[{"name": "age", "groups": ["x"], "starts": []}]), "damaged"),
    ],
)
def test_a_damaged_file_is_refused_in_one_sentence(change, message):
    with pytest.raises(InputError, match=message):
        Calibrator.from_dict(damaged(change))


def test_a_map_that_is_not_fitted_has_nothing_to_give():
    with pytest.raises(InputError, match="this GroupedMap is not fitted"):
        GroupedMap().transform([0.5], ["a"])
