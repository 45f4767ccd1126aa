"""Slope, intercept, observed over expected, Spiegelhalter's z, ICI and net benefit of a binary score."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit
from scipy.stats import binom, norm
from sklearn.linear_model import LogisticRegression

from certcal import InputError, measure
from certcal.metrics import (
    Evidence,
    calibration_intercept,
    calibration_slope,
    decision_curve,
    e50,
    e90,
    ici,
    net_benefit,
    observed_expected_ratio,
    spiegelhalter_p,
    spiegelhalter_z,
)
from certcal.metrics._intervals import rate_ends
from certcal.metrics.binary import RATIO, OutcomeRegression, ratio_ends
from certcal.metrics.loess import POINTS, CalibrationCurve
from tests import naive

CLOSE = {"rel": 1e-12, "abs": 1e-12, "nan_ok": True}
# Half of the failure probability of a level of 95 %.
TAIL = 0.025


def scored(seed, n=200, alpha=2.0, beta=2.0, slope=1.0, shift=0.0, weighted=False):
    """Scores, outcomes and perhaps weights; log-odds of the outcome are shift + slope · logit(score)."""
    rng = np.random.default_rng(seed)
    s = rng.beta(alpha, beta, n)
    y = (rng.random(n) < expit(shift + slope * logit(s))).astype(np.uint8)
    return s, y, rng.gamma(2.0, 1.0, n) if weighted else None


# ---------------------------------------------------------------------------------------------------------- definitions


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("alpha", "beta", "slope", "shift"), [(2, 2, 1, 0), (1, 9, 0.5, -1), (0.5, 0.5, 2, 0.7)])
def test_the_line_is_that_of_the_largest_likelihood(alpha, beta, slope, shift, weighted):
    s, y, w = scored(3, 300, alpha, beta, slope, shift, weighted)
    intercept, found = naive.calibration_line(s, y, w)
    assert calibration_slope(s, y, sample_weight=w) == pytest.approx(found, abs=1e-6)
    assert calibration_intercept(s, y, joint=True, sample_weight=w) == pytest.approx(intercept, abs=1e-6)
    (alone,) = naive.calibration_line(s, y, w, slope=1.0)
    assert calibration_intercept(s, y, sample_weight=w) == pytest.approx(alone, abs=1e-6)


def test_the_line_is_that_of_another_library():
    s, y, w = scored(5, 2000, 1, 6, 0.8, 0.3, weighted=True)
    model = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(logit(s)[:, None], y, sample_weight=w)
    assert calibration_slope(s, y, sample_weight=w) == pytest.approx(model.coef_[0, 0], abs=1e-6)
    assert calibration_intercept(s, y, joint=True, sample_weight=w) == pytest.approx(model.intercept_[0], abs=1e-6)


def test_two_groups_of_scores_have_a_line_that_can_be_worked_out_by_hand():
    # Rates 1/4 and 1/2 at scores 0.2 and 0.8: the line passes through both log-odds.
    s = np.repeat([0.2, 0.8], [4, 2])
    y = [1, 0, 0, 0, 1, 0]
    assert calibration_slope(s, y) == pytest.approx(math.log(3) / (2 * math.log(4)), rel=1e-12)
    assert calibration_intercept(s, y, joint=True) == pytest.approx(-math.log(3) / 2, rel=1e-12)


@given(naive.weighted(30))
def test_sums_over_samples_agree_with_their_definitions(data):
    s, y, w = data
    ratio = observed_expected_ratio(s, y, sample_weight=w)
    assert ratio == pytest.approx(naive.observed_expected_ratio(s, y, w), **CLOSE)
    # Terms cancel, so what is close is the sum in units of its largest possible value.
    expected = naive.spiegelhalter_z(s, y, w)
    z = s.astype(np.float64)
    heavy = np.ones(z.size) if w is None else w
    spread = math.sqrt(float((heavy**2 * (1 - 2 * z) ** 2 * z * (1 - z)).sum()))
    if spread > 1e-9 * heavy.max():
        assert spiegelhalter_z(s, y, sample_weight=w) == pytest.approx(
            expected, rel=1e-9, abs=1e-12 * float(heavy.sum()) / spread
        )


def test_spiegelhalter_by_hand():
    # Gaps -0.08, 0.48, -0.12, 0.72 against a variance of 0.2304.
    assert spiegelhalter_z([0.1, 0.2, 0.8, 0.9], [0, 1, 1, 0]) == pytest.approx(1 / 0.48, rel=1e-12)
    assert spiegelhalter_p([0.1, 0.2, 0.8, 0.9], [0, 1, 1, 0]) == pytest.approx(2 * norm.sf(1 / 0.48), rel=1e-12)


def test_spiegelhalters_test_rejects_calibrated_scores_as_often_as_it_says():
    rejected = [spiegelhalter_p(*scored(seed, 400, 1, 4)[:2]) < 0.05 for seed in range(1000)]
    assert 0.03 < np.mean(rejected) < 0.07


@settings(max_examples=15)
@given(st.integers(0, 2**32), st.integers(1, 60), st.booleans(), st.booleans())
def test_the_smoothed_curve_agrees_with_its_definition(seed, n, weighted, tied):
    s, y, w = scored(seed, n, weighted=weighted)
    s = np.round(s, 1) if tied else s
    gaps = np.abs(np.array(naive.loess(s, y - s, w)))
    assert ici(s, y, sample_weight=w) == pytest.approx(float(np.average(gaps, weights=w)), abs=1e-7)
    curve = CalibrationCurve(s, y, w)
    assert np.abs(np.sort(np.abs(curve.gap)) - np.sort(gaps)).max() < 1e-6
    if not weighted:
        assert e50(s, y) == pytest.approx(float(np.median(gaps)), abs=1e-6)
        assert e90(s, y) == pytest.approx(float(np.quantile(gaps, 0.9, method="averaged_inverted_cdf")), abs=1e-6)


# speed and stopping distance of 50 cars (Ezekiel 1930), and what the documentation of predict.loess in R prints for
# loess(dist ~ speed, cars), at the speeds where R computes it rather than interpolates.
SPEED = np.repeat(
    [4, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 22, 23, 24, 25],
    [2, 2, 1, 1, 3, 2, 4, 4, 4, 3, 2, 3, 4, 3, 5, 1, 1, 4, 1],
)
SLOW = [2, 10, 4, 22, 16, 10, 18, 26, 34, 17, 28, 14, 20, 24, 28, 26, 34, 34, 46, 26, 36, 60, 80, 20, 26]
FAST = [54, 32, 40, 32, 40, 50, 42, 56, 76, 84, 36, 46, 68, 32, 48, 52, 56, 64, 66, 54, 70, 92, 93, 120, 85]
DISTANCE = np.array([*SLOW, *FAST], np.float64)
PUBLISHED = {8: 15.281082, 10: 21.865315, 12: 29.350386, 13: 33.230660, 14: 37.167935, 19: 51.986702, 22: 68.569313}


def test_the_smoother_gives_the_published_values_of_loess():
    fitted = CalibrationCurve(SPEED / 25, np.zeros(50, np.uint8), None).smoother @ DISTANCE
    found = {speed: fitted[int(np.argmax(speed == SPEED))] for speed in PUBLISHED}
    assert found == pytest.approx(PUBLISHED, abs=5e-7)


def test_many_samples_have_the_curve_of_all_of_them(monkeypatch):
    s, y, w = scored(1, 1700, 1, 5, 0.7, weighted=True)
    runs = [f(s, y, sample_weight=w) for f in (ici, e50, e90)]
    monkeypatch.setattr("certcal.metrics.loess.POINTS", 2000)
    alone = [f(s, y, sample_weight=w) for f in (ici, e50, e90)]
    assert runs == pytest.approx(alone, rel=2e-2)
    assert runs != alone
    assert POINTS < 1700 < 2000


@given(naive.weighted(30), st.floats(0.01, 0.99))
def test_net_benefit_counts_events_and_unnecessary_actions(data, threshold):
    s, y, w = data
    found = net_benefit(s, y, threshold, sample_weight=w)
    assert found == pytest.approx(naive.net_benefit(s, y, threshold, w), rel=1e-9, abs=1e-9)


def test_acting_on_all_samples_is_the_curve_of_a_score_above_all_thresholds():
    _, y, w = scored(2, weighted=True)
    curve = decision_curve(np.ones(y.size), y, sample_weight=w)
    assert curve.net_benefit == pytest.approx(curve.treat_all, abs=1e-12)
    # At 10 %, of 25 events in a hundred: 0.25 - 0.75 / 9.
    assert decision_curve([0.5] * 4, [1, 0, 0, 0], [0.1]).treat_all[0] == pytest.approx(1 / 6, rel=1e-12)


# ------------------------------------------------------------------------------------------------------------ laws


@st.composite
def swappable(draw):
    """Scores whose complement is exact, outcomes, and weights or None."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(4, 40))
    s = rng.integers(draw(st.sampled_from([0, 1])), 65, n) / 64
    y = (rng.random(n) < 0.2 + 0.6 * s).astype(np.uint8)
    return s, y, draw(st.sampled_from([None, rng.integers(0, 4, n).astype(np.float64) + 0.5]))


