"""Every claim in a document is found once, under a name that says what kind of claim it is."""

import math

import numpy as np
import pytest

import certcal
from certcal import InputError
from certcal._base.json import for_json
from certcal.claims import Bound, Certificate, Estimate, Interval, Ledger
from certcal.interop._numbers import check_prefix, found_in
from certcal.worst_case import certify

RNG = np.random.default_rng(5)
Z = RNG.uniform(0.5, 0.98, 80)
C = (RNG.random(80) < Z).astype(int)


def values(document):
    return {number.name: number.value for number in found_in(document).numbers}


def certificate(radius, value=0.3):
    return Certificate("calibration error", value, "upper", radius, Ledger(0.001).split(votes=1), 50, ("noise",))


def test_kind_and_side_stand_in_the_name():
    lower = Bound("accuracy", 0.7, "lower", 0.05, 80, ("samples are independent",))
    upper = Bound("ece", 0.1, "upper", 0.05, 80, ("samples are independent",))
    found = values([each.to_dict() for each in (Estimate("ece", 0.05, 80), lower, upper, certificate(0.5))])
    assert found == {
        "estimate/ece": 0.05,
        "bound/accuracy_at_least": 0.7,
        "bound/ece_at_most": 0.1,
        "certificate/radius_0.5/calibration_error_at_most": 0.3,
    }


def test_every_measurement_is_there_with_its_bins_and_the_ends_of_its_interval():
    table = certcal.measure(certcal.Predictions.from_confidence(Z, C), bins=(5, 15), bootstrap=20, metrics="all")
    found = values(table.to_dict())
    for row in table.rows:
        name = f"estimate/{row.name}" + (f"_bins_{row.settings['bins']}" if "bins" in row.settings else "")
        assert found[name] == row.value
        assert found[f"{name}_interval_lower"] == row.interval.lower
        assert found[f"{name}_interval_upper"] == row.interval.upper
    assert len(found) == 3 * len(table.rows)


def test_every_claim_of_a_summary_is_there_by_its_key_and_samples():
    summary = certify(np.maximum(Z - 0.1, 0), np.minimum(Z + 0.1, 0.99), C, certified=np.arange(80) % 4 > 0)
    found = found_in(for_json(summary.to_dict()))
    by_name = {number.name: number for number in (*found.numbers, *found.left_out)}
    assert len(by_name) == len(list(summary.claims()))
    assert (
        by_name["worst_case/calibration_error_certified_bins_15_at_most"].value
        == summary["calibration_error"].worst.value
    )
    assert by_name["bound/population_bound_all_bins_15_at_most"].value == summary.population_all.value
    assert by_name["certified_value/certified_accuracy_at_least"].value == summary.accuracy.value
    assert {number.sentence for number in by_name.values()} == set(summary.sentences)
    # A wrong prediction that may have any confidence has no largest log loss.
    assert [(number.name, number.value) for number in found.left_out] == [("worst_case/nll_all_at_most", math.inf)]


def test_groups_and_radii_are_places_in_the_name():
    table = certcal.metrics.measure(certcal.Predictions.from_confidence(Z, C), metrics=["ece"])
    columns = {"confidence": Z, "correct": C, "site": ["north/3", "Süd"] * (len(Z) // 2)}
    results = certcal.measure(columns, by="site", metrics=["ece"], bootstrap=0)
    assert list(values(results.to_dict())) == [
        "estimate/ece_bins_15",
        "estimate/site_Süd/ece_bins_15",
        "estimate/site_north_3/ece_bins_15",
    ]
    assert list(values([certificate(0.25).to_dict(), certificate(0.5).to_dict()])) == [
        "certificate/radius_0.25/calibration_error_at_most",
        "certificate/radius_0.5/calibration_error_at_most",
    ]
    assert list(values({"before": table.to_dict(), "after": Estimate("ece", 0.1, 2).to_dict()})) == [
        "estimate/before/ece_bins_15",
        "estimate/after",
    ]


def test_answers_of_a_study_are_estimates_with_their_interval():
    finding = {"name": "Kendall's τ, ECE and MCE", "value": 0.5, "low": 0.4, "high": 0.6, "n": 90, "note": "few models"}
    document = {"answers": [{"number": 2, "question": "Reliable?", "answer": "Yes.", "findings": [finding]}]}
    found = found_in(document)
    assert {number.name: number.value for number in found.numbers} == {
        "estimate/question_2/Kendall_s_τ_ECE_and_MCE": 0.5,
        "estimate/question_2/Kendall_s_τ_ECE_and_MCE_interval_lower": 0.4,
        "estimate/question_2/Kendall_s_τ_ECE_and_MCE_interval_upper": 0.6,
    }
    assert "90 models; an estimate, not a guarantee. few models" in found.numbers[0].sentence


def test_no_number_hides_another():
    same = [Estimate("ece", value, 10).to_dict() for value in (0.1, 0.2, 0.3)]
    assert values(same) == {"estimate/ece": 0.1, "estimate/ece_2": 0.2, "estimate/ece_3": 0.3}
    long = [Estimate("x" * 300 + end, 0.5, 10).to_dict() for end in "ab"]
    assert len(values(long)) == 2
    assert all(len(name) <= 250 for name in values(long))


def test_undefined_numbers_are_left_out_and_named():
    undefined = Estimate("auroc", math.nan, 3, interval=Interval(-math.inf, 1.0, 0.95, "percentile"))
    for document in (undefined.to_dict(), for_json(undefined.to_dict())):
        found = found_in(document)
        assert [number.name for number in found.numbers] == ["estimate/auroc_interval_upper"]
        assert [number.name for number in found.left_out] == ["estimate/auroc", "estimate/auroc_interval_lower"]


def test_settings_are_those_of_the_results_or_else_of_the_claims():
    claims = [Estimate("ece", 0.1, 10, {"bins": bins, "closed": "left"}).to_dict() for bins in (5, 15)]
    assert found_in(claims).settings == {"bins": "5, 15", "closed": "left", "n": "10"}
    assert found_in(certificate(0.5).to_dict()).settings == {"n": "50", "radius": "0.5", "alpha": "0.001"}
    told = found_in(certcal.measure({"confidence": Z, "correct": C}, source="a.csv").to_dict()).settings
    assert told | {"source": "a.csv", "kind": "confidence", "n": "80", "bins": "15", "closed": "left"} == told
    assert "p" not in told  # one metric's own setting is in its sentence


@pytest.mark.parametrize("prefix", ["/a", "a//b", "../a", "a b", "a=b", "./"])
def test_a_prefix_that_a_server_would_refuse_is_refused_first(prefix):
    with pytest.raises(InputError, match="prefix is"):
        check_prefix(prefix)
