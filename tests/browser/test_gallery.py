"""The gallery of an audit, opened from the disk: filter, sort, no request, without script too."""

import contextlib
import re
import shutil

import numpy as np
import pytest
from PIL import Image

from balancemix.cli import main
from tests.browser.conftest import DESKTOP, PHONE
from tests.conftest import tiny_arrays

pytestmark = pytest.mark.point(23)
CLASSES = ["cat", "dog", "<img src=x onerror=alert(1)>", "e" * 200, "fox"]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Write the gallery of pictures of which some labels are wrong; only the page is left."""
    folder = tmp_path_factory.mktemp("gallery")
    arrays = tiny_arrays(300) | {"classes": np.array(CLASSES)}
    flips = np.random.default_rng(0).random(arrays["labels"].shape) < 0.1
    arrays["labels"] = np.where(flips, 1 - arrays["labels"], arrays["labels"])
    names = [f"{i:03}.jpg" for i in range(300)]
    (folder / "photos").mkdir()
    for i, name in enumerate(names):
        Image.new("RGB", (400, 300), (i % 256, 90, 90)).save(folder / "photos" / name)
    np.savez(folder / "x.npz", **arrays, images=np.array(names), root=np.array("photos"))
    with contextlib.chdir(folder):
        assert main(["audit", "x.npz", "--gallery", "page.html"]) == 0
        shutil.rmtree("photos")
    return (folder / "page.html").as_uri()


@pytest.fixture
def opened(address, new_context):
    """Open it, and note what is asked for: `page, requests = opened(size=PHONE)`."""

    def open_page(**options):
        page, requests = new_context(**options).new_page(), []
        page.on("request", lambda request: requests.append(request.url))
        page.goto(address)
        return page, requests

    return open_page


def visible(page):
    """List the names of the cards that are visible, in their order, with their findings."""
    cards = "cards => cards.map(card => [card.dataset.name, card.dataset.keys.split(' ')])"
    return page.locator(".card:visible").evaluate_all(cards)


def test_filter_and_sort(opened):
    page, _ = opened()
    every = visible(page)
    count = page.locator(".filter output")
    assert count.text_content() == f"{len(every)} pictures"
    for kind in ("wrong", "missing"):
        page.get_by_role("button", name=kind).click()
        fitting = [card for card in every if any(key.startswith(kind) for key in card[1])]
        assert visible(page) == fitting
        assert 0 < len(fitting) < len(every)
        assert page.get_by_role("button", name=kind).get_attribute("aria-pressed") == "true"
    page.get_by_label("Class").select_option("dog")
    assert visible(page) == [card for card in every if "missing:1" in card[1]]
    page.get_by_role("button", name="All").click()
    of_dogs = [card for card in every if {"missing:1", "wrong:1"} & set(card[1])]
    assert visible(page) == of_dogs
    page.get_by_label("Order").select_option("By name")
    assert visible(page) == sorted(of_dogs)
    page.get_by_label("Class").select_option("")
    page.get_by_label("Order").select_option("Most findings first")
    lengths = [len(keys) for _, keys in visible(page)]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] > 1
    page.get_by_label("Order").select_option("Surest first")
    assert visible(page) == every


def test_with_the_keyboard_alone(opened):
    page, _ = opened()
    every = visible(page)
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.value") == "wrong":
            break
    page.keyboard.press("Enter")
    assert 0 < len(visible(page)) < len(every)


def test_no_request_leaves_the_page(opened, address):
    page, requests = opened()
    page.get_by_role("button", name="wrong").click()
    assert {url for url in requests if not url.startswith("data:")} == {address}
    decoded = "images => images.every(image => image.complete && image.naturalWidth === 320)"
    assert page.locator(".card img").evaluate_all(decoded)


def test_readable_without_script(opened):
    page, _ = opened(java_script_enabled=False)
    cards = page.locator(".card")
    shown = page.get_by_text(re.compile(r"All \d+ pictures with findings are shown"))
    assert shown.text_content().startswith(f"All {cards.count()} ")
    assert all(cards.nth(i).is_visible() for i in range(cards.count()))
    assert not page.locator(".filter").is_visible()
    assert page.locator("del").first.is_visible()


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("size", [DESKTOP, PHONE, (320, 640)])
def test_nothing_scrolls_sideways(opened, size, dark):
    page, _ = opened(size=size, dark=dark)
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    heights = page.locator(".filter button, .filter select").evaluate_all(
        "controls => controls.map(control => control.getBoundingClientRect().height)"
    )
    assert min(heights) >= 44


def test_names_of_classes_are_text(opened):
    page, _ = opened()
    assert page.locator(".card").get_by_text("<img src=x onerror=alert(1)>").first.is_visible()
    assert page.locator("img[src=x]").count() == 0


def test_on_paper(opened):
    page, _ = opened()
    page.emulate_media(media="print")
    assert not page.locator(".filter").is_visible()
    assert page.locator(".card").first.is_visible()
