"""Train a network whose confidences withstand attacks: data, network and recipe together, and what came of it."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, cast

from certcal._base.checks import InputError
from certcal._base.progress import Progress, ProgressLike, as_reporter
from certcal._base.signature import SEED, Option, Range, Takes, verb
from certcal._base.text import counted, distance_text, duration
from certcal.claims import Estimate, settings_texts
from certcal.data import Inputs, Parts
from certcal.lab.training_methods import method_named
from certcal.lab.training_presets import complete_name
from certcal.result import Curves, Result
from certcal.verbs.model_and_data import COUNT, SIDE, DataSet, open_parts

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from torch.nn import Module

    from certcal.lab.training import Recipe, Trained, TrainingProgress

_MOST_CLASSES = 10
_EPOCH = {
    **{name: name for name in ("epoch", "loss", "accuracy")},
    **{"test_accuracy": "test accuracy", "test_ece": "test ECE"},
    **{"test_noisy_accuracy": "noisy test accuracy", "test_noisy_ece": "noisy test ECE"},
    **{"sigma": "σ", "epsilon": "ε", "learning_rate": "learning rate"},
}
_WEIGHTS = ("model.safetensors", "weights.safetensors")
# Hyperparameters that have parameters of their own; None is what was published.
HYPERPARAMETERS = (
    *("sigma", "epsilon", "norm", "draws", "attack_steps", "epochs", "batch", "pieces", "learning_rate", "precision"),
    *("augment", "seed"),
)


@dataclass(frozen=True, eq=False, repr=False)
class Training(
    Result,
    keys="folder=trained.folder model=trained.file recipe=trained.recipe resumed_at_step=trained.resumed "
    "seconds=trained.seconds history=trained.history",
):
    """A trained network, its log, and where it is kept.

    Examples
    --------
    >>> import certcal
    >>> from certcal.models.networks import MLP
    >>> data = [[0.0, 1.0], [1.0, 0.0]] * 8, [1, 0] * 8
    >>> made = certcal.train(MLP(2, (8,), classes=2), data, "standard", epochs=20, batch=8)
    >>> made.log[-1]["accuracy"], made.recipe.method
    (1.0, 'standard')
    """

    question: ClassVar[str] = "How accurate and calibrated is the trained network?"

    trained: Trained
    """The network, its recipe and its history; see :class:`certcal.lab.training.Trained`."""
    model: str
    data: str
    """What was trained, and on what."""
    samples: int
    tested: int | None = None
    """Number of training samples, and of test samples or None."""
    digests: Mapping[str, str] = field(default_factory=dict[str, str])
    """What ``fingerprints`` gives."""

    @property
    def fingerprints(self) -> Mapping[str, str]:
        """Of the trained weights, and of the training and the test data with their labels."""
        return self.digests

    @property
    def network(self) -> Any:
        """The network, in evaluation mode."""
        return self.trained.network

    @property
    def recipe(self) -> Recipe:
        """The recipe of the training."""
        return self.trained.recipe

    @property
    def log(self) -> Sequence[Mapping[str, Any]]:
        """One line per epoch."""
        return self.trained.history

    @property
    def file(self) -> Path | None:
        """The trained model or its weights, or None if nothing was written."""
        return self.trained.file

    @property
    def source(self) -> str:
        """What was trained."""
        return f"{self.model} trained on {self.data} by {self.recipe.method}"

    @property
    def description(self) -> str:
        """The folder, if there is one."""
        return "" if self.trained.folder is None else str(self.trained.folder)

    @property
    def sources(self) -> Sequence[str]:
        """The data."""
        return (self.data,)

    @property
    def seeds(self) -> Mapping[str, int]:
        """The recipe's."""
        return {"training": self.recipe.seed}

    def __repr__(self) -> str:
        first = self.claims()[0]
        epochs = counted(len(self.log), "epoch")
        return f"<Training of {self.source}: {epochs}, {first.name} {first.value:.4f} on {first.settings['on']}>"

    def claims(self) -> Sequence[Estimate]:
        """Accuracy and ECE on the test data after the last epoch, without and with noise; else those of training."""
        last = self.log[-1]
        if self.tested is None or "test_accuracy" not in last:
            seen = "training inputs as perturbed" if self.recipe.sigma or self.recipe.epsilon else "training inputs"
            return (Estimate("accuracy", last["accuracy"], last["samples"], {"on": seen}),)
        estimates: list[Estimate] = []
        for prefix, noise in (("test", {}), ("test_noisy", {"sigma": self.recipe.sigma})):
            if f"{prefix}_accuracy" in last and (noise.get("sigma", 1)):
                on = {"on": "test data", **noise}
                estimates.append(Estimate("accuracy", last[f"{prefix}_accuracy"], self.tested, on))
                binned = {"bins": self.recipe.bins, **on}
                estimates.append(Estimate("ece", last[f"{prefix}_ece"], self.tested, binned))
        return tuple(estimates)

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """The log: one line per epoch."""
        names = list(dict.fromkeys(name for line in self.log for name in line if name != "lost_classes"))
        return {name: [line.get(name) for line in self.log] for name in names}

    def top(self) -> Sequence[Any]:
        """The accuracy after the last epoch."""
        claim = self.claims()[0]
        return [(claim, "Accuracy after the last epoch", f"on {counted(claim.n, 'sample')} ({claim.settings['on']})")]

    def parts(self) -> Mapping[str, Any]:
        """Results, and the log as charts."""
        trained, recipe, last = self.trained, self.recipe, self.log[-1]
        against = [f"sigma {recipe.sigma:g}"] if recipe.sigma else []
        against += [f"epsilon {distance_text(recipe.epsilon)} ({recipe.norm})"] if recipe.epsilon else []
        took = duration(trained.seconds) + (f", resumed at step {trained.resumed:,}" if trained.resumed else "")
        took = "all done before" if trained.resumed == last["step"] else took
        seen = "in the last epoch, as perturbed" if against else "in the last epoch"
        facts = {
            "length": f"{counted(len(self.log), 'epoch')}, {counted(last['step'], 'step')}; {took}",
            "against": ", ".join(against) or "nothing",
            "training": f"loss {last['loss']:.4f}, accuracy {last['accuracy']:.4f} {seen}",
            **samples_kept(last),
        }
        if "test_accuracy" in last:
            facts["test"] = f"accuracy {last['test_accuracy']:.4f}, ECE {last['test_ece']:.4f}"
        if recipe.sigma and "test_noisy_accuracy" in last:
            facts["test, noisy"] = f"accuracy {last['test_noisy_accuracy']:.4f}, ECE {last['test_noisy_ece']:.4f}"
        if trained.folder is not None:
            facts |= {"model": str(trained.file), "log": str(Path(trained.folder) / "metrics.jsonl")}
        return {"Result": facts, "Log": self._curves()}

    def _curves(self) -> Curves:
        def lines(**names: str) -> dict[str, list[float]]:
            known = {label: [float(line.get(name, math.nan)) for line in self.log] for name, label in names.items()}
            return {label: values for label, values in known.items() if any(map(math.isfinite, values))}

        charts = {
            "Loss": lines(loss="training"),
            "Accuracy": lines(accuracy="training", test_accuracy="test", test_noisy_accuracy="test, noisy"),
            "Calibration error": lines(test_ece="test", test_noisy_ece="test, noisy"),
        }
        epochs = [line["epoch"] + 1 for line in self.log]
        return Curves("epoch", epochs, {title: series for title, series in charts.items() if series})

    def appendix(self) -> Mapping[str, Any]:
        """One line per epoch, and the recipe."""
        known = {name: head for name, head in _EPOCH.items() if any(name in line for line in self.log)}
        epochs = {head: [line.get(name) for line in self.log] for name, head in known.items()}
        given = {name: value for name, value in self.recipe.to_dict().items() if value is not None}
        return {"Epochs": epochs, "Recipe": settings_texts({**given, **given.pop("own", {})})}

    def export_events(self, folder: str | os.PathLike[str]) -> int:
        """Write the log for TensorBoard into a new or empty folder; returns the number of epochs."""
        from certcal.lab.training import export_events

        if self.trained.folder is None:
            raise InputError("this training was not written anywhere; train with out=")
        return export_events(self.trained.folder, folder)


