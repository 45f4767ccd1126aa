"""Recalibration: maps are fitted to one part of the samples and judged on the other, and nothing crosses over."""

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from certcal import InputError, measure, recalibrate
from certcal.calibrators import CertifiedIsotonic, CertifiedSamples, TemperatureScaling, certified_path
from certcal.calibrators._certified import BrierTerms
from certcal.claims import ORDER
from certcal.smoothing import Counts
from certcal.worst_case import brier_score


def made(n=600, seed=0, confidence=True, columns=1, **options):
    rng = np.random.default_rng(seed)
    z = rng.uniform(0.3, 1, n)
    correct = rng.random(n) < z**2
    step = 0.08 * np.arange(1, columns + 1)
    lower, upper = np.maximum(z[:, None] - step, 0), np.minimum(z[:, None] + step, 1)
    return CertifiedSamples.from_intervals(lower, upper, correct, z if confidence else None, **options)


def changed(samples, rows):
    """Other outcomes in some rows."""
    correct = samples.correct.copy()
    correct[rows] = 1 - correct[rows]
    return replace(samples, correct=correct)


def states(found):
    return [line.calibrator.to_dict() for line in found.lines[1:]]


@pytest.mark.parametrize("method", ["isotonic", "temperature", "beta"])
def test_held_out_samples_do_not_move_the_maps_and_samples_of_the_fit_do_not_move_the_judgement(method):
    samples = made(200)
    fit, rest = samples.split(0.5, 0)
    options = {"method": method, "tradeoffs": [0.5]}
    plain = recalibrate(samples, **options)
    other = recalibrate(changed(samples, rest.index), **options)
    assert states(plain) == states(other)
    assert plain.identity.at[0].summary.to_dict() != other.identity.at[0].summary.to_dict()
    refitted = recalibrate(changed(samples, fit.index), **options)
    assert states(plain) != states(refitted)
    assert plain.identity.at[0].summary.to_dict() == refitted.identity.at[0].summary.to_dict()


def test_no_sample_is_in_both_parts_and_the_numbers_are_said():
    samples = made()
    found = recalibrate(samples, fraction=0.3, seed=4)
    fit, rest = samples.split(0.3, 4)
    assert not set(fit.index) & set(found.before.index)
    np.testing.assert_array_equal(found.before.index, rest.index)
    np.testing.assert_array_equal(found.after.index, rest.index)
    assert (found.n_fit, found.n_held_out) == (180, 420)
    assert found.notes[0].startswith("Fitted to 180 samples and judged on 420 others")
    assert found.conventions["fraction"] == 0.3


def test_lines_are_the_identity_and_each_tradeoff_once_ascending():
    found = recalibrate(made(), tradeoff=0.3, tradeoffs=[1, 0, 0.3, 0])
    assert [line.name for line in found.lines] == [
        "before recalibration",
        *(f"isotonic, λ = {k:g}" for k in (0, 0.3, 1)),
    ]
    assert found.chosen.tradeoff == 0.3
    assert found.chosen.calibrator is found.map
    assert found.identity.calibrator is None
    np.testing.assert_array_equal(found.after.lower, found.before.mapped(found.map).lower)


@pytest.mark.parametrize("method", ["isotonic", "temperature", "beta"])
def test_maps_are_those_of_the_path_and_the_front_has_their_scores_on_either_part(method):
    samples = made(columns=2)
    found = recalibrate(samples, method=method, radius_weight=[1, 3])
    fit, rest = samples.split(0.5, 0)
    path = certified_path(fit, [0, 0.25, 0.5, 0.75, 1], method=method, radius_weight=[1, 3])
    assert states(found) == [each.to_dict() for each in path]
    assert found.radius_weight == (0.25, 0.75)
    for point, calibrator in zip(found.front, [None, *path], strict=True):
        for part, scores in ((fit, point.fitted), (rest, point.held_out)):
            mapped = part.mapped(calibrator)
            clean = np.mean((mapped.correct - mapped.confidence) ** 2)
            worst = [brier_score(mapped.lower[:, k], mapped.upper[:, k], mapped.correct).value for k in range(2)]
            assert scores == pytest.approx((clean, 0.25 * worst[0] + 0.75 * worst[1]), abs=1e-9)


