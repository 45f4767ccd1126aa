"""Training that cares for easy samples alone: what is discarded, how the others are weighed, and what is said of it."""

import itertools
import math
from statistics import NormalDist

import numpy as np
import pytest
import torch
from scipy.special import ndtr
from scipy.stats import beta, norm
from torch import nn

from certcal import InputError
from certcal.attacks import Target
from certcal.attacks.sphere import sphere_attack
from certcal.data import Inputs
from certcal.lab.training import Moment, Recipe, SelectionWarning, read_log, recipe, train
from certcal.lab.training.acr import EasyFirst, EasySamples, SphereNoise, label_votes, radius_weights
from certcal.lab.training.parts import GaussianNoise, SelectionContext, lost_classes, selection_record
from tests.training.digits import Stopped, data, network, numbers, same_weights, small, stop_at

# --- slow twins: by bisection, from sums of binomials ---------------------------------------------------------------


def binomial_bound(count: int, draws: int, alpha: float) -> float:
    """The probability at which so many successes or more have the chance alpha."""
    if count == 0:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(100):
        p = (low + high) / 2
        chance = sum(math.comb(draws, k) * p**k * (1 - p) ** (draws - k) for k in range(count, draws + 1))
        low, high = (p, high) if chance < alpha else (low, p)
    return low


def radius_weight(count: int, draws: int, alpha: float, floor: float) -> float:
    """The weight of one sample."""
    bound = binomial_bound(count, draws, alpha)
    if bound <= floor:
        return 1.0
    return NormalDist().inv_cdf(bound) / NormalDist().inv_cdf(floor)


OFF = {"discard_below": 0.0, "weigh_every": 0, "sphere_steps": 0}
ON = {"discard_below": 0.4, "weigh_every": 1, "sphere_steps": 2}


def tuned(**changes):
    """From trained weights: discards at once, or in the second epoch."""
    return small("acr", **{"sigma": 0.4, "learning_rate": 0.05, "discard_draws": 20, **ON, **changes})


def look_at(net, epoch, samples=500, sigma=0.4):
    some = data(samples)
    inputs, labels = torch.tensor(some.inputs), torch.tensor(some.labels)
    return SelectionContext(Target(net), inputs, labels, Moment(epoch, sigma, 0.0, 0.1), 0)


@pytest.mark.parametrize(("draws", "alpha", "floor"), [(16, 0.1, 0.75), (16, 0.1, 0.561078), (50, 0.01, 0.6)])
def test_weights_are_the_formula(draws, alpha, floor):
    votes = np.arange(draws + 1)
    with np.errstate(invalid="ignore"):
        bounds = np.nan_to_num(beta.ppf(alpha, votes, draws + 1 - votes))  # NaN for no votes, for which it is 0
    expected = np.maximum(1.0, norm.ppf(bounds) / norm.ppf(floor))
    found = radius_weights(votes, draws, alpha, floor)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert (found[bounds < floor] == 1).all()
    assert (np.diff(found[bounds > floor]) > 0).all()
    assert found[-1] > 1.5


def test_weights_are_those_of_the_slow_twin():
    found = radius_weights(np.array([0, 3, 11, 12, 14, 15, 16, 15]), 16, 0.1, 0.75)
    expected = [radius_weight(votes, 16, 0.1, 0.75) for votes in (0, 3, 11, 12, 14, 15, 16, 15)]
    np.testing.assert_allclose(found, expected, rtol=1e-7)
    np.testing.assert_allclose(found, [1, 1, 1, 1, 1, 1.1340, 1.6420, 1.1340], atol=5e-5)


def test_three_quarters_of_the_votes_are_the_least_with_a_positive_radius_at_the_published_setting():
    assert binomial_bound(12, 16, 0.1) == pytest.approx(0.561078, abs=1e-6)
    assert binomial_bound(11, 16, 0.1) < 0.5
    # So by the share of votes the weights would be these, in which the authors' code draws samples.
    found = radius_weights(np.arange(11, 17), 16, 0.1, binomial_bound(12, 16, 0.1))
    np.testing.assert_allclose(found, [1, 1, 2.1380, 3.4199, 4.9763, 7.2056], atol=5e-5)


