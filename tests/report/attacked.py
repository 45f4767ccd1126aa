"""What ``certcal.attack`` finds about a small network that has learnt nothing, within seconds."""

from typing import Any

import numpy as np

import certcal
from certcal.models.networks import MLP


def attack_result(source: str = "net.safetensors on test.npz", n: int = 60, **settings: Any) -> certcal.Attack:
    """Two distances, four attacks each."""
    rng = np.random.default_rng(4)
    images = rng.integers(0, 256, (n, 1, 2, 3)).astype(np.uint8)
    given: dict[str, Any] = {"epsilon": [2 / 255, 32 / 255], "steps": 3, **settings}
    network = MLP(6, hidden=(8,), classes=3).eval()
    return certcal.attack(network, (images, rng.integers(0, 3, n)), source=source, **given)
