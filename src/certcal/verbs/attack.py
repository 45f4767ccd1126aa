"""How far can an attack move the confidences while every prediction stays? Attacks on a model, measured."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from certcal._base.attack_methods import ATTACKS
from certcal._base.checks import InputError
from certcal._base.durable import write_durably
from certcal._base.files import path_of, refuse_overwriting, write_together
from certcal._base.json import PlainValues
from certcal._base.parts import Part, part_of
from certcal._base.progress import Progress, ProgressLike, as_reporter
from certcal._base.rounding import share_text
from certcal._base.signature import SEED, Option, Range, Takes, gather, verb
from certcal._base.text import counted, distance_text, these
from certcal._base.told import Told, UnknownNameError
from certcal.claims import Estimate
from certcal.data.units import range_of, warn_of_odd_units
from certcal.data.work_folder import ABOUT, Work, allocate_array, write_rows
from certcal.result import Answer, NamedAsPrinted, Result, Sentence
from certcal.verbs.measure import MeasuredGroup
from certcal.verbs.model_and_data import (
    BATCH,
    COUNT,
    SIDE,
    DataSet,
    model_on_data,
    open_data,
    open_model,
)
from certcal.verdict import Candidate

if TYPE_CHECKING:
    from certcal.attacks import Attacked, AttackMethod
    from certcal.data import Inputs

NORMS = {"linf": "ℓ∞", "l2": "ℓ2"}
_CLEAN = "clean"
_METRICS = ("accuracy", "mean_confidence", "ece", "equal_mass_ece", "top_label_brier_score", "brier_score", "nll")
_DRAWS = 16
_WORK = "work"  # where a folder of saved predictions keeps what was found so far
# Inputs that are attacked together, and kept if they are killed: so many, or so many bytes of them.
_PIECE_ROWS, _PIECE_BYTES = 1_000, 1 << 26
# Settings that do not change what is found; the attacks themselves are told with all their parameters.
_NOT_FOUND_BY = ("attacks", "bins", "device", "threads")


@dataclass(frozen=True)
class AttackSettings(Told):
    """What :func:`attack` was asked; ``attack(model, data, **vars(settings))`` asks it again."""

    epsilon: tuple[float, ...]
    attacks: tuple[Any, ...]
    split: str | None
    limit: int | None
    every: int
    resize: int | None
    crop: int | None
    norm: Literal["linf", "l2"]
    steps: int
    restarts: int
    box: tuple[float, float] | str | None
    seed: int
    batch: int
    threads: int
    device: str
    bins: int
    sigma: float | None
    draws: int | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", tuple(sorted(set(self.epsilon))))
        for name in ("epsilon", "attacks"):
            if not getattr(self, name):
                raise InputError("there is none", argument=name, remedy="pass at least one")
        if self.draws is not None and self.sigma is None:
            raise InputError("it is for the smoothed classifier", argument="draws", remedy="give sigma as well")


@dataclass(frozen=True, eq=False)
class AttackRow(
    NamedAsPrinted, PlainValues, keys="attack name epsilon moved labels_changed=changed restarts_won? **measured"
):
    """What was measured under one attack within one distance, or without any."""

    attack: str
    """Its short name, such as "plus-true"; empty for the clean inputs."""
    aim: str
    """What it does to which confidence, in a few words."""
    epsilon: float
    """The largest distance that was allowed; 0 for the clean inputs."""
    measured: MeasuredGroup
    """The measurements, each an :class:`~certcal.claims.Estimate`, and the reliability diagram."""
    attacked: Attacked | None = None
    """Perturbed inputs and predictions; None for the clean inputs."""

    @property
    def name(self) -> str:
        """The attack's name in full, or "unattacked"."""
        return self.measured.name

    def named(self) -> Mapping[str, Estimate]:
        """The measurements under this attack by metric."""
        return self.measured.named()

    @property
    def changed(self) -> int:
        """How many predicted labels differ from those of the clean inputs: 0 for attacks that keep them."""
        return 0 if self.attacked is None else self.attacked.changed

    @property
    def moved(self) -> int:
        """How many inputs were perturbed at all."""
        return 0 if self.attacked is None else self.attacked.moved

    @property
    def restarts_won(self) -> int | None:
        """For how many inputs a random start reached more than the clean one; None without restarts."""
        return None if self.attacked is None else self.attacked.settings.get("restarts_won")


