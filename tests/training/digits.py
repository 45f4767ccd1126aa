"""Small data, small networks and small recipes for the tests of training."""

import os
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from certcal.data import Inputs, digits_images
from certcal.lab.training import METHODS, Recipe, Trained, TrainingProgress, recipe
from certcal.models.networks import MLP

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

ADVERSARIAL = tuple(name for name, entry in METHODS.items() if entry.adversary)

# Small numbers for the methods with constants of their own.
OWN: dict[str, dict[str, Any]] = {
    "mmce": {"penalty": 0.1},
    "acce-act-star-sum": {"mix": 0.999},  # of a sum over the batch
    "macer": {"draws": 4, "weight": 0.5},
    "consistency": {"draws": 2},
    "smoothmix": {"draws": 2, "attack_steps": 2},
    # With more draws its loss counts more of them as it learns, and so may rise.
    "cat-rs": {"draws": 1, "attack_steps": 2, "epsilon": 0.2, "epsilon_delay": 0, "epsilon_warmup": 0},
    "acr": {
        # After one such epoch whole classes would be discarded.
        **{"draws": 2, "begin": 1, "discard_below": 0.0, "weigh_every": 1},
        **{"sphere_steps": 2, "sphere_step": 0.02},
    },
}


# Methods for two classes: digits are then odd or even.
TWO_CLASSES = ("perturbed",)


def data(samples: int = 500, method: str = "") -> Inputs:
    """Digits of 8 × 8 pixels."""
    train = digits_images().train
    return Inputs.from_arrays(train.inputs[:samples], train.labels[:samples] % classes_for(method))


def held_out(samples: int = 100, method: str = "") -> Inputs:
    """Other digits."""
    test = digits_images().test
    return Inputs.from_arrays(test.inputs[:samples], test.labels[:samples] % classes_for(method))


def classes_for(method: str) -> int:
    """Number of classes that a method is for."""
    return 2 if method in TWO_CLASSES else 10


def network(seed: int = 0, method: str = "") -> MLP:
    """Of 32 units."""
    return MLP(64, hidden=(32,), classes=classes_for(method), seed=seed)


def small(method: str, **changes: Any) -> Recipe:
    """A recipe of few steps that go far."""
    numbers: dict[str, Any] = {"epochs": 2, "batch": 128, "learning_rate": 0.2, "milestones": ()}
    if "sigma" not in METHODS[method].unused:
        numbers |= {"sigma": 0.1, "sigma_warmup": 0}
    if method in ADVERSARIAL:
        numbers |= {"epsilon": 0.2, "epsilon_delay": 0, "epsilon_warmup": 0, "attack_steps": 2, "draws": 2}
    return recipe(method, **(numbers | OWN.get(method, {}) | changes))


def same_weights(one: Trained | nn.Module, other: Trained | nn.Module) -> bool:
    """Whether all weights and buffers have the same bits."""
    states = [(each.network if isinstance(each, Trained) else each).state_dict() for each in (one, other)]
    return states[0].keys() == states[1].keys() and all(
        torch.equal(states[0][key], states[1][key]) for key in states[0]
    )


def numbers(trained: Trained) -> list[dict[str, Any]]:
    """The history without the times it took."""
    return [{name: value for name, value in line.items() if name != "seconds"} for line in trained.history]


class Stopped(Exception):
    """Raised in the middle of training."""


def stop_at(step: int) -> Callable[[TrainingProgress], None]:
    """A progress callback that raises once that many steps were told of."""
    told: list[TrainingProgress] = []

    def callback(progress: TrainingProgress) -> None:
        told.append(progress)
        if len(told) == step:
            raise Stopped

    return callback


class Modern(nn.Module):
    """Convolution, batch normalisation and dropout."""

    outputs = "logits"

    def __init__(self) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.layers = nn.Sequential(
                *(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten()),
                *(nn.Dropout(0.2), nn.Linear(256, 10)),
            )

    def forward(self, inputs: Tensor) -> Tensor:
        return self.layers(inputs)


class Poisoned(nn.Module):
    """Returns NaN from its sixth step of training on."""

    outputs = "logits"

    def __init__(self) -> None:
        super().__init__()
        self.inner = network()
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def forward(self, inputs: Tensor) -> Tensor:
        self.steps += int(self.training)
        return self.inner(inputs) * (float("nan") if self.steps > 5 else 1.0)
