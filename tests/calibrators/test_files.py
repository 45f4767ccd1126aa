import inspect
import json
import os
from dataclasses import asdict

import numpy as np
import pytest

from certcal import InputError, calibrators
from certcal.calibrators import (
    BetaCalibration,
    Calibrator,
    CertifiedBeta,
    CertifiedIsotonic,
    CertifiedSamples,
    CertifiedTemperature,
    EqualMassBinning,
    FittedOn,
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
    load,
    save,
)
from tests.calibrators.naive_maps import scored

Z, C = np.random.default_rng(18).random((2, 50))
C = C < Z

CONFIDENCE = [
    PlattScaling(),
    BetaCalibration(parameters="ab"),
    IsotonicCalibration(),
    HistogramBinning(bins=4),
    EqualMassBinning(bins=4, closed="right"),
    PlattScaling("outcomes", intercept=False),
    IsotonicCalibration(smoothing=0.5),
    QuadraticScaling(),
    SplineScaling(),
    VennAbers(),
    Unchanged(),
]
SCORES = [
    TemperatureScaling(),
    VectorScaling(penalty=0.3),
    MatrixScaling(off_diagonal_penalty=30.0),
    StructuredVectorScaling(),
    StructuredMatrixScaling(penalty=2.0),
    UnchangedScores("logits"),
    TopLabel(IsotonicCalibration(), per_class=True),
    OneVsRest(PlattScaling(targets="outcomes"), inputs="logits"),
]
CERTIFIED = [CertifiedIsotonic(0.3), CertifiedTemperature(0.3), CertifiedBeta(0.3)]
ABOUT = FittedOn("run-1", "run", "0a" * 32, n=50, fraction=0.4, seed=3, run="5eed" * 8)


def document(**changes):
    written = {
        "format": "certcal calibrator",
        "version": 1,
        "calibrator": HistogramBinning(bins=2).fit(Z, C).to_dict(),
        "fitted_on": None,
    }
    return written | changes


def fitted(kind, params, state):
    return document(calibrator={"type": kind, "params": params, "fitted": state})


@pytest.mark.parametrize("one", [*CONFIDENCE, *SCORES, *CERTIFIED], ids=repr)
def test_a_calibrator_comes_back_from_its_file_bit_for_bit(tmp_path, one):
    sample = (Z, C) if one in CONFIDENCE else scored(0) if one in SCORES else (Z / 2, (1 + Z) / 2, C, Z)
    made = one.unfitted().fit(*sample)
    save(made, str(tmp_path / "map.json"), fitted_on=None if one in CERTIFIED else ABOUT)
    found = load(str(tmp_path / "map.json"))
    again = found.calibrator
    assert found.fitted_on == (None if one in CERTIFIED else ABOUT)
    assert (type(again), repr(again), again.to_dict()) == (type(one), repr(one), made.to_dict())
    assert np.array_equal(again.transform(sample[0]), made.transform(sample[0]))
    assert np.array_equal(again.predict(sample[0]), made.predict(sample[0]))
    if one in SCORES:
        assert again.classes_.tolist() == [0, 1, 2, 3]
    assert Calibrator.from_dict(one.to_dict()).to_dict() == one.to_dict()  # not fitted


def test_the_file_is_json_without_a_path_of_this_machine(tmp_path):
    save(PlattScaling().fit(Z, C), tmp_path / "map.json", fitted_on=ABOUT)
    text = (tmp_path / "map.json").read_text("utf-8")
    assert json.loads(text)["fitted_on"]["source"] == "run-1"
    assert str(tmp_path) not in text
    assert os.listdir(tmp_path) == ["map.json"]


def test_the_samples_of_the_fit_are_those_of_the_split():
    samples = CertifiedSamples.from_intervals(Z / 2, (1 + Z) / 2, C, Z)
    fit, rest = samples.split(0.4, seed=3)
    assert np.array_equal(ABOUT.positions(), fit.index)
    assert not set(ABOUT.positions()) & set(rest.index)


def test_a_map_that_was_fitted_to_everything_holds_nothing_out():
    everything = FittedOn("table.csv", "predictions", None, n=4, fraction=1)
    assert everything.positions().tolist() == [0, 1, 2, 3]


def test_samples_are_recognised_by_fingerprint_and_number():
    assert ABOUT.is_of("0a" * 32, 50)
    assert not ABOUT.is_of("0a" * 32, 51)
    assert not ABOUT.is_of("0b" * 32, 50)
    assert not FittedOn("x", "run", None, n=50).is_of(None, 50)


