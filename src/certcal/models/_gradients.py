"""Torch modules that give gradients with respect to their inputs. Importing this module loads torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from certcal._checks import InputError
from certcal._text import reason
from certcal.models.fingerprint import is_instance
from certcal.models.networks import MLP


def watched(module: nn.Module, description: str) -> nn.Module:
    """A module whose failures are one sentence; that it gives no gradients is one of them."""
    return _Watched(module, description).eval()


def perceptron(estimator: Any, description: str) -> MLP:
    """scikit-learn's multi-layer perceptron as a module that returns logits: its weights, rounded to float32."""
    if not is_instance(estimator, "sklearn.neural_network", "MLPClassifier"):
        raise InputError(
            f"{description} gives no gradients; of scikit-learn's classifiers an MLPClassifier does, or pass a torch "
            "module"
        )
    weights: list[Any] = [np.asarray(each).T for each in estimator.coefs_]
    biases: list[Any] = [np.asarray(each) for each in estimator.intercepts_]
    if len(weights) > 1 and estimator.activation != "relu":
        raise InputError(
            f"{description} has the activation {estimator.activation!r}; train one with activation='relu', or pass a "
            "torch module"
        )
    if estimator.out_activation_ == "logistic" and len(biases[-1]) == 1:
        # Of two classes scikit-learn keeps the logit of the second against the first, whose own is zero.
        weights[-1] = np.concatenate([np.zeros_like(weights[-1]), weights[-1]])
        biases[-1] = np.concatenate([[0.0], biases[-1]])
    elif estimator.out_activation_ != "softmax":
        raise InputError(f"{description} predicts several labels at once; train one for one class per sample")
    sizes = [weights[0].shape[1], *(len(bias) for bias in biases)]
    network = MLP(sizes[0], hidden=sizes[1:-1], classes=sizes[-1])
    layers = [layer for layer in network.layers if isinstance(layer, nn.Linear)]
    for layer, weight, bias in zip(layers, weights, biases, strict=True):
        layer.weight.data = torch.tensor(weight, dtype=torch.float32)
        layer.bias.data = torch.tensor(bias, dtype=torch.float32)
    return network.requires_grad_(False).eval()


class _Watched(nn.Module):
    def __init__(self, inner: nn.Module, description: str) -> None:
        super().__init__()
        self.inner = inner
        self.description = description

    def forward(self, inputs: Tensor) -> Tensor:
        given = tuple(inputs.shape)
        try:
            answer: Any = self.inner(inputs)
        except InputError:
            raise
        except Exception as error:
            raise InputError(
                f"{self.description} failed on a batch of shape {given}: {reason(error)}; it must accept float32 "
                "batches of that shape"
            ) from error
        if not isinstance(answer, Tensor) or answer.ndim != 2 or len(answer) != len(inputs) or answer.shape[1] < 2:
            found = tuple(answer.shape) if isinstance(answer, Tensor) else type(answer).__name__
            raise InputError(
                f"{self.description} returns {found} for a batch of shape {given}; it must return one row per sample "
                "and one column per class"
            )
        if inputs.requires_grad and torch.is_grad_enabled() and not answer.requires_grad:
            raise InputError(
                f"{self.description} gives no gradients with respect to its inputs; take torch.no_grad, .detach() and "
                ".numpy() out of its forward"
            )
        return answer.float() if answer.dtype in (torch.bfloat16, torch.float16) else answer
