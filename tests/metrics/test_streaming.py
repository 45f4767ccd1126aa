"""Streaming: the result does not depend on how the data was cut, ordered or merged."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certcal import InputError, Predictions, metrics
from certcal.metrics import StreamingCalibration, measure, measure_stream
from tests import naive

# Rows of a stream that are sums over samples: the same bits for any cut, with weights too.
EXACT_WITH_WEIGHTS = (
    "accuracy",
    "mean_confidence",
    "ece",
    "mce",
    "lp_ece",
    "debiased_ece",
    "harmonic_calibration_score",
    "brier_reliability",
    "brier_resolution",
    "brier_uncertainty",
    "brier_within_bin",
    "classwise_ece",
    "top_label_brier_score",
    "top_label_nll",
    "brier_score",
    "nll",
)


def pieces_of(n, pieces, random):
    """Positions 0 … n - 1 in a random order, cut at random places."""
    order = list(range(n))
    random.shuffle(order)
    places = sorted(random.sample(range(1, n), min(pieces, n - 1)))
    return [order[a:b] for a, b in itertools.pairwise([0, *places, n])]


def picked(array, index):
    return None if array is None else array[index]


def merged(streams, random):
    """All streams as one, merged two at a time in a random tree."""
    while len(streams) > 1:
        random.shuffle(streams)
        one = streams.pop()
        one.merge(streams.pop())
        streams.append(one)
    return streams[0]


def rows_of(result):
    return [(row.name, dict(row.settings), row.value, row.n) for row in result]


def same(one, other):
    """Equal bits, where NaN equals NaN."""
    assert repr(rows_of(one)) == repr(rows_of(other))


# ------------------------------------------------------------------------------------------------- any cut, same result


@settings(max_examples=15)
@given(naive.scored(), st.integers(0, 8), st.booleans(), st.randoms(use_true_random=False))
def test_without_weights_every_row_is_the_same_bits_for_any_cut_order_and_tree_of_merges(pair, cuts, kernels, random):
    z, c = pair
    whole = StreamingCalibration((15, 4), kernels=kernels)
    whole.update(z, c)
    one_by_one = StreamingCalibration((15, 4), kernels=kernels)
    streams = []
    for index in pieces_of(z.size, cuts, random):
        one_by_one.update(z[index], c[index])
        streams.append(StreamingCalibration((15, 4), kernels=kernels))
        streams[-1].update(z[index], c[index])
    same(whole.result(), one_by_one.result())
    same(whole.result(), merged(streams, random).result())


@settings(max_examples=15)
@given(naive.classified(), st.integers(0, 8), st.randoms(use_true_random=False))
def test_streams_of_rows_are_the_same_bits_for_any_cut_order_and_tree_of_merges(data, cuts, random):
    p, y, w = data
    whole = StreamingCalibration((15, 4), classes=p.shape[1], kernels=w is None)
    whole.update_probabilities(p, y, w)
    one_by_one = StreamingCalibration((15, 4), classes=p.shape[1], kernels=w is None)
    streams = []
    for index in pieces_of(y.size, cuts, random):
        if w is not None and not w[index].any():
            continue  # weights that are all zero add nothing
        one_by_one.update_probabilities(p[index], y[index], picked(w, index))
        streams.append(StreamingCalibration((15, 4), classes=p.shape[1], kernels=w is None))
        streams[-1].update_probabilities(p[index], y[index], picked(w, index))
    together = merged(streams, random).result()
    for expected, found, summed in zip(whole.result(), one_by_one.result(), together, strict=True):
        assert expected.name in EXACT_WITH_WEIGHTS or w is None
        assert found.value == expected.value == summed.value, expected.name


@settings(max_examples=15)
@given(naive.weighted(), st.integers(0, 8), st.sampled_from(["left", "right"]), st.randoms(use_true_random=False))
def test_with_weights_the_binned_rows_are_the_same_bits_and_the_kernel_rows_agree(data, cuts, closed, random):
    z, c, w = data
    whole = StreamingCalibration(closed=closed)
    whole.update(z, c, w)
    streams = []
    for index in pieces_of(z.size, cuts, random):
        if w is not None and not w[index].any():
            continue
        streams.append(StreamingCalibration(closed=closed))
        streams[-1].update(z[index], c[index], picked(w, index))
    for expected, found in zip(whole.result(), merged(streams, random).result(), strict=True):
        if w is None or expected.name in EXACT_WITH_WEIGHTS:
            assert found.value == expected.value, expected.name
        else:
            assert found.value == pytest.approx(expected.value, rel=1e-9, abs=1e-9)


def test_the_weighted_classwise_row_is_the_same_bits_for_any_cut():
    rng = np.random.default_rng(0)
    for _ in range(20):
        p, y, w = rng.dirichlet(np.ones(4), 60), rng.integers(0, 4, 60), rng.random(60)
        whole, pieces = (StreamingCalibration(classes=4, kernels=False) for _ in range(2))
        whole.update_probabilities(p, y, w)
        for index in np.array_split(rng.permutation(60), 7):
            pieces.update_probabilities(p[index], y[index], w[index])
        assert pieces.result()["ece"].value == whole.result()["ece"].value
        assert pieces.result()["classwise_ece"].value == whole.result()["classwise_ece"].value


def test_a_piece_whose_weights_are_all_zero_changes_nothing():
    stream = StreamingCalibration()
    stream.update([0.5, 0.7], [1, 0], [1.0, 2.0])
    before = [row.value for row in stream.result()]
    stream.update([0.9], [1], [0.0])
    assert [row.value for row in stream.result()] == before
    assert metrics.ece([0.5, 0.7, 0.9], [1, 0, 1], sample_weight=[1, 2, 0]) == stream.result()["ece"].value


def test_many_samples_cut_in_two_on_several_threads_are_the_same_bits():
    rng = np.random.default_rng(0)
    z = rng.beta(5, 1, 450_001).astype(np.float32)
    c = rng.random(z.size) < z
    whole, halves = StreamingCalibration((15, 700)), StreamingCalibration((15, 700))
    whole.update(z, c)
    halves.update(z[200_500:], c[200_500:])
    halves.update(z[:200_500], c[:200_500])
    same(whole.result(), halves.result())
    table = measure(Predictions.from_confidence(z, c), bins=(15, 700), metrics="all")
    for row in whole.result():
        assert row.value == pytest.approx(table[row.name, row.settings.get("bins")].value, rel=1e-9, abs=1e-12)


# ----------------------------------------------------------------------------------------------------- equal to measure


@settings(max_examples=15)
@given(naive.weighted(20), st.integers(0, 20), st.sampled_from(["left", "right"]), st.randoms(use_true_random=False))
def test_a_table_read_in_pieces_has_the_values_of_the_whole(data, cuts, closed, random):
    z, c, w = data
    places = sorted(random.sample(range(1, z.size), min(cuts, z.size - 1)))
    bounds = list(itertools.pairwise([0, *places, z.size]))
    if w is not None:
        w = np.maximum(w, 1e-3)
    parts = [Predictions.from_confidence(z[a:b], c[a:b], picked(w, slice(a, b))) for a, b in bounds]
    found = measure_stream(lambda: iter(parts), bins=(3, 15), closed=closed)
    expected = measure(Predictions.from_confidence(z, c, w), bins=(3, 15), closed=closed, metrics="all")
    shared = 0
    for row in found:
        twin = expected[row.name, row.settings.get("bins")]
        near = 1e-9 if row.name in ("smooth_ece", "kde_ece") else 1e-12
        error = row.settings.get("error_at_most", 0.0)
        assert row.value == pytest.approx(twin.value, rel=near, abs=near + error), row.name
        assert {key: value for key, value in row.settings.items() if key != "error_at_most"} == twin.settings
        assert row.n == twin.n
        shared += 1
    left_out = {row.name for row in expected} - {row.name for row in found}
    assert left_out == {"sweep_ece", "mmce", "auroc"}
    assert shared == 2 * 10 + 8


@settings(max_examples=15)
@given(naive.classified(15), st.integers(0, 15), st.randoms(use_true_random=False))
def test_a_table_of_rows_read_in_pieces_has_the_values_of_the_whole(data, cuts, random):
    p, y, w = data
    places = sorted(random.sample(range(1, y.size), min(cuts, y.size - 1)))
    if w is not None:
        w = np.maximum(w, 1e-3)
    parts = [
        Predictions.from_probabilities(p[a:b], y[a:b], picked(w, slice(a, b)))
        for a, b in itertools.pairwise([0, *places, y.size])
    ]
    found = measure_stream(lambda: iter(parts))
    expected = measure(Predictions.from_probabilities(p, y, w), metrics="all")
    for row in found:
        near = 1e-9 if row.name in ("smooth_ece", "kde_ece") else 1e-12
        error = row.settings.get("error_at_most", 0.0)
        assert row.value == pytest.approx(expected[row.name].value, rel=near, abs=near + error), row.name
    assert found.kind == expected.kind == "probabilities"
    assert {row.name for row in expected} - {row.name for row in found} == {
        "sweep_ece",
        "mmce",
        "auroc",
        "classwise_equal_mass_ece",
    }


@pytest.mark.parametrize("closed", ["left", "right"])
@pytest.mark.parametrize("weigh", [False, True])
def test_equal_mass_bins_of_a_table_read_in_pieces_are_closed_on_the_side_asked_for(closed, weigh):
    rng = np.random.default_rng(0)
    # 105 samples fill 3, 7 and 15 bins evenly: only then do the edges depend on the side that is closed.
    z, c, w = rng.random(105), rng.integers(0, 2, 105), np.full(105, 0.3) if weigh else None
    parts = [Predictions.from_confidence(z[k::3], c[k::3], picked(w, slice(k, None, 3))) for k in range(3)]
    found = measure_stream(lambda: parts, bins=(3, 7, 15), closed=closed)
    for bins in (3, 7, 15):
        expected = naive.equal_mass_ece(z, c, bins, closed, w)
        assert found["equal_mass_ece", bins].value == pytest.approx(expected, rel=1e-12)


def test_logits_read_in_pieces_keep_their_likelihood():
    x, y = np.array([[800.0, 0.0], [0.0, 2.0], [3.0, -3.0]]), np.array([1, 1, 0])
    parts = [Predictions.from_logits(x[k : k + 1], y[k : k + 1]) for k in range(3)]
    found = measure_stream(lambda: parts)
    assert found["nll"].value == pytest.approx(naive.nll_from_logits(x, y), rel=1e-12)
    assert found.kind == "logits"


def test_the_rows_of_a_stream_come_in_the_order_of_measure():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 50)
    predictions = Predictions.from_probabilities(p, rng.integers(0, 3, 50))
    found = [(row.name, row.settings.get("bins")) for row in measure_stream(lambda: [predictions], bins=(5, 10))]
    expected = [(row.name, row.settings.get("bins")) for row in measure(predictions, bins=(5, 10), metrics="all")]
    assert found == [key for key in expected if key in found]


def test_an_empty_table_is_refused():
    with pytest.raises(InputError, match="no rows; pass at least one sample"):
        measure_stream(lambda: [])


# ------------------------------------------------------------------------------------------------------ the accumulator


def test_a_result_can_be_asked_for_at_any_time_and_does_not_disturb_the_state():
    stream = StreamingCalibration(10)
    stream.update([0.25, 0.75], [1, 0])
    before = stream.result()["ece"].value
    assert stream.result()["ece"].value == before == 0.75
    stream.update([0.25, 0.75], [0, 1])
    assert stream.result()["ece"].value == 0.25
    assert stream.result().n == 4


def test_nothing_added_has_no_result():
    with pytest.raises(InputError, match="nothing was added yet; call update"):
        StreamingCalibration().result()


def test_reset_forgets_everything_and_keeps_the_settings():
    stream = StreamingCalibration((5, 10), closed="right", kernels=False)
    stream.update([0.9], [0], [2.5])
    stream.reset()
    with pytest.raises(InputError, match="nothing was added yet"):
        stream.result()
    stream.update([0.2, 0.4], [1, 0])
    fresh = StreamingCalibration((5, 10), closed="right", kernels=False)
    fresh.update([0.2, 0.4], [1, 0])
    same(stream.result(), fresh.result())
    assert {row.settings.get("closed") for row in stream.result()} == {None, "right"}


def test_reset_forgets_rows_as_well():
    stream = StreamingCalibration(classes=2)
    stream.update_probabilities([[0.9, 0.1]], [1], [3.0])
    stream.reset()
    stream.update_probabilities([[0.75, 0.25]], [0])
    assert stream.result()["brier_score"].value == 0.125
    assert stream.result().n == 1


@pytest.mark.parametrize(
    "other",
    [
        lambda: StreamingCalibration(10),
        lambda: StreamingCalibration((15, 10)),
        lambda: StreamingCalibration(closed="right"),
        lambda: StreamingCalibration(classes=3),
        lambda: StreamingCalibration(kernels=False),
    ],
)
def test_accumulators_with_different_settings_do_not_merge(other):
    stream, second = StreamingCalibration(), other()
    stream.update([0.5], [1])
    before = rows_of(stream.result())
    with pytest.raises(InputError, match="use the same settings"):
        stream.merge(second)
    with pytest.raises(InputError, match="use the same settings"):
        second.merge(stream)
    assert rows_of(stream.result()) == before


def test_merging_leaves_the_other_as_it_was_and_an_empty_one_changes_nothing():
    one, other = StreamingCalibration(), StreamingCalibration()
    one.update([0.5, 0.6], [1, 0], [1.0, 2.0])
    other.update([0.25], [1])
    before = rows_of(other.result())
    one.merge(other)
    assert rows_of(other.result()) == before
    assert one.result().n == 3
    after = rows_of(one.result())
    one.merge(StreamingCalibration())
    assert rows_of(one.result()) == after
    empty = StreamingCalibration()
    empty.merge(one)
    assert rows_of(empty.result()) == after


BAD = {
    "confidence": ([0.5, 1.5], [1, 0], None),
    "outcome": ([0.5, 0.6], [1, 2], None),
    "lengths": ([0.5, 0.6], [1], None),
    "weights": ([0.5, 0.6], [1, 0], [1, -1]),
    "number of weights": ([0.5, 0.6], [1, 0], [1]),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_a_refused_update_leaves_the_accumulator_unchanged(bad):
    stream = StreamingCalibration()
    stream.update([0.5, 0.6], [1, 0], [1.0, 2.0])
    before = rows_of(stream.result())
    with pytest.raises(InputError):
        stream.update(*bad)
    assert rows_of(stream.result()) == before


BAD_ROWS = {
    "probabilities": ([[0.5, 0.6]], [0], None),
    "labels": ([[0.5, 0.5]], [2], None),
    "classes": ([[0.5, 0.25, 0.25]], [2], None),
    "weights": ([[0.5, 0.5]], [1], [math.nan]),
}


@pytest.mark.parametrize("bad", BAD_ROWS.values(), ids=BAD_ROWS.keys())
def test_a_refused_update_with_rows_leaves_the_accumulator_unchanged(bad):
    stream = StreamingCalibration(classes=2)
    stream.update_probabilities([[0.75, 0.25]], [0])
    before = rows_of(stream.result())
    with pytest.raises(InputError):
        stream.update_probabilities(*bad)
    with pytest.raises(InputError, match="use update_probabilities"):
        stream.update([0.5], [1])
    with pytest.raises(InputError, match="this accumulator was made for 2"):
        stream.update_predictions(Predictions.from_confidence([0.5], [1]))
    assert rows_of(stream.result()) == before


def test_rows_given_to_an_accumulator_of_confidences_are_refused():
    stream = StreamingCalibration()
    with pytest.raises(InputError, match="made for None"):
        stream.update_probabilities([[0.5, 0.5]], [0])


@pytest.mark.parametrize("classes", [0, 1, -3, 2.5, "x"])
def test_a_number_of_classes_that_cannot_be_is_refused(classes):
    with pytest.raises(InputError, match=r"^classes is .*; pass "):
        StreamingCalibration(classes=classes)


def test_weights_in_some_pieces_and_none_in_others_count_as_ones():
    mixed, ones = StreamingCalibration(), StreamingCalibration()
    mixed.update([0.3, 0.6], [1, 0])
    mixed.update([0.9], [1], [2.0])
    ones.update([0.3, 0.6, 0.9], [1, 0, 1], [1, 1, 2])
    for row, other in zip(mixed.result(), ones.result(), strict=True):
        assert row.value == pytest.approx(other.value, rel=1e-9, abs=1e-12)


def test_floats_of_every_type_share_one_accumulator():
    stream = StreamingCalibration(10)
    for dtype in naive.DTYPES:
        stream.update(np.array([0.3, 0.7], dtype), [1, 0])
    # In every type 0.3 and 0.7 lie on edges, so only two bins are used.
    expected = sum(float(dtype(1) * dtype(0.7)) + 1 - float(dtype(0.3)) for dtype in naive.DTYPES) / 6
    assert stream.result()["ece"].value == pytest.approx(expected, abs=1e-12)


def test_an_infinite_loss_stays_infinite_in_any_piece():
    stream = StreamingCalibration()
    stream.update([1.0], [0])
    stream.update([0.5] * 10, [1] * 10)
    assert stream.result()["top_label_nll"].value == math.inf
    other = StreamingCalibration()
    other.update([1.0, 0.5], [0, 1], [0.0, 1.0])
    assert other.result()["top_label_nll"].value == pytest.approx(math.log(2))


def test_the_state_does_not_grow_with_the_samples():
    def bytes_of(stream):
        arrays = [state.whole for state in stream._bins.values()] + [stream._grid.words]
        return sum(array.nbytes for array in arrays)

    stream = StreamingCalibration()
    before = bytes_of(stream)
    stream.update(np.full(100_000, 0.5), np.ones(100_000))
    assert bytes_of(stream) == before


def test_binary_scores_stream_under_their_own_names_and_are_not_mixed_with_confidences():
    z, y = np.array([0.2, 0.4, 0.9, 0.6]), np.array([0, 1, 1, 0])
    stream = StreamingCalibration(bins=5, scores=True, threshold=0.3)
    stream.update(z[:1], y[:1])
    stream.update_predictions(Predictions.from_scores(z[1:], y[1:]))
    found = stream.result()
    assert (found.kind, found.task) == ("score", "binary")
    assert found["accuracy"].value == 0.75
    assert found["accuracy"].settings["threshold"] == 0.3
    assert found["base_rate"].value == 0.5
    assert found["brier_score"].value == pytest.approx(((z - y) ** 2).mean())
    with pytest.raises(InputError, match=r"of kind 'confidence'; this accumulator was made for 'score'"):
        stream.update_predictions(Predictions.from_confidence(z, y))
    with pytest.raises(InputError, match=r"different bins, closed, classes, kernels, scores or threshold"):
        stream.merge(StreamingCalibration(bins=5, scores=True))
    stream.reset()
    stream.update(z, y)
    assert stream.result()["accuracy"].value == 0.75
    with pytest.raises(InputError, match=r"^threshold: it is for binary scores"):
        StreamingCalibration(threshold=0.3)