@dataclass(frozen=True, eq=False, repr=False)
class Attack(Result, keys="source **about conventions claims=sentences clean=clean.measured attacks=rows"):
    """A model's calibration without an attack and under several, each within one or more distances.

    All numbers are estimates on these samples. Those under an attack are reached, so the worst case is at least as bad;
    what no perturbation can exceed is for certificates to say. ``a["plus-true"]`` is the row of that attack; when there
    are several distances, ``a["plus-true", 8 / 255]``.

    Examples
    --------
    >>> import certcal
    >>> import numpy as np
    >>> from certcal.models.networks import MLP
    >>> rng = np.random.default_rng(0)
    >>> data = rng.random((50, 4)), rng.integers(0, 3, 50)
    >>> a = certcal.attack(MLP(4, hidden=(16,), classes=3).eval(), data, epsilon=[0.05, 0.1], steps=5)
    >>> len(a), a["plus-true", 0.1].changed
    (8, 0)
    >>> a["plus-true", 0.1]["nll"].value > a["plus-true", 0.05]["nll"].value > a.clean["nll"].value
    True
    """

    view: ClassVar[str] = "certcal.report.views.attack"

    source: str
    """What was attacked."""
    about: Mapping[str, Any]
    """Further facts for machines: model, data, split, number of samples."""
    shape: tuple[int, ...]
    """Shape of one input."""
    clean: AttackRow
    """Without an attack."""
    rows: tuple[AttackRow, ...]
    """The attacks in the order asked for, within the smallest distance, then within the next."""
    conventions: Mapping[str, Any]
    """Norm, box, steps, noise and bins."""
    digests: Mapping[str, str] = field(default_factory=dict[str, str])
    """What ``fingerprints`` gives."""
    settings: AttackSettings | None = None
    """What was asked: ``attack(model, data, **vars(a.settings))`` gives the same."""

    @property
    def fingerprints(self) -> Mapping[str, str]:
        """Fingerprints of the model's weights, and of the attacked samples with their labels."""
        return self.digests

    @property
    def n(self) -> int:
        """Number of samples."""
        return self.clean.measured.n

    def __iter__(self) -> Iterator[AttackRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, key: str | tuple[str, float]) -> AttackRow:
        attack, epsilon = key if isinstance(key, tuple) else (key, None)
        found = [row for row in self.rows if row.attack == attack and epsilon in (None, row.epsilon)]
        if len(found) == 1:
            return found[0]
        known = ", ".join(f"({row.attack!r}, {row.epsilon:g})" for row in self.rows)
        raise UnknownNameError(f"{key!r} names {len(found) or 'no'} rows", remedy=f"there are {known}")

    def named(self) -> Mapping[Any, AttackRow]:
        """What each attack did, by its name, or by name and distance where there are several."""
        alone = len(self.epsilons) == 1
        return {row.attack if alone else (row.attack, row.epsilon): row for row in self.rows}

    def __repr__(self) -> str:
        before, after = (row["equal_mass_ece"].value for row in (self.clean, self.strongest))
        reached = f"AdaECE {before:.4f} becomes {after:.4f} under {self.strongest.name}"
        return f"<Attack on {self.source}: {counted(self.n, 'sample')}, {reached}>"

    @property
    def epsilons(self) -> tuple[float, ...]:
        """The distances, smallest first."""
        return tuple(dict.fromkeys(row.epsilon for row in self.rows))

    @property
    def strongest(self) -> AttackRow:
        """The attack after which the AdaECE, the ECE with equal-mass bins, is largest."""
        return max(self.rows, key=lambda row: row["equal_mass_ece"].value)

    @property
    def changed(self) -> int:
        """The largest number of predicted labels that an attack changed."""
        return max(row.changed for row in self.rows)

    @property
    def sentences(self) -> tuple[str, str, str]:
        """What was found, what stayed, and what that does not say."""
        strongest = self.strongest
        before, after = (row["equal_mass_ece"].value for row in (self.clean, strongest))
        plain = [share_text(row["ece"].value) for row in (self.clean, strongest)]
        within = f"within ε = {distance_text(strongest.epsilon)} ({NORMS[self.conventions['norm']]})"
        noise = (
            f" of the mean over {self.conventions['draws']} fixed draws of noise" if self.conventions["sigma"] else ""
        )
        start = f"On {these(self.n, 'sample')} the AdaECE{noise} is {share_text(before)} (ECE {plain[0]})"
        if after > before:
            reached = f"{start}; {strongest.name} {within} makes it at least "
            reached += f"{share_text(after, 'lower')} (ECE {plain[1]})."
        else:
            reached = f"{start}, and no attack raised it, which does not prove that none can."
        accuracy = share_text(self.clean["accuracy"].value)
        kept = f"No predicted label changed (verified), so the accuracy stays {accuracy}."
        if self.changed:
            kept = f"Up to {counted(self.changed, 'predicted label')} changed."
        return reached, kept, "Attacks show what is possible, not the worst case."

    @property
    def seeds(self) -> Mapping[str, int]:
        """Seed of the noise."""
        seed = self.conventions["seed"]
        smoothed = {} if self.conventions["sigma"] is None else {"noise of the smoothed classifier": seed}
        return smoothed | ({"random starts": seed} if "restarts" in self.conventions else {})

    @property
    def answer(self) -> Answer:
        """What was reached, what stayed, and what to do about what was not tried."""
        reached, kept, _ = self.sentences
        claim = self.claims()[0]
        found = Sentence("seen", reached, data={"quantity": claim.name, "value": float(claim.value)})
        look = Sentence("next", "Only a certificate bounds what any perturbation can do: see certify and verify.")
        return Answer((found, Sentence("seen", kept), look), unsaid=("the worst case: attacks show what is possible",))

    def claims(self) -> Sequence[Estimate]:
        """The strongest attack's AdaECE, then every other estimate; each says under which attack it holds."""
        first = self._with_attack_settings(self.strongest, self.strongest["equal_mass_ece"])
        every = [
            self._with_attack_settings(row, each) for row in (self.clean, *self.rows) for each in row.measured.rows
        ]
        return (first, *(each for each in every if each != first))

    def _with_attack_settings(self, row: AttackRow, measured: Estimate) -> Estimate:
        if row.attacked is None:
            return measured
        under = {"attack": row.name, "norm": self.conventions["norm"], "epsilon": row.epsilon}
        return replace(measured, settings={**measured.settings, **under})

    def candidates(self) -> Sequence[Candidate]:
        """What the strongest attack reached, then what each did; who attacks may also leave the inputs as they are."""
        found = [Candidate(self.claims()[0])]
        for row in self.rows:
            for group in (None, f"{row.name} at ε = {distance_text(row.epsilon)}"):
                found += [Candidate(self._with_attack_settings(row, each), (), group) for each in row.measured.rows]
        nothing = {"attack": "none", "epsilon": 0.0}
        return found + [Candidate(each, (f"clean_{each.name}",), None, nothing) for each in self.clean.measured.rows]

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """One line per attack and metric, with all digits; without an attack where there is none."""
        lines = [(row, each) for row in (self.clean, *self.rows) for each in row.measured.rows]
        norm = self.conventions["norm"]
        return {
            "attack": [row.attack or None for row, _ in lines],
            "norm": [norm if row.attack else None for row, _ in lines],
            "epsilon": [row.epsilon if row.attack else None for row, _ in lines],
            "metric": [each.name for _, each in lines],
            "bins": [each.settings.get("bins") for _, each in lines],
            "value": [float(each.value) for _, each in lines],
            "n": [each.n for _, each in lines],
        }

    def save_predictions(self, folder: str | os.PathLike[str], *, force: bool = False) -> list[Path]:
        """Write predictions before and after every attack as tables that :func:`certcal.measure` reads.

        Parameters
        ----------
        folder
            Where to; made if it is not there.
        force
            Replace existing files.

        Returns
        -------
        list of Path
            What was written.
        """
        found = [row.attacked for row in self.rows if row.attacked is not None]
        tables = [(found[0].labels, found[0].clean_probabilities), *((one.labels, one.probabilities) for one in found)]
        paths = saved_paths(folder, [(row.attack, row.epsilon) for row in self.rows])
        refuse_saving(folder, paths, force=force)
        files = {path: _probabilities_file(*table) for path, table in zip(paths, tables, strict=True)}
        write_together(files, force=force, folder=Path(folder))
        return paths


