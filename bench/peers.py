"""How each library is asked for each metric.

A preparer takes the arrays and returns a function without arguments; only that function is timed. Conversions that a
library's user would have done beforehand (tensors, integer labels, one-hot rows) happen in the preparer. Options make
the definitions agree where a library allows it; where it does not, NOTES says what differs.
"""

from __future__ import annotations

import peers_binned  # noqa: F401
import peers_unbinned  # noqa: F401
from registry import DISTRIBUTIONS, NOTES, PEERS

__all__ = ["DISTRIBUTIONS", "NOTES", "PEERS"]
