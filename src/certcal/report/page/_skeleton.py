"""One page that is complete in itself: no request leaves it, and nothing but its own style and script is run."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any

import certcal
from certcal._checks import InputError
from certcal._files import refuse_overwriting, write_bytes
from certcal._html import Child, Raw, element, join
from certcal.report.page._origin import moment, origin
from certcal.report.page._pieces import clipped, shown
from certcal.report.provenance import Provenance

# Pages stay below 6 MB; what is drawn takes less than a third of it.
_MOST_DATA = 4_000_000


@dataclass(frozen=True)
class Page:
    """A page as text. Notebooks show it in a frame of its own when it is the last value of a cell.

    Attributes
    ----------
    title
        What the page is called.
    html
        All of it.

    Examples
    --------
    >>> page = document("Three samples", [Section("numbers", "Numbers", Raw("<p>1</p>"))], {"n": 3})
    >>> page
    Page('Three samples')
    >>> page.html.startswith("<!DOCTYPE html>")
    True
    """

    title: str
    html: str

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the page, whole or not at all.

        Parameters
        ----------
        path
            Where to; it ends in .html.
        force
            Replace an existing file.
        """
        target = Path(path)
        if target.suffix.lower() not in (".html", ".htm"):
            raise InputError(f"{target}: pages are written as .html; choose this ending")
        refuse_overwriting(target, force=force)
        write_bytes(target, self.html.encode("utf-8"), force=force)
        return target

    def __repr__(self) -> str:
        return f"Page({self.title!r})"

    def _repr_html_(self) -> str:
        return element(
            "iframe",
            srcdoc=self.html,
            sandbox="allow-scripts allow-downloads",
            allow="clipboard-write",
            width="100%",
            height=760,
            title=self.title,
            loading="lazy",
        )


@dataclass(frozen=True)
class Section:
    """A part of a page: a key of our own making (its address on the page), a title and markup."""

    key: str
    title: str
    content: Child


def document(
    title: str,
    sections: Sequence[Section],
    data: Mapping[str, Any],
    *,
    headline: Child = None,
    eyebrow: str = "Calibration report",
    source: str | None = None,
    description: str | None = None,
    provenance: Provenance | None = None,
    left_out: str = "",
    smaller: Iterable[tuple[str, Mapping[str, Any]]] = (),
) -> Page:
    r"""A page from its parts. Provenance and the numbers for machines are added as its last section.

    Parameters
    ----------
    title
        What was asked.
    sections
        In their order; None of their keys may be "headline", "provenance" or "data".
    data
        What ``--json`` prints; kept in the page, with the provenance under "provenance", and offered for download.
    headline
        The claim that the page is about, such as :func:`certcal.report.page._claims.card` makes.
    eyebrow
        Few words above the title.
    source, description
        Where the numbers come from: a name, and a line about it.
    provenance
        How to make the page again.
    left_out
        A sentence saying what is missing in ``data`` already.
    smaller
        What to keep instead when ``data`` would make the page too large: a sentence saying what was left out, and the
        rest. The first that fits is taken.

    Examples
    --------
    >>> page = document("<b>", [], {"name": "</script>"})
    >>> "<title>&lt;b&gt;</title>" in page.html, r'{"name":"\u003c/script\u003e"}' in page.html
    (True, True)
    """
    kept, missing = _kept(chain(((left_out, data),), smaller), provenance)
    style, script = _resource("style.css"), _resource("script.js")
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    last = Section("provenance", "How to check it", origin(provenance, missing))
    everything = [*sections, last]
    body = join(
        element("a", "Skip to the content", href="#content", class_="skip"),
        _patterns(),
        element(
            "header",
            element("p", eyebrow, class_="eyebrow"),
            element("h1", shown(title)),
            element("p", "From ", shown(source), class_="source") if source else None,
            element("p", shown(description, 400), class_="about") if description else None,
            element("p", "Made on ", moment(provenance.created), class_="about")
            if provenance is not None and provenance.created
            else None,
            class_="page-header",
        ),
        element(
            "nav",
            element(
                "ul",
                [element("li", element("a", each.title, href=f"#{each.key}")) for each in everything],
                class_="scroll",
            ),
            aria_label="Sections",
        ),
        element(
            "main",
            element("section", headline, id="headline", aria_label="The claim") if headline is not None else None,
            [
                element(
                    "section",
                    element("h2", each.title, id=f"{each.key}-heading"),
                    each.content,
                    id=each.key,
                    aria_labelledby=f"{each.key}-heading",
                )
                for each in everything
            ],
            id="content",
            tabindex="-1",
        ),
        element(
            "footer",
            element("p", f"Made with certcal {certcal.__version__}. This page needs no network and loads nothing."),
        ),
        element("script", Raw(kept), type="application/json", id="data"),
        element("script", Raw(script)),
    )
    head = join(
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="generator", content=f"certcal {certcal.__version__}"),
        element("title", clipped(title)),
        element("style", Raw(style)),
    )
    root = element("html", element("head", head), element("body", body), lang="en")
    return Page(clipped(title), f"<!DOCTYPE html>\n{root}\n")


def _kept(candidates: Iterable[tuple[str, Mapping[str, Any]]], provenance: Provenance | None) -> tuple[str, str]:
    """The text of the numbers that stays in the page, and what is to be said about it."""
    more = {} if provenance is None else {"provenance": provenance.to_dict()}
    for missing, candidate in candidates:
        text = embedded({**candidate, **more})
        if len(text) <= _MOST_DATA:
            return text, missing
    said = "The numbers are too many to be kept in this page; write them to a file of their own, as JSON."
    return embedded({"left_out": said, **more}), said


def embedded(document: Mapping[str, Any]) -> str:
    r"""JSON that can stand inside a script element: no character of it means anything to HTML.

    Examples
    --------
    >>> embedded({"name": "</script>&\u2028"})
    '{"name":"\\u003c/script\\u003e\\u0026\\u2028"}'
    """
    text = json.dumps(document, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def _resource(name: str) -> str:
    return files("certcal.report.page").joinpath(name).read_text("utf-8")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}"


def _patterns() -> Raw:
    """Hatchings that the style sheet refers to, so that colour is never the only mark."""

    def pattern(name: str, path: str) -> Raw:
        return element(
            "pattern",
            element("rect", width=6, height=6),
            element("path", d=path),
            id=name,
            width=6,
            height=6,
            patternUnits="userSpaceOnUse",
        )

    return element(
        "svg",
        element(
            "defs",
            pattern("hatch-over", "M-1 1L1 -1M0 6L6 0M5 7L7 5"),
            pattern("hatch-under", "M-1 5L1 7M0 0L6 6M5 -1L7 1"),
            pattern("hatch-dots", "M2 3a1 1 0 1 0 2 0a1 1 0 1 0-2 0Z"),
            pattern("hatch-level", "M0 3H6"),
        ),
        class_="patterns",
        aria_hidden="true",
        width=0,
        height=0,
    )
