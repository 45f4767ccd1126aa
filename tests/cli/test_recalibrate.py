"""``certcal recalibrate``: maps fitted to one part and judged on the other, written, read and applied."""

import json
import re
import shlex

import numpy as np
import pytest

from certcal import export_map, measure
from certcal import recalibrate as library
from certcal.calibrators import (
    CertifiedIsotonic,
    CertifiedSamples,
    IsotonicCalibration,
    TemperatureScaling,
    VectorScaling,
    load,
    save,
    split_positions,
)
from certcal.claims import ORDER
from certcal.data import load_table, open_table, read_intervals, read_predictions
from certcal.smoothing import open_run
from certcal.verbs.recalibrate import has_figure
from tests.cli.conftest import flat
from tests.smoothing.drawing import X, Y, draw, model

RNG = np.random.default_rng(17)
N = 120
Z = RNG.uniform(0.2, 1, N)
CORRECT = (RNG.random(N) < Z**1.5).astype(int)
MARGIN = RNG.random(N)
RADII = (0.05, 0.1)
LOGITS = 3 * RNG.normal(size=(N, 3))
LABELS = (RNG.random(N)[:, None] > (np.exp(LOGITS / 2) / np.exp(LOGITS / 2).sum(1, keepdims=True)).cumsum(1)).sum(1)


def rows(radius):
    lower, upper = np.clip(Z - radius, 0, 1), np.clip(Z + radius, 0, 1)
    for k in range(N):
        yield f"{radius},s{k},{lower[k]!s},{upper[k]!s},{CORRECT[k]},{int(MARGIN[k] > 4 * radius)},{Z[k]!s}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables of all kinds."""
    made = tmp_path_factory.mktemp("recalibrate")
    header = "radius,sample,lower,upper,correct,certified,confidence"
    (made / "radii.csv").write_text("\n".join([header, *(row for radius in RADII for row in rows(radius))]))
    one = [row.split(",") for row in rows(0.05)]
    (made / "plain.csv").write_text("\n".join(["lower,upper,correct", *(",".join(row[2:5]) for row in one)]))
    (made / "scores.csv").write_text("\n".join(["score,outcome", *(f"{row[6]},{row[4]}" for row in one)]))
    named = [
        "prob_cat,prob_dog,label",
        *(f"{z!s},{1 - z!s},{'cat' if c else 'dog'}" for z, c in zip(Z, CORRECT, strict=True)),
    ]
    (made / "named.csv").write_text("\n".join(named))
    np.savez(made / "logits.npz", logits=LOGITS, label=LABELS)
    return made


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    labels = np.where(np.arange(24) % 6 == 0, 0, np.argmax(np.asarray(model()(X)), axis=1))
    return draw(tmp_path_factory.mktemp("recalibrate") / "run", labels=labels, n=2000, unit=20_000).path


def lines_of(document):
    return {line["name"]: line["at"] for line in document["lines"]}


def test_a_table_of_radii_is_what_the_library_makes_of_it(certcal_command, folder):
    ran = certcal_command("recalibrate", "fit", folder / "radii.csv", "--seed", 3, "--radius-weight", "1,3", "--json")
    assert (ran.code, ran.err) == (0, "")
    document = json.loads(ran.out)
    table = read_intervals(folder / "radii.csv", samples=True).by_sample()
    samples = CertifiedSamples.from_intervals(
        table.lower, table.upper, CORRECT, Z, certified=table.certified, radii=RADII
    )
    found = library(samples, seed=3, radius_weight=[1, 3])
    assert document["radius_weight"] == [0.25, 0.75]
    assert document["radii"] == ["0.05", "0.1"]
    for line in found.lines:
        for at, made in zip(line.at, lines_of(document)[line.name], strict=True):
            assert made["summary"]["brier_score"]["certified"]["value"] == at.summary["brier_score"].worst.value
            assert made["gain"]["value"] == at.gain.value
    assert document["columns"]["sample"] == "sample"


def test_the_table_marks_the_map_and_says_what_was_held_out(certcal_command, folder):
    ran = certcal_command("recalibrate", "fit", folder / "radii.csv", "--radius", "0.05", "--tradeoff", "0.25")
    assert (ran.code, ran.err) == (0, "")
    marked = [line for line in ran.out.splitlines() if "◂" in line]
    assert [line.split(" ◂")[0].strip() for line in marked] == ["isotonic, λ = 0.25"] * 2  # clean, and worst case
    text = flat(ran.out)
    assert "Fitted to 60 samples and judged on 60 others; no sample is in both parts." in text
    assert "The split is drawn with seed 0." in text
    assert "is 95% sure on its own" in text
    assert "The intervals are taken as certain" in text
    assert "Within radius 0.05" in ran.out
    assert "adius 0.1" not in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80


def test_weights_follow_their_radii_in_whatever_order_they_are_given(certcal_command, folder):
    arguments = ("--radius", ".1,.05", "--radius-weight", "1,3", "--json")
    document = json.loads(certcal_command("recalibrate", "fit", folder / "radii.csv", *arguments).out)
    assert (document["radii"], document["radius_weight"]) == (["0.05", "0.1"], [0.75, 0.25])


@pytest.mark.parametrize("method", ["temperature", "beta"])
def test_other_families_of_maps_can_be_asked_for(certcal_command, folder, tmp_path, method):
    path = tmp_path / "map.json"
    arguments = ("--method", method, "--tradeoffs", "0,1", "-o", path, "--json")
    document = json.loads(certcal_command("recalibrate", "fit", folder / "radii.csv", *arguments).out)
    assert list(lines_of(document)) == [
        "before recalibration",
        *(f"{method}, λ = {level}" for level in ("0", "0.5", "1")),
    ]
    assert type(load(path).calibrator).__name__ == f"Certified{method.title()}"


