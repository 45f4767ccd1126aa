"""What a command is given to read: there at all, and of the kind that its options are for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from certcal._checks import InputError

if TYPE_CHECKING:
    from certcal.cli._progress import Waiting
    from certcal.data import Inputs
    from certcal.models import Model

NAMED = ("digits", "fashion-mnist")


def existing(source: str, what: str) -> Path:
    """The path of something that is there; otherwise an error with the nearest name beside it.

    Examples
    --------
    >>> existing("/nowhere/at/all", "run or table")
    Traceback (most recent call last):
        ...
    certcal._checks.InputError: /nowhere/at/all: there is no such run or table; check the path
    """
    from certcal.data._open import nearest

    path = Path(source)
    try:
        there = path.exists()
    except (OSError, ValueError):  # a name that is too long, or no name at all
        there = False
    if not there:
        raise InputError(f"{source}: there is no such {what}; {nearest(path)}")
    return path


def only_for(what: str, source: str, it_is: str, options: Mapping[str, Any]) -> None:
    """Refuse options, those that are not None, which are for something else.

    Examples
    --------
    >>> only_for("runs", "scores.csv", "a table", {"drawn_only": True})
    Traceback (most recent call last):
        ...
    certcal._checks.InputError: --drawn-only is for runs, and scores.csv is a table; leave it out
    """
    for name, value in options.items():
        if value is not None:
            raise InputError(f"--{name.replace('_', '-')} is for {what}, and {source} is {it_is}; leave it out")


def refuse_run(source: str) -> None:
    """A folder where a table is asked for.

    Examples
    --------
    >>> refuse_run(".")
    Traceback (most recent call last):
        ...
    certcal._checks.InputError: .: this is a folder; give one file, or a run to certcal certify or certcal report
    """
    if Path(source).is_dir():
        raise InputError(f"{source}: this is a folder; give one file, or a run to certcal certify or certcal report")


def plain_names(names: Iterable[str]) -> set[str]:
    """Names of columns without what tells spellings apart.

    Examples
    --------
    >>> sorted(plain_names(["Lower Bound", "upper-bound "]))
    ['lower_bound', 'upper_bound']
    """
    return {name.strip().lower().replace("-", "_").replace(" ", "_") for name in names}


def loaded(
    model: str, weights: str | None, kind: Any, data: str, part: Any, limit: int | None, waiting: Waiting
) -> tuple[Model, Inputs]:
    """A model and the inputs that it is tried on.

    Parameters
    ----------
    model, weights, kind
        As for :func:`certcal.models.load`.
    data, part
        As for :func:`model_inputs`.
    limit
        How many inputs, from the first; None for all.
    waiting
        Where progress shows.
    """
    from certcal.data import Inputs
    from certcal.models import load

    waiting.stage("reading")
    samples = model_inputs(data, part)
    if limit is not None and limit > len(samples):
        raise InputError(f"--limit is {limit}, but {data} holds {len(samples)} samples; give at most that")
    if limit is not None and limit < len(samples):
        samples = Inputs.from_arrays(samples.inputs[:limit], samples.labels[:limit], samples.class_names)
    waiting.stage("loading the model")
    return load(model_file(model), kind, weights=weights), samples


def model_file(model: str) -> str:
    """The model as it was given; a folder is refused with the name of the model in it, if there is one.

    Examples
    --------
    >>> model_file("package.module:name")
    'package.module:name'
    >>> model_file("/")
    Traceback (most recent call last):
        ...
    certcal._checks.InputError: --model /: this is a folder; give a file (.onnx .safetensors) or module:name
    """
    folder = Path(model)
    if ":" in model or not folder.is_dir():
        return model
    remedies = {
        "model.safetensors": f"the model in it, {folder / 'model.safetensors'}",
        "weights.safetensors": f"the network as module:name and --weights {folder / 'weights.safetensors'}",
    }
    inside = (remedy for name, remedy in remedies.items() if (folder / name).is_file())
    remedy = next(inside, "a file (.onnx .safetensors) or module:name")
    raise InputError(f"--model {model}: this is a folder; give {remedy}")


def model_inputs(data: str, part: Any = None) -> Inputs:
    """Inputs by name, from a file or from a folder: of data in two parts the one to test on, unless told otherwise.

    Examples
    --------
    >>> len(model_inputs("digits")), len(model_inputs("digits", "train"))
    (899, 898)
    """
    from certcal.data import read_inputs, read_split

    part = part_of(data, part)
    if data in NAMED:
        split = read_split(data)
        assert split.test is not None
        return split.train if part == "train" else split.test
    return read_inputs(data, part=part)


def part_of(data: str, part: Any = None) -> Any:
    """Which part of the data is read, "train" or "test"; None for data that are not divided.

    Examples
    --------
    >>> part_of("digits"), part_of("digits", "train")
    ('test', 'train')
    """
    from certcal.data._input_files import input_parts

    if part is not None:
        return part
    there = ("train", "test") if data in NAMED else input_parts(Path(data))
    return next((name for name in ("test", "train") if name in there), None)


def existing_files(*names: str) -> list[str]:
    """Those of the names that are files or folders.

    Examples
    --------
    >>> existing_files(".", "package.module:name")
    ['.']
    """
    return [name for name in names if name not in NAMED and Path(name).exists()]


def refuse_inside(option: str, output: str | Path, sources: Iterable[str | Path]) -> None:
    """Refuse to write into a folder that is read: a run is no class of pictures.

    Examples
    --------
    >>> refuse_inside("-o", "/usr/run", ["/usr"])
    Traceback (most recent call last):
        ...
    certcal._checks.InputError: -o /usr/run: this is inside /usr, which is read; choose another folder
    """
    for source in map(Path, sources):
        if source.is_dir() and Path(output).resolve().is_relative_to(source.resolve()):
            raise InputError(f"{option} {output}: this is inside {source}, which is read; choose another folder")


def needing_torch(what: str) -> None:
    """Say how to get torch where it is missing, before anything is read."""
    if find_spec("torch") is None:
        raise InputError(f"{what} need torch; run: pip install 'certcal[torch]'")
