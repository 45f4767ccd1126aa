"""The loop: what is in force, what is kept, and what cannot be trained is one sentence before it begins."""

import dataclasses

import numpy as np
import pytest
import torch
from torch import nn

from certcal import InputError
from certcal.data import Inputs
from certcal.lab.training import Diverged, Recipe, read_log, recipe, train
from certcal.lab.training.schedules import order_of
from certcal.models.devices import torch_threads
from certcal.models.networks import MLP, LeNet
from tests.training.digits import ADVERSARIAL, Modern, Poisoned, data, network, same_weights, small


def test_another_seed_gives_another_network():
    one, other = (train(network(), data(200), small("gaussian", epochs=1, seed=seed)) for seed in (0, 1))
    assert not same_weights(one, other)


class Recorder(nn.Module):
    """Notes what it is trained on, and a number from torch's generator; in the class, because networks are copied."""

    outputs = "logits"
    seen: tuple[list, list]

    def __init__(self):
        super().__init__()
        self.inner = network()

    def forward(self, inputs):
        if self.training:
            type(self).seen[0].append(inputs[0].flatten().tolist())
            type(self).seen[1].append(torch.rand(1).item())
        return self.inner(inputs)


def test_noise_and_dropout_are_drawn_anew_in_every_epoch_step_and_piece():
    Recorder.seen = ([], [])
    zeros = Inputs.from_arrays(np.zeros((40, 1, 8, 8), np.float32), np.arange(40) % 10)
    train(Recorder(), zeros, small("gaussian", sigma=0.5, batch=20, pieces=2, learning_rate=1e-6))
    for several in Recorder.seen:
        drawn = several[-8:]  # two epochs of two steps of two pieces; what comes before are trials
        assert len(drawn) == 8
        assert len({str(each) for each in drawn}) == 8
    values = np.array(Recorder.seen[0][-8:])
    assert values.std() == pytest.approx(0.5, rel=0.15)
    assert np.abs(np.corrcoef(values) - np.eye(8)).max() < 0.6


def test_the_network_that_was_passed_and_torchs_state_stay_as_they_are():
    mine, threads, state = network().train(), torch.get_num_threads(), torch.get_rng_state()
    trained = train(mine, data(200), small("standard", epochs=1))
    assert same_weights(mine, network())
    assert mine.training
    assert not any(part.training for part in trained.network.modules())
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)
    assert all(weight.requires_grad for weight in trained.network.parameters())


def test_weights_that_need_no_gradient_are_left_alone():
    mine = network()
    mine.layers[0].requires_grad_(False)
    trained = train(mine, data(200), small("smoothadv", epochs=1)).network
    assert torch.equal(trained.layers[0].weight, mine.layers[0].weight)
    assert not torch.equal(trained.layers[2].weight, mine.layers[2].weight)
    assert not trained.layers[0].weight.requires_grad


def test_the_history_says_what_was_in_force():
    plan = small("smoothadv", epochs=3, sigma_warmup=2, epsilon_delay=1, epsilon_warmup=2, milestones=(2,))
    history = train(network(), data(200), plan).history
    assert [line["sigma"] for line in history] == pytest.approx([0.05, 0.1, 0.1])
    assert [line["epsilon"] for line in history] == pytest.approx([0.0, 0.1, 0.2])
    assert [line["learning_rate"] for line in history] == pytest.approx([0.2, 0.2, 0.02])


def test_progress_comes_after_every_step_and_carries_the_line_of_the_epoch():
    seen = []
    trained = train(network(), data(), small("gaussian"), progress=seen.append)
    assert [(each.epoch, each.batch, each.batches) for each in seen] == [
        (e, b, 4) for e in (0, 1) for b in (1, 2, 3, 4)
    ]
    assert [each.share for each in seen] == [k / 8 for k in range(1, 9)]
    assert [each.line for each in seen if each.line is not None] == trained.history
    assert seen[-1].samples == 1000
    assert seen[3].loss == trained.history[0]["loss"]


def test_a_batch_in_pieces_gives_nearly_the_whole_batchs_gradients():
    plan = small("standard", epochs=1, batch=500)
    whole, cut = (train(network(), data(), dataclasses.replace(plan, pieces=pieces)).network for pieces in (1, 4))
    for one, other in zip(whole.parameters(), cut.parameters(), strict=True):
        assert torch.allclose(one, other, rtol=1e-4, atol=1e-6)


