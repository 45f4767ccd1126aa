"""An accelerator for tests, ``pretend:0`` and ``pretend:1``, that computes on the CPU and is as strict as a real one.

A tensor on it cannot be mixed with one on the CPU (but for single numbers, as elsewhere) or on its neighbour, is not
converted to NumPy, and may be refused double precision or memory. What is copied to and from it, and how often the host
waited for one number, is counted.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils.backend_registration import (  # pyright: ignore[reportPrivateUsage]
    _DummyBackendModule,
    _DummyPrivateUse1Hook,
    _setup_privateuseone_for_python_backend,
)

NAME = "pretend"
_COPIES = {torch.ops.aten.copy_.default, torch.ops.aten._to_copy.default}
_COPIES |= {getattr(torch.ops.aten.to, each) for each in torch.ops.aten.to.overloads()}  # as in inference mode
_WAITS = {torch.ops.aten._local_scalar_dense.default, torch.ops.aten.equal.default, torch.ops.aten.nonzero.default}
_INDEXING = {torch.ops.aten.index.Tensor, torch.ops.aten.index_put.default, torch.ops.aten.index_put_.default}
_ALIASES = {torch.ops.aten.detach.default, torch.ops.aten.alias.default}


@dataclass
class State:
    """How the accelerator behaves, and what it has seen."""

    present: bool = False
    doubles: bool = True  # whether float64 exists on it
    memory: int | None = None  # elements of the largest tensor that it can hold
    operations: int = 0
    to_host: int = 0
    to_device: int = 0
    waits: int = 0


state = State()


class PretendTensor(torch.Tensor):
    """A tensor on the accelerator: its values live in ``raw``, on the CPU."""

    raw: torch.Tensor

    @staticmethod
    def __new__(cls, raw: torch.Tensor, index: int = 0, requires_grad: bool = False) -> PretendTensor:
        return torch.Tensor._make_wrapper_subclass(  # pyright: ignore
            cls,
            raw.size(),
            strides=raw.stride(),
            storage_offset=raw.storage_offset(),
            dtype=raw.dtype,
            device=torch.device(NAME, index),
            requires_grad=requires_grad,
        )

    def __init__(self, raw: torch.Tensor, index: int = 0, requires_grad: bool = False) -> None:
        self.raw = raw

    def __repr__(self, **_: Any) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        return f"{self.raw!r} on {self.device}"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})


def _tensors(tree: Any) -> Iterator[torch.Tensor]:
    return (each for each in pytree.tree_leaves(tree) if isinstance(each, torch.Tensor))


def _run(func: Any, args: Any, kwargs: Any) -> Any:
    """One operator on the values, with every rule of the accelerator checked before and after."""
    state.operations += 1
    given = list(_tensors((args, kwargs)))
    ours = {each.device for each in given if isinstance(each, PretendTensor)}
    wanted = None if kwargs.get("device") is None else torch.device(kwargs["device"])
    if func in _COPIES:
        target = wanted or given[0].device
        source = given[-1].device
        state.to_host += target.type == "cpu" and source.type == NAME
        state.to_device += target.type == NAME and source.type == "cpu"
    else:
        masks = func in _INDEXING and any(each.dtype == torch.bool for each in _tensors(args[1]))
        state.waits += func in _WAITS or masks  # a mask is counted before it is used
        if len(ours) > 1 or (ours and any(not isinstance(each, PretendTensor) and each.dim() for each in given)):
            where = ", ".join(sorted({str(each.device) for each in given}))
            raise RuntimeError(f"Expected all tensors to be on the same device, but {func} got {where}")
        target = wanted or next(iter(ours))
    index = target.index or 0
    if index > 1:
        raise RuntimeError(f"there is no {target}")
    values, own = {}, {}
    for each in given:
        raw = each.raw if isinstance(each, PretendTensor) else each
        values[id(each)] = raw
        own[id(raw)] = each
    if wanted is not None:
        kwargs = {**kwargs, "device": torch.device("cpu"), **({"pin_memory": False} if "pin_memory" in kwargs else {})}
    raws = pytree.tree_map(lambda each: values.get(id(each), each), (args, kwargs))
    found = func(*raws[0], **raws[1])
    mutable = func._schema.is_mutable

    def placed(each: Any) -> Any:
        if not isinstance(each, torch.Tensor):
            return each
        if mutable and id(each) in own:
            return own[id(each)]
        if target.type == "cpu":
            return each
        if func not in _ALIASES and not state.doubles and each.dtype in (torch.float64, torch.complex128):
            raise TypeError(f"{NAME} has no float64")
        if state.memory is not None and each.numel() > state.memory:
            raise torch.OutOfMemoryError(f"{NAME} out of memory: tried to allocate {each.numel()} elements")
        return PretendTensor(each, index)

    return pytree.tree_map(placed, found)


class _Module(_DummyBackendModule):
    def is_available(self) -> bool:
        return state.present

    def device_count(self) -> int:
        return 2 if state.present else 0

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.float16, torch.bfloat16]

    def synchronize(self, device: Any = None) -> None:
        state.waits += 1


class _Hook(_DummyPrivateUse1Hook):
    def is_available(self) -> bool:
        return state.present


# Once per process, and before its first gradient: torch's autograd asks which devices there are only then. (It asks for
# one of ours, so there are gradients on pretend:0 only.) Not present until a test says so.
_setup_privateuseone_for_python_backend(NAME, _Module(), _Hook())
_library: Any = torch.library.Library("_", "IMPL")
_library.fallback(lambda op, *args, **kwargs: _run(op, args, kwargs), "PrivateUse1")
_library.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")  # nothing is cast: that is torch's


def _made(op: Any) -> Any:
    return lambda *args, **kwargs: _run(op, args, kwargs)


# What torch itself would make by resizing an empty tensor, which a wrapper does not notice.
_makers: Any = torch.library.Library("aten", "IMPL")
for _name in (
    "arange",
    "arange.start",
    "arange.start_step",
    "linspace",
    "eye",
    "eye.m",
    "randperm",
    "randperm.generator",
):
    _packet, _, _overload = _name.partition(".")
    _makers.impl(_name, _made(getattr(getattr(torch.ops.aten, _packet), _overload or "default")), "PrivateUse1")


@contextmanager
def accelerator(*, doubles: bool = True, memory: int | None = None) -> Generator[State, None, None]:
    """The accelerator is present inside the block."""
    state.__dict__.update(State(present=True, doubles=doubles, memory=memory).__dict__)
    try:
        yield state
    finally:
        state.__dict__.update(State().__dict__)
