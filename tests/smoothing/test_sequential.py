"""Sequential decisions: boundaries as close as may be, errors as rare as claimed, a driver that adds nothing."""

import json
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import ndtr, ndtri

from certcal import InputError
from certcal.smoothing import Decisions, SamplingError, decide, read_decisions
from certcal.smoothing import _sequential as sequential
from certcal.smoothing._sequential import ABOVE, BELOW, UNDECIDED, Boundaries, binomial, looks
from tests.smoothing import naive_robustness as naive

P0 = (0.5, 0.84, 0.975)
ALPHA = 0.02


def boundaries_of(p0, budget, block=10, **levels):
    return Boundaries(radius=float(ndtri(p0)), sigma=1.0, budget=budget, block=block, **{"alpha": ALPHA} | levels)


def said(boundaries):
    return {n: boundaries.at(n) for n in boundaries.sizes}


@pytest.mark.parametrize("p0", P0)
@pytest.mark.parametrize(("alpha", "below"), [(0.3, 0.3), (0.02, 0.001), (1e-6, 0.1)])
def test_boundaries_are_those_of_a_walk_that_goes_draw_by_draw(p0, alpha, below):
    found = boundaries_of(p0, 300, alpha=alpha, alpha_below=below)
    assert said(found) == naive.boundaries(p0, found.sizes, alpha, below)


@pytest.mark.parametrize("p0", P0)
@pytest.mark.parametrize(("alpha", "below"), [(0.3, 0.3), (0.02, 0.001)])
def test_errors_are_as_rare_as_claimed_at_every_truth(p0, alpha, below):
    rule = said(boundaries_of(p0, 300, alpha=alpha, alpha_below=below))
    at_p0 = naive.walk(p0, rule)
    assert 0.3 * alpha < at_p0[ABOVE] <= alpha
    assert 0.8 * below < at_p0[BELOW] <= below
    for p in (p0 - 0.01, p0 - 0.1):
        assert naive.walk(p, rule)[ABOVE] < at_p0[ABOVE]
    for p in (p0 + 0.01, p0 + (1 - p0) / 2):
        assert naive.walk(p, rule)[BELOW] < at_p0[BELOW]


@pytest.mark.parametrize("p0", P0)
@pytest.mark.parametrize("side", [0, 1])
def test_no_vote_less_would_do_at_the_last_look(p0, side):
    found = boundaries_of(p0, 300, alpha_below=ALPHA / 2)
    rule, level = said(found), (ALPHA / 2, ALPHA)[side]
    rule[300] = tuple(np.add(rule[300], ((1, 0), (0, -1))[side]))
    assert naive.walk(p0, rule)[(BELOW, ABOVE)[side]] > level


@pytest.mark.parametrize("r", [0.0, 0.7, 1.5])
def test_nearly_all_of_alpha_is_spent_with_many_draws(r):
    """Exact errors by other code: from look to look with scipy's binomial probabilities."""
    found, p0 = Boundaries(radius=r, sigma=1.0, alpha=0.001, alpha_below=0.002, budget=200_000), float(ndtr(r))
    first, chances, before, ends = 0, np.ones(1), 0, {ABOVE: 0.0, BELOW: 0.0}
    for n in found.sizes:
        votes = np.arange(n - before + 1)
        more = stats.binom.pmf(votes, n - before, p0)
        kept = np.flatnonzero(more > 1e-18)
        chances, first, before = np.convolve(chances, more[kept[0] : kept[-1] + 1]), first + kept[0], n
        now = found.verdicts(first + np.arange(chances.size), n)
        for name in ends:
            ends[name] += chances[now == name].sum()
        left = np.flatnonzero(now == UNDECIDED)
        chances, first = chances[left], first + left[0]
    assert 0.98 * 0.001 < ends[ABOVE] <= 0.001
    assert 0.98 * 0.002 < ends[BELOW] <= 0.002


def test_half_of_alpha_is_kept_for_the_last_look_upwards():
    rule = said(boundaries_of(0.84, 300))
    early = naive.walk(0.84, {n: ends if n < 300 else (-1, 301) for n, ends in rule.items()})
    assert 0.3 * ALPHA < early[ABOVE] <= 0.5 * ALPHA
    assert early[BELOW] > 0.9 * ALPHA