def test_batch_normalisation_takes_the_mean_of_what_the_pieces_make():
    plan = small("standard", epochs=1, batch=400, pieces=2)
    trained = train(Modern(), data(400), plan).network
    # In the same order of memory and on one thread, on which torch's sums over a batch depend.
    mine = Modern().train().to(memory_format=torch.channels_last)
    inputs = torch.tensor(data(400).inputs)
    order = order_of(torch.ones(400), plan.seed, 0)
    means = []
    with torch_threads():
        for index in order.split(200):
            mine.layers[1].reset_running_stats()
            mine(inputs[index])
            means.append(mine.layers[1].running_mean.clone())
    assert torch.allclose(trained.layers[1].running_mean, (means[0] + means[1]) / 2, rtol=1e-5, atol=1e-7)
    assert trained.layers[1].num_batches_tracked == 1


def test_training_in_bfloat16_learns_and_differs():
    half, full = (train(network(), data(), small("brier-act", precision=word)) for word in ("bfloat16", "float32"))
    assert half.history[-1]["loss"] < half.history[0]["loss"]
    assert not same_weights(half, full)
    assert half.history[-1]["loss"] == pytest.approx(full.history[-1]["loss"], rel=0.05)
    assert {weight.dtype for weight in half.network.parameters()} == {torch.float32}


def test_adam_and_the_mean_over_draws_learn():
    for changes in ({"optimiser": "adam", "learning_rate": 0.01}, {"loss": "draws", "draws": 3}):
        first, last = train(network(), data(), small("gaussian", **changes)).history
        assert last["loss"] < first["loss"]


def test_adversaries_without_noise_are_plain_adversarial_training():
    plan = small("smoothadv", sigma=0.0, norm="linf", epsilon=8 / 255, draws=1)
    first, last = train(network(), data(), plan).history
    assert last["loss"] < first["loss"]


def test_fine_tuning_begins_with_other_weights(tmp_path):
    first = train(network(), data(), small("gaussian"), out=tmp_path / "first")
    plan = small("brier-act", epochs=1, learning_rate=1e-9)
    from_file = train(network(seed=5), data(), plan, start=first.file)
    from_network = train(network(seed=5), data(), plan, start=first.network)
    assert same_weights(from_file, from_network)
    for one, other in zip(from_file.network.parameters(), first.network.parameters(), strict=True):
        assert torch.allclose(one, other, atol=1e-5)
    with pytest.raises(
        InputError, match=r"model.safetensors: its weights do not fit MLP: 'layers.0.bias' is \(32,\) there"
    ):
        train(MLP(64, hidden=(16,)), data(), plan, start=first.file)
    with pytest.raises(InputError, match=r"start \(MLP\): its weights do not fit LeNet"):
        train(LeNet(pixels=12), data(), plan, start=network())
    (tmp_path / "bad.safetensors").write_bytes(b"not weights at all")
    with pytest.raises(InputError, match="not a safetensors file, or it is damaged"):
        train(network(), data(), plan, start=tmp_path / "bad.safetensors")


def test_divergence_stops_with_the_step_and_keeps_the_last_checkpoint(tmp_path):
    out = tmp_path / "run"
    with pytest.raises(Diverged) as caught:
        train(Poisoned(), data(), small("gaussian"), out=out)
    text = str(caught.value)
    assert text.startswith("training diverged at step 5 (epoch 1): the loss is nan; the checkpoint ")
    assert "checkpoint-000004.safetensors is kept; try a lower learning rate" in text
    assert (out / "checkpoint-000004.safetensors").exists()
    assert len(read_log(out)) == 1
    with pytest.raises(Diverged, match="nothing was saved"):
        train(network(), data(), small("standard", learning_rate=1e30))


