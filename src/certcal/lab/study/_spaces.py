"""The two search spaces of NATS-Bench (Dong et al. 2021): which operations a cell has, and how wide its layers are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, permutations, product
from typing import Any, Protocol

from certcal._base.checks import InputError

OPERATIONS = ("none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3")
CHANNELS = (8, 16, 24, 32, 40, 48, 56, 64)

_WEIGHTED = ("nor_conv_1x1", "nor_conv_3x3")
_NODES = 4
EDGES = tuple((source, target) for target in range(1, _NODES) for source in range(target))
_LAYERS = 5


class Space(Protocol):
    """A set of architectures, and which of them differ in one choice."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[str]: ...

    def __contains__(self, name: object, /) -> bool: ...

    def neighbours(self, name: str) -> list[str]:
        """The architectures that differ from this one in one choice, in a fixed order."""
        ...


@dataclass(frozen=True)
class Cell:
    """A cell: four nodes, and an operation on each of the six edges between them.

    Every node is the sum of what its incoming edges make of earlier nodes; the last one is the output.

    Examples
    --------
    >>> cell = Cell.parse("|nor_conv_3x3~0|+|none~0|skip_connect~1|+|none~0|none~1|nor_conv_1x1~2|")
    >>> cell.operations
    ('nor_conv_3x3', 'none', 'skip_connect', 'none', 'none', 'nor_conv_1x1')
    >>> cell.function == Cell.parse("|nor_conv_3x3~0|+|none~0|none~1|+|none~0|nor_conv_1x1~1|none~2|").function
    True
    """

    operations: tuple[str, ...]
    """One per edge, in the order 0→1, 0→2, 1→2, 0→3, 1→3, 2→3."""

    def __post_init__(self) -> None:
        if len(self.operations) != len(EDGES):
            raise InputError(f"operations has {len(self.operations)} entries; a cell has {len(EDGES)} edges")
        for index, name in enumerate(self.operations):
            if name not in OPERATIONS:
                raise InputError(f"operations[{index}] is {name!r}; use one of {', '.join(OPERATIONS)}")

    @classmethod
    def parse(cls, text: str) -> Cell:
        """A cell from NATS-Bench's way of writing it."""
        found: list[str] = []
        nodes = text.strip().split("+")
        complaint = InputError(
            f"{text!r} is not a cell; write it as NATS-Bench does, such as {Cell((OPERATIONS[1],) * 6)}"
        )
        if len(nodes) != _NODES - 1:
            raise complaint
        for target, node in enumerate(nodes, start=1):
            parts = node.split("|")
            if len(parts) != target + 2 or parts[0] or parts[-1]:
                raise complaint
            for source, part in enumerate(parts[1:-1]):
                name, mark, number = part.partition("~")
                if not mark or number != str(source):
                    raise complaint
                found.append(name)
        return cls(tuple(found))

    def __str__(self) -> str:
        edges = iter(self.operations)
        nodes = ("".join(f"{next(edges)}~{source}|" for source in range(target)) for target in range(1, _NODES))
        return "+".join(f"|{node}" for node in nodes)

    @property
    def published(self) -> str:
        """What NAS-Bench-201 counts as one cell: skipped edges are short-cut and sums sorted, but zeros stay terms."""
        nodes = ["0"]
        edges = iter(self.operations)
        for target in range(1, _NODES):
            terms: list[str] = []
            for source in range(target):
                name = next(edges)
                if name == "none" or nodes[source] == "#":
                    terms.append("#")
                else:
                    terms.append(nodes[source] if name == "skip_connect" else f"({nodes[source]})@{name}")
            nodes.append("+".join(sorted(terms)))
        return nodes[-1]

    @cached_property
    def function(self) -> str:
        """What networks of this cell can compute, as a sum: cells with one text compute the same with the same weights.

        Zeros are left out (an operation takes them to zeros), sums of sums are one sum, and an average pooled sum is
        the sum of the pooled averages. Each convolution has weights of its own, so those of one kind that are given
        the same are numbered, in the way whose text comes first in the order of the alphabet.
        """
        plain = self._terms({})
        alike: dict[tuple[str, str], list[int]] = {}
        for edge, (name, (source, _)) in enumerate(zip(self.operations, EDGES, strict=True)):
            if name in _WEIGHTED:
                alike.setdefault((name, " + ".join(plain[source])), []).append(edge)
        edges = list(chain(*alike.values()))
        numberings = product(*(permutations(range(1, len(each) + 1)) for each in alike.values()))
        return (
            min(" + ".join(self._terms(dict(zip(edges, chain(*numbers), strict=True)))[-1]) for numbers in numberings)
            or "0"
        )

    def _terms(self, numbers: Mapping[int, int]) -> list[list[str]]:
        """The terms of every node's sum, some convolutions being numbered."""
        nodes: list[list[str]] = [["x"]]
        for target in range(1, _NODES):
            terms: list[str] = []
            for edge, (source, end) in enumerate(EDGES):
                if end != target or not nodes[source]:
                    continue
                name = self.operations[edge]
                if name == "skip_connect":
                    terms.extend(nodes[source])
                elif name == "avg_pool_3x3":
                    terms.extend(f"{name}({term})" for term in nodes[source])
                elif name in _WEIGHTED:
                    terms.append(f"{name}#{numbers.get(edge, 0)}({' + '.join(nodes[source])})")
            nodes.append(sorted(terms))
        return nodes


