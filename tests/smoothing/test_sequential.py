"""Sequential decisions: the e-process is a fair bet, verdicts err as rarely as claimed, the driver adds nothing."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from functools import partial

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

from certcal import InputError
from certcal.smoothing import Decisions, decide, read_decisions
from certcal.smoothing._sampler import SamplingError
from certcal.smoothing._sequential import ABOVE, BELOW, UNDECIDED, log_e_value, looks, verdicts
from tests.smoothing import naive_robustness as naive

P0 = (0.5, 0.84, 0.975)


def radius_of(p0):
    return float(ndtri(p0))


def table(p0, budget, rule, alpha):
    """Verdict for every (k, n) up to the budget, as a function."""
    said = {}
    for n in range(1, budget + 1):
        for k, verdict in enumerate(rule(np.arange(n + 1), n, radius=radius_of(p0), sigma=1.0, alpha=alpha)):
            said[k, n] = None if verdict == UNDECIDED else str(verdict)
    return lambda k, n: said[k, n]


def e_values(p0, budget):
    values = {}
    for n in range(1, budget + 1):
        for k, log_e in enumerate(log_e_value(np.arange(n + 1), n, radius=radius_of(p0), sigma=1.0)):
            values[k, n] = math.exp(log_e)
    return lambda k, n: values[k, n]


@given(st.lists(st.integers(0, 1), max_size=60), st.sampled_from([0.0, 0.5, 1.7]))
def test_the_e_value_is_the_wealth_of_the_krichevsky_trofimov_bettor(votes, radius):
    ours = float(log_e_value(sum(votes), len(votes), radius=radius, sigma=1.0))
    p0 = Fraction(float(ndtr(radius)))
    assert ours == pytest.approx(math.log(naive.e_value(votes, p0)), abs=1e-9)
    assert ours <= math.log(naive.e_value(votes, p0)) + 1e-14


@pytest.mark.parametrize(
    ("votes", "draws", "radius", "sigma"),
    [
        (24, 24, 1.5, 0.12),
        (4757, 4758, 1.0, 0.25),
        (8361, 14457, 0.1, 0.5),
        (13940, 20309, 0.5, 1.0),
        (65936, 65936, 1.0, 0.25),
        (1897416, 3511615, 0.1, 1.0),
    ],
)
def test_the_evidence_is_never_above_that_of_fifty_digits(votes, draws, radius, sigma):
    """In each of these cases the plain sum of the terms, rounded to nearest, is above."""
    found = float(log_e_value(votes, draws, radius=radius, sigma=sigma))
    with mpmath.workdps(50):
        r = mpmath.mpf(radius) / mpmath.mpf(sigma)
        beta = mpmath.loggamma(votes + 0.5) + mpmath.loggamma(draws - votes + 0.5) - mpmath.loggamma(draws + 1)
        likelihood = votes * mpmath.log(mpmath.ncdf(r)) + (draws - votes) * mpmath.log(mpmath.ncdf(-r))
        exact = beta - mpmath.log(mpmath.pi) - likelihood
        assert exact - 1e-6 < mpmath.mpf(found) <= exact


@pytest.mark.parametrize("p0", P0)
@pytest.mark.parametrize("alpha", [0.3, 0.02])
def test_the_bet_is_fair_to_nine_digits_wherever_it_is_stopped(p0, alpha):
    budget = 120
    _, mean = naive.walk(p0, budget, table(p0, budget, verdicts, alpha), e_values(p0, budget))
    # Ville's inequality needs a mean of at most 1: an e-value that is larger by a billionth part would fail here.
    assert 1.0 - 1e-9 < mean <= 1.0 + 1e-12


@pytest.mark.parametrize("alpha", [0.3, 0.02])
@pytest.mark.parametrize("p0", P0)
def test_errors_are_as_rare_as_claimed_at_every_truth(p0, alpha):
    budget = 300
    said = table(p0, budget, verdicts, alpha)
    at_p0, _ = naive.walk(p0, budget, said, lambda k, n: 0.0)
    assert at_p0.get(BELOW, 0.0) > 0
    # At p0 both verdicts are wrong, and both together stay below alpha.
    assert at_p0.get(ABOVE, 0.0) > 0
    assert at_p0.get(BELOW, 0.0) + at_p0.get(ABOVE, 0.0) <= alpha
    for p in (p0 - 0.01, p0 - 0.1):
        assert naive.walk(p, budget, said, lambda k, n: 0.0)[0].get(ABOVE, 0.0) <= alpha
    for p in (p0 + 0.01, p0 + (1 - p0) / 2):
        assert naive.walk(p, budget, said, lambda k, n: 0.0)[0].get(BELOW, 0.0) <= alpha


def with_budget(budget):
    return lambda votes, draws, **options: verdicts(votes, draws, budget=budget, **options)


@pytest.mark.parametrize("alpha", [0.3, 0.02])
@pytest.mark.parametrize("p0", P0)
def test_errors_are_as_rare_as_claimed_with_a_chance_kept_for_the_last_look(p0, alpha):
    budget = 300
    said = table(p0, budget, with_budget(budget), alpha)
    at_p0, _ = naive.walk(p0, budget, said, lambda k, n: 0.0)
    assert at_p0[ABOVE] + at_p0.get(BELOW, 0.0) <= alpha
    # The last look has spent what was kept for it: without its half the errors would be much rarer.
    early, _ = naive.walk(p0, budget, table(p0, budget, verdicts, alpha / 2), lambda k, n: 0.0)
    assert at_p0[ABOVE] > early.get(ABOVE, 0.0) + alpha / 8
    for p in (p0 - 0.01, p0 - 0.1):
        assert naive.walk(p, budget, said, lambda k, n: 0.0)[0].get(ABOVE, 0.0) <= alpha
    for p in (p0 + 0.01, p0 + (1 - p0) / 2):
        assert naive.walk(p, budget, said, lambda k, n: 0.0)[0].get(BELOW, 0.0) <= alpha


@pytest.mark.parametrize("p0", P0)
def test_a_last_look_at_the_whole_level_after_looking_at_the_whole_level_would_be_caught(p0):
    def greedy(votes, draws, *, radius, sigma, alpha):
        doubled = verdicts(votes, draws, radius=radius, sigma=sigma, alpha=min(0.999, 4 * alpha), budget=300)
        return np.where(doubled == BELOW, UNDECIDED, doubled)

    ends, _ = naive.walk(p0, 300, table(p0, 300, greedy, 0.1), lambda k, n: 0.0)
    assert ends[ABOVE] > 0.1


def test_a_budget_helps_only_at_its_end_and_only_upwards():
    votes = np.arange(301)
    plain = verdicts(votes, 300, radius=0.3, sigma=1.0, alpha=0.01)
    last, before = (verdicts(votes, 300, radius=0.3, sigma=1.0, alpha=0.01, budget=n) for n in (300, 301))
    assert np.count_nonzero(last == ABOVE) > np.count_nonzero(plain == ABOVE) >= np.count_nonzero(before == ABOVE)
    assert np.count_nonzero(last == BELOW) == np.count_nonzero(before == BELOW)


def without_mixture(votes, draws, *, radius, sigma, alpha):
    """What must not pass: the likelihood ratio of the best p, without the price of having looked for it."""
    k, n = np.asarray(votes, float), float(draws)
    p0, p = float(ndtr(radius / sigma)), k / n
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(k > 0, k * np.log(p / p0), 0.0) + np.where(k < n, (n - k) * np.log((1 - p) / (1 - p0)), 0.0)
    result = np.full(k.shape, UNDECIDED, dtype="<U9")
    result[(p > p0) & (ratio >= -np.log(alpha))] = ABOVE
    result[(p < p0) & (ratio >= -np.log(alpha))] = BELOW
    return result


@pytest.mark.parametrize("p0", P0)
def test_a_rule_without_the_mixture_would_be_caught(p0):
    ends, _ = naive.walk(p0, 300, table(p0, 300, without_mixture, 0.02), lambda k, n: 0.0)
    assert ends.get(BELOW, 0.0) + ends.get(ABOVE, 0.0) > 0.02


def without_sides(votes, draws, *, radius, sigma, alpha):
    """What must not pass either: strong evidence taken for "above" on whichever side it is."""
    evidence = log_e_value(votes, draws, radius=radius, sigma=sigma)
    return np.where(evidence >= -np.log(alpha), ABOVE, UNDECIDED)


def test_a_rule_that_forgets_the_side_would_be_caught():
    ends, _ = naive.walk(0.3, 100, table(0.5, 100, without_sides, 0.02), lambda k, n: 0.0)
    assert ends[ABOVE] > 0.02


@pytest.mark.parametrize("p0", P0)
def test_simulated_errors_at_the_hardest_probability_stay_below_alpha(p0):
    rng = np.random.default_rng(7)
    runs, alpha = 20_000, 0.05
    votes, said = np.zeros(runs, np.int64), np.full(runs, UNDECIDED, dtype="<U9")
    before = 0
    for n in looks(20_000):
        votes += rng.binomial(n - before, p0, runs)
        now = verdicts(votes, n, radius=radius_of(p0), sigma=1.0, alpha=alpha)
        said = np.where(said == UNDECIDED, now, said)
        before = n
    wrong = np.count_nonzero(said != UNDECIDED) / runs
    assert 0 < wrong <= alpha


def test_the_two_claims_have_levels_of_their_own():
    votes = [5, 95]
    both = verdicts(votes, 100, radius=0.0, sigma=1.0, alpha=1e-4)
    assert both.tolist() == [BELOW, ABOVE]
    strict = verdicts(votes, 100, radius=0.0, sigma=1.0, alpha=1e-4, alpha_below=1e-30)
    assert strict.tolist() == [UNDECIDED, ABOVE]


@given(st.integers(1, 100_000), st.integers(1, 500))
def test_looks_are_multiples_of_the_block_and_end_with_the_budget(budget, block):
    found = looks(budget, block)
    assert found[-1] == budget
    assert all(n % block == 0 for n in found[:-1])
    assert found == sorted(set(found))


def test_evidence_is_finite_and_one_sided_at_absurd_radii():
    assert verdicts([1000, 0], 1000, radius=50.0, sigma=1.0).tolist() == [UNDECIDED, BELOW]
    assert np.isfinite(log_e_value([10**9, 0], 10**9, radius=3.0, sigma=1.0)).all()


class Sign:
    """Class 1 right of zero: a point's radius is its distance from zero."""

    outputs = "probabilities"
    description = "sign"

    def __call__(self, batch):
        right = (batch[:, 0] > 0).astype(np.float64)
        return np.stack([1 - right, right], axis=1)