def test_on_the_samples_of_the_fit_the_front_falls_and_beats_the_identity():
    front = recalibrate(made()).front
    clean, certified = np.array([point.fitted for point in front[1:]]).T
    assert (np.diff(clean) >= -1e-12).all()
    assert (np.diff(certified) <= 1e-12).all()
    assert clean[0] < front[0].fitted[0]
    assert certified[-1] < front[0].fitted[1]


def test_the_certified_brier_score_of_other_samples_falls_too():
    found = recalibrate(made(4000), tradeoff=1)
    before, after = (line.at[0].summary["brier_score"].worst.value for line in (found.identity, found.chosen))
    assert after < before - 0.01
    assert found.chosen.at[0].gain.value > found.identity.at[0].gain.value


def test_the_constant_of_the_gain_is_the_accuracy_of_the_certified_samples_of_the_fit():
    kept = np.random.default_rng(2).random((600, 1)) < 0.6
    samples = made(certified=kept)
    fit, _ = samples.split(0.5, 0)
    expected = float(fit.correct[fit.certified[:, 0]].mean())
    assert recalibrate(samples).chosen.at[0].gain.settings["constant"] == pytest.approx(expected, abs=1e-15)


def test_bounds_that_are_looked_at_together_are_said_to_fail_each_on_its_own():
    assert "best of the 10 (maps times radii)" in recalibrate(made(columns=2), delta=0.1).notes[1]
    alone = recalibrate(made(), tradeoffs=[0.5])
    assert not any("of its own" in note for note in alone.notes)


def test_bounds_on_held_out_samples_assume_an_order_that_does_not_depend_on_outcomes():
    samples = made(columns=2, certified=np.arange(1200).reshape(600, 2) % 3 > 0)
    found = recalibrate(samples)
    for line in found.lines:
        for one in line.at:
            for bound in (one.gain, one.summary.population, one.summary.population_all):
                assert bound.assumptions[-1] == ORDER
    assert ORDER not in samples.summary(0).population.assumptions  # nothing was split


def test_the_level_of_bounds_is_printed_rounded_up():
    found = recalibrate(made(), delta=0.05000004)
    assert "is 94.99% sure on its own" in found.notes[1]
    assert "are 94.99% sure each" in " ".join(str(found).split())


def test_csv_has_a_line_per_map_radius_and_claim():
    found = recalibrate(made(columns=2, radii=[0.05, 0.1]), tradeoffs=(0, 1))
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    chosen = [row for row in rows if row["chosen"] == "1"]
    assert {row["map"] for row in chosen} == {"isotonic, λ = 0.5"}
    (gain,) = [row for row in chosen if (row["radius"], row["claim"]) == ("0.1", "gain_over_constant")]
    bound = found.chosen.at[1].gain
    assert (float(gain["value"]), gain["text"], gain["sentence"]) == (bound.value, bound.text, bound.statement)
    assert {row["claim"] for row in rows if row["radius"] == ""} == {"brier_score", "ece", "auroc"}
    assert len(rows) == len(found.lines) * (3 + 2 * (1 + len(list(found.chosen.at[0].summary.claims()))))


def test_the_constant_is_the_best_one_of_the_fit_and_is_scored_on_the_others():
    samples = made(columns=2, certified=np.random.default_rng(5).random((600, 2)) < 0.7)
    found = recalibrate(samples, radius_weight=(1, 3))
    fit, rest = samples.split()
    shares = (0.25, 0.75)
    constant = sum(w * np.mean(fit.correct[fit.certified[:, k]].astype(float)) for k, w in enumerate(shares))
    worst = [np.mean((rest.correct[rest.certified[:, k]].astype(float) - constant) ** 2) for k in range(2)]
    clean = np.mean((rest.correct.astype(float) - constant) ** 2)
    assert found.constant.held_out == pytest.approx((clean, np.dot(shares, worst)), abs=1e-12)
    assert found.constant.fitted == (None, None)


