"""Networks by name: they fit the images, or a sentence says why not."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from certcal import InputError
from certcal.models import export_onnx, load
from certcal.models.networks import MLP, LeNet, PreActResNet, PublishedResNet, ResNet, by_name
from tests.accelerator import accelerator

HERE = "tests.models.makers_for_tests"


def state(network: nn.Module) -> list[torch.Tensor]:
    return list(network.state_dict().values())


@pytest.mark.parametrize(
    ("name", "shape", "kind"),
    [
        ("lenet", (1, 28, 28), LeNet),
        ("lenet", (3, 32, 32), LeNet),
        ("lenet", (2, 12, 12), LeNet),
        ("resnet20", (1, 8, 8), ResNet),
        ("resnet20", (3, 20, 12), ResNet),
        ("preact18", (3, 8, 8), PreActResNet),
        ("resnet20-cifar", (1, 8, 8), PublishedResNet),
        ("resnet18-imagenet", (3, 16, 16), PublishedResNet),
        ("mlp", (1, 8, 8), MLP),
        ("mlp", (13,), MLP),
    ],
)
def test_a_network_fits_the_images_and_classes_it_was_asked_for(name: str, shape: Any, kind: type) -> None:
    network: Any = by_name(name, shape, 7).eval()
    assert type(network) is kind
    with torch.no_grad():
        assert network(torch.zeros(2, *shape)).shape == (2, 7)
    assert (network.sample_shape, network.outputs) == (shape, "logits")


def test_the_names_mean_the_depths_and_normalisation_goes_inside() -> None:
    network: Any = by_name("resnet110", (3, 32, 32), 10, mean=(0.1, 0.2, 0.3), std=0.5)
    assert network.settings["depth"] == 110
    assert network.normalize.mean.tolist() == pytest.approx([0.1, 0.2, 0.3])
    mlp: Any = by_name("mlp", (3, 4, 4), 10, mean=[0.25], std=0.5)
    assert (mlp.settings["mean"], mlp.settings["std"], mlp.settings["features"]) == (0.25, 0.5, 48)
    plain: Any = by_name("lenet", (1, 28, 28), 10)
    assert (plain.settings["mean"], plain.settings["std"]) == ([0.0], [1.0])


@pytest.mark.parametrize("name", ["lenet", f"{HERE}:fitting", f"{HERE}:Plain"])
def test_the_weights_depend_on_the_seed_and_nothing_else(name: str) -> None:
    shape, classes = ((1, 4, 4), 3) if ":" in name else ((1, 12, 12), 3)
    before = torch.get_rng_state()
    first, second, other = (by_name(name, shape, classes, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(a, b) for a, b in zip(state(first), state(second), strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(state(first), state(other), strict=True))


def test_a_named_maker_gets_what_it_has_a_parameter_for() -> None:
    network: Any = by_name(f"{HERE}:fitting", (2, 3, 3), 5)
    assert (network[1].in_features, network[1].out_features, network.std) == (18, 5, 2.0)
    assert by_name(f"{HERE}:fitting", (2, 3, 3), 5, std=4.0).std == 4.0
    with pytest.raises(InputError, match=r"mean is given, but tests\.models\.makers_for_tests:fitting takes none"):
        by_name(f"{HERE}:fitting", (2, 3, 3), 5, mean=0.5)


def test_trying_a_named_network_leaves_its_mode_and_statistics() -> None:
    network: Any = by_name(f"{HERE}:Plain", (1, 4, 4), 3)
    assert all(part.training for part in network.modules())
    assert int(network.layers[2].num_batches_tracked) == 0
    assert (network.sample_shape, network.outputs) == ((1, 4, 4), "logits")


def test_a_named_module_is_copied_with_its_weights() -> None:
    from tests.models.makers_for_tests import FITTED

    network = by_name(f"{HERE}:FITTED", (4,), 3)
    assert network is not FITTED
    assert all(torch.equal(a, b) for a, b in zip(state(network), state(FITTED), strict=True))


def test_a_network_for_images_can_be_exported_for_them(tmp_path: Path) -> None:
    export_onnx(by_name("mlp", (1, 3, 3), 4).eval(), tmp_path / "mlp.onnx")
    assert load(tmp_path / "mlp.onnx")([[[[0.5] * 3] * 3]]).shape == (1, 4)


@pytest.mark.parametrize(
    ("name", "shape", "classes", "options", "sentence"),
    [
        ("lenet", (1, 8, 8), 10, {}, r"lenet takes square images .*, not \(1, 8, 8\); use mlp or resnet20"),
        ("lenet", (1, 28, 24), 10, {}, r"lenet takes square images .*, not \(1, 28, 24\)"),
        ("lenet", (1, 30, 30), 10, {}, r"divisible by 4, not \(1, 30, 30\)"),
        ("lenet", (64,), 10, {}, r"lenet takes images of shape \(channels, height, width\), not inputs of .*; use mlp"),
        ("resnet20", (3, 32, 4), 10, {}, r"resnet20 takes images from 8 by 8 pixels, not \(3, 32, 4\)"),
        ("preact18", (28, 28), 10, {}, "preact18 takes images of shape"),
        ("mlp", (3, 4, 4), 10, {"mean": (0.1, 0.2, 0.3)}, "mean has 3 numbers; mlp takes one for all inputs"),
        ("lenet", (3, 32, 32), 10, {"std": (0.1, 0.2)}, "std has 2 numbers; pass one, or one for each of 3"),
        ("mlp", (), 10, {}, "sample_shape is empty"),
        ("mlp", (0, 3), 10, {}, "sample_shape is 0"),
        ("mlp", (4,), 1, {}, "classes is 1"),
        ("vgg", (1, 28, 28), 10, {}, r"'vgg' is no network; give lenet, .*, or a name, 'package\.module:name'"),
        (f"{HERE}:Nothing", (4,), 3, {}, "has no 'Nothing'; check the spelling"),
        (f"{HERE}:NUMBER", (4,), 3, {}, "NUMBER is a int; name a class or function that makes a torch module"),
        (f"{HERE}:failing", (4,), 3, {}, "calling .*failing failed: RuntimeError: no such file; make this call work"),
        (f"{HERE}:no_module", (4,), 3, {}, "no_module makes a int; it must make a torch module"),
        (f"{HERE}:probable", (1, 4, 4), 3, {}, "probable returns probabilities; training needs logits"),
        (f"{HERE}:normalised", (1, 4, 4), 3, {}, "normalised returns rows that sum to 1, .* training needs logits"),
        (f"{HERE}:Plain", (1, 5, 5), 3, {}, r"Plain failed on inputs of shape \(1, 5, 5\): RuntimeError: mat1"),
        (f"{HERE}:Plain", (1, 4, 4), 4, {}, r"returns \(2, 3\) for two inputs; for 4 classes it must return \(2, 4\)"),
    ],
)
def test_a_network_that_does_not_fit_is_one_sentence(
    name: str, shape: Any, classes: int, options: Any, sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        by_name(name, shape, classes, **options)
    assert "\n" not in str(caught.value)


def on_pretend() -> nn.Module:
    """A network that lives on an accelerator, as a function of a user may make it."""
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 3)).to("pretend:0")


def test_a_network_that_was_made_on_another_device_is_tried_there() -> None:
    with accelerator() as state:
        network = by_name(f"{__name__}:on_pretend", (1, 4, 4), 3)
        assert all(parameter.device.type == "pretend" for parameter in network.parameters())
        assert state.operations > 0