def test_without_clean_confidences_the_worst_case_alone_is_fitted_to(certcal_command, folder):
    ran = certcal_command("recalibrate", "fit", folder / "plain.csv")
    assert ran.code == 0
    assert "isotonic, λ = 1 ◂" in ran.out
    assert "clean" not in ran.out
    assert "adius" not in ran.out
    refused = certcal_command("recalibrate", "fit", folder / "plain.csv", "--tradeoff", ".5")
    assert refused.code == 2
    assert "--tradeoff: 0.5 also fits to confidences without a perturbation" in refused.err


def test_what_is_said_of_the_held_out_samples_is_what_certify_says_of_the_applied_map(
    certcal_command, folder, tmp_path
):
    mapping, after = tmp_path / "map.json", tmp_path / "after.parquet"
    fitted = json.loads(certcal_command("recalibrate", "fit", folder / "radii.csv", "-o", mapping, "--json").out)
    ran = certcal_command("recalibrate", "apply", mapping, folder / "radii.csv", "-o", after)
    assert (ran.code, ran.err) == (0, f"wrote {after}\n")
    assert "60 samples that it was fitted to are left out." in flat(ran.out)
    certified = json.loads(certcal_command("certify", after, "--json").out)
    for made, at in zip(certified["results"], lines_of(fitted)["isotonic, λ = 0.5"], strict=True):
        for key in ("brier_score", "n_certified"):
            assert made[key] == at["summary"][key]
        for which in ("certified", "all"):
            assert made["calibration_error"][which]["value"] == at["summary"]["calibration_error"][which]["value"]
        for over in ("certified", "all"):
            bound, held_out = made["population_bound"][over], at["summary"]["population_bound"][over]
            assert held_out["assumptions"] == [*bound["assumptions"], ORDER]  # certify does not know of the split
            assert {**bound, "assumptions": (), "sentence": ""} == {**held_out, "assumptions": (), "sentence": ""}
    said = "recalibrated by CertifiedIsotonic(tradeoff=0.5), fitted to 60 other samples of radii.csv"
    assert said in flat(certcal_command("certify", after).out)
    assert certified["certificates"]["recalibration"] == said.removeprefix("recalibrated by ")
    kept = read_intervals(after, samples=True).by_sample()
    assert kept.names == tuple(f"s{k}" for k in split_positions(N)[1])


def test_samples_of_the_fit_are_written_when_asked_for_and_it_is_said(certcal_command, folder, tmp_path):
    mapping, after = tmp_path / "map.json", tmp_path / "after.csv"
    certcal_command("recalibrate", "fit", folder / "radii.csv", "-o", mapping)
    ran = certcal_command("recalibrate", "apply", mapping, folder / "radii.csv", "--all", "-o", after, "--json")
    document = json.loads(ran.out)
    assert (document["written"], document["left_out"]) == (N, 0)
    assert "The map was fitted to 60 of these 120 samples: numbers on them are too optimistic." in document["notes"]
    found = load(mapping).calibrator
    table = read_intervals(after, samples=True).by_sample()
    np.testing.assert_array_equal(table.confidence, found.transform(Z))
    before = read_intervals(folder / "radii.csv", samples=True).by_sample()
    lower, upper = found.intervals(before.lower[:, 1], before.upper[:, 1])
    kept = before.certified[:, 1]
    np.testing.assert_array_equal(table.lower[:, 1], np.where(kept, lower, 0))
    np.testing.assert_array_equal(table.upper[:, 1], np.where(kept, upper, 1))


def test_a_run_and_its_written_intervals_are_known_to_be_of_the_same_samples(certcal_command, run, tmp_path):
    mapping, table, after = (tmp_path / name for name in ("map.json", "intervals.parquet", "after.parquet"))
    fitted = certcal_command("recalibrate", "fit", run, "--radius", ".125", "--tradeoffs", "0", "-o", mapping)
    assert fitted.code == 0
    about = load(mapping).fitted_on
    assert (about.source, about.kind, about.n) == ("run", "run", 24)
    assert about.fingerprint == open_run(run).manifest.data.inputs
    certcal_command("certify", run, "--radius", ".125,.25", "-o", table)
    for source in (run, table):
        radius = ("--radius", ".125")
        ran = certcal_command("recalibrate", "apply", mapping, source, *radius, "-o", after, "--force", "--json")
        document = json.loads(ran.out)
        assert (document["written"], document["left_out"]) == (12, 12)
        made = read_intervals(after, samples=True)
        assert (made.radii, made.alpha) == (("0.125",), open_run(run).certificates(0.125).ledger.spent)
        expected = open_run(run).certificates(0.125).select(split_positions(24)[1])
        lower, _ = load(mapping).calibrator.intervals(expected.lower, expected.upper)
        np.testing.assert_array_equal(made.lower, np.where(expected.certified, lower, 0))
        assert "noise draws are independent" in made.origin.sentence


def test_a_run_is_certified_at_half_of_sigma_and_claims_count_failing_certificates(certcal_command, run):
    ran = certcal_command("recalibrate", "fit", run, "--tradeoffs", "0")
    assert (ran.code, ran.err) == (0, "")
    text = flat(ran.out)
    assert "within radius 0.25 on" in text
    assert "99.9% sure, over the noise." in text
    document = json.loads(certcal_command("recalibrate", "fit", run, "--tradeoffs", "0", "--json").out)
    assert "recalibration=CertifiedIsotonic(tradeoff=0.5)" in document["claims"][0]
    together = certcal_command("recalibrate", "fit", run, "--familywise", "--kind", "cdf")
    assert "All 24 certificates hold together: 99.9% sure" in flat(together.out)
    assert "cdf certificates" in flat(together.out)


