"""Exported maps, each run where it would run: SQLite, DuckDB, a bare Python, an evaluator of Excel, and onnxruntime."""

import io
import json
import math
import re
import sqlite3
import subprocess
import sys
import warnings

import numpy as np
import onnxruntime
import openpyxl
import pytest

from certcal import InputError, export_map
from certcal.calibrators import (
    BetaCalibration,
    CertifiedBeta,
    CertifiedIsotonic,
    CertifiedTemperature,
    EqualMassBinning,
    HistogramBinning,
    IsotonicCalibration,
    MatrixScaling,
    OneVsRest,
    PlattScaling,
    QuadraticScaling,
    SplineScaling,
    StructuredMatrixScaling,
    StructuredVectorScaling,
    TemperatureScaling,
    TopLabel,
    Unchanged,
    UnchangedScores,
    VectorScaling,
    VennAbers,
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore", SyntaxWarning)  # of its own code, which loads when it is needed
    import formulas

    formulas.get_functions()

RNG = np.random.default_rng(39)
Z = RNG.random(400).round(3)
Z[:3] = 0, 1, 0.5
C = (RNG.random(Z.size) < Z**2).astype(int)
VOTES = Z.round(1)
ENDS = np.clip(Z - 0.1, 0, 1), np.clip(Z + 0.1, 0, 1)

SCORE_MAPS = {
    "platt": PlattScaling().fit(Z, C),
    "platt of separated outcomes": PlattScaling("outcomes").fit([0.2, 0.3, 0.7, 0.9], [0, 0, 1, 1]),
    "beta": BetaCalibration().fit(Z, C),
    "isotonic": IsotonicCalibration().fit(Z, C),
    "isotonic of two knots": IsotonicCalibration().fit([0.2, 0.7], [0, 1]),
    "constant": IsotonicCalibration().fit([0.5, 0.5], [0, 1]),
    "histogram": HistogramBinning(15).fit(Z, C),
    "histogram closed on the right": HistogramBinning(15, "right").fit(Z, C),
    "votes": PlattScaling().fit(VOTES, C),
    "quadratic": QuadraticScaling().fit(Z, C),
    "quadratic of votes": QuadraticScaling().fit(VOTES, C),
    "spline": SplineScaling().fit(Z, C),
    "smoothed isotonic": IsotonicCalibration(1.0).fit(Z, C),
    "Venn-Abers": VennAbers().fit(Z, C),
    "unchanged": Unchanged().fit(Z[3:], C[3:]),
    "unchanged votes": Unchanged().fit(VOTES, C),
    "one bin": HistogramBinning(1).fit(Z, C),
    "equal mass": EqualMassBinning(9).fit(Z, C),
    "equal mass closed on the right": EqualMassBinning(9, "right").fit(Z, C),
    "certified isotonic": CertifiedIsotonic(0.5).fit(*ENDS, C, Z),
    "certified temperature": CertifiedTemperature(0.5).fit(*ENDS, C, Z),
    "certified beta": CertifiedBeta(0.5).fit(*ENDS, C, Z),
}
every_score_map = pytest.mark.parametrize("name", SCORE_MAPS)

LOGITS = 3 * RNG.normal(size=(400, 4))
LABELS = (LOGITS + RNG.gumbel(size=LOGITS.shape)).argmax(axis=1)
LABELS[:4] = range(4)
SHARES = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)
SHARES[:4] = np.eye(4)
SCORES = {"logits": LOGITS, "probabilities": SHARES}
SCALINGS = (
    *(TemperatureScaling, VectorScaling, MatrixScaling, StructuredVectorScaling, StructuredMatrixScaling),
    UnchangedScores,
)
CLASS_MAPS = {
    f"{type(each).__name__} {k}": each
    for k, each in enumerate(
        [
            *(kind(inputs=inputs) for inputs in SCORES for kind in SCALINGS),
            *(OneVsRest(IsotonicCalibration(), inputs=inputs) for inputs in SCORES),
            OneVsRest(HistogramBinning(3), inputs="probabilities"),
            *(TopLabel(PlattScaling(), inputs=inputs) for inputs in SCORES),
            TopLabel(HistogramBinning(4), per_class=True, inputs="probabilities"),
        ]
    )
}
for each in CLASS_MAPS.values():
    each.fit(SCORES[each.inputs], LABELS)
