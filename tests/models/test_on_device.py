"""Models on an accelerator: loaded onto it, wrapped where they are, and asked in batches that fit into its memory."""

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from certcal import InputError
from certcal.models import differentiable, load, wrap
from certcal.models.devices import DeviceMemoryWarning, Fitting
from certcal.models.networks import MLP, LeNet, by_name, save_weights
from tests.accelerator import NAME, accelerator
from tests.models.test_differentiable import identity_onnx

ROWS = np.random.default_rng(0).random((12, 6)).astype(np.float32)
MAKERS = "tests.models.makers_for_tests"


def network() -> MLP:
    return MLP(6, hidden=(8,), classes=3, seed=1).eval()


def where(model: Any) -> set[str]:
    return {str(each.device) for each in model.module.parameters()}


def test_a_file_is_loaded_onto_the_accelerator_and_answers_as_on_the_cpu(tmp_path: Path) -> None:
    save_weights(LeNet(), tmp_path / "lenet.safetensors")
    images = np.random.default_rng(0).random((3, 1, 28, 28)).astype(np.float32)
    expected = load(tmp_path / "lenet.safetensors")(images)
    with accelerator() as state:
        model: Any = load(tmp_path / "lenet.safetensors")
        assert (model.device, where(model), model.source.device) == (NAME, {f"{NAME}:0"}, "auto")
        copied = state.to_device
        np.testing.assert_array_equal(model(images), expected)
        assert (state.to_device - copied, state.to_host, state.waits) == (1, 1, 0)
        assert type(model(images)) is np.ndarray
        assert load(tmp_path / "lenet.safetensors", device="cpu").device == "cpu"  # pyright: ignore


