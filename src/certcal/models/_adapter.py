"""What all adapters share: checked batches in, checked matrices out, every failure one sentence."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError, to_numpy
from certcal._text import reason
from certcal.models.protocol import Outputs, Source

Batch = NDArray[np.float32]

_LEAST = 1e-30  # below this, probabilities are alike


class Adapter(ABC):
    """A model of some library as a :class:`certcal.models.Model`."""

    def __init__(self, outputs: Outputs, description: str, source: Source | None = None) -> None:
        self.outputs: Outputs = outputs
        self.description = description
        self.source = source

    def __repr__(self) -> str:
        return f"<{self.description}: {self.outputs}>"

    def __call__(self, batch: Any) -> NDArray[Any]:
        """One row per sample and one column per class."""
        inputs = as_batch(batch)
        try:
            result = self._forward(inputs)
        except InputError:
            raise
        except Exception as error:
            raise InputError(
                f"{self.description} failed on a batch of shape {inputs.shape}: {reason(error)}; it must accept "
                "float32 batches of that shape"
            ) from error
        return self._matrix(result, inputs.shape)

    @abstractmethod
    def _forward(self, batch: Batch) -> Any:
        """The model's own answer."""

    @abstractmethod
    def identity(self, probe: Any) -> str | None:
        """Digits of what the model is made of, None where that cannot all be seen; ``probe`` is a batch to try it on.

        They do not depend on the machine, the number of threads or the last bits of an answer.
        """

    def fingerprint(self, probe: Any) -> str:
        """64 hexadecimal digits that change with the model."""
        return self.identity(probe) or self._behaviour(probe, "", complete=False)

    def _matrix(self, result: Any, given: tuple[int, ...]) -> NDArray[Any]:
        array = _array(result, f"the output of {self.description}")
        if array.ndim != 2 or array.shape[0] != given[0] or array.shape[1] < 2:
            raise InputError(
                f"{self.description} returns shape {array.shape} for a batch of shape {given}; "
                "it must return one row per sample and one column per class (two for a binary model)"
            )
        if array.dtype == np.float32 or array.dtype == np.float64:
            return array
        if array.dtype.kind not in "biuf":
            raise InputError(f"{self.description} returns {array.dtype}; it must return numbers, as float32 or float64")
        return array.astype(np.float32 if array.dtype == np.float16 else np.float64)

    def _behaviour(self, probe: Any, inside: str, complete: bool) -> str:
        """Digits of the model's name, what could be seen of its inside, and its answers on the scale of logits.

        Libraries and processors differ in the last bits of a float32, so the answers are rounded first: to three
        decimals, and to one where the inside was seen and only what it reads from elsewhere could change them.
        """
        answers = self(probe).astype(np.float64)
        if self.outputs == "probabilities":
            answers = np.log(np.where(answers < _LEAST, _LEAST, answers))  # NaN stays
        answers = np.round(answers, 1 if complete else 3) + 0.0  # adding zero turns -0.0 into 0.0
        digest = hashlib.sha256(f"{self.description}\n{self.outputs}\n{inside}\n{answers.shape}\n".encode())
        digest.update(np.where(np.isnan(answers), np.nan, answers).astype("<f8").tobytes())
        return digest.hexdigest()


def as_batch(batch: Any) -> Batch:
    """Inputs as a contiguous float32 array with the samples along its first axis; no copy where it is one already."""
    array = _array(batch, "batch")
    if array.ndim < 2 or array.shape[0] == 0:
        raise InputError(f"batch has shape {array.shape}; pass at least one sample, samples along the first axis")
    return np.ascontiguousarray(array, np.float32)


def _array(value: Any, name: str) -> NDArray[Any]:
    return value if type(value) is np.ndarray else to_numpy(value, name)


def check_shape(given: tuple[int, ...], expected: tuple[int | None, ...] | None, description: str) -> None:
    """Raise unless the shape of one sample is what the model takes; None stands for any size."""
    if expected is None or (
        len(given) == len(expected)
        and all(want is None or have == want for have, want in zip(given, expected, strict=True))
    ):
        return
    wanted = ", ".join("any" if size is None else str(size) for size in expected) + ("," if len(expected) == 1 else "")
    raise InputError(f"{description} takes samples of shape ({wanted}), not {given}; reshape the inputs")


def in_batches(run: Callable[[Batch], NDArray[Any]], batch: Batch, least: int, most: int | None) -> NDArray[Any]:
    """Call a model that takes only some batch sizes: cut what is too long, fill what is too short with a sample of it.

    Examples
    --------
    >>> sizes = []
    >>> def run(part):
    ...     sizes.append(len(part))
    ...     return 2 * part
    >>> in_batches(run, np.arange(5, dtype=np.float32)[:, None], 2, 2).ravel()
    array([0., 2., 4., 6., 8.], dtype=float32)
    >>> sizes
    [2, 2, 2]
    """
    rows = batch.shape[0]
    if least <= rows and (most is None or rows <= most):
        return run(batch)
    step = rows if most is None else min(rows, most)
    answers: list[NDArray[Any]] = []
    for start in range(0, rows, step):
        part = batch[start : start + step]
        missing = least - part.shape[0]
        if missing > 0:
            filled = np.concatenate([part, np.repeat(part[-1:], missing, axis=0)])
            answers.append(run(filled)[: part.shape[0]])
        else:
            answers.append(run(part))
    return answers[0] if len(answers) == 1 else np.concatenate(answers)


@contextmanager
def extra(name: str, packages: tuple[str, ...], purpose: str) -> Generator[None, None, None]:
    """Imports inside that fail because a package is missing say which extra brings it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in packages:
            raise
        raise InputError(f"{purpose} needs {error.name}; run: pip install 'certcal[{name}]'") from error