@given(swappable())
def test_calling_the_other_class_1_keeps_slope_and_z_and_turns_the_intercept(data):
    s, y, w = data
    near = {"rel": 1e-8, "abs": 1e-8, "nan_ok": True}
    other = (1 - s, 1 - y)
    assert calibration_slope(*other, sample_weight=w) == pytest.approx(calibration_slope(s, y, sample_weight=w), **near)
    for joint in (False, True):
        turned = calibration_intercept(*other, joint=joint, sample_weight=w)
        assert turned == pytest.approx(-calibration_intercept(s, y, joint=joint, sample_weight=w), **near)
    for metric in (spiegelhalter_z, spiegelhalter_p, ici, e50, e90):
        assert metric(*other, sample_weight=w) == pytest.approx(
            metric(s, y, sample_weight=w), rel=1e-6, abs=1e-6, nan_ok=True
        )


@given(swappable(), st.integers(0, 2**32))
def test_order_and_unit_of_weights_do_not_matter_and_whole_weights_are_repetitions(data, seed):
    s, y, _ = data
    rng = np.random.default_rng(seed)
    times = rng.integers(0, 3, s.size)
    times[0] += 1
    order = rng.permutation(s.size)
    metrics = (calibration_slope, calibration_intercept, observed_expected_ratio, ici, e50, e90)
    for metric in metrics:
        plain = metric(np.repeat(s, times), np.repeat(y, times))
        near = {"rel": 1e-6, "abs": 1e-6, "nan_ok": True}
        assert metric(s[order], y[order], sample_weight=8.0 * times[order]) == pytest.approx(plain, **near)