def samples_kept(last: Mapping[str, Any]) -> dict[str, str]:
    """How many samples a method that selects has kept, and classes of which none is left."""
    if "kept" not in last:
        return {}
    weighed = f", drawn with weights up to {last['largest_weight']:.3g}" if last["largest_weight"] > 1 else ""
    facts = {"kept": f"{last['kept']:.1%} of the training samples{weighed}; {1 - last['kept']:.1%} discarded"}
    classes: Sequence[int] = last.get("lost_classes") or ()
    if classes:
        shown = ", ".join(map(str, classes[:_MOST_CLASSES]))
        more = f" and {len(classes) - _MOST_CLASSES:,} more" if len(classes) > _MOST_CLASSES else ""
        facts["lost"] = f"every sample of {'class' if len(classes) == 1 else 'classes'} {shown}{more}"
    return facts


@verb()
def train(
    model: str | Module,
    data: str | os.PathLike[str] | Inputs | Parts | DataSet,
    method: str | Recipe,
    *,
    out: str | os.PathLike[str] | None = None,
    test: str | os.PathLike[str] | Inputs | DataSet | None = None,
    start: Annotated[str | os.PathLike[str] | Module | None, Takes("file"), Option(metavar="WEIGHTS")] = None,
    judge: Annotated[str | os.PathLike[str] | Module | None, Takes("file"), Option(metavar="WEIGHTS")] = None,
    soft: Annotated[str | os.PathLike[str] | ArrayLike | Module | None, Takes("file"), Option(metavar="FILE")] = None,
    preset: Annotated[str | None, Takes("text"), Option(metavar="NAME")] = None,
    limit: Annotated[int | None, COUNT] = None,
    resize: Annotated[int | None, SIDE, Option(metavar="PIXELS")] = None,
    crop: Annotated[int | None, SIDE, Option(metavar="PIXELS")] = None,
    sigma: Annotated[float | None, Takes("positive", zero=True)] = None,
    epsilon: Annotated[float | None, Takes("distance")] = None,
    norm: Literal["l2", "linf"] | None = None,
    box: Annotated[tuple[float, float] | Literal["auto"] | None, Takes("box")] = "auto",
    draws: Annotated[int | None, Range(1, 100_000)] = None,
    attack_steps: Annotated[int | None, Range(1, 100_000)] = None,
    epochs: Annotated[int | None, Range(1, 100_000)] = None,
    batch: Annotated[int | None, Range(1, 10_000_000)] = None,
    pieces: Annotated[int | None, Range(1, 65_536)] = None,
    learning_rate: Annotated[float | None, Takes("positive")] = None,
    precision: Literal["float32", "bfloat16", "float16"] | None = None,
    augment: Literal["none", "flip", "crop", "crop+flip", "resized-crop+flip"] | None = None,
    seed: Annotated[int | None, SEED] = None,
    device: Annotated[str, Takes("text"), Option(metavar="DEVICE")] = "auto",
    outputs: Literal["logits", "probabilities"] | None = None,
    progress: ProgressLike = True,
    **changes: Any,
) -> Training:
    """Train a network by one of the published methods, or against an adversary or by a loss of your own.

    On the CPU the result depends on the arguments and the versions of the libraries alone, not on how often training
    was interrupted. Under ``torchrun`` the processes share the pieces of every batch.

    Parameters
    ----------
    model
        A torch module with its first weights, or a name for :func:`certcal.models.networks.by_name`: "lenet",
        "resnet20", "preact18", "mlp", "resnet110-cifar", …, or "module:name" of what makes one.
    data
        Training data: :class:`certcal.data.Inputs`, a pair of arrays, :class:`certcal.data.Parts`, "digits",
        "fashion-mnist", a file or folder, a torch ``Dataset`` or ``DataLoader`` whose inputs are always the same; all
        of :func:`certcal.data.open_inputs`.
    method
        One of :data:`certcal.lab.training.METHODS`, with its published hyperparameters, or a
        :class:`certcal.lab.training.Recipe`.
    out
        A folder for checkpoints, the log and the trained model. The same call continues an interrupted training; any
        other one in the same folder is refused.
    test
        Data to look at after every epoch; by default the test part of the data, if there is one.
    start
        Weights to fine-tune (.safetensors .pth …), on the fine-tuning schedule.

        Also a network.
    judge
        For acr: weights that judge which samples are hard, instead of those in training.

        A file of weights of the same network, or a network.
    soft
        For cat-rs: soft labels of the training samples, probabilities in a .npy file; or weights of a network trained
        with Gaussian noise, whose 10,000 votes per sample are counted first and kept beside the output; the same call
        goes on counting.

        Probabilities (n, classes), or a network; see :func:`certcal.lab.training.soft_labels`.
    preset
        Hyperparameters of a paper at this sigma, such as sun-2025:imagenet; without a data set as the data are called.

        By default those of the method; :func:`certcal.lab.training.presets` lists the papers' of a method.
    limit
        Train on the first N samples. Default: all.
    resize
        Resize images of a folder: pixels of the shorter side. Needed if sizes differ.
    crop
        Crop the centre of images of a folder: pixels of both sides. Needed if shapes differ.
    sigma
        Standard deviation of the noise; 0 trains without noise. Default: 0.5.
    epsilon
        Largest perturbation of an input, such as 0.5 or 8/255. Default: 1.
    norm
        Norm of the perturbation. Default: l2.
    box
        Range of input values, or none. Default: 0,1 if all values are pixels k/255, otherwise none.
    draws
        Noise samples per input. Default: 1 for gaussian, 2 with adversaries, or as published.
    attack_steps
        Gradient steps of the adversary. Default: 2, or 4 to fine-tune, or as published.
    epochs
        Number of epochs. Default: 150, or 10 to fine-tune.
    batch
        Inputs per optimisation step. Default: 256; acce and exact: 2048.
    pieces
        Number of parts of each batch, to save memory or to share them among processes.
    learning_rate
        Learning rate. Default: 0.1, or 0.01 to fine-tune.
    precision
        Precision of the forward and backward pass. Default: float32.
    augment
        Random changes of images: crop shifts by up to 4 pixels, resized-crop enlarges a part, flip mirrors. Default:
        none, or as the preset.
    seed
        Random seed. Default: 0.
    device
        Where to train: auto, cpu, cuda, cuda:1, mps, … Default: auto, an accelerator if there is one.

        A run may go on on another device.
    outputs
        What the network returns, "logits" or "probabilities", unless it says so itself.
    progress
        Whether to show how far the work is; or a function or an object that is told.
    changes
        Other attributes of the recipe (see :class:`certcal.lab.training.Recipe`, including ``adversary`` and ``loss``)
        and constants of the method.

    Examples
    --------
    See :class:`Training`.
    """
    progress = as_reporter(progress)
    asked = locals()
    from certcal.lab.training import Recipe
    from certcal.lab.training import train as run
    from certcal.models.devices import resolve
    from certcal.models.fingerprint import weights_digest
    from certcal.models.networks import by_name

    device = resolve(device)
    _check_start(start)
    _check_start(judge, "judge")
    parts, name = open_parts(data, asked)
    inputs = parts.train
    changes |= {each: asked[each] for each in HYPERPARAMETERS if asked[each] is not None}
    changes |= {} if box == "auto" else {"box": box}
    if isinstance(method, Recipe):
        if changes or preset is not None:
            raise InputError("a recipe and changes are given; change the recipe with dataclasses.replace")
        chosen = method
    else:
        named = complete_name(method, preset, f"{parts.name} {Path(name).name}")
        chosen = _make_recipe(method, start, named, inputs, changes)
    network: Any = model
    if isinstance(model, str):
        network = by_name(model, inputs.inputs.shape[1:], _count_classes(parts), seed=chosen.seed)
    tell = _LoopProgress(progress, len(inputs))
    trained = run(
        network,
        inputs,
        chosen,
        out=out,
        test=parts.test,
        start=start,
        judge=judge,
        soft=_make_soft_labels(soft, limit, network, inputs, chosen, out, progress, outputs=outputs, device=device),
        outputs=outputs,
        device=device,
        progress=tell,
    )
    called = model if isinstance(model, str) else type(network).__name__
    digests = {"model": weights_digest(trained.network), "data": inputs.fingerprint}
    if parts.test is not None:
        digests["test data"] = parts.test.fingerprint
    tested = None if parts.test is None else len(parts.test)
    return Training(trained, called, name, len(inputs), tested, digests)


