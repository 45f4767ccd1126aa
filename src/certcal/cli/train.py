"""``certcal train``: a network whose confidences withstand attacks."""

from __future__ import annotations

import os
import shlex
import warnings
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from certcal._base.checks import InputError
from certcal._base.text import distance_text, printable
from certcal.cli.app import ExampleCommand, command
from certcal.cli.emit import OUTPUT, Output, explain_option, json_option, output_option, quiet_option
from certcal.cli.options import DATA, OBJECT, NamedChoice, UnreadableError, option, own_object, verb_options
from certcal.cli.progress import tell
from certcal.lab.train import HYPERPARAMETERS
from certcal.lab.train import train as verb
from certcal.lab.training_methods import METHODS

if TYPE_CHECKING:
    from certcal.lab.train import Training

_WHAT, _LEARNING, _RUNNING = "Network and data", "Learning", "Running"
_NOISE = ("sigma", "epsilon", "norm", "box", "draws", "attack_steps")
_BEGUN, _HELD_OUT = "recipe.json", "TEST"


class _Command(ExampleCommand):
    """A command whose help says what each method is."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Methods and what they train on"):
            formatter.write_dl([(each.name, each.help) for each in METHODS.values()])
        super().format_options(ctx, formatter)


def _parse_constants(ctx: click.Context | None, param: click.Parameter | None, values: Sequence[str]) -> dict[str, Any]:
    """Turn ``momentum=0.8``, ``milestones=4,8`` and ``loss=draws``, or ``loss=mine:Objective``, into values by name.

    Examples
    --------
    >>> _parse_constants(None, None, ["momentum=0.8", "milestones=4,8", "loss=draws", "weight-decay=5e-4", "seed=3"])
    {'momentum': 0.8, 'milestones': (4, 8), 'loss': 'draws', 'weight_decay': 0.0005, 'seed': 3}
    """
    found: dict[str, Any] = {}
    for text in values:
        name, equals, value = text.partition("=")
        if not (equals and name.strip() and value.strip()):
            raise click.BadParameter(f"{text!r} is not NAME=VALUE, such as momentum=0.8", ctx, param)
        key = name.strip().lower().replace("-", "_")
        if key in found:
            raise click.BadParameter(f"{key} is given twice; give it once", ctx, param)
        if key in ("loss", "adversary") and OBJECT.fullmatch(value.strip()):
            try:
                found[key] = own_object(value.strip())
            except UnreadableError as error:
                raise click.BadParameter(f"{key}={value.strip()}: {error}", ctx, param) from None
            continue
        parts = [_number_or_word(part) for part in value.strip().rstrip(",").split(",")]
        found[key] = tuple(parts) if "," in value or key == "milestones" else parts[0]
    return found


def _number_or_word(text: str) -> int | float | str:
    word = text.strip()
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word


@command(
    (
        "certcal train --method gaussian --data digits --model mlp --sigma 0.25 --epochs 20 -o trained",
        "train with noise",
    ),
    ("certcal train --method at --data fashion-mnist --model lenet --sigma 0.5 --epsilon 0.5 -o at", "adversaries"),
    (
        "certcal train --method exact-act --data fashion-mnist --model lenet --start at/model.safetensors "
        "--sigma 0.5 --epsilon 0.5 -o act",
        "fine-tune it against adversaries of its calibration",
    ),
    (
        "certcal train --method acr --data fashion-mnist --model lenet --sigma 0.5 --epochs 15 -o acr",
        "easy samples first",
    ),
    ("certcal train --method at --data cifar --model mine:Net -o at", "a network of yours"),
    ("certcal train --method at --data cifar --model resnet20 --set weight_decay=0.0005 -o at", "other settings"),
    (
        "torchrun --standalone --nproc-per-node 2 -m certcal train --method gaussian --data cifar "
        "--model resnet110 --preset cohen-2019 --sigma 0.25 --pieces 2 --device cuda -o gaussian",
        "Cohen et al.'s recipe on two GPUs",
    ),
    cls=_Command,
)
@option(
    _WHAT,
    "--method",
    required=True,
    metavar="METHOD",
    type=NamedChoice([word for each in METHODS.values() for word in (each.name, *each.aliases)], case_sensitive=False),
    help="Training method, one of the above.",
)
@option(_WHAT, "--data", required=True, metavar="DATA", type=click.Path(), help=DATA)
@option(
    _WHAT,
    "--model",
    required=True,
    metavar="MODEL",
    help="lenet, resnet20, resnet110, preact18, mlp, resnet110-cifar, resnet50-imagenet …, or module:name.",
)
@verb_options(verb, _WHAT, only=("start", "judge", "soft", "preset", "limit", "resize", "crop"))
@verb_options(verb, "Noise and adversaries", only=_NOISE)
@verb_options(verb, _LEARNING, only=tuple(name for name in HYPERPARAMETERS if name not in _NOISE))
@option(
    _LEARNING,
    "--set",
    "others",
    callback=_parse_constants,
    multiple=True,
    metavar="NAME=VALUE",
    help="Any other hyperparameter of the recipe or of the method, such as momentum=0.8, milestones=4,8, weight=6 or "
    "loss=module:name; repeatable.",
)
@verb_options(verb, _RUNNING, only=("device",))
@explain_option
@json_option
@output_option("FOLDER", "Folder for checkpoints, log and model; new, or to be continued.")
@option(OUTPUT, "--events", metavar="FOLDER", type=click.Path(), help="Also write the log for TensorBoard.")
@quiet_option
def train(
    method: str,
    data: str,
    model: str,
    out: str,
    events: str | None,
    others: dict[str, Any],
    as_json: bool,
    explain: bool,
    **options: Any,
) -> None:
    """Train MODEL on DATA by METHOD, into FOLDER.

    The same command continues an interrupted training, to the same weights; any other one in the same folder is
    refused. Unset options use the published hyperparameters. In the end FOLDER holds model.safetensors for certcal
    sample, certcal attack and --start (of a network of your own weights.safetensors, for --weights and --start), and
    metrics.jsonl, a line per epoch.
    """
    from certcal.cli.errors import leave_interrupted
    from certcal.cli.sources import existing_files, existing_single_files, needing_torch, refuse_inside

    needing_torch("training and attacks")
    changes = _constants_of_method(method, others, [name for name in HYPERPARAMETERS if options[name] is not None])
    if os.environ.get("RANK", "0") != "0":  # one of several processes, of which the first does the talking
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            verb(model, data, method, out=out, **options, **changes)
        return
    if events is not None:
        _check_events(Path(events))
    with _warnings_after_the_bar():
        refuse_inside("-o", out, existing_files(data))
        try:
            found = verb(model, data, method, out=out, **options, **changes)
        except KeyboardInterrupt:
            found = None
    if found is None:
        begun = (Path(out) / _BEGUN).exists()
        leave_interrupted(
            f"what was learnt is kept in {out}, the same command resumes" if begun else "nothing was learnt"
        )
    if events is not None:
        found.export_events(events)
    # Of a folder the fingerprint tells.
    read = existing_single_files(data, options["start"], options["judge"], options["soft"])
    Output((), as_json, (), False, full=explain).emit(found, sources=read)
    if not as_json:
        held_out = "" if found.tested is not None else f", with inputs that it was not trained on as {_HELD_OUT}"
        click.echo(f"\nNext steps{held_out}")
        for line in next_commands(found, out):
            click.echo(printable(line))


def _constants_of_method(method: str, others: Mapping[str, Any], given: Sequence[str]) -> dict[str, Any]:
    """What --set says; true and false are values of a method's own constants that are either."""
    from certcal.lab.training import constants_of, recipe

    usual = constants_of(method)
    for name in others:
        if name in given or name in ("box", "seed", "method", "preset"):
            raise InputError(f"--set {name}=… has an option of its own; give --{name.replace('_', '-')} once")
    if "own" in others:
        its = f"such as {next(iter(usual))}=…" if usual else f"of which {method} has none"
        raise InputError(f"--set own=… is no number; give the method's own constants by their names, {its}")
    for name, value in others.items():
        try:
            _ = isinstance(usual.get(name), bool) or recipe(method, **{name: value})
        except InputError as error:
            if str(error).startswith((name, repr(name))):  # and not about another part that this one needs
                raise InputError(str(error), argument="others") from None
    words = {"true": True, "false": False}
    return {
        name: words.get(str(value).lower(), value) if isinstance(usual.get(name), bool) else value
        for name, value in others.items()
    }


