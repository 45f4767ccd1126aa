"""Checks: what cannot be used is refused in one sentence that says which, where, and what to do."""

import math
import re
from fractions import Fraction
from inspect import signature

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from certcal import InputError, Predictions, binning, bounds, measure, metrics, worst_case
from certcal._base import checks
from certcal.calibrators import CertifiedSamples, HistogramBinning, fit_temperature
from certcal.lab import baselines
from certcal.metrics import StreamingCalibration, bootstrap
from tests.calibrators.test_outcomes import MAPS

NAN, INF = math.nan, math.inf


def streamed(confidence, correct, sample_weight=None):
    stream = StreamingCalibration()
    stream.update(confidence, correct, sample_weight)
    return stream.result()


def streamed_rows(probabilities, labels, sample_weight=None):
    stream = StreamingCalibration(classes=3)
    stream.update_probabilities(probabilities, labels, sample_weight)
    return stream.result()


def with_interval(metric):
    def resampled(first, second, sample_weight=None):
        return bootstrap(metric, first, second, replicates=10, sample_weight=sample_weight)

    resampled.__name__ = f"bootstrap of {metric.__name__}"
    return resampled


def binned(confidence, correct, sample_weight=None):
    return binning.bin_table(confidence, correct, [0, 1], sample_weight=sample_weight)


def fitted(calibrator):
    def fit(confidence, correct, sample_weight=None):
        return calibrator.unfitted().fit(confidence, correct, sample_weight)

    return fit


def predicted(confidence, correct, sample_weight=None):
    return Predictions.from_confidence(confidence, correct, sample_weight)


def predicted_rows(probabilities, labels, sample_weight=None):
    return Predictions.from_probabilities(probabilities, labels, sample_weight)


OF_CONFIDENCE = [
    metrics.ece,
    metrics.equal_mass_ece,
    metrics.mce,
    metrics.lp_ece,
    metrics.debiased_ece,
    metrics.sweep_ece,
    metrics.ks_error,
    metrics.kuiper_error,
    metrics.mmce,
    metrics.kde_ece,
    metrics.smooth_ece,
    metrics.top_label_brier_score,
    metrics.top_label_nll,
    metrics.brier_decomposition,
    metrics.auroc,
    metrics.harmonic_calibration_score,
    metrics.reliability,
    with_interval(metrics.ece),
    with_interval(metrics.ks_error),
    with_interval(metrics.top_label_nll),
    bounds.binned,
    bounds.binned_lower,
    bounds.binned_interval,
    streamed,
    binned,
    predicted,
    *map(fitted, MAPS),
]
WITHOUT_WEIGHTS = [bounds.ks, bounds.kuiper, bounds.ks_lower, bounds.kuiper_lower, bounds.every_bound]
OF_ROWS = [
    metrics.classwise_ece,
    metrics.classwise_equal_mass_ece,
    metrics.brier_score,
    metrics.nll,
    with_interval(metrics.classwise_ece),
    with_interval(metrics.nll),
    streamed_rows,
    predicted_rows,
]
BINNED = [
    metrics.ece,
    metrics.mce,
    metrics.lp_ece,
    metrics.debiased_ece,
    metrics.harmonic_calibration_score,
    metrics.brier_decomposition,
    metrics.reliability,
    bounds.binned,
    bounds.binned_lower,
]
BINNED_INTERVALS = [
    worst_case.calibration_error,
    worst_case.mce,
    worst_case.certify,
    baselines.admm,
    baselines.dece_ascent,
]
OF_INTERVALS = [
    *BINNED_INTERVALS,
    worst_case.ks_error,
    worst_case.brier_score,
    worst_case.nll,
    worst_case.information,
    worst_case.equal_mass_error,
    worst_case.any_edges_error,
    baselines.brier_confidences,
]


def of_scores(scores, outcomes):
    yield lambda: bounds.bounded_variation(scores, outcomes)
    yield lambda: bounds.denoised(scores, outcomes)
    yield lambda: bounds.lipschitz(scores, outcomes, 2.0)
    yield lambda: bounds.smooth(scores, outcomes, 0.1)
    yield lambda: bounds.choose_bandwidth(scores, outcomes)
    yield lambda: metrics.calibration_slope(scores, outcomes)
    yield lambda: metrics.ici(scores, outcomes)
    yield lambda: metrics.spiegelhalter_z(scores, outcomes)
    yield lambda: metrics.net_benefit(scores, outcomes, 0.5)


def by_their_names(message):
    """The same complaint about scores and outcomes, whose remedies have other words."""
    return re.split(r"(?<!\[);", message)[0].replace("confidence", "scores").replace("correct", "outcomes")


