"""What a model is to the rest of certcal, and what another process needs to load it again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError
from certcal._base.files import read_bytes
from certcal.models.fingerprint import is_instance

Outputs = Literal["probabilities", "logits"]
OUTPUTS: tuple[Outputs, ...] = ("probabilities", "logits")
# The name under which a file says what its model returns.
DECLARATION = "certcal.outputs"
LARGEST_FILE = 2**40
# Inputs that show what a model returns.
_TRIED = 32
# Endings of the files that are models by themselves.
_FILES = (".onnx", ".safetensors", ".json", ".ubj", ".txt")


@dataclass(frozen=True)
class Source:
    """What another process needs to load a model again.

    Examples
    --------
    >>> Source("statistics:mean", "logits").load().description
    'statistics:mean (Python callable)'
    """

    name: str  # the absolute path of a file, or "package.module:name"
    outputs: Outputs  # as declared
    weights: str | None = None  # absolute path of the weights of a network by name
    device: str = "auto"  # as it was asked for: a process elsewhere finds out what "auto" is there

    def load(self) -> Model:
        """The model, read again."""
        from certcal.models._load import load

        return load(self.name, self.outputs, weights=self.weights, device=self.device)

    def packed(self) -> Source | PackedSource:
        """What a process on another machine needs: the same, and the bytes of the files if there are any."""
        path = Path(self.weights or self.name)
        if self.weights is None and path.suffix.lower() not in _FILES:
            return self
        data = read_bytes(path, LARGEST_FILE, "a model")
        files = {path.name: np.frombuffer(data, np.uint8)}
        if self.weights is None and path.suffix.lower() == ".onnx":
            from certcal.models._onnx import external_files, parse

            for file in external_files(parse(data, path), path):
                files[str(file.relative_to(path.parent))] = np.fromfile(file, np.uint8)
        return PackedSource(self.name, self.outputs, files, named=self.weights is not None, device=self.device)


@dataclass(frozen=True, eq=False)
class PackedSource:
    """What a machine without the files of a model needs to load it."""

    name: str
    outputs: Outputs
    files: dict[str, NDArray[np.uint8]]
    named: bool = False
    device: str = "auto"

    def load(self) -> Model:
        """The model, from a folder that is removed as soon as it is read."""
        from certcal.models._load import load

        with TemporaryDirectory(prefix="certcal-") as folder:
            for name, data in self.files.items():
                path = Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                data.tofile(path)
            first = Path(folder) / next(iter(self.files))
            if self.named:
                return load(self.name, self.outputs, weights=first, device=self.device)
            return load(first, self.outputs, device=self.device)


@runtime_checkable
class Model(Protocol):
    """A classifier. Normalisation of inputs happens inside, so that noise is added to what the user calls an input.

    :func:`certcal.models.wrap` and :func:`certcal.models.load` make one; any object with these members is one.

    Examples
    --------
    >>> from certcal.models import wrap
    >>> model = wrap(lambda batch: batch, outputs="logits")
    >>> isinstance(model, Model), model.outputs, model.source
    (True, 'logits', None)
    """

    @property
    def outputs(self) -> Outputs:
        """``"probabilities"`` or ``"logits"``: what a call returns."""
        ...

    @property
    def description(self) -> str:
        """A few words for people."""
        ...

    @property
    def source(self) -> Source | None:
        """How to load it again elsewhere; None for an object that lives in this process only."""
        ...

    def __call__(self, batch: NDArray[np.float32]) -> NDArray[Any]:
        """One row per sample and one column per class, float32 or float64; may hold NaN if the model says so."""
        ...

    def fingerprint(self, probe: NDArray[np.float32]) -> str:
        """64 hexadecimal digits that change with the model; ``probe`` is a batch of inputs to try it on."""
        ...


def declared_outputs(outputs: Any, known: Any, what: str) -> Outputs:
    """What the model returns: as the caller says, or as the model itself does; the two must agree."""
    if outputs is not None and outputs not in OUTPUTS:
        raise InputError(f"{outputs!r} is not one of 'probabilities', 'logits'", argument="outputs")
    if known is not None and known not in OUTPUTS:
        raise InputError(f"{what} declares its outputs as {known!r}; it must say 'probabilities' or 'logits'")
    result: Outputs | None = known if outputs is None else outputs
    if result is None:
        reason = f"it is needed for {what}, and never guessed"
        raise InputError(reason, argument="outputs", remedy="give 'probabilities' or 'logits'")
    if outputs is not None and known is not None and outputs != known:
        reason = f"it is {outputs!r}, but {what} declares that it returns {known}"
        raise InputError(reason, argument="outputs", remedy="leave it out")
    return result


def undeclared(make: Callable[[Outputs | None], Model], outputs: Outputs | None, inputs: Any) -> Model:
    """A model that need not say what it returns if it is of torch: logits, where its answers are no probabilities."""
    try:
        return make(outputs)
    except InputError as error:
        found = make("logits") if error.argument == "outputs" and outputs is None else None
        if found is None or not is_instance(found, "certcal.models._torch", "TorchModel"):
            raise
    answers = found(inputs[:_TRIED])
    if not (answers.min() >= 0 and answers.max() <= 1):  # what is undefined is refused where it counts
        return found
    reason = "what the model returns lies between 0 and 1, as probabilities do"
    raise InputError(reason, argument="outputs", remedy="give 'probabilities' if they are, or 'logits'")