@given(swappable(), st.floats(-1, 1), st.floats(0.5, 2))
def test_a_score_moved_along_the_line_has_the_line_moved_back(data, shift, slope):
    s, y, w = data
    inside = (s > 0) & (s < 1)
    s, y, w = s[inside], y[inside], None if w is None else w[inside]
    if s.size == 0:
        return
    moved = expit(shift + slope * logit(s))
    a, b = calibration_intercept(s, y, joint=True, sample_weight=w), calibration_slope(s, y, sample_weight=w)
    near = {"rel": 1e-6, "abs": 1e-6, "nan_ok": True}
    assert calibration_slope(moved, y, sample_weight=w) == pytest.approx(b / slope, **near)
    found = calibration_intercept(moved, y, joint=True, sample_weight=w)
    assert found == pytest.approx(a - shift * b / slope, **near)


def test_threads_do_not_change_a_bit(monkeypatch):
    s, y, w = scored(7, 300_000, 1, 6, weighted=True)

    def all_of_them():
        fit = OutcomeRegression(s, y, w)
        return fit.line, fit.shift, fit.line_ends(0.025), ici(s, y, sample_weight=w)

    monkeypatch.setattr("certcal._base.threads.thread_count", lambda: 3)
    several = all_of_them()
    monkeypatch.setattr("certcal._base.threads.thread_count", lambda: 1)
    assert all_of_them() == several


