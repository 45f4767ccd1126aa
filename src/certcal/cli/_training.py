"""The work of ``certcal train``: data, network and recipe together, with progress."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from certcal._checks import InputError
from certcal._text import counted, printable
from certcal.cli._boundary import INTERRUPTED
from certcal.cli._progress import Waiting, tell
from certcal.cli._sources import existing_files, refuse_inside
from certcal.data import Inputs, read_split

if TYPE_CHECKING:
    from certcal.data import Parts
    from certcal.training import GradientNorms, Progress, Recipe, Trained

_BEGUN = "recipe.json"
_WEIGHTS = ("model.safetensors", "weights.safetensors")
# Options that say something about noise or adversaries which a method has none of.
_FOREIGN = {
    "standard": ("sigma", "epsilon", "norm", "draws", "attack_steps"),
    **dict.fromkeys(("gaussian", "macer", "consistency", "acr"), ("epsilon", "norm", "attack_steps")),
    "smoothmix": ("epsilon", "norm"),
}


@dataclass(frozen=True)
class Asked:
    """What was said on the command line; None where nothing was.

    Attributes
    ----------
    method, data, model, output, workers, start, limit, preset
        As the options.
    bias
        On how many samples gradients are compared; None for no comparison.
    others
        Further numbers of the recipe, by name.
    """

    method: str
    data: str
    model: str
    output: str
    workers: int
    start: str | None
    limit: int | None
    preset: str | None
    bias: int | None
    sigma: float | None
    epsilon: float | None
    norm: str | None
    box: Any
    draws: int | None
    attack_steps: int | None
    epochs: int | None
    batch: int | None
    pieces: int | None
    learning_rate: float | None
    precision: str | None
    seed: int
    others: Mapping[str, Any]

    def recipe(self, inputs: Inputs) -> Recipe:
        """The published recipe with what was said instead."""
        from certcal.training import recipe
        from certcal.training._bias import refuse_together

        self._check_method()
        names = ("sigma", "epsilon", "norm", "draws", "attack_steps", "epochs", "batch", "pieces", "learning_rate")
        said = {name: getattr(self, name) for name in (*names, "precision", "seed")}
        changes = {name: value for name, value in said.items() if value is not None}
        for name in self.others:
            if name in changes or name in ("box", "method", "preset"):
                raise InputError(f"--set {name}=… has an option of its own; give --{name.replace('_', '-')} once")
        box = inputs.box if self.box == "auto" else self.box
        tuning = self.start is not None
        made = recipe(self.method, fine_tune=tuning, preset=self.preset, box=box, **changes, **self._constants())
        self._check_sizes(made, len(inputs))
        if self.bias is not None:
            refuse_together(made.method)
        return made

    def _constants(self) -> dict[str, Any]:
        """What --set says, where true and false are no words for a method's own constants that are either."""
        from certcal.training import constants_of

        usual = constants_of(self.method)
        if "own" in self.others:
            its = f"such as {next(iter(usual))}=…" if usual else f"of which {self.method} has none"
            raise InputError(f"--set own=… is no number; give the method's own constants by their names, {its}")
        words = {"true": True, "false": False}
        return {
            name: words.get(str(value).lower(), value) if isinstance(usual.get(name), bool) else value
            for name, value in self.others.items()
        }

    def _check_method(self) -> None:
        for name in _FOREIGN.get(self.method, ()):
            if getattr(self, name) is not None:
                said = f"--{name.replace('_', '-')}"
                raise InputError(f"{said} is not for {self.method} training; leave it out, or take another --method")

    def _check_sizes(self, made: Recipe, samples: int) -> None:
        if made.batch > samples:
            whose = "" if self.batch else f", that of {made.method}"
            raise InputError(
                f"--batch is {made.batch}{whose}, but there are {samples} samples to train on; give a smaller --batch"
            )
        if self.workers > made.pieces:
            raise InputError(
                f"--workers is {self.workers}, but a batch is in {counted(made.pieces, 'piece')}; give "
                f"--pieces {self.workers} as well, which counts as another recipe, or fewer workers"
            )


