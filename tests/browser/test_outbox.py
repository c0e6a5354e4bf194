"""The outbox: answers arrive once, whatever happens to server, browser and network."""

import json
import os
import signal
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect

from tests.browser.asking import asked
from tests.browser.conftest import FLAGS, chromium, enter, open_tab
from tests.browser.serving import Served, wait_decisions, wait_until

DECISIONS = "**/api/decisions"


def answer(page: Page, keys: str) -> list[tuple[str, str]]:
    """Answer one question after the other; returns what was asked."""
    questions = []
    for key in keys:
        questions.append(asked(page))
        page.keyboard.press(key)
    return questions


def labels(review: Served) -> list[tuple[str, str]]:
    """List what was answered, in order."""
    return [(row["image"], row["class"]) for row in review.decisions()]


def waiting(page: Page) -> int:
    """Count what waits in the browser."""
    return page.evaluate("Object.keys(localStorage).filter((k) => k.includes('.outbox.')).length")


@pytest.mark.point(8)
def test_a_server_killed_before_its_reply_gets_each_answer_once(review, new_context):
    context = new_context()
    page = enter(context, review, "Ana", "#focus")

    def commit_and_die(route: Route) -> None:
        route.fetch()
        review.kill()
        route.abort()

    context.route(DECISIONS, commit_and_die, times=1)
    questions = answer(page, "y")
    expect(page.get_by_role("alert")).to_contain_text("The server does not answer.")
    questions += answer(page, "nyn")
    expect(page.locator("#saved")).to_have_text("4 waiting")
    expect(page.get_by_role("alert")).to_contain_text("4 answers wait in this browser")
    review.start()
    wait_decisions(page, review, 4)
    expect(page.locator("#saved")).to_have_text("✓ Saved")
    expect(page.locator("#banner")).to_be_hidden()
    questions += answer(page, "y")  # the same tab goes on
    wait_decisions(page, review, 5)
    assert labels(review) == questions
    assert waiting(page) == 0


@pytest.mark.point(8)
def test_twenty_waiting_answers_stop_the_questions(review, new_context):
    context = new_context()
    page = enter(context, review, "Ana", "#focus")
    context.route(DECISIONS, lambda route: route.abort())
    questions = answer(page, "y" * 20)
    page.keyboard.press("y")
    expect(page.get_by_role("alert")).to_contain_text(
        "Nothing more can be answered until the server is back. Closing this page loses nothing."
    )
    assert waiting(page) == 20
    context.unroute(DECISIONS)
    wait_decisions(page, review, 20)
    assert labels(review) == questions


@pytest.mark.point(9)
def test_a_killed_browser_sends_its_answers_when_it_is_opened_again(review, playwright, tmp_path):
    profile = tmp_path / "profile"

    def launch() -> BrowserContext:
        return playwright.chromium.launch_persistent_context(
            profile, executable_path=chromium(), args=FLAGS
        )

    context = launch()
    page = enter(context, review, "Ana", "#focus")
    asked(page)
    context.route(DECISIONS, lambda route: route.abort())
    questions = answer(page, "yny")
    clients = page.evaluate(
        "Object.keys(localStorage).filter((key) => key.includes('.outbox.')).sort()"
        ".map((key) => JSON.parse(localStorage[key]).body.decisions[0].client)"
    )
    # The browser writes its storage to the disk some seconds later.
    wait_until(page, lambda: all(is_stored(profile, client) for client in clients), "the disk")
    kill_browser(profile)
    assert review.decisions() == []
    context = launch()
    # Its cookie may be lost: the browser writes those down every half a minute.
    page = context.new_page()
    page.goto(review.address)
    rows = wait_decisions(page, review, 3)
    assert [row["client"] for row in rows] == clients
    assert labels(review) == questions
    expect(page.locator("#saved")).to_have_text("✓ Saved")
    context.close()


def is_stored(profile: Path, client: str) -> bool:
    files = profile.glob("Default/Local Storage/leveldb/*.log")
    return any(client.encode() in file.read_bytes() for file in files)


def kill_browser(profile: Path) -> None:
    """Kill every process of the browser with this profile."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if str(profile).encode() in (folder / "cmdline").read_bytes():
                os.kill(int(folder.name), signal.SIGKILL)
        except (FileNotFoundError, ProcessLookupError):
            continue
    (profile / "SingletonLock").unlink(missing_ok=True)


@pytest.mark.point(10)
def test_a_lost_reply_leaves_one_row(review, new_context):
    context = new_context()
    page = enter(context, review, "Ana", "#focus")
    sent = []

    def lose(route: Route) -> None:
        sent.append(json.loads(route.request.post_data))
        route.fetch()
        route.abort()

    context.route(DECISIONS, lose, times=2)
    questions = answer(page, "y")
    wait_until(page, lambda: len(sent) == 2, "the second try")
    expect(page.locator("#saved")).to_have_text("✓ Saved")
    wait_decisions(page, review, 1)
    assert sent[0] == sent[1]
    assert labels(review) == questions


@pytest.mark.point(10)
def test_an_undo_may_be_sent_before_the_reply(review, new_context):
    context, held, hold = new_context(), [], [True]
    page = enter(context, review, "Ana", "#focus")
    context.route(DECISIONS, lambda route: held.append(route) if hold else route.continue_())
    answer(page, "y")
    page.keyboard.press("z")
    wait_until(page, lambda: held, "the answer")
    hold.clear()
    held[0].continue_()
    answered, undo = wait_decisions(page, review, 2)
    assert undo["undoes"] == answered["seq"]


@pytest.mark.point(11)
def test_two_tabs_with_the_same_label_are_told_and_lose_nothing(review, new_context):
    context = new_context()
    first = enter(context, review, "Ana", "#focus")
    question = asked(first)
    second = open_tab(context, review, "#focus?anyway=1")
    assert asked(second) == question
    answer(first, "y")
    wait_decisions(first, review, 1)
    answer(second, "n")
    wait_decisions(second, review, 2)
    expect(second.locator("#live")).to_have_text("You answered this in another tab: Yes.")
    assert labels(review) == [question, question]
    assert [row["verdict"] for row in review.decisions()] == ["present", "absent"]


@pytest.mark.point(11)
def test_two_people_with_the_same_label_are_told(photos, serve, new_context):
    review = serve(photos, "--overlap", "0")
    ana = enter(new_context(), review, "Ana", "#focus")
    question = asked(ana)
    ben = enter(new_context(), review, "Ben", "#focus?anyway=1")
    assert asked(ben) == question
    answer(ben, "y")
    wait_decisions(ben, review, 1)
    answer(ana, "y")
    wait_decisions(ana, review, 2)
    expect(ana.locator("#live")).to_have_text(
        "Ben has just answered this one. Yours counts as a second opinion."
    )


@pytest.mark.point(11)
def test_two_tabs_ask_about_different_pictures(review, new_context):
    context = new_context()
    first = enter(context, review, "Ana", "#focus")
    image = asked(first)[0]
    second = open_tab(context, review, "#focus")
    assert asked(second)[0] != image


def test_a_name_comes_first(review, new_context):
    page = new_context().new_page()
    page.goto(review.address)
    page.get_by_label("Who is reviewing?").fill("Ana")
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("What do you want?")
    assert "k=" not in page.url
    page.get_by_role("button", name="Go through the findings").click()
    answer(page, "y")
    assert wait_decisions(page, review, 1)[0]["reviewer"] == "Ana"
    page.goto(review.url)  # a later visit goes on where this one stopped
    assert asked(page)
