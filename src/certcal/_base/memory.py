"""Whether it was memory that was short: what says so comes from the system, from NumPy, Arrow, torch and the linker."""

from __future__ import annotations

import errno
import re

_WORDS = re.compile(
    r"out of memory|(can't|cannot|could not|failed to|unable to) (allocate|map)|alloc_failed|failed to map segment"
    r"|can't start new thread",
    re.IGNORECASE,
)


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether an exception, or what it was raised for, says that memory was short, of a device or of this machine.

    Examples
    --------
    >>> (
    ...     is_out_of_memory(OSError(12, "Cannot allocate memory")),
    ...     is_out_of_memory(OSError(28, "No space left on device")),
    ... )
    (True, False)
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
            return True
        if _WORDS.search(str(error)):
            return True
        error = error.__cause__ or error.__context__
    return False