every_class_map = pytest.mark.parametrize("name", CLASS_MAPS)


def hard_scores(fitted):
    """1,000 scores: the ends, ties, what is next to them, and the edges and knots of the map from both sides."""
    edges = fitted.curve_.x if hasattr(fitted, "curve_") else getattr(fitted, "edges_", np.array([0.5]))
    if isinstance(fitted, VennAbers):
        edges = np.concatenate([fitted.starts_, fitted.ends_])
    if hasattr(fitted, "knots_"):
        edges = 1 / (1 + np.exp(-fitted.knots_))
    near = [edges, np.nextafter(edges, 0), np.nextafter(edges, 1), Z[:50], Z[:50]]
    tiny = [0, 1, 5e-324, 2.0**-24, 2.0**-60, 1 - 2.0**-24, 1 - 2.0**-53]
    found = np.clip(np.concatenate([tiny, *near]), 0, 1)
    return np.concatenate([found, np.random.default_rng(0).random(1000 - found.size)])


def agrees(found, fitted, scores):
    """To 1e-9: of values between 0 and 1, on the scale on which log losses are."""
    np.testing.assert_allclose(np.array(found, float), fitted.transform(scores), rtol=0, atol=1e-9)


COLUMNS = "score", 'p"d; drop table t; -- {0}'
NO_SCORES = None, "NaN", -0.1, 1.5
# In a process of its own, which is to end before pytest: DuckDB complains of whatever is not yet deleted then.
DUCKDB = """
import json, sys
import duckdb
asked, found = json.load(sys.stdin), []
connection = duckdb.connect()
for text, name, values in asked:
    connection.execute(f'CREATE OR REPLACE TABLE t ("row" INTEGER, {name} DOUBLE)')
    connection.execute(
        "INSERT INTO t SELECT unnest(?::INTEGER[]), unnest(?::DOUBLE[])", [list(range(len(values))), values]
    )
    rows = connection.execute(f'SELECT {text} FROM t ORDER BY "row"')
    found.append([rows.description[0][0], [row[0] for row in rows.fetchall()]])
for kind in ("INTEGER", "DECIMAL(3, 2)", "REAL"):
    text = asked[0][0]
    given = f"SELECT CAST(s AS {kind}) AS score FROM (VALUES (0), (1)) AS v(s)"
    found.append([kind, [row[0] for row in connection.execute(f"SELECT {text} FROM ({given})").fetchall()]])
print(json.dumps(found))
"""


def quoted(column):
    return '"' + column.replace('"', '""') + '"'


