"""Adapters: checked batches in, checked matrices out, every failure one sentence; and those of Python objects."""

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
from certcal.models.fingerprint import Inside
from certcal.models.protocol import Outputs, Source, declared

Batch = NDArray[np.float32]

_LEAST = 1e-30  # below this, probabilities are alike


class Adapter(ABC):
    """A model of some library as a :class:`certcal.models.Model`."""

    device = "cpu"  # where it computes

    def __init__(self, outputs: Outputs, description: str, source: Source | None = None) -> None:
        self.outputs: Outputs = outputs
        self.description = description
        self.source = source

    def __repr__(self) -> str:
        return f"<{self.description}: {self.outputs}>"

    def __call__(self, batch: Any) -> NDArray[Any]:
        """One row per sample and one column per class."""
        inputs = _as_batch(batch)
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
    def fingerprint(self, probe: Any) -> str:
        """64 hexadecimal digits that change with the model; ``probe`` is a batch to try it on.

        They do not depend on the machine, the number of threads or the last bits of an answer.
        """

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

    def _behaviour(self, probe: Any, inside: str, *, complete: bool = False) -> str:
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


class _PythonModel(Adapter):
    """A Python object, known by what Python shows of its inside and by its answers."""

    def __init__(self, inner: Any, home: str, outputs: Outputs, description: str, source: Source | None) -> None:
        super().__init__(outputs, description, source)
        self._inner, self._home = inner, home

    def fingerprint(self, probe: Any) -> str:
        """Digits of the name, the code and the values it uses, and the answers to the probe."""
        self(probe)  # what is made at the first call is there from now on
        inside = self._look(values=True)
        self(probe)
        if self._look(values=True).digits == inside.digits:
            return self._behaviour(probe, inside.digits, complete=inside.complete)
        return self._behaviour(probe, self._look(values=False).digits)  # without what calls change, such as a count

    def _look(self, *, values: bool) -> Inside:
        inside = Inside(self._home, values)
        inside.add(self._inner)
        return inside


class CallableModel(_PythonModel):
    """A function of a float32 batch. It must not keep the batch, whose memory is used again."""

    def __init__(self, function: Any, outputs: Outputs, name: str | None = None, source: Source | None = None) -> None:
        own = getattr(function, "__module__", None)
        called = getattr(function, "__qualname__", type(function).__qualname__)
        name = name or f"{getattr(function, '__module__', '?')}:{called}"
        home = own if isinstance(own, str) else type(function).__module__
        super().__init__(function, home, outputs, f"{name} (Python callable)", source)

    def _forward(self, batch: Batch) -> Any:
        return self._inner(batch)


class EstimatorModel(_PythonModel):
    """The probabilities of ``predict_proba``. Inputs of more than two dimensions are flattened, one row per sample.

    Nothing here imports scikit-learn: any object with its conventions will do.
    """

    def __init__(self, estimator: Any, outputs: str | None = None, name: str | None = None) -> None:
        kind = type(estimator).__name__
        returns = declared(outputs, "probabilities", f"predict_proba of {kind}")
        source = None if name is None else Source(name, returns)
        super().__init__(estimator, "", returns, f"{kind} (scikit-learn)", source)
        self.estimator = estimator
        try:
            classes: Any = estimator.classes_
        except AttributeError:
            raise InputError(f"{kind} has no classes_; fit it first") from None
        if isinstance(classes, list):
            raise InputError(f"{kind} predicts several outputs at once; wrap one classifier for each")
        values = np.asarray(classes)
        if values.dtype.kind not in "iu" or not np.array_equal(values, np.arange(values.size)):
            shown = ", ".join(repr(value) for value in values[:5].tolist()) + (", …" if values.size > 5 else "")
            raise InputError(
                f"{kind} was fitted on the classes {shown}; fit it on whole numbers from 0 to {values.size - 1}, "
                "so that column k is class k"
            )
        features: Any = getattr(estimator, "n_features_in_", None)
        self._features = None if features is None else (int(features),)

    def _forward(self, batch: Batch) -> Any:
        rows = batch.reshape(batch.shape[0], -1)
        check_shape(rows.shape[1:], self._features, self.description)
        return self.estimator.predict_proba(rows)


def _as_batch(batch: Any) -> Batch:
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
