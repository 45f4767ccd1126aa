"""Training on a device gives what it gives on the CPU where the noise is the same, and goes on on any other."""

import json
from functools import partial

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from certcal import InputError
from certcal.lab.plans.gradient_norms import gradient_norms
from certcal.lab.training import METHODS, PerturbedLoss, train
from certcal.models.networks import MLP
from tests.accelerator import accelerator
from tests.training.digits import (
    TWO_CLASSES,
    Modern,
    Stopped,
    data,
    held_out,
    network,
    numbers,
    same_weights,
    small,
    stop_at,
)

SOME = data(120)


def went(method, device, net=network, test=None, out=None, progress=None, **changes):
    plan = small(method, **{"epochs": 1, "batch": 60, **({"begin": 0} if method == "acr" else {}), **changes})
    often = {} if out is None else {"checkpoint_seconds": 0.0}
    net, some = (partial(network, method=method), data(120, method)) if method in TWO_CLASSES else (net, SOME)
    return train(net(), some, plan, device=device, test=test, out=out, progress=progress, **often)


def nearly(one, other):
    """Whether all weights and buffers are the same but for a rounding or two."""
    return all(
        torch.allclose(mine, yours.cpu(), rtol=0, atol=1e-7)
        for mine, yours in zip(one.network.state_dict().values(), other.network.state_dict().values(), strict=True)
    )


@pytest.mark.parametrize("method", METHODS)
def test_every_method_trains_on_a_device_without_doubles_as_on_the_cpu(method):
    with accelerator(doubles=False):
        there = went(method, "pretend")
        assert {weight.device.type for weight in there.network.parameters()} == {"pretend"}
        here = went(method, "cpu")
        assert nearly(here, there)
        assert there.history[0]["loss"] == pytest.approx(here.history[0]["loss"], rel=1e-6)


def test_dropout_batch_normalisation_augmentation_and_test_data_are_alike_on_a_device():
    with accelerator(doubles=False):
        for augment in ("crop+flip", "resized-crop+flip"):
            changes = {"augment": augment, "pieces": 2, "optimiser": "adam", "learning_rate": 0.01}
            here, there = (went("gaussian", device, Modern, held_out(), **changes) for device in ("cpu", "pretend:0"))
            assert nearly(here, there)
            assert numbers(here) == numbers(there)


def test_a_step_reads_from_the_device_once_and_never_waits_for_a_number():
    with accelerator() as state:
        read: list[int] = []
        for batch in (60, 20):
            state.to_host = state.waits = 0
            went("macer", "pretend", batch=batch)
            assert state.waits == 1  # whether all weights are finite, once an epoch
            read.append(state.to_host)
        assert read[1] - read[0] == 4  # six steps in place of two


def test_a_run_goes_on_on_another_device(tmp_path):
    with accelerator(doubles=False):
        whole = went("brier-act", "cpu", Modern, batch=30)
        for first, second in (("pretend", "cpu"), ("cpu", "pretend")):
            out = tmp_path / first
            with pytest.raises(Stopped):
                went("brier-act", first, Modern, out=out, progress=stop_at(3), batch=30)
            (kept,) = out.glob("checkpoint-*")
            assert {tensor.device.type for tensor in load_file(kept).values()} == {"cpu"}
            assert json.loads((out / "recipe.json").read_text())["versions"]["device"].startswith(first)
            rest = went("brier-act", second, Modern, out=out, batch=30)
            assert rest.resumed
            assert nearly(whole, rest)
            assert same_weights(rest.network.cpu(), went("brier-act", "cpu", Modern, out=out, batch=30).network)


def test_auto_is_the_accelerator_and_what_is_not_there_is_one_sentence(tmp_path):
    with accelerator():
        assert next(went("standard", "auto").network.parameters()).device.type == "pretend"
    for device in ("pretend", "cuda:7", "tpu"):
        with pytest.raises(InputError, match=f"device: there is no '{device}' here, only cpu") as caught:
            went("standard", device, out=tmp_path / "run")
        assert caught.value.argument == "device"
    assert not (tmp_path / "run").exists()