@contextmanager
def _warnings_after_the_bar() -> Generator[None]:
    """Keep what training warns of while there is a bar, and say it as sentences when that is gone."""
    from certcal.lab.training import SelectionWarning

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


def _check_events(folder: Path) -> None:
    """Refuse what could not be written later, before anything is learnt."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"--events {folder}: this is not an empty folder; choose a new one")
    if find_spec("tensorboard") is None:
        raise InputError("--events needs tensorboard; run: pip install tensorboard")


def next_commands(found: Training, out: str) -> list[str]:
    """Commands that attack and certify what was trained on the test part, every part quoted for the shell.

    Where the data have no test part, others are asked for: numbers on training data say nothing.
    """
    recipe, file = found.recipe, str(found.file)
    named = Path(file).name == "weights.safetensors"
    data = found.data if found.tested is not None else _HELD_OUT
    model = ["--model", *([found.model, "--weights"] if named else []), file, "--data", data]
    epsilon = ["--epsilon", distance_text(recipe.epsilon or 0.5), "--norm", recipe.norm]
    noise = ["--sigma", f"{recipe.sigma:g}"] if recipe.sigma else []
    commands = [["certcal", "attack", *model, *epsilon, *noise]]
    if noise:
        run = f"{out.rstrip('/')}-run"
        commands += [["certcal", "sample", *model, *noise, "-o", run], ["certcal", "certify", run]]
    return [shlex.join(words) for words in commands]