# ------------------------------------------------------------------------------------------------- what is not defined


@pytest.mark.parametrize(
    ("s", "y"),
    [
        ([0.2, 0.7], [1, 1]),  # one outcome
        ([0.2, 0.4, 0.7, 0.9], [0, 0, 1, 1]),  # separated
        ([0.2, 0.4, 0.4, 0.9], [0, 0, 1, 1]),  # separated but for a tie
        ([0.2, 0.4, 0.7, 0.9], [1, 1, 0, 0]),  # separated the other way round
        ([0.3, 0.3, 0.3], [0, 1, 1]),  # equal scores
        ([0.0, 0.3, 0.4, 0.5, 0.6], [1, 0, 1, 0, 1]),  # the impossible happened
        ([1.0, 0.3, 0.4, 0.5, 0.6], [0, 0, 1, 0, 1]),
    ],
)
def test_a_slope_that_is_not_finite_is_undefined_and_so_is_its_interval(s, y):
    assert math.isnan(calibration_slope(s, y))
    assert math.isnan(calibration_intercept(s, y, joint=True))
    fit = OutcomeRegression(np.array(s), np.array(y, np.uint8), None)
    assert all(map(math.isnan, fit.line_ends(0.025)))


def test_scores_of_exactly_0_and_1_that_were_right_say_nothing_about_the_line():
    s, y, w = scored(4, weighted=True)
    more = np.concatenate((s, [0.0, 1.0, 0.0])), np.concatenate((y, [0, 1, 0])), np.concatenate((w, [3.0, 2.0, 1.0]))
    assert calibration_slope(*more[:2]) == calibration_slope(s, y)
    assert calibration_intercept(*more[:2], sample_weight=more[2]) == calibration_intercept(s, y, sample_weight=w)


def test_a_sample_of_weight_0_cannot_contradict():
    s, y, w = [0.0, 0.3, 0.4, 0.5, 0.6], [1, 0, 1, 0, 1], [0, 1, 1, 1, 1]
    assert calibration_slope(s, y, sample_weight=w) == pytest.approx(calibration_slope(s[1:], y[1:]), rel=1e-12)


def test_the_intercept_with_the_slope_at_1_needs_both_outcomes_only():
    assert calibration_intercept([0.3] * 3, [0, 1, 1]) == pytest.approx(math.log(2) - math.log(3 / 7), rel=1e-12)
    assert math.isnan(calibration_intercept([0.3] * 3, [1, 1, 1]))
    assert math.isnan(calibration_intercept([0.0, 0.3, 0.6], [1, 0, 1]))


def test_extreme_scores_have_a_finite_line():
    s, y = [1e-300, 1e-290, 1e-12, 1 - 1e-15, 0.5], [1, 0, 0, 1, 0]
    assert math.isfinite(calibration_slope(s, y))
    # log-odds of -690: two outcomes of five must come from an intercept about as large.
    assert 600 < calibration_intercept([1e-300] * 5, [0, 0, 0, 1, 1]) < 700


def test_sums_without_variance_or_expectation():
    assert math.isnan(observed_expected_ratio([0, 0], [0, 0]))
    assert observed_expected_ratio([0, 0], [0, 1]) == math.inf
    assert observed_expected_ratio([0.5, 0.5], [0, 0]) == 0
    assert math.isnan(spiegelhalter_z([0.5, 0.0, 1.0], [1, 0, 1]))
    assert math.isnan(spiegelhalter_p([0.5, 0.0, 1.0], [1, 0, 1]))
    assert spiegelhalter_z([0.0, 1.0], [1, 1]) == math.inf
    assert spiegelhalter_p([0.0, 1.0], [1, 1]) == 0


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: net_benefit([0.2], [0], 1.0), "threshold is 1.0; pass a probability"),
        (lambda: decision_curve([0.2], [0], [0.5, 0.0]), "thresholds[1] is 0; pass numbers between 0 and 1"),
        (lambda: decision_curve([0.2], [0], [0.5, 0.5]), "thresholds[1] is not above the one before it"),
        (lambda: decision_curve([0.2], [0], []), "thresholds have shape (0,)"),
    ],
)
def test_bad_input_is_named(call, said):
    with pytest.raises(InputError) as caught:
        call()
    assert said in str(caught.value)


