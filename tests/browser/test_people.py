"""Two names: leases, disputes, second opinions; rules, history and examples."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.asking import asked
from tests.browser.conftest import enter
from tests.browser.serving import wait_decisions, wait_until

KEYS = {"present": "y", "absent": "n"}


def state_of(review, image, class_):
    """Read what holds for a label: state, verdict, verified."""
    found = [row[2:] for row in review.states() if row[:2] == (image, class_)]
    return found[0] if found else None


def post(page: Page, image: str, class_: str, verdict: str, mode: str = "focus") -> None:
    """Answer about a label as somebody who came to it by another way."""
    page.evaluate(
        """async ([image, name, verdict, mode]) => {
          const client = crypto.randomUUID();
          const decision = {client, image, class: name, verdict, mode, width: 1280, ms: 1500};
          const headers = {"Content-Type": "application/json", Tab: "other"};
          const body = JSON.stringify({decisions: [decision]});
          const reply = await fetch("/api/decisions", {method: "POST", headers, body});
          if (!reply.ok) throw new Error(await reply.text());
        }""",
        [image, class_, verdict, mode],
    )


@pytest.mark.point(12)
def test_two_names_are_given_different_pictures(reviewer):
    ana, ben = reviewer("Ana", "#focus"), None
    first = asked(ana)[0]
    ben = reviewer("Ben", "#focus")
    assert asked(ben)[0] != first


@pytest.fixture
def disputed(review, reviewer):
    """Ana and Ben differ about a label: her page, his page, image and class."""
    ana = reviewer("Ana", "#focus")
    image, class_ = asked(ana)
    ana.keyboard.press("y")
    wait_decisions(ana, review, 1)
    ben = reviewer("Ben", "#start")
    expect(ben.locator("h1")).to_contain_text("What do you want?")
    post(ben, image, class_, "absent")
    assert state_of(review, image, class_) == ("disputed", None, 0)
    return ana, ben, image, class_


@pytest.mark.point(12)
@pytest.mark.parametrize("verdict", ["present", "absent"])
def test_a_dispute_is_resolved_verified_and_reopened_by_undo(review, disputed, verdict):
    ana, _, image, class_ = disputed
    ana.evaluate("location.hash = '#dispute'")
    expect(ana.locator(".opinions")).to_contain_text("Ana")
    expect(ana.locator(".opinions")).to_contain_text("Ben")
    expect(ana.locator("main")).to_contain_text("Until this is resolved the label stays")
    assert asked(ana) == (image, class_)
    ana.keyboard.press(KEYS[verdict])
    row = wait_decisions(ana, review, 3)[-1]
    assert (row["mode"], row["verdict"], row["reviewer"]) == ("resolve", verdict, "Ana")
    assert state_of(review, image, class_) == ("resolved", verdict, 1)
    expect(ana.locator("h1")).to_have_text("Nobody differs.")
    ana.keyboard.press("z")
    wait_decisions(ana, review, 4)
    assert state_of(review, image, class_) == ("disputed", None, 0)
    assert asked(ana) == (image, class_)
    ana.keyboard.press("Shift+Z")
    assert wait_decisions(ana, review, 5)[-1]["mode"] == "resolve"
    assert state_of(review, image, class_) == ("resolved", verdict, 1)


def test_leaving_a_dispute_open_writes_nothing(review, disputed):
    ana, _, image, class_ = disputed
    ana.evaluate("location.hash = '#dispute'")
    asked(ana)
    ana.keyboard.press("u")
    ana.wait_for_timeout(200)
    assert len(review.decisions()) == 2
    assert state_of(review, image, class_)[0] == "disputed"


def test_progress_shows_the_dispute_and_leads_to_it(disputed):
    ana, _, image, class_ = disputed
    ana.evaluate("location.hash = '#progress'")
    card = ana.locator(".card", has_text="Two people on the same label")
    expect(card).to_contain_text("0 of 1")
    card.get_by_role("link").click()
    assert asked(ana) == (image, class_)


def test_a_rule_is_edited_on_the_spot_and_shown_to_others(photos, review, reviewer):
    ana = reviewer("Ana", "#focus")
    _, class_ = asked(ana)
    ana.locator(".rule button").click()
    ana.keyboard.type("Any part visible: yes")
    ana.keyboard.press("Enter")
    expect(ana.locator(".rule")).to_have_text("Any part visible: yes")
    assert review.decisions() == []  # no letter of the rule answered anything
    query = "SELECT text FROM rule"
    wait_until(ana, lambda: review.query(query) == [{"text": "Any part visible: yes"}])
    ben = reviewer("Ben", f"#focus?class={photos.classes.index(class_)}")
    assert asked(ben)[1] == class_
    expect(ben.locator(".rule")).to_have_text("Any part visible: yes")


def test_history_lists_answers_and_each_can_be_undone_or_changed(review, reviewer):
    ana = reviewer("Ana", "#focus")
    image, class_ = asked(ana)
    ana.keyboard.press("y")
    wait_decisions(ana, review, 1)
    ana.keyboard.press("h")
    line = ana.locator(".history li")
    expect(line).to_contain_text(f"Yes · {class_} · {image}")
    line.get_by_role("button", name="Change").click()
    expect(ana.locator("dialog .look:not(.gated) img")).to_be_visible()
    ana.locator("dialog .answers [aria-keyshortcuts=N]").click()
    row = wait_decisions(ana, review, 2)[-1]
    assert (row["image"], row["class"], row["verdict"]) == (image, class_, "absent")
    expect(line.first).to_contain_text(f"No · {class_}")
    line.first.get_by_role("button", name="Undo").click()
    assert wait_decisions(ana, review, 3)[-1]["verdict"] == "undone"
    assert state_of(review, image, class_)[:2] == ("decided", "present")
    expect(line.first).to_contain_text("undone")


def test_undo_goes_back_beyond_a_reload(review, reviewer):
    ana = reviewer("Ana", "#focus")
    labels = []
    for count in (1, 2):
        labels.append(asked(ana))
        ana.keyboard.press("y")
        wait_decisions(ana, review, count)
    ana.reload()
    asked(ana)
    for count, label in ((3, labels[1]), (4, labels[0])):
        ana.keyboard.press("z")
        row = wait_decisions(ana, review, count)[-1]
        assert (row["verdict"], row["image"], row["class"]) == ("undone", *label)
    ana.keyboard.press("z")
    expect(ana.locator("#live")).to_contain_text("Nothing left to undo.")
    assert len(review.decisions()) == 4


def test_examples_show_what_was_verified(review, reviewer):
    ana = reviewer("Ana", "#focus")
    image, class_ = asked(ana)
    ana.keyboard.press("e")
    expect(ana.locator("dialog")).to_contain_text("Nobody has verified a picture of")
    ana.keyboard.press("Escape")
    ana.keyboard.press("y")
    wait_decisions(ana, review, 1)
    ana.keyboard.press("ArrowLeft")
    assert asked(ana)[0] == image
    ana.locator(".chip", has_text=class_).first.click()
    ana.keyboard.press("e")
    expect(ana.locator("dialog .examples img")).to_have_count(1)
    assert ana.locator("dialog .examples img").get_attribute("alt") == image


def test_what_others_answer_meanwhile_is_no_longer_asked_in_an_open_sweep(
    photos, serve, new_context
):
    review = serve(photos, "--overlap", "0")  # nothing is asked twice
    ana = enter(new_context(), review, "Ana", f"#sweep?class={photos.number('star')}&kind=missing")
    expect(ana.locator("button.go")).to_contain_text("Add “star” to 32")
    tiles = ana.get_by_role("option")
    names = [tile.get_attribute("aria-label").partition(":")[0] for tile in tiles.all()]
    rest = {f.image for f in photos.findings if f.class_ == "star" and f.problem == "missing"}
    later = sorted(rest - set(names))
    tiles.nth(3).hover()
    ben = enter(new_context(), review, "Ben", "#start")
    expect(ben.locator("h1")).to_contain_text("What do you want?")
    post(ben, later[0], "star", "absent")  # known to Ana's page once it knows of the others
    for image, verdict in ((names[3], "present"), (names[7], "present"), (names[9], "unsure")):
        post(ben, image, "star", verdict)
    expect(tiles.nth(7).locator(".badge")).to_have_text("✓ Ben")
    expect(tiles.nth(9).locator(".badge")).to_have_text("+")  # Ben does not know
    expect(tiles.nth(3).locator(".badge")).to_have_text("+")  # not under the pointer
    expect(ana.locator("button.go")).to_contain_text("Add “star” to 31")
    tiles.nth(0).hover()
    expect(tiles.nth(3).locator(".badge")).to_have_text("✓ Ben")
    expect(ana.locator("button.go")).to_contain_text("Add “star” to 30")
    ana.keyboard.press("Enter")
    rows = wait_decisions(ana, review, 34)
    mine = {row["image"] for row in rows if row["reviewer"] == "Ana"}
    assert mine == set(names) - {names[3], names[7]}
    expect(tiles).to_have_count(len(later) - 1)
    assert later[0] not in [tile.get_attribute("aria-label")[:8] for tile in tiles.all()]
    assert {state for _, _, state, _, _ in review.states()} == {"decided"}
