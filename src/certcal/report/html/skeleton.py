"""One page that is complete in itself: no request leaves it, and nothing but its own style and script is run."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any

import certcal
from certcal._base.json import for_json
from certcal._base.text import capital
from certcal.report.document import ABOUT, Report, Section
from certcal.report.html.answer import first_screen, scale_picture, to_copy
from certcal.report.html.blocks import Writer
from certcal.report.html.elements import Child, Raw, definition_list, element, join, table, visible
from certcal.report.html.markup import SENTENCE, as_markup, clip_middle, details, note, scrolling, unbroken
from certcal.report.provenance import Provenance
from certcal.report.scale import Scale
from certcal.verdict import Judgement, Outcome, Verdict, VerdictRow

# Pages stay below 6 MB; what is drawn takes less than a third of it.
_MOST_DATA = 4_000_000
_LONGEST_COMMAND = 4000
_MOST_JUDGED = 12
_OUTCOME_SIGNS = {"met": "✓", "not met": "✗", "not shown": "?"}
_CLASSES = {"met": "pass", "not met": "fail", "not shown": "open"}
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def page(report: Report) -> str:
    r"""A report as one HTML file.

    Examples
    --------
    >>> made = page(Report("<b>", [], data={"name": "</script>"}))
    >>> "<title>&lt;b&gt;</title>" in made, r'{"name":"\u003c/script\u003e"}' in made
    (True, True)
    """
    report = report.for_page()
    kept, missing = _json_for_page(report)
    style, script = resource("style.css"), resource("script.js")
    body = join(
        element("a", "Skip to the content", href="#content", class_="skip"),
        patterns(),
        _page_content(report, missing),
        element(
            "footer",
            element("p", f"Created with certcal {certcal.__version__}. This page loads nothing from the network."),
        ),
        element("script", Raw(kept), type="application/json", id="data"),
    )
    return document_of(report.title, body, (style,), (script,))


def document_of(title: str, body: Raw, styles: Sequence[str], scripts: Sequence[str]) -> str:
    """A document with the first of some style sheets and scripts; those, and no others, may ever be used in it."""
    allowed = (" ".join(f"'{_csp_hash(each)}'" for each in some) for some in (styles, scripts))
    policy = "default-src 'none'; style-src {}; script-src {}; img-src data:; base-uri 'none'; form-action 'none'"
    head = join(
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy.format(*allowed)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="generator", content=f"certcal {certcal.__version__}"),
        element("title", clip_middle(title)),
        element("style", Raw(styles[0])),
    )
    whole = element("body", body, element("script", Raw(scripts[0])))
    return f"<!DOCTYPE html>\n{element('html', element('head', head), whole, lang='en')}\n"


def _page_content(report: Report, missing: str) -> Raw:
    every = (Section("", [report.picture, report.headline]), *report.sections, *report.appendix)
    writer = Writer(block for section in every for block in section.blocks)
    sections = [each for each in report.sections if not each.folded]
    appendix = [*(each for each in report.sections if each.folded), *report.appendix]
    addresses = _addresses(sections)
    contents = [(address, as_markup(each.title)) for address, each in zip(addresses, sections, strict=True)]
    contents += [("appendix", "Appendix")] * bool(appendix) + [("reproducibility", "Reproducibility")]
    return join(
        element("header", element("h1", as_markup(report.title)), _about_line(report), class_="page-header"),
        element(
            "main",
            element("section", _summary(report, writer), id="headline", aria_label="Summary"),
            element(
                "nav",
                element(
                    "ul",
                    [element("li", element("a", words, href=f"#{address}")) for address, words in contents],
                    class_="scroll",
                ),
                aria_label="Sections",
            ),
            [
                _section(address, as_markup(each.title), writer.blocks(each.blocks, level=3))
                for address, each in zip(addresses, sections, strict=True)
            ],
            element("div", [note(as_markup(each, SENTENCE)) for each in report.notes], class_="notes")
            if report.notes
            else None,
            _section(
                "appendix",
                "Appendix",
                [
                    details(element("h3", as_markup(each.title)), writer.blocks(each.blocks, level=4), class_="fold")
                    for each in appendix
                ],
            )
            if appendix
            else None,
            _section("reproducibility", "Reproducibility", _reproducibility_section(report.provenance, missing)),
            id="content",
            tabindex="-1",
        ),
    )


def _summary(report: Report, writer: Writer) -> Raw:
    """The answer with its picture, then the headline's blocks beside what the answer assumes and does not say."""
    judged = _verdict_element(report.verdict) if report.verdict is not None else None
    answer = report.answer
    if not answer:
        return join(judged, writer.blocks(report.headline, level=2))
    picture = writer.blocks(report.picture, level=3)
    return first_screen(answer, picture, judged, writer.blocks(report.below_answer, level=3))


