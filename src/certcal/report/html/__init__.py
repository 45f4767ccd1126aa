"""Reports as HTML: one page that is complete in itself. It knows blocks and charts, not results."""

from __future__ import annotations

from certcal.report.html.card import notebook_card
from certcal.report.html.elements import card
from certcal.report.html.skeleton import page

__all__ = ["card", "notebook_card", "page"]
