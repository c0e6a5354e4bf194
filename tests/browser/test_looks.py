"""Every screen in both themes, at 200 % zoom, on a phone, and by the keyboard alone.

What can be computed of WCAG is checked here: contrast, names, targets, landmarks, headings; and
axe-core looks for more.
"""

from collections.abc import Iterator
from importlib.resources import files

import pytest
from playwright.sync_api import Page, expect

from tests.browser.asking import answer_truly, asked
from tests.browser.conftest import DESKTOP, PHONE
from tests.browser.serving import wait_decisions, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.point(21)]
SCREENS = (
    "start", "focus", "focus?kind=wrong", "sweep", "sweep?class=4&kind=missing",
    "sweep?class=2&kind=wrong", "settle?order=sample", "settle?order=random", "settle?order=errors",
    "progress", "dispute", "history", "done",
)  # fmt: skip
# What covers a screen: where, the key or control that opens it, and how it is recognised.
BOXES = (
    ("focus", "?", "dialog"), ("focus", "/", "dialog input"), ("focus", "e", "dialog"),
    ("focus", "button.me", "dialog form"), ("focus", ".rule button", ".rule input"),
    ("sweep?class=4&kind=missing", "i", "main .frame img"),
    ("history", "button.change", "dialog .frame img"),
)  # fmt: skip
ZOOMED = (720, 450)  # 1440 × 900 at 200 %
SMALL = (320, 640)

# Text that stands out too little from what is behind it, as far as plain colours go.
FAINT = """() => {
  const parse = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const [r, g, b, a = 1] = parse(getComputedStyle(node).backgroundColor);
      if (a > 0.99) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const faint = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode.parentElement, text = walk.currentNode.textContent.trim();
    if (!text || !node.checkVisibility() || node.closest(".gated, :disabled, .away, svg")) continue;
    const ink = light(parse(getComputedStyle(node).color)), ground = light(behind(node));
    const ratio = (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
    if (ratio < 4.5) faint.push(`${text.slice(0, 40)} ${ratio.toFixed(2)}`);
  }
  return faint;
}"""
# Controls without a name, or too small to hit; a link within a text may be small.
AWKWARD = """() => [...document.querySelectorAll("button, input, a, [role=option], [tabindex='0']")]
  .filter((node) => node.checkVisibility()).flatMap((node) => {
    const {width, height} = node.getBoundingClientRect(), words = [];
    const name = node.getAttribute("aria-label") ?? node.textContent.trim();
    const label = node.labels?.[0]?.textContent ?? node.placeholder ?? "";
    if (!(name || label || node.querySelector("img[alt]"))) words.push("no name");
    const inText = node.matches("p a, input[type=checkbox], input[type=radio]");
    if (!inText && (width < 43.5 || height < 43.5)) words.push(`${width} × ${height}`);
    return words.map((word) => `${node.outerHTML.slice(0, 90)}: ${word}`);
  })"""
SIDEWAYS = """() => [document.documentElement, document.querySelector("main")]
  .some((node) => node.scrollWidth > node.clientWidth + 1)"""
FRAME = """() => ({
  lang: document.documentElement.lang, title: document.title,
  main: document.querySelectorAll("main").length, nav: document.querySelectorAll("nav").length,
  h1: [...document.querySelectorAll("h1")].filter((node) => node.checkVisibility()).length,
})"""


def open_screen(page: Page, screen: str) -> None:
    """Show a screen, and wait until it is drawn."""
    page.evaluate("screen => { location.hash = '#' + screen; }", screen)
    page.locator(f"body[data-screen={screen.partition('?')[0]}] main h1").first.wait_for(
        state="attached"
    )
    page.locator("main.gated, main .gated").wait_for(state="detached")
    page.wait_for_timeout(400)


@pytest.fixture
def worked(review, photos, reviewer):
    """A review with some answers and a dispute."""
    ana = reviewer("Ana", "#focus")
    (image, class_), there = next(iter(answer_truly(ana, review, photos, 6).items()))
    ben = reviewer("Ben", "#start")
    expect(ben.locator("h1")).to_contain_text("What do you want?")
    ben.evaluate(
        """async ([image, name, verdict]) => {
          const client = crypto.randomUUID();
          const decision = {client, image, class: name, verdict, mode: "focus", width: 1280};
          const headers = {"Content-Type": "application/json", Tab: "other"};
          const body = JSON.stringify({decisions: [decision]});
          await fetch("/api/decisions", {method: "POST", headers, body});
        }""",
        [image, class_, "absent" if there else "present"],
    )
    wait_until(ben, lambda: any(row[2] == "disputed" for row in review.states()))
    return review


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE, ZOOMED, SMALL], ids=lambda size: f"{size[0]}")
def test_every_screen_can_be_read_and_hit(worked, reviewer, size, dark):
    zoom = {"device_scale_factor": 2} if size == ZOOMED else {}
    page = reviewer("Ana", "#start", size=size, dark=dark, **zoom)
    page.locator("h1").first.wait_for()
    faults = {}
    for screen in SCREENS:
        open_screen(page, screen)
        frame = page.evaluate(FRAME)
        found = [*page.evaluate(FAINT), *page.evaluate(AWKWARD)]
        found += ["scrolls sideways"] if page.evaluate(SIDEWAYS) else []
        if (frame["lang"], frame["main"], frame["nav"], frame["h1"]) != ("en", 1, 1, 1):
            found.append(str(frame))
        found += axe(page)
        if found:
            faults[screen] = found
    assert not faults


