"""What a training run continues from, and its folder: what the run is, the last checkpoint, the log, and the model."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import platform
import re
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, cast

import msgspec
import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load as read_tensors
from safetensors.torch import save as write_tensors
from torch import Tensor

from certcal._base.checks import InputError
from certcal._base.durable import LOCK, is_leftover, make_folder, only_writer, remove_leftovers, write_durably
from certcal._base.files import read_bytes
from certcal._base.text import reason
from certcal.data import Inputs
from certcal.lab.training._log import LOG, append, rewrite
from certcal.lab.training._recipe import Recipe
from certcal.lab.training.step import Optimiser, Place, StepResult, StepWorker, all_finite, restore
from certcal.models.devices import device_name
from certcal.models.fingerprint import weights_digest
from certcal.models.networks import Network, save_weights
from certcal.models.networks.named import made_with

RECIPE, STATE = "recipe.json", "state.json"
MODEL, WEIGHTS = "model.safetensors", "weights.safetensors"
FORMAT = 1
COUNTERS = ("step", "epoch", "batches", "loss_sum", "correct", "samples", "scale", "steady")
_CHECKPOINT = re.compile(r"checkpoint-\d{6,}\.safetensors")  # other names are the user's
_MOST_JSON = 2**28
_MOST_TENSORS = 2**40
# What the loss is multiplied by in float16, so that small gradients do not vanish, as in torch's GradScaler: halved
# when gradients overflow, doubled after many steps in which they do not.
FIRST_SCALE, LARGEST_SCALE, SMALLEST_SCALE, STEADY = 2.0**16, 2.0**24, 2.0**-14, 2000

Count = Annotated[int, msgspec.Meta(ge=0)]


class CheckpointRecord(msgspec.Struct, frozen=True):
    """``state.json``: how far a run is, and which checkpoint belongs to that."""

    step: Count
    epoch: Count
    batches: Count
    loss_sum: float
    correct: Count
    samples: Count
    history: list[dict[str, Any]]
    file: Annotated[str, msgspec.Meta(pattern=r"\Acheckpoint-\d{6,}\.safetensors\Z")]
    sha256: str
    scale: Annotated[float, msgspec.Meta(gt=0, le=LARGEST_SCALE)] = FIRST_SCALE
    steady: Count = 0


@dataclass(eq=False)
class TrainingState:
    """A run at the end of a step.

    The random state is not here: everything random comes from the recipe's seed and these counters.
    """

    worker: StepWorker
    optimiser: Optimiser
    selection: Tensor  # weights of the samples, (n,)
    step: int = 0  # since the beginning
    epoch: int = 0
    batches: int = 0  # steps done of this epoch
    loss_sum: float = 0.0  # over the samples of this epoch so far
    correct: int = 0
    samples: int = 0
    scale: float = FIRST_SCALE  # of the loss, in float16
    steady: int = 0  # steps since it changed
    history: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @classmethod
    def begin(cls, worker: StepWorker) -> TrainingState:
        """Before the first step."""
        optimiser = Optimiser(worker.recipe, worker.trained)
        return cls(worker, optimiser, torch.ones(worker.labels.numel(), dtype=torch.float64))

    @property
    def scaled(self) -> bool:
        """Whether the loss is scaled, so that gradients may overflow now and then."""
        return self.worker.recipe.precision == "float16" and self.scale > SMALLEST_SCALE

    @property
    def place(self) -> Place:
        """Where training is."""
        return Place(self.epoch, self.step, self.scale if self.worker.recipe.precision == "float16" else 1.0)

    def apply(self, step: StepResult, learning_rate: float, samples: int) -> None:
        """Move the weights, unless gradients overflowed, and count."""
        if step.finite:
            self.optimiser.step(step.gradients, learning_rate)
            restore(self.worker.buffers, step.buffers)
        if self.scaled:
            self.steady += 1
            if not step.finite:
                self.scale, self.steady = self.scale / 2, 0
            elif self.steady == STEADY:
                self.scale, self.steady = min(2 * self.scale, LARGEST_SCALE), 0
        self.step += 1
        self.batches += 1
        self.loss_sum += step.loss * samples
        self.correct += step.correct
        self.samples += samples

    def end_epoch(self, line: dict[str, Any]) -> None:
        """Start the sums of the next epoch."""
        self.history.append(line)
        self.epoch += 1
        self.batches, self.loss_sum, self.correct, self.samples = 0, 0.0, 0, 0

    def finite(self) -> bool:
        """Whether all weights and buffers are finite."""
        return bool(all_finite([*self.worker.network.parameters(), *self.worker.buffers]))

    def counters(self) -> dict[str, Any]:
        """Numbers of the state that are not tensors."""
        return {name: getattr(self, name) for name in COUNTERS} | {
            "history": self.history,
            "random": {"seed": self.worker.recipe.seed, "step": self.step},
        }

    def tensors(self) -> dict[str, Tensor]:
        """Tensors of the state by name; views of what is trained."""
        network = self.worker.network
        named = {f"weight/{name}": tensor.detach() for name, tensor in network.named_parameters()}
        named |= {f"buffer/{name}": tensor.detach() for name, tensor in network.named_buffers()}
        named |= {f"optimiser/{name}": tensor for name, tensor in self.optimiser.tensors().items()}
        return named | {"selection": self.selection}

    def load(self, counters: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        """Go on from what :meth:`counters` and :meth:`tensors` gave; they are known to fit."""
        for name in (*COUNTERS, "history"):
            setattr(self, name, counters[name])
        network = self.worker.network
        with torch.no_grad():
            for kind, several in (("weight", network.named_parameters()), ("buffer", network.named_buffers())):
                for name, tensor in several:
                    tensor.copy_(tensors[f"{kind}/{name}"])
        mine = {name: tensor for name, tensor in tensors.items() if name.startswith("optimiser/")}
        self.optimiser.load({name.removeprefix("optimiser/"): tensor for name, tensor in mine.items()})
        self.selection = tensors["selection"].clone()


class RunFolder:
    """A run's folder, under its lock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: str | None = None
        self._logged = 0

    def resume(self, state: TrainingState) -> None:
        """Bring a state to where the last checkpoint was, if there is one, and cut the log back to it."""
        if (self.path / STATE).exists():
            record, tensors = _read_checkpoint(self.path, state)
            state.load(msgspec.structs.asdict(record), tensors)
            self._file = record.file
        rewrite(self.path, state.history)
        self._logged = len(state.history)
        self._remove_others()

    def save(self, state: TrainingState) -> None:
        """Write a checkpoint; the one before it is there until this one is whole."""
        for line in state.history[self._logged :]:
            append(self.path, line)
        self._logged = len(state.history)
        content = write_tensors({name: _contiguous(tensor) for name, tensor in state.tensors().items()})
        name = f"checkpoint-{state.step:06d}.safetensors"
        write_durably(self.path / name, content)
        record = {"format": FORMAT, **state.counters(), "file": name, "sha256": hashlib.sha256(content).hexdigest()}
        write_durably(self.path / STATE, _record_bytes(record))
        self._file = name
        self._remove_others()

    @property
    def has_checkpoint(self) -> bool:
        """Whether something would be lost if another run took the folder."""
        return self._file is not None

    def checkpoint_text(self) -> str:
        return (
            "no checkpoint had been written"
            if self._file is None
            else f"the checkpoint {self.path / self._file} is kept"
        )

    def _remove_others(self) -> None:
        for other in self.path.glob("checkpoint-*.safetensors"):
            if other.name != self._file and _CHECKPOINT.fullmatch(other.name):
                with contextlib.suppress(OSError):  # the next checkpoint tries again
                    other.unlink()


