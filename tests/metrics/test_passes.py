"""Tables read in pieces: groups, diagrams and intervals in the same passes, equal to those of the table in memory."""

import math
import tracemalloc

import numpy as np
import pytest

from certcal import InputError, Predictions, measure, metrics
from certcal.binning import BinSums, bin_table, equal_width_edges
from certcal.metrics import StreamingCalibration, measure_stream, reliability, survey_stream
from certcal.metrics._passes import MOST_GROUPS, cell_edges, cell_points
from tests import naive


def scored(n, *, weigh=False, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    z = rng.beta(4, 1.5, n)
    z[: n // 3] = np.round(z[: n // 3], 1)
    c = rng.random(n) < 0.9 * z
    return Predictions.from_confidence(z.astype(dtype), c, rng.gamma(1.0, size=n) if weigh else None)


def classified(n, *, weigh=False, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(3, 0.5), n)
    y = np.where(rng.random(n) < 0.6, p.argmax(axis=1), rng.integers(0, 3, n))
    return Predictions.from_probabilities(p, y, rng.gamma(1.0, size=n) if weigh else None)


def cut(predictions, size, codes=None):
    """Pieces of so many samples, with their groups if there are any."""
    pieces = []
    for start in range(0, len(predictions), size):
        piece = predictions.select(slice(start, start + size))
        pieces.append(piece if codes is None else (piece, codes[start : start + size]))
    return pieces


def assert_same_values(found, expected):
    for row in found:
        twin = expected[row.name, row.settings.get("bins")]
        near = 1e-9 if row.name in ("smooth_ece", "kde_ece") else 1e-12
        assert row.value == pytest.approx(twin.value, rel=near, abs=near + row.settings.get("error_at_most", 0)), row
        assert row.n == twin.n


# --------------------------------------------------------------------------------------------------------------- groups


def peak_of(call):
    """The most bytes that a call has held at once."""
    call()  # what is compiled and loaded on the way does not count
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize("weigh", [False, True])
def test_a_confidence_that_returns_takes_no_more_memory(weigh):
    rng = np.random.default_rng(0)
    z = np.where(rng.random(20_000) < 0.9, 1.0, rng.random(20_000))
    piece = Predictions.from_confidence(z, rng.random(20_000) < 0.8, np.full(20_000, 0.5) if weigh else None)
    few, many = (peak_of(lambda n=n: measure_stream(lambda: [piece] * n)) for n in (1, 40))
    assert many < few + 3_000_000  # 40 pieces hold 720,000 ones, which took 17 MB
    assert math.isclose(*(measure_stream(lambda n=n: [piece] * n)["kuiper_error"].value for n in (1, 40)))


def test_distinct_confidences_that_take_more_than_the_memory_are_refused(monkeypatch):
    monkeypatch.setattr("certcal.metrics._passes.LEAST_MEMORY", 0)
    pieces = cut(Predictions.from_confidence(0.5 + np.arange(200_000) * 1e-12, np.arange(200_000) % 2), 50_000)
    assert survey_stream(lambda: pieces, memory=10**8).measurements.n == 200_000
    with pytest.raises(InputError, match=r"distinct confidences lie so close together .*; allow more, or round"):
        survey_stream(lambda: pieces, memory=10**7)


def test_groups_whose_bins_take_more_than_the_memory_are_refused(monkeypatch):
    monkeypatch.setattr("certcal.metrics._passes.LEAST_MEMORY", 0)
    piece, codes = scored(100), np.arange(100) % 10
    assert len(survey_stream(lambda: [(piece, codes)], bins=1000, memory=10**8).groups) == 10
    with pytest.raises(InputError, match=r"sums in 20000 bins take about .* GB.*fewer bins or groups"):
        survey_stream(lambda: [(piece, codes)], bins=20_000, memory=10**8)


@pytest.mark.parametrize("make", [scored, classified])
@pytest.mark.parametrize("weigh", [False, True])
@pytest.mark.parametrize("closed", ["left", "right"])
def test_the_groups_of_a_table_read_in_pieces_have_the_values_of_each_in_memory(make, weigh, closed):
    predictions = make(300, weigh=weigh)
    # One group is in every piece, one appears late, one has a single sample.
    codes = np.random.default_rng(1).integers(0, 2, 300)
    codes[200:] = np.where(codes[200:] == 0, 2, codes[200:])
    codes[7] = 3
    pieces = cut(predictions, 37, codes)
    found = survey_stream(lambda: iter(pieces), bins=(4, 15), closed=closed, diagram=6)
    assert_same_values(found.measurements, measure(predictions, bins=(4, 15), closed=closed, metrics="all"))
    assert sorted(found.groups) == [0, 1, 2, 3]
    for code, group in found.groups.items():
        part = predictions.select(codes == code)
        assert_same_values(group.measurements, measure(part, bins=(4, 15), closed=closed, metrics="all"))
        z, c, w = part.confidence, part.correct, part.sample_weight
        drawn = reliability(z, c, 6, closed=closed, sample_weight=w)
        assert group.reliability.to_dict() == drawn.to_dict()
        assert group.groups == {}


def test_groups_change_nothing_about_the_whole():
    predictions = scored(200)
    codes = np.arange(200) % 3
    grouped = survey_stream(lambda: cut(predictions, 50, codes))
    plain = survey_stream(lambda: cut(predictions, 50))
    assert repr(grouped.measurements) == repr(plain.measurements) == repr(measure_stream(lambda: cut(predictions, 50)))
    assert grouped.reliability.to_dict() == plain.reliability.to_dict()
    assert plain.groups == {}


def test_a_group_without_weight_is_left_out_and_a_piece_of_it_without_weight_changes_nothing():
    z, c = np.array([0.2, 0.4, 0.6, 0.8, 0.9, 0.3]), np.array([0, 1, 1, 1, 0, 0])
    w, codes = np.array([1.0, 0.0, 2.0, 0.0, 0.0, 3.0]), np.array([0, 0, 0, 1, 0, 0])
    predictions = Predictions.from_confidence(z, c, w)
    found = survey_stream(lambda: cut(predictions, 3, codes), bins=5)
    assert list(found.groups) == [0]
    # The piece with the samples 3, 4, 5 has weight in group 0 only; sample 4 has none and still counts as a sample.
    assert found.groups[0].measurements["ece"].value == metrics.ece(
        z[codes == 0], c[codes == 0], 5, sample_weight=w[codes == 0]
    )


def test_more_groups_than_have_room_are_refused_and_as_many_as_have_it_are_not():
    predictions = scored(MOST_GROUPS + 1)
    codes = np.arange(MOST_GROUPS + 1)
    with pytest.raises(InputError, match=r"more than 100 groups, the most for a table that is read in pieces; choose"):
        survey_stream(lambda: cut(predictions, 30, codes))
    codes[-1] = 0
    assert len(survey_stream(lambda: cut(predictions, 30, codes)).groups) == MOST_GROUPS == 100


# --------------------------------------------------------------------------------------------------------------- passes


@pytest.mark.parametrize("bins", [15, (5, 10, 20)])
def test_everything_takes_three_passes(bins):
    calls = []

    def chunks():
        calls.append(1)
        return cut(scored(100), 30)

    survey_stream(chunks, bins=bins, intervals=True)
    assert len(calls) == 3


@pytest.mark.parametrize("make", [lambda: measure_stream, lambda: survey_stream])
def test_a_table_without_rows_is_refused(make):
    with pytest.raises(InputError, match="no rows; pass at least one sample"):
        make()(lambda: [])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": 2}, "level is 2"),
        ({"diagram": 0}, "diagram is 0"),
        ({"closed": "both"}, "closed is 'both'"),
        ({"bins": []}, "bins is empty"),
    ],
)
def test_bad_requests_are_refused_before_anything_is_read(options, message):
    def chunks():
        raise AssertionError("the table was read")

    with pytest.raises(InputError, match=message):
        survey_stream(chunks, **options)


