"""Entries through an engine: what ends a worker costs one row, not the study."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import closing

from certcal.engines import Engine, EngineError
from certcal.study._work import Measuring, Origin, Row, Work, failed

_NOTHING = Work(-1, ("", "", ""), Origin("", 0.0, ""), None, {}, "there is nothing to do")


def rows(engine: Engine, task: Measuring, pieces: Iterator[Work]) -> Generator[tuple[Work, Row], None, None]:
    """Each piece with its row, in any order.

    A piece that ends every worker that takes it (out of memory, a crash in native code) is a row that failed. Which
    one it was of those under way is found by trying them again in ever smaller groups. An engine that can do nothing
    at all raises its error here.
    """
    flying: dict[int, Work] = {}

    def taken() -> Iterator[Work]:
        for piece in pieces:
            flying[piece.number] = piece
            yield piece

    while True:
        try:
            for number, row in _run(engine, task, taken()):
                yield flying.pop(number), row
            return
        except EngineError:
            if not flying or not _works(engine, task):
                raise
        lost = [*flying.values()]
        flying.clear()
        yield from _in_smaller_groups(engine, task, lost)


def _run(engine: Engine, task: Measuring, pieces: Iterable[Work]) -> Iterator[tuple[int, Row]]:
    sent = pieces if engine.shares_files else (piece.shipped() for piece in pieces)
    with closing(engine.run(task, sent)) as results:
        for piece, row in results:
            yield piece.number, row


def _works(engine: Engine, task: Measuring) -> bool:
    """Whether the engine can do anything at all."""
    try:
        return len(list(_run(engine, task, [_NOTHING]))) == 1
    except EngineError:
        return False


def _in_smaller_groups(engine: Engine, task: Measuring, works: list[Work]) -> Iterator[tuple[Work, Row]]:
    rest = {work.number: work for work in works}
    try:
        for number, row in _run(engine, task, works):
            yield rest.pop(number), row
        return
    except EngineError as error:
        if len(works) == 1:
            yield works[0], failed(str(error))
            return
    left = [*rest.values()]
    middle = (len(left) + 1) // 2
    for half in (left[:middle], left[middle:]):
        if half:
            yield from _in_smaller_groups(engine, task, half)
