"""The reference networks and their weights on disk."""

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from certcal import InputError
from certcal.models import load
from certcal.models.networks import MLP, LeNet, Network, Normalize, PreActResNet, ResNet, load_weights, save_weights

SMALL: list[Network] = [MLP(12, hidden=(5, 4), classes=3), LeNet(3, 12, 4), ResNet(8), PreActResNet(width=4)]


def weights(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


def test_the_networks_have_as_many_weights_as_published() -> None:
    assert weights(LeNet()) == 61_706
    assert round(weights(ResNet(20)) / 1e6, 2) == 0.27  # He et al. 2016a, table 6
    assert round(weights(ResNet(110)) / 1e6, 1) == 1.7  # the same
    assert round(weights(PreActResNet()) / 1e6, 1) == 11.2


def test_a_residual_network_has_as_many_layers_as_its_name_says() -> None:
    for depth in (20, 110):
        layers = [module for module in ResNet(depth).modules() if isinstance(module, nn.Conv2d | nn.Linear)]
        assert len(layers) == depth
    main = [
        module
        for name, module in PreActResNet(width=4).named_modules()
        if isinstance(module, nn.Conv2d | nn.Linear) and "shortcut" not in name
    ]
    assert len(main) == 18


@pytest.mark.parametrize("network", SMALL, ids=lambda network: type(network).__name__)
def test_a_network_returns_a_logit_per_class_and_its_samples_do_not_mix(network: Network) -> None:
    network.eval()
    images = torch.rand((3, *network.sample_shape), generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        logits = network(images)
        alone = torch.cat([network(image[None]) for image in images])
    assert logits.shape == (3, network.settings["classes"])
    assert network.outputs == "logits"
    torch.testing.assert_close(logits, alone, rtol=1e-4, atol=1e-4)


def test_the_same_seed_gives_the_same_weights_and_leaves_torch_alone() -> None:
    state = torch.get_rng_state()
    first, second, other = LeNet(seed=1), LeNet(seed=1), LeNet(seed=2)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    assert not torch.equal(first.layers[0].weight, other.layers[0].weight)


def test_normalisation_happens_inside() -> None:
    images = torch.rand((2, 3, 12, 12), generator=torch.Generator().manual_seed(0))
    mean, std = (0.1, 0.2, 0.3), (1.0, 2.0, 4.0)
    inside = LeNet(3, 12, mean=mean, std=std).eval()
    outside = LeNet(3, 12).eval()
    shifted = torch.stack([(images[:, k] - mean[k]) / std[k] for k in range(3)], 1)
    torch.testing.assert_close(inside(images), outside(shifted))
    assert torch.equal(Normalize(0, 1)(images), images)


def test_images_of_cifar_are_normalised_as_cifar() -> None:
    assert ResNet(8).normalize.mean.tolist() == pytest.approx([0.4914, 0.4822, 0.4465])
    assert ResNet(8, channels=1).normalize.mean.tolist() == [0]
    assert PreActResNet(width=4, mean=0.5, std=0.5).normalize.std.tolist() == [0.5]


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: ResNet(21), "depth is 21; pass 6n"),
        (lambda: ResNet(2), "depth is 2"),
        (lambda: LeNet(pixels=30), "pixels is 30; LeNet takes"),
        (lambda: LeNet(3, mean=(0.1, 0.2)), "mean has 2 numbers; pass one, or one for each of 3 channels"),
        (lambda: LeNet(std=0), "std is 0.0; pass a positive"),
        (lambda: LeNet(mean=float("nan")), "pass one finite number"),
        (lambda: MLP(4, classes=1), "classes is 1"),
        (lambda: MLP(4, hidden=(0,)), "hidden is 0"),
        (lambda: MLP(4, seed=-1), "seed is -1"),
    ],
)
def test_an_impossible_network_is_refused(build: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        build()


@pytest.mark.parametrize("network", SMALL, ids=lambda network: type(network).__name__)
def test_weights_come_back_as_they_were(network: Network, tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    save_weights(network, path)
    again = load_weights(path)
    assert type(again) is type(network)
    assert again.settings == network.settings
    assert not again.training
    assert all(
        torch.equal(a, b) for a, b in zip(network.state_dict().values(), again.state_dict().values(), strict=True)
    )
    images = np.random.default_rng(0).random((2, *network.sample_shape), np.float32)
    with torch.inference_mode():
        np.testing.assert_allclose(
            load(path)(images), network.eval()(torch.from_numpy(images)).numpy(), rtol=1e-4, atol=1e-4
        )


def test_a_file_is_not_written_over_by_accident(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    save_weights(MLP(4), path)
    before = path.read_bytes()
    with pytest.raises(InputError, match="exists and is not overwritten; choose another name"):
        save_weights(MLP(4, seed=1), path)
    assert path.read_bytes() == before
    save_weights(MLP(4, seed=1), path, force=True)
    assert path.read_bytes() != before
    assert [file.name for file in tmp_path.iterdir()] == ["w.safetensors"]


@pytest.mark.parametrize(
    ("network", "name", "sentence"),
    [
        (nn.Linear(2, 2), "w.safetensors", "network is a Linear; pass one of MLP, LeNet"),
        (MLP(4), "w.pt", "weights are written to .safetensors files"),
        (MLP(4), "none/w.safetensors", "the folder does not exist"),
    ],
)
def test_what_cannot_be_saved_is_refused(network: Any, name: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=sentence):
        save_weights(network, tmp_path / name)


def named(settings: Any) -> dict[str, str]:
    return {"certcal.network": settings if isinstance(settings, str) else json.dumps(settings)}


LENET: dict[str, Any] = {"class": "LeNet", **LeNet().settings}


@pytest.mark.parametrize(
    ("metadata", "sentence"),
    [
        ({}, "does not say which network its weights belong to"),
        (named("{"), "the network it names is unknown or impossible"),
        (named("[" * 50_000), "unknown or impossible"),
        (named({"class": "Sequential"}), "unknown or impossible"),
        (named({**LENET, "seed": 3}), "unknown or impossible"),
        (named({**LENET, "classes": "ten"}), "unknown or impossible|classes is 'ten'"),
        (named({**LENET, "mean": [10**400]}), "unknown or impossible"),
        (named({**LENET, "classes": 11}), "tensor 'layers.11.bias' does not fit"),
        (named({"class": "MLP", **MLP(4).settings, "hidden": [65_536] * 1000}), "does not fit the network it names"),
    ],
)
def test_weights_of_an_unknown_or_other_network_are_refused(metadata: Any, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    save_file(LeNet().state_dict(), path, metadata)
    with pytest.raises(InputError, match=sentence) as caught:
        load(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "data",
    [b"x", b"\x80\x04.", struct.pack("<Q", 2**60) + b"{}", struct.pack("<Q", 2) + b"[]", b"PK\x03\x04" + bytes(100)],
)
def test_a_damaged_weights_file_is_one_sentence(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    path.write_bytes(data)
    with pytest.raises(InputError, match="not a safetensors file, or it is damaged") as caught:
        load(path)
    assert "\n" not in str(caught.value)


def test_every_way_of_cutting_a_weights_file_short_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    save_weights(MLP(4, hidden=(3,)), path)
    whole = path.read_bytes()
    for length in range(1, len(whole), 37):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError):
            load(path)