def test_samples_of_a_run_are_recognised_by_its_name_however_many_of_them_there_are_now():
    fit = ABOUT.positions()
    for n in (10, 50, 51, 1000):
        np.testing.assert_array_equal(ABOUT.among("0b" * 32, n, "5eed" * 8), fit[fit < n])
    assert ABOUT.among("0b" * 32, 51, "0dd0" * 8) is None
    assert ABOUT.among("0b" * 32, 51) is None
    assert FittedOn("x", "run", None, n=50).among(None, 51, None) is None
    with pytest.raises(InputError, match="more samples than a run of 51 ever had"):
        FittedOn("x", "run", None, n=10**12, run="5eed5eed").among(None, 51, "5eed5eed")


def test_a_file_can_name_exported_classes_and_no_others():
    known = {name: kind for name, kind in Calibrator._known.items() if kind.__module__.startswith("certcal.")}
    concrete = {name for name, kind in known.items() if not inspect.isabstract(kind)}
    tried = {type(one).__name__ for one in (*CONFIDENCE, *SCORES, *CERTIFIED)}
    assert (
        tried | {"GroupedMap", "PerturbedScores", "RealScores"} == concrete <= set(calibrators.__all__)
    )  # their files have own tests


WRITTEN = """{"format": "certcal calibrator", "version": 1, "calibrator": {"type": "TopLabel", "params": {"calibrator":
{"type": "HistogramBinning", "params": {"bins": 2, "closed": "left"}, "fitted": null}, "per_class": false, "inputs":
"probabilities"}, "fitted": {"classes": 2, "pooled": {"type": "HistogramBinning", "params": {"bins": 2, "closed":
"left"}, "fitted": {"closed": "left", "edges": [0.0, 0.5, 1.0], "values": [0.25, 0.75], "counts": {"inside": [0, 4],
"inside_correct": [0, 3]}}}, "maps": {}}}, "fitted_on": {"source": "run-1", "kind": "run", "fingerprint": null, "n": 50,
"fraction": 0.4, "seed": 3, "classes": ["cat", "dog"], "run": "5eed5eed"}}"""
OLDER = WRITTEN.replace(', "run": "5eed5eed"', "")


@pytest.mark.parametrize(("text", "run"), [(WRITTEN, "5eed5eed"), (OLDER, None)], ids=["version 1", "without the run"])
def test_files_of_earlier_versions_are_read_as_they_were_meant(tmp_path, text, run):
    (tmp_path / "map.json").write_text(text)
    found = load(tmp_path / "map.json")
    assert found.calibrator.predict_proba([[0.8, 0.2]]).tolist() == [[0.75, 0.25]]
    assert found.calibrator.pooled_.guarantee().n == 4
    assert found.fitted_on == FittedOn("run-1", "run", None, 50, 0.4, 3, ("cat", "dog"), run)


@pytest.mark.parametrize(
    "wrong",
    [
        {"source": "folder/run"},
        {"source": "folder\\run"},
        {"source": ""},
        {"source": "a\nb"},
        {"source": "a\n"},
        {"source": "x" * 2000},
        {"kind": "table"},
        {"fingerprint": "xyz"},
        {"fingerprint": "0A" * 32},
        {"n": 0},
        {"n": 2.0},
        {"n": True},
        {"fraction": 0},
        {"fraction": 1.1},
        {"fraction": float("nan")},
        {"seed": -1},
        {"seed": 2**63},
        {"run": "../run"},
        {"run": ""},
    ],
)
def test_what_was_fitted_on_is_checked(wrong):
    fields = {"source": "run", "kind": "run", "fingerprint": None, "n": 5, "fraction": 0.5, "seed": 0}
    assert FittedOn(**fields).n == 5
    with pytest.raises(InputError, match=f"^{next(iter(wrong))}: "):
        FittedOn(**fields | wrong)


def test_an_existing_file_is_kept_unless_forced(tmp_path):
    place = tmp_path / "map.json"
    place.write_text("mine")
    with pytest.raises(InputError, match="exists and is not overwritten; choose another name, or force it"):
        save(PlattScaling().fit(Z, C), place)
    assert place.read_text() == "mine"
    save(PlattScaling().fit(Z, C), place, force=True)
    assert load(place).calibrator.slope_ > 0


