"""A real browser without a network: where it is, and how it is started."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MACOS = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--no-first-run",
    "--font-render-hinting=none",
)
MISSING = (
    "The pages are tested in a browser and there is none: install Chromium (Debian, Ubuntu: apt-get install chromium; "
    "macOS: brew install --cask google-chrome), or put the path of a Chromium or Chrome into CERTCAL_BROWSER."
)


def find() -> str:
    """The browser's path, or an error that says what to do."""
    named = os.environ.get("CERTCAL_BROWSER")
    candidates = [named] if named else [*NAMES, MACOS]
    found = next(filter(None, map(shutil.which, candidates)), None)
    if found is None:
        raise RuntimeError(f"CERTCAL_BROWSER is {named}, which cannot be run. {MISSING}" if named else MISSING)
    return found


@contextmanager
def started() -> Iterator[Any]:
    """A browser that runs while the block does."""
    from playwright.sync_api import sync_playwright

    path = find()
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, headless=True, args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


def main() -> int:
    """Say where the browser is, or what to do."""
    try:
        sys.stdout.write(f"{find()}\n")
    except RuntimeError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
