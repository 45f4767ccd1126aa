"""Plain values from a pickle, without unpickling: nothing that a file names is imported or called.

A pickle is a program for a small stack machine. This one knows the instructions that build containers, numbers and
texts, an ordered dictionary and NumPy's scalars; whatever else a file asks for is refused. Every instruction takes time
and memory in proportion to what it takes from the file, and their number is bounded.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from certcal._checks import InputError

MOST_INSTRUCTIONS = 2_000_000
_NEWEST_PROTOCOL = 5
_LARGEST_KEY, _LONGEST_KEY = 2**63, 4

ORDERED, DTYPE, SCALAR = "an ordered dictionary", "a dtype", "a NumPy scalar"
# What the names in a file stand for. They are only compared with these texts.
_KNOWN = {
    ("collections", "OrderedDict"): ORDERED,
    ("numpy", "dtype"): DTYPE,
    ("numpy.core.multiarray", "scalar"): SCALAR,
    ("numpy._core.multiarray", "scalar"): SCALAR,
}
_FORMS = {form: struct.Struct(form) for form in ("<B", "<H", "<i", "<I", "<Q", ">d")}
_NUMBERS = ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1")


class _Known:
    """A name that a file may use."""

    def __init__(self, what: str) -> None:
        self.what = what


class _Kind:
    """The type of a NumPy scalar."""

    def __init__(self, code: str) -> None:
        self.code, self.order = code, "="


class _Refused(Exception):
    """Why a file is not read."""


def plain_value(content: bytes) -> Any:
    r"""The value of a pickle that holds only plain ones; an :class:`certcal.InputError` for any other."""
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
                value = self.stack.pop()
                if self.stack or self.marked:
                    raise ValueError
                return _plain(value)
            step = steps.get(code)
            if step is None:
                raise _Refused(f"it has the instruction {code:#04x}, which plain values do not need")
            step(self)
        raise _Refused(f"it has more than {MOST_INSTRUCTIONS:,} instructions")

    def take(self, size: int) -> bytes:
        start, self.at = self.at, self.at + size
        if size < 0 or self.at > len(self.content):
            raise _Refused("it is cut short")
        return self.content[start : self.at]

    def number(self, form: str) -> Any:
        packed = _FORMS[form]
        start, self.at = self.at, self.at + packed.size
        if self.at > len(self.content):
            raise _Refused("it is cut short")
        return packed.unpack_from(self.content, start)[0]

    def line(self) -> str:
        end = self.content.index(b"\n", self.at)
        text = self.content[self.at : end].decode()
        self.at = end + 1
        return text

    def above_mark(self) -> list[Any]:
        found, self.stack = self.stack, self.marked.pop()
        return found


def _plain(value: Any) -> Any:
    _need(not isinstance(value, _Known | _Kind))
    return value


def _key(value: Any) -> Any:
    """What may be a key: a text, a whole number, or a few of these.

    Deep tuples would overflow the stack when hashed. Long ones, huge numbers and tuples of several numbers, whose hash
    anybody can compute, can be made to collide, and each would then be compared with all before it.
    """
    if _is(value, tuple):
        _need(len(value) <= _LONGEST_KEY and sum(isinstance(part, int) for part in value) <= 1)
        return tuple(_single_key(part) for part in value)
    return _single_key(value)


def _single_key(value: Any) -> Any:
    _need(isinstance(value, str) or (isinstance(value, int) and abs(value) < _LARGEST_KEY))
    return value


def _is(value: Any, kind: type) -> bool:
    return type(value) is kind


def _need(right: bool) -> None:
    if not right:
        raise ValueError


def _name(machine: _Machine, module: Any, name: Any) -> None:
    known = _KNOWN.get((module, name)) if isinstance(module, str) and isinstance(name, str) else None
    if known is None:
        shown = "".join(c if c.isprintable() else "?" for c in f"{module}.{name}"[:80]) if type(name) is str else "?"
        raise _Refused(f"it asks for {shown}, which is no plain value")
    machine.stack.append(_Known(known))


def _stack_global(machine: _Machine) -> None:
    name, module = machine.stack.pop(), machine.stack.pop()
    _name(machine, module, name)


def _reduce(machine: _Machine) -> None:
    """Make what a known name stands for from its arguments."""
    given, name = machine.stack.pop(), machine.stack.pop()
    if not isinstance(name, _Known) or type(given) is not tuple:
        raise ValueError
    if name.what == ORDERED:
        if given:
            raise _Refused("it makes an ordered dictionary from something")
        machine.stack.append({})
    elif name.what == DTYPE:
        if given[0] not in _NUMBERS:
            raise _Refused("it has a NumPy value that is no single number")
        machine.stack.append(_Kind(given[0]))
    else:
        machine.stack.append(_scalar(*given))


def _scalar(kind: Any, content: Any) -> Any:
    if not isinstance(kind, _Kind) or not isinstance(content, bytes):
        raise ValueError
    values = np.frombuffer(content, np.dtype(kind.order + kind.code))
    _need(values.size == 1)
    return values[0].item()


def _build(machine: _Machine) -> None:
    """The byte order of a dtype; nothing else has a state that is wanted."""
    state, kind = machine.stack.pop(), machine.stack[-1]
    if not isinstance(kind, _Kind) or not isinstance(state, tuple) or state[1] not in ("<", ">", "=", "|"):
        raise _Refused("it sets the state of an object")
    kind.order = state[1]


def _set_items(target: Any, items: list[Any]) -> None:
    _need(_is(target, dict) and len(items) % 2 == 0)
    for place in range(0, len(items), 2):
        target[_key(items[place])] = _plain(items[place + 1])


def _extend(target: Any, items: list[Any]) -> None:
    _need(_is(target, list))
    target.extend(_plain(item) for item in items)


def _add(target: Any, items: list[Any]) -> None:
    _need(_is(target, set))
    target.update(_key(item) for item in items)


def _set_item(machine: _Machine) -> None:
    value, key = machine.stack.pop(), machine.stack.pop()
    _set_items(machine.stack[-1], [key, value])


def _dict(items: list[Any]) -> dict[Any, Any]:
    made: dict[Any, Any] = {}
    _set_items(made, items)
    return made


def _append(machine: _Machine) -> None:
    value = machine.stack.pop()
    _extend(machine.stack[-1], [value])


def _mark(machine: _Machine) -> None:
    machine.marked.append(machine.stack)
    machine.stack = []


def _protocol(machine: _Machine) -> None:
    if machine.take(1)[0] > _NEWEST_PROTOCOL:
        raise _Refused("it is of a newer protocol than 5")


def _put(machine: _Machine, place: int) -> None:
    machine.memo[place] = machine.stack[-1]


_Step: TypeAlias = Callable[[_Machine], None]


def _constant(value: Any) -> _Step:
    return lambda machine: machine.stack.append(value)


def _fresh(make: Callable[[], Any]) -> _Step:
    return lambda machine: machine.stack.append(make())


def _read(form: str) -> _Step:
    return lambda machine: machine.stack.append(machine.number(form))


def _text(form: str) -> _Step:
    return lambda machine: machine.stack.append(machine.take(machine.number(form)).decode())


def _bytes(form: str) -> _Step:
    return lambda machine: machine.stack.append(machine.take(machine.number(form)))


def _long(machine: _Machine) -> None:
    machine.stack.append(int.from_bytes(machine.take(machine.number("<B")), "little", signed=True))


def _tuple(size: int) -> _Step:
    def step(machine: _Machine) -> None:
        parts = machine.stack[-size:]
        if len(parts) < size:
            raise IndexError
        machine.stack[-size:] = [tuple(parts)]

    return step


def _collected(make: Callable[[list[Any]], Any]) -> _Step:
    def step(machine: _Machine) -> None:
        made = make(machine.above_mark())  # which puts another stack in place
        machine.stack.append(made)

    return step


def _onto(fill: Callable[[Any, list[Any]], None]) -> _Step:
    def step(machine: _Machine) -> None:
        items = machine.above_mark()
        fill(machine.stack[-1], items)

    return step


def _listed(items: list[Any]) -> list[Any]:
    return [_plain(item) for item in items]


_STOP = ord(".")
_INSTRUCTIONS: dict[int, _Step] = {
    0x80: _protocol,
    0x95: lambda machine: machine.number("<Q"),  # the length of a frame, a hint for reading ahead
    ord("("): _mark,
    ord("0"): lambda machine: machine.stack.pop(),
    ord("1"): lambda machine: machine.above_mark().clear(),
    ord("N"): _constant(None),
    0x88: _constant(True),
    0x89: _constant(False),
    ord("J"): _read("<i"),
    ord("K"): _read("<B"),
    ord("M"): _read("<H"),
    0x8A: _long,
    ord("G"): _read(">d"),
    ord("X"): _text("<I"),
    0x8C: _text("<B"),
    0x8D: _text("<Q"),
    ord("B"): _bytes("<I"),
    ord("C"): _bytes("<B"),
    0x8E: _bytes("<Q"),
    ord("]"): _fresh(list),
    ord("}"): _fresh(dict),
    0x8F: _fresh(set),
    ord(")"): _constant(()),
    0x85: _tuple(1),
    0x86: _tuple(2),
    0x87: _tuple(3),
    ord("t"): _collected(tuple),
    ord("l"): _collected(_listed),
    ord("d"): _collected(_dict),
    0x91: _collected(lambda items: frozenset(_key(item) for item in items)),
    ord("a"): _append,
    ord("e"): _onto(_extend),
    ord("s"): _set_item,
    ord("u"): _onto(_set_items),
    0x90: _onto(_add),
    ord("q"): lambda machine: _put(machine, machine.number("<B")),
    ord("r"): lambda machine: _put(machine, machine.number("<I")),
    0x94: lambda machine: _put(machine, len(machine.memo)),
    ord("h"): lambda machine: machine.stack.append(machine.memo[machine.number("<B")]),
    ord("j"): lambda machine: machine.stack.append(machine.memo[machine.number("<I")]),
    ord("c"): lambda machine: _name(machine, machine.line(), machine.line()),
    0x93: _stack_global,
    ord("R"): _reduce,
    ord("b"): _build,
}
