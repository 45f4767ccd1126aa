"""Write pinned numbers anew, on purpose: ``python -m tests.pinned [--force] NAME...``; ``all`` stands for every case.

A file that exists and would change is shown with what would change, and is replaced with ``--force`` only.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.pinned.cases import CALLS
from tests.pinned.making import BY_NAME, NUMBERS, numbers_of
from tests.pinned.reading import differences, lost_tables

MOST = 10  # lines about numbers by their place


def changes(old: Mapping[str, Any], made: Mapping[str, Any]) -> list[str]:
    """What would be replaced: numbers by their place, those of pages and terminals by what is no longer there."""
    lines = [
        line for part in ("json", "files", "value") if part in old for line in differences(old[part], made[part], 1e-12)
    ][:MOST]
    texts = {form: old[form] for form in ("terminal", "card", "notebook") if form in old} | old.get("pages", {})
    now = made | made.get("pages", {})
    for form, before in texts.items():
        if gone := {text.replace("−", "-") for text in before} - set(now.get(form, ())):
            lines.append(f"{form}: {', '.join(sorted(gone))} no longer stand there")
    for form, shapes in old["tables"].items():
        lines += [f"{form}: {line}" for line in lost_tables(shapes, made["tables"].get(form, []))]
    return lines or ["something is new"]


def main(words: list[str]) -> int:
    """Write the numbers of the cases that are named."""
    force, names = "--force" in words, [word for word in words if word != "--force"]
    known = [*BY_NAME, *CALLS]
    if unknown := sorted(set(names) - {"all", *known}):
        sys.stderr.write(f"no such case: {', '.join(unknown)}; there are {', '.join(known)}\n")
        return 2
    refused = 0
    with TemporaryDirectory() as folder:
        for name in known if "all" in names else names:
            path = NUMBERS / f"{name}.json"
            made = json.loads(json.dumps(numbers_of(Path(folder), name)))
            if path.exists():
                old = json.loads(path.read_text("utf-8"))
                if old == made:
                    continue
                if not force:
                    refused = 1
                    sys.stderr.write("\n  ".join([f"{name}: not replaced without --force", *changes(old, made)]) + "\n")
                    continue
            path.write_text(json.dumps(made, ensure_ascii=False, separators=(",", ":")) + "\n", "utf-8")
            sys.stdout.write(f"wrote {path.name}\n")
    return refused


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