def _section(address: str, title: Child, content: Child) -> Raw:
    heading = f"{address}-heading"
    return element("section", element("h2", title, id=heading), content, id=address, aria_labelledby=heading)


def _addresses(sections: Sequence[Section]) -> list[str]:
    """Where sections are found on the page: by the plain letters of their titles, each once."""
    found: list[str] = []
    for place, section in enumerate(sections, 1):
        words = "-".join(re.findall(r"[a-z0-9]+", section.title[:80].lower()))
        address = f"section-{words or place}"
        found.append(address if address not in found else f"{address}-{place}")
    return found


def _verdict_element(verdict: Verdict) -> Raw:
    """Every requirement with its sign, those that are not met first; of very many the first ones."""
    rows = verdict.table()[:_MOST_JUDGED]
    left = len(verdict.worst_first) - len(rows)
    several = len(rows) > 1
    lines = _verdict_table(verdict, rows) if several else _judgement_line(verdict.decisive)
    more = note(f"{left} more are in the JSON of this page.") if left else None
    summary = element("p", as_markup(verdict.summary, SENTENCE)) if verdict.summary else None
    beside = note(as_markup(verdict.note, SENTENCE)) if verdict.note else None
    scale = None if several else Scale.of(verdict.decisive)
    drawn = None if scale is None else scale_picture(scale)
    return element("div", summary, lines, drawn, more, beside, class_=f"verdict {_CLASSES[verdict.outcome]}")


def _judgement_line(one: Judgement) -> Raw:
    return element("p", _sign(one.outcome), as_markup(one.sentence, SENTENCE), class_=_CLASSES[one.outcome])


def _sign(outcome: Outcome) -> Raw:
    return element("span", _OUTCOME_SIGNS[outcome], aria_hidden="true")


def _verdict_table(verdict: Verdict, rows: Sequence[VerdictRow]) -> Raw:
    """A row per requirement, with where it was judged; below what was found, how sure it is and what would show it."""

    def with_remark(text: str, remark: str) -> Child:
        return [as_markup(text, SENTENCE), element("small", as_markup(remark, SENTENCE)) if remark else None]

    def cells(row: VerdictRow) -> Iterable[Child]:
        yield element("span", _sign(row.verdict), f" {row.verdict}", class_=_CLASSES[row.verdict])
        yield with_remark(row.requirement, row.where)
        yield with_remark(row.found, verdict.beside(row))
        yield as_markup(row.limit, SENTENCE)

    found = f"found, {verdict.sure}" if verdict.sure else "found"
    return table(("verdict", "requirement", found, "limit"), map(cells, rows), class_="judged")


def _about_line(report: Report) -> Raw | None:
    given = {**{name: report.about[name] for name in ABOUT if name in report.about}, **report.about}
    pairs: list[tuple[Child, Child]] = [
        (as_markup(capital(name), 80), as_markup(text, 400)) for name, text in given.items()
    ]
    pairs += [("Source", as_markup(report.source))] if report.source else []
    pairs += [("Contents", as_markup(report.description, 400))] if report.description else []
    if report.provenance is not None and report.provenance.created:
        pairs.append(("Created", _time_element(report.provenance.created)))
    pairs += [("Not given", ", ".join(report.not_given))] if report.not_given else []
    lines = [element("div", element("dt", name), element("dd", text)) for name, text in pairs]
    return element("dl", lines, class_="about") if lines else None