def test_samples_below_the_threshold_are_discarded_once_and_at_the_beginning(learned):
    own = EasyFirst(begin=3, discard_below=0.4, discard_draws=20, weigh_every=0)
    select, ones = EasySamples(own, 0.4), torch.ones(500, dtype=torch.float64)
    assert torch.equal(select(ones, look_at(learned, 2)), ones)
    at = look_at(learned, 3)
    found = select(ones, at)
    votes = label_votes(at.target, at.inputs, at.labels, 0.4, 20, at.generator("discard"))
    assert found.tolist() == [float(count >= 8) for count in votes.tolist()]  # 8 of 20 is not below .4
    assert (votes == 8).any()
    assert 0.5 < found.mean() < 1
    for epoch in (4, 13):
        assert torch.equal(select(found, look_at(learned, epoch)), found)


def test_samples_are_judged_under_the_whole_noise(learned):
    own = EasyFirst(begin=0, discard_below=0.4, discard_draws=20, weigh_every=0)
    ones = torch.ones(500, dtype=torch.float64)
    warm, whole = (EasySamples(own, 0.4)(ones, look_at(learned, 0, sigma=sigma)) for sigma in (0.1, 0.4))
    assert torch.equal(warm, whole)
    assert EasySamples(own, 0.1)(ones, look_at(learned, 0)).sum() > whole.sum()


def test_weights_are_renewed_at_the_beginning_and_every_so_many_epochs_after(learned):
    own = EasyFirst(begin=3, discard_below=0.0, weigh_every=4)
    select, ones = EasySamples(own, 0.4), torch.ones(200, dtype=torch.float64)
    changed = [
        epoch for epoch in range(16) if not torch.equal(select(ones, look_at(learned, epoch, samples=200)), ones)
    ]
    assert changed == [3, 7, 11, 15]


def test_weights_are_the_radii_of_samples_that_are_left_and_others_stay_out(learned):
    own = EasyFirst(begin=0, discard_below=0.4, discard_draws=20, weigh_every=2)
    at = look_at(learned, 2)
    before = (torch.arange(500) % 3 > 0).double()
    found = EasySamples(own, 0.4)(before, at)
    left = before > 0
    votes = label_votes(at.target, at.inputs[left], at.labels[left], 0.4, 16, at.generator("weigh"))
    assert found[left].tolist() == [radius_weights(np.array([each]), 16, 0.1, 0.75)[0] for each in votes.tolist()]
    assert (found[~left] == 0).all()
    assert set(found.unique().tolist()) > {0.0, 1.0}
    assert found.max() == pytest.approx(1.642, abs=1e-3)


def test_no_sample_left_is_one_sentence(learned):
    own = EasyFirst(begin=1, discard_below=0.999, discard_draws=20)
    with pytest.raises(InputError, match=r"no sample is left for epoch 1: .*0.999 \(discard_below\).*; pass a sm"):
        EasySamples(own, 5.0)(torch.ones(50, dtype=torch.float64), look_at(learned, 1, samples=50))


def test_the_log_tells_classes_that_are_lost_from_those_that_were_never_there():
    labels, weights = torch.tensor([0, 0, 2, 2, 5, 5]), torch.tensor([1.0, 0.0, 0.0, 0.0, 3.0, 1.0])
    assert lost_classes(weights, labels) == [2]
    assert selection_record(weights, labels) == {"kept": 0.5, "largest_weight": 3.0, "lost_classes": [2]}
    assert selection_record(torch.ones(6), labels) == {"kept": 1.0, "largest_weight": 1.0}


def test_noise_is_gaussian_before_the_beginning_and_attacked_from_it_on(learned):
    own = EasyFirst(begin=5, sphere_steps=3, sphere_step=0.1, sphere_norm="linf")
    at = look_at(learned, 0, samples=40)

    def draw_like(part, epoch):
        generator = torch.Generator().manual_seed(0)
        return part(at.target, at.inputs, at.labels, Moment(epoch, 0.4, 0.0, 0.1), generator)

    plain, part = draw_like(GaussianNoise(2), 5), SphereNoise(GaussianNoise(2), own)
    assert torch.equal(draw_like(part, 4), plain)
    expected = sphere_attack(at.target, at.inputs, at.labels, plain, steps=3, length=0.1, norm="linf")
    assert torch.equal(draw_like(part, 5), expected)
    assert not torch.equal(expected, plain)
    nothing = part(at.target, at.inputs, at.labels, Moment(5, 0.0, 0.0, 0.1), torch.Generator())
    assert nothing is None