def test_fitting_to_all_samples_says_so_and_claims_nothing(certcal_command, folder, tmp_path):
    mapping = tmp_path / "map.json"
    ran = certcal_command("recalibrate", "fit", folder / "radii.csv", "--fit-on-all", "--tradeoff", 1, "-o", mapping)
    assert ran.code == 0
    assert "was fitted to all 120 samples. Nothing was held out, so nothing is claimed" in flat(ran.out)
    assert "0." not in ran.out
    samples = read_intervals(folder / "radii.csv", samples=True).by_sample()
    twin = CertifiedIsotonic(1).fit(samples.lower, samples.upper, CORRECT, certified=samples.certified)
    np.testing.assert_array_equal(load(mapping).calibrator.transform(Z), twin.transform(Z))
    refused = certcal_command("recalibrate", "apply", mapping, folder / "radii.csv", "-o", tmp_path / "x.csv")
    assert refused.code == 2
    assert "was fitted to all 120 samples of" in refused.err
    assert "--all: " in refused.err
    page = certcal_command("recalibrate", "fit", folder / "radii.csv", "--fit-on-all", "-o", tmp_path / "x.html")
    assert (page.code, "choose one of the endings .json" in page.err) == (2, True)
    document = json.loads(certcal_command("recalibrate", "fit", folder / "scores.csv", "--fit-on-all", "--json").out)
    assert (document["n_fit"], document["n_held_out"]) == (N, 0)


@pytest.mark.parametrize("name", ["logits.npz", "named.csv", "scores.csv"])
def test_predictions_are_judged_as_measure_judges_the_applied_map(certcal_command, folder, tmp_path, name):
    mapping, after = tmp_path / "map.json", tmp_path / "after.csv"
    options = ("--fraction", ".5", "--method", "temperature")
    fitted = json.loads(certcal_command("recalibrate", "fit", folder / name, *options, "-o", mapping, "--json").out)
    ran = certcal_command("recalibrate", "apply", mapping, folder / name, "-o", after)
    assert ran.code == 0
    assert "60 samples that it was fitted to are left out." in flat(ran.out)
    held_out = load_table(after, {"score": "score_calibrated"} if name == "scores.csv" else None).predictions
    assert len(held_out) == fitted["n_held_out"] == 60
    for row in fitted["after"]["rows"]:
        value = {each.name: each.value for each in measure(held_out, metrics="all")}[row["name"]]
        assert value == pytest.approx(np.inf if row["value"] == "Infinity" else row["value"], abs=1e-12)
    before = measure(read_predictions(folder / name).select(split_positions(N)[1]))
    assert before["ece"].value == {row["name"]: row["value"] for row in fitted["before"]["rows"]}["ece"]


def test_names_of_classes_and_numbers_of_samples_survive(certcal_command, folder, tmp_path):
    certcal_command("recalibrate", "fit", folder / "named.csv", "--fraction", ".5", "-o", tmp_path / "map.json")
    certcal_command(
        "recalibrate", "apply", tmp_path / "map.json", folder / "named.csv", "-o", tmp_path / "after.parquet"
    )
    loaded = load_table(tmp_path / "after.parquet")
    assert loaded.layout.family.columns == ("prob_cat", "prob_dog")
    expected = load_table(folder / "named.csv").predictions.select(split_positions(N)[1])
    np.testing.assert_array_equal(loaded.predictions.labels, expected.labels)


@pytest.mark.parametrize(("name", "options"), [("logits.npz", ()), ("named.csv", ("--method", "vector"))])
def test_a_picture_of_a_map_of_all_classes_is_refused_before_anything_is_fitted(
    certcal_command, folder, tmp_path, monkeypatch, name, options
):
    monkeypatch.setattr("certcal.verbs.recalibrate.fit_predictions", None)
    ran = certcal_command("recalibrate", "fit", folder / name, *options, "-o", tmp_path / "map.png")
    assert (ran.code, ran.out, list(tmp_path.iterdir())) == (2, "", [])
    assert "map.png: a map of all classes has no figure; write a page (.html) or numbers (.csv)" in ran.err


def test_a_map_of_one_confidence_or_of_intervals_has_a_figure(folder):
    for name, options in (("logits.npz", {"method": "platt"}), ("scores.csv", {}), ("radii.csv", {})):
        assert has_figure(folder / name, None, **options)


def test_a_map_of_other_data_is_applied_to_all_samples_and_it_is_said(certcal_command, folder, tmp_path):
    certcal_command("recalibrate", "fit", folder / "scores.csv", "-o", tmp_path / "map.json")
    arguments = ("recalibrate", "apply", tmp_path / "map.json", folder / "plain.csv", "-o", tmp_path / "after.csv")
    text = flat(certcal_command(*arguments).out)
    assert "The map was fitted to samples of scores.csv. These have another fingerprint, so all are kept;" in text
    assert "make sure that it was fitted to none of them." in text
    found = CertifiedIsotonic(0).fit(np.zeros(N), np.ones(N), CORRECT, Z)
    save(found, tmp_path / "bare.json")
    arguments = ("recalibrate", "apply", tmp_path / "bare.json", folder / "plain.csv", "-o", tmp_path / "more.csv")
    said = "bare.json does not say what it was fitted to, so all are kept; make sure"
    # The path before it may be long enough to be broken anywhere.
    assert said.replace(" ", "") in "".join(certcal_command(*arguments).out.split())