def _time_element(created: str) -> Raw:
    """A point in time for people, and for machines as it was given."""
    try:
        moment = datetime.fromisoformat(created)
    except ValueError:
        return as_markup(created)
    zone = f" {moment.tzname()}" if moment.tzinfo is not None else ""
    words = f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year}, {moment.hour:02d}:{moment.minute:02d}{zone}"
    return element("time", words, datetime=created)


def _command_element(command: str) -> Raw:
    said = clip_middle(command, _LONGEST_COMMAND)
    whole = visible(said) == command
    changed = "This command reproduces the page. It is shortened here, or has characters that a page cannot show; the "
    changed += "JSON in this page has it word by word:"
    return join(
        element("p", "This command reproduces the page:" if whole else changed),
        to_copy(command, "command", _LONGEST_COMMAND, whole=whole),
    )


def _reproducibility_section(provenance: Provenance | None, missing: str) -> Raw:
    made = Provenance(versions={"certcal": certcal.__version__}) if provenance is None else provenance
    facts: list[tuple[Child, Child]] = [
        (name, as_markup(", ".join(f"{each} {value}" for each, value in values.items()), SENTENCE))
        for name, values in (("Versions", made.versions), ("Seeds", made.seeds))
        if values
    ]
    inputs = [
        (as_markup(name), f"{size:,}", element("code", clip_middle(digest), class_="digest"))
        for name, size, digest in made.inputs
    ]
    facts += [
        (f"Fingerprint of the {name}", element("code", clip_middle(digest), class_="digest"))
        for name, digest in made.fingerprints.items()
    ]
    command = made.command_line
    return join(
        _command_element(command)
        if command is not None
        else element("p", "No command was recorded; created from Python."),
        definition_list(facts, class_="facts") if facts else None,
        scrolling(table(["file", "bytes", "SHA-256"], inputs, "Input files", numeric=(1,)), "Input files")
        if inputs
        else None,
        [note(element("bdi", unbroken(clip_middle(each, 1000)))) for each in made.notes],
        note(as_markup(missing, 1000)) if missing else None,
        element(
            "p",
            element(
                "a",
                "Download the numbers (JSON)",
                href="#data",
                download="certcal.json",
                class_="button",
                data_download="data",
                data_needs_script=True,
                hidden=True,
            ),
        ),
        element("noscript", note("The numbers are also in this file, as JSON, in the element with the id “data”.")),
    )


def _json_for_page(report: Report) -> tuple[str, str]:
    """The text of the numbers that stays in the page, and a sentence about what was left out."""
    more: dict[str, Any] = {"page": report.data["page"]} if "page" in report.data else {}
    more |= {} if report.provenance is None else {"provenance": report.provenance.to_dict()}
    if report.verdict is not None:
        own = report.data.get("headline")
        more |= {"headline": report.verdict.decisive.headline(own), "verdict": report.verdict.to_dict()}
    for smaller in (lambda: ("", report.data), *report.smaller):
        missing, data = smaller()
        text = _as_script_json({**data, **more})
        if len(text) <= _MOST_DATA:
            return text, missing
    said = "The numbers are too many to be kept in this page; save them as JSON in a file of their own."
    return _as_script_json({"left_out": said, **more}), said


def _as_script_json(data: Mapping[str, Any]) -> str:
    """JSON that can stand inside a script element: no character of it means anything to HTML."""
    text = json.dumps(for_json(data), allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def resource(name: str) -> str:
    """A file of this package."""
    return files("certcal.report.html").joinpath(name).read_text("utf-8")


def _csp_hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}"


def patterns() -> Raw:
    """Hatchings that the style sheet refers to, so that colour is never the only mark."""
    paths = {
        "hatch-over": "M-1 1L1 -1M0 6L6 0M5 7L7 5",
        "hatch-under": "M-1 5L1 7M0 0L6 6M5 -1L7 1",
        "hatch-dots": "M2 3a1 1 0 1 0 2 0a1 1 0 1 0-2 0Z",
        "hatch-level": "M0 3H6",
    }
    patterns = [
        element(
            "pattern",
            element("rect", width=6, height=6),
            element("path", d=path),
            id=name,
            width=6,
            height=6,
            patternUnits="userSpaceOnUse",
        )
        for name, path in paths.items()
    ]
    return element("svg", element("defs", patterns), class_="patterns", aria_hidden="true", width=0, height=0)
