"""Names of classes and pictures are text, whatever is in them; and no request leaves the host."""

import pytest

from tests.browser.asking import wait_shown
from tests.browser.conftest import DESKTOP, PHONE, enter
from tests.browser.drawn import draw_set

SCREENS = ["#start", "#focus", "#sweep", "#settle", "#progress", "#dispute", "#done"]
# The fourth one has most findings, so that Focus and Sweep show it.
ODD = [
    '<img src=x onerror="document.title=1">',
    'say "cheese" & <b>smile</b>',
    "כלב גדול",
    "</script><script>document.title=2</script>",
    "word" * 50,
    "{class} ${1} %s",
]


@pytest.fixture
def odd(tmp_path):
    """Draw data with class names that are markup, quotes, right to left, or long."""
    drawn = draw_set(tmp_path / "odd", 16, ODD)
    drawn.add_snapshot()
    return drawn


@pytest.mark.point(17)
@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_odd_names_are_shown_as_text(odd, serve, new_context, size):
    review = serve(odd)
    context = new_context(size=size)
    page = enter(context, review, '<i>"Ana"</i>')
    seen = ""
    for screen in [*SCREENS, *(f"#sweep?class={k}" for k in range(len(ODD)))]:
        page.goto(f"{review.url}/{screen}")
        wait_shown(page)
        seen += page.locator("body").inner_text()
        assert (
            page.locator("[onerror], main script, main b:not(:has(*)):text-is('smile')").count()
            == 0
        )
        wide, room = page.evaluate(
            "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        )
        assert wide <= room, screen
    for name in ODD:
        assert name in seen
    assert page.title() not in ("1", "2")


@pytest.mark.point(18)
def test_no_request_leaves_the_host(review, new_context):
    context = new_context()
    asked: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    page = enter(context, review, "Ana", "#focus")
    for screen in SCREENS:
        page.goto(f"{review.url}/{screen}")
        wait_shown(page)
        for key in ("y", "n", "z", "e", "Escape", "h", "Escape", "?", "Escape", "/", "Escape"):
            page.keyboard.press(key)
        wait_shown(page)
    assert len(asked) > 20
    assert [url for url in asked if not url.startswith(f"{review.url}/")] == []


@pytest.mark.point(18)
def test_nothing_of_the_page_names_another_host(review, new_context):
    page = enter(new_context(), review, "Ana")
    texts = [page.request.get(f"{review.url}/").text()]
    files = page.evaluate("performance.getEntriesByType('resource').map(e => e.name)")
    files = [file for file in files if "/static/" in file]
    assert files
    texts += [page.request.get(file).text() for file in files]
    for text in texts:
        assert "http://" not in text.replace("http://www.w3.org/", "")
        assert "https://" not in text
