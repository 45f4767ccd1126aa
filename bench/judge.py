"""Which targets hold, from the rows of the cases."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from cases import OURS, TARGETS, YARDSTICK, Target
from race import Row

Results = dict[str, list[Row]]


@dataclass(frozen=True)
class Verdict:
    """A target, the ratio that was measured, and whether it holds (None: not measured)."""

    case: str
    text: str
    limit: str
    measured: float | None
    against: str
    holds: bool | None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def our_row(rows: list[Row], n: int | None = None) -> Row | None:
    """Our measurement at a size; without a size the first one, which is the case's."""
    found = (row for row in rows if row.library == OURS and n in (None, row.n))
    return next(found, None)


def speedup(rows: list[Row], peer: Row) -> float | None:
    """A peer's time over ours in the same case, whatever the sizes."""
    ours = our_row(rows)
    if ours is None or not ours.seconds or not peer.seconds:
        return None
    return peer.seconds / ours.seconds


def verdicts(results: Results) -> list[Verdict]:
    """Every target whose case was run."""
    return [_judge(target, results[target.case]) for target in TARGETS if target.case in results]


def _judge(target: Target, rows: list[Row]) -> Verdict:
    limit = f"≥ {target.at_least:g}" if target.at_least is not None else f"≤ {target.at_most:g}"
    measured, against = _copies(rows) if target.case == "memory" else _ratio(target, rows)
    holds = None
    if measured is not None:
        holds = measured >= target.at_least if target.at_least is not None else measured <= (target.at_most or 0)
    return Verdict(target.case, target.text, limit, measured, against, holds)


def _ratio(target: Target, rows: list[Row]) -> tuple[float | None, str]:
    peers = [row for row in rows if row.library != OURS and row.seconds]
    if target.against:
        peers = [row for row in peers if row.library in target.against]
    else:
        peers = [row for row in peers if row.library != YARDSTICK]
    ours = our_row(rows)
    if not peers or ours is None or not ours.seconds:
        return None, " or ".join(target.against) or "peers"
    fastest = min(peers, key=lambda row: row.seconds or 0.0)
    ratio = speedup(rows, fastest)
    return (1 / ratio if ratio and target.at_most is not None else ratio), fastest.library


def _copies(rows: list[Row]) -> tuple[float | None, str]:
    """The largest extra memory of ours, in copies of the input."""
    ours = [row for row in rows if row.library.startswith(OURS)]
    if any(row.bytes is None for row in ours):
        return None, next(row.library for row in ours if row.bytes is None)
    worst = max(ours, key=lambda row: (row.bytes or 0) / row.input_bytes)
    return (worst.bytes or 0) / worst.input_bytes, worst.library