class TopologySpace:
    """All 15,625 cells.

    NAS-Bench-201 counts 6,466 of them as different; by what they can compute (:attr:`Cell.function`) there are 5,044.

    Examples
    --------
    >>> space = TopologySpace()
    >>> len(space), len(space.unique()), len(space.unique("function"))
    (15625, 6466, 5044)
    >>> len(space.neighbours(next(iter(space))))
    24
    """

    def __len__(self) -> int:
        return len(OPERATIONS) ** len(EDGES)

    def __iter__(self) -> Iterator[str]:
        return (str(cell) for cell in self.cells())

    def __contains__(self, name: object, /) -> bool:
        try:
            return isinstance(name, str) and str(Cell.parse(name)) == name
        except InputError:
            return False

    def cells(self) -> Iterator[Cell]:
        """Every cell, the first edge changing slowest."""
        return (Cell(operations) for operations in product(OPERATIONS, repeat=len(EDGES)))

    def unique(self, rule: str = "published") -> list[str]:
        """One cell for each that differs from the others, the first of its kind.

        Parameters
        ----------
        rule
            "published" for the count of NAS-Bench-201, "function" for cells that compute different functions.
        """
        if rule not in ("published", "function"):
            raise InputError(f"rule is {rule!r}; use 'published' or 'function'")
        first: dict[str, str] = {}
        for cell in self.cells():
            first.setdefault(getattr(cell, rule), str(cell))
        return list(first.values())

    def neighbours(self, name: str) -> list[str]:
        """The 24 cells with another operation on one edge."""
        operations = Cell.parse(name).operations
        return [
            str(Cell((*operations[:edge], other, *operations[edge + 1 :])))
            for edge in range(len(EDGES))
            for other in OPERATIONS
            if other != operations[edge]
        ]


class SizeSpace:
    """Widths of five layers, written as "8:16:24:32:40".

    Parameters
    ----------
    channels
        The widths to choose from; NATS-Bench's eight by default, which makes 32,768 architectures.

    Examples
    --------
    >>> space = SizeSpace()
    >>> len(space), "8:8:8:8:64" in space, len(space.neighbours("8:8:8:8:64"))
    (32768, True, 35)
    """

    def __init__(self, channels: Sequence[int] = CHANNELS) -> None:
        if not channels or any(width < 1 for width in channels) or len(set(channels)) != len(channels):
            raise InputError(f"channels is {list(channels)}; pass different widths of at least 1")
        self.channels = tuple(channels)

    def __len__(self) -> int:
        return len(self.channels) ** _LAYERS

    def __iter__(self) -> Iterator[str]:
        return (_widths_text(widths) for widths in product(self.channels, repeat=_LAYERS))

    def __contains__(self, name: object, /) -> bool:
        try:
            return isinstance(name, str) and _widths_text(self.parse(name)) == name
        except InputError:
            return False

    def parse(self, name: str) -> tuple[int, ...]:
        """The widths."""
        parts = name.split(":")
        widths = tuple(int(part) if part.isdecimal() else 0 for part in parts)
        if len(widths) != _LAYERS or any(width not in self.channels for width in widths):
            raise InputError(
                f"{name!r} is not a size; write {_LAYERS} of {', '.join(map(str, self.channels))}, "
                f"such as {_widths_text(self.channels[:1] * _LAYERS)}"
            )
        return widths

    def neighbours(self, name: str) -> list[str]:
        """The sizes with another width of one layer."""
        widths = self.parse(name)
        return [
            _widths_text((*widths[:layer], other, *widths[layer + 1 :]))
            for layer in range(_LAYERS)
            for other in self.channels
            if other != widths[layer]
        ]


def _widths_text(widths: Sequence[Any]) -> str:
    return ":".join(str(width) for width in widths)
