"""2,000 random actions in two tabs, while the server is killed ten times: nothing lost or twice."""

import json
import shutil
from functools import partial
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, Request

from balancemix.data.decisions.store import Store
from tests.browser.conftest import enter, open_tab
from tests.browser.drawn import draw_set
from tests.browser.serving import Served, wait_until

ACTIONS, KILLS, DOWN = 2000, 10, 15  # actions while the server is down
PLACES = ["#focus", "#focus", "#sweep?class=4&kind=missing", "#sweep?class=2&kind=wrong", "#settle"]
ANYWHERE = ["z", "Shift+Z", "Backspace", "f", "t", "p", "h", "i", "Escape", "?", "e"]
KEYS = {  # by screen
    "focus": [*2 * "ynuax", *"yn1234", "ArrowRight", "ArrowLeft", "z", "z", "Shift+Z"],
    "sweep": [*"  xu", "ArrowRight", "ArrowDown", "Home", "End", *4 * ["Enter"], "z"],
    "settle": ["Enter", "Tab", " ", "Tab", " ", "ArrowRight", "z"],
}


# Tell the test what a page puts into its outbox, before anything is sent.
SPY = """const put = Storage.prototype.setItem;
Storage.prototype.setItem = function (key, value) {
  put.call(this, key, value); stored(key, value); }"""


class Sent:
    """What pages put into their outbox and posted, whatever became of the replies: by client."""

    def __init__(self) -> None:
        self.answers: dict[str, dict[str, Any]] = {}
        self.undos: dict[str, str] = {}
        self.settled: dict[str, dict[str, Any]] = {}

    def keep(self, key: str, value: str) -> None:
        """Note what is stored."""
        if ".outbox." in key:
            entry = json.loads(value)
            self.note(entry["path"], entry["body"])

    def hear(self, request: Request) -> None:
        """Note what a request carries."""
        if request.method == "POST" and request.post_data:
            self.note(request.url, json.loads(request.post_data))

    def note(self, path: str, body: dict[str, Any]) -> None:
        """Note answers; the same one may come many times."""
        for each in body.get("decisions", []):
            if each["verdict"] == "undone":
                self.undos[each["client"]] = each["undoes"]
            else:
                known = self.answers.setdefault(each["client"], each)
                assert known == each, "one client, two answers"
        if path.endswith("/api/settle"):
            self.settled[body["client"]] = body


def act(page: Page, draw: np.random.Generator, review: Served) -> None:
    """Do something at random, mostly what the screen is for."""
    keys = KEYS.get(page.evaluate("document.body.dataset.screen"))
    if review.alive() and draw.random() < (0.02 if keys else 0.5):
        page.goto(f"{review.url}/{draw.choice(PLACES)}")
    elif review.alive() and draw.random() < 0.01:
        page.reload()
    else:
        page.keyboard.press(str(draw.choice(keys if keys and draw.random() < 0.95 else ANYWHERE)))
    page.wait_for_timeout(int(draw.integers(0, 60)))


def is_empty(page: Page) -> bool:
    """Say whether no answer waits in the browser."""
    words = page.locator("#saved").get_attribute("title")
    return words is not None and "Saved" in words


@pytest.mark.slow
@pytest.mark.point(13)
def test_2000_actions_in_two_tabs_with_ten_kills(serve, new_context, tmp_path):
    drawn = draw_set(tmp_path / "photos", 400)  # more than two tabs can answer
    drawn.add_snapshot()
    review, sent = serve(drawn), Sent()
    context = new_context()
    context.on("request", sent.hear)
    context.expose_function("stored", sent.keep)
    context.add_init_script(SPY)
    tabs = [enter(context, review, "Ana", "#focus"), open_tab(context, review, PLACES[2])]
    draw = np.random.default_rng(0)
    kills = set(draw.choice(ACTIONS - DOWN, KILLS, replace=False).tolist())
    up_again = -1
    for i in range(ACTIONS):
        if i in kills and up_again < 0:
            review.kill()
            up_again = i + int(draw.integers(0, DOWN))
        if 0 <= up_again <= i:
            review.start()
            up_again = -1
        act(tabs[int(draw.integers(2))], draw, review)
    for page in tabs:
        page.bring_to_front()
        wait_until(page, partial(is_empty, page), "an empty outbox")
    rows = review.decisions()
    review.stop()

    # Nothing lost, nothing twice: a row for each answer that a page made, as it was made.
    focus = {row["client"]: row for row in rows if row["verdict"] != "undone"}
    answered = {client: row for client, row in focus.items() if row["mode"] != "settle"}
    assert answered.keys() == sent.answers.keys()
    for client, row in answered.items():
        made = sent.answers[client]
        for name in ("image", "class", "verdict", "mode", "batch", "suggested", "width", "ms"):
            assert row[name] == made.get(name), name
    assert {
        row["client"] for row in review.query("SELECT client FROM settled WHERE undoes IS NULL")
    } == (sent.settled.keys())
    taken = [row["undoes"] for row in rows if row["verdict"] == "undone"]
    assert len(set(taken)) == len(taken)  # no answer is taken back twice
    assert {row["client"].partition(":")[0] for row in rows if row["verdict"] == "undone"} <= (
        sent.undos.keys()
    )
    assert len(answered) > 200
    assert len(taken) > 20
    assert len(sent.settled) > 5

    # The states follow from the answers alone.
    copied = tmp_path / "copied"
    shutil.copytree(review.file.parent, copied)
    before = review.states()
    with Store.open(copied) as store:
        store.rebuild()
    review.file = copied / review.file.name
    assert review.states() == before
    assert review.query("PRAGMA integrity_check") == [{"integrity_check": "ok"}]