def _make_recipe(method: str, start: Any, preset: str | None, inputs: Inputs, changes: dict[str, Any]) -> Recipe:
    from certcal.lab.training import recipe

    for name in method_named(method).unused:
        if changes.get(name) is not None:
            reason = f"it is not for {method} training"
            raise InputError(reason, argument=name, remedy="leave it out, or take another method")
    box = changes.pop("box", "auto")
    tuning = changes.pop("fine_tune", None)
    return recipe(
        method,
        fine_tune=start is not None if tuning is None else tuning,
        preset=preset,
        box=inputs.box if box == "auto" else box,
        **changes,
    )


def _make_soft_labels(
    soft: Any, limit: int | None, network: Any, inputs: Inputs, recipe: Recipe, out: Any, progress: Progress, **how: Any
) -> Any:
    """Soft labels from a file, those of the first so many samples; or counted from the votes of weights."""
    import numpy as np
    from torch.nn import Module

    path = Path(cast("str", soft)) if isinstance(soft, str | os.PathLike) else None
    if isinstance(soft, Module) or (path is not None and path.suffix != ".npy"):
        return _count_votes(soft, network, inputs, recipe, out, progress, **how)
    given = cast("Any", soft)
    if path is not None:
        try:
            given = np.load(path, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            remedy = "give a .npy file of probabilities (n, classes)"
            raise InputError(f"{path}: cannot be read ({error})", argument="soft", remedy=remedy) from None
    return given if given is None or limit is None else given[:limit]


def _count_votes(
    voter: Any, network: Any, inputs: Inputs, recipe: Recipe, out: Any, progress: Progress, **how: Any
) -> Any:
    """Shares of the votes of a network, or of weights for the one in training; kept beside the output folder."""
    from io import BytesIO

    import numpy as np

    from certcal._base.durable import write_durably
    from certcal.lab.training import soft_labels
    from certcal.lab.training.prepare import load_start
    from certcal.models.fingerprint import weights_digest

    if recipe.method != "cat-rs":
        raise InputError(f"it is not for {recipe.method} training", argument="soft", remedy="leave it out")
    voter = load_start(voter, network)
    sigma: float = recipe.own.target_sigma
    if out is None:
        return soft_labels(voter, inputs, sigma=sigma, progress=progress, **how)
    folder = Path(f"{Path(out)}-soft-{weights_digest(voter)[:8]}-{inputs.fingerprint[:8]}-{sigma:g}")
    kept = folder.with_name(f"{folder.name}.npy")
    if kept.exists():
        return np.load(kept, allow_pickle=False)
    votes = soft_labels(voter, inputs, sigma=sigma, out=folder, progress=progress, **how)
    buffer = BytesIO()
    np.save(buffer, votes)
    write_durably(kept, buffer.getvalue())
    shutil.rmtree(folder)  # its pieces are in the file
    return votes


def _check_start(start: Any, argument: str = "start") -> None:
    """Refuse what holds no weights, with the name of the file beside or in it that does."""
    if not isinstance(start, str | os.PathLike):
        return
    path = Path(start)  # pyright: ignore[reportUnknownArgumentType]
    if not path.is_dir() and path.suffix != ".pt2":
        return
    what = "a folder" if path.is_dir() else "a .pt2 file, which is not loaded"
    there = [path / name if path.is_dir() else path.parent / name for name in _WEIGHTS]
    near = next((each for each in there if each.is_file()), None)
    remedy = f"give {near or 'a .safetensors file with the weights'}"
    raise InputError(f"{path} is {what}", argument=argument, remedy=remedy)


def _count_classes(parts: Parts) -> int:
    labels = [int(part.labels.max()) + 1 for part in (parts.train, parts.test) if part is not None]
    return max(2, len(parts.train.class_names), *labels)


class _LoopProgress:
    """Progress of the loop, as whoever waits is told of it."""

    def __init__(self, progress: Progress, images: int) -> None:
        self._progress, self._images = progress, images
        self._done: int | None = None

    def __call__(self, now: TrainingProgress) -> None:
        total = now.epochs * self._images
        done = round(now.share * total)
        if self._done is None:
            self._progress.stage("training", total, done, "images")
        else:
            self._progress.advance(done - self._done)
        self._done = done
        self._progress.say(f"epoch {now.epoch + 1}/{now.epochs}, loss {now.loss:.3f}, accuracy {now.accuracy:.0%}")
