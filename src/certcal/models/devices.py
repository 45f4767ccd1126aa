"""Where a model computes: one word for it, the same for torch, onnxruntime and the command line."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

from certcal._checks import InputError

_WORD = re.compile(r"([a-z_][a-z0-9_]*)(?::([0-9]{1,4}))?")


def resolve(device: str | None = "auto") -> str:
    """The device that a word means on this machine.

    Parameters
    ----------
    device
        ``"auto"`` (or None) for an accelerator if torch finds one (CUDA, which is also what torch calls ROCm, else MPS,
        else any other), and else the CPU; ``"cpu"``; ``"cuda"``, ``"cuda:1"``, ``"mps"``, ``"xpu"`` or whatever torch
        calls an accelerator.

    Returns
    -------
    str
        As torch writes it. A name without a number is the current one of several.

    Raises
    ------
    InputError
        If there is no such device here.

    Examples
    --------
    >>> resolve("cpu")
    'cpu'
    """
    word = "auto" if device is None else device
    if word == "cpu":
        return word
    try:
        torch: Any = import_module("torch")
    except ModuleNotFoundError:
        if word == "auto":
            return "cpu"
        raise InputError(
            f"{word!r} is found by torch, which is not installed",
            argument="device",
            remedy="run: pip install 'certcal[torch]', or give 'cpu'",
        ) from None
    if word == "auto":
        return next((kind for kind in _kinds(torch) if _count(torch, kind)), "cpu")
    parsed = _WORD.fullmatch(word)
    if parsed is None or int(parsed[2] or 0) >= _count(torch, parsed[1]):
        raise InputError(
            f"there is no {word!r} here, only {', '.join(_present(torch))}",
            argument="device",
            remedy="give one of these, or 'auto'" + _why(torch, word),
        )
    return "cpu" if parsed[1] == "cpu" else word


def shares(device: str) -> tuple[str, ...]:
    """The devices that a resolved one stands for, each for a worker of its own: all of its kind if it has no number.

    Examples
    --------
    >>> shares("cpu"), shares("cuda:1")
    (('cpu',), ('cuda:1',))
    """
    if device == "cpu" or ":" in device:
        return (device,)
    count = _count(import_module("torch"), device)
    return tuple(f"{device}:{number}" for number in range(count)) if count > 1 else (device,)


def has_doubles(device: object) -> bool:
    """Whether a device computes in float64 (MPS and some others do not).

    Examples
    --------
    >>> has_doubles("cpu")
    True
    """
    torch: Any = import_module("torch")
    try:
        torch.empty((), dtype=torch.float64, device=device)
    except (TypeError, RuntimeError):
        return False
    return True


def _kinds(torch: Any) -> list[str]:
    """What "auto" looks for, in this order."""
    other = torch.accelerator.current_accelerator(True)
    return ["cuda", "mps", *([] if other is None else [other.type])]


def _count(torch: Any, kind: str) -> int:
    """How many devices of a kind there are; none of a kind that nobody knows."""
    try:
        return int(torch.get_device_module(torch.device(kind).type).device_count())
    except (RuntimeError, AttributeError):
        return 0


def _present(torch: Any) -> list[str]:
    found = ["cpu"]
    for kind in dict.fromkeys(_kinds(torch)):
        count = _count(torch, kind)
        found += [kind] if count == 1 else [f"{kind}:{number}" for number in range(count)]
    return found


def _why(torch: Any, word: str) -> str:
    """A hint for the usual reason."""
    if word.startswith("cuda") and torch.version.cuda is None and torch.version.hip is None:
        return " (this torch was built without CUDA: install the build for your GPU from pytorch.org)"
    return ""