# ------------------------------------------------------------------------------------------------------------ intervals

# Scores Beta(alpha, beta); the log-odds of the outcome are shift + slope · logit(score).
REGIMES = {
    "calibrated": (100, 2, 2, 1, 0),
    "calibrated, rare": (500, 1, 30, 1, 0),
    "too extreme": (100, 1, 1, 0.6, 0),
    "too low, rare": (500, 1, 40, 1, 0.8),
    "no information": (100, 1, 1, 0, 0),
}


def covered(ends, true):
    return ends[0] <= true <= ends[1]


@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("weighted", [False, True])
def test_intervals_of_slope_intercept_and_ratio_cover_the_population(regime, weighted):
    n, alpha, beta, slope, shift = REGIMES[regime]
    s, _, _ = scored(99, 100_000, alpha, beta)
    odds = logit(s)
    p = expit(shift + slope * odds)
    ratio, events = float(p.mean() / s.mean()), p.mean()
    # The intercept with the slope at 1 makes the scores as frequent as the events.
    low, high = -5.0, 5.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (middle, high) if expit(middle + odds).mean() < events else (low, middle)
    hits = []
    for seed in range(160):
        data = scored(1000 + seed, n, alpha, beta, slope, shift, weighted)
        fit = OutcomeRegression(*data)
        hits.append(
            (
                covered(fit.line_ends(0.025), slope),
                covered(fit.shift_ends(0.025), low),
                covered(ratio_ends(Evidence.of(data[:2], data[2]), TAIL), ratio),
                covered(fit.line_ends(0.1), slope),
            )
        )
    share = np.mean(hits, axis=0)
    # Two points below the level, and two standard errors of 160 draws.
    assert (share[:3] >= 0.93 - 2 * math.sqrt(0.05 * 0.95 / 160)).all(), share
    # An interval of a level of 80 % is not one of 95 %.
    assert share[3] < 0.9, share


def test_the_interval_of_a_slope_is_where_the_likelihood_ratio_says():
    s, y, _ = scored(11, 150)
    low, high = OutcomeRegression(s, y, None).line_ends(0.025)
    a, b = naive.calibration_line(s, y)

    def loss(intercept, slope):
        t = intercept + slope * logit(s)
        return float((np.logaddexp(0, t) - y * t).sum())

    for end in (low, high):
        (at,) = naive.calibration_line(s, y, slope=end)
        # At least χ²(0.95) = 3.8415; more only where the sandwich is larger than the model's variance.
        assert 3.8414 <= 2 * (loss(at, end) - loss(a, b)) < 1.5 * 3.8415


# Kinds of samples: how frequent, the score, and how often the event happens.
KINDS = {
    "one rare score": [(1.0, 0.001, 0.001)],
    "one score": [(1.0, 0.3, 0.3)],
    "one score, three times too low": [(1.0, 0.01, 0.03)],
    "rare and told apart": [(0.01, 0.5, 1.0), (0.99, 0.001, 0.0)],
    "rare and nearly told apart": [(0.016, 0.5, 1.0), (0.984, 0.01, 0.004)],
    "rare high scores that are wrong": [(0.05, 0.9, 0.1), (0.95, 0.01, 0.01)],
    "two scores": [(0.5, 0.1, 0.1), (0.5, 0.9, 0.9)],
    "two scores, the wrong way round": [(0.5, 0.1, 0.9), (0.5, 0.9, 0.1)],
    "scores of 0": [(0.5, 0.0, 0.0), (0.5, 0.2, 0.2)],
    "hardly a score above 0": [(0.04, 0.05, 0.5), (0.96, 0.0, 0.9)],
    "events with two scores": [(0.4, 0.1, 1.0), (0.4, 0.9, 1.0), (0.2, 0.5, 0.0)],
    "nearly all events": [(0.98, 0.99, 1.0), (0.02, 0.5, 0.0)],
}