def test_results_are_plain_values():
    found = recalibrate(made(columns=2), tradeoff=1)
    document = json.loads(json.dumps(found.to_dict()))
    assert document["n_fit"] == 300
    assert [line["name"] for line in document["lines"]] == [line.name for line in found.lines]
    assert document["front"][1]["fitted"] == list(found.front[1].fitted)


# ---------------------------------------------------------------------------------------------------------- degenerate


def test_without_clean_confidences_the_certified_score_alone_is_fitted():
    found = recalibrate(made(confidence=False), tradeoff=1)
    assert [line.tradeoff for line in found.lines] == [None, 1.0]
    assert found.front[1].fitted[0] is None
    assert found.front[1].held_out[0] is None
    for options in ({"tradeoff": 0.5}, {"tradeoffs": [0.5, 1]}):
        with pytest.raises(InputError, match=r"0.5 also fits .* not known; name their column, or give 1"):
            recalibrate(made(confidence=False), **options)


def test_nothing_certified_leaves_the_clean_map_and_no_gain():
    samples = made(certified=np.zeros((600, 1), bool))
    found = recalibrate(samples, tradeoff=0)
    assert [line.tradeoff for line in found.lines] == [None, 0.0]
    assert found.chosen.at[0].gain is None
    assert found.chosen.at[0].summary.n_certified == 0
    assert found.front[1].fitted[1] is None
    assert found.constant is None
    with pytest.raises(InputError, match="no sample is certified at radius 1"):
        recalibrate(samples, tradeoff=0.5)


def test_a_radius_with_nothing_certified_in_one_part_is_judged_where_it_can_be():
    samples = made(columns=2)
    fit, rest = samples.split(0.5, 0)
    for part, share in ((fit, (1.0, 0.0)), (rest, (0.5, 0.5))):
        kept = samples.certified.copy()
        kept[part.index, 1] = False
        found = recalibrate(replace(samples, certified=kept), tradeoff=0.5)
        assert found.radius_weight == share
        assert found.chosen.at[0].gain is not None
        assert found.chosen.at[1].gain is None
        assert found.front[-1].held_out[1] is not None


@pytest.mark.parametrize("method", ["isotonic", "temperature", "beta"])
def test_few_samples_one_class_and_intervals_that_say_nothing_are_fitted_and_noted(method):
    few = recalibrate(made(8), method=method)
    assert "4 samples are very few" in " ".join(few.notes)
    z = np.linspace(0.3, 0.9, 40)
    right = CertifiedSamples.from_intervals(z - 0.1, z + 0.1, np.ones(40, int), z)
    found = recalibrate(right, method=method)
    assert "All samples of the fit are correct" in " ".join(found.notes)
    assert found.chosen.at[0].summary.skill.text == "undefined"
    nothing = CertifiedSamples.from_intervals(np.zeros(40), np.ones(40), np.arange(40) % 2, z)
    wide = recalibrate(nothing, method=method, tradeoff=1)
    assert "Every certified interval of the fit is [0, 1]" in " ".join(wide.notes)
    assert np.ptp(wide.map.transform([0, 0.5, 1])) < 1e-9
    assert json.dumps(wide.to_dict())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "splines"}, "method: 'splines' is not one of"),
        ({"method": "sigmoid"}, "'matrix'; did you mean 'platt'"),  # as scikit-learn calls it
        ({"method": "platt"}, "method: platt is for a table of predictions; choose one of isotonic, temperature, beta"),
        ({"tradeoff": 2}, "tradeoff: 2 is not"),
        ({"tradeoffs": [0.1, "x"]}, "tradeoffs: 'x' is not a number"),
        ({"fraction": 1.0}, "fraction: 1 is not between 0 and 1"),
        ({"seed": -1}, "seed: -1 is not"),
        ({"delta": 0}, "delta: 0 is not between 0 and 1"),
        ({"delta": 0.95}, r"delta: 0.95 is not a probability of failing below 0.5; did you mean 0.05\?"),
        ({"delta": 1e-308}, "delta: 1e-308 is too small"),
        ({"radius_weight": [1, 1]}, r"radius_weight: 2 weights for 1 radii \(1\); give one for each"),
        ({"radius_weight": [0]}, "radius_weight: all weights are 0"),
        ({"radii": [0.5]}, "radii: it is for a run or a table of intervals, and arrays is certified already"),
        ({"map_bins": 4}, "map_bins: it is for a table of predictions"),
        ({"columns": {"weight": "w"}}, "weight: it is for a table of predictions"),
    ],
)
def test_bad_arguments_are_refused_in_one_sentence(options, message):
    with pytest.raises(InputError, match=message):
        recalibrate(made(20), **options)