def test_the_samples_of_a_part_of_a_run_are_known_again(certcal_command, tmp_path):
    made = draw(tmp_path / "unfinished", n=400, unit=800)
    for unit in made.manifest.units():
        if unit.stage == "counting" and unit.first >= 14:
            (made.path / unit.name).unlink()
    part = (made.path, "--radius", "0.05", "--drawn-only")
    assert certcal_command("recalibrate", "fit", *part, "--tradeoff", "0", "-o", tmp_path / "map.json").code == 0
    ran = certcal_command("recalibrate", "apply", tmp_path / "map.json", *part, "-o", tmp_path / "after.csv")
    assert "was applied to 7 samples at radius 0.05. 7 samples that it was fitted to are left out." in flat(ran.out)
    certcal_command("certify", *part, "-o", tmp_path / "intervals.parquet")
    table = (tmp_path / "intervals.parquet", "-o", tmp_path / "again.csv")
    assert "7 samples that it was fitted to are left out." in flat(
        certcal_command("recalibrate", "apply", tmp_path / "map.json", *table).out
    )
    draw(tmp_path / "unfinished", n=400, unit=800)  # the rest of it
    whole = (made.path, "--radius", "0.05", "-o", tmp_path / "all.csv")
    ran = certcal_command("recalibrate", "apply", tmp_path / "map.json", *whole)
    assert "was applied to 17 samples at radius 0.05. 7 samples that it was fitted to are left out." in flat(ran.out)


def test_no_sample_of_the_fit_is_in_a_bound_on_the_population_after_the_run_was_extended(certcal_command, tmp_path):
    run = draw(tmp_path / "run", inputs=X[:16], labels=Y[:16]).path
    mapping, table, after = (tmp_path / name for name in ("map.json", "intervals.parquet", "after.parquet"))
    radius = ("--radius", "0.05")
    assert certcal_command("recalibrate", "fit", run, *radius, "--tradeoff", "0", "-o", mapping).code == 0
    draw(run)  # eight samples more
    certcal_command("certify", run, *radius, "-o", table)
    fit = split_positions(16)[0]
    for source in (run, table):
        ran = certcal_command("recalibrate", "apply", mapping, source, *radius, "-o", after, "--force", "--json")
        document = json.loads(ran.out)
        assert (document["written"], document["left_out"]) == (16, 8)
        assert "8 samples that it was fitted to are left out." in document["notes"]
        kept = {int(name) for name in read_intervals(after, samples=True).by_sample().names}
        assert kept == set(range(24)) - set(fit.tolist())
        result = json.loads(certcal_command("certify", after, "--json").out)["results"][0]
        assert result["population_bound"]["all"]["n"] == 16
    certcal_command("recalibrate", "apply", mapping, run, *radius, "--all", "-o", after, "--force")
    said = "fitted to 8 of these 24 samples, so that no bound on the population holds"
    assert said in flat(certcal_command("certify", after).out)
    draw(tmp_path / "other")  # the same samples, of another run
    ran = certcal_command("recalibrate", "apply", mapping, tmp_path / "other", *radius, "-o", after, "--force")
    assert "These have another fingerprint, so all are kept; make sure" in flat(ran.out)


def test_a_radius_without_certificates_leaves_the_clean_numbers_and_a_word_about_smaller_ones(certcal_command, folder):
    none = (folder / "radii.csv").read_text().splitlines()
    far = [line.replace("0.1,", "9,", 1).split(",") for line in none if line.startswith("0.1,")]
    lines = [*none, *(",".join([*cells[:5], "0", cells[6]]) for cells in far)]
    (folder / "far.csv").write_text("\n".join(lines))
    said = flat(certcal_command("recalibrate", "fit", folder / "far.csv").out)
    assert "is at most 100.00% within radius 9 on all 60 held-out samples: none is certified." in said
    assert "Without a perturbation (estimates) Brier score 0." in said
    assert "Radius 0.05, weight 0.5" in said


def saved(path, calibrator):
    save(calibrator, path)
    return path


def vector():
    return VectorScaling().fit(LOGITS[:, :2], LABELS % 2)


