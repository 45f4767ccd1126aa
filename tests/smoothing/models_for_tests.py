"""Models that worker processes and the command line can load by name. They count on NumPy only."""

import os
import signal
from pathlib import Path

import numpy as np

_WEIGHTS = np.random.default_rng(5).normal(size=(3, 4)).astype(np.float32)


def linear(batch: np.ndarray) -> np.ndarray:
    """Logits of three classes. Sums in a fixed order, so that a row's bits do not depend on its batch."""
    flat = batch.reshape(len(batch), -1)
    return np.stack([(flat * row).sum(axis=1) for row in _WEIGHTS], axis=1)


def other(batch: np.ndarray) -> np.ndarray:
    """Another model."""
    return linear(batch)[:, ::-1] * 2


def linear_but_for_a_hair(batch: np.ndarray) -> np.ndarray:
    """Another model that answers alike."""
    return linear(batch) * np.float32(1 + 2e-7)


def first_two(batch: np.ndarray) -> np.ndarray:
    """The first two numbers of an input, of any shape."""
    return batch.reshape(len(batch), -1)[:, :2]


def two(batch: np.ndarray) -> np.ndarray:
    """Two classes only."""
    return linear(batch)[:, :2]


def chummy(batch: np.ndarray) -> np.ndarray:
    """A model whose rows depend on their batch, as with batch normalisation left in training mode."""
    flat = batch.reshape(len(batch), -1)
    return linear(flat - flat.mean(axis=0))


def sized(batch: np.ndarray) -> np.ndarray:
    """A model whose rows know the size of their batch, as last bits of a product may, and not their neighbours."""
    return linear(batch) * np.float32(1 + 0.01 * len(batch))


def coin(batch: np.ndarray) -> np.ndarray:
    """One toss per batch, decided by all of its rows: every vote of a batch is the same."""
    heads = float(batch.astype(np.float64).sum() * 1e6 // 1 % 2)
    return np.tile(np.array([heads, 1 - heads, -1.0]), (len(batch), 1))


def almost(batch: np.ndarray) -> np.ndarray:
    """A model whose neighbours change the last bits."""
    return linear(batch) + np.float32(1e-7) * batch[:1, :1]


def not_a_number(batch: np.ndarray) -> np.ndarray:
    """No prediction where the first coordinate is large."""
    outputs = linear(batch)
    outputs[batch.reshape(len(batch), -1)[:, 0] > 0.5] = np.nan
    return outputs


def too_sure(batch: np.ndarray) -> np.ndarray:
    """Probabilities that add up to 3 where the first coordinate is large."""
    outputs = probabilities(batch)
    outputs[batch.reshape(len(batch), -1)[:, 0] > 0.5] *= 3
    return outputs


def fails_far_out(batch: np.ndarray) -> np.ndarray:
    """Raises at inputs near (9, 9, 9, 9)."""
    if np.any(batch.reshape(len(batch), -1).min(axis=1) > 6):
        raise ValueError("too far out")
    return linear(batch)


def interrupted(batch: np.ndarray) -> np.ndarray:
    """Sends its own process Ctrl-C at the call that a file says."""
    path = Path(os.environ["CERTCAL_TEST_CALLS"])
    calls = int(path.read_text()) - 1
    path.write_text(str(calls))
    if calls == 0:
        os.kill(os.getpid(), signal.SIGINT)
    return linear(batch)


def probabilities(batch: np.ndarray) -> np.ndarray:
    """The same as probabilities."""
    logits = linear(batch)
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def ends_ray(batch: np.ndarray) -> np.ndarray:
    """A model that ends the raylet that its worker belongs to; elsewhere the linear one."""
    password = os.environ.get("RAY_AUTH_TOKEN_PATH")
    if password is None:
        return linear(batch)
    Path(os.environ["SEEN"]).write_text(str(Path(password).parent))
    os.kill(os.getppid(), signal.SIGKILL)
    while True:
        signal.pause()