Z, C = [0.9, 0.8, 0.4], [1, 0, 1]
P, Y = [[0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [0.2, 0.5, 0.3]], [0, 2, 0]


def table(**cases):
    return pytest.mark.parametrize(("given", "message"), cases.values(), ids=[key.replace("_", " ") for key in cases])


# ----------------------------------------------------------------------------------------------- confidence and correct


@table(
    not_a_number=([0.9, 0.8, NAN], r"^confidence\[2\] is nan; drop the sample"),
    infinite=([0.9, INF, 0.4], r"^confidence\[1\] is inf; drop the sample"),
    minus_infinite=([-INF, 0.9, 0.4], r"^confidence\[0\] is -inf; drop the sample"),
    negative=([0.9, -0.1, 0.4], r"^confidence\[1\] is -0\.1, outside \[0, 1\]; pass probabilities"),
    tiny_negative=([0.9, -5e-324, 0.4], r"^confidence\[1\] is -4\.94\d*e-324, outside \[0, 1\]; pass"),
    just_above_one=([0.9, 0.8, 1 + 1e-7], r"^confidence\[2\] is 1\.0000001, outside \[0, 1\]; pass probabilities"),
    logits=([3.2, -1.0, 0.4], r"^confidence\[0\] is 3\.2, outside \[0, 1\]; .*from_logits"),
    percent=([90, 80, 40], r"^confidence\[0\] is 90, outside \[0, 1\]; if these are per cent, divide them by 100"),
    matrix=([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6]], r"^confidence has shape \(3, 2\); pass one value per sample"),
    scalar=(0.9, r"^confidence has shape \(\); pass one value per sample"),
    empty=([], r"^confidence is empty; pass at least one sample"),
    too_short=([0.9, 0.8], r"^lengths differ: confidence has 2, correct has 3; pass one entry per sample"),
    words=(["high", "low", "low"], r"^confidence\[0\] is .*'high'.*, not a number; convert or drop"),
    nothing=(None, r"^confidence.* is None, not a number; convert or drop"),
    objects=(np.array([0.9, None, 0.4], object), r"^confidence\[1\] is None, not a number; convert or drop"),
    objects_that_are_floats=(
        np.array([0.9, 0.8, 0.4], object),
        r"^confidence has dtype object.*; convert it",
    ),
    complex_numbers=([0.9, 0.8 + 1j, 0.4], r"^confidence has dtype complex128.*; convert it"),
    dates=(np.array(["2020-01-01"] * 3, "M8[D]"), r"^confidence\[0\] is .*2020-01-01.*, not a number; convert"),
    masked=(np.ma.masked_array(Z, [0, 0, 1]), r"^confidence has masked entries; drop or fill them"),
    true_and_false=([True, False, True], r"^confidence holds true/false; pass probabilities .*swapped"),
    ragged=(
        [[0.9], [0.8, 0.7], [0.4]],
        r"^confidence \(list\) cannot be read as an array: .*; pass numbers",
    ),
    missing_in_pandas=(pd.Series([0.9, None, 0.4], dtype="Float64"), r"^confidence\[1\] is (nan|<NA>)[;,] .*drop"),
    missing_in_polars=(pl.Series([0.9, None, 0.4]), r"^confidence\[1\] is (nan|None)[;,] .*drop"),
    words_in_polars=(pl.Series(["a", "b", "c"]), r"^confidence\[0\] is .*'a'.*, not a number; convert or drop"),
    halves_of_torch=(torch.tensor([0.9, NAN, 0.4], dtype=torch.float16), r"^confidence\[1\] is nan; drop the sample"),
    sparse=(torch.tensor(Z).to_sparse(), r"^confidence \(Tensor\) cannot be read as an array: .*; pass"),
)
def test_bad_confidences_are_refused_by_everything_that_takes_them(given, message):
    for call in (*OF_CONFIDENCE, *WITHOUT_WEIGHTS):
        with pytest.raises(InputError, match=message):
            call(given, C)
    for call in of_scores(given, C):
        with pytest.raises(InputError, match=by_their_names(message)):
            call()


