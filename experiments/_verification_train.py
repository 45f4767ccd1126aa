"""LeNet for Fashion-MNIST by three methods of the project and by interval bound propagation (Gowal et al. 2018)."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from certcal.data import Inputs
from certcal.models.networks import MLP, LeNet, load_weights, save_weights
from certcal.training import recipe, train

# Of the training images.
MEAN, STD = 0.286, 0.353
EPOCHS, BATCH = 6, 256
# ℓ∞ radius of the adversary, and the one that interval bounds are trained for.
ATTACKED, BOUNDED = 0.05, 0.05
# Standard deviation of the noise that the smoothed network is trained and sampled with.
SIGMA = 0.25
METHODS: dict[str, dict[str, Any]] = {
    "standard": {},
    "smoothadv": {"epsilon": ATTACKED, "norm": "linf", "attack_steps": 4, "draws": 1},
    "gaussian": {"sigma": SIGMA},
}


def trained(method: str, data: Inputs, out: Path) -> nn.Module:
    """The network of a method, from its folder where training was done before."""
    network = LeNet(mean=MEAN, std=STD)
    file = out / method / "model.safetensors"
    if method == "ibp":
        if not file.exists():
            began = time.perf_counter()
            train_by_intervals(network, data)
            file.parent.mkdir(parents=True, exist_ok=True)
            save_weights(network.eval(), file)
            print(f"ibp: trained in {time.perf_counter() - began:.0f} s", flush=True)
        return load_weights(file).eval()
    chosen = recipe(method, epochs=EPOCHS, batch=BATCH, **METHODS[method])
    late: dict[str, Any] = {"milestones": (EPOCHS - 2, EPOCHS - 1), "learning_rate": 0.05}
    late |= {"sigma_warmup": 1} if method == "gaussian" else {}
    late |= {"sigma_warmup": 0, "epsilon_delay": 0, "epsilon_warmup": 2} if method == "smoothadv" else {}
    done = train(network, data, replace(chosen, **late), out=out / method)
    print(f"{method}: trained in {sum(line['seconds'] for line in done.history):.0f} s", flush=True)
    return load_weights(file).eval()


def trained_on_digits(data: Inputs, out: Path) -> nn.Module:
    """A network with two hidden layers of 64 units for scikit-learn's digits, on clean images."""
    chosen = recipe("standard", epochs=40, batch=64)
    late: dict[str, Any] = {"milestones": (25, 35), "learning_rate": 0.05}
    train(MLP(64, hidden=(64, 64)), data, replace(chosen, **late), out=out / "digits")
    return load_weights(out / "digits" / "model.safetensors").eval()


def train_by_intervals(network: LeNet, data: Inputs, epochs: int = 12, seed: int = 0) -> None:
    """Descend on half the cross entropy of clean logits, half that of the worst logits in a box, which grows."""
    images = torch.tensor(data.inputs[:])
    labels = torch.tensor(data.labels)
    order = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.Adam(network.parameters(), 1e-3)
    steps = epochs * (len(images) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 2e-3, total_steps=steps)
    done = 0
    for _ in range(epochs):
        for rows in torch.randperm(len(images), generator=order).split(BATCH):
            if len(rows) < BATCH:
                continue
            grown = min(1.0, max(0.0, done / steps - 0.1) / 0.5)
            clean, truth = images[rows], labels[rows]
            epsilon = grown * BOUNDED
            lower, upper = _box(network, (clean - epsilon).clamp_min(0), (clean + epsilon).clamp_max(1))
            worst = torch.where(F.one_hot(truth, lower.shape[1]).bool(), lower, upper)
            loss = (1 - grown / 2) * F.cross_entropy(network(clean), truth) + grown / 2 * F.cross_entropy(worst, truth)
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 5.0)
            optimiser.step()
            schedule.step()
            done += 1


def _box(network: LeNet, lower: Tensor, upper: Tensor) -> tuple[Tensor, Tensor]:
    """Interval bounds of the logits, with gradients; the last layer is not merged with the margins."""
    lower, upper = network.normalize(lower), network.normalize(upper)
    for layer in network.layers:
        if isinstance(layer, nn.Conv2d | nn.Linear):
            centre, radius = (lower + upper) / 2, (upper - lower) / 2
            if isinstance(layer, nn.Conv2d):
                spread = F.conv2d(radius, layer.weight.abs(), None, layer.stride, layer.padding)
            else:
                spread = F.linear(radius, layer.weight.abs())
            middle = layer(centre)
            lower, upper = middle - spread, middle + spread
        else:
            lower, upper = layer(lower), layer(upper)
    return lower, upper