class Broken(Sign):
    """No valid output left of zero."""

    def __call__(self, batch):
        outputs = super().__call__(batch)
        outputs[batch[:, 0] <= 0] = np.nan
        return outputs


POINTS = np.linspace(-1.5, 1.5, 21, dtype=np.float32)[:, None]
LABELS = np.ones(21, np.int64)
sign_decide = partial(decide, Sign(), sigma=0.5, radius=0.5)


@pytest.fixture(scope="module")
def decisions() -> Decisions:
    return sign_decide(POINTS, LABELS, budget=20_000)


def test_verdicts_are_right_where_the_radius_is_known(decisions):
    true = np.abs(POINTS[:, 0])
    assert set(decisions.decision[true > 0.55]) == {ABOVE}
    assert set(decisions.decision[true < 0.45]) == {BELOW}
    np.testing.assert_array_equal(decisions.correct, decisions.predicted == 1)
    easy = true > 1.0
    assert decisions.draws[easy].max() <= 400
    assert decisions.draws.sum() * 5 < 20_000 * len(decisions)


def test_verdicts_follow_from_the_votes_that_are_kept(decisions):
    again = verdicts(decisions.votes, decisions.draws, radius=0.5, sigma=0.5)
    np.testing.assert_array_equal(again, decisions.decision)