# -------------------------------------------------------------------------------------------------------------- diagram


@pytest.mark.parametrize("weigh", [False, True])
@pytest.mark.parametrize("closed", ["left", "right"])
@pytest.mark.parametrize("dtype", naive.DTYPES)
def test_the_diagram_of_a_table_read_in_pieces_is_that_of_the_whole(weigh, closed, dtype):
    predictions = scored(300, weigh=weigh, dtype=dtype)
    found = survey_stream(lambda: cut(predictions, 41), diagram=10, closed=closed).reliability
    z, c, w = predictions.confidence, predictions.correct, predictions.sample_weight
    assert found.to_dict() == reliability(z, c, 10, closed=closed, sample_weight=w).to_dict()


def test_the_isotonic_band_of_a_table_read_in_pieces_is_refused():
    with pytest.raises(ValueError, match="isotonic band needs all samples at once"):
        survey_stream(lambda: cut(scored(40), 9), band="isotonic")


def test_an_accumulator_has_the_diagram_of_each_of_its_bin_counts():
    predictions = scored(200)
    stream = StreamingCalibration((4, 10), closed="right")
    with pytest.raises(InputError, match="nothing was added yet"):
        stream.reliability()
    stream.update_predictions(predictions)
    for bins in (4, 10):
        expected = reliability(predictions.confidence, predictions.correct, bins, closed="right")
        assert stream.reliability(bins).to_dict() == expected.to_dict()
    assert stream.reliability().to_dict() == stream.reliability(4).to_dict()
    with pytest.raises(InputError, match="bins is 7; this accumulator was made with 4, 10"):
        stream.reliability(7)