@pytest.mark.parametrize(
    ("make", "source", "message"),
    [
        (
            vector,
            "radii.csv",
            "certificates cannot pass through a VectorScaling, which is not a map of one confidence, and",
        ),
        (vector, "logits.npz", "does not fit"),
        (vector, "named.csv", "takes logits, and these predictions are probabilities; give it logits, or fit another"),
        (
            lambda: TemperatureScaling().fit(LOGITS, LABELS),
            "scores.csv",
            "takes logits, and these predictions are binary scores",
        ),
    ],
)
def test_a_map_that_does_not_fit_the_source_is_refused(certcal_command, folder, tmp_path, make, source, message):
    path = saved(tmp_path / "map.json", make())
    ran = certcal_command("recalibrate", "apply", path, folder / source, "-o", tmp_path / "x.csv")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert message in ran.err
    assert not (tmp_path / "x.csv").exists()


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("nowhere.csv", (), "there is no such run or table"),
        ("radii.csv", ("--radius", "7"), "has no rows at radius 7; there are 0.05, 0.1"),
        ("radii.csv", ("--radius", ".1,x"), "--radius: 'x' is not a number"),
        ("radii.csv", ("--radius", ".1,0.10"), "--radius: the same radius is given twice"),
        ("radii.csv", ("--radius-weight", "1"), "1 weight for 2 radii (0.05, 0.1); give one for each"),
        ("radii.csv", ("--radius-weight", "1,-1"), "--radius-weight: -1 is not a number from 0"),
        ("radii.csv", ("--radius-weight", "0,0"), "--radius-weight: all weights are 0; give at least one above 0"),
        ("radii.csv", ("--radius-weight", "1,1e300"), "--radius-weight: 1e+300 is not a number from 0"),
        ("radii.csv", ("--method", "platt"), "--method: platt is for a table of predictions"),
        ("radii.csv", ("--method", "isotone"), "did you mean 'isotonic'?"),
        ("radii.csv", ("--tradeoff", "0,1"), "--tradeoff: '0,1' is not a number"),
        ("radii.csv", ("--tradeoff", "2"), "--tradeoff: 2 is not a number from 0 to 1"),
        ("radii.csv", ("--tradeoffs", "0,no"), "--tradeoffs: 'no' is not a number"),
        ("radii.csv", ("--fraction", "0.001"), "120 samples cannot be split into parts of 0 and 120"),
        ("radii.csv", ("--weight", "confidence"), "--weight: it is for a table of predictions, and"),
        ("radii.csv", ("--familywise",), "--familywise: it is for a run, and"),
        ("radii.csv", ("--map-bins", "3"), "--map-bins: it is for a table of predictions"),
        ("radii.csv", ("-o", "x.doc"), "choose one of the endings .html, .txt, .png, .svg, .pdf, .json, .csv"),
        ("plain.csv", ("--radius", ".1"), "has no column of radii"),
        ("plain.csv", ("--tradeoffs", "0,1"), "--tradeoffs: 0 also fits to confidences without a perturbation, and"),
        ("scores.csv", ("--radius", ".1"), "--radius: it is for a run or a table of intervals"),
        ("scores.csv", ("--tradeoff", ".1"), "--tradeoff: it is for a run or a table of intervals"),
        ("scores.csv", ("--method", "vector"), "--method: vector needs logits or probabilities of all classes, and"),
        (
            "scores.csv",
            ("--map-bins", "3"),
            "--map-bins: it is for the methods histogram and",
        ),
        ("scores.csv", ("-o", "x.html", "--fit-on-all"), "choose one of the endings .json"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(certcal_command, folder, source, options, message):
    ran = certcal_command("recalibrate", "fit", folder / source, *options)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert ran.err.splitlines()[0].startswith("certcal: error: ")
    assert ran.err.count("\n") == 1 + ("Try 'certcal" in ran.err)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--kind", "all"), "--kind: 'all' is not one of 'tangent'"),
        (("--alpha", "0"), "--alpha: it is 0, and certificates from noise may fail"),
        (
            ("--radius", "50"),
            "no sample is certified at radius 50, so there is no worst case to fit to; give a smaller radius",
        ),
        (("--lower", "lower"), "--lower: it is for a table of intervals, and"),
    ],
)
def test_what_cannot_be_done_with_a_run_is_one_sentence(certcal_command, run, options, message):
    ran = certcal_command("recalibrate", "fit", run, *options)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1 + ("Try 'certcal" in ran.err))
    assert message in ran.err


def test_a_log_of_radii_has_no_confidences(certcal_command, tmp_path):
    (tmp_path / "log.tsv").write_text("idx\tlabel\tpredict\tradius\tcorrect\ttime\n0\t1\t1\t0.5\t1\t0:00\n")
    ran = certcal_command("recalibrate", "fit", tmp_path / "log.tsv")
    assert (ran.code, "a log of certified radii holds no confidences" in ran.err) == (2, True)


def test_applying_needs_a_map_and_a_place(certcal_command, folder, tmp_path):
    (tmp_path / "broken.json").write_text("{}")
    for words, message in (
        ((tmp_path / "no.json", folder / "plain.csv", "-o", tmp_path / "x.csv"), "there is no such map"),
        ((tmp_path / "broken.json", folder / "plain.csv", "-o", tmp_path / "x.csv"), "this is not a calibrator"),
        ((tmp_path / "broken.json", folder / "plain.csv"), "-o FILE is missing"),
        ((folder / "plain.csv", tmp_path / "broken.json"), "give the map first, then what it is for"),
        ((tmp_path / "broken.json", folder / "plain.csv", "-o", "x.txt"), "choose one of the endings .parquet, .csv"),
    ):
        ran = certcal_command("recalibrate", "apply", *words)
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
        assert message in ran.err


def test_an_infinite_log_loss_is_explained_and_the_next_command_can_be_copied(certcal_command, tmp_path):
    z, correct = np.linspace(0.05, 0.95, 40), np.arange(40) > 19
    correct[[0, 39]] = True, False  # at the far ends, where a map that was fitted to others has 0 and 1
    table = tmp_path / "my scores.csv"
    table.write_text("\n".join(["score,outcome", *(f"{a},{int(b)}" for a, b in zip(z, correct, strict=True))]))
    isotonic = ("--method", "isotonic", "--fraction", ".5")
    texts = [flat(certcal_command("recalibrate", "fit", table, *isotonic, "--seed", seed).out) for seed in range(4)]
    told = ["The log loss is infinite where a map makes a score 0 or 1" in text for text in texts]
    assert told == [" ∞ " in text for text in texts]
    assert any(told)
    certcal_command("recalibrate", "fit", table, "-o", tmp_path / "map.json")
    refused = certcal_command("recalibrate", "apply", tmp_path / "map.json", table, "-o", tmp_path / "after it.csv")
    assert "was fitted to all 40 samples" in flat(refused.err)
    words = ("--all", "-o", tmp_path / "after it.csv")
    done = certcal_command("recalibrate", "apply", tmp_path / "map.json", table, *words)
    assert f"certcal measure '{tmp_path / 'after it.csv'}' --score score_calibrated  # what it says now" in done.out


