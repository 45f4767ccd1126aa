"""What is found out about a model before it is sampled: its classes, and whether rows of a batch mind each other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import to_numpy
from certcal.models import Model
from certcal.smoothing._sampler import Sampler, SamplingError

ROWS = 8  # inputs that are tried

_NOISY = 64  # noisy inputs, among which neighbours are chosen
_BATCHES = 8  # compositions of a batch; a model that tosses one coin per batch passes with probability 2^-7
# Differences that are put down to the rounding of floats, relative to the largest output of the row (at least 1).
_ROUNDING = 1e-5


def spread(samples: int) -> NDArray[np.int64]:
    """Numbers of the samples that are tried: from all over the data, which may be sorted."""
    return np.unique(np.linspace(0, samples - 1, ROWS).astype(np.int64))


def number_of_classes(sampler: Sampler, inputs: NDArray[np.float32]) -> int:
    """Classes of the model, from one draw for each of a few inputs; a model that cannot be sampled fails here."""
    rows = spread(len(inputs))
    tried = sampler.select(inputs[rows], rows, 1)
    if tried.invalid.sum() == len(rows):
        raise SamplingError(
            f"all {len(rows)} outputs that were tried are invalid (NaN, infinite, or not probabilities of sum 1); "
            "mend the model, or declare outputs as logits if that is what they are"
        )
    return tried.votes.shape[1]


def noisy_inputs(probe: NDArray[np.float32], *, sigma: float, seed: int, noise: str) -> NDArray[np.float32]:
    """Several draws of noise around each of a few inputs, as the model will see them; those of one input together."""
    seen: list[NDArray[np.float32]] = []

    class Listener:
        outputs = "logits"

        def __call__(self, batch: NDArray[np.float32]) -> NDArray[np.float64]:
            seen.append(batch.copy())
            return np.zeros((len(batch), 2))

    draws = -(-_NOISY // len(probe))
    listener: Any = Listener()
    sampler = Sampler(listener, sigma=sigma, seed=seed, noise=noise, batch=draws * len(probe))
    sampler.select(probe, np.arange(len(probe)), draws)
    return seen[0]


def check_rows(model: Model, noisy: NDArray[np.float32], batch: int) -> bool:
    """Refuse a model whose answer to an input depends on the other inputs of a full batch, or on the call.

    Every bound here is about independent votes. Noise draws are independent; votes are so if each is a function of its
    own draw. A few inputs are asked in several full batches with other neighbours each time, and in other places.
    Differences of the size of rounding pass: they change a vote only where two outputs all but tie.
    """
    random = np.random.default_rng(0)
    own = np.linspace(0, len(noisy) - 1, ROWS).astype(np.int64)
    most = 0.0
    for watched in np.array_split(own, -(-ROWS // max(1, batch // 2))):
        again, apart = _differences(model, noisy, _batches(random, watched, len(noisy), batch))
        if again > _ROUNDING:
            raise SamplingError(
                f"the model answers the same batch differently from call to call (relative difference {again:.2g}), so "
                "that no draw could be repeated; put it in evaluation mode (dropout in training mode does this), or "
                "take what is random out of it"
            )
        if apart > _ROUNDING:
            raise SamplingError(
                "the model's answer to an input changes with the other inputs of its batch (relative difference "
                f"{apart:.2g}), so that votes would not be independent and no certificate would hold; put it in "
                "evaluation mode (batch normalisation in training mode does this), or sample with a batch of 1"
            )
        most = max(most, again, apart)
    return most == 0


def _batches(
    random: np.random.Generator, watched: NDArray[np.int64], inputs: int, batch: int
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Numbers of the inputs in each of several batches, and the places of those watched."""
    found: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    for number in range(_BATCHES):
        others = random.integers(0, inputs, batch - len(watched))
        if number % 2:
            others[:] = others[:1]  # copies of one input: as far from a mixture as can be
        places = random.permutation(batch)
        rows = np.empty(batch, np.int64)
        rows[places] = np.concatenate([watched, others])
        found.append((rows, places[: len(watched)]))
    return found


def _differences(
    model: Model, noisy: NDArray[np.float32], batches: list[tuple[NDArray[np.int64], NDArray[np.int64]]]
) -> tuple[float, float]:
    """How far answers are apart when the first batch is asked again, and in the other batches."""
    expected = _ask(model, noisy, *batches[0])
    again = _difference(expected, _ask(model, noisy, *batches[0]))
    return again, max(_difference(expected, _ask(model, noisy, *each)) for each in batches[1:])


def _ask(
    model: Model, noisy: NDArray[np.float32], rows: NDArray[np.int64], places: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The model's outputs in some places of a batch."""
    batch = noisy[rows]
    try:
        return to_numpy(model(batch), "the model's output").astype(np.float64)[places]
    except Exception as error:
        raise SamplingError(f"the model failed on a batch of noisy inputs of shape {batch.shape}: {error}") from error


def _difference(one: NDArray[np.float64], two: NDArray[np.float64]) -> float:
    """How far outputs are apart, relative to the row's largest where that is above 1; no number is far from any."""
    if one.shape != two.shape:
        return np.inf
    with np.errstate(invalid="ignore"):
        gap = np.abs(one - two)
    gap[(one == two) | (np.isnan(one) & np.isnan(two))] = 0.0
    gap[~np.isfinite(gap)] = np.inf
    size = np.where(np.isfinite(one), np.abs(one), 0.0).max(axis=1, keepdims=True)
    return float((gap / np.maximum(1.0, size)).max())


def same_in_every_batch(model: Model, probe: NDArray[np.float32], batches: set[int]) -> bool:
    """Whether an input gets the same bits in every place, beside every neighbour, and in batches of the given sizes.

    Only some compositions can be tried; a model for which the answer is no is sampled just as well, but its result
    belongs to the batch size it was computed with.

    Examples
    --------
    >>> from certcal.models import wrap
    >>> probe = np.array([[1.0, 2.0], [0.5, 3.0]], np.float32)
    >>> same_in_every_batch(wrap(lambda batch: batch, outputs="logits"), probe, {4})
    True
    >>> same_in_every_batch(wrap(lambda batch: batch * len(batch), outputs="logits"), probe, {4})
    False
    """
    seen: dict[int, NDArray[Any]] = {}
    for size in sorted({*batches, *(max(1, size // 2) for size in batches)}):
        mixed = np.arange(size) % len(probe)
        for rows in (mixed, mixed[::-1], np.zeros_like(mixed)):
            outputs = np.asarray(model(probe[rows]))
            for row in range(len(probe)):
                found = outputs[rows == row]
                if not len(found):
                    continue
                expected = seen.setdefault(row, found[0])
                if not np.array_equal(found, np.broadcast_to(expected, found.shape), equal_nan=True):
                    return False
    return True