def saved_paths(folder: str | os.PathLike[str], attacks: Iterable[tuple[str, float]]) -> list[Path]:
    """Files that :meth:`Attack.save_predictions` writes, for attacks by name and distance.

    Examples
    --------
    >>> [path.name for path in saved_paths("found", [("plus-true", 8 / 255)])]
    ['clean.parquet', 'plus-true-8-255.parquet']
    """
    return [Path(folder) / f"{name}.parquet" for name in (_CLEAN, *(_saved_name(*each) for each in attacks))]


def refuse_saving(folder: str | os.PathLike[str], paths: Iterable[Path], *, force: bool = False) -> None:
    """Raise if predictions could not be saved, before anything is attacked."""
    place = Path(folder)
    if (place / _WORK / ABOUT).exists():
        return  # begun before: it is resumed, or refused for its settings
    if place.exists() and not place.is_dir():
        raise InputError(f"{place} is a file; give a folder", argument="save")
    if not place.exists():
        refuse_overwriting(place)  # the folder around it must be there
        return
    for path in paths:
        refuse_overwriting(path, force=force)


def _saved_name(attack: str, epsilon: float) -> str:
    return f"{attack}-{distance_text(epsilon).replace('/', '-')}"


def _probabilities_file(labels: Any, probabilities: Any) -> bytes:
    from certcal.data import intervals_as_parquet

    return intervals_as_parquet({"label": labels, **{f"prob_{k}": each for k, each in enumerate(probabilities.T)}})


