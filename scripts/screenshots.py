"""Pictures of the pages: `python scripts/screenshots.py` draws those of the documentation, from the real demo.

`python scripts/screenshots.py FOLDER` writes every kind of page that the browser tests use into FOLDER, in two widths,
light and dark, to be looked at after a change of the pages.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
LARGEST = 250_000

sys.path.insert(0, str(ROOT))

import certcal
from tests.browser.chromium import started
from tests.browser.making import make


def shot(
    browser: Any, page: Path, *, width: int, dark: bool = False, height: int | None = None, part: str | None = None
) -> bytes:
    """A page as PNG: its upper ``height`` pixels, all of it, or the part that a selector names."""
    context = browser.new_context(
        viewport={"width": width, "height": height or 900},
        color_scheme="dark" if dark else "light",
        device_scale_factor=1 if height is None else 1.5,
        offline=True,
    )
    tab = context.new_page()
    tab.goto(page.as_uri())
    taken = (
        tab.screenshot(full_page=height is None)
        if part is None
        else tab.screenshot(full_page=True, clip=around(tab, part))
    )
    context.close()
    return taken


def around(tab: Any, part: str) -> dict[str, float]:
    """Where a part of a page is, with a margin at its sides and without the line above it."""
    box, margin = tab.locator(part).bounding_box(), 20
    return {"x": box["x"] - margin, "y": box["y"] + 4, "width": box["width"] + 2 * margin, "height": box["height"]}


def smaller(png: bytes) -> bytes:
    """The same picture with a palette, which is enough for flat colours."""
    from PIL import Image

    picture = Image.open(io.BytesIO(png)).convert("RGB").quantize(128, dither=Image.Dither.NONE)
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", optimize=True)
    if buffer.tell() > LARGEST:
        raise SystemExit(f"a picture has {buffer.tell():,} bytes; choose a smaller size")
    return buffer.getvalue()


def draw_documentation() -> None:
    """Pages of the example and of the demo, for the README and the documentation."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, started() as browser:
        page, measured = Path(folder) / "certcal-demo.html", Path(folder) / "measured.html"
        table = certcal.data.example()
        certcal.measure(table.correct, table.confidence, progress=False).save(measured)
        command = [sys.executable, "-m", "certcal", "demo", "--quiet", "-o", page.name]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        for name, shown, options in (
            ("report", measured, {"width": 1200, "height": 1200}),
            ("report-certificate", page, {"width": 1000, "height": 800}),
            ("report-worst-case", page, {"width": 1000, "height": 1320, "part": "#section-worst-case"}),
        ):
            (IMAGES / f"{name}.png").write_bytes(smaller(shot(browser, shown, **options)))


def draw_all(folder: Path) -> None:
    """Every page of the tests, to be looked at."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, started() as browser:
        for name, page in make(Path(place)).items():
            for width in (1200, 375):
                for dark in (False, True):
                    picture = folder / f"{name}-{width}-{'dark' if dark else 'light'}.png"
                    picture.write_bytes(shot(browser, page, width=width, dark=dark))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        draw_all(Path(sys.argv[1]))
    else:
        draw_documentation()
