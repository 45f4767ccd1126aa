"""Who is better than whom: the order that curves of p_A give several methods, drawn as a graph.

Sun et al. (2025, appendix B.3): model A is better than model B if and only if P(p_A >= p) is higher for A at every
p >= 1/2. Curves of finitely many samples tie somewhere, and at the latest where both have come down to zero, so two
readings are kept. An edge: nowhere lower and somewhere higher. A strict edge: higher wherever the two are not both
zero. Either is transitive and has no cycles; most pairs of methods have no edge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import Any

from certcal._base.checks import InputError
from certcal._base.json import PlainValues, plain
from certcal._base.rounding import sure_text
from certcal._base.text import counted
from certcal.claims import short_text
from certcal.lab.logs._chance import OPEN, Chance
from certcal.lab.logs._dominance import (
    FIRST,
    NEITHER,
    SECOND,
    UNCLEAR,
    Dominance,
    convert_to_radii,
    decide_dominance,
    dominance_table,
    just_above,
    open_to,
)
from certcal.smoothing.robustness.distribution import PaDistribution

Edge = tuple[str, str]

# How many orders a sentence spells out, and how many pairs that have none.
_SPELLED, _FEW = 6, 3


@dataclass(frozen=True)
class DominanceGraph(
    PlainValues,
    kind="dominance graph",
    more="edges strict_edges reduced undominated hidden firm_edges",
    without="chances pairs",
):
    """Which of several methods are better than which in every setting.

    Examples
    --------
    >>> from certcal.smoothing.robustness import VoteRecord
    >>> votes = {"a": [100, 90, 80], "b": [95, 90, 70], "c": [100, 40, 40]}
    >>> found = graph_of_shares(
    ...     [PaDistribution.of(VoteRecord.of(k, 100, [1, 1, 1], sigma=1.0), name) for name, k in votes.items()]
    ... )
    >>> found.edges, found.strict_edges, found.undominated
    ((('a', 'b'), ('a', 'c')), (), ('a',))
    """

    sigma: float | None
    """The noise level; None when each method has its best over several at each radius."""
    names: tuple[str, ...]
    """Of the methods, in the order given."""
    pairs: tuple[Dominance, ...]
    """One verdict per pair."""
    averages: Mapping[str, float] = field(default_factory=dict[str, float])
    """Average certified radius of each, for what it hides; empty for the best over noise levels."""
    chances: tuple[Chance, ...] = ()
    """What of each pair's shares of votes, not of p_A itself, is beyond sampling error, all pairs together except with
    the sum of their levels; none of pairs whose noise levels differ."""

    @property
    def edges(self) -> tuple[Edge, ...]:
        """(better, worse): nowhere lower and somewhere higher."""
        return tuple(pair.edge for pair in self.pairs if pair.edge is not None)

    @property
    def strict_edges(self) -> tuple[Edge, ...]:
        """(better, worse) where the better one is higher wherever the two are not both zero."""
        return tuple(pair.edge for pair in self.pairs if pair.edge is not None and pair.everywhere)

    @property
    def reduced(self) -> tuple[Edge, ...]:
        """The fewest edges from which the others follow: what is drawn."""
        return reduction(self.edges)

    @property
    def undominated(self) -> tuple[str, ...]:
        """Methods that no other is surely better than."""
        worse = {edge[1] for edge in self.edges}
        return tuple(name for name in self.names if name not in worse)

    @property
    def firm_edges(self) -> tuple[Edge, ...]:
        """(better, worse) by P(share of votes >= p) at every p >= 1/2, beyond sampling error."""
        kept = ((each.first, each.second, each.verdict) for each in self.chances)
        return tuple((a, b) if verdict == FIRST else (b, a) for a, b, verdict in kept if verdict in (FIRST, SECOND))

    @property
    def hidden(self) -> tuple[Edge, ...]:
        """Pairs that average certified radius puts in order, larger first, and the curves do not, or not surely."""
        ordered = set(self.edges)
        found: list[Edge] = []
        for a, b in combinations(self.names, 2):
            one, other = self.averages.get(a), self.averages.get(b)
            if one is None or other is None or one == other:
                continue
            edge = (a, b) if one > other else (b, a)
            if edge not in ordered:
                found.append(edge)
        return tuple(found)

    @property
    def level(self) -> float:
        """Probability with which any of ``chances`` may be wrong."""
        return float(sum(each.level for each in self.chances))

    @property
    def open_below(self) -> float | None:
        """What is said of orders is about every p (or R) above this; None if it is about all."""
        return max((pair.open_below for pair in self.pairs if pair.open_below is not None), default=None)

    @property
    def setting(self) -> str:
        """Which curves were compared."""
        if self.sigma is not None:
            since = "1/2" if self.open_below is None else f"{just_above(self.open_below)} (open below)"
            return f"at sigma {self.sigma:g}, by P(p_A >= p) at every p >= {since}"
        first = next(pair for pair in self.pairs if pair.alpha is not None)
        level = "" if first.alpha is None else short_text(first.alpha, "upper")
        since = "" if self.open_below is None else f" from radius {just_above(self.open_below)} on"
        return f"with the best sigma at each radius{since} (draws = {first.draws}, alpha = {level})"

    @property
    def statement(self) -> str:
        """Who is better than whom, who is undominated, and what is assumed."""
        edges = self.reduced
        orders = [f"{a} is better than {b}" for a, b in edges]
        unclear = sum(pair.verdict == UNCLEAR for pair in self.pairs)
        surely = "surely " if unclear else ""
        better = _first_few(orders) if orders else f"no method is {surely}better than another"
        text = f"{self.setting} on these samples, {better}"
        implied = len(self.edges) - len(edges)
        text += f" ({implied} more {'pair follows' if implied == 1 else 'pairs follow'})" if implied else ""
        if edges:
            text += f"; {'not surely dominated' if unclear else 'undominated'}: {_first_few(list(self.undominated))}"
        if unclear:
            text += f"; {unclear} {'pair' if unclear == 1 else 'pairs'} cannot be told from what the logs print"
        return f"{text}; an estimate, since shares of votes stand for p_A."

    @property
    def contradiction(self) -> str | None:
        """What average certified radius says beyond the curves; None where it says nothing more."""
        if not self.hidden:
            return None
        ranked = sorted(self.averages, key=lambda name: -self.averages[name])
        order = ranked[0]
        for before, after in pairwise(ranked):
            order += f" {'>' if self.averages[before] > self.averages[after] else '='} {after}"
        total, backwards = len(self.pairs), sum((b, a) in self.edges for a, b in self.hidden)
        unclear = {frozenset((pair.first, pair.second)) for pair in self.pairs if pair.verdict == UNCLEAR}
        none = [(a, b) for a, b in self.hidden if (b, a) not in self.edges and frozenset((a, b)) not in unclear]
        left = sum(frozenset(edge) in unclear for edge in self.hidden)
        agreed = sum(self.averages[a] > self.averages[b] for a, b in self.edges)
        parts = [f"{agreed} of {total} {'pair' if total == 1 else 'pairs'} in that order"]
        parts += [f"{backwards} in the opposite one"] if backwards else []
        parts += [f"{len(none)} in none"] if none else []
        parts += [f"leave {left} open"] if left else []
        which = f": {'; '.join(f'{a} and {b}' for a, b in none)}" if 0 < len(none) <= _FEW else ""
        return f"average certified radius ranks {order}, but the curves put {' and '.join(parts)}{which}."

    @property
    def beyond_chance(self) -> str | None:
        """What holds for shares of votes in the population of samples, in a sentence; None where nothing was tested."""
        if not self.chances:
            return None
        firm = [f"{a} is better than {b}" for a, b in self.firm_edges]
        crossing = [f"{each.first} and {each.second} cross" for each in self.chances if each.verdict == NEITHER]
        partly = [each for each in self.chances if each.stretches and each.verdict == OPEN]
        parts = [_first_few(each) for each in (firm, crossing) if each]
        if len(partly) > _FEW:
            parts.append(f"{len(partly)} {'other ' if parts else ''}pairs differ over a part of all p")
        else:
            parts += [each.where for each in partly]
        told = "; ".join(parts) or "nothing, neither from p = 0.5 on nor around 0.9"
        many = "this pair" if len(self.chances) == 1 else f"all {len(self.chances)} pairs together"
        n = self.chances[0].n
        sure = sure_text(float(f"{self.level:.12g}"))  # a sum of equal shares may be off by a rounding
        beyond = f"beyond the sampling error of {counted(n, 'sample')} ({sure}, for {many})"
        return f"{self.chances[0].measure} rather than p_A, and {beyond}: {told}."

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        told = (self.statement, self.contradiction, self.beyond_chance)
        return super().to_dict() | {
            "beyond_chance": plain(self.chances),
            "level": self.level if self.chances else None,
            "sentences": [each for each in told if each is not None],
        }


def graph_of_shares(
    distributions: Sequence[PaDistribution],
    averages: Mapping[str, float] | None = None,
    chances: Sequence[Chance] = (),
) -> DominanceGraph:
    """The graph of methods at one noise level, by P(p_A >= p) for p >= 1/2."""
    names = _distinct([each.name for each in distributions])
    if len({each.sigma for each in distributions}) > 1:
        raise InputError("distributions have different sigma; compare their best over sigma at each radius instead")
    pairs = dominance_table(distributions)
    return DominanceGraph(distributions[0].sigma, names, pairs, dict(averages or {}), tuple(chances))


def graph_of_best(families: Mapping[str, Sequence[PaDistribution]], *, n: int, alpha: float = 0.001) -> DominanceGraph:
    """The graph of methods that may choose σ anew at each radius, by certified accuracy at one budget and level."""
    names = _distinct(list(families))
    curves = {name: [convert_to_radii(each, n, alpha) for each in several] for name, several in families.items()}
    limit = open_to(each for several in curves.values() for each in several)
    pairs = tuple(
        decide_dominance(a, b, curves[a], curves[b], (n, alpha), open_to=limit) for a, b in combinations(names, 2)
    )
    return DominanceGraph(None, names, pairs)


def reduction(edges: Sequence[Edge]) -> tuple[Edge, ...]:
    """The transitive reduction of an order given with all its edges: those that no third one lies between."""
    below: dict[str, set[str]] = {}
    for a, b in edges:
        below.setdefault(a, set()).add(b)
    return tuple((a, b) for a, b in edges if not any(b in below.get(c, ()) for c in below[a]))


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    if len(names) < 2:
        raise InputError("a graph of fewer than two methods says nothing; pass at least two")
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two methods are called {name!r}; give them different names")
    return tuple(names)


def _first_few(texts: Sequence[str], most: int = _SPELLED) -> str:
    """Several texts as one, the first few spelled out."""
    shown = list(texts[:most])
    more = len(texts) - len(shown)
    if more:
        return f"{', '.join(shown)} and {more} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