def test_what_cannot_be_written_is_refused(tmp_path):
    with pytest.raises(InputError, match="is not fitted, so there is nothing to save; call fit first"):
        save(PlattScaling(), tmp_path / "map.json")
    with pytest.raises(InputError, match="cannot be written as JSON"):
        save(PlattScaling().fit(Z, C).set_params(targets=object()), tmp_path / "map.json")
    with pytest.raises(InputError, match="the folder does not exist; create it first"):
        save(PlattScaling().fit(Z, C), tmp_path / "nowhere" / "map.json")
    with pytest.raises(InputError, match="bins is 'many'; expected a whole number"):
        save(HistogramBinning().fit(Z, C).set_params(bins="many"), tmp_path / "map.json")
    with pytest.raises(InputError, match="a dict cannot be written as JSON; pass a calibrator of"):
        save({}, tmp_path / "map.json")
    assert os.listdir(tmp_path) == []


def test_what_is_no_file_of_text_is_refused(tmp_path):
    with pytest.raises(InputError, match="there is no such file"):
        load(tmp_path / "map.json")
    with pytest.raises(InputError, match=r"this is a folder; give one file$"):
        load(tmp_path)
    (tmp_path / "table.csv").write_text("confidence,correct")
    with pytest.raises(InputError, match=r"give a file that certcal recalibrate fit or .*save wrote$"):
        load(tmp_path / "table.csv")
    (tmp_path / "empty.json").write_bytes(b"")
    with pytest.raises(InputError, match="the file is empty"):
        load(tmp_path / "empty.json")
    (tmp_path / "binary.json").write_bytes(bytes(range(256)))
    with pytest.raises(InputError, match="not readable as JSON"):
        load(tmp_path / "binary.json")


def test_a_huge_file_is_refused_before_it_is_read(tmp_path):
    with (tmp_path / "huge.json").open("wb") as stream:
        stream.truncate(10**12)
    with pytest.raises(InputError, match="bytes are more than a calibrator can hold"):
        load(tmp_path / "huge.json")


def test_deep_nesting_is_refused(tmp_path):
    (tmp_path / "lists.json").write_text("[" * 200_000)
    with pytest.raises(InputError, match="nested too deeply"):
        load(tmp_path / "lists.json")
    inner = HistogramBinning(bins=2).fit(Z, C).to_dict()
    for _ in range(400):
        inner = {"type": "TopLabel", "params": {"calibrator": inner}, "fitted": None}
    (tmp_path / "maps.json").write_text(json.dumps(document(calibrator=inner)))
    with pytest.raises(InputError, match="nested too deeply"):
        load(tmp_path / "maps.json")


@pytest.mark.parametrize("kind", ["Chain", "ConfidenceChain"])
def test_a_chain_of_an_earlier_version_is_not_called_damaged(tmp_path, kind):
    chain = {"type": kind, "params": {"steps": []}, "fitted": {"steps": [document()["calibrator"]]}}
    for content in (chain, {"type": "TopLabel", "params": {"calibrator": chain}, "fitted": None}):
        (tmp_path / "chain.json").write_text(json.dumps(document(calibrator=content)))
        with pytest.raises(
            InputError, match=f"json: holds a {kind}, which this version no longer has; fit the maps"
        ) as e:
            load(tmp_path / "chain.json")
        assert "damaged" not in str(e.value)