@pytest.mark.parametrize("batch", [1, 7, 333])
def test_the_batch_size_changes_nothing(batch):
    few, labels = POINTS[[0, 6, 20]], LABELS[:3]
    one, other = (sign_decide(few, labels, budget=500, batch=size) for size in (batch, 500))
    np.testing.assert_array_equal(one.draws, other.draws)
    np.testing.assert_array_equal(one.votes, other.votes)
    np.testing.assert_array_equal(one.decision, other.decision)


def test_a_sample_s_verdict_does_not_depend_on_the_samples_beside_it(decisions):
    first = sign_decide(POINTS[:5], LABELS[:5], budget=20_000)
    np.testing.assert_array_equal(first.votes, decisions.votes[:5])
    np.testing.assert_array_equal(first.draws, decisions.draws[:5])


def test_a_budget_that_ends_leaves_samples_undecided_and_says_so():
    short = sign_decide([[0.5]], [1], budget=150)
    assert (short.decision.tolist(), short.draws.tolist()) == ([UNDECIDED], [150])
    assert "UNDECIDED after 150 draws, and counted as not certified: 1." in short.statement
    assert not short.certified.any()


def test_invalid_outputs_count_against_the_class():
    broken = decide(Broken(), [[0.6]], [1], sigma=0.5, radius=0.0, budget=2000)
    whole = sign_decide([[0.6]], [1], budget=2000)
    assert broken.invalid[0] > 0
    assert broken.votes[0] + broken.invalid[0] == broken.draws[0]
    assert whole.invalid[0] == 0