def test_what_does_not_fit_into_the_memory_of_a_device_asks_for_more_pieces():
    with accelerator(memory=60 * 64), pytest.raises(InputError) as caught:
        went("gaussian", "pretend", draws=3)
    expected = "pieces: a batch in 1 piece does not fit into the memory of pretend:0; give more pieces"
    assert str(caught.value).startswith(expected)
    with accelerator(memory=60 * 64):
        assert went("gaussian", "pretend", draws=3, pieces=3).history


def test_gradient_norms_and_the_loss_for_perturbed_scores_are_those_of_the_cpu():
    with accelerator(doubles=False):
        plan, some = small("acr"), {"samples": 4, "draws": 5}
        here, there = (gradient_norms(network(), SOME, plan, device=device, **some) for device in ("cpu", "pretend"))
        assert here.p_a.tolist() == there.p_a.tolist()
        assert there.norms == pytest.approx(here.norms, rel=1e-5)
        logits, outcomes = torch.tensor([2.0, -1.0, 0.1, 0.12]), torch.tensor([1, 0, 1, 0])
        loss = PerturbedLoss(2**-6)
        found = loss(logits.to("pretend"), outcomes.to("pretend")).cpu()
        assert float(found) == pytest.approx(float(loss(logits, outcomes)), rel=1e-5)


class Sensitive(nn.Module):
    """Notes in which type it computes, training or not; in the class, because networks are copied."""

    outputs = "logits"
    seen: set[tuple[bool, torch.dtype]]

    def __init__(self, gain: float = 1.0):
        super().__init__()
        self.inner, self.gain = network(), gain

    def forward(self, inputs):
        out = self.inner(inputs * self.gain)
        type(self).seen.add((self.training, out.dtype))
        return out


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
@pytest.mark.parametrize("method", ["smoothadv", "cat-rs", "acr"])
def test_adversaries_and_weights_are_computed_in_the_precision_that_is_asked_for(method, precision):
    Sensitive.seen = set()
    learned = went(method, "cpu", Sensitive, precision=precision)
    reduced = getattr(torch, precision)
    assert {(True, reduced), (False, reduced)} <= Sensitive.seen
    assert {weight.dtype for weight in learned.network.parameters()} == {torch.float32}
    exact = went(method, "cpu")
    assert learned.history[0]["loss"] == pytest.approx(exact.history[0]["loss"], rel=0.02)
    assert learned.history[0]["loss"] != exact.history[0]["loss"]
    with accelerator(doubles=False):
        assert went(method, "pretend", precision=precision).history[0]["loss"] > 0


def test_in_float16_a_step_that_overflows_is_left_out_and_the_scale_of_the_loss_is_resumed(tmp_path):
    Sensitive.seen = set()
    large = {"net": lambda: Sensitive(gain=30.0), "precision": "float16", "batch": 20, "learning_rate": 1e-6}
    whole = went("standard", "cpu", **large)
    out = tmp_path / "run"
    with pytest.raises(Stopped):
        went("standard", "cpu", out=out, progress=stop_at(2), **large)
    state = json.loads((out / "state.json").read_text())
    assert state["scale"] < 2**16
    assert state["steady"] <= state["step"] == 1
    assert same_weights(whole, went("standard", "cpu", out=out, **large))
    assert not same_weights(whole, Sensitive())


def test_a_run_in_bfloat16_from_before_adversaries_had_it_is_refused(tmp_path):
    with pytest.raises(Stopped):
        went("smoothadv", "cpu", out=tmp_path, progress=stop_at(2), precision="bfloat16", batch=30)
    file = tmp_path / "recipe.json"
    written = json.loads(file.read_text())
    del written["recipe"]["augment"]
    file.write_text(json.dumps(written))
    with pytest.raises(InputError, match="precision was 'bfloat16 for the weights only' and is now 'bfloat16'"):
        went("smoothadv", "cpu", out=tmp_path, precision="bfloat16", batch=30)


def test_probabilities_are_too_fine_for_reduced_precision():
    net = MLP(64, hidden=(8,))
    net.outputs = "probabilities"
    for precision in ("bfloat16", "float16"):
        with pytest.raises(
            InputError, match=f"MLP returns probabilities, too fine for {precision}; let it return logits"
        ):
            train(net, SOME, small("standard", batch=60, precision=precision))
