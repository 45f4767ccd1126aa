"""Adapters: checked batches in, checked matrices out, every failure one sentence; and those of Python objects."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError, to_numpy
from certcal._base.text import reason
from certcal.models.fingerprint import ObjectDigest
from certcal.models.protocol import Outputs, Source, declared_outputs

Batch = NDArray[np.float32]

_LEAST = 1e-30  # below this, probabilities are alike
_MOST_OPEN = 12  # answers at the edge of a rounding that are taken both ways


class Adapter(ABC):
    device = "cpu"  # where it computes

    def __init__(self, outputs: Outputs, description: str, source: Source | None = None) -> None:
        self.outputs: Outputs = outputs
        self.description = description
        self.source = source
        self.sample_shape: tuple[int, ...] | None = None  # where the model says it

    def __repr__(self) -> str:
        return f"<{self.description}: {self.outputs}>"

    def __call__(self, batch: Any) -> NDArray[Any]:
        """One row per sample and one column per class."""
        inputs = _float32_batch(batch)
        try:
            result = self._forward(inputs)
        except InputError:
            raise
        except Exception as error:
            shape, known = inputs.shape, self.sample_shape
            remedy = "it must accept float32 batches of that shape"
            if known is not None and known != shape[1:]:
                remedy = f"it is for samples of shape {known}: resize or reshape the inputs"
            if "argument #1 'indices'" in str(error):  # of torch's embeddings
                remedy = "token ids cannot be perturbed: pass embeddings, and the model from there on (inputs_embeds)"
            raise InputError(
                f"{self.description} failed on a batch of shape {shape}: {reason(error)}; {remedy}"
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

    def known_as(self, digits: str, probe: Any) -> bool:
        """Whether a fingerprint is of this model, also where another device has rounded its answers otherwise."""
        return digits in self._fingerprints(probe)

    def _fingerprints(self, probe: Any) -> Iterator[str]:
        """Every fingerprint that rounding might give; the first is its own."""
        yield self.fingerprint(probe)

    def _matrix(self, result: Any, given: tuple[int, ...]) -> NDArray[Any]:
        array = _output_array(result, f"the output of {self.description}")
        if array.ndim != 2 or array.shape[0] != given[0] or array.shape[1] < 2:
            remedy = "it must return one row per sample and one column per class (two for a binary model)"
            if array.shape in ((given[0],), (given[0], 1)):
                columns = "0 and z of a logit z" if self.outputs == "logits" else "1 - p and p of a probability p"
                remedy = f"return two columns, {columns}"
            raise InputError(f"{self.description} returns shape {array.shape} for a batch of shape {given}; {remedy}")
        if array.dtype == np.float32 or array.dtype == np.float64:
            return array
        if array.dtype.kind not in "biuf":
            raise InputError(f"{self.description} returns {array.dtype}; it must return numbers, as float32 or float64")
        return array.astype(np.float32 if array.dtype == np.float16 else np.float64)

    def _behaviour_digests(self, probe: Any, inside: str, *, complete: bool = False) -> Iterator[str]:
        """Digits of the model's name, what could be seen of its inside, and its answers on the scale of logits.

        Libraries and devices differ in the last bits of a float32, so the answers are rounded first: to three decimals,
        and to one where the inside was seen and only what it reads from elsewhere could change them. Those that a
        fiftieth of the last decimal would round the other way are then taken both ways, as long as they are few.
        """
        exact = self(probe).astype(np.float64)
        if self.outputs == "probabilities":
            exact = np.log(np.where(exact < _LEAST, _LEAST, exact))  # NaN stays
        decimals = 1 if complete else 3
        begun = hashlib.sha256(f"{self.description}\n{self.outputs}\n{inside}\n{exact.shape}\n".encode())
        doubt = 0.02 * 0.1**decimals
        low, high = (np.round(exact + change, decimals) + 0.0 for change in (-doubt, doubt))  # zero turns -0.0 into 0.0
        open_to_both = np.flatnonzero(low < high)  # NaN is not
        choices = [(), *product((False, True), repeat=open_to_both.size if open_to_both.size <= _MOST_OPEN else 0)]
        for rounded_up in choices:
            answers = np.round(exact, decimals) + 0.0
            if rounded_up:
                answers.flat[open_to_both] = np.where(rounded_up, high.flat[open_to_both], low.flat[open_to_both])
            digest = begun.copy()
            digest.update(np.where(np.isnan(answers), np.nan, answers).astype("<f8").tobytes())
            yield digest.hexdigest()


class _PythonModel(Adapter):
    """A Python object, known by what Python shows of its inside and by its answers."""

    def __init__(self, inner: Any, home: str, outputs: Outputs, description: str, source: Source | None) -> None:
        super().__init__(outputs, description, source)
        self._inner, self._home = inner, home

    def fingerprint(self, probe: Any) -> str:
        """Digits of the name, the code and the values it uses, and the answers to the probe."""
        return next(self._fingerprints(probe))

    def _fingerprints(self, probe: Any) -> Iterator[str]:
        self(probe)  # what is made at the first call is there from now on
        inside = self._object_digest(values=True)
        self(probe)
        if self._object_digest(values=True).digits == inside.digits:
            return self._behaviour_digests(probe, inside.digits, complete=inside.complete)
        return self._behaviour_digests(
            probe, self._object_digest(values=False).digits
        )  # without what calls change, such as a count

    def _object_digest(self, *, values: bool) -> ObjectDigest:
        inside = ObjectDigest(self._home, values)
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
        return matrix_in(self._inner(batch), self.outputs, self.description)


class EstimatorModel(_PythonModel):
    """The probabilities of ``predict_proba``. Inputs of more than two dimensions are flattened, one row per sample.

    Nothing here imports scikit-learn: any object with its conventions will do, XGBoost's and LightGBM's as well. What
    was fitted on a table with column names gets one with the same names, where pandas is installed.
    """

    def __init__(self, estimator: Any, outputs: str | None = None, name: str | None = None) -> None:
        kind = type(estimator).__name__
        returns = declared_outputs(outputs, "probabilities", f"predict_proba of {kind}")
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
        if values.dtype.kind not in "biuf" or not np.array_equal(values, np.arange(values.size)):
            shown = ", ".join(repr(value) for value in values[:5].tolist()) + (", …" if values.size > 5 else "")
            raise InputError(
                f"{kind} was fitted on the classes {shown}; fit it on whole numbers from 0 to {values.size - 1}, "
                "so that column k is class k"
            )
        features: Any = getattr(estimator, "n_features_in_", None)
        self._features = None if features is None else (int(features),)
        self._columns: Any = getattr(estimator, "feature_names_in_", None)

    def _forward(self, batch: Batch) -> Any:
        return self.predict_rows(batch.reshape(batch.shape[0], -1))

    def predict_rows(self, rows: NDArray[Any]) -> Any:
        """The probabilities of rows of features as they are, in double precision or with missing values as well."""
        check_shape(rows.shape[1:], self._features, self.description)
        return self.estimator.predict_proba(with_names(rows, self._columns))


class BoosterModel(_PythonModel):
    """The probabilities of a ``Booster`` of XGBoost or LightGBM, for an objective that gives them."""

    def __init__(self, booster: Any, outputs: str | None = None, name: str | None = None) -> None:
        library = type(booster).__module__.partition(".")[0]
        about = f"Booster ({library})"
        returns = declared_outputs(outputs, "probabilities", f"a {about}")
        super().__init__(booster, "", returns, about, None if name is None else Source(name, returns))
        self.booster = booster
        self._columns: Any = None
        if library == "xgboost":
            objective = json.loads(booster.save_config())["learner"]["objective"]["name"]
            good = ("binary:logistic", "multi:softprob")
            self._features, self._columns = (int(booster.num_features()),), booster.feature_names
        else:
            objective = str(booster.dump_model(num_iteration=1).get("objective", "")).partition(" ")[0]
            good = ("binary", "multiclass", "cross_entropy")
            self._features = (int(booster.num_feature()),)
        if objective not in good:
            raise InputError(f"the {about} has the objective {objective!r}; train it with {', '.join(good)}")

    def _forward(self, batch: Batch) -> Any:
        rows = batch.reshape(batch.shape[0], -1)
        check_shape(rows.shape[1:], self._features, self.description)
        predict = getattr(self._inner, "inplace_predict", self._inner.predict)
        right = np.asarray(predict(with_names(rows, self._columns)))
        return np.stack([1 - right, right], axis=1) if right.ndim == 1 else right

    def _object_digest(self, *, values: bool) -> ObjectDigest:
        inside = ObjectDigest(self._home, values)
        save = getattr(self._inner, "model_to_string", None)
        inside.add(save() if save else bytes(self._inner.save_raw("json")))
        return inside


def with_names(rows: NDArray[Any], columns: Any) -> Any:
    if columns is None or len(columns) != rows.shape[1]:
        return rows
    try:
        pandas: Any = import_module("pandas")
    except ModuleNotFoundError:
        return rows
    return pandas.DataFrame(rows, columns=list(columns))


def matrix_in(answer: Any, outputs: Outputs | None = None, description: str = "") -> Any:
    """The matrix in an answer of several parts: its ``logits``, as Hugging Face has it, or the first of several."""
    parts, mapping, several = answer, isinstance(answer, Mapping), isinstance(answer, tuple | list)
    logits = parts.get("logits") if mapping else getattr(parts, "logits", None)
    if logits is not None:
        if outputs == "probabilities":
            raise InputError(f"{description} returns what it calls logits", argument="outputs", remedy="give 'logits'")
        return logits
    return parts[0] if several and len(parts) and getattr(parts[0], "ndim", 0) == 2 else parts


def _float32_batch(batch: Any) -> Batch:
    """Inputs as a contiguous float32 array with the samples along its first axis; no copy where it is one already."""
    array = _output_array(batch, "batch")
    if array.ndim < 2 or array.shape[0] == 0:
        raise InputError(f"batch has shape {array.shape}; pass at least one sample, samples along the first axis")
    return np.ascontiguousarray(array, np.float32)


def _output_array(value: Any, name: str) -> NDArray[Any]:
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


@contextmanager
def extra(name: str, packages: tuple[str, ...], purpose: str) -> Generator[None, None, None]:
    """Imports inside that fail because a package is missing say which extra brings it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in packages:
            raise
        raise InputError(f"{purpose} needs {error.name}; run: pip install 'certcal[{name}]'") from error