def test_exact_noise_is_decided_and_named():
    exact = sign_decide([[1.0]], [1], noise="exact")
    assert exact.decision.tolist() == [ABOVE]
    assert "rounded to k/255" in exact.statement
    assert "exactly Gaussian" in sign_decide([[1.0]], [1]).statement


def test_progress_is_told_after_every_look():
    told = []
    done = sign_decide(POINTS, LABELS, budget=300, progress=lambda decided, draws: told.append((decided, draws)))
    assert [draws for _, draws in told] == sorted(draws for _, draws in told)
    assert told[-1] == (21 - done.count(UNDECIDED), int(done.draws.sum()))


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"radius": -1.0}, "radius is -1"),
        ({"radius": math.nan}, "radius is nan"),
        ({"sigma": 0.0}, "sigma is 0"),
        ({"alpha": 0.0}, "alpha is 0"),
        ({"alpha_below": 1.0}, "alpha_below is 1"),
        ({"budget": 0}, "budget is 0"),
        ({"n0": 0}, "n0 is 0"),
        ({"block": 0}, "block is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"noise": "pink"}, "noise is 'pink'"),
        ({"labels": [1, 1]}, "lengths differ"),
        ({"labels": [0.5]}, r"labels\[0\] is 0\.5"),
        ({"inputs": [1.0]}, "inputs has shape"),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_sentence(changed, text):
    arguments = {"inputs": [[1.0]], "labels": [1], "sigma": 0.5, "radius": 0.5} | changed
    with pytest.raises(InputError, match=text):
        decide(Sign(), **arguments)


class Company(Sign):
    """Minds its batch: the sign of a sum over all rows decides."""

    def __call__(self, batch):
        heads = np.full(len(batch), float(batch.sum() > 0))
        return np.stack([1 - heads, heads], axis=1)


class Coin(Sign):
    """One toss per call, at p_A = 1/2."""

    def __init__(self):
        self.random = np.random.default_rng(1)

    def __call__(self, batch):
        heads = np.full(len(batch), float(self.random.random() < 0.5))
        return np.stack([1 - heads, heads], axis=1)


class Dropout(Sign):
    """Random in every row."""

    def __init__(self):
        self.random = np.random.default_rng(1)

    def __call__(self, batch):
        noisy = super().__call__(batch) + self.random.normal(size=(len(batch), 2))
        return np.exp(noisy) / np.exp(noisy).sum(axis=1, keepdims=True)


@pytest.mark.parametrize("batch", [2, 9, 500])
@pytest.mark.parametrize(
    ("model", "text"),
    [
        (Company, "changes with the other inputs of its batch .*; put it in evaluation mode .*batch of 1"),
        (Coin, "(changes with the other inputs of its batch|differently from call to call)"),
        (Dropout, "answers the same batch differently from call to call .*; put it in evaluation mode .*dropout"),
    ],
)
def test_votes_that_would_not_be_independent_are_not_decided_on(model, text, batch):
    with pytest.raises(SamplingError, match=text):
        decide(model(), POINTS, LABELS, sigma=0.5, radius=0.5, batch=batch)


def test_a_model_that_minds_its_batch_is_its_own_function_when_alone():
    alone = decide(Company(), [[1.0]], [1], sigma=0.5, radius=0.5, budget=200, batch=1)
    same = decide(Sign(), [[1.0]], [1], sigma=0.5, radius=0.5, budget=200, batch=1)
    np.testing.assert_array_equal(alone.votes, same.votes)


def test_the_sentence_names_what_is_assumed_and_never_rounds_in_its_own_favour():
    found = sign_decide([[2.0]], [1], radius=0.12345678, alpha=0.00123456789).statement
    assert "of norm up to 0.123456, each except with probability at most 0.00123457, if" in found
    assert "output for an input does not depend on the other inputs in its batch" in found
    assert "the seed, the radius and the budget were fixed before any result was looked at" in found
    assert "noise draws are independent" in found


@pytest.mark.parametrize("form", [".json", ".parquet"])
def test_decisions_come_back_from_a_file_as_they_were(decisions, tmp_path, form):
    path = tmp_path / f"decisions{form}"
    path.write_bytes(decisions.to_bytes(form))
    again = read_decisions(path)
    assert again.setting == decisions.setting
    assert again.to_dict() == decisions.to_dict()
    json.dumps(decisions.to_dict(), allow_nan=False)


def test_decisions_of_a_newer_version_ask_for_an_update(decisions, tmp_path):
    path = tmp_path / "decisions.json"
    path.write_text(json.dumps(decisions.to_dict() | {"version": 2}))
    with pytest.raises(InputError, match="format version 2, and this certcal reads 1; update certcal"):
        read_decisions(path)


def test_json_of_decisions_says_what_they_assume_and_how_often_they_fail(decisions):
    document = decisions.to_dict()
    assert "each except with probability at most 0.001" in document["sentence"]
    assert document["assumptions"] == list(decisions.assumptions)
    assert document["statement"] == decisions.statement


@pytest.mark.parametrize("form", [".json", ".parquet"])
@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b"null", b"PAR1 rubbish PAR1", b"\xff\xfe", b"[" * 100_000])
def test_files_that_hold_no_decisions_are_refused_in_a_sentence(tmp_path, form, content):
    path = tmp_path / f"decisions{form}"
    path.write_bytes(content)
    with pytest.raises(InputError, match="holds no decisions"):
        read_decisions(path)


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (lambda d: d["votes"].append(1), "columns of different lengths"),
        (lambda d: d["votes"].__setitem__(0, 10**9), "more votes than draws"),
        (lambda d: d["votes"].__setitem__(0, -1), "more votes than draws"),
        (lambda d: d["invalid"].__setitem__(0, -1), "more votes than draws"),
        (
            lambda d: d["verdict"].__setitem__(d["verdict"].index("below"), "above"),
            "'above', which does not follow from",
        ),
        (lambda d: d["verdict"].__setitem__(d["verdict"].index("above"), "undecided"), "does not follow from"),
        (
            lambda d: d["votes"].__setitem__(0, 55),
            r"verdict\[0\] is 'above', which does not follow from 55 votes in 100",
        ),
        (lambda d: d["setting"].__setitem__("radius", 2.0), "does not follow from"),
        (lambda d: d["setting"].__setitem__("radius", -0.5), r"Expected float >= 0.0 - at \$.setting.radius"),
        (lambda d: d["setting"].__setitem__("alpha", 1e-40), "does not follow from"),
        (lambda d: d["setting"].__setitem__("alpha", 1.0), r"Expected float < 1.0 - at \$.setting.alpha"),
        (lambda d: d["setting"].__setitem__("budget", 1000), "draws at which nobody looked"),
        (lambda d: d["setting"].__setitem__("block", 0), r"Expected int >= 1 - at \$.setting.block"),
        (lambda d: d["draws"].__setitem__(0, 101), "draws at which nobody looked"),
        (lambda d: d["votes"].__setitem__(0, 0.5), r"Expected int, got float - at \$.votes"),
        (lambda d: d["verdict"].__setitem__(0, "certified"), r"Invalid enum value 'certified' - at \$.verdict"),
        (lambda d: d.__setitem__("verdict", 3), r"Expected array, got int - at \$.verdict"),
        (lambda d: d["setting"].__setitem__("sigma", -1), r"Expected float > 0.0 - at \$.setting.sigma"),
        (lambda d: d["setting"].__setitem__("noise", "pink"), r"Invalid enum value 'pink' - at \$.setting.noise"),
        (lambda d: d["setting"].pop("alpha"), "missing required field alpha"),
        (lambda d: d.__setitem__("version", 0), "no decisions of version"),
    ],
)
def test_damaged_decisions_are_refused_in_a_sentence(decisions, tmp_path, damage, text):
    document = decisions.to_dict()
    damage(document)
    path = tmp_path / "decisions.json"
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match=text):
        read_decisions(path)


def test_other_endings_are_refused(decisions, tmp_path):
    with pytest.raises(InputError, match=r"cannot be written as '\.csv'"):
        decisions.to_bytes(".csv")
    with pytest.raises(InputError, match=r"decisions end in \.json or \.parquet"):
        read_decisions(tmp_path / "decisions.csv")
    with pytest.raises(InputError, match="cannot be read"):
        read_decisions(tmp_path / "none.json")
