"""Plain values from a pickle, without unpickling: nothing that a file names is imported or called.

A pickle is a program for a small stack machine. This one knows the instructions that build containers, numbers and
texts, an ordered dictionary and NumPy's scalars; whatever else a file asks for is refused before its argument is read.
Every instruction takes time and memory in proportion to what it takes from the file, and their number is bounded.
(``pickletools.genops`` would read instructions that are refused, decodes escapes in names, and is a third slower.)
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, TypeAlias, cast

import numpy as np

from certcal._checks import InputError

MOST_INSTRUCTIONS = 2_000_000
_NEWEST_PROTOCOL = 5
_LARGEST_KEY, _LONGEST_KEY = 2**63, 4
_STOP = ord(".")

# What the names in a file stand for. They are only compared with these texts.
_ORDERED, _DTYPE, _SCALAR = "an ordered dictionary", "a dtype", "a NumPy scalar"
_KNOWN = {
    ("collections", "OrderedDict"): _ORDERED,
    ("numpy", "dtype"): _DTYPE,
    ("numpy.core.multiarray", "scalar"): _SCALAR,
    ("numpy._core.multiarray", "scalar"): _SCALAR,
}
_NUMBERS = ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1")


class _Name:
    """A name that a file may use, or the type of a NumPy scalar: what is no value by itself."""

    def __init__(self, what: str, order: str = "=") -> None:
        self.what, self.order = what, order


class _Refused(Exception):
    """Why a file is not read."""


def plain_value(content: bytes) -> Any:
    """The value of a pickle that holds only plain ones; an :class:`certcal.InputError` for any other."""
    machine = _Machine(content)
    try:
        return machine.run()
    except _Refused as refused:
        raise InputError(f"{refused}, and nothing in it was run") from None
    except (IndexError, KeyError, TypeError, ValueError, OverflowError, struct.error):
        raise InputError(f"it is damaged near byte {machine.at}, and nothing in it was run") from None


class _Machine:
    """The stack machine. ``marked`` holds the stacks below the marks, as in the format's description."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0
        self.stack: list[Any] = []
        self.marked: list[list[Any]] = []
        self.memo: dict[int, Any] = {}

    def run(self) -> Any:
        content, steps = self.content, _INSTRUCTIONS
        for _ in range(MOST_INSTRUCTIONS):
            if self.at >= len(content):
                raise _Refused("it is cut short")
            code = content[self.at]
            self.at += 1
            if code == _STOP:
                value = _plain(self.stack.pop())
                _need(not self.stack and not self.marked)
                return value
            step = steps.get(code)
            if step is None:
                raise _Refused(f"it has the instruction {code:#04x}, which plain values do not need")
            step(self)
        raise _Refused(f"it has more than {MOST_INSTRUCTIONS:,} instructions")

    def take(self, size: int) -> bytes:
        start, self.at = self.at, self.at + size
        if self.at > len(self.content):
            raise _Refused("it is cut short")
        return self.content[start : self.at]

    def line(self) -> str:
        text = self.content[self.at : self.content.index(b"\n", self.at)]
        self.at += len(text) + 1
        return text.decode()

    def above_mark(self) -> list[Any]:
        found, self.stack = self.stack, self.marked.pop()
        return found


_Step: TypeAlias = Callable[[_Machine], Any]
_Read: TypeAlias = Callable[[_Machine], Any]


def _need(right: bool) -> None:
    if not right:
        raise ValueError


def _plain(value: Any) -> Any:
    _need(not isinstance(value, _Name))
    return value


def _key(value: Any) -> Any:
    """What may be a key: a text, a whole number, or a few of these.

    Deep tuples would overflow the stack when hashed. Long ones, huge numbers and tuples of several numbers, whose hash
    anybody can compute, can be made to collide, and each would then be compared with all before it.
    """
    if type(value) is str:
        return value
    parts = cast("tuple[Any, ...]", value if type(value) is tuple else (value,))
    _need(len(parts) <= _LONGEST_KEY and sum(isinstance(part, int) for part in parts) <= 1)
    _need(all(isinstance(part, str) or (isinstance(part, int) and abs(part) < _LARGEST_KEY) for part in parts))
    return cast("Any", value)


def _set_items(target: Any, items: list[Any]) -> None:
    _need(type(target) is dict and len(items) % 2 == 0)
    for place in range(0, len(items), 2):
        target[_key(items[place])] = _plain(items[place + 1])


def _extend(target: Any, items: list[Any]) -> None:
    _need(type(target) is list)
    target.extend(map(_plain, items))


def _add(target: Any, items: list[Any]) -> None:
    _need(type(target) is set)
    target.update(map(_key, items))


def _dict(items: list[Any]) -> dict[Any, Any]:
    made: dict[Any, Any] = {}
    _set_items(made, items)
    return made


# Instructions that push what stands behind them in the file, or what is always the same.


def _number(form: str) -> _Read:
    packed = struct.Struct(form)

    def read(machine: _Machine) -> Any:
        start, machine.at = machine.at, machine.at + packed.size
        if machine.at > len(machine.content):
            raise _Refused("it is cut short")
        return packed.unpack_from(machine.content, start)[0]

    return read


_BYTE, _SHORT, _INT, _FLOAT = _number("<B"), _number("<H"), _number("<i"), _number(">d")
_LONG, _HUGE = _number("<I"), _number("<Q")


def _push(read: _Read) -> _Step:
    return lambda machine: machine.stack.append(read(machine))


def _constant(value: Any) -> _Step:
    return lambda machine: machine.stack.append(value)


def _fresh(make: Callable[[], Any]) -> _Step:
    return lambda machine: machine.stack.append(make())