def arrays(shape=(1, 8, 8), labels=10, samples=300):
    return Inputs.from_arrays(np.zeros((samples, *shape), np.float32), np.arange(samples) % labels)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"network": lambda x: x}, "network is a function; pass a torch module"),
        ({"network": nn.Identity()}, "outputs: it is needed for Identity"),
        ({"network": nn.Identity(), "outputs": "logits"}, "Identity has no weights that need gradients"),
        ({"network": network().double()}, r"MLP has weights of type torch.float64; call .float\(\)"),
        ({"network": LeNet()}, r"LeNet does not take inputs of shape \(1, 8, 8\) \(RuntimeError: .*; pass a network"),
        ({"inputs": arrays((1, 9, 9))}, r"MLP does not take inputs of shape \(1, 9, 9\)"),
        ({"test": arrays((3, 8, 8))}, r"MLP does not take test of shape \(3, 8, 8\)"),
        ({"inputs": arrays(labels=12)}, r"labels\[10\] of inputs is 10, but MLP has 10 classes, counted from 0"),
        ({"test": arrays(labels=11)}, r"labels\[10\] of test is 10, but MLP has 10 classes"),
        (
            {
                "inputs": Inputs.from_arrays(np.full((300, 1, 8, 8), -0.25), np.arange(300) % 10),
                "recipe": small("brier-act"),
            },
            r"inputs\[0, 0, 0, 0\] is -0.25, outside of 0 to 1; give the smallest",
        ),
        ({"inputs": np.zeros((3, 64))}, "inputs is a ndarray; make it with certcal.data.Inputs.from_arrays"),
        (
            {"inputs": arrays(samples=100)},
            "batch: it is 128, but there are 100 samples to train on; give a",
        ),
        ({"recipe": {"epochs": 3}}, "recipe is a dict; make one with certcal.lab.training.recipe"),
        ({"recipe": small("standard", batch=4, pieces=4), "inputs": arrays(samples=5)}, "batches have 2 samples"),
        (
            {"network": nn.Sequential(nn.Flatten(), nn.Linear(64, 1)), "outputs": "logits"},
            r"returns \(2, 1\) for 2 inputs",
        ),
        (
            {
                "network": nn.Sequential(nn.Flatten(), nn.Linear(64, 10), nn.Softmax(1)),
                "outputs": "probabilities",
                "recipe": small("standard", precision="bfloat16"),
            },
            "Sequential returns probabilities, too fine for bfloat16",
        ),
    ],
)
def test_what_cannot_be_trained_is_one_sentence(change, sentence):
    given = {"network": network(), "inputs": data(300), "recipe": small("standard")} | change
    with pytest.raises(InputError, match=sentence) as caught:
        train(given.pop("network"), given.pop("inputs"), given.pop("recipe"), **given)
    assert "\n" not in str(caught.value)


def test_a_recipe_that_calls_for_no_adversary_yet_trains_as_gaussian_does():
    plan = small("smoothadv", epochs=2, epsilon_delay=1, draws=1)
    quiet = Recipe.from_dict({**plan.to_dict(), "method": "gaussian", "epsilon": 0.0, "epsilon_delay": 0})
    one, other = (train(network(), data(200), each).history[0] for each in (plan, quiet))
    assert one["loss"] == other["loss"]


@pytest.fixture(scope="module")
def learned():
    return train(network(), data(), small("gaussian", epochs=6)).network


@pytest.mark.parametrize("method", ADVERSARIAL)
def test_adversaries_make_training_harder(method, learned):
    losses = []
    for epsilon in (0.0, 0.5):
        plan = small(method, epochs=1, epsilon=epsilon, mix=1.0)
        losses.append(train(network(), data(), plan, start=learned).history[0]["loss"])
    assert losses[1] > losses[0]


# --- what is tried before training begins -----------------------------------------------------------------------------


class Normalised(nn.Module):
    outputs = "logits"

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 2))

    def forward(self, inputs):
        return self.layers(inputs)


class Twofold(Normalised):
    def forward(self, inputs):
        rows = self.layers(inputs)
        return (rows, rows) if self.training else rows


EIGHT = Inputs.from_arrays(np.random.default_rng(0).random((8, 4)), [0, 1] * 4)


def plan(**changes):
    return recipe("gaussian", sigma=0.1, sigma_warmup=0, epochs=1, milestones=(), **changes)


def test_batch_normalisation_of_one_sample_is_refused_before_anything_is_written(tmp_path):
    sentence = "Normalised in training mode does not take 1 of the inputs .*pass a larger batch or fewer pieces"
    for sizes in ({"batch": 1}, {"batch": 4, "pieces": 4}):
        with pytest.raises(InputError, match=sentence):
            train(Normalised(), EIGHT, plan(**sizes), out=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []
    assert len(train(Normalised(), EIGHT, plan(batch=1, draws=2)).history) == 1


def test_a_network_that_returns_something_else_in_training_is_refused():
    with pytest.raises(InputError, match="Twofold in training mode returns a tuple; it must return a row per input"):
        train(Twofold(), EIGHT, plan(batch=4))


def test_the_trial_leaves_torchs_generator_alone():
    mine = Normalised()
    torch.manual_seed(0)
    before = torch.get_rng_state()
    trained = train(mine, EIGHT, plan(batch=4))
    assert torch.equal(torch.get_rng_state(), before)
    assert int(trained.network.layers[1].num_batches_tracked) == 2