def every_sample(n, chances):
    """Every count of n samples of these chances that is not too rare, and its probability."""
    if len(chances) == 1:
        yield (n,), 1.0
        return
    share = chances[0] / sum(chances)
    for k, p in enumerate(binom.pmf(np.arange(n + 1), n, share)):
        if p > 1e-5:
            yield from (((k, *rest), p * q) for rest, q in every_sample(n - k, chances[1:]) if p * q > 1e-6)


def missed_ratio(kinds, n, shrink=0.0):
    """How often the interval lies above, and below, the population's ratio: by enumeration of all samples."""
    true = sum(p * rate for p, _, rate in kinds) / sum(p * s for p, s, _ in kinds)
    cells = sorted((p * r, s, y) for p, s, rate in kinds for y, r in ((0, 1 - rate), (1, rate)) if p * r > 0)
    chances, scores, outcomes = (np.array(each) for each in zip(*cells, strict=True))
    above = below = 0.0
    for counts, p in every_sample(n, tuple(chances)):
        often = np.array(counts, np.float64)
        events, expected = outcomes @ often, scores @ often
        if events > 0 or expected > 0:  # else it is undefined
            there = often > 0
            evidence = Evidence((scores[there], outcomes[there].astype(np.uint8)), often[there], counts=True)
            ratio = events / expected if expected > 0 else math.inf
            found = RATIO.interval(evidence, ratio, 1 - 2 * TAIL, {})
            low, high = (end + shrink * (ratio - end) if shrink else end for end in (found.lower, found.upper))
            above, below = above + p * (low > true * (1 + 1e-9)), below + p * (high < true * (1 - 1e-9))
    return above, below


@pytest.mark.parametrize(
    ("title", "n"),
    [(title, n) for title in KINDS for n in (5, 30)]
    + [("one rare score", 100), ("rare and told apart", 300), ("rare and told apart", 10_000), ("one score", 300)],
)
def test_the_interval_of_the_ratio_covers_in_the_enumeration_of_all_samples(title, n):
    assert sum(missed_ratio(KINDS[title], n)) <= 2 * TAIL


def test_the_interval_of_the_ratio_is_no_wider_than_it_has_to_be():
    assert sum(missed_ratio(KINDS["one score"], 300, 0.1)) > 2 * TAIL
    assert sum(missed_ratio(KINDS["events with two scores"], 60, 0.25)) > 2 * TAIL


def test_the_interval_of_the_ratio_is_that_of_the_rate_where_scores_tell_the_outcomes():
    # All 700 events have one score and all others one: what is left to know is the rate.
    y = np.repeat([1, 0], [700, 4300]).astype(np.uint8)
    low, high = ratio_ends(Evidence((np.where(y, 0.5, 0.4), y)), TAIL)
    ends = [float(each) for each in rate_ends(0.14, 5000, TAIL)]
    exact = [1 / (0.5 + 0.4 * (1 - p) / p) for p in ends]
    assert low <= exact[0]
    assert high >= exact[1]
    assert (low, high) == pytest.approx(exact, rel=0.003)


@pytest.mark.parametrize(
    ("powers", "heavy", "most"), [((0, 0), 1, 1.03), ((1, 1), 1, 1.05), ((-1, -1), 1, 1.2), ((1, -1), 0.1, 1.05)]
)
def test_the_width_of_the_ratio_is_that_of_its_residuals_where_samples_are_many(powers, heavy, most):
    s, y, _ = scored(21, 20_000, 1, 3, 0.7, 0.4)
    # Weights that go with the scores of others and of events; those of events are multiplied.
    w = (0.05 + s) ** np.where(y, powers[1], powers[0]) * np.where(y, heavy, 1)
    share = w / w.sum()
    ratio = float(share @ y / (share @ s))
    width = 2 * norm.isf(TAIL) * math.sqrt(float(share**2 @ (y - ratio * s) ** 2)) / float(share @ s)
    low, high = ratio_ends(Evidence.of((s, y), w if any(powers) else None), TAIL)
    assert 0.97 * width < high - low < most * width