def test_something_else_than_a_map_of_intervals_is_refused_with_a_remedy():
    with pytest.raises(InputError, match="calibrator is a TemperatureScaling, which has no predict and intervals"):
        made(20).mapped(TemperatureScaling())


def test_one_number_will_do_where_several_may_be_given():
    assert [line.tradeoff for line in recalibrate(made(40), tradeoffs=1).lines] == [None, 0.5, 1.0]
    assert CertifiedSamples.from_intervals([0.1], [0.2], [1], radii=0.25).radii == ("0.25",)


def test_the_name_of_a_recalibration_is_short():
    found = recalibrate(made(40), tradeoffs=[])
    assert repr(found) == (
        "<CertifiedRecalibration of arrays: CertifiedIsotonic(tradeoff=0.5), fitted to 20, judged on 20>"
    )
    assert repr(found.chosen).startswith("Judged(name='isotonic, λ = 0.5', calibrator=CertifiedIsotonic(), radii=")


def test_one_sample_cannot_be_split():
    with pytest.raises(InputError, match="1 sample cannot be split"):
        recalibrate(CertifiedSamples.from_intervals([0.1], [0.2], [1], [0.15]))


def test_a_path_of_no_tradeoffs_is_refused():
    with pytest.raises(InputError, match="tradeoffs is empty"):
        certified_path(made(20), [])


def test_a_path_sorts_its_samples_once(monkeypatch):
    from certcal.calibrators import _certified

    seen = []
    count = _certified.count_places
    monkeypatch.setattr(_certified, "count_places", lambda *given: seen.append(len(given[0])) or count(*given))
    path = certified_path(made(100), np.linspace(0, 1, 21))
    assert seen == [100, 100]
    assert [each.tradeoff for each in path] == np.linspace(0, 1, 21).tolist()
    assert all(isinstance(each, CertifiedIsotonic) for each in path)
    assert BrierTerms.of(made(10)).share.tolist() == [1.0]


def test_claims_of_a_run_fail_with_the_probability_that_its_certificates_were_made_with():
    rng = np.random.default_rng(8)
    draws = rng.beta(8, 2, (40, 300))
    votes = (draws > 0.4).sum(axis=1)
    counts = Counts.from_confidences(draws, np.linspace(0.01, 0.99, 99), votes=votes, sigma=0.5)
    samples = CertifiedSamples.from_counts(counts, [0.1], alpha=0.02)
    found = recalibrate(samples, tradeoff=0.5, tradeoffs=())
    assert [line.at[0].claim.ledger.budget for line in found.lines] == [0.02, 0.02]


FRAME = pd.DataFrame(
    {
        "score": np.linspace(0.01, 0.99, 80),
        "outcome": ["won", "lost"] * 40,
        "segment": pd.Categorical(["north", "south", None, "east"] * 20),
        "age": np.arange(80),
        "seen": pd.date_range("2026-01-01", periods=80),
        "pixels": [[1, 2]] * 80,
    }
)