@contextlib.contextmanager
def open_run_folder(
    path: Path, worker: StepWorker, inputs: Inputs, test: Inputs | None
) -> Generator[RunFolder, None, None]:
    """Lock a new folder, or that of the same run; another run's is refused."""
    what = _run_description(worker, inputs, test)
    _check_free(path)
    make_folder(path)
    with only_writer(path, "training in this folder"):
        remove_leftovers(path)
        before = _read_json(path / RECIPE) if (path / RECIPE).exists() else None
        other = "nothing yet" if before is None else _changed_setting(before, what)
        if before is None:
            _check_free(path)
        elif other is not None and not _has_no_progress(path):
            raise InputError(f"{path}: holds a training run with {other}; choose another folder, or pass what it had")
        if other is not None:
            versions = {"certcal": version("certcal"), "torch": str(torch.__version__), "numpy": np.__version__}
            versions |= {"python": platform.python_version(), "device": device_name(str(worker.device))}
            write_durably(path / RECIPE, _record_bytes({**what, "versions": versions}))
        yield RunFolder(path)


def _has_no_progress(path: Path) -> bool:
    """Whether a run that was begun ended before its first checkpoint, so that there is nothing to lose."""
    log = path / LOG
    return {entry.name for entry in path.iterdir()} <= {RECIPE, LOCK, LOG} and not (log.exists() and log.stat().st_size)


def _run_description(worker: StepWorker, inputs: Inputs, test: Inputs | None) -> dict[str, Any]:
    network = worker.network.eval()
    return {
        "format": FORMAT,
        "recipe": worker.recipe.to_dict(),
        "data": {"samples": len(inputs), "sha256": inputs.fingerprint},
        "test": None if test is None else {"samples": len(test), "sha256": test.fingerprint},
        "network": {
            "class": type(network).__name__,
            "settings": json.loads(json.dumps(getattr(network, "settings", None), default=str)),
            "outputs": worker.outputs,
            "first_weights": weights_digest(network),
        },
        "judge": None if worker.judge is None else weights_digest(worker.judge),
        "soft": None if worker.soft is None else hashlib.sha256(worker.soft.numpy().tobytes()).hexdigest(),
    }


def _check_free(path: Path) -> None:
    """Raise if a folder holds something that is no training run."""
    try:
        if path.exists() and not path.is_dir():
            raise InputError(f"{path}: this is a file; choose a folder")
        if not path.is_dir() or (path / RECIPE).exists():
            return
        others = sorted(entry.name for entry in path.iterdir() if entry.name != LOCK and not is_leftover(entry.name))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}); check its permissions") from error
    if others:
        raise InputError(f"{path}: holds other files ({others[0]}) and no {RECIPE}; choose an empty or new folder")


