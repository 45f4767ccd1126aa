"""One browser for all tests of a worker, and tabs in which nothing may go wrong unnoticed."""

import json
import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from tests.browser import chromium
from tests.browser.making import make

OUTSIDE = re.compile(r"^(?!file:|data:|blob:|about:)")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    try:
        chromium.find()
    except RuntimeError as error:
        pytest.fail(str(error), pytrace=False)
    with chromium.started() as running:
        yield running


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return make(tmp_path_factory.mktemp("pages"))


class Tab:
    """A tab without a network, and what went wrong in it: requests, messages, errors, dialogs."""

    def __init__(self, browser: Any, **options: Any) -> None:
        context = browser.new_context(offline=True, accept_downloads=True, **options)
        context.set_default_timeout(60_000)
        context.route(OUTSIDE, self._refuse)
        context.add_init_script(
            "document.addEventListener('securitypolicyviolation',"
            " event => console.error('policy: ' + event.violatedDirective));"
        )
        self.troubles: list[str] = []
        self.page = context.new_page()
        self.page.on("console", lambda said: self.troubles.append(f"console: {said.text}"))
        self.page.on("pageerror", lambda error: self.troubles.append(f"thrown: {error}"))
        self.page.on("requestfailed", lambda request: self.troubles.append(f"failed: {request.url}"))
        self.page.on("dialog", self._answer)

    def _refuse(self, route: Any) -> None:
        self.troubles.append(f"asked for {route.request.url}")
        route.abort()

    def _answer(self, dialog: Any) -> None:
        self.troubles.append(f"dialog: {dialog.message}")
        dialog.dismiss()


@pytest.fixture(scope="session")
def tabs(browser: Any) -> Callable[..., Tab]:
    """One tab for each way of starting one: a new one takes longer than most tests."""
    return cache(partial(Tab, browser))


@pytest.fixture
def visit(tabs: Callable[..., Tab], pages: dict[str, Path]) -> Iterator[Callable[..., Any]]:
    """Opens a page; whatever goes wrong in it meanwhile fails the test at its end."""
    used: list[Tab] = []

    def opened(
        name: str | Path, *, width: int = 1200, scheme: str = "light", motion: str = "no-preference", **options: Any
    ) -> Any:
        tab = tabs(**options)
        tab.troubles.clear()
        used.append(tab)
        tab.page.set_viewport_size({"width": width, "height": 900})
        tab.page.emulate_media(media="null", color_scheme=scheme, reduced_motion=motion)
        tab.page.goto((name if isinstance(name, Path) else pages[name]).as_uri())
        return tab.page

    yield opened
    assert [trouble for tab in used for trouble in tab.troubles] == []


def embedded(tab: Any) -> dict[str, Any]:
    """The numbers for machines that are inside an open page."""
    return json.loads(tab.locator("#data").text_content())
