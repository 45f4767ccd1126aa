"""Write what the blocks of documentation pages print into the pages, where it is not what they show.

    python scripts/fill_outputs.py docs/cli.md README.md

Blocks that already match, with or without ``...``, stay as they are. Look at the difference before committing it: this
makes pages true, not right.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.test_docs import Block, blocks, commands, matches, run_command


def tidy(text: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in text.strip("\n").splitlines())


def filled(block: Block, namespace: dict[str, object], folder: Path) -> str:
    """The block, and the output shown for it, as the page should have it."""
    if block.kind == "python":
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(block.text, namespace)
        code = f"```python\n{block.text}```"
        if block.shown is None:
            return code
        shown = block.shown if matches(block.shown, printed.getvalue()) else tidy(printed.getvalue())
        return f"{code}\n\n```text\n{shown}```"
    text = ""
    for command, shown in commands(block.text):
        printed_text = run_command(command, folder).stdout
        keep = not shown.strip() or matches(shown, printed_text)
        text += f"$ {command}\n{shown if keep else tidy(printed_text)}"
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
