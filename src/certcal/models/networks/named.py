"""Networks by name, fitted to the shape of the images and the number of classes."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from certcal._base.checks import InputError
from certcal._base.text import did_you_mean, reason
from certcal.models._load import NAME, PUBLISHED, REFERENCE, make_named
from certcal.models.networks._network import MLP, LeNet, fixed_seed, size, to_list
from certcal.models.networks._published import PublishedResNet
from certcal.models.networks._resnet import PreActResNet, ResNet
from certcal.models.networks.weights import fitting, tensors_and_marks
from certcal.models.protocol import DECLARATION

Numbers = float | Sequence[float] | None

_MADE_WITH = "certcal.made_with"
_NAMES = (*REFERENCE, *PUBLISHED)


def by_name(
    name: str, sample_shape: Sequence[int], classes: int, mean: Numbers = None, std: Numbers = None, seed: int = 0
) -> nn.Module:
    """Build an untrained network for images of a shape.

    Parameters
    ----------
    name
        ``"lenet"`` (square images of at least 12 pixels a side, divisible by 4), ``"resnet20"``, ``"resnet110"``,
        ``"preact18"`` (images from 8 by 8), ``"mlp"`` (inputs of any shape); with the names of published weights
        ``"resnet110-cifar"`` (20, 32, 44, 56 as well) and ``"resnet50-imagenet"`` (18, 34, 101, 152 as well); or
        ``"package.module:name"`` of a class or function that makes a torch module returning logits. It is called with
        those of ``sample_shape``, ``classes``, ``mean``, ``std`` and ``seed`` for which it has a parameter of that
        name. A name may also be that of a module, which is copied with the weights it has. Naming a Python module runs
        it.
    sample_shape
        Shape of one input, as (channels, height, width).
    classes
        Number of classes.
    mean, std
        Normalisation inside the network: one number, or one per channel; the network's own if None.
    seed
        Random seed of the initial weights, which depend on nothing else; torch's global generator stays as it is.

    Returns
    -------
    nn.Module
        With the attributes ``outputs`` and ``sample_shape``, so that it can be exported.

    Examples
    --------
    >>> by_name("resnet20", (1, 28, 28), classes=10).description
    'ResNet-20'
    >>> by_name("lenet", (1, 8, 8), classes=10)
    Traceback (most recent call last):
        ...
    certcal.InputError: lenet takes square images of at least 12 pixels a side, divisible by 4, not (1, 8, 8);
    use mlp or resnet20, or make the images larger
    """
    shape = tuple(size(each, "sample_shape", most=2**24) for each in sample_shape)
    if not shape:
        raise InputError("sample_shape is empty; pass the shape of one input, for example (1, 28, 28)")
    count = size(classes, "classes", least=2)
    if name in _NAMES:
        network = _make_reference(name, shape, count, mean, std, seed)
        network.sample_shape = shape
        return network
    if not NAME.fullmatch(str(name)):
        hint = did_you_mean(name, _NAMES, f"give {', '.join(_NAMES)}, or a name, 'package.module:name'")
        raise InputError(f"{name!r} is no network; {hint}")
    given = {"sample_shape": shape, "classes": count, "mean": mean, "std": std, "seed": seed}
    with fixed_seed(seed):
        network = _make_module(name, given)
        if getattr(network, "outputs", "logits") != "logits":
            raise InputError(f"{name} returns {network.outputs}; training needs logits")
        answer = _try_forward(name, network, shape, count)
    if not hasattr(network, "outputs") and bool((answer >= 0).all() & ((answer.sum(dim=1) - 1).abs() < 1e-5).all()):
        raise InputError(
            f"{name} returns rows that sum to 1, as probabilities do, and training needs logits; return what comes "
            "before the softmax, or give the network an attribute outputs = 'logits' if that is what they are"
        )
    if not hasattr(network, "sample_shape"):
        network.sample_shape = shape  # pyright: ignore[reportArgumentType]
    if not hasattr(network, "outputs"):
        network.outputs = "logits"  # pyright: ignore[reportArgumentType]
    return network


def with_weights(name: str, data: bytes, path: Path) -> tuple[nn.Module, str | None]:
    """The network that a name makes, in evaluation mode, with the weights in the bytes of a file."""
    tensors, marks = tensors_and_marks(data, path)
    given = _parse_made_with(marks, path)
    with fixed_seed(given["seed"] or 0):
        network = _make_published(name, tensors) if name in PUBLISHED else _make_module(name, given)
        if any(is_lazy(each) for each in (*network.parameters(), *network.buffers())):
            if given["sample_shape"] is None:
                raise InputError(
                    f"{name} has lazy layers, and {path} does not say which inputs they take; give a network whose "
                    "layers know their sizes"
                )
            _try_forward(name, network, given["sample_shape"], given["classes"])
    network.load_state_dict(fitting(tensors, network, str(path), name, "give"))
    own = getattr(network, "outputs", None)
    return network.eval(), own if isinstance(own, str) else marks.get(DECLARATION)


def _make_published(name: str, tensors: Mapping[str, Tensor]) -> nn.Module:
    """A network with as many classes and channels as the weights are for, where that can be seen."""
    by_depth = sorted(tensors, key=lambda key: -key.count("."))  # the stem's convolution is called like those in blocks
    shapes = {".".join(key.split(".")[-2:]): tuple(tensors[key].shape) for key in by_depth}
    seen = {"classes": shapes.get("fc.bias", ())[:1], "channels": shapes.get("conv1.weight", ())[1:2]}
    limits = {"classes": (2, 65_536), "channels": (1, 16)}
    sizes = {key: each for key, some in seen.items() for each in some if limits[key][0] <= each <= limits[key][1]}
    return PublishedResNet(*PUBLISHED[name], **sizes)


def made_with(sample_shape: Sequence[int], classes: int, seed: int, outputs: str) -> dict[str, str]:
    """Texts for a safetensors file that say what :func:`with_weights` makes the network with."""
    given = {"sample_shape": list(sample_shape), "classes": classes, "seed": seed}
    return {_MADE_WITH: json.dumps(given), DECLARATION: outputs}


def _parse_made_with(marks: dict[str, str], path: Path) -> dict[str, Any]:
    nothing = {"sample_shape": None, "classes": None, "mean": None, "std": None, "seed": None}
    if _MADE_WITH not in marks:
        return nothing
    try:
        found: Any = json.loads(marks[_MADE_WITH])
        shape = tuple(size(each, "sample_shape", most=2**24) for each in found["sample_shape"])
        count, seed = size(found["classes"], "classes", least=2), size(found["seed"], "seed", least=0, most=2**63 - 1)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{path}: what it says of its network cannot be understood; train it again") from error
    return nothing | {"sample_shape": shape, "classes": count, "seed": seed}


def _make_reference(name: str, shape: tuple[int, ...], classes: int, mean: Numbers, std: Numbers, seed: int) -> Any:
    normalisation: dict[str, Any] = {key: value for key, value in (("mean", mean), ("std", std)) if value is not None}
    if name == "mlp":
        for key, value in normalisation.items():
            if len(to_list(value)) != 1:
                raise InputError(f"{key} has {len(to_list(value))} numbers; mlp takes one for all inputs")
            normalisation[key] = to_list(value)[0]
        return MLP(math.prod(shape), classes=classes, seed=seed, **normalisation)
    if len(shape) != 3:
        raise InputError(
            f"{name} takes images of shape (channels, height, width), not inputs of shape {shape}; use mlp"
        )
    if name == "lenet":
        if shape[1] != shape[2] or shape[1] % 4 or shape[1] < 12:
            raise InputError(
                f"lenet takes square images of at least 12 pixels a side, divisible by 4, not {shape}; use mlp or "
                "resnet20, or make the images larger"
            )
        return LeNet(shape[0], shape[1], classes, seed=seed, **normalisation)
    if min(shape[1:]) < 8:
        raise InputError(f"{name} takes images from 8 by 8 pixels, not {shape}; use mlp, or make the images larger")
    if name in PUBLISHED:
        return PublishedResNet(*PUBLISHED[name], classes, shape[0], seed=seed, **normalisation)
    if name == "preact18":
        return PreActResNet(classes, shape[0], seed=seed, **normalisation)
    return ResNet(int(name.removeprefix("resnet")), classes, shape[0], seed=seed, **normalisation)


def _make_module(name: str, given: dict[str, Any]) -> nn.Module:
    network, taken = make_named(name, given)
    if not isinstance(network, nn.Module):
        if taken is None:
            raise InputError(
                f"{name} is a {type(network).__name__}; name a class or function that makes a torch module"
            )
        raise InputError(f"{name} makes a {type(network).__name__}; it must make a torch module")
    for key in ("mean", "std"):
        if given[key] is not None and key not in (taken or ()):
            raise InputError(f"{key} is given, but {name} takes none; leave it out, or normalise inside the network")
    return copy.deepcopy(network) if taken is None else network


def _try_forward(name: str, network: nn.Module, shape: tuple[int, ...], classes: int) -> Tensor:
    """The answer of one forward pass where the network is, after which it is as before."""
    modes = [(part, part.training) for part in network.modules()]
    device = next((each.device for each in (*network.parameters(), *network.buffers())), None)
    try:
        with torch.no_grad():
            answer: Any = network.eval()(torch.zeros((2, *shape), device=device))
    except Exception as error:
        raise InputError(f"{name} failed on inputs of shape {shape}: {reason(error)}; it must take them") from error
    finally:
        for part, mode in modes:
            part.training = mode
    if not isinstance(answer, Tensor) or tuple(answer.shape) != (2, classes):
        found = tuple(answer.shape) if isinstance(answer, Tensor) else type(answer).__name__
        raise InputError(
            f"{name} returns {found} for two inputs; for {classes} classes it must return (2, {classes}); "
            f"change it, or check that labels are from 0 to {classes - 1}"
        )
    return answer
