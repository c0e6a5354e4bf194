"""The command that serves the page: key, port, lock, signals, and what the terminal says."""

import http.client
import json
import os
import re
import signal
import socket
import stat
import sys

import pytest

from balancemix.cli import main
from balancemix.commands import review_address
from balancemix.data import read
from balancemix.data.decisions import store_folder
from balancemix.data.decisions.store import Store
from balancemix.review import server
from balancemix.review.key import Key, read_key, write_key
from balancemix.review.lock import only_server
from tests.browser.serving import Forge, Served
from tests.review.conftest import AS_IN_FILES, add_snapshot, decision


@pytest.fixture(scope="module")
def forge():
    process = Forge()
    yield process
    process.close()


@pytest.fixture
def served(forge, photos):
    add_snapshot(read(photos, AS_IN_FILES))
    options = ("--no-open", "--port", "0", "--overlap", "0")  # nothing is asked twice
    made = Served(forge, photos, store_folder(photos), *options)
    made.start()
    made.options = ["--no-open"]  # the next start must find the port by itself
    yield made
    made.kill()


def ask(served, method, path, body=None, cookie=None):
    """Ask over a socket; returns the status, the headers and the JSON."""
    host = served.url.removeprefix("http://")
    connection = http.client.HTTPConnection(host, timeout=30)
    headers = {"Tab": "t", **({"Cookie": cookie} if cookie else {})}
    if method == "POST":
        headers |= {"Origin": served.url, "Content-Type": "application/json"}
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    reply = connection.getresponse()
    content = reply.read()
    connection.close()
    return reply.status, reply.headers, json.loads(content) if content[:1] == b"{" else content


def let_in(served, name="Ana"):
    """Post the key, and return the cookie."""
    key = served.address.partition("#k=")[2]
    status, headers, _ = ask(served, "POST", "/api/key", {"key": key, "name": name})
    assert status == 204
    return headers["set-cookie"].partition(";")[0]


def test_the_terminal_says_where_the_page_is_and_that_nothing_is_lost(served):
    line = served.log.read_text().splitlines()[-1]
    assert re.fullmatch(
        r"Review of \S+photos: 7 findings, 0 answered\. Open http://127\.0\.0\.1:\d+/#k=[\w-]{43} "
        r"\(Ctrl-C ends; every answer is already saved\)",
        line,
    )
    assert ask(served, "GET", "/")[0] == 200
    assert ask(served, "GET", "/api/state")[0] == 401
    assert "server" not in ask(served, "GET", "/")[1]


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_cleanly(served, sign):
    cookie = let_in(served)
    assert ask(served, "GET", "/api/state", cookie=cookie)[0] == 200
    served._end(sign)
    text = served.log.read_text()
    assert text.endswith("Ended. Every answer is saved in photos.balancemix/review.sqlite\n")
    assert "Traceback" not in text
    left = {path.name for path in store_folder(served.data).iterdir()}
    assert "review.sqlite-wal" not in left  # all of it is in the one file
    assert left >= {"key", "review.sqlite"}


def test_an_open_tab_goes_on_after_a_kill(served):
    cookie = let_in(served)
    sent = {"decisions": [decision("0.png", "dog", "present")]}
    assert ask(served, "POST", "/api/decisions", sent, cookie)[0] == 200
    served.restart()  # the same address
    status, _, reply = ask(served, "POST", "/api/decisions", sent, cookie)
    assert (status, reply["seq"]) == (200, 1)
    assert ask(served, "GET", "/api/state", cookie=cookie)[2]["me"] == "Ana"
    assert len(served.decisions()) == 1


def test_the_key_is_its_owners_and_a_new_one_shuts_the_old_out(served):
    file = store_folder(served.data) / "key"
    if os.name == "posix":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    cookie, before = let_in(served), served.address
    served.kill()
    served.options.append("--new-key")
    served.start()
    assert served.address != before
    assert served.address.partition("/#")[0] == before.partition("/#")[0]
    assert ask(served, "GET", "/api/state", cookie=cookie)[0] == 401


def test_a_second_server_says_where_the_first_one_is(served, capsys):
    assert main(["review", str(served.data), "--no-open"]) == 2
    err = capsys.readouterr().err
    expected = f"photos.balancemix is already open at {served.url} \\(process \\d+\\)"
    assert re.search(expected, err)
    assert err.count("\n") == 1


def test_while_the_page_is_open_others_read_and_write(served, capsys, tmp_path):
    cookie = let_in(served)
    sent = {"decisions": [decision("0.png", "dog", "present")]}
    assert ask(served, "POST", "/api/decisions", sent, cookie)[0] == 200
    assert main(["export", str(served.data), "--out", str(tmp_path / "out.csv")]) == 0
    assert "1 labels changed" in capsys.readouterr().out
    table = tmp_path / "filled.csv"
    table.write_text("image,class,problem,verdict\n1.png,dog,wrong,absent\n")
    assert main(["review", str(served.data), "--read", str(table), "--name", "Ben"]) == 0
    state = ask(served, "GET", "/api/state", cookie=cookie)[2]
    assert (state["people"], state["open"]) == (["Ana", "Ben"], 5)


