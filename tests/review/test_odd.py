"""Odd data and odd requests: the server goes on, and says in one sentence what is wrong."""

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from balancemix.data import read
from balancemix.data.decisions import connection, store_folder
from balancemix.data.decisions.snapshots import Suspicion
from balancemix.data.decisions.store import Store
from balancemix.review.app import make_app
from balancemix.review.desk import Desk, Settings
from tests.conftest import tiny_arrays
from tests.review.conftest import AS_IN_FILES, add_snapshot, decision

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
FIELDS = st.sampled_from([*decision("0.png", "dog", "present"), "undoes", "batch", "p"])
POSTS = ["/api/decisions", "/api/key", "/api/settle", "/api/sample", "/api/rules"]


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    path=st.sampled_from(POSTS), changes=st.dictionaries(FIELDS, VALUES, max_size=3), whole=VALUES
)
def test_no_body_is_a_bug(review, path, changes, whole):
    browser = review.browser("Ana")
    odd = {"decisions": [decision("0.png", "dog", "present") | changes]}
    for body in (odd, odd["decisions"][0], whole):
        headers = {**browser.headers, "Content-Type": "application/json"}
        reply = browser.client.post(path, content=json.dumps(body), headers=headers)
        assert reply.status_code in (200, 204, 400, 401, 404), (body, reply.text)
    assert browser.post("/api/key", {"key": None, "name": "Ana"}).status_code == 204


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    path=st.sampled_from(["queue", "grid", "settle", "item", "changes", "history", "examples"]),
    query=st.dictionaries(
        st.sampled_from(["class", "kind", "n", "holding", "unsure", "row", "since", "before",
                         "order"]),
        st.sampled_from(["", "0", "-1", "1", "2", "99999999999", "9" * 30, "x", "missing", "\0",
                         "٣", "1e3", "0,1", ",", "1,", "random", "errors", "sample"]),
    ),
)  # fmt: skip
def test_no_query_is_a_bug(review, path, query):
    reply = review.browser("Ana").client.get(f"/api/{path}", params=query)
    assert reply.status_code in (200, 400, 404), (path, query, reply.text)


@pytest.mark.parametrize("path", ["/api/state/", "/api/queue/", "/image/0/256/"])
def test_an_address_with_a_slash_too_many_is_refused_with_a_sentence(review, path):
    browser = review.browser("Ana")
    reply = browser.client.get(path, follow_redirects=False)
    assert (reply.status_code, reply.json()["error"]) == (404, "address")


def test_a_refusal_is_one_line_whatever_it_names(review):
    reply = review.browser("Ana").post("/api/rules", {"class": "a\n\u2028b", "text": "x"})
    assert reply.status_code == 404
    assert len(reply.json()["message"].splitlines()) == 1


def test_a_line_break_after_an_address_is_another_address(review):
    browser = review.browser("Ana")
    for path in ("/api/decisions%0A", "/api/state%0A", "/%0A"):
        ask = browser.post if "decisions" in path else lambda path, _: browser.get(path)
        assert ask(path, {"decisions": [decision("0.png", "dog", "present")]}).status_code == 404
    with review.store() as store:
        assert store.verified() == []


def test_after_a_bug_the_server_goes_on(review, monkeypatch):
    browser = review.browser("Ana")
    browser.client = type(browser.client)(
        review.app, base_url="http://127.0.0.1:8742", raise_server_exceptions=False,
        cookies=dict(browser.client.cookies),
    )  # fmt: skip
    monkeypatch.setattr(review.desk, "is_asked", lambda name: 1 / 0)
    reply = browser.get("/api/state")
    assert (reply.status_code, reply.json()["error"]) == (500, "bug")
    assert reply.headers["x-frame-options"] == "DENY"
    monkeypatch.undo()
    assert browser.get("/api/state").status_code == 200


def test_without_a_write_ahead_log_answers_are_saved_too(make, photos, monkeypatch):
    add_snapshot(read(photos, AS_IN_FILES))
    opened = connection._opened
    monkeypatch.setattr(  # such files have no memory that processes share
        connection, "_opened", lambda file, mode: opened(file, f"{mode}&vfs=unix-dotfile")
    )
    with pytest.warns(UserWarning, match="does not allow a write-ahead log"):
        review = make()
    reply = review.browser("Ana").answer("0.png", "dog", "present")
    assert reply["saved"][0]["verified"]
    with review.store() as store:
        assert store.verified() == [("0.png", "dog", True)]


def reopened(review, source, pictures=None):
    """Serve other data by the same thread, as if the review had been opened on it."""
    store = review.thread.run(lambda: Store.open(store_folder(source.path)))
    review.thread.run(review.desk.store.close)
    review.desk = review.thread.run(lambda: Desk(source, store, Settings("x"), pictures))
    review.gate = replace(review.gate, store=review.desk.store_id)
    review.app = make_app(review.desk, review.thread, review.gate)
    return review.browser("Ana")


def test_names_that_are_not_utf8_go_there_and_back(make, photos):
    review, source = make(), read(photos, AS_IN_FILES)
    source = replace(source, names=["caf\udce9.png", *source.names[1:]])
    add_snapshot(source, [Suspicion("caf\udce9.png", "dog", "missing", 0, 1, 0.9)])
    browser = reopened(review, source)
    reply = browser.get("/api/item?row=0")
    assert reply.content.isascii()
    sent = {"decisions": [decision(reply.json()["image"]["name"], "dog", "present")]}
    headers = {**browser.headers, "Content-Type": "application/json"}
    posted = browser.client.post("/api/decisions", content=json.dumps(sent), headers=headers)
    assert posted.json()["saved"][0]["state"] == "decided"
    with review.store() as store:
        assert store.verified() == [("caf\udce9.png", "dog", True)]


