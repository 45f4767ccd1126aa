"""The work of ``certcal train``: data, network and recipe together, progress, and what to do next."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table
from rich.text import Text

from certcal import __version__
from certcal._checks import InputError
from certcal.cli._boundary import INTERRUPTED
from certcal.cli._progress import Waiting, duration
from certcal.cli._show import Output
from certcal.cli._sources import existing_files, refuse_inside
from certcal.data import Inputs, read_split
from certcal.report._text import counted, printable
from certcal.report.results import as_text, for_json

if TYPE_CHECKING:
    from certcal.data import Parts
    from certcal.training import Progress, Recipe, Trained

_BEGUN = "recipe.json"
_WEIGHTS = ("model.safetensors", "weights.safetensors")
# Options that say something about noise or adversaries which a method has none of.
_FOREIGN = {
    "standard": ("sigma", "epsilon", "norm", "draws", "attack_steps"),
    "gaussian": ("epsilon", "norm", "attack_steps"),
}


@dataclass(frozen=True)
class Asked:
    """What was said on the command line; None where nothing was.

    Attributes
    ----------
    method, data, model, output, workers, start, limit
        As the options.
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

        self._check_method()
        names = ("sigma", "epsilon", "norm", "draws", "attack_steps", "epochs", "batch", "pieces", "learning_rate")
        said = {name: getattr(self, name) for name in (*names, "precision", "seed")}
        changes = {name: value for name, value in said.items() if value is not None}
        for name in self.others:
            if name in changes or name in ("box", "method"):
                raise InputError(f"--set {name}=… has an option of its own; give --{name.replace('_', '-')} once")
        box = inputs.box if self.box == "auto" else self.box
        made = recipe(self.method, fine_tune=self.start is not None, box=box, **changes, **self.others)
        self._check_sizes(made, len(inputs))
        return made

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


def learn(asked: Asked, events: str | None) -> Trained:
    """Train, with progress; an interrupt says how to go on.

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
    with Waiting(counted="images", wordy=True) as waiting:
        waiting.stage("reading")
        _check_start(asked.start)
        refuse_inside("-o", asked.output, existing_files(asked.data))
        parts = _data(asked)
        recipe = asked.recipe(parts.train)
        network = by_name(asked.model, parts.train.inputs.shape[1:], _classes(parts), seed=asked.seed)
        told = _Told(waiting, len(parts.train))
        try:
            return train(
                network,
                parts.train,
                recipe,
                out=asked.output,
                test=parts.test,
                start=asked.start,
                workers=asked.workers,
                progress=told,
            )
        except KeyboardInterrupt:
            pass
    begun = (Path(asked.output) / _BEGUN).exists()
    kept = f"what was learnt is kept in {asked.output}, the same command resumes" if begun else "nothing was learnt"
    click.echo(f"certcal: interrupted; {printable(kept)}", err=True)
    raise click.exceptions.Exit(INTERRUPTED)


def _check_start(start: str | None) -> None:
    """Refuse what holds no weights, with the name of the file beside or in it that does."""
    if start is None:
        return
    path = Path(start)
    if not path.is_dir() and path.suffix != ".pt2":
        return
    what = "a folder" if path.is_dir() else "a program, which cannot be trained further"
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


def to_json(trained: Trained) -> str:
    """Everything about a training, as JSON."""
    return as_text(
        for_json(
            {
                "certcal": __version__,
                "folder": str(trained.folder),
                "model": str(trained.file),
                "recipe": trained.recipe.to_dict(),
                "resumed_at_step": trained.resumed,
                "seconds": trained.seconds,
                "history": trained.history,
            }
        )
    )


def show_trained(trained: Trained, asked: Asked) -> None:
    """Print what was learnt, where it is, and which commands come next."""
    console = Output(file=sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=False)
    console.print(Text(printable(str(trained.folder)), style="bold"))
    console.print(Text(printable(f"{asked.model} trained on {asked.data} by {trained.recipe.method}"), style="dim"))
    console.print()
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in _lines(trained):
        table.add_row(name, Text(printable(text)))
    console.print(table)
    console.print()
    console.print(Text("What to try next", style="bold"))
    for command in next_commands(trained, asked):
        console.print(Text(printable(command)), soft_wrap=True)


def _lines(trained: Trained) -> list[tuple[str, str]]:
    recipe, last = trained.recipe, trained.history[-1]
    against = [f"sigma {recipe.sigma:g}"] if recipe.sigma else []
    against += [f"epsilon {distance_text(recipe.epsilon)} ({recipe.norm})"] if recipe.epsilon else []
    took = duration(trained.seconds) + (f", resumed at step {trained.resumed:,}" if trained.resumed else "")
    took = "all done before" if trained.resumed == last["step"] else took
    seen = "in the last epoch, as perturbed" if against else "in the last epoch"
    lines = [
        ("length", f"{counted(len(trained.history), 'epoch')}, {counted(last['step'], 'step')}; {took}"),
        ("against", ", ".join(against) or "nothing"),
        ("training", f"loss {last['loss']:.4f}, accuracy {last['accuracy']:.4f} {seen}"),
    ]
    if "test_accuracy" in last:
        clean = f"accuracy {last['test_accuracy']:.4f}, ECE {last['test_ece']:.4f}"
        lines.append(("test", clean))
    if recipe.sigma and "test_noisy_accuracy" in last:
        noisy = f"accuracy {last['test_noisy_accuracy']:.4f}, ECE {last['test_noisy_ece']:.4f}"
        lines.append(("test, noisy", noisy))
    return [*lines, ("model", str(trained.file)), ("log", str(Path(str(trained.folder)) / "metrics.jsonl"))]


def next_commands(trained: Trained, asked: Asked) -> list[str]:
    """Commands that attack and certify what was trained, every part quoted for the shell."""
    recipe = trained.recipe
    model = ["--model", str(trained.file), "--data", asked.data]
    epsilon = ["--epsilon", distance_text(recipe.epsilon or 0.5), "--norm", recipe.norm]
    noise = ["--sigma", f"{recipe.sigma:g}"] if recipe.sigma else []
    commands = [["certcal", "attack", *model, *epsilon, *noise]]
    if noise:
        run = f"{asked.output.rstrip('/')}-run"
        commands += [["certcal", "sample", *model, *noise, "-o", run], ["certcal", "certify", run]]
    return [shlex.join(words) for words in commands]


def distance_text(distance: float) -> str:
    """A distance as a person writes it, from which the same number is read: in 255ths where that is shorter.

    Examples
    --------
    >>> distance_text(0.5), distance_text(8 / 255), distance_text(1.0)
    ('0.5', '8/255', '1')
    """
    pixels = round(distance * 255)
    written = [f"{distance:g}", *([f"{pixels}/255"] if pixels and pixels / 255 == distance else []), repr(distance)]
    return min((text for text in written if _as_number(text) == distance), key=len)


def _as_number(text: str) -> float:
    over, _, under = text.partition("/")
    return float(over) / float(under or 1)


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
