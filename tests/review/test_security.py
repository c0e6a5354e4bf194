"""Who is let in: the key, the host, the origin, the kind and size of what is sent."""

import pytest

from balancemix.review.bodies import LARGEST
from balancemix.review.security import POLICY, hosts_of
from tests.review.conftest import HOST, KEY, decision

API = ["/api/state", "/api/queue", "/api/item?row=0", "/api/changes", "/image/0/256"]


def test_the_page_itself_needs_no_key_and_says_nothing(review):
    browser = review.browser(None)
    for path in ("/", "/static/review.js", "/static/review.css"):
        reply = browser.get(path)
        assert reply.status_code == 200
        assert "0.png" not in reply.text
        assert KEY not in reply.text


@pytest.mark.parametrize("path", API)
def test_without_the_key_nothing_is_told(review, path):
    reply = review.browser(None).get(path)
    assert reply.status_code == 401
    assert reply.json() == {
        "error": "key",
        "message": "Open the address that `balancemix review` printed: it carries the key to this "
        "page.",
    }


def test_a_wrong_key_is_refused_and_changes_nothing(review):
    browser = review.browser(None)
    for key in ("x" * 43, "", None, KEY[:-1]):
        reply = browser.post("/api/key", {"key": key, "name": "Eve"})
        assert reply.status_code in (400, 401)
        assert "set-cookie" not in reply.headers
    assert browser.get("/api/state").status_code == 401


def test_the_key_gives_a_cookie_that_scripts_and_other_sites_do_not_get(review):
    browser = review.browser(None)
    reply = browser.post("/api/key", {"key": KEY, "name": "Ana"})
    cookie = reply.headers["set-cookie"]
    assert reply.status_code == 204
    assert cookie.startswith(f"balancemix-{review.desk.store_id}=")
    assert {"HttpOnly", "Path=/", "SameSite=strict"} <= set(cookie.split("; "))
    assert browser.json("/api/state")["me"] == "Ana"


def test_the_name_changes_without_the_key_and_stays_when_the_page_is_opened_again(review):
    browser = review.browser("Ana")
    assert browser.post("/api/key", {"key": KEY, "name": None}).status_code == 204
    assert browser.json("/api/state")["me"] == "Ana"
    assert browser.post("/api/key", {"key": None, "name": " Zoë; ü=1 "}).status_code == 204
    assert browser.json("/api/state")["me"] == "Zoë; ü=1"
    assert browser.post("/api/key", {"key": None, "name": "   "}).status_code == 400


def test_a_cookie_of_another_store_opens_nothing(review):
    browser = review.browser("Ana")
    for cookie in (f"balancemix-other={KEY}.Ana", f"balancemix-{review.desk.store_id}=x.Ana", "="):
        assert review.browser(None).get("/api/state", Cookie=cookie).status_code == 401
    assert browser.get("/api/state", Store="other").status_code == 409
    assert browser.get("/api/state", Store=review.desk.store_id).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:8743", "localhost.evil.example:8742",
             "[::1]:8742.evil.example", "", "127.0.0.1:8742, evil.example"],
)  # fmt: skip
def test_a_name_that_was_made_to_point_here_is_refused(review, host):
    browser = review.browser("Ana")
    for path in ("/", "/api/state", "/image/0/256"):
        assert browser.get(path, Host=host).status_code == 403
    assert browser.post("/api/key", {"key": KEY}, Host=host).status_code == 403


@pytest.mark.parametrize("host", sorted(hosts_of(8742)))
def test_the_names_of_this_machine_are_known(review, host):
    browser = review.browser("Ana", f"http://{host}")
    assert browser.json("/api/state")["me"] == "Ana"


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": "http://localhost:8742"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
    ],
)
def test_another_page_may_not_write(review, headers):
    browser = review.browser("Ana")
    body = {"decisions": [decision("0.png", "dog", "present")]}
    assert browser.post("/api/decisions", body, **headers).status_code == 403
    assert len(review.desk.log) == 0


def test_a_post_without_an_origin_is_refused(review):
    browser = review.browser("Ana")
    reply = browser.client.post("/api/decisions", json={"decisions": []})
    assert reply.status_code == 403


def test_another_page_of_this_machine_may_not_read(review):
    browser = review.browser("Ana")
    for path in ("/api/state", "/image/0/256"):
        assert browser.get(path, **{"Sec-Fetch-Site": "same-site"}).status_code == 403
        assert browser.get(path, **{"Sec-Fetch-Site": "same-origin"}).status_code == 200
    assert (
        browser.get("/", **{"Sec-Fetch-Site": "cross-site"}).status_code == 200
    )  # a link in a chat


@pytest.mark.parametrize(
    "path", ["/", "/api/state", "/image/0/256", "/nothing", "/static/review.js"]
)
def test_every_answer_has_the_headers(review, path):
    for browser in (review.browser("Ana"), review.browser(None)):
        headers = browser.get(path).headers
        assert headers["content-security-policy"] == POLICY
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert "access-control-allow-origin" not in headers
        assert "server" not in headers


def test_what_may_be_kept_is_said(review):
    browser = review.browser("Ana")
    assert browser.get("/api/state").headers["cache-control"] == "no-store"
    assert "immutable" in browser.get("/image/0/256?v=1").headers["cache-control"]
    assert browser.get("/image/999/256").headers["cache-control"] == "no-store"


def test_a_large_body_is_refused(review):
    browser = review.browser("Ana")
    big = {"decisions": [], "passed": [], "x": "x" * LARGEST}
    assert browser.post("/api/decisions", big).status_code == 413
    parts = (b" " * 65536 for _ in range(10))  # without saying how much there will be
    reply = browser.client.post(
        "/api/decisions",
        content=parts,
        headers={**browser.headers, "Content-Type": "application/json"},
    )
    assert reply.status_code == 413


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_ways_to_ask_are_refused(review, method):
    browser = review.browser("Ana")
    headers = {**browser.headers, "Content-Type": "application/json"}
    reply = browser.client.request(method, "/api/state", headers=headers)
    assert reply.status_code == 405
    assert "access-control-allow-origin" not in reply.headers


@pytest.mark.parametrize(
    "path", ["/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static/app.py",
             "/static/", "/api/nothing", "/review.sqlite", "/key", "/image/0/256/..",
             "/image/x/256", f"/image/{'9' * 5000}/256", "/image/0/1e3"],
)  # fmt: skip
def test_nothing_else_is_served(review, path):
    reply = review.browser("Ana").get(path)
    assert reply.status_code == 404
    assert reply.json()["error"] == "address"


def test_a_socket_is_refused(review):
    from starlette.websockets import WebSocketDisconnect

    browser = review.browser("Ana")
    with pytest.raises(WebSocketDisconnect), browser.client.websocket_connect("/api/state"):
        pass


def test_hosts_of_another_address_are_numbers_or_that_name(review):
    from dataclasses import replace

    from starlette.datastructures import Headers

    gate = replace(review.gate, hosts=hosts_of(80, "box.local"), any_address=True)
    scope = {"method": "GET", "path": "/"}
    for host in ("box.local:80", "10.0.0.7:80", "[fe80::1]:80", "10.0.0.7"):
        gate.check_origin(scope, Headers({"host": host}))
    for host in ("evil.example:80", "10.0.0.7.evil.example"):
        with pytest.raises(Exception, match="not the one"):
            gate.check_origin(scope, Headers({"host": host}))


def test_the_key_is_in_no_address(review):
    assert "k=" not in HOST
    assert review.browser(None).get(f"/?k={KEY}").status_code == 200
    assert review.browser(None).get(f"/api/state?k={KEY}").status_code == 401
