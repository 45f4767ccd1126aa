"""A model and the data that it is tried or trained on: opened in one way for sample, attack, verify and train."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from certcal._base.checks import InputError
from certcal._base.signature import Range
from certcal.data import Inputs, OpenedInputs, Parts, open_inputs, read_split

if TYPE_CHECKING:
    from certcal.models import Model

COUNT, SIDE, BATCH = Range(1, 10**9), Range(1, 1 << 14), Range(1, 1 << 24)
# Bytes of the largest training data that are kept in memory: six times CIFAR-10's training images.
MOST_IN_MEMORY = 2**32


class DataSet(Protocol):
    """Whatever gives inputs and labels and knows how many: torch's ``Dataset`` and ``DataLoader``, a list of pairs."""

    def __len__(self) -> int: ...


def open_model(model: object, asked: Mapping[str, Any], device: str = "auto", inputs: Inputs | None = None) -> Model:
    """The model that a verb was asked about; ``asked`` are the verb's arguments by name.

    A torch module need not say what it returns, where its answers to the inputs show it.
    """
    from certcal.models import load, wrap
    from certcal.models.protocol import undeclared

    def make(outputs: Any) -> Model:
        if isinstance(model, str | os.PathLike):
            return load(os.fspath(cast("str", model)), outputs, weights=asked["weights"], device=device)
        return wrap(model, outputs, device=device)

    asked["progress"].stage("loading the model")
    return make(asked["outputs"]) if inputs is None else undeclared(make, asked["outputs"], inputs.inputs)


def open_data(data: Any, asked: Mapping[str, Any]) -> OpenedInputs:
    """The samples that a verb was asked about; those of ``asked`` that it does not know are left at their defaults."""
    asked["progress"].stage("reading")
    names = "split", "limit", "every", "resize", "crop"
    return open_inputs(data, **{name: asked[name] for name in names if name in asked})


def in_units_of_sigma(model: Model, inputs: Inputs, sigma: float | str) -> tuple[Model, Inputs, float]:
    """Model and inputs in the units that the noise is given in: as they are, or in standard deviations ("0.1sd")."""
    if not isinstance(sigma, str):
        return model, inputs, sigma
    from certcal._base.assumptions import IN_DEVIATIONS
    from certcal.models.scaled import ScaledModel

    if len(inputs.inputs.shape) != 2:
        reason = f"standard deviations are those of features, and an input has the shape {inputs.inputs.shape[1:]}"
        raise InputError(reason, argument="sigma", remedy="give a number")
    rows = np.asarray(inputs.inputs, np.float64)
    scale = rows.std(axis=0)
    scale[scale == 0] = 1.0  # of a feature that is the same everywhere nothing is known
    scaled = Inputs.from_arrays(rows / scale, inputs.labels, inputs.class_names)
    return ScaledModel(model, scale, IN_DEVIATIONS), scaled, float(sigma.removesuffix("sd"))


def model_on_data(model: object, description: str, data: str) -> str:
    """What was tried on what: the model by its file or name, where it has one."""
    return f"{model if isinstance(model, str | os.PathLike) else description} on {data}"


def open_parts(data: Any, asked: Mapping[str, Any]) -> tuple[Parts, str]:
    """Data to train on and to test on, and what they are called; ``test`` and ``limit`` are among what was asked."""
    asked["progress"].stage("reading")
    images = {"resize": asked["resize"], "crop": asked["crop"]}
    test, limit = asked["test"], asked["limit"]
    if isinstance(data, str | os.PathLike):
        parts, name = read_split(cast("str", data), **images, in_memory=False), str(cast("str", data))
    elif isinstance(data, Parts):
        parts, name = data, data.name
    else:
        name = "data"
        parts = Parts(name, name, open_inputs(data, **images).inputs, None)
    if limit is not None and limit > len(parts.train):
        reason = f"it is {limit}, but {name} holds {len(parts.train)} samples to train on"
        raise InputError(reason, argument="limit", remedy="give at most that")
    held_out = parts.test
    if test is not None:
        held_out = open_inputs(test, **(images if isinstance(test, str | os.PathLike) else {})).inputs
    train = in_memory_if_small(parts.train.subset(limit=limit))
    return Parts(parts.name, parts.title, train, None if held_out is None else in_memory_if_small(held_out)), name


def in_memory_if_small(inputs: Inputs) -> Inputs:
    """The inputs in memory if that is small; otherwise they are read batch by batch, again in every epoch."""
    return inputs.in_memory() if inputs.inputs.nbytes <= MOST_IN_MEMORY else inputs