def _bytes(size: _Read) -> _Step:
    return lambda machine: machine.stack.append(machine.take(size(machine)))


def _text(size: _Read) -> _Step:
    return lambda machine: machine.stack.append(machine.take(size(machine)).decode())


# Instructions that work on the stack.


def _tuple(size: int) -> _Step:
    def step(machine: _Machine) -> None:
        parts = machine.stack[-size:]
        _need(len(parts) == size)
        machine.stack[-size:] = [tuple(parts)]

    return step


def _collected(make: Callable[[list[Any]], Any]) -> _Step:
    def step(machine: _Machine) -> None:
        made = make(machine.above_mark())  # which puts another stack in place
        machine.stack.append(made)

    return step


def _onto(fill: Callable[[Any, list[Any]], None], taken: int = 0) -> _Step:
    """Fill a container with what is above the mark, or with the last few values."""

    def step(machine: _Machine) -> None:
        items = [machine.stack.pop() for _ in range(taken)][::-1] if taken else machine.above_mark()
        fill(machine.stack[-1], items)

    return step


def _mark(machine: _Machine) -> None:
    machine.marked.append(machine.stack)
    machine.stack = []


def _protocol(machine: _Machine) -> None:
    if _BYTE(machine) > _NEWEST_PROTOCOL:
        raise _Refused(f"it is of a newer protocol than {_NEWEST_PROTOCOL}")


def _put(place: _Read) -> _Step:
    def step(machine: _Machine) -> None:
        machine.memo[place(machine)] = machine.stack[-1]

    return step


def _named(machine: _Machine, module: Any, name: Any) -> None:
    known = _KNOWN.get((module, name)) if isinstance(module, str) and isinstance(name, str) else None
    if known is None:
        shown = "".join(c if c.isprintable() else "?" for c in f"{module}.{name}"[:80]) if type(name) is str else "?"
        raise _Refused(f"it asks for {shown}, which is no plain value")
    machine.stack.append(_Name(known))


def _stack_global(machine: _Machine) -> None:
    name, module = machine.stack.pop(), machine.stack.pop()
    _named(machine, module, name)


def _reduce(machine: _Machine) -> None:
    """Make what a known name stands for from its arguments."""
    given, name = machine.stack.pop(), machine.stack.pop()
    _need(isinstance(name, _Name) and type(given) is tuple)
    arguments = cast("tuple[Any, ...]", given)
    if name.what == _ORDERED:
        if arguments:
            raise _Refused("it makes an ordered dictionary from something")
        machine.stack.append({})
    elif name.what == _DTYPE:
        if arguments[0] not in _NUMBERS:
            raise _Refused("it has a NumPy value that is no single number")
        machine.stack.append(_Name(arguments[0]))
    else:
        _need(name.what == _SCALAR)
        machine.stack.append(_scalar(*arguments))


def _scalar(kind: Any, content: Any) -> Any:
    _need(isinstance(kind, _Name) and kind.what in _NUMBERS and isinstance(content, bytes))
    values = np.frombuffer(content, np.dtype(kind.order + kind.what))
    _need(values.size == 1)
    return values[0].item()


def _build(machine: _Machine) -> None:
    """The byte order of a dtype; nothing else has a state that is wanted."""
    state, kind = machine.stack.pop(), machine.stack[-1]
    known = isinstance(kind, _Name) and kind.what in _NUMBERS and isinstance(state, tuple)
    if not known or state[1] not in ("<", ">", "=", "|"):
        raise _Refused("it sets the state of an object")
    kind.order = state[1]


_INSTRUCTIONS: dict[int, _Step] = {
    0x80: _protocol,
    0x95: _HUGE,  # the length of a frame, a hint for reading ahead
    ord("("): _mark,
    ord("0"): lambda machine: machine.stack.pop(),
    ord("1"): lambda machine: machine.above_mark().clear(),
    ord("N"): _constant(None),
    0x88: _constant(True),
    0x89: _constant(False),
    ord("J"): _push(_INT),
    ord("K"): _push(_BYTE),
    ord("M"): _push(_SHORT),
    0x8A: _push(lambda machine: int.from_bytes(machine.take(_BYTE(machine)), "little", signed=True)),
    ord("G"): _push(_FLOAT),
    ord("X"): _text(_LONG),
    0x8C: _text(_BYTE),
    0x8D: _text(_HUGE),
    ord("B"): _bytes(_LONG),
    ord("C"): _bytes(_BYTE),
    0x8E: _bytes(_HUGE),
    ord("]"): _fresh(list),
    ord("}"): _fresh(dict),
    0x8F: _fresh(set),
    ord(")"): _constant(()),
    0x85: _tuple(1),
    0x86: _tuple(2),
    0x87: _tuple(3),
    ord("t"): _collected(tuple),
    ord("l"): _collected(lambda items: [*map(_plain, items)]),
    ord("d"): _collected(_dict),
    0x91: _collected(lambda items: frozenset(map(_key, items))),
    ord("a"): _onto(_extend, 1),
    ord("e"): _onto(_extend),
    ord("s"): _onto(_set_items, 2),
    ord("u"): _onto(_set_items),
    0x90: _onto(_add),
    ord("q"): _put(_BYTE),
    ord("r"): _put(_LONG),
    0x94: _put(lambda machine: len(machine.memo)),
    ord("h"): _push(lambda machine: machine.memo[_BYTE(machine)]),
    ord("j"): _push(lambda machine: machine.memo[_LONG(machine)]),
    ord("c"): lambda machine: _named(machine, machine.line(), machine.line()),
    0x93: _stack_global,
    ord("R"): _reduce,
    ord("b"): _build,
}