_WORDS = {
    "data": "other training data",
    "test": "other test data",
    "network": "another network, or one with other first weights",
    "format": "files of another version",
    "judge": "another judge",
    "soft": "other soft labels",
}


def _changed_setting(before: Mapping[str, Any], what: Mapping[str, Any]) -> str | None:
    """In what a run differs from the one before, in words; None where it is the same."""
    for key, value in what.items():
        found = before.get(key) if key != "recipe" else _with_defaults(before.get(key))
        if found == value:
            continue
        return _WORDS[key] if key != "recipe" else f"another recipe ({_recipe_change(found, value)})"
    return None


def _with_defaults(recipe: Any) -> Any:
    """A recipe that an older version wrote, with the defaults of what there was not yet."""
    if not isinstance(recipe, dict):
        return recipe
    known = cast("dict[str, Any]", recipe)
    if "augment" not in known and known.get("precision", "float32") != "float32":
        return {**known, "precision": f"{known['precision']} for the weights only"}
    try:
        return Recipe.from_dict(known).to_dict()
    except (InputError, TypeError):  # then it is another one, whatever it is
        return known


def _recipe_change(found: Any, value: dict[str, Any]) -> str:
    """The first value of a recipe that was another one, in words."""
    old = cast("dict[str, Any]", found if isinstance(found, dict) else {})
    name = next((name for name in value if old.get(name) != value[name]), "method")
    if isinstance(old.get(name), dict) and isinstance(value[name], dict):
        return _recipe_change(old[name], value[name])
    return f"{name} was {old.get(name)!r} and is now {value[name]!r}"


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found: Any = json.loads(read_bytes(path, _MOST_JSON, "such a file"))
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise _damage_error(path, reason(error)) from error
    if not isinstance(found, dict):
        raise _damage_error(path, "no table in it")
    return cast("dict[str, Any]", found)


def _damage_error(path: Path, why: str) -> InputError:
    return InputError(f"{path}: is damaged ({why}); train in a new folder")


def _read_checkpoint(path: Path, state: TrainingState) -> tuple[CheckpointRecord, dict[str, Tensor]]:
    """The last checkpoint of a run, if it is whole and fits the network that it is for."""
    try:
        record = msgspec.json.decode(read_bytes(path / STATE, _MOST_JSON, "such a file"), type=CheckpointRecord)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise _damage_error(path / STATE, reason(error)) from error
    if not len(record.history) == record.epoch <= state.worker.recipe.epochs:
        raise _damage_error(path / STATE, "its counters make no sense")
    file = path / record.file
    data = read_bytes(file, _MOST_TENSORS, "a checkpoint")
    if hashlib.sha256(data).hexdigest() != record.sha256:
        raise _damage_error(file, f"its digest is not the one in {STATE}")
    try:
        tensors = read_tensors(data)
    except (SafetensorError, ValueError, KeyError, RecursionError) as error:
        raise _damage_error(file, reason(error)) from error
    wanted = {name: tuple(tensor.shape) for name, tensor in state.tensors().items()}
    for name, shape in wanted.items():
        if name not in tensors or tuple(tensors[name].shape) != shape or not bool(torch.isfinite(tensors[name]).all()):
            raise InputError(f"{file}: its tensor {name!r} does not fit; train in a new folder")
    count = len(state.worker.trained)
    for name in tensors.keys() - wanted.keys():
        parts = name.split("/", 2)
        if parts[0] != "optimiser" or len(parts) != 3 or not parts[1].isdigit() or int(parts[1]) >= count:
            raise InputError(f"{file}: its tensor {name!r} is unknown; train in a new folder")
    return record, tensors


def _contiguous(tensor: Tensor) -> Tensor:
    """A copy in the usual memory order: safetensors keeps no other, and no shared memory."""
    return tensor.detach().cpu().clone(memory_format=torch.contiguous_format)


def _record_bytes(record: Mapping[str, Any]) -> bytes:
    return (json.dumps(record, indent=1) + "\n").encode()


def save_model(folder: Path, worker: StepWorker) -> Path:
    """Write the network, unless it is there, and say which file it is.

    A reference network becomes ``model.safetensors``. Of another module the weights are written, with what its maker
    was given, as ``weights.safetensors``.
    """
    network = copy.deepcopy(worker.network).eval().cpu()
    for weight in network.parameters():
        weight.data = _contiguous(weight.data)
    if isinstance(network, Network):
        with contextlib.suppress(InputError):  # a derived class, whose file would not say how to build it
            if not (folder / MODEL).exists():
                save_weights(network, folder / MODEL)
            return folder / MODEL
    path = folder / WEIGHTS
    if not path.exists():
        tensors = {name: tensor.clone() for name, tensor in network.state_dict().items()}
        with torch.no_grad():
            classes = int(network(worker.inputs[:1]).shape[1])
        marks = made_with(worker.inputs.shape[1:], classes, worker.recipe.seed, worker.outputs)
        write_durably(path, write_tensors(tensors, marks))
    return path
