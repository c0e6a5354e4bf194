"""Progress in a real browser: what is said first, and what where there is little to say."""

from playwright.sync_api import expect

from tests.browser.asking import answer_truly
from tests.browser.conftest import enter


def test_the_findings_drawn_at_random_come_first(photos, review, reviewer):
    page = reviewer("Ana", "#focus")
    answer_truly(page, review, photos, 12)
    rows = review.decisions()
    probes = [row for row in rows if row["probe"]]
    right = sum((row["verdict"] == "present") == (row["suggested"] == 1) for row in probes)
    assert probes
    page.keyboard.press("p")
    card = page.locator(".card", has_text="When the audit says")
    expect(card.locator(".big")).to_have_text(f"{right} of {len(probes)} drawn at random")
    expect(card).to_contain_text("Of all 12 answers, most of them to the surest findings,")
    first = page.locator(".card").first
    expect(first).to_contain_text("12 of 50 answers. After 50 this page says how good")
    pace = page.locator(".card", has_text="Fixed per minute")
    expect(pace.locator(".big")).to_contain_text("last 12")  # measured, before what is modelled
    expect(pace).to_contain_text("pauses over 30 s are not counted.")
    expect(pace).to_contain_text("The next 50: about")


def test_where_errors_are_measured_none_are_called_modelled(photos, serve, new_context):
    photos.findings = []
    photos.add_snapshot(measured=["missing", "wrong"])
    page = enter(new_context(), serve(photos), "Ana", "#focus")
    for place in ("main", ".advice"):
        expect(page.locator(place)).to_contain_text("The audit found nothing to ask about.")
        expect(page.locator(place)).to_contain_text("is measured, by a random sample.")
        expect(page.locator(place)).not_to_contain_text("modelled")
        page.keyboard.press("p")


def test_the_last_screen_shows_what_was_decided_last(photos, review, reviewer):
    page = reviewer("Ana", "#focus")
    (image, class_), there = list(answer_truly(page, review, photos, 3).items())[-1]
    given = class_ in photos.given[image]
    page.evaluate("location.hash = '#done'")
    newest = page.locator(".thumbs span:has(img)").first
    sign = "✓" if given == there else "+" if there else "−"
    expect(newest.locator("img")).to_have_attribute("alt", f"{sign} {class_}: {image}")
    expect(newest.locator(".badge")).to_have_text(sign)
