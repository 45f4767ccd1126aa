"""Classifiers of scikit-learn rebuilt as torch modules, for their gradients. Importing this loads torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from certcal._base.checks import InputError
from certcal.models._adapter import EstimatorModel, with_names
from certcal.models.fingerprint import is_instance
from certcal.models.networks._network import MLP

_SCALERS = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler")
_LINEAR = (
    *(("sklearn.linear_model", name) for name in ("LogisticRegression", "LogisticRegressionCV", "SGDClassifier")),
    ("sklearn.discriminant_analysis", "LinearDiscriminantAnalysis"),
)
_CLOSE = 1e-4


def rebuilt(model: EstimatorModel) -> nn.Module:
    """A module whose logits have the estimator's probabilities: its weights, rounded to float32."""
    estimator, description = model.estimator, model.description
    *scalers, last = [step for _, step in estimator.steps] if hasattr(estimator, "steps") else [estimator]
    known = all(any(is_instance(each, "sklearn.preprocessing", name) for name in _SCALERS) for each in scalers)
    linear = any(is_instance(last, module, name) for module, name in _LINEAR)
    if not known or not (linear or is_instance(last, "sklearn.neural_network", "MLPClassifier")):
        raise InputError(
            f"{description} gives no gradients; of scikit-learn's classifiers linear ones and MLPClassifier do, behind "
            "scalers as well; pass a torch module, or bound the scores of trees with verify"
        )
    weights, biases = _linear_layers(last) if linear else _perceptron(last, description)
    shift, scale = np.zeros(weights[0].shape[1]), np.ones(weights[0].shape[1])
    for scaler in scalers:  # x → scale · x + shift
        columns: Any = getattr(scaler, "feature_names_in_", None)
        ends = scaler.transform(with_names(np.array([[0.0], [1.0]]).repeat(len(scale), 1), columns))
        zero, one = np.asarray(ends, np.float64)
        shift, scale = zero + (one - zero) * shift, (one - zero) * scale
    biases[0] = biases[0] + weights[0] @ shift
    weights[0] = weights[0] * scale
    sizes = [weights[0].shape[1], *(len(bias) for bias in biases)]
    network = MLP(sizes[0], hidden=sizes[1:-1], classes=sizes[-1])
    layers = [layer for layer in network.layers if isinstance(layer, nn.Linear)]
    for layer, weight, bias in zip(layers, weights, biases, strict=True):
        layer.weight.data = torch.tensor(weight, dtype=torch.float32)
        layer.bias.data = torch.tensor(bias, dtype=torch.float32)
    return _matching_module(network.requires_grad_(False).eval(), model)


def _linear_layers(estimator: Any) -> tuple[list[Any], list[Any]]:
    return _two_columns([np.asarray(estimator.coef_, np.float64)], [np.asarray(estimator.intercept_, np.float64)])


def _perceptron(estimator: Any, description: str) -> tuple[list[Any], list[Any]]:
    if len(estimator.coefs_) > 1 and estimator.activation != "relu":
        raise InputError(
            f"{description} has the activation {estimator.activation!r}; train one with activation='relu', or pass a "
            "torch module"
        )
    if estimator.out_activation_ != "softmax" and len(estimator.intercepts_[-1]) > 1:
        raise InputError(f"{description} predicts several labels at once; train one for one class per sample")
    return _two_columns(
        [np.asarray(each).T for each in estimator.coefs_], [np.asarray(each) for each in estimator.intercepts_]
    )


def _two_columns(weights: list[Any], biases: list[Any]) -> tuple[list[Any], list[Any]]:
    """Of two classes scikit-learn keeps the logit of the second against the first, whose own is zero."""
    if len(biases[-1]) == 1:
        weights[-1] = np.concatenate([np.zeros_like(weights[-1]), weights[-1]])
        biases[-1] = np.concatenate([[0.0], biases[-1]])
    return weights, biases


def _matching_module(network: MLP, model: EstimatorModel) -> nn.Module:
    """The module, or that of one classifier per class against the rest, whichever has the estimator's probabilities."""
    probe = np.random.default_rng(0).standard_normal((16, network.settings["features"])).astype(np.float32)
    expected = model(probe)
    for module in (network, _AgainstTheRest(network).eval()):
        with torch.no_grad():
            found: Tensor = torch.softmax(module(torch.tensor(probe)), 1)
        if np.abs(found.numpy() - expected).max() < _CLOSE:
            return module
    raise InputError(
        f"{model.description} gives no gradients: its probabilities are not those of its weights; pass a torch module"
    )


class _AgainstTheRest(nn.Module):
    """Sigmoids that are normalised to sum to one: their logarithms are logits."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, inputs: Tensor) -> Tensor:
        return F.logsigmoid(self.inner(inputs))