@pytest.mark.parametrize(("n", "p", "nats"), [(40, 0.5, 8.0), (1000, 0.97, 30.0), (7, 0.01, 2.0), (200, 1.0, 20.0)])
def test_distributions_of_votes_leave_out_no_more_than_they_say(n, p, nats):
    q = 1e-300 if p == 1 else 1 - p
    first, found = binomial(n, p, q, nats)
    last = first + found.size - 1
    exact = stats.binom.pmf(np.arange(first, last + 1), n, p)
    np.testing.assert_allclose(found, exact, rtol=3 * math.exp(-nats) + 1e-11, atol=1e-290)
    assert stats.binom.cdf(first - 1, n, p) <= math.exp(-nats)
    assert stats.binom.sf(last, n, p) <= math.exp(-nats)


def test_boundaries_by_fourier_transforms_are_the_same_or_further_out(monkeypatch):
    plain = said(boundaries_of(0.84, 3000, alpha=1e-6))
    monkeypatch.setattr(sequential, "_TERMS", 0)
    found = boundaries_of(0.84, 3000, alpha=1e-6)
    for n, (below, above) in said(found).items():
        assert plain[n][0] - 1 <= below <= plain[n][0]
        assert plain[n][1] <= above <= plain[n][1] + 1
    one, other = np.random.default_rng(0).dirichlet(np.ones(500), 2)[:, :400]
    made, error = sequential.convolve(one, other)
    assert 0 < np.abs(made - np.convolve(one, other)).sum() < error < 1e-10


def test_the_two_claims_have_levels_of_their_own():
    votes = [5, 95]
    assert boundaries_of(0.5, 100, 100, alpha=1e-4).verdicts(votes, 100).tolist() == [BELOW, ABOVE]
    strict = boundaries_of(0.5, 100, 100, alpha=1e-4, alpha_below=1e-32)
    assert strict.verdicts(votes, 100).tolist() == [UNDECIDED, ABOVE]


def test_deciding_again_with_a_larger_budget_spends_alpha_again() -> None:
    """Exact, on the same votes: those that one budget leaves undecided are decided by the next."""

    def said_above(alpha: float) -> float:
        tests = [boundaries_of(0.7, budget, alpha=alpha) for budget in (50, 200)]
        alive = {(UNDECIDED, UNDECIDED): np.ones(1)}
        for size in range(10, 201, 10):
            moved: dict[tuple[str, ...], np.ndarray] = {}
            for before, mass in alive.items():
                mass = np.convolve(mass, stats.binom.pmf(np.arange(11), 10, 0.7))
                votes = np.arange(mass.size)
                now = [
                    each.verdicts(votes, np.full(votes.size, size))
                    if each.sizes.count(size) and verdict == UNDECIDED
                    else np.full(votes.size, verdict)
                    for each, verdict in zip(tests, before, strict=True)
                ]
                for pair in set(zip(*now, strict=True)):
                    here = (now[0] == pair[0]) & (now[1] == pair[1])
                    moved[pair] = moved.get(pair, 0) + np.where(here, mass, 0.0)
            alive = moved
        return float(sum(mass.sum() for pair, mass in alive.items() if pair[0] == ABOVE or pair == (UNDECIDED, ABOVE)))

    assert 1.3 * 0.05 < said_above(0.05) < 2 * 0.05
    assert said_above(0.05 / 2) <= 0.05


@given(st.integers(1, 100_000), st.integers(1, 500))
def test_looks_are_multiples_of_the_block_and_end_with_the_budget(budget, block):
    found = looks(budget, block)
    assert found[-1] == budget
    assert all(n % block == 0 for n in found[:-1])
    assert found == sorted(set(found))


def test_a_radius_that_nothing_reaches_is_never_said_to_be_exceeded():
    for r in (9.0, 50.0, 1e300):
        found = Boundaries(radius=r, sigma=1.0, alpha=0.1, budget=1000)
        assert found.verdicts([0, 500, 999, 1000], 1000).tolist() == [BELOW, BELOW, BELOW, UNDECIDED]


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
    boundaries = Boundaries(radius=0.5, sigma=0.5, alpha=0.001, budget=20_000)
    again = boundaries.verdicts(decisions.votes, decisions.draws)
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
    assert "of norm up to 0.123456, where each fails at most 1 time in 810, if" in found
    assert "output for an input does not depend on the other inputs in its batch" in found
    assert "the radius, the levels, the looks and the budget were fixed before any result was looked at" in found
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
    assert "each of these fails at most 1 time in 1,000" in document["sentence"]
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
    with pytest.raises(InputError, match=r"form is '\.xyz'; pass one of '\.html', "):
        decisions.to_bytes(".xyz")
    with pytest.raises(InputError, match=r"decisions end in \.json or \.parquet"):
        read_decisions(tmp_path / "decisions.csv")
    with pytest.raises(InputError, match="cannot be read"):
        read_decisions(tmp_path / "none.json")