@table(
    class_labels=([1, 0, 2], r"^correct\[2\] is 2, neither 0 nor 1; pass whether each prediction is correct"),
    between=([1, 0.5, 0], r"^correct\[1\] is 0\.5, neither 0 nor 1; pass whether"),
    negative=([-1, 0, 1], r"^correct\[0\] is -1, neither 0 nor 1; pass whether"),
    not_a_number=([1, NAN, 0], r"^correct\[1\] is nan, neither 0 nor 1; pass whether"),
    infinite=([1, 0, INF], r"^correct\[2\] is inf, neither 0 nor 1; pass whether"),
    bytes_above_one=(np.array([1, 0, 255], np.uint8), r"^correct\[2\] is 255, neither 0 nor 1; pass whether"),
    words=(["yes", "no", "yes"], r"^correct\[0\] is .*'yes'.*, not a number; convert or drop"),
    nothing=(None, r"^correct.* is None, not a number; convert or drop"),
    empty=([], r"^correct is empty; pass at least one sample"),
    too_long=([1, 0, 1, 1], r"^lengths differ: confidence has 3, correct has 4; pass one entry per sample"),
    matrix=([[1, 0], [0, 1], [1, 1]], r"^correct has shape \(3, 2\); pass one value per sample"),
    missing_in_pandas=(
        pd.Series([True, None, False], dtype="boolean"),
        r"^correct\[1\] is .*(drop|pass)",
    ),
    missing_in_polars=(pl.Series([1, None, 0]), r"^correct\[1\] is (nan|None), "),
    masked=(np.ma.masked_array(C, [0, 1, 0]), r"^correct has masked entries; drop or fill them"),
)
def test_bad_outcomes_are_refused_by_everything_that_takes_them(given, message):
    for call in (*OF_CONFIDENCE, *WITHOUT_WEIGHTS):
        with pytest.raises(InputError, match=message):
            call(Z, given)
    for call in of_scores(Z, given):
        with pytest.raises(InputError, match=by_their_names(message)):
            call()


BAD_WEIGHTS = table(
    negative=([1, -1, 1], r"^sample_weight\[1\] is -1\.0; weights must be finite and not negative"),
    not_a_number=([1, 1, NAN], r"^sample_weight\[2\] is nan; weights must be finite"),
    infinite=([INF, 1, 1], r"^sample_weight\[0\] is inf; weights must be finite"),
    all_zero=([0, 0, 0], r"^sample_weight (is zero for every sample|was 0 in all that was added); "),
    huge=([1e300, 1, 1], r"largest sample_weight is 1e\+300; rescale"),
    tiny=([1e-300, 1e-301, 0], r"largest sample_weight is 1e-300; rescale"),
    too_short=([1, 1], r"^lengths differ: .* has 3, sample_weight has 2; pass one entry per sample"),
    scalar=(2.0, r"^sample_weight has shape \(\); pass one value per sample"),
    matrix=([[1, 1], [1, 1], [1, 1]], r"^sample_weight has shape \(3, 2\); pass one value per sample"),
    empty=([], r"^sample_weight is empty; pass"),
    words=(["a", "b", "c"], r"^sample_weight\[0\] is .*'a'.*, not a number; convert or drop"),
)


@BAD_WEIGHTS
def test_bad_weights_are_refused_everywhere(given, message):
    calls = [
        *(lambda call=call: call(Z, C, sample_weight=given) for call in OF_CONFIDENCE),
        *(lambda call=call: call(P, Y, sample_weight=given) for call in OF_ROWS),
        lambda: metrics.accuracy(C, sample_weight=given),
        lambda: metrics.nll(P, Y, from_logits=True, sample_weight=given),
        lambda: binning.equal_mass_edges(Z, 2, sample_weight=given),
        lambda: Predictions.from_logits(P, Y, sample_weight=given),
    ]
    for call in calls:
        with pytest.raises(InputError, match=message):
            call()


def test_lengths_that_differ_are_named_after_the_arguments_that_were_passed():
    with pytest.raises(InputError, match=r"^lengths differ: correct has 3, sample_weight has 2"):
        metrics.accuracy(C, sample_weight=[1, 1])
    with pytest.raises(InputError, match=r"^lengths differ: (probabilities|labels) has 3, sample_weight has 2"):
        metrics.brier_score(P, Y, sample_weight=[1, 1])


def test_a_value_that_is_no_array_is_named_without_an_index():
    for value in (None, "0.5", {"a": 1}):
        with pytest.raises(InputError, match=r"^confidence is "):
            metrics.ece(value, C)


# ----------------------------------------------------------------------------------------------------------- intervals

ENDS = {"lower": [0.1, 0.2, 0.3], "upper": [0.4, 0.5, 0.6], "correct": [1, 0, 1]}