@pytest.fixture(scope="module")
def in_duckdb():
    """What DuckDB makes of every map with every column's name, and of the first with columns of other types."""
    asked = [
        (export_map(fitted, to="sql", column=column), quoted(column), [*hard_scores(fitted).tolist(), *NO_SCORES])
        for fitted in SCORE_MAPS.values()
        for column in COLUMNS
    ]
    call = [sys.executable, "-W", "error", "-c", DUCKDB]
    ran = subprocess.run(call, input=json.dumps(asked), capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    keys = [*((name, column) for name in SCORE_MAPS for column in COLUMNS), "INTEGER", "DECIMAL", "REAL"]
    return dict(zip(keys, json.loads(ran.stdout), strict=True))


@every_score_map
@pytest.mark.parametrize("column", COLUMNS)
def test_duckdb_gives_the_map_and_null_for_what_is_no_score(name, column, in_duckdb):
    title, values = in_duckdb[name, column]
    assert title == f"{column}_calibrated"
    assert values[1000:] == [None] * 4
    agrees(values[:1000], SCORE_MAPS[name], hard_scores(SCORE_MAPS[name]))


@pytest.mark.parametrize("kind", ["INTEGER", "DECIMAL", "REAL"])
def test_sql_of_a_column_of_another_type_is_the_same(kind, in_duckdb):
    agrees(in_duckdb[kind][1], SCORE_MAPS["platt"], np.array([0.0, 1.0]))


@every_score_map
@pytest.mark.parametrize("column", COLUMNS)
def test_sqlite_gives_the_map_and_null_for_what_is_no_score(name, column):
    fitted = SCORE_MAPS[name]
    scores = hard_scores(fitted)
    connection = sqlite3.connect(":memory:")
    connection.execute(f'CREATE TABLE t ("row" INTEGER, {quoted(column)} REAL)')
    connection.executemany("INSERT INTO t VALUES (?, ?)", enumerate([*scores.tolist(), None, math.nan, -0.1, 1.5]))
    found = connection.execute(f'SELECT {export_map(fitted, to="sql", column=column)} FROM t ORDER BY "row"')
    assert found.description[0][0] == f"{column}_calibrated"
    values = [row[0] for row in found.fetchall()]
    connection.close()
    assert values[1000:] == [None] * 4
    agrees(values[:1000], fitted, scores)


def bare_python(text, scores):
    """What a Python without any package, and without certcal's folder, makes of a list of scores."""
    ask = "import json, sys\nprint(json.dumps([calibrate(each) for each in json.load(sys.stdin)]))\n"
    call = [sys.executable, "-I", "-S", "-W", "error", "-c", text + ask]
    ran = subprocess.run(call, input=json.dumps(scores), capture_output=True, text=True, check=True)
    return json.loads(ran.stdout)


@every_score_map
def test_python_gives_the_map_and_refuses_what_is_no_score(name):
    fitted = SCORE_MAPS[name]
    scores = hard_scores(fitted)
    text = export_map(fitted, to="python")
    made = {}
    exec(text, made)
    agrees([made["calibrate"](score) for score in scores.tolist()], fitted, scores)
    for wrong in (-0.1, 1.5, math.nan):
        with pytest.raises(ValueError, match="expected a number from 0 to 1"):
            made["calibrate"](wrong)


def test_python_needs_nothing_but_python():
    for fitted in (SCORE_MAPS["beta"], SCORE_MAPS["isotonic"]):
        scores = hard_scores(fitted)
        agrees(bare_python(export_map(fitted, to="python"), scores.tolist()), fitted, scores)
    fitted = next(each for name, each in CLASS_MAPS.items() if "TopLabel" in name and each.inputs != "logits")
    found = bare_python(export_map(fitted, to="python"), SHARES.tolist())
    np.testing.assert_allclose(found, fitted.predict_proba(SHARES), atol=1e-9)


@every_class_map
def test_python_of_all_classes_gives_the_map(name):
    fitted = CLASS_MAPS[name]
    scores = SCORES[fitted.inputs]
    made = {}
    exec(export_map(fitted, to="python"), made)
    found = [made["calibrate"](row) for row in scores.tolist()]
    np.testing.assert_allclose(found, fitted.predict_proba(scores), rtol=0, atol=1e-9)
    for wrong in ([0.5, 0.5], [math.nan, 0.0, 0.5, 0.5]):
        with pytest.raises(ValueError, match="expected 4"):
            made["calibrate"](wrong)


def run_onnx(content, scores):
    return onnxruntime.InferenceSession(content).run(None, {"scores": scores})[0]


@every_score_map
def test_onnx_gives_the_map_and_nan_for_what_is_no_score(name):
    fitted = SCORE_MAPS[name]
    scores = hard_scores(fitted)
    found = run_onnx(export_map(fitted, to="onnx"), np.append(scores, [np.nan, -0.1, 1.5]))
    assert np.isnan(found[1000:]).all()
    agrees(found[:1000], fitted, scores)


@every_class_map
def test_onnx_of_all_classes_gives_the_map(name):
    fitted = CLASS_MAPS[name]
    scores = SCORES[fitted.inputs]
    content = export_map(fitted, to="onnx")
    unknown = scores[:1].copy()
    unknown[0, 1] = np.nan
    found = run_onnx(content, np.concatenate([scores, unknown]))
    np.testing.assert_allclose(found[:-1], fitted.predict_proba(scores), rtol=0, atol=1e-9)
    assert np.isnan(found[-1]).all()
    if fitted.inputs == "probabilities":
        assert np.isnan(run_onnx(content, np.array([[-0.5, 0.5, 0.5, 0.5]]))).any()


def in_excel(content):
    """The formula of B2 as a function of A2, evaluated by the package formulas with the numbers of the sheet "map"."""
    book = openpyxl.load_workbook(io.BytesIO(content))
    formula, table = book["scores"]["B2"].value, book["map"]
    function = formulas.Parser().ast(formula)[1].compile()

    def values(name):
        if name == "A2":
            return None
        column, rows = re.fullmatch(r".*MAP'?!([A-Z]+)2:[A-Z]+(\d+)", name.replace("$", "")).groups()
        return np.array([[table[f"{column}{row}"].value] for row in range(2, int(rows) + 1)])

    ranges = {name: values(name) for name in function.inputs}

    def evaluate(score):
        given = (np.array([[score]], object) if value is None else value for value in ranges.values())
        return np.asarray(function(*given)).item()

    return evaluate


@every_score_map
def test_excel_gives_the_map(name):
    fitted = SCORE_MAPS[name]
    scores = hard_scores(fitted)[:40]  # the evaluator takes milliseconds for each
    evaluate = in_excel(export_map(fitted, to="excel"))
    agrees([evaluate(score) for score in scores.tolist()], fitted, scores)
    for wrong in (-0.1, 1.5, "many"):
        assert str(evaluate(wrong)) == "#N/A"


def test_the_numbers_of_a_workbook_are_not_rounded():
    fitted = SCORE_MAPS["equal mass"]
    table = openpyxl.load_workbook(io.BytesIO(export_map(fitted, to="excel")))["map"]
    assert [cell.value for cell in table[1]] == ["from", "power 0"]
    assert [row[1] for row in table.iter_rows(min_row=2, values_only=True)] == fitted.values_.tolist()


def test_steps_and_lines_are_told():
    assert "15 steps" in export_map(SCORE_MAPS["histogram"], to="sql").splitlines()[0]
    knots = SCORE_MAPS["isotonic"].curve_.x.size
    assert f"straight lines between {knots} knots" in export_map(SCORE_MAPS["isotonic"], to="python").splitlines()[0]


@pytest.mark.parametrize("to", ["sql", "excel"])
def test_a_map_of_all_classes_is_no_expression_of_one_column(to):
    with pytest.raises(InputError, match=r"to: a TemperatureScaling needs the scores of all classes.*python or onnx"):
        export_map(CLASS_MAPS["TemperatureScaling 0"], to=to)


def test_what_cannot_be_exported_is_refused():
    class Halved:
        def predict(self, confidence):
            return confidence / 2

    with pytest.raises(InputError, match="a Halved cannot be exported"):
        export_map(Halved(), to="sql")
    with pytest.raises(InputError, match="this PlattScaling is not fitted"):
        export_map(PlattScaling(), to="python")
    with pytest.raises(InputError, match="column: it is for sql"):
        export_map(SCORE_MAPS["platt"], to="python", column="pd")
    with pytest.raises(InputError, match="column"):
        export_map(SCORE_MAPS["platt"], to="sql", column="")


@every_score_map
def test_one_number_is_mapped_as_many_are(name):
    fitted = SCORE_MAPS[name]
    scores = hard_scores(fitted)
    # A product of matrices may be rounded in another order than one of two rows.
    np.testing.assert_allclose([fitted(score) for score in scores.tolist()], fitted.transform(scores), rtol=1e-13)
    for wrong in (-0.1, 1.5, math.nan):
        with pytest.raises(InputError, match="pass one number from 0 to 1"):
            fitted(wrong)


def test_a_scalar_is_served_without_numba(tmp_path):
    from certcal.calibrators import save

    for name in ("platt", "isotonic", "equal mass"):
        save(SCORE_MAPS[name], tmp_path / f"{name}.json")
    ask = (
        "import sys; from certcal.calibrators import load\n"
        "for path in sys.argv[1:]:\n"
        "    fitted = load(path).calibrator\n"
        "    for k in range(3_000): fitted(0.3)\n"
        "assert 'numba' not in sys.modules and 'pandas' not in sys.modules"
    )
    ran = subprocess.run(
        [sys.executable, "-c", ask, *map(str, sorted(tmp_path.iterdir()))], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