def test_the_interval_of_the_ratio_without_events_or_without_others():
    none, every = np.zeros(50, np.uint8), np.ones(50, np.uint8)
    low, high = ratio_ends(Evidence((np.full(50, 0.25), none)), TAIL)
    assert low == 0
    assert float(rate_ends(0.0, 50, TAIL)[1]) / 0.25 < high < 0.36
    low, high = ratio_ends(Evidence((np.full(50, 0.25), every)), TAIL)
    assert low < 4 < high
    assert ratio_ends(Evidence((np.full(1, 0.25), every[:1])), TAIL)[1] == math.inf


@pytest.mark.parametrize("regime", ["calibrated", "too extreme", "too low, rare", "no information"])
def test_intervals_of_the_smoothed_curve_cover_the_population(regime):
    _, alpha, beta, slope, shift = REGIMES[regime]
    n = 100
    # The population's curve: so many samples that every point has its probability for an outcome.
    s = np.sort(scored(99, 200_000, alpha, beta)[0])[200::400]
    population = CalibrationCurve(s, np.zeros(s.size, np.uint8), None)
    population.residual = expit(shift + slope * logit(s)) - s
    true = population.mean, population.quantile(0.5), population.quantile(0.9)
    hits, reach = [], []
    for seed in range(80):
        curve = CalibrationCurve(*scored(2000 + seed, n, alpha, beta, slope, shift))
        ends = curve.mean_ends(0.025), curve.quantile_ends(0.5, 0.025), curve.quantile_ends(0.9, 0.025)
        hits.append([covered(*each) for each in zip(ends, true, strict=True)])
        reach.append([covered((low, curve.mean), 0) for low, _ in ends])
    share = np.mean(hits, axis=0)
    assert (share >= 0.93 - 2 * math.sqrt(0.05 * 0.95 / 80)).all(), share
    if regime == "no information":  # far from calibrated, the intervals exclude 0
        assert np.mean(reach, axis=0).max() < 0.2


def test_intervals_of_the_net_benefit_cover_the_population_where_events_are_few():
    rng = np.random.default_rng(0)
    for rate, wrong, n in ((0.02, 0.1, 100), (0.3, 0.2, 100), (0.01, 0.05, 500)):
        for threshold in (0.02, 0.3, 0.8):
            true = rate - wrong * threshold / (1 - threshold)
            hits = []
            for counts in rng.multinomial(n, [rate, wrong, 1 - rate - wrong], 300):
                s = np.repeat([0.9, 0.9, 0.01], counts)
                y = np.repeat([1, 0, 0], counts)
                curve = decision_curve(s, y, [threshold])
                hits.append(curve.lower[0] <= true <= curve.upper[0])
            assert np.mean(hits) >= 0.93 - 2 * math.sqrt(0.05 * 0.95 / 300)
    narrow = decision_curve(s, y, [0.3], level=0.5)
    wide = decision_curve(s, y, [0.3])
    assert narrow.upper[0] - narrow.lower[0] < 0.6 * (wide.upper[0] - wide.lower[0])


@pytest.mark.parametrize(
    ("scores", "samples", "events"),
    [
        ((0.001, 0.9), (1483, 17), (2, 16)),  # a whole Newton step leaves both groups without curvature
        ((0.6075, 0.6067, 0.012, 0.9998), (4676, 588, 21, 18), (3730, 10, 0, 18)),  # neighbours that are far apart
    ],
)
def test_the_slope_is_found_where_few_samples_have_all_the_leverage(scores, samples, events):
    counts = np.ravel([(each, n - each) for n, each in zip(samples, events, strict=True)])
    s, y = np.repeat(np.repeat(scores, 2), counts), np.repeat(np.tile([1, 0], len(scores)), counts)
    slope, height = calibration_slope(s, y), calibration_intercept(s, y, joint=True)
    x = logit(s)
    missing = y - expit(height + slope * x)
    assert abs(missing.sum()) <= 1e-6
    assert abs(missing @ x) <= 1e-6
    spread = measure(y, s)["calibration_slope"].interval
    assert spread.lower < slope < spread.upper