def axe(page: Page) -> list[str]:
    """Ask axe-core for what is serious or critical.

    The page's policy forbids a further script, but not what a debugger evaluates.
    """
    script = files("axe_playwright_python") / "axe.min.js"
    page.evaluate(script.read_text(encoding="utf-8"))
    reply = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    return [
        f"axe {each['id']}: {node['html'][:100]}"
        for each in reply["violations"]
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]


def open_boxes(page: Page) -> Iterator[str]:
    """Open what covers a screen, one after the other."""
    for screen, key, box in BOXES:
        open_screen(page, screen)
        page.keyboard.press(key) if len(key) == 1 else page.locator(key).first.click()
        page.locator(box).first.wait_for()
        page.locator(".gated").wait_for(state="detached")
        yield f"{screen}, {key}"
        page.keyboard.press("Escape")
        page.locator("dialog").wait_for(state="detached")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=lambda size: f"{size[0]}")
def test_axe_finds_nothing_serious_beside_the_screens(worked, new_context, size, dark):
    page = new_context(size=size, dark=dark).new_page()
    page.goto(worked.url)
    expect(page.locator("h1")).to_contain_text("key")
    faults = {"no key": axe(page)}
    page = new_context(size=size, dark=dark).new_page()
    page.goto(worked.address)
    expect(page.locator("h1")).to_contain_text("Who is reviewing?")
    faults["no name"] = axe(page)
    page.keyboard.type("Ana")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("What do you want?")
    for name in open_boxes(page):
        faults[name] = axe(page)
    assert not {name: found for name, found in faults.items() if found}


def test_axe_looks_at_the_page(review, reviewer):
    page = reviewer("Ana", "#start")
    expect(page.locator("h1")).to_contain_text("What do you want?")
    page.evaluate("() => document.querySelector('main').append(document.createElement('button'))")
    assert axe(page) == ["axe button-name: <button></button>"]


def focused(page: Page) -> str:
    """Say what has the focus: its tag and text, and whether a ring shows it."""
    return page.evaluate(
        """() => { const node = document.activeElement, style = getComputedStyle(node);
          return `${node.tagName} ${node.getAttribute("aria-label") ?? node.textContent.trim()} ` +
            `${style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 3}`; }"""
    )


def tab_to(page: Page, words: str, most: int = 60) -> None:
    """Press Tab until something with these words has the focus."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if words in (found := focused(page)):
            assert found.endswith("true"), f"no ring: {found}"
            return
    raise AssertionError(f"{words!r} is not reached by Tab")


def test_a_review_by_the_keyboard_alone(photos, serve, new_context):
    review = serve(photos)
    page = new_context().new_page()
    page.goto(review.address)
    expect(page.locator("h1")).to_contain_text("Who is reviewing?")
    page.keyboard.type("Ana")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("What do you want?")
    tab_to(page, "Go through the findings")
    page.keyboard.press("Enter")
    first = asked(page)
    page.keyboard.press("y")
    row = wait_decisions(page, review, 1)[0]
    assert (row["image"], row["class"], row["verdict"]) == (*first, "present")
    asked(page)
    tab_to(page, "No")
    page.keyboard.press("Enter")
    assert wait_decisions(page, review, 2)[-1]["verdict"] == "absent"
    page.keyboard.press("p")
    expect(page.locator(".card").first).to_contain_text("2 of 50 answers.")
    tab_to(page, "Go on")
    page.keyboard.press("Enter")
    asked(page)
    page.keyboard.press("h")
    page.locator(".history li").first.wait_for()
    tab_to(page, "Undo")
    page.keyboard.press("Enter")
    assert wait_decisions(page, review, 3)[-1]["verdict"] == "undone"
    page.keyboard.press("?")
    expect(page.locator("dialog")).to_contain_text("Keys")
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)


def test_single_keys_can_be_turned_off(review, reviewer):
    page = reviewer("Ana", "#focus")
    asked(page)
    page.keyboard.press("?")
    page.get_by_role("checkbox").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("y")
    page.wait_for_timeout(200)
    assert review.decisions() == []
    tab_to(page, "Yes")
    page.keyboard.press("Enter")
    wait_decisions(page, review, 1)