@table(
    swapped=({"lower": [0.1, 0.7, 0.3]}, r"^lower\[1\] is 0\.7, above upper\[1\] = 0\.5; are the two swapped\?"),
    not_a_number=({"lower": [0.1, 0.2, NAN]}, r"^lower\[2\] is nan; drop the sample"),
    infinite=({"upper": [INF, 0.5, 0.6]}, r"^upper\[0\] is inf; drop the sample"),
    negative=({"lower": [-0.1, 0.2, 0.3]}, r"^lower\[0\] is -0\.1, outside \[0, 1\]; pass probabilities for both ends"),
    above_one=({"upper": [0.4, 1.5, 0.6]}, r"^upper\[1\] is 1\.5, outside \[0, 1\]; pass probabilities for both ends"),
    class_labels=({"correct": [1, 2, 1]}, r"^correct\[1\] is 2, neither 0 nor 1"),
    few_outcomes=({"correct": [1, 0]}, r"^lengths differ: .*lower has 3, .*correct has 2; pass one entry per sample"),
    few_ends=({"upper": [0.4, 0.5]}, r"^lengths differ: .*upper has 2.*; pass one entry per sample"),
    empty=({"lower": [], "upper": [], "correct": []}, r"^lower is empty; pass at least one sample"),
    few_flags=({"certified": [1, 0]}, r"^lengths differ: .*certified has 2; pass one entry per sample"),
    no_flag=({"certified": [1, 0, 3]}, r"^certified\[2\] is 3, neither 0 nor 1"),
)
def test_bad_intervals_are_refused_by_everything_that_takes_them(given, message):
    for call in OF_INTERVALS:
        if set(given) <= set(signature(call).parameters):
            with pytest.raises(InputError, match=message):
                call(**{**ENDS, **given})


def test_a_worst_case_over_no_sample_is_refused():
    for call in (*BINNED_INTERVALS[:2], worst_case.ks_error, worst_case.brier_score, worst_case.nll):
        with pytest.raises(InputError, match=r"^certified is false for every sample"):
            call(**ENDS, certified=[0, 0, 0])


# ------------------------------------------------------------------------------------------------ probabilities, labels


@table(
    not_a_number=([[0.7, 0.2, 0.1], [NAN, 0.3, 0.6], P[2]], r"^probabilities\[1, 0\] is nan"),
    infinite=([[0.7, 0.2, INF], P[1], P[2]], r"^probabilities\[0, 2\] is inf"),
    negative=([P[0], P[1], [1.1, -0.1, 0.0]], r"^probabilities\[2, 0\] is 1\.1, outside \[0, 1\]; pass probabilities"),
    logits=([[2.0, -1.0, 0.0], P[1], P[2]], r"^probabilities\[0, 0\] is 2, outside \[0, 1\]; .*from_logits"),
    logits_in_range=([[0.1, 0.9, 0.8], P[1], P[2]], r"^probabilities\[0\] sums to 1\.8, not to 1 within .*from_logits"),
    not_normalised=([P[0], [0.1, 0.3, 0.5], P[2]], r"^probabilities\[1\] sums to 0\.9, not to 1 within .*; normalise"),
    one_column=([[1.0], [1.0], [1.0]], r"^probabilities has shape \(3, 1\); .*from_scores"),
    one_dimension=([0.9, 0.8, 0.4], r"^probabilities has shape \(3,\); .*from_scores"),
    three_dimensions=(np.full((3, 1, 2), 0.5), r"^probabilities has shape \(3, 1, 2\); pass one row per sample"),
    empty=(np.zeros((0, 3)), r"^probabilities is empty; pass at least one sample"),
    no_classes=(np.zeros((3, 0)), r"^probabilities has shape \(3, 0\); pass one row per sample"),
    too_few_rows=([P[0], P[1]], r"^lengths differ: probabilities has 2, labels has 3; pass one entry per sample"),
    words=([["a", "b", "c"]] * 3, r"^probabilities\[0, 0\] is .*'a'.*, not a number; convert or drop"),
    nothing=(None, r"^probabilities.* is None, not a number; convert or drop"),
    ragged=([[0.5, 0.5], [1.0], [0.5, 0.5]], r"^probabilities \(list\) cannot be read as an array: .*; pass"),
    masked=(np.ma.masked_array(P, np.eye(3)), r"^probabilities has masked entries; drop or fill them"),
    missing_in_pandas=(pd.DataFrame({"a": [0.5, None, 1], "b": [0.5, 0, 0]}), r"^probabilities\[1, 0\] is nan"),
)
def test_bad_probabilities_are_refused_by_everything_that_takes_them(given, message):
    for call in OF_ROWS:
        with pytest.raises(InputError, match=message):
            call(given, Y)


