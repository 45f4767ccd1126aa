"""The training loop. There is one; methods differ in the parts they bring (see ``_methods``)."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import nn

from certcal._checks import InputError
from certcal.attacks import Target
from certcal.data import Inputs
from certcal.models.protocol import Outputs
from certcal.models.torch_threads import torch_threads
from certcal.training._crew import Crew, crew_of
from certcal.training._evaluate import evaluate
from certcal.training._folder import Folder, opened
from certcal.training._interrupt import between_steps
from certcal.training._methods import parts_of
from certcal.training._prepare import Start, checked_workers, prepared
from certcal.training._randomness import batches_of, order_of
from certcal.training._recipe import Recipe
from certcal.training._schedules import Moment, moment
from certcal.training._selection import AllSamples, Look, SelectionWarning, lost_classes, selected
from certcal.training._state import State
from certcal.training._step import Workshop
from certcal.training._trained import Diverged, Progress, Trained

CHECKPOINT_SECONDS = 300.0


def train(
    network: nn.Module,
    inputs: Inputs,
    recipe: Recipe,
    *,
    out: str | os.PathLike[str] | None = None,
    test: Inputs | None = None,
    start: Start | None = None,
    outputs: Outputs | None = None,
    workers: int = 1,
    progress: Callable[[Progress], object] | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> Trained:
    """Train a copy of a network.

    The result depends on the arguments and the versions of the libraries alone: not on the number of workers, nor on
    how often training was interrupted. Arithmetic runs on one thread per process.

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
    outputs
        What the network returns, ``"logits"`` or ``"probabilities"``; needed unless it has an attribute ``outputs``.
    workers
        Processes, this one included, that share the pieces of a batch (``pieces`` in the recipe).
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
    >>> from certcal.training import recipe, train
    >>> data = Inputs.from_arrays([[0.0, 1.0], [1.0, 0.0]] * 8, [1, 0] * 8)
    >>> trained = train(MLP(2, (8,), classes=2), data, recipe("standard", epochs=20, batch=8))
    >>> trained.history[-1]["accuracy"]
    1.0
    """
    began = time.perf_counter()
    workshop = prepared(network, inputs, recipe, test, start, outputs)
    workers = checked_workers(workers, recipe)
    with torch_threads(), nullcontext() if out is None else opened(Path(out), workshop, inputs, test) as folder:
        state = State.begin(workshop)
        if folder is not None:
            folder.resume(state)
        resumed = state.step
        if state.epoch < recipe.epochs:
            with crew_of(workshop, workers) as crew, between_steps() as asked:
                run = Run(state, crew, test, folder, progress, checkpoint_seconds, began)
                while state.epoch < recipe.epochs:
                    run.epoch(lambda: asked.to_stop)
        file = None if folder is None else folder.finish(state)
    return Trained(
        workshop.network.eval(), recipe, state.history, None if folder is None else folder.path, file,
        time.perf_counter() - began, resumed,
    )  # fmt: skip


class Run:
    """Epochs of one call."""

    def __init__(
        self,
        state: State,
        crew: Crew,
        test: Inputs | None,
        folder: Folder | None,
        progress: Callable[[Progress], object] | None,
        checkpoint_seconds: float,
        began: float,
    ) -> None:
        self.state, self.crew, self.test, self.folder = state, crew, test, folder
        self.progress, self.checkpoint_seconds, self.began = progress, checkpoint_seconds, began
        self.saved = time.perf_counter()
        self.samples = 0

    @property
    def workshop(self) -> Workshop:
        """Network and data."""
        return self.state.workshop

    def epoch(self, stop: Callable[[], bool]) -> None:
        """What is left of the present epoch."""
        state, recipe = self.state, self.workshop.recipe
        now = moment(recipe, state.epoch)
        began = time.perf_counter()
        if state.batches == 0:
            self._select(now)
        batches = batches_of(order_of(state.selection, recipe.seed, state.epoch), recipe.batch)
        for batch in batches[state.batches :]:
            found = self.crew.step(state.epoch, state.step, batch)
            if not (math.isfinite(found.loss) and all(bool(torch.isfinite(each).all()) for each in found.gradients)):
                raise self._diverged(
                    f"the loss is {found.loss:g}" if not math.isfinite(found.loss) else "a gradient is not finite"
                )
            state.apply(found, now.learning_rate, batch.numel())
            self.samples += batch.numel()
            last = state.batches == len(batches)
            if not last:
                self._tell(now, len(batches))
                if stop() or time.perf_counter() - self.saved >= self.checkpoint_seconds:
                    self._save()
                if stop():
                    raise KeyboardInterrupt
        line = self._line(now, time.perf_counter() - began)
        told = self._progress(now, len(batches), line)
        state.end_epoch(line)
        self._save()
        if self.progress is not None:
            self.progress(told)
        if stop():
            raise KeyboardInterrupt

    def _select(self, now: Moment) -> None:
        """Weigh the samples for the epoch."""
        workshop = self.workshop
        look = Look(
            Target(workshop.network.eval(), workshop.outputs),
            workshop.inputs,
            workshop.labels,
            now,
            workshop.recipe.seed,
        )
        with torch.no_grad():
            weights = parts_of(workshop.recipe).selection(self.state.selection, look)
        if not bool((weights > 0).any()):
            raise InputError(f"no sample is left for epoch {now.epoch}; select less strictly")
        before, lost = (lost_classes(each, workshop.labels) for each in (self.state.selection, weights))
        self.state.selection = weights
        if new := [str(each) for each in lost if each not in before]:
            warnings.warn(
                f"class{'es' if len(new) > 1 else ''} {', '.join(new)} {'have' if len(new) > 1 else 'has'} no sample "
                f"left from epoch {now.epoch} on, and the network will forget {'them' if len(new) > 1 else 'it'}; "
                "select later or less strictly (begin and discard_below of acr)",
                SelectionWarning,
                stacklevel=4,
            )

    def _line(self, now: Moment, seconds: float) -> dict[str, Any]:
        state, recipe = self.state, self.workshop.recipe
        line: dict[str, Any] = {
            "epoch": now.epoch,
            "step": state.step,
            "loss": state.loss_sum / state.samples,
            "accuracy": state.correct / state.samples,
            "sigma": now.sigma,
            "epsilon": now.epsilon,
            "learning_rate": now.learning_rate,
            "samples": state.samples,
        }
        if not isinstance(parts_of(recipe).selection, AllSamples):
            line |= selected(state.selection, self.workshop.labels)
        if self.test is not None:
            network, outputs = self.workshop.network, self.workshop.outputs
            line |= evaluate(network, outputs, self.test, recipe.sigma, recipe.seed, now.epoch, recipe.bins)
        return {**line, "seconds": seconds}

    def _progress(self, now: Moment, batches: int, line: dict[str, Any] | None) -> Progress:
        state = self.state
        return Progress(
            epoch=now.epoch,
            epochs=self.workshop.recipe.epochs,
            batch=state.batches,
            batches=batches,
            loss=state.loss_sum / state.samples,
            accuracy=state.correct / state.samples,
            samples=self.samples,
            seconds=time.perf_counter() - self.began,
            sigma=now.sigma,
            epsilon=now.epsilon,
            learning_rate=now.learning_rate,
            line=line,
        )

    def _tell(self, now: Moment, batches: int) -> None:
        if self.progress is not None:
            self.progress(self._progress(now, batches, None))

    def _save(self) -> None:
        if not self.state.finite():
            raise self._diverged("a weight is not finite")
        if self.folder is not None:
            self.folder.save(self.state)
        self.saved = time.perf_counter()

    def _diverged(self, what: str) -> Diverged:
        state = self.state
        kept = "nothing was saved" if self.folder is None else self.folder.kept()
        where = ", in a new folder" if self.folder is not None and self.folder.has_checkpoint else ""
        return Diverged(
            f"training diverged at step {state.step} (epoch {state.epoch}): {what}; {kept}; try a lower learning rate, "
            f"longer warm-ups of sigma and epsilon, or precision float32{where}"
        )