def test_parts_that_are_off_are_those_of_gaussian_training():
    parts = recipe("acr", sigma=0.5, **OFF).own.parts(recipe("acr", sigma=0.5, **OFF))
    assert parts.noise == GaussianNoise(4)
    assert parts.selection is None


@pytest.mark.parametrize("parts", list(itertools.product((False, True), repeat=3)))
def test_every_combination_of_parts_trains_with_the_same_number_of_steps(parts, learned):
    chosen = {name: (ON if on else OFF)[name] for name, on in zip(ON, parts, strict=True)}
    trained = train(network(), data(), tuned(**chosen), start=learned)
    assert [(line["samples"], line["step"]) for line in trained.history] == [(500, 4), (500, 8)]
    assert all(np.isfinite(line["loss"]) for line in trained.history)
    before, after = trained.history
    if not any(parts[:2]):
        assert "kept" not in before | after
        return
    assert (before["kept"], before["largest_weight"]) == (1.0, 1.0)
    assert (after["kept"] < 1) == parts[0]
    assert (after["largest_weight"] > 1) == parts[1]
    assert "lost_classes" not in after


def test_with_everything_off_it_is_gaussian_training():
    plan = small("acr", **OFF)
    plain = Recipe.from_dict({**plan.to_dict(), "method": "gaussian", "own": None})
    one, other = (train(network(), data(200), each) for each in (plan, plain))
    assert same_weights(one, other)
    assert numbers(one) == numbers(other)


def test_the_attack_makes_training_harder_and_linf_trains_too(learned):
    losses = [
        train(network(), data(), tuned(**OFF | change), start=learned).history[1]["loss"]
        for change in ({}, {"sphere_steps": 3}, {"sphere_steps": 3, "sphere_norm": "linf", "sphere_step": 0.01})
    ]
    assert losses[1] > 1.05 * losses[0]
    assert losses[2] > 1.05 * losses[0]


@pytest.mark.parametrize("step", [5, 6, 7])
def test_it_resumes_to_the_same_bits_in_the_middle_of_the_discarding_epoch(step, learned, tmp_path):
    def go(out=None, progress=None):
        plan = tuned(batch=125)
        return train(
            network(), data(), plan, start=learned, out=out, progress=progress, checkpoint_seconds=0.0
        )  # fmt: skip

    whole = go()
    with pytest.raises(Stopped):
        go(tmp_path / "run", stop_at(step))
    finished = go(tmp_path / "run")
    assert finished.resumed in (step - 1, step)
    assert same_weights(whole, finished)
    assert numbers(whole) == numbers(finished)
    assert 0 < finished.history[1]["kept"] < 1


def lose(learned, **changes):
    """Train a network that has learned to tell 0 from 6, on data in which these are swapped."""
    some, swap = data(), np.array([6, 1, 2, 3, 4, 5, 0, 7, 8, 9])
    plan = tuned(discard_below=0.5, sigma=0.1, batch=125, learning_rate=1e-3)
    swapped = Inputs.from_arrays(some.inputs, swap[some.labels])
    return train(network(), swapped, plan, start=learned, checkpoint_seconds=0.0, **changes)


def test_a_class_that_is_lost_is_said_with_its_epoch_and_a_remedy_and_in_the_log(learned, tmp_path):
    sentence = r"^classes 0, 6 have no sample left from epoch 1 on, .*; select later or less strictly \(begin and disc"
    with pytest.warns(SelectionWarning, match=sentence) as caught:
        trained = lose(learned, out=tmp_path / "run")
    assert [each.filename for each in caught] == [__file__]
    assert ["lost_classes" in line for line in trained.history] == [False, True]
    assert read_log(tmp_path / "run")[1]["lost_classes"] == [0, 6]


def test_a_class_that_is_lost_is_in_the_log_of_a_run_that_was_resumed_in_the_middle_of_the_epoch(learned, tmp_path):
    with pytest.warns(SelectionWarning), pytest.raises(Stopped):
        lose(learned, out=tmp_path / "run", progress=stop_at(6))
    trained = lose(learned, out=tmp_path / "run")  # a warning would be an error here
    assert trained.resumed in (5, 6)
    assert trained.history[1]["lost_classes"] == [0, 6]


def test_a_beginning_that_never_comes_is_refused():
    for begin in (2, 7):
        with pytest.raises(InputError, match=rf"begin is {begin} of 2 epochs .* would never begin; pass a begin be"):
            train(network(), data(), small("acr", begin=begin))
    assert len(train(network(), data(), small("acr", begin=9, **OFF)).history) == 2


