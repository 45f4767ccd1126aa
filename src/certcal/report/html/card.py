"""A report in a notebook: a card with the answer, a picture and the key numbers, and a link that opens the whole page.

The card is a frame of its own that cannot reach the notebook. The page is in it compressed, a few tens of kilobytes,
and is unpacked into a window when the link is followed.
"""

from __future__ import annotations

import base64
import gzip
import re

from certcal.report.charts import Chart, Panel, Stack
from certcal.report.document import Block, KeyNumbers, Report
from certcal.report.html.answer import first_screen
from certcal.report.html.blocks import Writer
from certcal.report.html.elements import Raw, element, join
from certcal.report.html.markup import as_markup, clip_middle, note
from certcal.report.html.skeleton import document_of, page, patterns, resource

_HEIGHT, _MOST_NUMBERS = 300, 5
# A page that is larger than this even when it is compressed is not kept in a notebook.
_MOST_KEPT = 400_000
_COMMENT, _CLASS = re.compile(r"/\*.*?\*/", re.DOTALL), re.compile(r"\.(-?[A-Za-z_][\w-]*)")
_NOT = re.compile(r":not\([^)]*\)")
_RULE = re.compile(r"([^{}]+)\{((?:[^{}]|\{[^{}]*\})*)\}")


def notebook_card(report: Report) -> str:
    """A report as a card for notebooks.

    Examples
    --------
    >>> notebook_card(Report("How many?", [])).startswith('<iframe srcdoc="&lt;!DOCTYPE html&gt;')
    True
    """
    packed = base64.b64encode(gzip.compress(page(report).encode("utf-8", "backslashreplace"), 9, mtime=0)).decode()
    kept = len(packed) <= _MOST_KEPT
    opening = element("a", "Open the full page", href="#", data_page="page", data_needs_script=True)
    body = join(
        patterns(),
        element(
            "main",
            element("h1", opening if kept else None, as_markup(report.title)),
            _content(report),
            None if kept else note("The page is large: save it with .save('page.html')."),
            class_="notebook",
        ),
        element("script", Raw(packed), type="text/plain", id="page") if kept else None,
    )
    whole, script = resource("style.css"), resource("card.js")
    style = _rules_for({name for each in re.findall(r'class="([^"]*)"', body) for name in each.split()}, whole)
    # The window that the card opens has the policy of the card.
    made = document_of(report.title, body, (style, whole), (script, resource("script.js")))
    return element(
        "iframe",
        srcdoc=made,
        sandbox="allow-scripts allow-downloads allow-popups allow-popups-to-escape-sandbox",
        width="100%",
        height=_HEIGHT,
        title=clip_middle(report.title),
        loading="lazy",
    )


def _content(report: Report) -> Raw:
    """The answer beside the first chart, and the key numbers; without an answer what stands on top."""
    every = [*report.of(headline=report.picture, sections=()).charts(), *report.charts()]
    charts = [each for each in every if all(isinstance(panel, Panel | Stack) for panel in each.panels)]
    drawn: list[Block] = [Chart("", each.description, each.panels) for each in charts[:1]]
    blocks = [block for section in report.sections for block in section.blocks]
    numbers = [KeyNumbers(each.numbers[:_MOST_NUMBERS]) for each in blocks if isinstance(each, KeyNumbers)][:1]
    writer = Writer(drawn)
    answer = report.answer
    if not answer:
        return writer.blocks([*report.headline, *drawn, *numbers], level=2)
    return join(first_screen(answer, writer.blocks(drawn, level=3)), writer.blocks(numbers))


def _rules_for(used: set[str], style: str) -> str:
    """The rules of a style sheet whose classes are used."""
    kept = list[str]()
    for head, inside in _RULE.findall(_COMMENT.sub("", style)):
        if head.strip().startswith("@media"):
            inside = _rules_for(used, inside)
        elif not any(used.issuperset(_CLASS.findall(_NOT.sub("", each))) for each in head.split(",")):
            continue
        if inside.strip():
            kept.append(f"{' '.join(head.split())}{{{' '.join(inside.split())}}}")
    return "".join(kept)