def learn(asked: Asked, events: str | None) -> tuple[Trained, GradientNorms | None]:
    """Train, and compare gradients if asked to, with progress; an interrupt says how to go on.

    Parameters
    ----------
    asked
        What and how.
    events
        Where events for TensorBoard will go, which must be possible.
    """
    from certcal.models.networks import by_name
    from certcal.training import train

    if events is not None:
        _check_events(Path(events))
    with _told_afterwards(), Waiting(counted="images", wordy=True) as waiting:
        waiting.stage("reading")
        _check_start(asked.start)
        refuse_inside("-o", asked.output, existing_files(asked.data))
        parts = _data(asked)
        recipe = asked.recipe(parts.train)
        network = by_name(asked.model, parts.train.inputs.shape[1:], _classes(parts), seed=asked.seed)
        told = _Told(waiting, len(parts.train))
        try:
            trained = train(
                network,
                parts.train,
                recipe,
                out=asked.output,
                test=parts.test,
                start=asked.start,
                workers=asked.workers,
                progress=told,
            )
            return trained, _compared(trained, parts.train, asked, waiting)
        except KeyboardInterrupt:
            pass
    begun = (Path(asked.output) / _BEGUN).exists()
    kept = f"what was learnt is kept in {asked.output}, the same command resumes" if begun else "nothing was learnt"
    click.echo(f"certcal: interrupted; {printable(kept)}", err=True)
    raise click.exceptions.Exit(INTERRUPTED)


def _compared(trained: Trained, inputs: Inputs, asked: Asked, waiting: Waiting) -> GradientNorms | None:
    """Gradients of easy and hard training samples, if asked for."""
    from certcal.training import gradient_norms

    if asked.bias is None:
        return None
    waiting.stage("comparing gradients", min(asked.bias, len(inputs)))
    return gradient_norms(
        trained.network,
        inputs,
        trained.recipe,
        samples=asked.bias,
        seed=asked.seed,
        progress=lambda done, total: waiting.advance(1),
    )


@contextmanager
def _told_afterwards() -> Generator[None]:
    """Keep what training warns of while there is a bar, and say it as sentences when that is gone."""
    from certcal.training import SelectionWarning

    said: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("always", SelectionWarning)
        others = warnings.showwarning

        def keep(message: Warning | str, category: type[Warning], *rest: Any) -> None:
            if issubclass(category, SelectionWarning):
                said.append(str(message))
            else:
                others(message, category, *rest)

        warnings.showwarning = keep
        try:
            yield
        finally:
            for sentence in said:
                tell(f"certcal: {sentence}")


def _check_start(start: str | None) -> None:
    """Refuse what holds no weights, with the name of the file beside or in it that does."""
    if start is None:
        return
    path = Path(start)
    if not path.is_dir() and path.suffix != ".pt2":
        return
    what = "a folder" if path.is_dir() else "a .pt2 file, which is not loaded"
    there = [path / name if path.is_dir() else path.parent / name for name in _WEIGHTS]
    near = next((each for each in there if each.is_file()), None)
    raise InputError(f"--from {start}: this is {what}; give {near or 'a .safetensors file with the weights'}")


def _data(asked: Asked) -> Parts:
    from certcal.data import Parts

    parts = read_split(asked.data)
    limit = asked.limit
    if limit is None:
        return parts
    if limit > len(parts.train):
        raise InputError(
            f"--limit is {limit}, but {asked.data} holds {len(parts.train)} samples to train on; give at most that"
        )
    train = parts.train
    fewer = Inputs.from_arrays(train.inputs[:limit], train.labels[:limit], train.class_names)
    return Parts(parts.name, parts.title, fewer, parts.test)


def _classes(parts: Parts) -> int:
    """As many as there are names or labels."""
    labels = [int(part.labels.max()) + 1 for part in (parts.train, parts.test) if part is not None]
    return max(2, len(parts.train.class_names), *labels)


class _Told:
    """Progress of training, as the bar shows it."""

    def __init__(self, waiting: Waiting, images: int) -> None:
        self._waiting, self._images = waiting, images
        self._done: int | None = None

    def __call__(self, now: Progress) -> None:
        total = now.epochs * self._images
        done = round(now.share * total)
        if self._done is None:
            self._waiting.stage("training", total, done)
        else:
            self._waiting.advance(done - self._done)
        self._done = done
        self._waiting.say(f"epoch {now.epoch + 1}/{now.epochs}, loss {now.loss:.3f}, accuracy {now.accuracy:.0%}")


def _check_events(folder: Path) -> None:
    """Refuse what could not be written later, before anything is learnt."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"--events {folder}: this is not an empty folder; choose a new one")
    if find_spec("tensorboard") is None:
        raise InputError("--events needs tensorboard; run: pip install tensorboard")


def write_events(trained: Trained, folder: str) -> None:
    """Write the log for TensorBoard."""
    from certcal.training import export_events

    assert trained.folder is not None
    export_events(trained.folder, folder)