@verb()
def attack(
    model: object,
    data: str | os.PathLike[str] | Inputs | DataSet,
    *,
    outputs: Annotated[Literal["logits", "probabilities"] | None, Option(metavar="KIND")] = None,
    weights: Annotated[str | os.PathLike[str] | None, Takes("file"), Option(metavar="FILE")] = None,
    split: Literal["train", "test"] | None = None,
    limit: Annotated[int | None, COUNT] = None,
    every: Annotated[int, COUNT] = 1,
    resize: Annotated[int | None, SIDE, Option(metavar="PIXELS")] = None,
    crop: Annotated[int | None, SIDE, Option(metavar="PIXELS")] = None,
    epsilon: Annotated[float | Iterable[float], Takes("distance", zero=True), Option(metavar="E")],
    attacks: Annotated[
        Literal[
            "minus-true",
            "plus-true",
            "minus-predicted",
            "plus-predicted",
            "one-step",
            "stopping-minus-true",
            "stopping-plus-true",
            "stopping-minus-predicted",
            "stopping-plus-predicted",
        ]
        | AttackMethod
        | Iterable[str | AttackMethod],
        Option(metavar="NAME[,NAME...]"),
    ] = ("minus-true", "plus-true", "minus-predicted", "plus-predicted"),
    norm: Literal["linf", "l2"] = "linf",
    steps: Annotated[int, Range(1, 1_000_000)] = 100,
    restarts: Annotated[int, Range(1, 10_000)] = 1,
    box: Annotated[tuple[float, float] | Literal["auto"] | None, Takes("box")] = "auto",
    seed: Annotated[int, SEED] = 0,
    batch: Annotated[int, BATCH] = 500,
    threads: Annotated[int, Range(1, 4096)] = 1,
    device: Annotated[str, Takes("text"), Option(metavar="D")] = "auto",
    bins: Annotated[int, Range(1, 10_000)] = 15,
    sigma: Annotated[float | None, Takes("positive")] = None,
    draws: Annotated[int | None, Range(1, 1 << 20)] = None,
    save: Annotated[str | os.PathLike[str] | None, Takes("file"), Option(metavar="FOLDER")] = None,
    save_inputs: bool = False,
    part: Annotated[str | None, Takes("text"), Option(metavar="I/N")] = None,
    keep_inputs: bool = False,
    force: bool = False,
    source: str | None = None,
    progress: ProgressLike = True,
) -> Attack:
    """Move the confidences of a model as far as attacks can while every predicted label stays, and measure them.

    Parameters
    ----------
    model
        A classifier that gives gradients: a torch module in evaluation mode, a .safetensors file, "module:name", a
        network such as "resnet110-cifar" with weights.
    data
        Inputs with labels: :class:`certcal.data.Inputs`, a pair of arrays, "digits", "fashion-mnist", a file or folder,
        a torch ``Dataset`` or ``DataLoader``; all of :func:`certcal.data.open_inputs`.
    outputs
        Model outputs: logits or probabilities. Default: as the model file says.
    weights
        Weights of the network: .safetensors, or a checkpoint (.pth .pth.tar .pt .ckpt .bin).
    split
        Split of the data. Default: test.
    limit
        Attack the first N samples. Default: all.
    every
        Use samples 0, N, 2N, … of the data; Cohen et al. take N = 20 on CIFAR-10.
    resize
        Resize images of a folder: pixels of the shorter side. Needed if sizes differ.
    crop
        Crop the centre of images of a folder: pixels of both sides. Needed if shapes differ.
    epsilon
        Largest perturbation of an input, such as 0.5 or 8/255; repeatable.

        A number, or several.
    attacks
        Attacks: minus-true (raise the confidence in the true class), plus-true (lower it), minus-predicted (raise the
        confidence in the predicted class), plus-predicted (lower it), one-step (one gradient step: down where the
        prediction is right, up where it is wrong), stopping-minus-true (minus-true as published), stopping-plus-true
        (plus-true as published), stopping-minus-predicted (minus-predicted as published), stopping-plus-predicted
        (plus-predicted as published). Default: the first 4.

        Also any :class:`certcal.attacks.AttackMethod`, such as one of your own.
    norm
        Norm of the perturbation.
    steps
        Maximum number of gradient steps.
    restarts
        How often an attack runs: from the clean input, then from random points; per input the best is kept.
    box
        Range of input values, or none. Default: 0,1 if all values are pixels k/255, otherwise none.
    seed
        Random seed of the smoothing noise and of restarts.
    batch
        Inputs per call of the model.
    threads
        Number of torch threads; more than one may change the last digits.
    device
        Where the model computes: auto (an accelerator if there is one), cpu, cuda, cuda:1, mps, … Default: auto.
    bins
        Number of bins of the calibration error.
    sigma
        Attack the smoothed classifier with Gaussian noise of this standard deviation.
    draws
        Noise samples per input for the smoothed classifier. Default: 16.
    save
        Save predictions before and after each attack, as tables for certcal measure.

        What is found is kept there as it is found: the same call resumes.
    save_inputs
        Save the perturbed inputs as well, a folder for each attack.
    part
        Attack part I of N of the inputs, such as 3/16; other processes may attack the others with the same folder.

        Until all parts are there, :class:`certcal.data.PartsMissingError` says which are missing.
    keep_inputs
        Keep the perturbed inputs in memory, as ``row.attacked.inputs``.
    force
        Replace files of the folder that are not of an attack that was begun there.
    source
        What is attacked, in a few words.
    progress
        Whether to show how far the work is; or a function or an object that is told.

    Examples
    --------
    An attack of your own; whatever it returns is checked and verified like the built-in ones.

    >>> import certcal
    >>> from certcal.models.networks import MLP
    >>> class Fade:
    ...     name = "fade"
    ...
    ...     def run(self, model, inputs, labels, epsilon):
    ...         return model.ball(epsilon).seal(inputs, inputs - epsilon)
    >>> data = [[0.5, 0.9], [0.7, 0.1]], [1, 0]
    >>> found = certcal.attack(MLP(2, hidden=(4,), classes=2).eval(), data, epsilon=0.1, attacks=[Fade(), "one-step"])
    >>> [row.name for row in found]
    ['fade', 'one-step ACE']
    """
    progress = as_reporter(progress)
    given = locals()
    asked = gather(AttackSettings, given)
    import numpy as np

    from certcal.attacks import Attacked, Subject, outputs_of, perturb_each
    from certcal.attacks.subject import check_box, single_precision

    methods, distances = _distinct_attacks(asked.attacks, steps), asked.epsilon
    own_part = _check_saving(save, save_inputs, keep_inputs, part)
    opened = open_data(data, given)
    inputs = opened.inputs
    warn_of_odd_units(inputs, sigma=sigma, epsilon=distances, norm=norm)
    network = open_model(model, given, device, inputs)
    used: Any = inputs.box if box == "auto" else box
    if (limits := single_precision(used)) is not None:
        check_box(inputs.inputs, limits)
    each = [(method, distance) for distance in distances for method in methods]
    names = [_saved_name(_attack_name(method), distance) for method, distance in each]
    how: dict[str, Any] = {"norm": norm, "box": used, "sigma": sigma, "draws": draws or _DRAWS}
    subject = Subject.of(network, inputs.inputs[:1], inputs.labels[:1], **how, seed=seed, batch=batch)
    digests = {"model": network.fingerprint(inputs.inputs[:1]), "data": inputs.fingerprint}
    with ExitStack() as held:
        folder, moved = None if save is None else path_of(save, "save"), list[Path]()
        if folder is not None:
            moved = [folder / name / "inputs.npy" for name in names] if save_inputs else []
            tables = saved_paths(folder, [(_attack_name(m), e) for m, e in each])
            refuse_saving(folder, [*tables, *filter(Path.exists, moved)], force=force)

        def prepare() -> None:
            for path in moved:
                allocate_array(path, inputs.inputs.shape)
                write_durably(path.with_name("labels.npy"), _npy(inputs.labels))

        settings = {
            **{name: value for name, value in vars(asked).items() if name not in _NOT_FOUND_BY},
            **{"box": used, "draws": subject.draws, "inputs": save_inputs, "outputs": network.outputs, **digests},
            **{"attacks": [_with_parameters(method) for method in methods]},
        }
        rows = subject.rows_per_piece(min(_PIECE_ROWS, -(-len(inputs) // (own_part or Part(1, 1)).of)), _PIECE_BYTES)
        work = Work(len(inputs), rows, folder and folder / _WORK, settings, own_part, held, prepare)
        for path in moved:
            if not path.exists():
                remedy = "put it back, or choose another folder"
                raise InputError(
                    f"{path} is gone, and inputs were written to it before", argument="save", remedy=remedy
                )
        missing = list(work.missing())
        progress.stage(f"{len(each)} attacks", len(each) * sum(last - first for first, last in missing), unit="inputs")
        kept: dict[int, list[Any]] = {}
        for first, last in missing:
            piece = subject.rows(first, inputs.inputs[first:last], inputs.labels[first:last])
            found = perturb_each(
                piece, methods, distances, restarts=restarts, threads=threads, progress=_report(progress, each)
            )
            results = {"clean": outputs_of(found[0].clean_predictions)}
            for k, one in enumerate(found):
                results |= {f"outputs_{k}": outputs_of(one.predictions), f"lengths_{k}": one.lengths}
                results |= {} if one.won is None else {f"won_{k}": one.won}
                if moved:
                    write_rows(moved[k], first, one.inputs)
                if keep_inputs:
                    kept.setdefault(k, []).append(one.inputs)
            work.write(first, last, results)
        results = work.joined()
    clean = subject.predictions(results["clean"], inputs.labels)
    found = [
        Attacked.of_outputs(
            method,
            subject,
            epsilon,
            clean,
            results[f"outputs_{k}"],
            results[f"lengths_{k}"],
            won=results.get(f"won_{k}"),
            restarts=restarts,
            inputs=np.concatenate(kept[k]) if k in kept else None,
        )
        for k, (method, epsilon) in enumerate(each)
    ]
    result = Attack(
        source or model_on_data(model, network.description, opened.name),
        {
            "model": "; assumed: ".join((network.description, *found[0].clean_predictions.doubts)),
            **{"data": opened.name, "split": opened.settings.split, "n": len(inputs)},
        }
        | ({"every": every} if every > 1 else {}),
        tuple(inputs.inputs.shape[1:]),
        AttackRow("", "", 0.0, _measure_attacked("unattacked", found[0].clean_predictions, bins)),
        tuple(
            AttackRow(
                _attack_name(method),
                str(getattr(method, "aim", "")),
                one.epsilon,
                _measure_attacked(one.name, one.predictions, bins),
                one,
            )
            for (method, _), one in zip(each, found, strict=True)
        ),
        {
            "norm": norm,
            "box": None if used is None else list(used),
            "input_range": list(range_of(inputs.inputs)),
            "steps": steps,
            **({} if restarts == 1 else {"restarts": restarts}),
            "sigma": sigma,
            "draws": None if sigma is None else subject.draws,
            "seed": seed,
            "bins": bins,
            "closed": "left",
        },
        digests,
        asked,
    )
    if folder is not None:
        result.save_predictions(folder, force=True)
    return result


def _check_saving(save: Any, save_inputs: bool, keep_inputs: bool, part: str | None) -> Part | None:
    """The part, if what is asked about saving can be done."""
    for name, asked in (("save_inputs", save_inputs), ("part", part is not None)):
        if asked and save is None:
            reason, remedy = "there is no folder to save to", "say with {save} where it goes"
            raise InputError(reason, argument=name, remedy=remedy, roles=("save",))
    if keep_inputs and save is not None:
        raise InputError(
            "inputs go to a folder or to memory", argument="keep_inputs", remedy="pass save_inputs instead"
        )
    return part_of(part)


def _report(progress: Progress, each: Sequence[tuple[Any, float]]) -> Callable[[int, int], None]:
    """Steps of a piece, and which attack they are of."""
    done = 0

    def tell(finished: int, total: int) -> None:
        nonlocal done
        method, distance = each[min(finished * len(each) // total, len(each) - 1)]
        progress.advance(finished - done)
        progress.say(f"{getattr(method, 'name', '')}, ε = {distance_text(distance)}")
        done = finished

    return tell


def _npy(array: Any) -> bytes:
    import numpy as np

    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def _distinct_attacks(attacks: Iterable[Any], steps: int) -> list[AttackMethod]:
    """The attacks, each once."""
    found: dict[str, AttackMethod] = {}
    for each in attacks:
        method = _method_of_name(each, steps) if isinstance(each, str) else each
        if method is each and _attack_name(method) in found:
            raise InputError(
                f"two are called {_attack_name(method)!r}", argument="attacks", remedy="give each its own name"
            )
        found[_attack_name(method)] = method
    return list(found.values())


def _method_of_name(name: str, steps: int) -> AttackMethod:
    from certcal import attacks

    kind: Any = getattr(attacks, ATTACKS[name].kind)
    many = {"steps": steps} if any(each.name == "steps" for each in fields(kind)) else {}
    return kind(**ATTACKS[name].parameters, **many)


def _attack_name(method: Any) -> str:
    """An attack's name in commands, tables and files."""
    name = getattr(method, "key", None) or getattr(method, "name", type(method).__name__)
    return re.sub(r"[^\w+.]+", "-", str(name).lower()).strip("-") or "attack"


def _with_parameters(method: Any) -> str:
    """An attack with all that it was made with: one of the same name with other parameters finds something else."""
    if is_dataclass(method):
        return repr(method)
    made_with = sorted(getattr(method, "__dict__", {}).items())
    return f"{_attack_name(method)}({', '.join(f'{name}={value!r}' for name, value in made_with)})"


def _measure_attacked(name: str, predictions: Any, bins: int) -> MeasuredGroup:
    from certcal.binning import equal_width_edges
    from certcal.metrics import Reliability, measure

    rows = measure(predictions, bins=bins, metrics=_METRICS).rows
    edges = equal_width_edges(bins)
    diagram = Reliability.of(predictions.confidence, predictions.correct, None, edges, band="none")
    return MeasuredGroup(name, len(predictions), rows, diagram)
