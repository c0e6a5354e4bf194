"""A real browser, a served review of drawn pictures, and pages that show it.

Debian's chromium is enough (`apt-get install chromium`); nothing is downloaded. Without a browser
the tests are skipped, unless `CI` is set: then they fail.

    def test_yes_is_saved(review, reviewer):
        page = reviewer("Ana", "#focus")
        page.keyboard.press("y")
        assert wait_decisions(page, review, 1)[0]["verdict"] == "present"
"""

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    expect,
    sync_playwright,
)

from tests.browser.drawn import Drawn, draw_set
from tests.browser.serving import PATIENCE, Forge, Served

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
DESKTOP, PHONE = (1440, 900), (390, 844)
Reviewer = Callable[..., Page]


def chromium() -> str:
    """Find a browser, or skip the test; with CI set, fail it."""
    asked = os.environ.get("BALANCEMIX_BROWSER")
    found = asked or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        message = "no browser: install Debian's chromium, or name one in BALANCEMIX_BROWSER"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(message)
    return found


# A running Playwright keeps other tests from starting an event loop: it ends with this package.


@pytest.fixture(scope="package")
def playwright() -> Iterator[Any]:
    chromium()
    expect.set_options(timeout=1000 * PATIENCE / 2)
    with sync_playwright() as running:
        yield running


@pytest.fixture(scope="package")
def browser(playwright) -> Iterator[Browser]:
    running = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
    yield running
    running.close()


@pytest.fixture(scope="package")
def forge() -> Iterator[Forge]:
    """Start the process that forks servers."""
    chromium()
    process = Forge()
    yield process
    process.close()


@pytest.fixture(scope="package")
def pictures(tmp_path_factory) -> Drawn:
    """Draw the pictures once; tests copy them."""
    return draw_set(tmp_path_factory.mktemp("drawn") / "photos")


@pytest.fixture
def photos(pictures, tmp_path) -> Drawn:
    """Copy the drawn data, with an audit's findings in the store."""
    path = tmp_path / "photos"
    shutil.copytree(pictures.path, path)
    drawn = Drawn(path, pictures.classes, pictures.truth, pictures.given, pictures.findings)
    drawn.add_snapshot()
    return drawn


@pytest.fixture
def serve(forge, tmp_path) -> Iterator[Callable[..., Served]]:
    """Serve drawn data: `serve(photos, "--blind")`; ended with the test."""
    running: list[Served] = []

    def start(drawn: Drawn, *options: str) -> Served:
        served = Served(forge, drawn.path, drawn.store, *options)
        running.append(served)
        served.start()
        return served

    yield start
    for served in running:
        served.kill()


@pytest.fixture
def review(photos, serve) -> Served:
    """Serve the drawn data."""
    return serve(photos)


@pytest.fixture
def new_context(browser) -> Iterator[Callable[..., BrowserContext]]:
    """Make a browser of its own cookies and storage: `new_context(size=PHONE, dark=True)`.

    An error of a script, or something that the page's own policy forbids, fails the test.
    """
    made: list[BrowserContext] = []
    errors: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        if message.type == "error" and "Content Security Policy" in message.text:
            errors.append(message.text)

    def make(size: tuple[int, int] = DESKTOP, dark: bool = False, **options: Any) -> BrowserContext:
        viewport = {"width": size[0], "height": size[1]}
        scheme = "dark" if dark else "light"
        context = browser.new_context(viewport=viewport, color_scheme=scheme, **options)
        context.set_default_timeout(1000 * PATIENCE / 2)
        context.on("weberror", lambda error: errors.append(str(error.error)))
        context.on("console", hear)
        made.append(context)
        return context

    yield make
    for context in made:
        context.close()
    assert not errors


def enter(context: BrowserContext, review: Served, name: str | None, where: str = "") -> Page:
    """Open the review as a person whom it knows already, at a screen such as "#focus"."""
    key = review.address.partition("#k=")[2]
    headers = {"Origin": review.url, "Content-Type": "application/json"}
    reply = context.request.post(
        f"{review.url}/api/key", headers=headers, data={"key": key, "name": name}
    )
    assert reply.status == 204, reply.text()
    return open_tab(context, review, where)


def open_tab(context: BrowserContext, review: Served, where: str = "") -> Page:
    """Open a further tab of somebody who has entered."""
    page = context.new_page()
    page.goto(f"{review.url}/{where}")
    return page


@pytest.fixture
def reviewer(review, new_context) -> Reviewer:
    """Open the review as somebody: `reviewer("Ana", "#focus", size=PHONE)`."""

    def open_page(name: str | None = "Ana", where: str = "", **options: Any) -> Page:
        return enter(new_context(**options), review, name, where)

    return open_page