@table(
    between=([0, 2.5, 1], r"^labels\[1\] is 2\.5; labels are whole numbers from 0 to 2"),
    negative=([-1, 0, 1], r"^labels\[0\] is -1; labels are whole numbers from 0 to 2"),
    too_large=([0, 1, 3], r"^labels\[2\] is 3; labels are whole numbers from 0 to 2"),
    beyond_int64=(np.array([0, 1, 2**63], np.uint64), r"^labels\[2\] is 9223372036854775808; labels are whole numbers"),
    enormous=([0, 1, 1e300], r"^labels\[2\] is 1e\+300; labels are whole numbers from 0 to 2"),
    not_a_number=([0, NAN, 1], r"^labels\[1\] is nan; labels are whole numbers"),
    infinite=([INF, 0, 1], r"^labels\[0\] is inf; labels are whole numbers"),
    words=(["cat", "dog", "dog"], r"^labels\[0\] is .*'cat'.*, not a number; convert or drop"),
    nothing=(None, r"^labels.* is None, not a number; convert or drop"),
    one_hot=(np.eye(3), r"^labels has shape \(3, 3\); pass one value per sample"),
    empty=([], r"^labels is empty; pass at least one sample"),
    too_long=([0, 1, 2, 0], r"^lengths differ: probabilities has 3, labels has 4; pass one entry per sample"),
)
def test_bad_labels_are_refused_by_everything_that_takes_them(given, message):
    for call in OF_ROWS:
        with pytest.raises(InputError, match=message):
            call(P, given)