def test_a_map_that_is_written_is_applied_next_and_not_fitted_once_more(certcal_command, tmp_path):
    rng = np.random.default_rng(0)
    z = rng.uniform(0.02, 0.98, 2000)
    bad = rng.uniform(size=2000) < 0.3 + 0.4 * z
    (tmp_path / "old.csv").write_text("\n".join(["pd,bad", *(f"{a},{int(b)}" for a, b in zip(z, bad, strict=True))]))
    (tmp_path / "NEW.csv").write_text("\n".join(["pd", *map(str, z[:9])]))
    fit = ("recalibrate", "fit", tmp_path / "old.csv", "--score", "pd", "--outcome", "bad")
    assert f"  certcal {' '.join(map(str, fit))} -o map.json\n" in certcal_command(*fit).out
    written = certcal_command(*fit, "-o", tmp_path / "m.json", "-o", tmp_path / "page.html").out
    (command,) = (line.split() for line in written.splitlines() if line.startswith("  certcal "))
    said = f"certcal recalibrate apply {tmp_path}/m.json NEW.csv --score pd -o calibrated.csv"
    assert " ".join(command) == said
    folder = [str(tmp_path / word) if word.endswith(".csv") else word for word in command[1:]]
    assert certcal_command(*folder).code == 0
    assert certcal_command("check", tmp_path / "page.html", "--data", tmp_path / "old.csv").code == 0


def test_the_command_that_reads_an_applied_table_names_the_columns_that_had_to_be_named(certcal_command, tmp_path):
    table, after = tmp_path / "credit.csv", tmp_path / "after.csv"
    rows = [f"{k / 60},{'yes' if k % 7 > 3 - k // 20 else 'no'}" for k in range(60)]
    table.write_text("\n".join(["risk,default", *rows]))
    named = ("--score", "risk", "--outcome", "default", "--positive", "yes")
    assert certcal_command("recalibrate", "fit", table, *named, "-o", tmp_path / "map.json").code == 0
    done = certcal_command("recalibrate", "apply", tmp_path / "map.json", table, *named, "--all", "-o", after)
    line = next(line for line in done.out.splitlines() if "# what it says now" in line)
    words = shlex.split(line, comments=True)
    assert words[:3] == ["certcal", "measure", str(after)]
    assert set(zip(words[3::2], words[4::2], strict=True)) == {
        *(("--score", "risk_calibrated"), ("--outcome", "default"), ("--positive", "yes"))
    }
    assert certcal_command(*words[1:]).code == 0


@pytest.fixture(scope="module")
def maps(folder):
    """Maps of logits, of probabilities and of confidences, fitted to tables with labels."""
    return {
        name: saved(folder / f"{name}.json", calibrator)
        for name, calibrator in {
            "logits": TemperatureScaling().fit(LOGITS, LABELS),
            "probabilities": TemperatureScaling(inputs="probabilities").fit(np.stack([Z, 1 - Z], 1), 1 - CORRECT),
            "confidences": IsotonicCalibration().fit(Z, CORRECT),
        }.items()
    }


def apply_to(certcal_command, mapping, path, content, *options):
    """Write a table, apply a map to it, and read what comes out, as text and with types."""
    path.write_text(content)
    outputs = [path.with_name(f"after{ending}") for ending in (".csv", ".parquet")]
    ran = certcal_command("recalibrate", "apply", mapping, path, *options, "-o", outputs[0], "-o", outputs[1])
    if ran.code:
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
        assert not any(each.exists() for each in outputs)
        return ran, None
    return ran, open_table(outputs[1])


def test_scores_without_labels_are_mapped_and_it_is_said_that_nothing_can_be_measured(certcal_command, maps, tmp_path):
    text = "\n".join(["logit_0,logit_1,logit_2", *(",".join(map(str, row)) for row in LOGITS[:5])])
    ran, after = apply_to(certcal_command, maps["logits"], tmp_path / "new.csv", text)
    assert after.names == ("row", "prob_0", "prob_1", "prob_2")
    columns = after.read(after.names).to_pydict()
    assert columns.pop("row") == [0, 1, 2, 3, 4]
    expected = load(maps["logits"]).calibrator.predict_proba(LOGITS[:5])
    np.testing.assert_array_equal(np.stack(list(columns.values()), 1), expected)
    assert "TemperatureScaling" in after.metadata["certcal.recalibration"]
    said = flat(ran.out)
    assert "5 samples; logits 'logit_0' … 'logit_2', no labels" in said
    assert (
        "No column says what was true, so nothing can be measured; if one does, name it as the column 'label'." in said
    )
    assert "so all are kept; make sure that it was not these." in said
    assert said.endswith("CSV does not record which map this was; Parquet does.")
    assert "certcal measure" not in said


def test_columns_that_name_samples_stay_and_so_do_names_of_classes(certcal_command, maps, tmp_path):
    text = "id,prob_cat,prob_dog,site\n007,0.25,0.75,a\nx,0.5,0.5,b\n"
    _, after = apply_to(certcal_command, maps["probabilities"], tmp_path / "new.csv", text)
    assert after.names == ("id", "prob_cat", "prob_dog", "site")
    assert after.read(["id"]).to_pydict() == {"id": ["007", "x"]}
    text = "sample,confidence,pred\n3,0.25,cat\n1,0.5,dog\n"
    ran, after = apply_to(certcal_command, maps["confidences"], tmp_path / "other.csv", text, "--force", "--json")
    found = after.read(["sample", "confidence", "confidence_calibrated"]).to_pydict()
    assert (found["sample"], found["confidence"]) == ([3, 1], [0.25, 0.5])
    assert found["confidence_calibrated"] == load(maps["confidences"]).calibrator.transform([0.25, 0.5]).tolist()
    document = json.loads(ran.out)
    assert (document["written"], document["left_out"]) == (2, 0)
    assert document["columns"] == ["sample", "confidence", "pred", "confidence_calibrated"]


