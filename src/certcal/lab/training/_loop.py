"""The training loop. There is one; methods differ in the parts they bring (see ``parts``)."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from certcal._base.checks import InputError
from certcal._base.text import counted
from certcal._base.told import Told
from certcal.attacks import Target
from certcal.data import Inputs
from certcal.lab.training._checkpoints import RunFolder, TrainingState, open_run_folder, save_model
from certcal.lab.training._processes import ProcessCrew, join_processes
from certcal.lab.training._recipe import Recipe
from certcal.lab.training.parts import SelectionContext, SelectionWarning, lost_classes, parts_of, selection_record
from certcal.lab.training.prepare import Start, add_judge_and_soft_labels, check_trainable, prepare_worker
from certcal.lab.training.schedules import Moment, batches_of, draw_like, generator_of, moment, order_of
from certcal.lab.training.step import ReadInputs, StepResult, StepWorker
from certcal.metrics import ece
from certcal.models.devices import is_out_of_memory, resolve, torch_threads
from certcal.models.protocol import Outputs

CHECKPOINT_SECONDS = 300.0
_EVALUATED_AT_A_TIME = 1000


class Diverged(InputError):
    """Training whose loss or weights are no longer finite. The text says where, what is kept, and what to try."""


@dataclass(frozen=True)
class TrainingProgress:
    """Where training is, after a step."""

    epoch: int
    epochs: int
    """The epoch, from 0, out of how many."""
    batch: int
    batches: int
    """Steps done of this epoch, out of how many."""
    loss: float
    accuracy: float
    """Mean over this epoch so far, on the inputs as they were trained on: noisy and perturbed."""
    samples: int
    """Processed since this call of ``train`` began."""
    seconds: float
    """Since this call began."""
    sigma: float
    epsilon: float
    learning_rate: float
    """Of this epoch."""
    line: dict[str, Any] | None = None
    """What was written down about the epoch, after its last step; else None."""

    @property
    def share(self) -> float:
        """Share of the whole training that is done, from 0 to 1."""
        return (self.epoch + self.batch / self.batches) / self.epochs


@dataclass(frozen=True, eq=False)
class Trained(Told):
    """A trained network."""

    network: nn.Module
    """In evaluation mode."""
    recipe: Recipe
    """Method and hyperparameters."""
    history: list[dict[str, Any]]
    """One table per epoch: epoch, loss and accuracy on the inputs as trained on, sigma, epsilon, learning_rate,
    samples, seconds, and with test data test_accuracy, test_ece, test_noisy_accuracy, test_noisy_ece. For a method that
    selects samples also kept (the share that has a weight above 0), largest_weight, and lost_classes if all samples of
    some class were left out."""
    folder: Path | None
    """Where checkpoints are, or None."""
    file: Path | None
    """The model there that :func:`certcal.models.load` takes (of a network of your own, as ``weights`` with the
    network's name), or None."""
    seconds: float
    """Duration of this call."""
    resumed: int
    """The step at which this call went on, 0 if it began."""

    def __repr__(self) -> str:
        last = self.history[-1]
        return (
            f"Trained({self.recipe.method}, {type(self.network).__name__}, {len(self.history)} epochs, "
            f"loss {last['loss']:.3f}, accuracy {last['accuracy']:.3f})"
        )


def train(
    network: nn.Module,
    inputs: Inputs,
    recipe: Recipe,
    *,
    out: str | os.PathLike[str] | None = None,
    test: Inputs | None = None,
    start: Start | None = None,
    judge: Start | None = None,
    soft: Any = None,
    outputs: Outputs | None = None,
    device: str = "auto",
    progress: Callable[[TrainingProgress], object] | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> Trained:
    """Train a copy of a network.

    On the CPU the result depends on the arguments and the versions of the libraries alone, not on how often training
    was interrupted; arithmetic runs on one thread. Under ``torchrun`` the processes share the pieces of every batch
    (``pieces`` in the recipe), on the CPU as well, and the result is that of one process to rounding.

    Parameters
    ----------
    network
        The network with its first weights, its normalisation inside. It stays as it is.
    inputs
        Training data.
    recipe
        What to do; see :func:`recipe`.
    out
        A folder for checkpoints, the log and the trained model. The same call with the same folder goes on where it
        stopped; a folder that holds another training is refused.
    test
        Data to look at after every epoch.
    start
        Weights to begin with, for fine-tuning: a ``.safetensors`` file, or a network.
    judge
        As for :func:`certcal.train`.
    soft
        For ``cat-rs``: what each training sample should be predicted as, probabilities (n, classes). Default: what
        the network in training predicts on average.
    outputs, device
        As for :func:`certcal.train`.
    progress
        Called after every step.
    checkpoint_seconds
        A checkpoint is written at the end of every epoch, and when the last one is this old.

    Raises
    ------
    Diverged
        If the loss or the weights are no longer finite. The last checkpoint is kept.

    Warns
    -----
    SelectionWarning
        If a method that selects samples leaves none of a class; the log says so, too (``lost_classes``).

    Examples
    --------
    >>> from certcal.models.networks import MLP
    >>> from certcal.lab.training import recipe, train
    >>> data = Inputs.from_arrays([[0.0, 1.0], [1.0, 0.0]] * 8, [1, 0] * 8)
    >>> trained = train(MLP(2, (8,), classes=2), data, recipe("standard", epochs=20, batch=8))
    >>> trained.history[-1]["accuracy"]
    1.0
    """
    began = time.perf_counter()
    named = resolve(device)
    with torch_threads(), join_processes() as processes, contextlib.ExitStack() as open_things:
        if processes is not None:
            named = processes.device(named)
            processes.check(recipe)
        worker = prepare_worker(network, inputs, recipe, test=test, start=start, outputs=outputs, device=named)
        if isinstance(worker.inputs, ReadInputs):
            open_things.callback(worker.inputs.close)
        worker = add_judge_and_soft_labels(worker, network, judge, soft)
        check_trainable(worker, inputs, start is not None or judge is not None)
        folder = None
        if out is not None and (processes is None or processes.first):
            folder = open_things.enter_context(open_run_folder(Path(out), worker, inputs, test))
        state = TrainingState.begin(worker)
        if folder is not None:
            folder.resume(state)
        if processes is not None:
            processes.share(state)
        resumed = state.step
        if state.epoch < recipe.epochs:
            crew = worker if processes is None else ProcessCrew(worker, processes)
            with _interrupt_between_steps() as interrupted:
                loop = _Loop(state, crew, test, folder, progress, checkpoint_seconds, interrupted, began)
                while state.epoch < recipe.epochs:
                    loop.epoch()
        file = None if folder is None else save_model(folder.path, worker)
    path = None if folder is None else folder.path
    seconds = time.perf_counter() - began
    return Trained(worker.network.eval(), recipe, state.history, path, file, seconds, resumed)


@dataclass(eq=False)
class _Loop:
    state: TrainingState
    crew: StepWorker | ProcessCrew
    test: Inputs | None
    folder: RunFolder | None
    progress: Callable[[TrainingProgress], object] | None
    checkpoint_seconds: float
    interrupted: threading.Event
    began: float

    def __post_init__(self) -> None:
        self.worker, self.parts = self.state.worker, parts_of(self.state.worker.recipe)
        self.saved, self.samples = time.perf_counter(), 0

    def epoch(self) -> None:
        state, recipe = self.state, self.worker.recipe
        now = moment(recipe, state.epoch)
        began = time.perf_counter()
        if state.batches == 0 and self.parts.selection is not None:
            self._select(now)
        batches = batches_of(order_of(state.selection, recipe.seed, state.epoch), recipe.batch)
        left = batches[state.batches :]
        self._read_ahead(left[:1])
        for place, batch in enumerate(left, 1):
            self._read_ahead(left[place : place + 1])
            found = self._step(batch)
            if not math.isfinite(found.loss):
                raise self._divergence(f"the loss is {found.loss:g}")
            if not (found.finite or state.scaled):
                raise self._divergence("a gradient is not finite")
            state.apply(found, now.learning_rate, batch.numel())
            self.samples += batch.numel()
            if state.batches < len(batches):
                self._tell(self._progress(now, len(batches), None))
                if self.interrupted.is_set() or time.perf_counter() - self.saved >= self.checkpoint_seconds:
                    self._save()
                self._stop_if_interrupted()
        line = self._line(now, time.perf_counter() - began)
        told = self._progress(now, len(batches), line)
        state.end_epoch(line)
        self._save()
        self._tell(told)
        self._stop_if_interrupted()

    def _read_ahead(self, batches: Sequence[Tensor]) -> None:
        inputs = self.worker.inputs
        if isinstance(inputs, ReadInputs):
            inputs.read_ahead([index for batch in batches for index in self.crew.numbers_here(batch)])

    def _step(self, batch: Tensor) -> StepResult:
        try:
            return self.crew.step(self.state.place, batch)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            device, pieces = self.worker.device, self.worker.recipe.pieces
            why = f"a batch in {counted(pieces, 'piece')} does not fit into the memory of {device}"
            remedy = "give more pieces, which counts as another recipe, or a smaller batch"
            raise InputError(why, argument="pieces", remedy=remedy) from error

    def _select(self, now: Moment) -> None:
        worker, before = self.worker, self.state.selection
        target = Target(worker.network.eval(), worker.outputs)
        judge = None if worker.judge is None else Target(worker.judge, worker.outputs)
        context = SelectionContext(target, worker.inputs, worker.labels, now, worker.recipe.seed, worker.device, judge)
        assert self.parts.selection is not None
        with torch.no_grad():
            weights = self.parts.selection(before, context)
        if isinstance(self.crew, ProcessCrew):
            weights = self.crew.processes.agree(weights)
        if not bool((weights > 0).any()):
            raise InputError(f"no sample is left for epoch {now.epoch}; select less strictly")
        self.state.selection = weights
        known = lost_classes(before, worker.labels)
        if new := [str(each) for each in lost_classes(weights, worker.labels) if each not in known]:
            warnings.warn(
                f"class{'es' if len(new) > 1 else ''} {', '.join(new)} {'have' if len(new) > 1 else 'has'} no sample "
                f"left from epoch {now.epoch} on, and the network will forget {'them' if len(new) > 1 else 'it'}; "
                "select later or less strictly (begin and discard_below of acr)",
                SelectionWarning,
                stacklevel=4,
            )

    def _line(self, now: Moment, seconds: float) -> dict[str, Any]:
        state = self.state
        line: dict[str, Any] = {
            "epoch": now.epoch,
            "step": state.step,
            **self._epoch_means(now),
            "samples": state.samples,
        }
        if self.parts.selection is not None:
            line |= selection_record(state.selection, self.worker.labels)
        if self.test is not None:
            line |= _evaluate(self.worker, self.test, now.epoch)
        return {**line, "seconds": seconds}

    def _progress(self, now: Moment, batches: int, line: dict[str, Any] | None) -> TrainingProgress:
        return TrainingProgress(
            epoch=now.epoch,
            epochs=self.worker.recipe.epochs,
            batch=self.state.batches,
            batches=batches,
            samples=self.samples,
            seconds=time.perf_counter() - self.began,
            line=line,
            **self._epoch_means(now),
        )

    def _epoch_means(self, now: Moment) -> dict[str, float]:
        """Means over this epoch, and what is in force during it."""
        state = self.state
        means = {"loss": state.loss_sum / state.samples, "accuracy": state.correct / state.samples}
        return {**means, "sigma": now.sigma, "epsilon": now.epsilon, "learning_rate": now.learning_rate}

    def _tell(self, progress: TrainingProgress) -> None:
        if self.progress is not None:
            self.progress(progress)

    def _stop_if_interrupted(self) -> None:
        if self.interrupted.is_set():
            raise KeyboardInterrupt

    def _save(self) -> None:
        if not self.state.finite():
            raise self._divergence("a weight is not finite")
        if self.folder is not None:
            self.folder.save(self.state)
        self.saved = time.perf_counter()

    def _divergence(self, what: str) -> Diverged:
        state = self.state
        kept = "nothing was saved" if self.folder is None else self.folder.checkpoint_text()
        where = ", in a new folder" if self.folder is not None and self.folder.has_checkpoint else ""
        return Diverged(
            f"training diverged at step {state.step} (epoch {state.epoch}): {what}; {kept}; try a lower learning rate, "
            f"longer warm-ups of sigma and epsilon, or precision float32{where}"
        )


def _evaluate(worker: StepWorker, data: Inputs, epoch: int) -> dict[str, float]:
    """Accuracy and expected calibration error on clean inputs, and with one draw of noise per input if σ > 0."""
    recipe = worker.recipe
    generator = generator_of("test", recipe.seed, epoch, device=worker.device)
    numbers: dict[str, float] = {}
    for name, sigma in (("test", 0.0), ("test_noisy", recipe.sigma)):
        if name == "test" or sigma:
            confidence, correct = _test_scores(worker, data, sigma, generator)
            numbers |= {f"{name}_accuracy": float(correct.mean())}
            numbers |= {f"{name}_ece": ece(confidence, correct, bins=recipe.bins)}
    return numbers


def _test_scores(
    worker: StepWorker, data: Inputs, sigma: float, generator: torch.Generator
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Confidence of the predicted class, and whether it is the true one."""
    target = Target(worker.network.eval(), worker.outputs)
    rows: list[Tensor] = []
    with torch.no_grad():
        for first in range(0, len(data), _EVALUATED_AT_A_TIME):
            batch = torch.tensor(data.inputs[first : first + _EVALUATED_AT_A_TIME]).to(worker.device)
            if sigma:
                batch += sigma * draw_like(torch.randn, batch.shape, generator, batch)
            rows.append(target.log_probabilities(batch))
    best, predicted = torch.cat(rows).cpu().max(1)
    return best.exp().clamp(0.0, 1.0).numpy(), predicted.numpy() == data.labels


@contextlib.contextmanager
def _interrupt_between_steps() -> Generator[threading.Event, None, None]:
    """Note the first Ctrl-C, so that a step is finished and saved; a second one interrupts at once.

    Only where an interrupt would otherwise be raised: in the main thread, with Python's own handler.
    """
    noted = threading.Event()
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield noted
        return

    def note(number: int, frame: FrameType | None) -> None:
        noted.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    signal.signal(signal.SIGINT, note)
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