@table(
    not_a_number=([[1.0, NAN], [0, 1]], r"^logits\[0, 1\] is nan; drop the sample"),
    infinite=([[1.0, 0], [-INF, 1]], r"^logits\[1, 0\] is -inf; drop the sample"),
    one_dimension=([1.0, 2.0], r"^logits has shape \(2,\); pass one row per sample"),
    empty=(np.zeros((0, 2)), r"^logits is empty; pass at least one sample"),
    words=([["a", "b"]] * 2, r"^logits\[0, 0\] is .*'a'.*, not a number"),
)
def test_bad_logits_are_refused(given, message):
    with pytest.raises(InputError, match=message):
        metrics.nll(given, [0, 1], from_logits=True)
    with pytest.raises(InputError, match=message):
        Predictions.from_logits(given, [0, 1])
    with pytest.raises(InputError, match=message):
        fit_temperature(given, [0, 1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("off", [1e-6, -1e-6, 9e-4, -9e-4])
def test_rows_that_sum_to_one_within_the_stated_tolerance_are_accepted(dtype, off):
    rows = np.array([[0.25 + off, 0.5, 0.25], [0.5, 0.25, 0.25]], dtype)
    assert metrics.brier_score(rows, [0, 1]) == pytest.approx(0.875 / 1, abs=1e-2)
    with pytest.raises(InputError, match=r"probabilities\[0\] sums to"):
        metrics.brier_score(np.array([[0.25 + 3 * off + math.copysign(1e-3, off), 0.5, 0.25]], dtype), [0])


def test_half_precision_rows_may_be_off_by_two_hundredths():
    rows = np.array([[0.515, 0.5]], np.float16)
    assert metrics.nll(rows, [1]) == pytest.approx(math.log(2))
    with pytest.raises(InputError, match=r"not to 1 within 0\.02"):
        metrics.nll(np.array([[0.53, 0.5]], np.float16), [1])


def test_an_entry_may_exceed_one_by_rounding_only():
    assert metrics.nll([[1 + 1e-7, 0.0]], [0]) == 0
    assert Predictions.from_probabilities([[1 + 1e-7, 0.0]], [0]).confidence[0] == 1
    with pytest.raises(InputError, match=r"probabilities\[0, 0\] is 1\.00001, outside \[0, 1\]"):
        metrics.nll([[1.00001, 0.0]], [0])


# ------------------------------------------------------------------------------------------------------------- settings


@pytest.mark.parametrize("bins", [0, -1, 2.5, 15.0, "x", "15", None, NAN, 10_000_001, [15]])
def test_a_bad_number_of_bins_is_refused_everywhere(bins):
    calls = [
        *(lambda metric=metric: metric(Z, C, bins) for metric in BINNED),
        *(lambda call=call: call(**ENDS, bins=bins) for call in BINNED_INTERVALS),
        lambda: metrics.equal_mass_ece(Z, C, bins),
        lambda: metrics.classwise_ece(P, Y, bins),
        lambda: metrics.classwise_equal_mass_ece(P, Y, bins),
        lambda: binning.equal_width_edges(bins),
        lambda: binning.equal_mass_edges(Z, bins),
        lambda: bootstrap(metrics.ece, Z, C, bins=bins),
        lambda: checks.bin_count(bins),
    ]
    for call in calls:
        with pytest.raises(InputError, match=r"^bins is .*; pass a (whole number of bins|number from 1)"):
            call()


@pytest.mark.parametrize("bins", [0, -1, 2.5, "x", None, [], [15, 0], ["x"]])
def test_a_bad_number_of_bins_is_refused_where_several_may_be_given(bins):
    predictions = Predictions.from_confidence(Z, C)
    for call in (
        lambda: measure(predictions, bins=bins),
        lambda: StreamingCalibration(bins),
        lambda: metrics.measure_stream(lambda: [predictions], bins=bins),
    ):
        with pytest.raises(InputError, match=r"^bins(: | is )"):
            call()


@pytest.mark.parametrize("bins", [1, np.int64(15), np.uint8(3), True])
def test_any_whole_number_is_a_number_of_bins(bins):
    assert metrics.ece(Z, C, bins) == metrics.ece(Z, C, int(bins))


@table(
    not_from_zero=([0.1, 0.5, 1], r"^edges run from 0\.1 to 1\.0; the first must be 0 and the last 1"),
    decreasing=([0, 0.6, 0.5, 1], r"^edges\[2\] is 0\.5.*sort them"),
    not_a_number=([0, NAN, 1], r"^edges\[1\] is nan"),
    one=([0], r"^edges has shape \(1,\); pass at least the two edges"),
    words=(["a", "b"], r"^edges\[0\] is .*'a'.*, not a number"),
)
def test_bad_edges_are_refused_by_every_binned_metric(given, message):
    for call in BINNED:
        with pytest.raises(InputError, match=message):
            call(Z, C, edges=given)
    for call in BINNED_INTERVALS[:2]:
        with pytest.raises(InputError, match=message):
            call(**ENDS, edges=given)
    with pytest.raises(InputError, match=message):
        metrics.classwise_ece(P, Y, edges=given)


@pytest.mark.parametrize("closed", ["both", "neither", None, "Left"])
def test_an_unknown_side_is_refused_everywhere(closed):
    predictions = Predictions.from_confidence(Z, C)
    calls = [
        *(lambda metric=metric: metric(Z, C, closed=closed) for metric in BINNED),
        *(lambda call=call: call(**ENDS, closed=closed) for call in BINNED_INTERVALS),
        lambda: metrics.equal_mass_ece(Z, C, closed=closed),
        lambda: metrics.classwise_ece(P, Y, closed=closed),
        lambda: metrics.classwise_equal_mass_ece(P, Y, closed=closed),
        lambda: binning.equal_mass_edges(Z, closed=closed),
        lambda: measure(predictions, closed=closed),
        lambda: StreamingCalibration(closed=closed),
        lambda: metrics.measure_stream(lambda: [predictions], closed=closed),
        lambda: bootstrap(metrics.ece, Z, C, closed=closed),
    ]
    for call in calls:
        with pytest.raises(InputError, match=r"^closed.* one of '?left'?, '?right'?"):
            call()


@pytest.mark.parametrize("p", [0.999, 0.5, 0, -1, NAN, -INF, "x", None])
def test_an_order_below_one_is_refused(p):
    with pytest.raises(InputError, match=r"^p is .*; pass "):
        metrics.lp_ece(Z, C, p=p)


@pytest.mark.parametrize("value", [0, -1, NAN, INF, "x", [1, 2]])
def test_scales_must_be_positive_numbers(value):
    for call, name in (
        (lambda: metrics.harmonic_calibration_score(Z, C, beta=value), "beta"),
        (lambda: metrics.smooth_ece(Z, C, bandwidth=value), "bandwidth"),
        (lambda: metrics.kde_ece(Z, C, bandwidth=value), "bandwidth"),
        (lambda: metrics.mmce(Z, C, width=value), "width"),
    ):
        with pytest.raises(InputError, match=rf"^{name} is .*; pass a positive"):
            call()


# -------------------------------------------------------------------------------------------------------- what is taken


@pytest.mark.parametrize(
    "column",
    [
        Z,
        tuple(Z),
        np.array(Z),
        np.array(Z)[:, None],
        np.array([Z]),
        np.array(Z)[::-1][::-1],
        np.array([Z, Z]).T[:, 1],
        np.ma.masked_array(Z),
        np.array(Z, np.longdouble),
        np.array(Z, ">f8"),
        pd.Series(Z, index=[5, 6, 7]),
        pd.Series(Z, dtype="Float64"),
        pl.Series(Z),
        torch.tensor(Z, dtype=torch.float64),
        torch.tensor(Z, dtype=torch.float64, requires_grad=True),
        torch.tensor([Z, Z], dtype=torch.float64).T[:, 0],
    ],
    ids=lambda column: f"{type(column).__module__.partition('.')[0]} {type(column).__name__}",
)
def test_confidences_come_from_any_library_and_layout(column):
    np.testing.assert_array_equal(checks.confidences(column), Z)
    assert metrics.ece(column, C) == metrics.ece(Z, C)
    assert metrics.ks_error(column, C) == metrics.ks_error(Z, C)


@pytest.mark.parametrize(
    "column",
    [
        [True, False, True],
        [1.0, 0.0, 1.0],
        np.array(C, np.int8),
        np.array(C, np.uint64),
        np.array(C, np.float16),
        np.array(C, ">i4"),
        np.array(C, ">f4"),
        np.array([C, C], np.bool_).T[:, 0],
        pd.Series([True, False, True]),
        pd.Series(C, dtype="Int64"),
        pd.Series([True, False, True], dtype="boolean"),
        pl.Series(C),
        pl.Series([True, False, True]),
        torch.tensor(C),
        torch.tensor([True, False, True]),
        torch.tensor([1.0, 0.0, 1.0], requires_grad=True),
    ],
    ids=lambda column: f"{type(column).__name__} {getattr(column, 'dtype', '')}",
)
def test_outcomes_come_as_bits_whole_numbers_or_floats(column):
    found = checks.correctness(column)
    assert found.dtype == np.uint8
    assert found.tolist() == C
    assert metrics.ece(Z, column) == metrics.ece(Z, C)
    assert metrics.accuracy(column) == 2 / 3


@pytest.mark.parametrize(
    "labels",
    [[0.0, 2.0, 0.0], np.array(Y, np.uint8), np.array(Y, ">i8"), pd.Series(Y), pl.Series(Y), torch.tensor(Y)],
    ids=lambda labels: type(labels).__name__,
)
def test_labels_come_from_any_library(labels):
    assert metrics.brier_score(P, labels) == metrics.brier_score(P, Y)
    assert metrics.classwise_ece(P, labels) == metrics.classwise_ece(P, Y)


@pytest.mark.parametrize(
    "rows",
    [
        np.array(P),
        np.asfortranarray(P),
        np.array(P, ">f8"),
        np.array([P, P])[:, ::-1].transpose(1, 2, 0)[::-1, :, 0],
        pd.DataFrame(P),
        pl.DataFrame(P, orient="row"),
        torch.tensor(P, dtype=torch.float64),
    ],
    ids=lambda rows: type(rows).__name__,
)
def test_rows_come_from_any_library_and_layout(rows):
    assert metrics.brier_score(rows, Y) == metrics.brier_score(P, Y)
    assert metrics.classwise_ece(rows, Y) == metrics.classwise_ece(P, Y)


@pytest.mark.parametrize("order", ["<", ">"])
def test_the_order_of_bytes_in_memory_does_not_move_a_value_off_its_edge(order):
    for dtype in ("f2", "f4", "f8"):
        values = (np.arange(11) / 10).astype(order + dtype)
        assert binning.assign(values, binning.equal_width_edges(10)).tolist() == [*range(10), 9]


def test_whole_numbers_zero_and_one_are_confidences():
    assert metrics.ece([0, 1, 1], [0, 1, 0], bins=2) == pytest.approx(1 / 3)


def test_bfloat16_works_or_is_refused_by_name():
    values = torch.tensor([0.5, 0.75], dtype=torch.bfloat16)
    try:
        found = metrics.ece(values, [1, 0])
    except InputError as error:
        found = str(error)
    assert found == 0.625 or "BFloat16" in str(found)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_floats_keep_their_type_and_whole_numbers_become_float64(dtype):
    assert checks.confidences(np.array(Z, dtype)).dtype == dtype
    assert checks.confidences([0, 1]).dtype == np.float64
    assert checks.probability_matrix(np.array(P, dtype)).dtype == dtype


def test_checking_does_not_change_or_copy_what_was_given():
    z, c = np.array(Z), np.array(C, np.uint8)
    assert np.shares_memory(checks.confidences(z), z)
    assert np.shares_memory(checks.correctness(c), c)
    z.flags.writeable = c.flags.writeable = False
    for metric in OF_CONFIDENCE:
        assert metric(z, c) is not None
    assert z.tolist() == Z
    assert c.tolist() == C


@given(st.integers(0, 450_000), st.sampled_from([NAN, INF, -1e-9, 1 + 1e-9]))
def test_a_single_bad_value_among_many_is_found_where_it_is(index, bad):
    z = np.full(450_001, 0.5)
    z[index] = bad
    with pytest.raises(InputError, match=rf"^confidence\[{index}\] is "):
        checks.confidences(z)


@pytest.mark.parametrize("row", [0, 123_456, 249_999])
def test_a_single_bad_row_among_many_is_found_where_it_is(row):
    p = np.full((250_000, 10), 0.1)
    p[row, 7] = 0.2
    with pytest.raises(InputError, match=rf"^probabilities\[{row}\] sums to 1\.1"):
        checks.probability_matrix(p)
    p[row, 7] = -0.2
    with pytest.raises(InputError, match=rf"^probabilities\[{row}, 7\] is -0\.2"):
        checks.probability_matrix(p)


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_a_confidence_is_taken_exactly_when_it_lies_in_the_unit_interval(value):
    if 0 <= value <= 1 and Fraction(value) <= 1:
        assert checks.confidences([value])[0] == value
    else:
        with pytest.raises(InputError, match=r"^confidence\[0\] is "):
            checks.confidences([value])


def test_input_errors_are_value_errors():
    assert issubclass(InputError, ValueError)


GIVEN = np.linspace(0.1, 0.9, 20)
SEEN = np.arange(20) % 2


@pytest.mark.parametrize(
    "claim",
    [
        lambda delta: bounds.bounded_variation(GIVEN, SEEN, delta),
        lambda delta: bounds.lipschitz(GIVEN, SEEN, 2.0, delta),
        lambda delta: bounds.smooth(GIVEN, SEEN, 0.1, delta),
        lambda delta: bounds.binned(GIVEN, SEEN, delta=delta),
        lambda delta: bounds.binned_lower(GIVEN, SEEN, delta=delta),
        *(lambda delta, bound=bound: bound(GIVEN, SEEN, delta) for bound in WITHOUT_WEIGHTS[:4]),
        lambda delta: bounds.classwise(bounds.bounded_variation, np.stack([1 - GIVEN, GIVEN], axis=1), SEEN, delta),
        lambda delta: bounds.every_bound(GIVEN, SEEN, delta=delta),
        lambda delta: worst_case.certify(GIVEN, GIVEN, SEEN, delta=delta),
        lambda delta: HistogramBinning(bins=2).fit(GIVEN, SEEN).guarantee(delta),
        lambda alpha: CertifiedSamples.from_intervals(GIVEN, GIVEN, SEEN, alpha=alpha),
        lambda alpha: worst_case.certify(GIVEN, GIVEN, SEEN, alpha=alpha),
    ],
)
def test_a_level_in_the_place_of_a_probability_of_failing_is_answered_with_what_was_meant(claim):
    with pytest.raises(InputError, match=r"is 0\.95; it is the probability of failing, .*: did you mean 0\.05\?"):
        claim(0.95)
    for delta in (95, 5):
        with pytest.raises(
            InputError, match=rf"is {delta}(\.0)?; it is the probability of failing, .*: did you mean 0\.05\?"
        ):
            claim(delta)
    for delta in (0.5, 1.0):
        with pytest.raises(InputError, match=r"probability of failing, below 0\.5: pass a smaller one, such as 0\.05$"):
            claim(delta)
    with pytest.raises(InputError, match=r"is 1e-308; pass (0 or )?at least 1e-200"):
        claim(1e-308)
    claim(0.3)


@pytest.mark.parametrize("delta", [10**400, "5%", None, 0, -0.1, NAN])
def test_what_is_no_probability_of_failing_is_refused(delta):
    for call in (
        lambda: bounds.bounded_variation(GIVEN, SEEN, delta),
        lambda: bounds.lipschitz(GIVEN, SEEN, 2.0, delta),
        lambda: bounds.smooth(GIVEN, SEEN, 0.1, delta),
        lambda: worst_case.certify(GIVEN, GIVEN, SEEN, delta=delta),
    ):
        with pytest.raises(InputError, match=r"delta is .*; pass a probability between 0 and 0\.5"):
            call()


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_a_level_that_would_print_as_one_is_refused(method):
    with pytest.raises(InputError, match=r"level is 0\.9+; pass at most 0\.9999$"):
        bootstrap(metrics.ece, GIVEN, SEEN, level=0.9999999999999999, method=method)


@pytest.mark.parametrize("value", [1e308, 10**400])
def test_a_variation_or_a_constant_beyond_measure_is_refused(value):
    with pytest.raises(InputError, match="variation is"):
        bounds.bounded_variation(GIVEN, SEEN, variation=value)
    with pytest.raises(InputError, match="constant is"):
        bounds.lipschitz(GIVEN, SEEN, value)


def test_a_sentence_holds_no_whole_array() -> None:
    for wrong in (np.arange(3000.0), list(range(3000)), "x" * 10_000, np.full((90, 90), 0.5)):
        with pytest.raises(InputError) as caught:
            metrics.ece([0.5, 0.6], [0, 1], wrong)
        assert len(str(caught.value)) < 200
        assert str(caught.value).startswith("bins is ")
        assert str(caught.value).endswith("pass a whole number of bins, or edges=… for your own edges")
    sentence = str(InputError(f"{'a' * 5000} is wrong; pass another"))
    assert len(sentence) < 810
    assert sentence.endswith("is wrong; pass another")
