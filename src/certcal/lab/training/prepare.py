"""What is checked before training begins, and the network it begins with."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from certcal._base.checks import InputError, positive, probability_matrix, random_seed, whole_number
from certcal._base.files import path_of, read_bytes
from certcal._base.progress import SILENT, Progress
from certcal._base.text import reason
from certcal.attacks import Target
from certcal.attacks.subject import check_box, single_precision
from certcal.data import Inputs
from certcal.data.work_folder import Work
from certcal.lab.training._recipe import Recipe
from certcal.lab.training.acr import class_votes
from certcal.lab.training.schedules import generator_of
from certcal.lab.training.step import ReadInputs, StepWorker
from certcal.models.devices import resolve, torch_threads
from certcal.models.fingerprint import weights_digest
from certcal.models.networks.weights import fitting, tensors_and_marks
from certcal.models.protocol import Outputs, declared_outputs

Start = str | os.PathLike[str] | nn.Module
_LARGEST = 2**40
# Forward passes of a piece of soft labels, which is what an interruption can lose.
_PIECE_VOTES = 2_000_000


def prepare_worker(
    network: nn.Module,
    inputs: Inputs,
    recipe: Recipe,
    *,
    test: Inputs | None = None,
    start: Start | None = None,
    outputs: Outputs | None,
    device: str,
) -> StepWorker:
    """A copy of the network on a device, with the weights it begins with, and data that fit it."""
    if not isinstance(network, nn.Module):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"network is a {type(network).__name__}; pass a torch module")
    if not isinstance(recipe, Recipe):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"recipe is a {type(recipe).__name__}; make one with certcal.lab.training.recipe")
    name = type(network).__name__
    if isinstance(network, torch.jit.ScriptModule):
        raise InputError(f"network is TorchScript ({name}), which is not trained; pass the module it was made from")
    own = getattr(network, "outputs", None)
    returns = declared_outputs(outputs, own if isinstance(own, str) else None, name)
    try:
        mine = copy.deepcopy(network)
    except Exception as error:
        raise InputError(f"{name} cannot be copied ({reason(error)}); pass a module that can") from error
    _check_weights(mine, name, recipe, returns)
    if start is not None:
        mine.load_state_dict(_weights_of(start, mine, name))
    # Convolutions are faster in this order of memory; .contiguous would leave those of one channel as they are.
    mine.to(device=device, memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue, reportArgumentType]
    _check_data(mine.eval(), name, inputs, "inputs")
    if test is not None:
        _check_data(mine, name, test, "test")
    if recipe.augment != "none" and inputs.inputs.ndim < 4:
        shape = tuple(inputs.inputs.shape[1:])
        why = f"it is {recipe.augment!r}, but inputs have shape {shape}, not (channels, height, width)"
        raise InputError(why, argument="augment", remedy="give images, or train without augmentation")
    box = single_precision(recipe.box)
    if recipe.epsilon and box is not None:
        check_box(inputs.inputs, box)
    rows = inputs.inputs
    held = torch.tensor(rows) if isinstance(rows, np.ndarray) else ReadInputs(rows)
    return StepWorker(mine, returns, recipe, held, torch.tensor(inputs.labels))


def add_judge_and_soft_labels(worker: StepWorker, network: nn.Module, judge: Start | None, soft: Any) -> StepWorker:
    """Check and add what only some methods take: another network that judges samples, and soft labels."""
    takes: tuple[str, ...] = getattr(worker.recipe.own, "takes", ())
    for name, value in (("judge", judge), ("soft", soft)):
        if value is not None and name not in takes:
            why = f"it is not for {worker.recipe.method} training"
            raise InputError(why, argument=name, remedy="leave it out, or take another method")
    if soft is not None:
        worker = replace(worker, soft=_labels_as_float32(soft, worker))
    if judge is None:
        return worker
    name = type(judge).__name__
    mine = load_start(judge, network).to(worker.device).eval()
    held = worker.inputs[torch.arange(min(2, worker.labels.numel()))].to(worker.device)
    try:
        with torch.no_grad():
            found, own = mine(held).shape, worker.network.eval()(held).shape
    except Exception as error:
        remedy = "give a network for the same inputs"
        raise InputError(f"{name} does not take them ({reason(error)})", argument="judge", remedy=remedy) from error
    if found != own:
        why = f"it returns {tuple(found)} for {held.shape[0]} inputs, and the network in training {tuple(own)}"
        raise InputError(why, argument="judge", remedy="give a network for the same classes")
    return replace(worker, judge=mine)


def soft_labels(
    network: nn.Module,
    inputs: Inputs,
    *,
    sigma: float = 0.25,
    draws: int = 10_000,
    seed: int = 0,
    outputs: Outputs | None = None,
    device: str = "auto",
    out: str | os.PathLike[str] | None = None,
    progress: Progress = SILENT,
) -> NDArray[np.float32]:
    """Shares of votes (n, classes) of a network under noise: the soft labels that CAT-RS trains on.

    Its authors take a network that was trained with Gaussian noise of σ = 0.25, on the training samples: for CIFAR-10
    5·10⁸ forward passes. ``soft`` of :func:`certcal.train` counts and keeps them for given weights. With a folder
    ``out``, what was counted is kept there, and the same call goes on with what is missing.

    Examples
    --------
    >>> from certcal.models.networks import MLP
    >>> data = Inputs.from_arrays([[0.0, 1.0], [1.0, 0.0]], [1, 0])
    >>> soft_labels(MLP(2, (8,), classes=2), data, draws=10).sum(1)
    array([1., 1.], dtype=float32)
    """
    count = whole_number(draws, 1, 10**9, "draws", "pass a whole number of noise samples, at least 1")
    own = getattr(network, "outputs", None)
    returns = declared_outputs(outputs, own if isinstance(own, str) else None, type(network).__name__)
    level = positive(sigma, "sigma")
    settings = {"sigma": level, "draws": count, "seed": random_seed(seed)}
    folder = None if out is None else path_of(out, "out")
    if folder is not None:
        settings |= {"model": weights_digest(network), "data": inputs.fingerprint}
    with torch_threads(), ExitStack() as locks:
        # Every piece has random numbers of its own, so that it does not matter where an interruption was.
        work = Work(len(inputs), max(1, _PIECE_VOTES // count), folder, settings, held=locks)
        mine = copy.deepcopy(network).to(resolve(device)).eval()
        target, here = Target(mine, returns), next(mine.parameters()).device
        left = list(work.missing())
        done = len(inputs) - sum(last - first for first, last in left)
        progress.stage("counting votes for soft labels", len(inputs), done, "samples")
        for first, last in left:
            generator = generator_of("soft labels", seed, first, device=here)
            rows = torch.tensor(inputs.inputs[first:last])
            votes = class_votes(target, rows, last - first, level, count, generator)
            work.write(first, last, {"votes": votes.numpy()})
            progress.advance(last - first)
        votes = work.joined()["votes"]
    return (votes / count).astype(np.float32)


def _labels_as_float32(soft: Any, worker: StepWorker) -> Tensor:
    rows = probability_matrix(soft, "soft").astype(np.float32)
    expected = worker.labels.numel(), _count_outputs(worker)
    if rows.shape != expected:
        remedy = "pass a row of probabilities per training sample, in their order"
        raise InputError(f"it has shape {rows.shape}, not {expected}", argument="soft", remedy=remedy)
    return torch.tensor(rows)


def _count_outputs(worker: StepWorker) -> int:
    with torch.no_grad():
        held = worker.inputs[torch.arange(1)].to(worker.device)
        return int(worker.network.eval()(held).shape[1])


def check_trainable(worker: StepWorker, inputs: Inputs, started: bool) -> None:
    """Raise unless the network can be trained on batches of the data, in pieces."""
    recipe = worker.recipe
    if recipe.own is not None:
        recipe.own.can_begin(recipe, started)
        if recipe.own.two_classes and (classes := _count_outputs(worker)) != 2:
            why = f"there are {classes} classes; {recipe.method} training is for scores of two"
            raise InputError(why, argument="method")
    if len(inputs) < recipe.batch:
        why = f"it is {recipe.batch}, but there are {len(inputs)} samples to train on"
        raise InputError(why, argument="batch", remedy="give a smaller one")
    smallest = len(inputs) // -(-len(inputs) // recipe.batch)
    if smallest < recipe.pieces:
        raise InputError(f"pieces is {recipe.pieces}, but batches have {smallest} samples; pass fewer pieces")
    least = smallest // recipe.pieces * (recipe.draws if recipe.sigma else 1)
    _check_training(worker.network, inputs, least)


def _check_weights(network: nn.Module, name: str, recipe: Recipe, outputs: Outputs) -> None:
    trained = [weight for weight in network.parameters() if weight.requires_grad]
    if not trained:
        raise InputError(f"{name} has no weights that need gradients; pass a network that can be trained")
    wrong = next((weight.dtype for weight in network.parameters() if weight.dtype != torch.float32), None)
    if wrong is not None:
        raise InputError(f"{name} has weights of type {wrong}; call .float() on it, and pass precision='bfloat16'")
    if recipe.precision != "float32" and outputs == "probabilities":
        kind = recipe.precision
        raise InputError(f"{name} returns probabilities, too fine for {kind}; let it return logits, or take float32")


def _check_data(network: nn.Module, name: str, data: Any, argument: str) -> None:
    if not isinstance(data, Inputs):
        raise InputError(
            f"{argument} is a {type(data).__name__}; make it with certcal.data.Inputs.from_arrays(inputs, labels)"
        )
    shape = tuple(data.inputs.shape[1:])
    device = next(network.parameters()).device
    try:
        with torch.no_grad():
            rows: Any = network(torch.tensor(data.inputs[:2]).to(device))
    except Exception as error:
        raise InputError(
            f"{name} does not take {argument} of shape {shape} ({reason(error)}); "
            "pass a network made for such inputs, or reshape them"
        ) from error
    count = min(2, len(data))
    if not isinstance(rows, Tensor) or rows.ndim != 2 or rows.shape[0] != count or rows.shape[1] < 2:
        found = tuple(rows.shape) if isinstance(rows, Tensor) else type(rows).__name__
        raise InputError(
            f"{name} returns {found} for {count} inputs; it must return a row per input, one entry per class"
        )
    if int(data.labels.max()) >= rows.shape[1]:
        index = int((data.labels >= rows.shape[1]).argmax())
        raise InputError(
            f"labels[{index}] of {argument} is {data.labels[index]}, but {name} has {rows.shape[1]} classes, "
            "counted from 0; pass a network with more classes, or repair the labels"
        )


def _check_training(network: nn.Module, data: Inputs, smallest: int) -> None:
    """Try a copy in training mode, in which batch normalisation cannot take one sample and some return more."""
    name, count = type(network).__name__, min(2, smallest)
    trial = copy.deepcopy(network).train()
    device = next(network.parameters()).device
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):  # pyright: ignore[reportUnknownMemberType]
            rows: Any = trial(torch.tensor(data.inputs[:count]).to(device))
    except Exception as error:
        remedy = "pass a larger batch or fewer pieces" if count == 1 else "pass a network that can be trained on them"
        raise InputError(
            f"{name} in training mode does not take {count} of the inputs at a time, as a piece of a batch may be "
            f"({reason(error)}); {remedy}"
        ) from error
    if not isinstance(rows, Tensor) or rows.ndim != 2:
        raise InputError(
            f"{name} in training mode returns a {type(rows).__name__}; it must return a row per input, as it does in "
            "evaluation mode"
        )


def load_start(start: Start, network: nn.Module) -> nn.Module:
    """A copy of a network, or of the given one with weights from a file."""
    mine = copy.deepcopy(start if isinstance(start, nn.Module) else network)
    if not isinstance(start, nn.Module):
        mine.load_state_dict(_weights_of(start, mine, type(network).__name__))
    return mine


def _weights_of(start: Start, network: nn.Module, name: str) -> Mapping[str, Tensor]:
    if isinstance(start, nn.Module):
        found: Mapping[str, Tensor] = start.state_dict()
        what = f"start ({type(start).__name__})"
    else:
        what = str(start)
        found, _ = tensors_and_marks(read_bytes(Path(start), _LARGEST, "a file of weights"), Path(start))
    return fitting(found, network, what, name, "begin with")
