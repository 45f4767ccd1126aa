"""Reports as HTML: one page that is complete in itself. It knows blocks and charts, not results."""

from __future__ import annotations

from certcal.report.html.elements import card
from certcal.report.html.skeleton import notebook_frame, page

__all__ = ["card", "notebook_frame", "page"]
