"""Write what the blocks of documentation pages print into the pages, where it is not what they show.

    python scripts/fill_outputs.py docs/cli.md README.md

Blocks that already match, with or without ``...``, stay as they are; others keep their ``...`` where that can be done.
Look at the difference before committing it: this makes pages true, not right.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
from difflib import SequenceMatcher
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.test_docs import Block, blocks, commands, matches, run_command


def tidy(text: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in text.strip("\n").splitlines())


def updated(shown: str, printed: str) -> str:
    """What is printed, cut as the page cuts it: lines that it leaves out with ``...`` stay left out.

    Each line that the page shows is looked for below the one before; where one is not found, everything is shown.
    """
    lines, made, place = printed.strip("\n").splitlines(), list[str](), 0
    for line in shown.strip("\n").splitlines():
        if line.strip() == "...":
            made.append(line)
            continue
        alike = [SequenceMatcher(None, line, other, autojunk=False).ratio() for other in lines[place:]]
        best = max(range(len(alike)), key=alike.__getitem__, default=None)
        if best is None or alike[best] < 0.5:
            return tidy(printed)
        found = lines[place + best]
        made.append(line if matches(line, found) else found)
        place += best + 1
    text = tidy("\n".join(made))
    return text if matches(text, printed) else tidy(printed)


def filled(block: Block, namespace: dict[str, object], folder: Path) -> str:
    """The block, and the output shown for it, as the page should have it."""
    if block.kind == "python":
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(block.text, namespace)
        code = f"```python\n{block.text}```"
        if block.shown is None:
            return code
        shown = block.shown if matches(block.shown, printed.getvalue()) else updated(block.shown, printed.getvalue())
        return f"{code}\n\n```text\n{shown}```"
    text = ""
    for command, shown in commands(block.text):
        printed_text = run_command(command, folder).stdout
        keep = not shown.strip() or matches(shown, printed_text)
        text += f"$ {command}\n{shown if keep else updated(shown, printed_text)}"
    return f"```console\n{text}```"


def main(pages: list[str]) -> None:
    for page in [Path(page).resolve() for page in pages]:
        text, namespace = page.read_text("utf-8"), {"__name__": "__main__"}
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            for block in blocks(text):
                if block.kind in ("python", "console"):
                    text = text.replace(block.source, filled(block, namespace, Path(folder)), 1)
        page.write_text(text, "utf-8")


if __name__ == "__main__":
    os.environ.setdefault("MPLBACKEND", "agg")
    main(sys.argv[1:])