@pytest.mark.parametrize("kind", ["pandas", "polars", "parquet", "csv", "jsonl"])
@pytest.mark.parametrize("labelled", [True, False])
def test_a_map_keeps_all_other_columns_of_a_table_and_the_kind_of_its_scores(tmp_path, kind, labelled):
    frame = FRAME if labelled else FRAME.drop(columns="outcome")
    path = tmp_path / f"table.{kind}"
    if kind == "jsonl":
        plain = frame.astype({"segment": object, "seen": str}).replace({np.nan: None})
        path.write_text("".join(json.dumps(row) + "\n" for row in plain.to_dict("records")))
    elif kind in ("parquet", "csv"):
        getattr(frame.drop(columns="pixels") if kind == "csv" else frame, f"to_{kind}")(path, index=False)
    source = {"pandas": frame, "polars": pl.from_pandas(frame)}.get(kind, path)
    options = {"columns": {"positive": "won"}} if labelled else {}
    found = recalibrate(FRAME, columns={"positive": "won"}, seed=3, fraction=0.5)
    done = found.apply(source, **options)
    kept = [name for name in frame.columns if name != "pixels"]
    names = ["sample" if labelled else "row", *kept, "score_calibrated"]
    assert list(done.table) == names
    rows = np.asarray(done.table[names[0]])
    assert rows.size == (40 if labelled else 80)
    after = done.to_pandas()
    assert after["segment"].fillna("-").tolist() == FRAME["segment"].astype(object).fillna("-").iloc[rows].tolist()
    assert after["age"].astype(int).tolist() == FRAME["age"].iloc[rows].tolist()
    assert pd.to_datetime(after["seen"]).tolist() == FRAME["seen"].iloc[rows].tolist()
    assert after["score"].astype(float).tolist() == FRAME["score"].iloc[rows].tolist()
    np.testing.assert_allclose(after["score_calibrated"], found.map.transform(FRAME["score"].iloc[rows]))
    lost = "Columns of lists, and those with a name that stands twice, are left out: pixels."
    assert (lost in done.notes) == (kind != "csv")
    if labelled:
        assert done.after.kind == "score"
        assert after["outcome"].tolist() == FRAME["outcome"].iloc[rows].tolist()  # as it was, words included
        done.save(tmp_path / "after.parquet")
        read = measure(tmp_path / "after.parquet", by="segment", columns=dict(done.roles))
        assert read.groups
        assert done.roles == {"positive": "won", "score": "score_calibrated"}


def test_a_kept_column_with_the_name_of_a_new_one_gets_another():
    table = {"how_sure": [0.2, 0.8] * 20, "right": [0, 1] * 20, "confidence": ["low", "high"] * 20, "id": range(40)}
    roles = {"confidence": "how_sure", "correct": "right"}
    done = recalibrate(table, columns=roles).apply(table, columns=roles, everything=True)
    assert list(done.table) == ["how_sure", "right", "confidence", "id", "how_sure_calibrated"]
    assert done.table["confidence"].to_pylist() == ["low", "high"] * 20
    frame = done.to_pandas()
    again = recalibrate(frame, columns=roles).apply(frame, columns=roles, everything=True)
    assert list(again.table)[-2:] == ["how_sure_calibrated", "how_sure_calibrated_again"]


def test_a_stream_that_can_be_read_once_is_recalibrated():
    table = pa.table(FRAME.drop(columns=["pixels"]))
    done = recalibrate(table.to_reader(), columns={"positive": "won"}).apply(
        table.to_reader(), columns={"positive": "won"}, everything=True
    )
    assert list(done.table) == ["sample", "score", "outcome", "segment", "age", "seen", "score_calibrated"]


def test_a_map_of_scores_is_not_applied_to_confidences_of_the_predicted_class_nor_the_other_way_round():
    scores = recalibrate(FRAME, columns={"positive": "won"})
    two = {"prob_0": [0.3, 0.6], "prob_1": [0.7, 0.4], "label": [1, 0]}
    with pytest.raises(InputError, match=r"was fitted to binary scores, and .* has confidences of the predicted class"):
        scores.apply(two)
    sure = recalibrate({"confidence": FRAME["score"].tolist(), "correct": (FRAME["outcome"] == "won").tolist()})
    with pytest.raises(InputError, match=r"was fitted to confidences of the predicted class, and .* has binary scores"):
        sure.apply(FRAME, columns={"positive": "won"})
