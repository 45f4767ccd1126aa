"""Ctrl-C between steps rather than in the middle of one."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Generator
from dataclasses import dataclass
from types import FrameType


@dataclass
class Asked:
    """Whether somebody pressed Ctrl-C since the block began."""

    to_stop: bool = False


@contextlib.contextmanager
def between_steps() -> Generator[Asked, None, None]:
    """Note the first Ctrl-C, so that a step is finished and saved; a second one interrupts at once.

    Only where an interrupt would otherwise be raised: in the main thread, with Python's own handler.
    """
    asked = Asked()
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield asked
        return

    def note(number: int, frame: FrameType | None) -> None:
        asked.to_stop = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    signal.signal(signal.SIGINT, note)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
