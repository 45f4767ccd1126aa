"""Where a page comes from, as a part of it."""

from __future__ import annotations

from datetime import datetime

import certcal
from certcal._html import Child, Raw, definition_list, element, join, table, visible
from certcal.report.page._pieces import clipped, note, scrolling, shown, unbroken
from certcal.report.provenance import Provenance

_LONGEST = 4000
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def moment(created: str) -> Raw:
    """A point in time for people, and for machines as it was given."""
    try:
        moment = datetime.fromisoformat(created)
    except ValueError:
        return shown(created)
    zone = f" {moment.tzname()}" if moment.tzinfo is not None else ""
    words = f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year}, {moment.hour:02d}:{moment.minute:02d}{zone}"
    return element("time", words, datetime=created)


def _command(command: str) -> Raw:
    """The command, to be copied where the page can show it as it was."""
    said = clipped(command, _LONGEST)
    whole = visible(said) == command
    copy = element("button", "Copy", type="button", data_copy="command", data_needs_script=True, hidden=True)
    changed = "This command makes the page again. It is shortened here, or has characters that a page cannot show; the "
    changed += "JSON in this page has it word by word:"
    return join(
        element("p", "This command makes the page again:" if whole else changed),
        element(
            "div",
            element("pre", element("code", unbroken(said)), tabindex=0, id="command"),
            copy if whole else None,
            class_="command",
        ),
    )


def origin(provenance: Provenance | None, left_out: str) -> Raw:
    """The last part of a page: how to make it again, and its numbers for machines.

    Parameters
    ----------
    provenance
        Where the page comes from, if that is known.
    left_out
        A sentence about what is missing in the numbers for machines; may be empty.
    """
    made = Provenance(versions={"certcal": certcal.__version__}) if provenance is None else provenance
    command = made.command_line
    versions = ", ".join(f"{name} {version}" for name, version in made.versions.items())
    facts: list[tuple[Child, Child]] = [("Versions", versions)]
    if made.seeds:
        facts.append(("Seeds", ", ".join(f"{name} {seed}" for name, seed in made.seeds.items())))
    files_read = [
        (shown(name), f"{size:,}", element("code", digest, class_="digest")) for name, size, digest in made.inputs
    ]
    return join(
        _command(command)
        if command is not None
        else element("p", "No command was recorded: the page was made from Python."),
        definition_list(facts, class_="facts"),
        scrolling(
            table(["file", "bytes", "SHA-256"], files_read, "Files that were read", numeric=(1,)),
            "Files that were read",
        )
        if files_read
        else None,
        [note(element("bdi", unbroken(clipped(each, 1000)))) for each in made.notes],
        note(left_out) if left_out else None,
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
        element(
            "noscript",
            note("All numbers are also in this file itself, as JSON, in the element with the id “data”."),
        ),
    )