def test_samples_of_the_fit_cannot_be_told_without_labels(certcal_command, folder, tmp_path):
    mapping, scores, after = tmp_path / "map.json", tmp_path / "scores.npz", tmp_path / "after.parquet"
    certcal_command("recalibrate", "fit", folder / "logits.npz", "-o", mapping)
    np.savez(scores, logits=LOGITS)
    said = flat(certcal_command("recalibrate", "apply", mapping, scores, "-o", after).out)
    assert "The map was fitted to samples of logits.npz. Whether these are among them is unknown, so all" in said
    assert "CSV" not in said
    assert open_table(after).rows == N


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("logits", "logit_0,logit_1,logit_2\n1,2,3\n1,nan,3\n", (), "column 'logit_1', row 2"),
        ("logits", "logit_0,logit_1\n1,2\n", (), "does not fit"),
        ("logits", "prob_0,prob_1,prob_2\n.1,.2,.7\n", (), "takes logits, and these predictions are probabilities"),
        ("probabilities", "prob_0,prob_1\n.5,.5\n.2,.9\n", (), "row 2 of 'prob_0' … 'prob_1' sums to 1.1, not to 1"),
        ("probabilities", "prob_0,prob_1\n-.5,1.5\n", (), "column 'prob_0', row 1"),
        ("confidences", "confidence\n.5\n1.5\n", (), "column 'confidence', row 2 is 1.5"),
        ("confidences", "confidence\n.5\nno\n", (), "column 'confidence', row 2 (line 3) is 'no', not a number"),
        ("confidences", "confidence\n", (), "the table has no rows"),
        ("confidences", "confidence,correct\n.5,1\n.6,\n", (), "column 'correct', row 2"),
        ("confidences", "confidence\n.5\n", ("--correct", "right"), "--correct: there is no column 'right'"),
        ("logits", "logit_0,logit_1,logit_2,conf\n1,2,3,.5\n", (), "no labels; choose with logits or confidence"),
    ],
)
def test_scores_without_labels_are_checked_as_those_with_labels(
    certcal_command, maps, tmp_path, name, content, options, message
):
    ran, _ = apply_to(certcal_command, maps[name], tmp_path / "new.csv", content, *options)
    assert message in ran.err
    assert ran.code == 2


def test_fitting_still_needs_labels(certcal_command, tmp_path):
    (tmp_path / "new.csv").write_text("confidence\n.5\n.6\n")
    ran = certcal_command("recalibrate", "fit", tmp_path / "new.csv")
    assert (ran.code, "no column says which predictions are correct" in ran.err) == (2, True)


def test_one_of_several_radii_needs_no_names_of_samples(certcal_command, folder, tmp_path):
    header, *lines = (folder / "radii.csv").read_text().splitlines()
    bare = tmp_path / "bare.csv"
    without = (line.split(",")[:1] + line.split(",")[2:] for line in (header, *lines))  # the second names samples
    bare.write_text("\n".join(",".join(words) for words in without))
    options, mapping, after = ("--radius", "0.1"), tmp_path / "map.json", tmp_path / "after.parquet"
    ran = certcal_command("recalibrate", "fit", bare, *options, "-o", mapping, "--json")
    named = certcal_command("recalibrate", "fit", folder / "radii.csv", *options, "--json")
    assert json.loads(ran.out)["lines"] == json.loads(named.out)["lines"]
    said = flat(certcal_command("recalibrate", "apply", mapping, bare, *options, "-o", after).out)
    assert "applied to 60 samples at radius 0.1. 60 samples that it was fitted to are left out." in said
    for several in ((), ("--radius", "0.05,0.1")):
        refused = certcal_command("recalibrate", "fit", bare, *several)
        assert refused.code == 2
        assert "name one as sample, or choose one radius" in refused.err
    missing = certcal_command("recalibrate", "fit", bare, "--radius", "7")
    assert "has no rows at radius 7; there are 0.05, 0.1" in missing.err


def test_one_held_out_sample_is_one(certcal_command, tmp_path):
    (tmp_path / "scores.csv").write_text("score,outcome\n.5,1\n.7,0\n")
    rows = "".join(f"{r},{k},{z - r},{z + r},{k},{z}\n" for r in (0.1, 0.2) for k, z in enumerate((0.3, 0.75)))
    (tmp_path / "ends.csv").write_text(f"radius,sample,lower,upper,correct,confidence\n{rows}")
    for name in ("scores.csv", "ends.csv"):
        said = flat(certcal_command("recalibrate", "fit", tmp_path / name, "--fraction", ".5").out)
        assert " on 1 other; no sample is in both parts. " in said
        assert "1 sample is very few to fit a map to" in said
        assert not re.search(r"\b1 (certified )?(samples|others)\b", said)


