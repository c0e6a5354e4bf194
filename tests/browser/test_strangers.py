"""Other web pages and people without the key get nothing."""

import http.client
import json
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import enter
from tests.browser.serving import Served

NO_KEY = "Open the address that balancemix review printed: it carries the key to this page."
PATHS = [
    "/image/../labels.csv", "/image/..%2f..%2flabels.csv", "/image/0/../../labels.csv",
    "/image/%2e%2e/%2e%2e/etc/passwd", "/image/-1/256", "/image/999999/256", "/image/0/300",
    "/image/0/1e3", "/image/0x0/256", "/image/0/256/1", "/image/99999999999999999999/256",
    "/static/../app.py", "/static/..%2f..%2fapp.py", "/static/%2e%2e/%2e%2e/cli.py",
    "/static//etc/passwd", "/static/%00", "/image/%D9%A3/256",
]  # fmt: skip
EVIL = "http://evil.test/"
READ = "url => fetch(url, {credentials: 'include'}).then(reply => reply.text(), () => null)"
POST = """([url, body, type]) => fetch(url, {method: "POST", credentials: "include", body,
  mode: type === "text/plain" ? "no-cors" : "cors", headers: {"Content-Type": type}})
  .then(reply => reply.type, () => "refused")"""


def ask(review: Served, path: str, **headers: Any) -> tuple[int, bytes]:
    """Get a path as it is, which a browser would tidy up first."""
    connection = http.client.HTTPConnection("127.0.0.1", review.port, timeout=30)
    connection.putrequest("GET", path, skip_host=True)
    for name, value in ({"Host": f"127.0.0.1:{review.port}"} | headers).items():
        connection.putheader(name, value)
    connection.endheaders()
    reply = connection.getresponse()
    status, body = reply.status, reply.read()
    connection.close()
    return status, body


def cookies(page: Page) -> str:
    return "; ".join(f"{each['name']}={each['value']}" for each in page.context.cookies())


@pytest.mark.point(15)
def test_without_the_key_the_page_says_where_it_is(review, new_context):
    for fragment in ("", "#k=wrong", "#focus"):
        page = new_context().new_page()
        page.goto(f"{review.url}/{fragment}")
        page.get_by_text("it carries the key to this page").wait_for()
        assert NO_KEY in page.locator("main").inner_text().replace("`", "")
        assert page.locator("img").count() == 0
    for path in ("/api/state", "/api/queue?n=6", "/image/0/256"):
        status, body = ask(review, path)
        assert status == 401
        assert b"0000.jpg" not in body


@pytest.mark.point(15)
def test_the_key_leaves_the_address_bar(review, new_context):
    page = new_context().new_page()
    page.goto(review.address)
    page.get_by_text("Who is reviewing?").wait_for()
    assert "k=" not in page.url
    assert page.evaluate("document.cookie") == ""  # no script reads it


@pytest.mark.point(15)
def test_another_site_can_neither_frame_nor_read_nor_answer(photos, review, new_context):
    context = new_context()
    known = enter(context, review, "Ana", "#focus")  # the cookie is there
    finding = photos.findings[0]
    answer = {"client": "c1", "verdict": "present", "mode": "focus"}
    body = json.dumps({"decisions": [answer | {"image": finding.image, "class": finding.class_}]})
    page = context.new_page()
    html = f'<iframe src="{review.url}/"></iframe>'
    page.route(EVIL, lambda route: route.fulfill(body=html, content_type="text/html"))
    page.goto(EVIL)
    page.wait_for_load_state("networkidle")
    assert page.frames[1].locator("header, main").count() == 0
    for kind in ("text/plain", "application/json"):
        sent = page.evaluate(POST, [f"{review.url}/api/decisions", body, kind])
        assert sent in ("opaque", "refused")
    for path in ("/api/state", "/image/0/256"):
        assert page.evaluate(READ, review.url + path) is None
    assert review.decisions() == []
    assert known.evaluate(READ, f"{review.url}/api/state")  # the page itself can


@pytest.mark.point(15)
def test_another_host_is_refused(review, reviewer):
    page = reviewer("Ana")
    for host in ("evil.test", f"evil.test:{review.port}", "127.0.0.1", "localhost:1", ""):
        for path in ("/", "/api/state"):
            status, body = ask(review, path, Host=host, Cookie=cookies(page))
            assert status in (400, 403), host
            assert b"<script" not in body


@pytest.mark.point(16)
def test_other_paths_are_refused(review, reviewer):
    page = reviewer("Ana")
    for path in PATHS:
        status, body = ask(review, path, Cookie=cookies(page))
        assert status in (400, 404), path
        assert not any(secret in body for secret in (b"image,labels", b"root:", b"import ")), path
    assert page.evaluate(READ, f"{review.url}/image/0/256")