# ------------------------------------------------------------------------------------------------------------ intervals


@pytest.mark.parametrize("dtype", naive.DTYPES)
@pytest.mark.parametrize("closed", ["left", "right"])
def test_cells_add_up_to_the_bins_of_every_bin_count(dtype, closed):
    rng = np.random.default_rng(3)
    tenths, ends = rng.integers(0, 31, 400) / 30, np.array([0.0, 1.0, 1 / 3, 2 / 3])
    z = np.concatenate((tenths, ends, rng.random(600), 1 - 10.0 ** -rng.uniform(1, 8, 300))).astype(dtype)
    c = (rng.random(z.size) < 0.6).astype(np.uint8)
    counts = (1, 3, 15, 500, 3000)
    state = BinSums(cell_edges(counts), closed)
    state.add(z[:700], c[:700])
    state.add(z[700:], c[700:])
    mean, outcome, cell, often = cell_points(state)
    assert often.sum() == z.size
    for bins in counts:
        where = np.searchsorted(np.searchsorted(state.edges, equal_width_edges(bins)), cell, side="right") - 1
        expected = bin_table(z, c, equal_width_edges(bins), closed)
        np.testing.assert_array_equal(np.bincount(where, often, bins), expected.count)
        np.testing.assert_array_equal(np.bincount(where, often * outcome, bins), expected.correct_sum)
        sums = np.bincount(where, often * mean, bins)
        np.testing.assert_allclose(sums, expected.confidence_sum, rtol=1e-12, atol=1e-12)


def test_cells_are_narrow_and_hold_one_outcome_each():
    predictions = scored(5000)
    state = BinSums(cell_edges((15,)), "left")
    state.add(predictions.confidence, predictions.correct)
    assert np.diff(state.edges).max() <= 1 / 2048
    mean, outcome, cell, often = cell_points(state)
    assert (often * outcome).sum() == predictions.correct.sum()
    # Sums are rounded to multiples of 2**-50.
    assert (mean >= state.edges[cell] - 1e-15).all()
    assert (mean <= state.edges[cell + 1] + 1e-15).all()


def test_intervals_do_not_depend_on_how_the_table_was_cut():
    predictions = scored(500)
    one = measure_stream(lambda: cut(predictions, 500), bins=(5, 15), intervals=True)
    for size in (1, 77):
        other = measure_stream(lambda size=size: cut(predictions, size), bins=(5, 15), intervals=True)
        assert [row.interval for row in other] == [row.interval for row in one]


def test_rows_that_need_all_samples_and_rows_with_weights_have_no_interval():
    rows = measure_stream(lambda: cut(classified(100), 30), intervals=True)
    without = {row.name for row in rows if row.interval is None}
    assert without == {"classwise_ece", "top_label_nll", "brier_score", "nll"}
    weighted = measure_stream(lambda: cut(scored(100, weigh=True), 30), intervals=True)
    assert all(row.interval is None for row in weighted)
    assert all(row.interval is None for row in measure_stream(lambda: cut(scored(100), 30)))


def test_closed_intervals_of_pieces_are_those_of_the_whole():
    predictions = scored(3000)
    found = measure_stream(lambda: cut(predictions, 700), intervals=True)
    whole = measure(predictions, bootstrap=10, metrics="all")
    for row in found:
        if row.name != "top_label_nll":
            mine, theirs = row.interval, whole[row.name].interval
            assert (mine.lower, mine.upper) == pytest.approx((theirs.lower, theirs.upper), abs=2e-4), row.name
            assert mine.method == theirs.method


def test_groups_have_intervals_of_their_own():
    predictions = scored(300)
    codes = np.arange(300) % 2
    found = survey_stream(lambda: cut(predictions, 64, codes), intervals=True)
    for code in (0, 1):
        alone = measure_stream(lambda code=code: [predictions.select(codes == code)], intervals=True)
        assert [row.interval for row in found.groups[code].measurements] == [row.interval for row in alone]