def test_classes_in_another_order_are_refused_instead_of_mapped_to_each_other(certcal_command, tmp_path):
    rng = np.random.default_rng(5)
    cat, label = rng.normal(size=40), rng.choice(["cat", "dog"], 40)
    table, other, mapping = tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "map.json"
    lines = [f"{x:.4f},{-x:.4f},{name}" for x, name in zip(cat, label, strict=True)]
    table.write_text("\n".join(["logit_cat,logit_dog,label", *lines]))
    other.write_text("\n".join(["logit_dog,logit_cat,label", *lines]))
    assert (
        certcal_command("recalibrate", "fit", table, "--method", "vector", "--fraction", ".5", "-o", mapping).code == 0
    )
    done = certcal_command("recalibrate", "apply", mapping, other, "-o", tmp_path / "out.csv")
    assert done.code == 2
    assert "the map's class number 0 is 'cat', and that of the columns is 'dog'" in flat(done.err)
    assert not (tmp_path / "out.csv").exists()
    ordered = ("--logits", "logit_cat,logit_dog")
    assert certcal_command("recalibrate", "apply", mapping, other, *ordered, "-o", tmp_path / "out.csv").code == 0


def test_classes_that_would_be_formulas_are_plain_texts_in_csv_and_labels_still_find_them(certcal_command, tmp_path):
    table, mapping, after = (tmp_path / name for name in ("scores.csv", "map.json", "after.csv"))
    classes = np.where(CORRECT == 1, "=cat", "-dog")
    lines = [f"{z!s},{1 - z!s},{c}" for z, c in zip(Z, classes, strict=True)]
    table.write_text("\n".join(["prob_=cat,prob_-dog,label", *lines]))
    assert certcal_command("recalibrate", "fit", table, "--fraction", ".5", "-o", mapping).code == 0
    assert certcal_command("recalibrate", "apply", mapping, table, "-o", after).code == 0
    text = after.read_text()
    assert '"prob_\'=cat","prob_\'-dog"' in text.splitlines()[0]
    assert '"=' not in text
    assert '"-' not in text
    whole = tmp_path / "after.parquet"
    certcal_command("recalibrate", "apply", mapping, table, "-o", whole)
    for path in (after, whole):
        assert certcal_command("measure", path).code == 0
    np.testing.assert_array_equal(*(load_table(path).predictions.correct for path in (after, whole)))


KINDS = {
    "score,outcome\n": ("Does the map repair the scores?", lambda z, right: f"{z},{int(right)}"),
    "conf,pred,label\n": ("Does the map repair the confidences?", lambda z, right: f"{z},a,{'a' if right else 'b'}"),
    "prob_a,prob_b,label\n": (
        "Does the map repair the confidences?",
        lambda z, right: f"{z},{1 - z},{'a' if right else 'b'}",
    ),
}


@pytest.mark.parametrize("head", KINDS)
def test_a_fit_to_predictions_of_any_kind_writes_its_page(certcal_command, tmp_path, head):
    rng, (title, line) = np.random.default_rng(0), KINDS[head]
    rows = [line(z, rng.random() < z**2) for z in rng.random(200).tolist()]
    (tmp_path / "t.csv").write_text(head + "\n".join(rows) + "\n")
    page = tmp_path / "page.html"
    ran = certcal_command("recalibrate", "fit", tmp_path / "t.csv", "-o", page, "-o", tmp_path / "map.json")
    assert ran.code == 0
    assert title in page.read_text()
    assert "Before and after" in page.read_text()
    after = tmp_path / "after.csv"
    assert (
        certcal_command("recalibrate", "apply", tmp_path / "map.json", tmp_path / "t.csv", "--all", "-o", after).code
        == 0
    )
    measured = json.loads(certcal_command("measure", after, "--json").out)
    assert measured["kind"] == {"s": "score", "c": "confidence", "p": "probabilities"}[head[0]]


def test_a_map_is_written_in_every_language_whole_or_not_at_all(certcal_command, maps, tmp_path):
    fitted = load(maps["confidences"]).calibrator
    printed = certcal_command("recalibrate", "export", maps["confidences"], "--to", "sql", "--column", "pd")
    assert (printed.code, printed.err) == (0, "")
    assert printed.out == export_map(fitted, to="sql", column="pd")
    for to, ending in {"sql": ".sql", "python": ".py", "excel": ".xlsx", "onnx": ".onnx"}.items():
        path = tmp_path / f"map{ending}"
        ran = certcal_command("recalibrate", "export", maps["confidences"], "--to", to, "-o", path)
        assert (ran.code, ran.out, ran.err) == (0, "", f"wrote {path}\n")
        if to != "excel":  # which says when it was made
            made = export_map(fitted, to=to)
            assert path.read_bytes() == (made.encode() if isinstance(made, str) else made)
        again = certcal_command("recalibrate", "export", maps["confidences"], "--to", to, "-o", path)
        assert (again.code, "exists and is not overwritten" in again.err) == (2, True)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("confidences", ("--to", "excel"), "-o FILE is missing; say where the file goes, such as -o map.xlsx"),
        ("confidences", ("--to", "onnx", "-o", "map.sql"), "-o map.sql: choose one of the endings .onnx"),
        ("confidences", ("--to", "sqll"), "'sqll' is not one of"),
        ("confidences", (), "--to LANGUAGE is missing"),
        ("confidences", ("--to", "python", "--column", "pd"), "--column: it is for sql, and the language is python"),
        ("logits", ("--to", "sql"), "--to: a TemperatureScaling needs the scores of all classes"),
    ],
)
def test_an_export_that_cannot_be_is_refused_in_one_sentence(certcal_command, maps, name, options, message):
    ran = certcal_command("recalibrate", "export", maps[name], *options)
    assert (ran.code, ran.out) == (2, "")
    assert message in flat(ran.err)
    assert "Traceback" not in ran.err
