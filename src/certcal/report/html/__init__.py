"""Reports as HTML: one page that is complete in itself. It knows blocks and charts, not results."""

from __future__ import annotations

from certcal.report.html.elements import card
from certcal.report.html.skeleton import framed, page

__all__ = ["card", "framed", "page"]
