"""A review of eight small pictures, asked over HTTP without a socket."""

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from starlette.testclient import TestClient

from balancemix.auditing.snapshot import fingerprint_of
from balancemix.data import ReadOptions, Source, read
from balancemix.data.decisions import store_folder
from balancemix.data.decisions.snapshots import Suspicion
from balancemix.data.decisions.store import Store
from balancemix.review.app import make_app
from balancemix.review.desk import Desk, Settings
from balancemix.review.handling import DeskThread
from balancemix.review.pictures import Pictures
from balancemix.review.security import Gate, hosts_of

KEY = "k" * 43
HOST = "http://127.0.0.1:8742"
CLASSES = ["cat", "dog", "owl"]
# Row i has the labels of LABELS[i]; the findings are about rows 0 to 5.
LABELS = ["cat", "cat|dog", "dog", "owl", "cat|owl", "", "dog|owl", "cat"]
FINDINGS = [
    ("0.png", "dog", 0, 0.95),
    ("0.png", "cat", 1, 0.6),
    ("1.png", "dog", 1, 0.9),
    ("2.png", "cat", 0, 0.8),
    ("3.png", "owl", 1, 0.75),
    ("4.png", "dog", 0, 0.7),
    ("5.png", "owl", 0, 0.65),
]
AS_IN_FILES = ReadOptions(skip_bad=True, verified=False)


def draw(folder: Path) -> Path:
    """Write the pictures and their labels."""
    folder.mkdir()
    lines = ["image,labels"]
    for i, labels in enumerate(LABELS):
        Image.new("RGB", (60 + i, 40), (25 * i, 80, 120)).save(folder / f"{i}.png")
        lines.append(f"{i}.png,{labels}")
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")
    return folder


def suspicions() -> list[Suspicion]:
    return [
        Suspicion(image, name, "wrong" if given else "missing", given, 1 - given, p)
        for image, name, given, p in FINDINGS
    ]


def add_snapshot(source: Source, findings: list[Suspicion] | None = None) -> None:
    with Store.open(store_folder(source.path), create=True) as store:
        store.add_snapshot(
            source=str(source.path),
            fingerprint=fingerprint_of(source),
            judge='{"measured": [], "not_judged": ["owl"]}',
            seed=0,
            expected=(2.5, 4.25),
            findings=suspicions() if findings is None else findings,
            names=source.names,
        )


class Review:
    """A desk, its application, and browsers that ask it."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder = folder
        self.thread = DeskThread()
        self.clients: list[TestClient] = []
        source = read(folder, AS_IN_FILES)
        if not (store_folder(folder) / "review.sqlite").exists():
            add_snapshot(source)
        self.pictures = Pictures.of(source, AS_IN_FILES, store_folder(folder) / "thumbs")

        def make() -> Desk:
            store = Store.open(store_folder(folder))
            return Desk(source, store, Settings("photos", **settings), self.pictures)

        self.desk: Desk = self.thread.run(make)
        self.gate = Gate(KEY, self.desk.store_id, hosts_of(8742))
        self.app = make_app(self.desk, self.thread, self.gate)

    def browser(self, name: str | None = "Ana", host: str = HOST) -> "Browser":
        """Open the page with the key, as somebody."""
        browser = Browser(self, host)
        if name is not None:
            assert browser.post("/api/key", {"key": KEY, "name": name}).status_code == 204
        return browser

    def store(self) -> Store:
        """Open the store beside the server, to read it."""
        return Store.open(store_folder(self.folder), write=False)

    def close(self) -> None:
        self.thread.run(self.desk.store.close)
        self.thread.close()
        self.pictures.close()


class Browser:
    """One tab."""

    def __init__(self, review: Review, host: str = HOST) -> None:
        self.client = TestClient(review.app, base_url=host, raise_server_exceptions=True)
        self.headers = {"Tab": str(uuid.uuid4()), "Origin": host}

    def get(self, path: str, **headers: str) -> Any:
        return self.client.get(path, headers={"Tab": self.headers["Tab"], **headers})

    def post(self, path: str, body: Any, **headers: str) -> Any:
        return self.client.post(path, json=body, headers={**self.headers, **headers})

    def json(self, path: str) -> Any:
        reply = self.get(path)
        assert reply.status_code == 200, reply.text
        return reply.json()

    def answer(self, image: str, name: str, verdict: str, **more: Any) -> Any:
        """Answer one question, and return the reply."""
        return self.send(decision(image, name, verdict, **more))

    def send(self, *decisions: dict[str, Any], passed: Any = ()) -> Any:
        body = {"decisions": list(decisions), "passed": list(passed)}
        reply = self.post("/api/decisions", body)
        assert reply.status_code == 200, reply.text
        return reply.json()

    def undo(self, client: str) -> Any:
        return self.send({"client": str(uuid.uuid4()), "verdict": "undone", "undoes": client})

    def rows(self, query: str = "", count: int = 20) -> list[int]:
        """List the pictures that come next, in their order."""
        items = self.json(f"/api/queue?n={count}&{query}")["items"]
        return [item["image"]["row"] for item in items]


def decision(image: str, name: str, verdict: str, **more: Any) -> dict[str, Any]:
    facts = {"client": str(uuid.uuid4()), "image": image, "class": name, "verdict": verdict}
    return {**facts, "mode": "focus", "width": 1280, "ms": 1840, **more}


@pytest.fixture
def photos(tmp_path) -> Path:
    return draw(tmp_path / "photos")


@pytest.fixture
def make(photos) -> Iterator[Callable[..., Review]]:
    """Open reviews of the photos, with settings."""
    made: list[Review] = []

    def open_review(**settings: Any) -> Review:
        made.append(Review(photos, **settings))
        return made[-1]

    yield open_review
    for each in made:
        each.close()


@pytest.fixture
def review(make) -> Review:
    return make(overlap=0.0)
