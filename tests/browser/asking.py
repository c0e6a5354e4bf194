"""What a page asks in Focus, and answers by somebody who knows the pictures."""

from playwright.sync_api import Page

from tests.browser.drawn import Drawn
from tests.browser.serving import Served, wait_decisions

SHOWN = """() => document.querySelector("main h1, main h2, main img")
  && [...document.images].every((image) => image.complete)"""


def wait_shown(page: Page, milliseconds: int = 200) -> None:
    """Wait until a screen is drawn, with its pictures; a change of screen loads no page."""
    page.wait_for_function(SHOWN)
    page.wait_for_timeout(milliseconds)
    page.wait_for_function(SHOWN)


def asked(page: Page) -> tuple[str, str]:
    """Read which picture and class the page asks about, once the picture can be seen."""
    picture = page.locator("main:not(.gated) .frame img")
    picture.wait_for()
    return picture.get_attribute("alt"), page.locator("main h1 bdi").inner_text()


def answer_truly(
    page: Page, review: Served, drawn: Drawn, count: int
) -> dict[tuple[str, str], bool]:
    """Answer questions as somebody who sees what is there; returns the answers."""
    answers: dict[tuple[str, str], bool] = {}
    for count_ in range(len(review.decisions()) + 1, len(review.decisions()) + count + 1):
        image, class_ = asked(page)
        there = drawn.is_there(image, class_)
        page.keyboard.press("y" if there else "n")
        row = wait_decisions(page, review, count_)[-1]
        assert (row["image"], row["class"]) == (image, class_)
        assert row["verdict"] == ("present" if there else "absent")
        answers[image, class_] = there
    return answers
