"""Write pinned numbers anew, on purpose: ``python -m tests.pinned [--force] NAME...``; ``all`` stands for every case.

A file that exists and would change is shown with what would change, and is replaced with ``--force`` only.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.pinned.cases import CALLS
from tests.pinned.making import BY_NAME, NUMBERS, numbers_of
from tests.pinned.reading import differences


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
                    lines = differences(old, made, 1e-12) or ["something is new"]
                    sys.stderr.write("\n  ".join([f"{name}: not replaced without --force", *lines[:10]]) + "\n")
                    continue
            path.write_text(json.dumps(made, ensure_ascii=False, separators=(",", ":")) + "\n", "utf-8")
            sys.stdout.write(f"wrote {path.name}\n")
    return refused


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
