"""The sampler: the counts of a slow twin, the same however the work is cut, and failures that name the sample."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from certcal import InputError
from certcal._kernels.counting import add_confidences, add_votes
from certcal.smoothing import Sampler, SamplingError, default_thresholds
from certcal.smoothing._noise import gaussian_scale
from tests.smoothing import naive

RNG = np.random.default_rng(0)
WEIGHTS = RNG.normal(size=(3, 6)).astype(np.float32)
POINTS = (RNG.integers(0, 256, (5, 2, 3)) / 255).astype(np.float32)
INDICES = np.array([3, 0, 900, 7, 2**32 - 1])
CLASSES = np.array([0, 1, 2, 1, 0])


@dataclass
class Plain:
    """A function as a model that remembers the shapes it saw."""

    function: Callable[[np.ndarray], Any]
    outputs: str = "logits"

    def __post_init__(self) -> None:
        self.shapes: list[tuple[int, ...]] = []

    def __call__(self, batch: np.ndarray) -> Any:
        self.shapes.append(batch.shape)
        assert batch.dtype == np.float32
        return self.function(batch)


def linear(batch: np.ndarray) -> np.ndarray:
    """Logits whose bits for a row do not depend on other rows."""
    flat = batch.reshape(len(batch), -1)
    return np.stack([4 * (flat * row).sum(axis=1) for row in WEIGHTS], axis=1)


def probabilities(batch: np.ndarray) -> np.ndarray:
    logits = linear(batch).astype(np.float64)
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def sampler(function: Any = linear, outputs: str = "logits", **changes: Any) -> Sampler:
    settings: dict[str, Any] = {"sigma": 0.5, "seed": 5, "batch": 16} | changes
    return Sampler(Plain(function, outputs), **settings)


def as_lists(tally: Any) -> list[Any]:
    return [getattr(tally, name).tolist() for name in tally.__dataclass_fields__]


@pytest.mark.parametrize("noise", ["gaussian", "exact"])
@pytest.mark.parametrize(("function", "outputs"), [(linear, "logits"), (probabilities, "probabilities")])
def test_counts_are_those_of_the_slow_twin(noise: str, function: Any, outputs: str) -> None:
    made = sampler(function, outputs, noise=noise)
    tally = made.count(POINTS, INDICES, CLASSES, 10, 40)
    selection = made.select(POINTS, INDICES, 20)
    for place, index in enumerate(INDICES.tolist()):

        def noisy(stage: int, draw: int, index: int = index, place: int = place) -> np.ndarray:
            if noise == "gaussian":
                return naive.noisy(POINTS[place], lambda c: naive.gaussian(5, index, stage, draw, c), 0.5)
            levels = np.rint(POINTS[place] * 255).reshape(-1)
            moved = [k + naive.whole_number(5, index, stage, draw, c, 0.5) for c, k in enumerate(levels)]
            return (np.array(moved) / 255).astype(np.float32).reshape(2, 3)

        rows = function(np.stack([noisy(1, draw) for draw in range(10, 40)])).tolist()
        votes, invalid, histogram = naive.tally(rows, outputs == "logits", int(CLASSES[place]), default_thresholds())
        total, every, _ = naive.tally_of_all(rows, outputs == "logits", int(CLASSES[place]), [], default_thresholds())
        assert tally.class_votes[place].tolist() == every
        assert abs(tally.sums[place] - total) <= 30 * 2**30 * 1e-5  # the noise of the twin is of more digits
        assert (tally.votes[place], tally.invalid[place]) == (votes, invalid)
        assert tally.histogram[place].tolist() == histogram
        chosen = np.argmax(function(np.stack([noisy(0, draw) for draw in range(20)])), axis=1)
        assert selection.votes[place].tolist() == np.bincount(chosen, minlength=3).tolist()
    assert selection.invalid.tolist() == [0] * 5


@pytest.mark.parametrize("noise", ["gaussian", "exact"])
@pytest.mark.parametrize("batch", [1, 2, 3, 7, 16, 150, 151, 500])
def test_counts_do_not_depend_on_the_batch_size(batch: int, noise: str) -> None:
    expected = sampler(noise=noise).count(POINTS, INDICES, CLASSES, 5, 35)
    assert as_lists(sampler(noise=noise, batch=batch).count(POINTS, INDICES, CLASSES, 5, 35)) == as_lists(expected)
    chosen = sampler(noise=noise).select(POINTS, INDICES, 11)
    assert as_lists(sampler(noise=noise, batch=batch).select(POINTS, INDICES, 11)) == as_lists(chosen)


def test_counts_do_not_depend_on_order_company_or_cutting() -> None:
    whole = sampler().count(POINTS, INDICES, CLASSES, 0, 60)
    order = np.array([4, 2, 0, 3, 1])
    turned = sampler().count(POINTS[order], INDICES[order], CLASSES[order], 0, 60)
    for name in ("votes", "invalid", "histogram"):
        np.testing.assert_array_equal(getattr(turned, name), getattr(whole, name)[order])
        parts = [sampler().count(POINTS, INDICES, CLASSES, a, b) for a, b in [(0, 1), (1, 37), (37, 60)]]
        np.testing.assert_array_equal(sum(getattr(part, name) for part in parts), getattr(whole, name))
        for place in range(5):
            one = slice(place, place + 1)
            alone = sampler().count(POINTS[one], INDICES[one], CLASSES[one], 0, 60)
            np.testing.assert_array_equal(getattr(alone, name)[0], getattr(whole, name)[place])


def test_another_seed_sample_or_stage_is_other_noise() -> None:
    seen: list[np.ndarray] = []

    def keeping(batch: np.ndarray) -> np.ndarray:
        seen.append(batch.copy())
        return linear(batch)

    point = POINTS[:1]
    for seed in (0, 1):
        for index in (0, 1):
            made = sampler(keeping, seed=seed)
            made.select(point, np.array([index]), 16)
            made.count(point, np.array([index]), CLASSES[:1], 0, 16)
    rows = np.concatenate(seen).reshape(-1, 6)
    assert len(rows) == 8 * 16
    assert len(np.unique(rows, axis=0)) == len(rows)


@pytest.mark.parametrize("sigma", [0.12, 0.1, 0.25, 1 / 3, 0.7, 1e-30, 1e-50, 3e7 + 0.1])
def test_noise_is_never_of_a_smaller_sigma_than_certificates_use(sigma: float) -> None:
    scale = float(gaussian_scale(sigma))
    assert sigma <= scale <= sigma * (1 + 2.0**-23) + 2.0**-149
    seen: list[np.ndarray] = []

    def keeping(batch: np.ndarray) -> np.ndarray:
        seen.append(batch.copy())
        return np.zeros((len(batch), 2))

    origin = np.zeros((1, 4), np.float32)
    for used in (sigma, 1.0):
        sampler(keeping, sigma=used, batch=50).count(origin, np.array([0]), np.array([0]), 0, 50)
    np.testing.assert_array_equal(seen[0], np.float32(scale) * seen[1])


def test_a_model_only_ever_sees_full_batches_of_one_shape() -> None:
    made = sampler(batch=16)
    made.select(POINTS, INDICES, 7)
    made.count(POINTS, INDICES, CLASSES, 0, 3)
    made.count(POINTS[:1], INDICES[:1], CLASSES[:1], 0, 1)
    assert set(made.model.shapes) == {(16, 2, 3)}  # type: ignore[attr-defined]
    assert len(made.model.shapes) == 3 + 1 + 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("noise", ["gaussian", "exact"])
def test_votes_of_a_linear_classifier_agree_with_its_probability(noise: str) -> None:
    """A half-space at distance m has probability Φ(m/σ), in the discrete case to 1e-6: two hundred thousand draws."""
    normal = np.array([3, -1, 2, 0.5, -2, 1], np.float32)

    def half_space(batch: np.ndarray) -> np.ndarray:
        side = (batch.reshape(len(batch), -1) * normal).sum(axis=1) - np.float32(1.1)
        return np.stack([side, -side], axis=1)

    votes = sampler(half_space, noise=noise, batch=500).count(POINTS, INDICES, np.zeros(5, int), 0, 40_000).votes
    margins = (POINTS.reshape(5, 6) @ normal - 1.1) / (0.5 * np.linalg.norm(normal))
    for count, probability in zip(votes, special.ndtr(margins), strict=True):
        assert stats.binomtest(int(count), 40_000, probability).pvalue > 0.001


@given(
    rows=st.lists(
        st.lists(st.floats(-40, 40, width=32) | st.sampled_from([np.nan, np.inf, -np.inf]), min_size=3, max_size=3),
        min_size=1,
        max_size=8,
    ),
    chosen=st.integers(0, 2),
    wide=st.booleans(),
)
def test_logits_are_counted_as_the_slow_twin_does(rows: list[list[float]], chosen: int, wide: bool) -> None:
    outputs = np.array(rows, np.float64 if wide else np.float32)
    assert counted(outputs, True, chosen, [0.1, 0.5, 0.9]) == naive.tally(rows, True, chosen, [0.1, 0.5, 0.9])


@given(
    rows=st.lists(
        st.lists(st.sampled_from([0, 0.1, 0.25, 0.5, 0.75, 1, -1e-9, 1.1, np.nan, 1 / 3]), min_size=3, max_size=3),
        min_size=1,
        max_size=8,
    ),
    chosen=st.integers(0, 2),
)
def test_probabilities_are_counted_as_the_slow_twin_does(rows: list[list[float]], chosen: int) -> None:
    levels = [0.1, 0.25, 0.5, 1 / 3 + 0.5]
    assert counted(np.array(rows, np.float64), False, chosen, levels) == naive.tally(rows, False, chosen, levels)


def counted(outputs: np.ndarray, logits: bool, chosen: int, levels: list[float]) -> tuple[int, int, list[int]]:
    """Votes, invalid rows and histogram; sums, votes of all classes and other histograms are those of the slow twin."""
    rows, thresholds, k = len(outputs), np.array(levels), outputs.shape[1]
    others = np.array([[(chosen + 1) % k]])
    invalid, sums, histogram, votes, more = (
        np.zeros((1, *shape), int) for shape in ((), (), (len(levels) + 1,), (k,), (2, len(levels) + 1))
    )
    how = (logits, 1e-6, 1e-3, np.array([chosen]), others, thresholds, 2.0**30)
    add_confidences(outputs, rows, 0, rows, *how, votes, invalid, sums, histogram, more)
    every, without = np.zeros((1, k), int), np.zeros(1, int)
    add_votes(outputs, rows, 0, rows, logits, 1e-6, 1e-3, every, without)
    assert (every.tolist(), without[0]) == (votes.tolist(), invalid[0])
    assert every.sum() + without[0] == rows
    twin = naive.tally_of_all(outputs.tolist(), logits, chosen, others[0].tolist(), levels)
    assert (votes[0].tolist(), more[0, :1].tolist()) == (twin[1], twin[2][:1])
    assert abs(int(sums[0]) - twin[0]) <= (rows if logits else 0)  # the last bits of a softmax are its own
    assert np.abs(np.cumsum(more[0, 1]) - np.cumsum(twin[2][1])).sum() <= (rows if logits else 0)
    return int(votes[0, chosen]), int(invalid[0]), histogram[0].tolist()


def test_a_confidence_on_a_threshold_is_at_least_that_threshold() -> None:
    levels = default_thresholds()
    for j, t in enumerate(levels):
        for value, cell in ((np.nextafter(t, 0), j), (t, j + 1), (np.nextafter(t, 1), j + 1)):
            histogram = counted(np.array([[value, 1 - value]]), False, 0, levels.tolist())[2]
            assert histogram.index(1) == cell


def test_a_confidence_of_nought_or_one_is_in_the_first_or_the_last_cell() -> None:
    levels = default_thresholds().tolist()
    assert counted(np.array([[0.0, 1.0], [1.0, 0.0]]), False, 0, levels)[2] == [1, *[0] * 254, 1]
    assert counted(np.array([[-3e38, 3e38], [3e38, -3e38]]), True, 0, levels)[2] == [1, *[0] * 254, 1]
    assert counted(np.array([[-1e308, 1e308], [1e308, -1e308]]), True, 0, levels)[2] == [1, *[0] * 254, 1]


def test_among_equal_outputs_the_lowest_class_has_the_vote() -> None:
    outputs = np.array([[2.0, 2.0, 2.0], [1.0, 2.0, 2.0]])
    assert [counted(outputs, True, k, [0.5])[0] for k in range(3)] == [1, 1, 0]


def test_a_sum_of_probabilities_that_is_not_one_is_no_prediction() -> None:
    assert counted(np.array([[0.6, 0.6], [0.6, 0.4009], [0.6, 0.4011]]), False, 0, [0.5])[:2] == (1, 2)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_outputs_that_are_no_prediction_count_against_the_class(bad: float) -> None:
    def sometimes(batch: np.ndarray) -> np.ndarray:
        outputs = np.tile(np.float32([5, 0, 0]), (len(batch), 1))
        outputs[batch.reshape(len(batch), -1)[:, 0] > 0.5, 2] = bad
        return outputs

    points = np.full((2, 2, 3), 0.5, np.float32)
    tally = sampler(sometimes).count(points, np.array([0, 1]), np.array([0, 0]), 0, 400)
    assert (tally.votes + tally.invalid == 400).all()
    assert ((tally.invalid > 150) & (tally.invalid < 250)).all()
    np.testing.assert_array_equal(tally.histogram[:, 0], tally.invalid)
    np.testing.assert_array_equal(tally.histogram.sum(axis=1), 400)
    selection = sampler(sometimes).select(points, np.array([0, 1]), 400)
    np.testing.assert_array_equal(selection.votes.sum(axis=1) + selection.invalid, 400)
    assert (selection.votes[:, 1:] == 0).all()


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.int64])
def test_outputs_of_any_number_type_are_read(kind: Any) -> None:
    made = sampler(lambda batch: np.tile(np.array([1, 0, 3]), (len(batch), 1)).astype(kind))
    assert made.select(POINTS, INDICES, 4).votes.tolist() == [[0, 0, 4]] * 5


def test_a_model_that_raises_is_named_with_the_sample_it_raises_on() -> None:
    def fussy(batch: np.ndarray) -> np.ndarray:
        if np.any(batch > 50):
            raise ZeroDivisionError("too far out\nin many words")
        return linear(batch)

    points = POINTS.copy()
    points[3] += 100
    with pytest.raises(SamplingError) as caught:
        sampler(fussy, batch=1000).count(points, INDICES, CLASSES, 0, 10)
    assert str(caught.value) == (
        "the model failed on sample 7: ZeroDivisionError: too far out; "
        "check that it accepts float32 batches of shape (1000, 2, 3)"
    )
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert isinstance(caught.value, InputError)


def test_a_sentence_of_the_model_itself_is_kept_as_it_is() -> None:
    def particular(batch: np.ndarray) -> np.ndarray:
        raise InputError("it takes samples of shape (9,); reshape the inputs")

    with pytest.raises(SamplingError) as caught:
        sampler(particular).count(POINTS, INDICES, CLASSES, 0, 10)
    assert str(caught.value) == "the model failed on sample 3: it takes samples of shape (9,); reshape the inputs"


def test_a_model_that_raises_on_mixed_batches_only_is_named_with_all_their_samples() -> None:
    def unsociable(batch: np.ndarray) -> np.ndarray:
        if np.ptp(np.rint(batch / 1000)) > 0:
            raise RuntimeError
        return linear(batch)

    points = POINTS + 1000 * np.arange(5, dtype=np.float32)[:, None, None]
    with pytest.raises(SamplingError, match=r"failed on a batch of samples 3 to 4294967295: RuntimeError; check"):
        sampler(unsociable, batch=50).count(points, INDICES, CLASSES, 0, 10)


def test_an_interrupted_model_stays_interrupted() -> None:
    def stopped(batch: np.ndarray) -> np.ndarray:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sampler(stopped).select(POINTS, INDICES, 5)


@pytest.mark.parametrize(
    ("returned", "complaint"),
    [
        (
            lambda b: np.zeros(len(b)),
            "the model returned shape (16,) for a batch of 16 inputs that begins with sample 3; ",
        ),
        (lambda b: np.zeros((len(b), 1)), "the model returned shape (16, 1) for a batch of 16 inputs"),
        (lambda b: np.zeros((1, 3)), "the model returned shape (1, 3) for a batch of 16 inputs"),
        (lambda b: np.zeros((len(b), 3, 1)), "the model returned shape (16, 3, 1) for a batch of 16 inputs"),
        (lambda b: None, "sample 3: the model's output is None, not a number"),
        (lambda b: [["a", "b"]] * len(b), "sample 3: the model's output[0, 0] is 'a', not a number"),
    ],
)
def test_outputs_of_another_shape_or_kind_are_refused_with_the_sample(returned: Any, complaint: str) -> None:
    with pytest.raises(SamplingError) as caught:
        sampler(returned).select(POINTS, INDICES, 5)
    assert str(caught.value).startswith(complaint)


def test_a_number_of_classes_that_changes_is_refused() -> None:
    widths = iter([3, 3, 4])
    with pytest.raises(SamplingError) as caught:
        sampler(lambda batch: np.zeros((len(batch), next(widths)))).select(POINTS, INDICES, 16)
    assert str(caught.value) == (
        "the model returned 4 classes for sample 900 and 3 before; it must return the same number for every batch"
    )


def test_a_class_that_the_model_does_not_have_is_refused() -> None:
    with pytest.raises(InputError, match=r"classes\[2\] is 3, but the model has 3 classes; pass numbers from 0 to 2"):
        sampler().count(POINTS, INDICES, np.array([0, 1, 3, 1, 2]), 0, 5)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"sigma": 0}, "sigma is 0.0; pass a positive finite number"),
        ({"sigma": "x"}, "sigma is 'x'; pass a positive number"),
        ({"sigma": 1e39}, "sigma is 1e+39; pass a number up to 3.40282e+38"),
        ({"seed": -1}, "seed is -1; pass a whole number from 0 to 2**64 - 1"),
        ({"seed": 2**64}, "seed is 18446744073709551616; pass a whole number from 0 to 2**64 - 1"),
        ({"noise": "pink"}, "noise is 'pink'; pass one of 'gaussian', 'exact'"),
        ({"batch": 0}, "batch is 0; pass a whole number of inputs per batch, at least 1"),
        ({"thresholds": [2]}, "thresholds[0] is 2.0; pass numbers strictly between 0 and 1"),
        (
            {"noise": "exact", "sigma": 5},
            "sigma is 5.0, too large for exact noise; pass at most 4 or use Gaussian noise",
        ),
    ],
)
def test_settings_that_cannot_be_used_are_refused(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError) as caught:
        sampler(**changes)
    assert str(caught.value) == complaint


def test_a_model_that_does_not_say_what_it_returns_is_refused() -> None:
    with pytest.raises(InputError, match=r"model \(function\) does not say whether it returns logits or probabilities"):
        Sampler(linear, sigma=0.5, seed=0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("inputs", "indices", "complaint"),
    [
        (np.zeros((0, 2)), np.zeros(0, int), "inputs has shape (0, 2); pass one row of coordinates per sample"),
        (np.zeros(3), np.arange(3), "inputs has shape (3,); pass one row of coordinates per sample"),
        (
            np.zeros((2, 2)),
            np.arange(3),
            "indices has shape (3,) and dtype int64; pass 2 whole numbers, one per sample",
        ),
        (
            np.zeros((2, 2)),
            np.zeros(2),
            "indices has shape (2,) and dtype float64; pass 2 whole numbers, one per sample",
        ),
        (np.zeros((2, 2)), [0, -1], "indices[1] is -1; pass whole numbers from 0 to 2**32 - 1"),
        (np.zeros((2, 2)), [0, 2**32], "indices[1] is 4294967296; pass whole numbers from 0 to 2**32 - 1"),
        ([[0, 1], [np.nan, 0]], [4, 8], "sample 8 has a coordinate nan; drop it or repair it"),
    ],
)
def test_inputs_that_cannot_be_used_are_refused(inputs: Any, indices: Any, complaint: str) -> None:
    with pytest.raises(InputError) as caught:
        sampler().select(inputs, indices, 5)
    assert str(caught.value) == complaint


@pytest.mark.parametrize(("start", "stop"), [(-1, 5), (5, 5), (6, 5), (0, 0), (0, 2**32 + 1), (0.5, 5)])
def test_a_range_without_draws_is_refused(start: Any, stop: Any) -> None:
    with pytest.raises(InputError, match=r"^(start|stop) is "):
        sampler().count(POINTS, INDICES, CLASSES, start, stop)


def test_exact_noise_refuses_inputs_off_the_grid_with_the_sample() -> None:
    points = POINTS.copy()
    points[2, 0, 0] = 0.5
    with pytest.raises(InputError, match=r"^sample 900 is not on the grid k/255: its coordinate \[0, 0\] is 0.5; "):
        sampler(noise="exact").select(points, INDICES, 5)


def test_exact_noise_passes_only_points_of_the_grid_to_the_model() -> None:
    seen: list[np.ndarray] = []

    def keeping(batch: np.ndarray) -> np.ndarray:
        seen.append(batch.copy())
        return linear(batch)

    sampler(keeping, noise="exact").count(POINTS, INDICES, CLASSES, 0, 50)
    values = np.concatenate(seen)
    np.testing.assert_array_equal(values, (np.rint(values.astype(np.float64) * 255) / 255).astype(np.float32))
