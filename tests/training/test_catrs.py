"""CAT-RS: its loss by hand and by finite differences, the worse noise, its constants."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import certcal
from certcal import InputError
from certcal.attacks import Found, Target
from certcal.lab.training import Moment, View, recipe, soft_labels, train
from certcal.lab.training._catrs import (
    CatRs,
    NoisyInputs,
    WorseNoise,
    catrs_loss,
    confident_draws,
    divergence,
    restore_moments,
)
from certcal.lab.training.acr import class_votes
from certcal.lab.training.parts import parts_of
from tests.training.digits import Stopped, data, held_out, network, same_weights, small, stop_at
from tests.training.views import finite_slopes, slopes

NOW = Moment(0, 0.5, 0.3, 0.1)
LABELS = torch.tensor([0, 1, 2, 0, 1, 2, 0, 1])


def random(*shape, seed):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


NOISE, WEIGHTS = 0.5 * random(3, 8, 20, seed=2), 0.5 * random(20, 3, seed=3)
# Most samples are where their class is, so that both few and all draws are right.
INPUTS = 0.5 * random(8, 20, seed=1) + 0.5 * WEIGHTS.T[LABELS]


def target(weights=WEIGHTS):
    return Target(lambda batch: batch @ weights, noise=NOISE)


def seek(search=WorseNoise(0.25, 4), moment=NOW):  # noqa: B008
    return search(target(), INPUTS, LABELS, moment, torch.Generator())


def view(weights, search_result, seed=7):
    generator = torch.Generator().manual_seed(seed)
    return View(target(weights), INPUTS, LABELS, Found(INPUTS), NOW, generator, search_result)


def naive(weights, sought, kept, weight):
    """The loss, sample by sample and draw by draw."""

    def predict(x):
        logits = x @ weights
        powers = np.exp(logits - logits.max())
        return powers / powers.sum()

    total = 0.0
    for sample, label in enumerate(LABELS.tolist()):
        drawn = [predict(INPUTS[sample].numpy() + NOISE[draw, sample].numpy()) for draw in range(3)]
        total += sum(sorted(-math.log(each[label]) for each in drawn)[: kept[sample]]) / 3
        if kept[sample] == 3:
            soft = np.exp(sought.soft[sample].numpy())
            worse = [predict(sought.noisy[draw, sample].numpy()) for draw in range(3)]
            total += weight * max(float((soft * np.log(soft / each)).sum()) for each in worse)
    return total / len(LABELS)


def test_the_loss_is_that_of_a_batch_by_hand():
    # Three draws of two samples. Of the first one cross entropy counts, of the second all three and the worst noise.
    every = torch.tensor([[[0.6, 0.4], [0.8, 0.2]], [[0.9, 0.1], [0.7, 0.3]], [[0.3, 0.7], [0.6, 0.4]]]).double().log()
    worse = torch.tensor([[[0.1, 0.9], [0.5, 0.5]], [[0.1, 0.9], [0.4, 0.6]], [[0.1, 0.9], [0.6, 0.4]]]).double().log()
    soft = torch.tensor([[0.9, 0.1], [0.7, 0.3]]).double().log()
    loss = catrs_loss(every, worse, soft, torch.tensor([0, 0]), torch.tensor([1, 3]), 2.0)
    first = -math.log(0.9) / 3
    second = -(math.log(0.8) + math.log(0.7) + math.log(0.6)) / 3
    high = 0.7 * math.log(0.7 / 0.4) + 0.3 * math.log(0.3 / 0.6)
    assert loss.item() == pytest.approx((first + second + 2 * high) / 2, rel=1e-6)


def test_the_high_loss_belongs_to_samples_all_of_whose_draws_are_kept():
    every = random(4, 5, 3, seed=4).log_softmax(2)
    worse, soft, labels = random(4, 5, 3, seed=5).log_softmax(2), random(5, 3, seed=6).log_softmax(1), LABELS[:5]
    entropies = (-every).gather(2, labels.expand(4, 5).unsqueeze(2)).squeeze(2).sort(0).values
    for kept in range(1, 5):
        number = torch.full((5,), kept)
        low = entropies[:kept].sum(0).mean() / 4
        high = divergence(soft, worse).max(0).values.mean() if kept == 4 else 0.0
        assert torch.isclose(catrs_loss(every, worse, soft, labels, number, 1.5), low + 1.5 * high)


def test_the_objective_is_the_loss_computed_sample_by_sample():
    own, sought = CatRs(high_weight=1.5), seek()
    judged = own(view(WEIGHTS, sought))
    every = target().draw_log_probabilities(INPUTS)
    kept = confident_draws(every, LABELS, torch.Generator().manual_seed(7)).tolist()
    assert set(kept) == {1, 2, 3}
    assert judged.loss.item() == pytest.approx(naive(WEIGHTS.numpy(), sought, kept, 1.5), rel=1e-12)
    assert torch.allclose(judged.log_probabilities, target().log_probabilities(INPUTS))


def test_gradients_are_those_of_finite_differences():
    own, sought = CatRs(high_weight=1.5), seek()
    slopes(lambda moved: own(view(moved, sought)).loss, WEIGHTS, 1e-6, 1e-8)


def test_the_number_of_kept_draws_is_binomial_with_the_share_that_is_right_and_at_least_one():
    samples = 20_000
    every = torch.tensor([[0.9, 0.1], [0.9, 0.1], [0.9, 0.1], [0.2, 0.8]]).log().unsqueeze(1).expand(-1, samples, -1)
    kept = confident_draws(every, torch.zeros(samples, dtype=torch.int64), torch.Generator().manual_seed(0))
    for number in range(1, 5):
        chance = math.comb(4, number) * 0.75**number * 0.25 ** (4 - number) + (0.25**4 if number == 1 else 0)
        spread = math.sqrt(chance * (1 - chance) / samples)
        assert abs((kept == number).double().mean().item() - chance) < 4 * spread
    right, wrong = confident_draws(every[:3, :2], torch.tensor([0, 1]), torch.Generator().manual_seed(0)).tolist()
    assert (right, wrong) == (3, 1)


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_worse_noise_stays_within_epsilon_of_its_draw(norm, dtype):
    seen = Target(lambda batch: batch @ WEIGHTS.to(dtype), noise=NOISE.to(dtype))
    noisy = WorseNoise(0.25, 4, 3.0, norm)(seen, INPUTS.to(dtype), LABELS, NOW, torch.Generator()).noisy
    assert noisy.shape == NOISE.shape
    start = INPUTS.to(dtype) + NOISE.to(dtype)
    change = (noisy.double() - start.double()).flatten(0, 1)
    lengths = change.norm(dim=1) if norm == "l2" else change.abs().amax(1)
    assert lengths.max().item() <= 0.3
    assert lengths.min().item() > 0.2


def test_one_step_is_long_enough_to_reach_the_edge_and_many_short_ones_are_not():
    start = INPUTS + NOISE
    edge = (seek(WorseNoise(0.25, 1)).noisy - start).norm(dim=2)
    assert torch.allclose(edge, torch.full_like(edge, 0.3))
    # Steps of 2vε/T.
    short = (seek(WorseNoise(0.25, 1, 0.01)).noisy - start).norm(dim=2)
    assert bool((short <= 0.006 + 1e-12).all())
    assert short.mean().item() > 0.0045


def test_worse_noise_is_further_from_the_smoothed_prediction_at_every_draw():
    sought = seek()
    every = target().draw_log_probabilities(INPUTS)
    worse = Target(lambda batch: batch @ WEIGHTS).log_probabilities(sought.noisy.flatten(0, 1)).reshape(every.shape)
    assert bool((divergence(sought.soft, worse) > divergence(sought.soft, every)).all())


def test_noise_gets_back_the_mean_and_the_deviation_that_were_drawn():
    drawn, moved = random(5, 2, 3, seed=1), 3 * random(5, 2, 3, seed=2) + 4
    back = restore_moments(moved, drawn)
    for kind in (torch.mean, lambda each, axis: torch.std(each, axis, correction=0)):
        assert torch.allclose(kind(back.flatten(1), 1), kind(drawn.flatten(1), 1))
    shape = [(each - each.mean(1, keepdim=True)) for each in (back.flatten(1), moved.flatten(1))]
    assert torch.allclose(torch.cosine_similarity(*shape), torch.ones(5, dtype=torch.float64))
    assert torch.allclose(restore_moments(drawn, drawn), drawn)
    # Noise of a single entry has no deviation, and stays what it was.
    assert torch.equal(restore_moments(moved[:, :1, 0], drawn[:, :1, 0]), drawn[:, :1, 0])
    # Inside a ball that is wide enough, the noise that is found has them too.
    found = seek(moment=replace(NOW, epsilon=3.0)).noisy - INPUTS
    assert torch.allclose(found.mean(2), NOISE.mean(2))
    assert torch.allclose(found.std(2), NOISE.std(2))


@pytest.mark.parametrize(("target_sigma", "shrunk"), [(0.25, 0.5), (0.1, 0.2), (0.5, 1.0), (3.0, 1.0)])
def test_the_soft_label_is_predicted_under_the_same_draws_shrunk_to_its_own_sigma(target_sigma, shrunk):
    soft = seek(WorseNoise(target_sigma, 1)).soft
    calm = Target(lambda batch: batch @ WEIGHTS, noise=shrunk * NOISE)
    assert torch.allclose(soft, calm.log_probabilities(INPUTS))
    assert not soft.requires_grad


def test_while_epsilon_is_zero_the_worst_of_the_drawn_noise_counts():
    sought = seek(moment=replace(NOW, epsilon=0.0))
    assert sought.noisy is None
    drawn = CatRs()(view(WEIGHTS, NoisyInputs(sought.soft, INPUTS + NOISE))).loss
    assert torch.isclose(CatRs()(view(WEIGHTS, sought)).loss, drawn)
    tiny = seek(moment=replace(NOW, epsilon=1e-9))
    assert CatRs()(view(WEIGHTS, tiny)).loss.item() == pytest.approx(drawn.item(), rel=1e-8)


def test_the_same_seed_gives_the_same_bits_and_another_seed_others():
    sought = seek()
    losses = [CatRs()(view(WEIGHTS, sought, seed=seed)).loss.item() for seed in (1, 1, 2)]
    assert losses[0] == losses[1] != losses[2]


@pytest.mark.parametrize("outputs", ["logits", "probabilities"])
def test_extreme_outputs_give_finite_losses_and_gradients(outputs):
    weights = torch.tensor([[1.0, -1.0], [-1.0, 1.0]], requires_grad=True)

    def network(batch):
        out = 1e20 * batch @ weights
        return out if outputs == "logits" else (out > 0).float() + 0 * weights.sum() + 0 * batch

    inputs, labels = torch.tensor([[1.0, -1.0], [1.0, -1.0]]), torch.tensor([0, 1])
    seen = Target(network, outputs, torch.tensor([[[0.1, 0.2]], [[-0.2, 0.1]]]).expand(2, 2, 2))
    sought = WorseNoise(0.25, 2)(seen, inputs, labels, replace(NOW, epsilon=5.0), torch.Generator())
    assert bool(sought.noisy.isfinite().all())
    sought = NoisyInputs(sought.soft, -sought.noisy)
    loss = CatRs()(View(seen, inputs, labels, Found(inputs), NOW, torch.Generator(), sought)).loss
    assert finite_slopes(loss, weights)


def test_its_parts_are_noise_the_search_and_the_loss():
    made = recipe("cat-rs", sigma=0.5, norm="linf", attack_steps=3, attack_scale=0.5, target_sigma=0.1)
    parts = parts_of(made)
    assert parts.adversary is None
    assert parts.objective == made.own
    assert parts.inner_search == WorseNoise(0.1, 3, 0.5, "linf")


def test_training_with_several_draws_learns_and_resumes_to_the_same_bits(tmp_path):
    plan = small("cat-rs", draws=4, epochs=13, batch=32, learning_rate=0.05)
    whole = train(network(), data(300), plan, test=held_out())
    assert whole.history[-1]["test_accuracy"] > 0.5
    with pytest.raises(Stopped):
        train(network(), data(300), plan, out=tmp_path / "run", checkpoint_seconds=0.0, progress=stop_at(40))
    assert same_weights(whole, train(network(), data(300), plan, out=tmp_path / "run"))


def test_given_soft_labels_are_what_the_worse_noise_leads_away_from():
    given = torch.softmax(random(8, 3, seed=9), 1)
    found = seek(WorseNoise(0.25, 4, soft=given))
    assert torch.allclose(found.soft.exp(), given)
    own = seek()
    assert not torch.equal(found.noisy, own.noisy)
    # The network's own smoothed prediction, given, is the same as not giving it.
    again = seek(WorseNoise(0.25, 4, soft=own.soft.exp()))
    assert torch.allclose(again.noisy, own.noisy, atol=1e-6)
    certain = seek(WorseNoise(0.25, 4, soft=torch.eye(3, dtype=torch.float64)[LABELS]))
    assert bool(certain.noisy.isfinite().all())
    assert bool(divergence(certain.soft, own.soft).isfinite().all())


def test_training_with_soft_labels_is_another_training_and_is_checked(tmp_path):
    some, how = data(128), small("cat-rs", sigma=0.3, epochs=1, draws=2)
    hard = np.eye(10)[some.labels]
    folder = tmp_path / "run"
    trained = train(network(), some, how, soft=hard, out=folder)
    assert not same_weights(trained.network, train(network(), some, how).network)
    assert train(network(), some, how, soft=hard, out=folder).resumed == trained.history[0]["step"]
    with pytest.raises(InputError, match="holds a training run with"):
        train(network(), some, how, out=folder)
    for soft, text in (
        (hard[:5], r"soft: it has shape \(5, 10\), not \(128, 10\); pass a row"),
        (2 * hard, "soft"),
    ):
        with pytest.raises(InputError, match=text):
            train(network(), some, how, soft=soft)
    with pytest.raises(InputError, match="soft: it is not for macer training"):
        train(network(), some, small("macer", sigma=0.3, draws=4), soft=hard)


def test_soft_labels_are_shares_of_votes_under_noise():
    some, judge = data(30), network(3)
    found = soft_labels(judge, some, sigma=0.4, draws=2000, device="cpu")
    assert np.allclose(found.sum(1), 1)
    assert np.array_equal(found, soft_labels(judge, some, sigma=0.4, draws=2000, device="cpu"))
    for sample in (0, 17):
        noisy = torch.tensor(some.inputs[sample]) + 0.4 * torch.randn(4000, *some.inputs.shape[1:])
        votes = judge(noisy).argmax(1).bincount(minlength=10) / 4000
        assert np.abs(votes.numpy() - found[sample]).max() < 0.06  # four standard deviations of the difference
    with pytest.raises(InputError, match="draws is 0; pass a whole number of noise samples"):
        soft_labels(judge, some, draws=0)


def test_soft_labels_go_on_where_they_were_interrupted(tmp_path, monkeypatch):
    some, judge, counted = data(30), network(3), []
    how = {"sigma": 0.4, "draws": 50, "device": "cpu"}
    monkeypatch.setattr("certcal.lab.training.prepare._PIECE_VOTES", 50 * 8)
    whole = soft_labels(judge, some, **how)

    def votes(target, rows, samples, *others):
        if len(counted) == 2:
            raise KeyboardInterrupt
        counted.append(samples)
        return class_votes(target, rows, samples, *others)

    monkeypatch.setattr("certcal.lab.training.prepare.class_votes", votes)
    with pytest.raises(KeyboardInterrupt):
        soft_labels(judge, some, out=tmp_path / "votes", **how)
    counted[:] = [0]
    with pytest.raises(KeyboardInterrupt):
        soft_labels(judge, some, out=tmp_path / "votes", **how)
    monkeypatch.setattr("certcal.lab.training.prepare.class_votes", class_votes)
    assert counted == [0, 8]
    assert len(list((tmp_path / "votes").glob("*.npz"))) == 3
    assert np.array_equal(soft_labels(judge, some, out=tmp_path / "votes", **how), whole)
    for other in ({"sigma": 0.5}, {"draws": 60}, {"seed": 1}):
        with pytest.raises(InputError, match=f"it was begun with {next(iter(other))} = "):
            soft_labels(judge, some, out=tmp_path / "votes", **{**how, **other})
    with pytest.raises(InputError, match="it was begun with model = "):
        soft_labels(network(4), some, out=tmp_path / "votes", **how)


def test_of_imagenet_the_number_of_draws_comes_from_the_soft_labels():
    """K has the binomial distribution of the soft label's probability of the label, however wrong the network is."""
    every = torch.log_softmax(random(4, 2000, 3, seed=5), 2)
    labels = torch.zeros(2000, dtype=torch.int64)
    soft = torch.tensor([0.7, 0.2, 0.1], dtype=torch.float64).expand(2000, 3)
    kept = confident_draws(every, labels, torch.Generator().manual_seed(1), soft)
    expected = [sum(math.comb(4, k) * 0.7**k * 0.3 ** (4 - k) for k in own) for own in ((0, 1), (2,), (3,), (4,))]
    found = [float((kept == k).double().mean()) for k in (1, 2, 3, 4)]
    assert np.abs(np.subtract(found, expected)).max() < 0.05  # over four standard deviations
    own = view(WEIGHTS, NoisyInputs(torch.log_softmax(random(8, 3, seed=4), 1), None))
    assert not torch.equal(CatRs()(own).loss, CatRs(confidence="soft")(view(WEIGHTS, own.search_result)).loss)


