"""Checkpoints: files with the layout of published ones load and answer as a plain reading of their keys does."""

import copy
import io
import os
import zipfile
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import certcal
from certcal import InputError
from certcal.models import Source, differentiable, load
from certcal.models.devices import torch_threads
from certcal.models.networks import PublishedResNet, by_name, load_weights, save_weights

CIFAR = ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010))
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
LARGE = np.random.default_rng(0).random((2, 3, 32, 32), np.float32)
IMAGES = LARGE[:, :, :16, :16].copy()
MAKERS = "tests.models.makers_for_tests"
State = dict[str, Tensor]


def published(name: str, classes: int) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the tensors, written down from the definitions in locuslab/smoothing and torchvision."""
    depth, images = int(name.partition("-")[0][6:]), name.partition("-")[2]
    found: dict[str, tuple[int, ...]] = {}

    def norm(key: str, width: int) -> None:
        for part in ("weight", "bias", "running_mean", "running_var"):
            found[f"{key}.{part}"] = (width,)
        found[f"{key}.num_batches_tracked"] = ()

    cifar, deep = images == "cifar", images == "imagenet" and depth >= 50
    widths = (16, 32, 64) if cifar else (64, 128, 256, 512)
    counts = ((depth - 2) // 6,) * 3 if cifar else {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3)}[depth]
    found["conv1.weight"] = (16, 3, 3, 3) if cifar else (64, 3, 7, 7)
    norm("bn1", widths[0])
    before = widths[0]
    for stage, (width, count) in enumerate(zip(widths, counts, strict=True), 1):
        for block in range(count):
            key, after = f"layer{stage}.{block}", 4 * width if deep else width
            shapes = [(width, before, 3, 3), (width, width, 3, 3)]
            if deep:
                shapes = [(width, before, 1, 1), (width, width, 3, 3), (after, width, 1, 1)]
            for number, shape in enumerate(shapes, 1):
                found[f"{key}.conv{number}.weight"] = shape
                norm(f"{key}.bn{number}", shape[0])
            if block == 0 and (stage > 1 or deep):
                found[f"{key}.downsample.0.weight"] = (after, before, 1, 1)
                norm(f"{key}.downsample.1", after)
            before = after
    return {**found, "fc.weight": (classes, before), "fc.bias": (classes,)}


def made_up(name: str, classes: int = 10) -> State:
    """Random tensors of that layout, such that activations neither vanish nor explode."""
    random = torch.Generator().manual_seed(0)
    state: State = OrderedDict()
    for key, shape in published(name, classes).items():
        values = torch.randn(shape, generator=random)
        if key.endswith("num_batches_tracked"):
            values = torch.tensor(7)
        elif key.endswith("running_var") or (len(shape) == 1 and key.endswith("weight")):
            values = values.abs() / 2 + 0.5
        elif len(shape) > 1:
            values *= (2 / values[0].numel()) ** 0.5
        else:
            values *= 0.1
        state[key] = values
    return state


def answer(state: State, images: np.ndarray, normalisation: Any = CIFAR) -> np.ndarray:
    """The network straight from the keys, block by block."""

    def norm(x: Tensor, key: str) -> Tensor:
        mean, var, weight, bias = (state[f"{key}.{p}"] for p in ("running_mean", "running_var", "weight", "bias"))
        return (x - mean[:, None, None]) / torch.sqrt(var + 1e-5)[:, None, None] * weight[:, None, None] + bias[
            :, None, None
        ]

    mean, std = (torch.tensor(each)[:, None, None] for each in normalisation)
    x = (torch.from_numpy(images) - mean) / std
    large = state["conv1.weight"].shape[-1] == 7
    x = F.relu(norm(F.conv2d(x, state["conv1.weight"], stride=2 if large else 1, padding=3 if large else 1), "bn1"))
    x = F.max_pool2d(x, 3, 2, 1) if large else x
    for key in dict.fromkeys(key.rsplit(".", 2)[0] for key in state if key.count(".") == 3 and "downs" not in key):
        stride = 2 if key.endswith(".0") and not key.startswith("layer1") else 1
        deep = f"{key}.conv3.weight" in state
        y = F.conv2d(x, state[f"{key}.conv1.weight"], stride=1 if deep else stride, padding=0 if deep else 1)
        y = F.relu(norm(y, f"{key}.bn1"))
        y = norm(F.conv2d(y, state[f"{key}.conv2.weight"], stride=stride if deep else 1, padding=1), f"{key}.bn2")
        if deep:
            y = norm(F.conv2d(F.relu(y), state[f"{key}.conv3.weight"]), f"{key}.bn3")
        if f"{key}.downsample.0.weight" in state:
            x = norm(F.conv2d(x, state[f"{key}.downsample.0.weight"], stride=stride), f"{key}.downsample.1")
        x = F.relu(x + y)
    return (x.mean((2, 3)) @ state["fc.weight"].T + state["fc.bias"]).numpy()


def renamed(state: State, before: str) -> State:
    return OrderedDict((before + key, value) for key, value in state.items())


def script(state: State, before: str = "1.", arch: str = "cifar_resnet20") -> dict[str, Any]:
    """What the training script of locuslab/smoothing saves."""
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(2))], lr=0.1, momentum=0.9)
    return {"epoch": 90, "arch": arch, "state_dict": renamed(state, before), "optimizer": optimizer.state_dict()}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with torch_threads(1):
        yield


@pytest.fixture(scope="module")
def small() -> State:
    return made_up("resnet20-cifar")


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("resnet20-cifar", 272_474),
        ("resnet110-cifar", 1_730_714),
        ("resnet18-imagenet", 11_689_512),
        ("resnet34-imagenet", 21_797_672),
        ("resnet50-imagenet", 25_557_032),
    ],
)
def test_a_network_has_the_names_and_the_number_of_parameters_of_the_published_one(name: str, parameters: int) -> None:
    classes = 10 if name.endswith("cifar") else 1000
    with torch.device("meta"):
        network = by_name(name, (3, 32, 32), classes)
    assert sum(each.numel() for each in network.parameters()) == parameters
    shapes = {key: tuple(each.shape) for key, each in network.state_dict().items() if not key.startswith("normalize.")}
    assert shapes == published(name, classes)


@pytest.mark.parametrize(
    ("name", "before", "normalisation"),
    [("resnet110-cifar", "1.", CIFAR), ("resnet18-imagenet", "1.module.", IMAGENET)],
)
def test_a_published_file_loads_by_name_and_answers_as_its_keys_say(
    name: str, before: str, normalisation: Any, tmp_path: Path
) -> None:
    state = made_up(name, classes=10)
    torch.save(script(state, before), tmp_path / "checkpoint.pth.tar")
    model = load(name, weights=tmp_path / "checkpoint.pth.tar")
    assert (model.outputs, model.description) == ("logits", f"{name} with checkpoint.pth.tar (torch module)")
    expected = answer(state, LARGE, normalisation)
    assert np.ptp(expected) > 0.1
    np.testing.assert_allclose(model(LARGE), expected, rtol=1e-3, atol=1e-4)
    assert model.source == Source(name, "logits", str(tmp_path / "checkpoint.pth.tar"))


def test_blocks_of_three_convolutions_answer_as_their_keys_say() -> None:
    network = PublishedResNet(50, "imagenet", classes=4).eval()
    state = {key: each for key, each in network.state_dict().items() if not key.startswith("normalize")}
    with torch.no_grad():
        found = network(torch.from_numpy(IMAGES)).numpy()
    np.testing.assert_allclose(found, answer(state, IMAGES, IMAGENET), rtol=1e-3, atol=1e-4)


LAYOUTS: dict[str, Any] = {
    "bare": lambda state: state,
    "parallel": lambda state: renamed(state, "module."),
    "compiled": lambda state: {"model_state_dict": renamed(state, "_orig_mod.module.")},
    "lightning": lambda state: {"state_dict": renamed(state, "model.net."), "epoch": 3, "callbacks": {}},
    "nested": lambda state: {"best": 0.9, "model": {"state_dict": state, "step": 7}, "ema": renamed(state, "x.")},
    "averaged only": lambda state: {"ema": state, "epoch": 4},
    "behind a normalisation": lambda state: script(state, "1.module."),
    "old torch": lambda state: {key: each for key, each in state.items() if "num_batches" not in key},
    "parameters": lambda state: {
        key: nn.Parameter(each) if each.is_floating_point() else each for key, each in state.items()
    },
    "sorted": lambda state: {"net": dict(sorted(state.items()))},
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_weights_are_found_wherever_scripts_put_them(layout: Any, small: State, tmp_path: Path) -> None:
    torch.save(layout(small), tmp_path / "w.pt")
    found = load("resnet20-cifar", weights=tmp_path / "w.pt")(IMAGES)
    np.testing.assert_allclose(found, answer(small, IMAGES), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("ending", ["pth", "pth.tar", "pt", "ckpt", "bin", "PTH"])
def test_files_of_old_and_new_versions_of_torch_load_under_every_ending(
    ending: str, small: State, tmp_path: Path
) -> None:
    torch.save(script(small), tmp_path / f"w.{ending}", _use_new_zipfile_serialization=ending != "pth.tar")
    assert load("resnet20-cifar", weights=tmp_path / f"w.{ending}")(IMAGES).shape == (2, 10)


@pytest.mark.parametrize(
    ("names", "shape"),
    [(("0.means", "0.sds"), (1, 3, 1, 1)), (("normalize.mean", "normalize.std"), (3, 1, 1)), (("mu", "std"), (3,))],
)
def test_a_normalisation_in_the_file_is_read(names: Any, shape: Any, small: State, tmp_path: Path) -> None:
    other = ((0.1, 0.2, 0.3), (0.5, 0.6, 0.7))
    values = {name: torch.tensor(each).reshape(shape) for name, each in zip(names, other, strict=True)}
    torch.save({"state_dict": renamed(small, "1.") | values}, tmp_path / "w.pth")
    found = load("resnet20-cifar", weights=tmp_path / "w.pth")(IMAGES)
    np.testing.assert_allclose(found, answer(small, IMAGES, other), rtol=1e-3, atol=1e-4)
    assert np.abs(found - answer(small, IMAGES)).max() > 0.01


def test_half_precision_and_other_numbers_of_classes_and_channels_fit(tmp_path: Path) -> None:
    state = made_up("resnet20-cifar", classes=100)
    state["conv1.weight"] = state["conv1.weight"][:, :1].clone()
    half = {key: each.half() if each.is_floating_point() else each for key, each in state.items()}
    torch.save(half, tmp_path / "w.pth")
    answers = load("resnet20-cifar", weights=tmp_path / "w.pth")(IMAGES[:, :1])
    assert (answers.shape, answers.dtype) == ((2, 100), np.float32)


def test_a_network_of_ones_own_takes_checkpoints_too(tmp_path: Path) -> None:
    from tests.models.makers_for_tests import Plain

    network = Plain().eval()
    torch.save({"model": renamed(network.state_dict(), "module.")}, tmp_path / "w.ckpt")
    model = load(f"{MAKERS}:Plain", "logits", weights=tmp_path / "w.ckpt")
    images = np.ones((2, 1, 4, 4), np.float32)
    with torch.no_grad():
        np.testing.assert_allclose(model(images), network(torch.from_numpy(images)).numpy(), rtol=1e-6)


class Bomb:
    def __reduce__(self) -> Any:
        return os.mkdir, ("unpickled",)


def compressed(path: Path, state: State) -> None:
    torch.save({**state, "more": torch.zeros(100_000)}, path)
    content = zipfile.ZipFile(path)
    with zipfile.ZipFile(path.with_name("again"), "w", zipfile.ZIP_DEFLATED) as archive:
        for name in content.namelist():
            archive.writestr(name, content.read(name))
    content.close()
    path.with_name("again").rename(path)


def test_images_of_another_number_of_channels_are_refused_and_not_repeated(small: State, tmp_path: Path) -> None:
    torch.save(script(small), tmp_path / "w.pth.tar")
    with pytest.raises(InputError, match="the network takes 3 channels, and inputs have 1; give such images"):
        load(tmp_path / "w.pth.tar")(np.zeros((2, 1, 32, 32), np.float32))


def test_a_checkpoint_that_names_its_network_is_a_model_by_itself(small: State, tmp_path: Path) -> None:
    torch.save(script(small), tmp_path / "w.pth.tar")
    images = np.random.default_rng(0).random((2, 3, 32, 32), np.float32)
    named, alone = load("resnet20-cifar", weights=tmp_path / "w.pth.tar"), load(tmp_path / "w.pth.tar")
    np.testing.assert_array_equal(alone(images), named(images))
    assert alone.fingerprint(images) == named.fingerprint(images)
    for arch in ("cifar_resnet21", "vgg16", torch.zeros(1), 7):  # a number of layers that nobody published, and others
        torch.save({**script(small), "arch": arch}, tmp_path / "w.pth")
        named = "name the network .'package.*, resnet110-cifar or resnet50-imagenet. and give the file as its weights"
        with pytest.raises(InputError, match=f"a checkpoint holds weights without their network; {named}"):
            load(tmp_path / "w.pth")
    torch.save(script(small, arch="resnet18"), tmp_path / "w.pth")
    with pytest.raises(InputError, match="do not fit resnet18-imagenet"):
        load(tmp_path / "w.pth")


def without(state: State, *keys: str, **more: Any) -> State:
    return {key: each for key, each in state.items() if key not in keys} | {
        k.replace("_", "."): v for k, v in more.items()
    }


BAD: dict[str, tuple[Any, str]] = {
    "code": (
        lambda state: {"state_dict": state, "x": Bomb()},
        r"holds more than weights \(posix\.mkdir\), which could",
    ),
    "a whole network": (lambda state: nn.Linear(2, 2), r"more than weights \(torch\.nn\.modules\.linear\.Linear\)"),
    "a numpy number": (
        lambda state: {"state_dict": state, "best": np.float64(1)},
        r"save the network's state_dict\(\)",
    ),
    "no weights": (lambda state: {"epoch": 3, "args": {}}, r"no weights in it \('epoch', 'args'\); save the network's"),
    "a number": (lambda state: 3, r"there are no weights in it \(a int\)"),
    "a sparse tensor": (
        lambda state: without(state, fc_bias=torch.ones(10).to_sparse()),
        "'fc.bias' is no plain tensor",
    ),
    "more than its file": (
        lambda state: without(state, fc_bias=torch.zeros(1).expand(10**12)),
        r"'fc\.bias' is \(1000000000000,\) there and \(10,\) in the network;",
    ),
    "no matrices": (
        lambda state: without(state, fc_bias=torch.tensor(1.0), conv1_weight=torch.ones(5)),
        r"'conv1\.weight' is \(5,\) there and \(16, 3, 3, 3\) in the network, 'fc\.bias' is \(\) there and \(10,\)",
    ),
    "NaN": (
        lambda state: without(state, fc_bias=torch.full((10,), torch.nan)),
        "'fc.bias' has entries that are not fin",
    ),
    "whole numbers": (
        lambda state: without(state, fc_bias=torch.ones(10, dtype=torch.int64)),
        "'fc.bias' is int64 ther",
    ),
    "std 0": (
        lambda state: without(state, normalize_mean=torch.zeros(3), normalize_std=torch.zeros(3)),
        "'normalize.std' has entries that are not positive",
    ),
    "half a normalisation": (
        lambda state: without(state, normalize_mean=torch.zeros(3)),
        r"'normalize.std' is missing there and \(3,\) in the network; give",
    ),
    "missing and unexpected": (
        lambda state: without(state, "bn1.bias", fc_bias=torch.ones(9), fc_more=torch.ones(2)),
        r"w\.pth: its weights do not fit resnet20-cifar: 'bn1\.bias' is missing there and \(16,\) in the network, "
        r"'fc\.more' is \(2,\) there and missing in the network, 'fc\.weight' is \(10, 64\) there and \(9, 64\) in the",
    ),
    "another depth": (
        lambda state: made_up("resnet32-cifar"),
        r"layer1\.3\.bn1\.bias' is \(16,\) .* and \d+ more differ;",
    ),
}


@pytest.mark.parametrize(("content", "sentence"), BAD.values(), ids=BAD)
def test_what_is_not_the_weights_of_the_network_is_one_sentence(
    content: Any, sentence: str, small: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save(content(small), "w.pth")
    with pytest.raises(InputError, match=sentence) as caught:
        load("resnet20-cifar", weights="w.pth")
    assert "\n" not in str(caught.value)
    assert not Path("unpickled").exists()


@pytest.mark.parametrize("old", [False, True], ids=["zip", "old"])
def test_damaged_and_hostile_bytes_are_one_sentence(old: bool, tmp_path: Path) -> None:
    stream = io.BytesIO()
    torch.save({"a.weight": torch.ones(30), "b": [1, "x"]}, stream, _use_new_zipfile_serialization=not old)
    whole = stream.getvalue()
    rng = np.random.default_rng(0)
    damaged = [whole[:length] for length in (1, 2, 30, len(whole) // 2, len(whole) - 1)]
    for _ in range(60):
        content = bytearray(whole)
        for place in rng.integers(0, len(whole), 3):
            content[place] = rng.integers(256)
        damaged.append(bytes(content))
    for content in (b"BM not a checkpoint", *damaged):
        (tmp_path / "w.bin").write_bytes(content)
        with pytest.raises(InputError, match=r"w\.bin: ") as caught:
            load("resnet20-cifar", weights=tmp_path / "w.bin")
        assert "\n" not in str(caught.value)


def test_archives_that_grow_torchscript_and_unsafe_versions_are_refused(
    small: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "w.pt"
    compressed(path, small)
    with pytest.raises(InputError, match=r"w\.pt: it is compressed, which torch\.save never does; save it again"):
        load("resnet20-cifar", weights=path)
    with zipfile.ZipFile(path, "w") as archive:  # the parts by which torch knows TorchScript
        for name in ("x/data.pkl", "x/constants.pkl", "x/version"):
            archive.writestr(name, b"3")
    for given in ({"weights": path, "path_or_name": "resnet20-cifar"}, {"path_or_name": path}):
        with pytest.raises(
            InputError, match=r"w\.pt: this is TorchScript, .* ONNX, .*torch\.jit\.load and pass that to"
        ):
            load(**given)
    torch.save(torch.nn.Linear(1, 2), path)
    with pytest.raises(
        InputError, match=r"w\.pt: it holds more than weights \(torch\..*Linear\).*state_dict\(\) alone"
    ):
        load(path)
    torch.save(small, path)
    with pytest.raises(InputError, match=r"w\.pt: a checkpoint holds weights without their network; name the network"):
        load(path)
    monkeypatch.setattr(torch, "__version__", "2.9.1+cpu")
    with pytest.raises(
        InputError, match=r"torch 2\.9\.1\+cpu does not read checkpoints safely; install torch 2\.10 or"
    ):
        load("resnet20-cifar", weights=path)


def test_a_published_network_is_attacked_sampled_trained_and_saved(small: State, tmp_path: Path) -> None:
    torch.save(script(small), tmp_path / "w.pth.tar")
    data = (IMAGES[:, :, :8, :8].copy(), [1, 2])
    options: Any = {"weights": tmp_path / "w.pth.tar"}
    run = certcal.sample("resnet20-cifar", data, sigma=0.25, n0=2, n=4, out=tmp_path / "run", **options)
    assert len(run.counts()) == 2
    model: Any = load("resnet20-cifar", **options)
    assert model.source.packed().load().fingerprint(IMAGES) == model.fingerprint(IMAGES)
    found = certcal.attack("resnet20-cifar", data, epsilon=0.01, attacks=["one-step"], **options)
    assert len(list(found)) == 1
    trained = certcal.train(
        "resnet20-cifar",
        (np.tile(data[0], (5, 1, 1, 1)), list(range(10))),
        method="standard",
        epochs=1,
        batch=10,
        start=tmp_path / "w.pth.tar",
        out=tmp_path / "out",
    )
    assert type(trained.network) is PublishedResNet
    network: Any = PublishedResNet(20).eval()
    network.load_state_dict(copy.deepcopy(small), strict=False)
    save_weights(network, tmp_path / "again.safetensors")
    again = load_weights(tmp_path / "again.safetensors")
    assert all(torch.equal(each, again.state_dict()[key]) for key, each in network.state_dict().items())
    assert differentiable(tmp_path / "again.safetensors").outputs == "logits"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"depth": 21}, "depth is 21; pass 6n . 2 for CIFAR"),
        ({"depth": 20, "images": "imagenet"}, "depth is 20; pass 18, 34, 50, 101, 152 for ImageNet"),
        ({"images": "mnist"}, "images is 'mnist'; pass 'cifar' or 'imagenet'"),
        ({"mean": (0.1, 0.2)}, "mean has 2 numbers"),
    ],
)
def test_a_network_that_was_never_published_is_one_sentence(options: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        PublishedResNet(**options)
