"""A model as a torch module that gives gradients with respect to its inputs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from certcal._checks import InputError
from certcal.models._adapter import extra
from certcal.models._load import load
from certcal.models._wrap import wrap
from certcal.models.protocol import Model, Outputs

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True, eq=False)
class Differentiable:
    """A classifier that torch can differentiate.

    Attributes
    ----------
    module
        In evaluation mode, with fixed weights: float32 inputs with the samples along the first axis in, a row per
        sample and a column per class out. Its failures are :class:`certcal.InputError` of one sentence.
    outputs
        ``"probabilities"`` or ``"logits"``: what the module returns.
    description
        A few words for people.
    """

    module: nn.Module
    outputs: Outputs
    description: str


def differentiable(model: object, outputs: Outputs | None = None) -> Differentiable:
    """Make a torch module that gives gradients with respect to its inputs, from a model.

    Parameters
    ----------
    model
        A torch module in evaluation mode, or what :func:`certcal.models.load` takes: weights of a reference network
        (``.safetensors``), the name of a torch module (``"package.module:name"``); or what ``load`` and
        :func:`certcal.models.wrap` have made of one, such as a network of your own by its name with its weights. A
        multi-layer perceptron of scikit-learn with rectifiers (``MLPClassifier``) is rebuilt as a torch module that
        returns the logits of its probabilities. ONNX files, other estimators and plain callables give no gradients and
        are refused.
    outputs
        What the model returns, as for ``load`` and ``wrap``; needed unless it says so itself.

    Raises
    ------
    InputError
        If there is no model, or if it gives no gradients.

    Examples
    --------
    >>> import torch
    >>> from certcal.models.networks import MLP
    >>> network = differentiable(MLP(4, hidden=(8,), classes=3).eval())
    >>> inputs = torch.zeros(2, 4, requires_grad=True)
    >>> logits = network.module(inputs)
    >>> network.outputs, torch.autograd.grad(logits.sum(), inputs)[0].shape
    ('logits', torch.Size([2, 4]))
    """
    is_name = isinstance(model, str | os.PathLike)
    return _of_model(load(cast("str", model), outputs) if is_name else wrap(model, outputs))


def _of_model(model: Model) -> Differentiable:
    with extra("torch", ("torch", "safetensors"), "an attack or training"):
        from certcal.models._gradients import perceptron, watched
    from certcal.models._sklearn import EstimatorModel
    from certcal.models._torch import TorchModel

    about = model.description
    if isinstance(model, TorchModel):
        return Differentiable(watched(model.module, about), model.outputs, about)
    if isinstance(model, EstimatorModel):
        return Differentiable(watched(perceptron(model.estimator, about), about), "logits", about)
    raise InputError(
        f"{about} gives no gradients; pass the torch module it was made from, or load that by its name, "
        "'package.module:name', with its weights"
    )