def test_a_port_that_is_taken_is_said(photos, capsys):
    add_snapshot(read(photos, AS_IN_FILES))
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        write_key(store_folder(photos), Key.new(port))
        assert main(["review", str(photos), "--no-open"]) == 2
    err = capsys.readouterr().err
    assert f"port {port} is taken by another program" in err
    assert "--port" in err
    assert err.count("\n") == 1


def test_a_free_port_is_found_where_none_is_kept():
    with server.bind("127.0.0.1", None) as first, server.bind("127.0.0.1", None) as second:
        ports = {first.getsockname()[1], second.getsockname()[1]}
    assert len(ports) == 2
    assert all(server.FIRST <= port <= server.LAST for port in ports)


def test_keys_are_long_and_read_back(tmp_path):
    assert read_key(tmp_path) is None
    key = Key.new(8742)
    write_key(tmp_path, key)
    assert read_key(tmp_path) == key
    assert len(key.key) == 43
    assert Key.new().key != Key.new().key
    for text in ("", "{}", "[]", '{"key": 1, "port": 2}', '{"key": "short", "port": null}'):
        (tmp_path / "key").write_text(text)
        with pytest.raises(ValueError, match="--new-key"):
            read_key(tmp_path)


def test_a_lock_ends_with_its_holder(tmp_path):
    with only_server(tmp_path) as announce:
        announce("http://127.0.0.1:1")
        with pytest.raises(ValueError, match=r"already open at http://127\.0\.0\.1:1"):
            only_server(tmp_path).__enter__()
    with only_server(tmp_path):
        pass


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--overlap", "2"], "--overlap 2.0: must be from 0 to 1"),
        (["--stop", "nan"], "--stop nan: must be from 0 to 1"),
        (["--question", "Is it there?"], "must contain {class}"),
        (["--max-pixels", "0"], "must be at least 1"),
        (["--port", "70000"], "must be from 0 to 65535"),
        (["--host", "192.0.2.1", "--port", "0"], "--host 192.0.2.1: cannot be listened on"),
    ],
)
def test_mistakes_are_one_line(photos, capsys, argv, message):
    add_snapshot(read(photos, AS_IN_FILES))
    assert main(["review", str(photos), "--no-open", *argv]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_without_the_extra_one_line_says_what_to_install(photos, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "starlette", None)
    assert main(["review", str(photos)]) == 2
    err = capsys.readouterr().err
    assert "pip install balancemix[review]" in err
    assert err.count("\n") == 1
    assert not store_folder(photos).exists()


def test_a_folder_that_cannot_be_written_is_refused_before_anybody_answers(photos, capsys):
    store_folder(photos).write_text("a file in its place")
    assert main(["review", str(photos), "--no-open"]) == 2
    err = capsys.readouterr().err
    assert "photos.balancemix: cannot be written" in err
    assert "no answer could be saved" in err


def test_data_that_was_never_judged_is_judged_first(forge, photos):
    made = Served(forge, photos, store_folder(photos), "--no-open", "--port", "0")
    try:
        made.start()
        text = made.log.read_text()
        assert "judging its labels first" in text
        made.kill()
        made.options = ["--no-open"]
        made.start()
        assert "judging" not in made.log.read_text()
    finally:
        made.kill()
    with Store.open(store_folder(photos), write=False) as store:
        assert store.newest_snapshot().id == 1


def test_rows_that_share_a_name_are_refused(photos, capsys):
    with (photos / "labels.csv").open("a") as file:
        file.write("0.png,dog\n")
    assert main(["review", str(photos), "--no-open"]) == 2
    assert "0.png" in capsys.readouterr().err


def test_another_host_is_warned_about(photos, capsys, monkeypatch):
    add_snapshot(read(photos, AS_IN_FILES))
    gates = []
    monkeypatch.setattr(server, "serve", lambda app, listener: gates.append(app.state.gate))
    assert main(["review", str(photos), "--port", "0", "--host", "0.0.0.0"]) == 0
    captured = capsys.readouterr()
    assert "not encrypted" in captured.err
    assert re.search(r"ssh -L \d+:127\.0\.0\.1:\d+", captured.err)
    assert f"Open http://{socket.gethostname()}:" in captured.out
    assert gates[0].any_address
    assert main(["review", str(photos), "--port", "0", "--host", "localhost"]) == 0
    assert capsys.readouterr().err == ""
    assert not gates[1].any_address


def test_a_browser_is_opened_only_before_a_person_at_a_screen(monkeypatch, tmp_path):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    assert review_address.has_browser()
    monkeypatch.setenv("SSH_CONNECTION", "10.0.0.1 22")
    assert not review_address.has_browser()
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    file = tmp_path / "open.html"
    review_address.open_browser("http://127.0.0.1:8742/#k=secret", file)
    assert opened == [file.as_uri()]
    assert "secret" not in opened[0]
    assert "http://127.0.0.1:8742/#k=secret" in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_small_answers_do_not_wait_for_more():
    with server.bind("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP  # else asyncio leaves TCP_NODELAY off