BINNED = HistogramBinning(bins=2).fit(Z, C).to_dict()["fitted"]
LOGISTIC = {"slope": 1.0, "intercept": 0.0, "objective": 0.1, "gap": 0.0}
BAD = [("slope", -1.0), ("slope", 1e9), ("slope", None), ("gap", 1.5), ("objective", 2.0)]
PLATT, UNFITTED_TOP = PlattScaling().to_dict(), TopLabel(PlattScaling()).to_dict()
TOP = {"classes": 4, "pooled": PlattScaling().fit(Z, C).to_dict(), "maps": {}}
BAD_TOP = [{"classes": 1}, {"classes": "4"}, {"maps": {"4": None}}, {"maps": {"-1": None}}, {"maps": {"1": {}}}]
BAD_TOP += [{"maps": []}, {"pooled": None}, {"pooled": PLATT}, {"pooled": UNFITTED_TOP}]
BAD_SAMPLES = [("more", 1), ("classes", "ab"), ("classes", ["a", 1]), ("source", 1), ("source", None), ("n", True)]
BAD_SAMPLES += [("kind", ["run"]), ("fingerprint", []), ("run", []), ("source", "../x"), ("seed", "1")]
CURVE = {"x": [0.1, 0.2], "y": [0.3, 0.4]}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ([], "this is not a calibrator"),
        ({}, "this is not a calibrator"),
        (document(format="certcal run"), "this is not a calibrator"),
        (document(version=3), r"written by a newer certcal \(schema 3\); this version reads up to 1: upgrade certcal$"),
        (document(version="1"), "version is '1'; expected 1; the file was damaged or edited"),
        (document(version=True), "version is True; expected 1"),
        (document(more=1), "object contains unknown field `more`"),
        ({key: value for key, value in document().items() if key != "fitted_on"}, "missing required field `fitted_on`"),
        (document(calibrator=None), "calibrator: expected `object`, got `null`"),
        (document(calibrator={}), "type is None, which is not a calibrator"),
        (fitted("Pickle", {}, {}), "type is 'Pickle', which is not a calibrator; known are BetaCalibration"),
        (fitted("OutcomeMap", {}, {}), "type is 'OutcomeMap', which is not a calibrator"),
        (fitted(["PlattScaling"], {}, {}), "which is not a calibrator"),
        (fitted("PlattScaling", {"slope": 1}, {}), "expected some of targets"),
        (fitted("PlattScaling", [], {}), "expected some of targets"),
        (fitted("PlattScaling", {}, None), "the calibrator is not fitted"),
        (fitted("PlattScaling", {}, []), "expected a mapping"),
        (fitted("PlattScaling", {}, {"slope": 1}), "intercept is None"),
        (fitted("PlattScaling", {}, {"slope": -1, "intercept": 0}), "slope is -1"),
        (fitted("PlattScaling", {}, {"slope": True, "intercept": 0}), "slope is True"),
        (fitted("PlattScaling", {}, {"slope": 10**400, "intercept": 0}), "slope is 1000"),
        (fitted("PlattScaling", {}, {"slope": 1, "intercept": 0, "x": 0}), "calibrator.fitted has an entry 'x'"),
        (fitted("BetaCalibration", {}, {"a": 1, "b": -1, "c": 0}), "b is -1"),
        (fitted("CertifiedIsotonic", {"tradeoff": 2}, CURVE), "tradeoff is 2; expected a number from 0 to 1"),
        (fitted("CertifiedIsotonic", {"tradeoff": "1), approved (by=1"}, CURVE), "tradeoff is '1"),
        (fitted("CertifiedTemperature", {"tolerance": 0}, {}), "tolerance is 0"),
        (fitted("PlattScaling", {"targets": "none"}, {"slope": 1, "intercept": 0}), "targets is 'none'"),
        (fitted("HistogramBinning", {"bins": 10**9}, BINNED), "bins is 1000000000; expected a whole number"),
        (fitted("TopLabel", {"calibrator": "all"}, {}), "calibrator is 'all'; expected a calibrator"),
        (fitted("TopLabel", {"calibrator": document()["calibrator"], "per_class": "yes"}, {}), "per_class is 'yes'"),
        (fitted("TopLabel", {}, {}), "calibrator is missing"),
        (fitted("IsotonicCalibration", {}, {"x": [0.1], "y": [0.1, 0.2]}), "y is damaged; expected 1 finite numbers"),
        (fitted("IsotonicCalibration", {}, {"x": [], "y": []}), "x is damaged"),
        (fitted("IsotonicCalibration", {}, {"x": ["0.1", "0.2"], "y": [0, 1]}), "x is damaged"),
        (fitted("IsotonicCalibration", {}, {"x": [[0.1], [0.2]], "y": [0, 1]}), "x is damaged"),
        (fitted("IsotonicCalibration", {}, {"x": [[0.1], 0.2], "y": [0, 1]}), "x is damaged"),
        (fitted("IsotonicCalibration", {}, CURVE | {"x": [0.2, 0.1]}), "must be in .* and strictly ascending"),
        (fitted("CertifiedIsotonic", {}, CURVE | {"y": [0.4, 0.3]}), "must be in .* and not descend"),
        (fitted("IsotonicCalibration", {}, CURVE | {"y": [0.4, 1.3]}), "must be in .* and not descend"),
        (fitted("IsotonicCalibration", {}, CURVE | {"z": []}), "calibrator.fitted has an entry 'z'"),
        (fitted("HistogramBinning", {}, BINNED | {"edges": [0, 0.6, 0.5, 1]}), "sort them"),
        (fitted("HistogramBinning", {}, BINNED | {"edges": [0, 0.5]}), "the last 1"),
        (fitted("HistogramBinning", {}, BINNED | {"values": [0.5]}), "values is damaged; expected 2 finite numbers"),
        (fitted("HistogramBinning", {}, BINNED | {"values": [0.5, 2]}), "values of the bins are not in"),
        (fitted("HistogramBinning", {}, BINNED | {"closed": "both"}), "closed is 'both'"),
        (fitted("HistogramBinning", {}, BINNED | {"counts": {}}), "counts of the bins must be inside, inside_correct"),
        (
            fitted("HistogramBinning", {}, BINNED | {"counts": {"inside": [1, 1], "inside_correct": [1, 2]}}),
            "more samples are correct than there are",
        ),
        (
            fitted("HistogramBinning", {}, BINNED | {"counts": {"inside": [1.5, 1], "inside_correct": [1, 1]}}),
            "inside is damaged; expected 2 whole numbers",
        ),
        (
            fitted("HistogramBinning", {}, BINNED | {"counts": {"inside": [-1, 1], "inside_correct": [-1, 1]}}),
            "inside is damaged",
        ),
        (fitted("TemperatureScaling", {}, {"classes": 3}), "temperature is None"),
        (fitted("TemperatureScaling", {}, {"temperature": 0.0, "classes": 3}), "a number from 0.001 to 1000"),
        (fitted("TemperatureScaling", {}, {"temperature": 1.0, "classes": 1}), "classes is 1"),
        (fitted("TemperatureScaling", {}, {"temperature": 1.0, "classes": 10**30}), "classes is 1000"),
        (fitted("TemperatureScaling", {}, {"temperature": 1.0, "classes": True}), "classes is True"),
        (fitted("VectorScaling", {}, {"scale": [1.0, 1.0]}), "intercept is damaged"),
        (fitted("VectorScaling", {}, {"scale": [1.0], "intercept": [0, 0]}), "scale is damaged; expected 2 finite"),
        (fitted("VectorScaling", {}, {"scale": [1.0], "intercept": [0.0]}), "at least 2 classes"),
        (fitted("VectorScaling", {}, {"scale": [1e200, 1], "intercept": [0, 0]}), "expected ordinary numbers"),
        (fitted("MatrixScaling", {}, {"matrix": [1, 1], "intercept": [0, 0]}), "matrix is damaged; expected 2 × 2"),
        *(
            (fitted("CertifiedBeta", {}, LOGISTIC | {name: value}), f"{name} is .*; expected a number")
            for name, value in BAD
        ),
        *((fitted("CertifiedTemperature", {}, LOGISTIC | {name: value}), f"{name} is ") for name, value in BAD),
        *(
            (fitted("TopLabel", {"calibrator": PLATT}, TOP | change), "damaged|classes is|type is")
            for change in BAD_TOP
        ),
        (document(fitted_on={}), "fitted_on: object missing required field `source`"),
        (document(fitted_on=[1]), "fitted_on: expected `object"),
        *((document(fitted_on=asdict(ABOUT) | {name: value}), f"fitted_on.*{name}") for name, value in BAD_SAMPLES),
    ],
)
def test_a_file_that_says_something_else_is_refused_in_one_sentence(tmp_path, content, sentence):
    place = tmp_path / "map.json"
    place.write_text(json.dumps(content))
    with pytest.raises(InputError, match=sentence) as caught:
        load(place)
    assert str(caught.value).startswith(f"{place}: ")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1000 + len(str(place))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"format": NaN}', "NaN is not a number"),
        ('{"format": -Infinity}', "-Infinity is not a number"),
        ('{"format": "certcal calibrator", "format": 1}', "a key appears twice in one object"),
        ('{"format": "certcal calibrator"', "not readable as JSON"),
        ('{"format": ' + "9" * 5000 + "}", "not readable as JSON"),
        ("\ufeff{}", "not readable as JSON"),
    ],
)
def test_text_that_is_not_json_is_refused(tmp_path, text, sentence):
    (tmp_path / "map.json").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=sentence):
        load(tmp_path / "map.json")


def test_a_number_beyond_all_floats_is_refused(tmp_path):
    text = json.dumps(fitted("IsotonicCalibration", {}, CURVE)).replace("0.4", "1e999")
    (tmp_path / "map.json").write_text(text)
    with pytest.raises(InputError, match="y is damaged; expected 2 finite numbers"):
        load(tmp_path / "map.json")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_number_is_refused_in_memory_too(value):
    for kind, state in (
        ("TemperatureScaling", {"temperature": value, "classes": 3}),
        ("MatrixScaling", {"matrix": [[1, 0], [0, value]], "intercept": [0, 0]}),
        ("CertifiedBeta", LOGISTIC | {"gap": value}),
    ):
        with pytest.raises(InputError, match="expected"):
            Calibrator.from_dict({"type": kind, "params": {}, "fitted": state})