def test_rows_without_pictures_show_their_values(make, tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, **tiny_arrays())
    source = read(path, AS_IN_FILES)
    k = next(k for k, value in enumerate(source.given[3].tolist()) if value == 0)
    add_snapshot(source, [Suspicion(source.names[3], source.classes[k], "missing", 0, 1, 0.9)])
    browser = reopened(make(), source)
    item = browser.json("/api/queue?n=1")["items"][0]
    assert item["image"]["w"] is None
    assert item["image"]["values"].startswith(f"{float(source.features[3, 0]):.3g}, ")
    assert not browser.json("/api/state")["pictures"]
    assert browser.get("/image/3/256").status_code == 404


LONG = "9" * 5000  # Python reads no integer of so many digits
ODD = [
    "null", "true", "-1", "0", "1e999", "-1e999", "NaN", "1" + "0" * 400, LONG, "0.5", '""',
    '"\\u0000"', '"a\\u0000b"', '"\\ud800"', '"' + "x" * 70_000 + '"', "[]", "{}", "[[]]",
    "[" * 5000 + "]" * 5000, '{"a":' * 5000 + "1" + "}" * 5000,
]  # fmt: skip
BODIES: dict[str, dict[str, Any]] = {
    "/api/decisions": {"decisions": [decision("0.png", "dog", "present")], "passed": []},
    "/api/key": {"key": None, "name": "Ana"},
    "/api/settle": {
        "client": "c" * 12, "image": "0.png", "sample": None, "present": [], "shown": ["dog"],
        "unsure": [], "ms": 1,
    },
    "/api/sample": {"size": 50},
    "/api/rules": {"class": 1, "text": "A dog."},
}  # fmt: skip
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "ODD"]


def paths_of(review):
    """List what may be asked for, with an odd part where the address has one."""
    for route in review.app.routes:
        for part in ("0", "-1", LONG, "%00", "a%00b", "%ff", "x" * 300):
            yield re.sub(r"\{[^}]*\}", part, route.path)


def check_refusal(reply, what):
    """Expect an answer, or one sentence of why not."""
    assert reply.status_code < 500, (what, reply.status_code, reply.text[:300])
    if reply.status_code >= 400 and reply.request.method != "HEAD":
        assert set(reply.json()) == {"error", "message"}, what
        sentence = reply.json()["message"]
        assert sentence.endswith("."), (what, sentence)
        assert "\n" not in sentence, (what, sentence)
        assert len(sentence) < 400, (what, sentence[:500])


def test_every_post_has_a_body_to_try(review):
    posts = {route.path for route in review.app.routes if "POST" in (route.methods or ())}
    assert posts == set(BODIES)


@pytest.mark.parametrize("method", METHODS)
def test_no_method_and_no_address_is_a_bug(review, method):
    browser = review.browser("Ana")
    headers = {**browser.headers, "Content-Type": "application/json"}
    for path in sorted({*paths_of(review)}):
        check_refusal(browser.client.request(method, path, headers=headers), (method, path[:80]))


@pytest.mark.parametrize("path", sorted(BODIES))
def test_no_field_of_no_body_is_a_bug(review, path):
    browser, body = review.browser("Ana"), BODIES[path]
    headers = {**browser.headers, "Content-Type": "application/json"}

    def send(text, refused=False):
        reply = browser.client.post(path, content=text, headers=headers)
        check_refusal(reply, (path, text[:200]))
        assert not refused or reply.status_code >= 400, (path, text[:200])

    for odd in ODD:
        send(odd)
    for odd in ["", "{", "\0", "'a'", '{"a":' * 5000]:
        send(odd.encode(), refused=True)
    send(json.dumps({**body, "unknown": 1}), refused=True)
    inner = body["decisions"][0] if path == "/api/decisions" else body
    for field in inner:
        for odd in ODD:
            changed = json.dumps({**inner, field: "HERE"}).replace('"HERE"', odd)
            send(changed if inner is body else f'{{"decisions": [{changed}], "passed": []}}')
    if inner is not body:
        send(json.dumps({"decisions": [{**inner, "unknown": 1}], "passed": []}), refused=True)
        for odd in ODD:
            send(f'{{"decisions": [], "passed": [{odd}]}}')
    assert review.browser("Ana").json("/api/state")["rows"] == 8


@pytest.mark.parametrize("value", ["", "-1", LONG, "%00", "0,0,%00", "%ff", "1e9", "x" * 3000])
def test_no_query_of_no_address_is_a_bug(review, value):
    browser = review.browser("Ana")
    names = ("class", "kind", "after", "n", "holding", "unsure", "anyway", "row", "since",
             "before", "order", "v", "odd")  # fmt: skip
    for route in review.app.routes:
        if "GET" in (route.methods or ()):
            path = re.sub(r"\{[^}]*\}", "0", route.path)
            for name in names:
                reply = browser.get(f"{path}?{name}={value}")
                check_refusal(reply, (path, name, value[:20]))