def test_random_weights_may_not_judge_what_is_discarded(learned):
    with pytest.raises(InputError, match=r"begin is 0, so random weights would judge .*; pass the weights to begin"):
        train(network(), data(), tuned(begin=0))
    assert train(network(), data(), tuned(begin=0), start=learned).history[0]["kept"] < 1
    train(network(), data(), tuned(begin=0, discard_below=0))


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_votes_are_binomial_with_the_probability_of_the_label():
    # Class 0 if the first entry is above 0: its probability is Φ(x / σ).
    target = Target(lambda x: torch.stack((x[:, 0], -x[:, 0]), 1))
    inputs = torch.tensor([[-1.0], [0.0], [0.5], [3.0]]).repeat(500, 1)
    votes = label_votes(target, inputs, torch.zeros(2000, dtype=torch.int64), 0.5, 40, seeded()).reshape(500, 4)
    assert votes.dtype == torch.int64
    assert votes.min() >= 0
    assert votes.max() <= 40
    chances = ndtr(inputs[:4, 0].numpy() / 0.5)
    for column, chance in zip(votes.T.double(), chances, strict=True):
        spread = (chance * (1 - chance) / (40 * 500)) ** 0.5
        assert abs(column.mean().item() / 40 - chance) <= 5 * spread + 1e-9
    assert votes[:, 1].double().var().item() == pytest.approx(10, rel=0.35)  # 40 · ½ · ½: draws are independent


@pytest.mark.parametrize("draws", [1, 7, 500, 1203])
def test_every_draw_of_every_sample_is_counted_once(draws):
    seen = []

    def network(x):
        seen.append(x.shape[0])
        return torch.stack((torch.ones(len(x)), torch.zeros(len(x))), 1)

    labels = torch.tensor([0, 1] * 11)
    votes = label_votes(Target(network), torch.zeros(22, 3), labels, 1.0, draws, seeded())
    assert votes.tolist() == [draws, 0] * 11
    assert sum(seen) == 22 * draws
    assert max(seen) <= 500


def test_the_same_generator_gives_the_same_votes_and_another_others():
    def votes(seed):
        labels = torch.zeros(50, dtype=torch.int64)
        return label_votes(Target(lambda x: x), torch.zeros(50, 2), labels, 1.0, 20, seeded(seed)).tolist()

    assert votes(0) == votes(0) != votes(1)


def test_no_noise_gives_all_votes_to_one_answer_and_no_history_is_kept():
    network = nn.Linear(2, 3)
    inputs, labels = torch.randn((9, 2), generator=seeded()), torch.arange(9) % 3
    votes = label_votes(Target(network), inputs, labels, 0.0, 5, seeded())
    assert votes.tolist() == (5 * (network(inputs).argmax(1) == labels)).tolist()
    assert not votes.requires_grad


class _Always(nn.Module):
    """Gives every input one class, with the right number of outputs."""

    outputs = "logits"

    def __init__(self, chosen):
        super().__init__()
        self.rows = nn.Parameter(torch.eye(10)[chosen], requires_grad=False)

    def forward(self, batch):
        return self.rows.expand(batch.shape[0], -1) + 0 * batch.flatten(1).sum(1, keepdim=True)


def test_another_network_can_judge_which_samples_are_hard(tmp_path):
    some, chosen = data(200), 3
    how = tuned(begin=0, epochs=1, weigh_every=0, sphere_steps=0)
    with pytest.warns(SelectionWarning):
        trained = train(network(), some, how, judge=_Always(chosen), out=tmp_path / "a")
    assert trained.history[0]["kept"] == np.mean(some.labels == chosen)
    with pytest.raises(InputError, match="holds a training run with"):
        train(network(), some, how, judge=_Always(4), out=tmp_path / "a")
    with pytest.raises(InputError, match="begin is 0, so random weights would judge"):
        train(network(), some, how)
    with pytest.raises(InputError, match="judge: it is not for gaussian training"):
        train(network(), some, small("gaussian"), judge=_Always(chosen))
    with pytest.raises(InputError, match=r"judge: it returns \(2, 4\) for 2 inputs, and the network in training"):
        train(network(), some, how, judge=nn.Sequential(nn.Flatten(), nn.LazyLinear(4)))