def test_epsilon_is_twice_as_large_from_an_epoch_on():
    def reach(search, epoch):
        found = seek(search, replace(NOW, epoch=epoch))
        return (found.noisy - INPUTS - NOISE).flatten(2).norm(dim=2).max()

    late = WorseNoise(0.25, 1, double_from=3)
    assert reach(late, 2) == reach(WorseNoise(0.25, 1), 2) <= NOW.epsilon
    assert NOW.epsilon < reach(late, 3) <= 2 * NOW.epsilon
    short = recipe("cat-rs", preset="jeong-2023-catrs:imagenet", sigma=1.0, epochs=9)
    assert (short.own.confidence, short.own.double_from, short.epochs) == ("soft", 8, 9)


def test_training_counts_the_votes_of_weights_once_and_keeps_them(tmp_path, monkeypatch):
    some, judge = data(24), network(3)
    weights = train(judge, some, small("standard", epochs=1, batch=24), out=tmp_path / "judge").file
    changes = {"sigma": 0.3, "epochs": 1, "draws": 2, "batch": 24, "epsilon": 0.2, "box": None}
    made = certcal.train(network(), some, "cat-rs", soft=weights, out=tmp_path / "run", **changes)
    (kept,) = tmp_path.glob("run-soft-*.npy")
    shares = np.load(kept)
    assert shares.shape == (24, 10)
    monkeypatch.setattr("certcal.lab.training.soft_labels", None)  # not counted again
    for soft in (weights, kept):
        again = certcal.train(network(), some, "cat-rs", soft=soft, out=tmp_path / "run", **changes)
        assert same_weights(made.network, again.network)
        assert again.trained.resumed == 1
    with pytest.raises(InputError, match="soft: it is not for gaussian training; leave it out"):
        certcal.train(network(), some, "gaussian", soft=weights, batch=24, sigma=0.3)
