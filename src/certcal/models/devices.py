"""Where a model computes, one word for torch, onnxruntime and the command line; how much fits there; and threads."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from certcal._base import memory as _memory
from certcal._base.checks import InputError, whole_number

__all__ = ["DeviceMemoryWarning", "resolve"]

Part = TypeVar("Part")

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
    word = "auto" if device is None else str(device)
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
        return next((kind for kind in _kinds(torch) if _device_count(torch, kind)), "cpu")
    parsed = _WORD.fullmatch(word)
    if parsed is None or int(parsed[2] or 0) >= _device_count(torch, parsed[1]):
        raise InputError(
            f"there is no {word!r} here, only {', '.join(_present(torch))}",
            argument="device",
            remedy="give one of these, or 'auto'" + _hint_of_build(torch, word),
        )
    return "cpu" if parsed[1] == "cpu" else word


def shares(device: str) -> tuple[str, ...]:
    """The devices that a resolved one stands for, each for a worker of its own: all of its kind if it has no number."""
    if device == "cpu" or ":" in device:
        return (device,)
    try:
        count = _device_count(import_module("torch"), device)
    except ModuleNotFoundError:  # as for onnxruntime alone
        count = 1
    return tuple(f"{device}:{number}" for number in range(count)) if count > 1 else (device,)


def has_doubles(device: object) -> bool:
    """Whether a device computes in float64 (MPS and some others do not)."""
    if str(device) == "cpu":
        return True
    torch: Any = import_module("torch")
    try:
        torch.empty((), dtype=torch.float64, device=device)
    except (TypeError, RuntimeError):
        return False
    return True


def device_name(device: str) -> str:
    """A device with the name of its hardware, where torch knows one."""
    if device != "cpu":
        with suppress(Exception):  # backends need not have names
            torch: Any = import_module("torch")
            named = torch.device(device)
            return f"{device} ({torch.get_device_module(named.type).get_device_name(named)})"
    return device


@contextmanager
def torch_threads(threads: int = 1) -> Generator[None, None, None]:
    """So many threads for torch's arithmetic, and its number of threads and random generator left as they were.

    Sums depend on how many threads share them; with one the same call gives the same bits on any number of cores.
    """
    torch: Any = import_module("torch")
    count = whole_number(threads, 1, 4096, "threads", "pass how many threads torch may use, at least 1")
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        torch.set_num_threads(before)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory was short, of a device or of this machine."""
    return not isinstance(error, InputError) and _memory.is_out_of_memory(error)  # else a sentence that was made of one


class DeviceMemoryWarning(UserWarning):
    """Batches are smaller than asked for, because those would not fit into the memory of a device."""


class Fitting:
    """Rows in pieces that fit into the memory of a device.

    A piece that does not fit is halved until it does. The size that worked is remembered, and said once, by a
    :class:`DeviceMemoryWarning`.
    """

    def __init__(self, description: str, device: str) -> None:
        self._description, self._device = description, device
        self._refused: int | None = None
        self.said = False
        self.rows: int | None = None  # the most that fit, once that is known

    def __call__(self, run: Callable[[NDArray[Any]], NDArray[Any]], batch: NDArray[Any]) -> NDArray[Any]:
        rows = len(batch)
        found = self.pieces(lambda a, b: run(batch if b - a == rows else batch[a:b]), 0, rows)
        return found[0] if len(found) == 1 else np.concatenate(found)

    def pieces(self, run: Callable[[int, int], Part], first: int, last: int) -> list[Part]:
        """Results of ``run(start, stop)`` for consecutive rows from ``first`` to ``last``, in their order."""
        parts: list[Part] = []
        start = first
        while start < last:
            stop = last if self.rows is None else min(last, start + self.rows)
            try:
                parts.append(run(start, stop))
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                short = str(error)
            else:
                start = stop
                continue
            self._halve(stop - start, short)  # not in the handler, whose traceback keeps what was allocated
        if self.rows is not None and not self.said:
            self.said = True
            text = f"{self._description}: {self._refused} inputs do not fit into the memory of {self._device} at once"
            remedy = "ask for batches of that size to spare the attempts"
            warnings.warn(f"{text}, so it gets {self.rows} at a time; {remedy}", DeviceMemoryWarning, stacklevel=2)
        return parts

    def _halve(self, rows: int, short: str) -> None:
        if rows == 1:
            why = short.strip().partition("\n")[0][:200]
            raise InputError(
                f"{self._description} does not fit into the memory of {self._device}, not even with one input ({why}); "
                "choose another device or a smaller model, or free memory"
            )
        self._refused, self.rows = self._refused or rows, rows // 2
        with suppress(Exception):  # what a backend keeps of the attempt it gives back, if it can
            torch: Any = import_module("torch")
            torch.get_device_module(torch.device(self._device).type).empty_cache()


def _kinds(torch: Any) -> list[str]:
    other = torch.accelerator.current_accelerator(True)
    return ["cuda", "mps", *([] if other is None else [other.type])]


def _device_count(torch: Any, kind: str) -> int:
    """How many devices of a kind there are; none of a kind that nobody knows."""
    try:
        return int(torch.get_device_module(torch.device(kind).type).device_count())
    except (RuntimeError, AttributeError):
        return 0


def _present(torch: Any) -> list[str]:
    result = ["cpu"]
    for kind in dict.fromkeys(_kinds(torch)):
        count = _device_count(torch, kind)
        result += [kind] if count == 1 else [f"{kind}:{number}" for number in range(count)]
    return result


def _hint_of_build(torch: Any, word: str) -> str:
    if word.startswith("cuda") and torch.version.cuda is None and torch.version.hip is None:
        return " (this torch was built without CUDA: install the build for your GPU from pytorch.org)"
    return ""