def test_a_network_by_name_with_weights_goes_to_the_device_that_is_named(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    made = MLP(4, hidden=(5,), classes=3, seed=4).eval()
    save_file(made.state_dict(), tmp_path / "weights.safetensors")
    with accelerator():
        given = {"outputs": "logits", "weights": tmp_path / "weights.safetensors"}
        model: Any = load(f"{MAKERS}:unfitted", device=f"{NAME}:1", **given)  # pyright: ignore
        assert (model.device, where(model)) == (f"{NAME}:1", {f"{NAME}:1"})
        np.testing.assert_array_equal(model(ROWS[:, :4]), wrap(made)(ROWS[:, :4]))
        again: Any = model.source.load()
        assert where(again) == {f"{NAME}:1"}
        packed: Any = model.source.packed().load()
        assert where(packed) == {f"{NAME}:1"}


def test_a_module_that_lives_on_an_accelerator_is_wrapped_there_without_a_try_on_the_cpu() -> None:
    with accelerator():
        module = network().to(f"{NAME}:1")
        for device in (None, "auto", f"{NAME}:1"):
            model: Any = wrap(module, device=device)
            assert (model.device, where(model)) == (f"{NAME}:1", {f"{NAME}:1"})
            np.testing.assert_array_equal(model(ROWS), wrap(network())(ROWS))
        assert where(wrap(module, device="cpu")) == {"cpu"}
        assert next(module.parameters()).device == torch.device(NAME, 1)  # the original stays


def test_a_module_on_the_cpu_stays_there_unless_it_is_told_to_go() -> None:
    with accelerator():
        assert wrap(network()).device == "cpu"  # pyright: ignore
        assert where(wrap(network(), device="auto")) == {f"{NAME}:0"}
        moved: Any = wrap(wrap(network()), device=NAME)
        assert where(moved) == {f"{NAME}:0"}
        assert wrap(moved) is moved


def test_the_fingerprint_of_a_network_is_the_same_on_every_device() -> None:
    here = wrap(network()).fingerprint(ROWS)
    with accelerator():
        assert wrap(network(), device=NAME).fingerprint(ROWS) == here


def test_gradients_are_taken_where_the_module_is() -> None:
    with accelerator():
        found = differentiable(network(), device=NAME)
        assert found.device == NAME
        inputs = torch.tensor(ROWS, device=NAME, requires_grad=True)
        (gradient,) = torch.autograd.grad(found.module(inputs).sum(), inputs)
        assert gradient.device == torch.device(NAME, 0)


def test_what_cannot_be_moved_says_so(tmp_path: Path) -> None:
    identity = identity_onnx(tmp_path / "identity.onnx")
    with accelerator():
        assert wrap(lambda batch: batch, outputs="logits", device="auto").device == "cpu"  # pyright: ignore
        with pytest.raises(InputError, match="a Python callable computes where it was made to, and is not moved to"):
            wrap(lambda batch: batch, outputs="logits", device=NAME)
        assert load(identity, "logits").device == "cpu"  # pyright: ignore
        with pytest.raises(
            InputError, match=r"onnxruntime has nothing for 'pretend' here, only .*CPUExecutionProvider"
        ):
            load(identity, "logits", device=NAME)


@pytest.mark.parametrize("device", ["cuda", "mps", "pretend:7"])
def test_a_device_that_is_not_there_is_refused_before_the_module_is_touched(device: str) -> None:
    with pytest.raises(InputError, match="only cpu; give one of these, or 'auto'"):
        wrap(network(), device=device)


class Wide(nn.Module):
    """Makes forty numbers of every row on the way."""

    outputs = "logits"
    seen: list[int]

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.up, self.down, self.seen = nn.Linear(6, 4), nn.Linear(40, 3), []

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        self.seen.append(len(batch))
        return self.down(self.up(batch).relu().repeat(1, 10))


def test_a_batch_that_does_not_fit_is_halved_until_it_does_which_is_remembered_and_said_once() -> None:
    expected = wrap(Wide().eval())(ROWS)
    with accelerator(memory=5 * 40):
        model: Any = wrap(Wide().eval(), device=NAME)
        seen = model.module.seen
        with pytest.warns(
            DeviceMemoryWarning, match="12 inputs do not fit into .* pretend at once, so it gets 3"
        ) as told:
            np.testing.assert_allclose(model(ROWS), expected, rtol=1e-6)
        assert (seen, len(told)) == ([12, 6, 3, 3, 3, 3], 1)
        seen.clear()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.testing.assert_allclose(model(ROWS), expected, rtol=1e-6)
        assert seen == [3, 3, 3, 3]


def test_one_input_that_does_not_fit_is_one_sentence() -> None:
    with accelerator(memory=300):
        model = wrap(Wide().eval(), device=NAME)
    with accelerator(memory=30), pytest.raises(InputError, match="not even with one input") as caught:
        model(ROWS)
    assert "choose another device or a smaller model" in str(caught.value)
    with (
        accelerator(memory=30),
        pytest.raises(InputError, match="Wide does not fit into the memory of pretend; choose"),
    ):
        wrap(Wide().eval(), device=NAME)


def test_what_onnxruntime_says_when_memory_is_short_is_understood() -> None:
    class RuntimeException(Exception):
        pass

    def run(batch: np.ndarray) -> np.ndarray:
        if len(batch) > 2:
            raise RuntimeException("Failed to allocate memory for requested buffer of size 1234")
        return batch

    fitting = Fitting("net.onnx (ONNX)", "cuda")
    with pytest.warns(DeviceMemoryWarning, match="12 inputs do not fit"):
        np.testing.assert_array_equal(fitting(run, ROWS), ROWS)
    assert fitting.rows == 1  # 12, 6, 3, 1


def test_another_failure_is_not_taken_for_a_lack_of_memory() -> None:
    with pytest.raises(ValueError, match="no such thing"):
        Fitting("net", "cpu").pieces(lambda a, b: (_ for _ in ()).throw(ValueError("no such thing")), 0, 3)


def rounded_elsewhere(batch: np.ndarray) -> np.ndarray:
    """Answers that differ with the machine, as last bits do."""
    return batch * np.float32(os.environ.get("CERTCAL_TEST_FACTOR", "1"))


def test_a_function_is_known_again_where_its_answers_are_rounded_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    model: Any = wrap(rounded_elsewhere, outputs="logits")
    probe = np.array([[0.25, 1.0], [2.0, 0.75]], np.float32)  # at the edge of a rounding to one decimal
    digits = model.fingerprint(probe)
    monkeypatch.setenv("CERTCAL_TEST_FACTOR", "1.000001")
    assert model.fingerprint(probe) != digits
    assert model.known_as(digits, probe)
    monkeypatch.setenv("CERTCAL_TEST_FACTOR", "1.1")
    assert not model.known_as(digits, probe)


def test_a_factory_that_makes_a_network_on_an_accelerator_is_tried_there() -> None:
    with accelerator():
        made = by_name(f"{MAKERS}:elsewhere", (4,), 3)
        assert next(made.parameters()).device == torch.device(NAME, 0)
