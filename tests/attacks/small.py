"""Targets for tests: one small enough for finite differences, batches of the trained network; attacks as functions."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from certcal.attacks import Ace, Attacked, Found, OneStepAce, Pgd, Target, perturb
from tests.attacks.conftest import Trained

SIGMA = 0.15


def small_target(seed: int, n: int = 6) -> tuple[Target, Tensor, Tensor]:
    """A random smooth network in double precision under noise of three draws, with inputs in [0, 1] and labels."""
    random = torch.Generator().manual_seed(seed)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(shape, generator=random, dtype=torch.float64)

    first, second = drawn(5, 8), drawn(8, 3)
    inputs = torch.rand((n, 5), generator=random, dtype=torch.float64)
    labels = torch.randint(3, (n,), generator=random)
    return Target(lambda x: torch.tanh(x @ first) @ second, noise=0.3 * drawn(3, n, 5)), inputs, labels


def differences(value: Callable[[Tensor], Tensor], at: Tensor, step: float = 1e-6) -> Tensor:
    """Central differences of a number with respect to every entry."""
    slope = torch.zeros_like(at)
    for index in np.ndindex(*at.shape):
        ahead, behind = at.clone(), at.clone()
        ahead[index] += step
        behind[index] -= step
        slope[index] = (value(ahead) - value(behind)) / (2 * step)
    return slope


def batch(trained: Trained, n: int, seed: int, draws: int = 2, sigma: float = SIGMA) -> tuple[Target, Tensor, Tensor]:
    """Random digits with noise of their own."""
    random = torch.Generator().manual_seed(seed)
    rows = torch.randperm(len(trained.labels), generator=random)[:n]
    inputs, labels = torch.tensor(trained.inputs)[rows], torch.tensor(trained.labels)[rows]
    noise = sigma * torch.randn((draws, *inputs.shape), generator=random) if sigma else None
    return Target(trained.network, noise=noise), inputs, labels


def judged(target: Target, inputs: Tensor, labels: Tensor, found: Found) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Confidence in the clean prediction before and after, and whether it is right: in numpy, for certcal.metrics."""
    clean, after = (target.log_probabilities(x).exp().numpy() for x in (inputs, found.inputs))
    chosen = clean.argmax(1)
    rows = np.arange(len(chosen))
    return clean[rows, chosen].clip(0, 1), after[rows, chosen].clip(0, 1), chosen == labels.numpy()


def _call(kind: Any, names: tuple[str, ...], defaults: dict[str, Any]) -> Any:
    # With the parameters of the attack among those of the call.
    def call(model: Any, inputs: Any, labels: Any, **given: Any) -> Attacked:
        own = {name: given.pop(name) for name in names if name in given}
        return perturb(model, inputs, labels, kind(**own), **{**defaults, **given})

    return call


ace = _call(Ace, ("eta", "omega", "steps", "step"), {})
one_step_ace = _call(OneStepAce, ("decay", "attempts"), {})
pgd = _call(Pgd, ("steps", "scale"), {"norm": "l2", "draws": 1})
