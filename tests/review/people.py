"""A served review without a browser: a table of labels, findings, and people who ask and answer."""

import numpy as np
from starlette.testclient import TestClient

from balancemix.data import read
from balancemix.data.decisions import store_folder
from balancemix.data.decisions.snapshots import Suspicion
from balancemix.data.decisions.store import Store
from balancemix.data.source import ReadOptions
from balancemix.review.app import make_app
from balancemix.review.desk import Desk, Settings
from balancemix.review.handling import DeskThread
from balancemix.review.security import Gate

HOST = "127.0.0.1:8742"
CLASSES = ["cat", "dog", "owl"]


class Review:
    """A review of made-up rows; every fourth label is a finding."""

    def __init__(self, folder, rows=40, overlap=1.0):
        generator = np.random.default_rng(0)
        self.given = (generator.random((rows, len(CLASSES))) < 0.5).astype(int)
        path = folder / "rows.npz"
        features = generator.normal(size=(rows, 4)).astype(np.float32)
        names = np.array([f"{i}.jpg" for i in range(rows)])
        np.savez(path, features=features, labels=self.given, classes=np.array(CLASSES), names=names)
        self.source = read(str(path), ReadOptions(verified=False))
        self.names = list(self.source.names)
        self.found = [(i, k) for i in range(rows) for k in range(3) if (i + k) % 4 == 0]
        self.thread = DeskThread()
        self.folder, self.overlap = store_folder(self.source.path), overlap
        self.desk = self.thread.run(self._open)
        gate = Gate("key", self.desk.store_id, (HOST,))
        self.app = make_app(self.desk, self.thread, gate)

    def _open(self):
        findings = []
        for n, (i, k) in enumerate(self.found):
            given, p = int(self.given[i, k]), 0.95 - 0.4 * n / len(self.found)
            problem = "wrong" if given else "missing"
            findings.append(Suspicion(self.names[i], CLASSES[k], problem, given, 1 - given, p))
        store = Store.open(self.folder, create=True)
        store.add_snapshot(
            source="rows", fingerprint="f", judge="j", seed=0, expected=(1.0, 1.0),
            findings=findings,
        )  # fmt: skip
        return Desk(self.source, store, Settings("rows", overlap=self.overlap))

    def person(self, name):
        """Open the page under a name."""
        headers = {"origin": f"http://{HOST}", "tab": f"tab-{name}"}
        client = TestClient(self.app, base_url=f"http://{HOST}", headers=headers)
        assert client.post("/api/key", json={"key": "key", "name": name}).status_code == 204
        return Someone(self, client, name)

    def close(self):
        self.thread.run(self.desk.store.close)
        self.thread.close()


class Someone:
    """A person at the page."""

    def __init__(self, review, client, name):
        self.review, self.client, self.name, self.number = review, client, name, 0

    def get(self, path):
        reply = self.client.get(path)
        assert reply.status_code == 200, reply.text
        return reply.json()

    def post(self, path, body, status=200):
        reply = self.client.post(path, json=body)
        assert reply.status_code == status, reply.text
        return reply.json()

    def say(self, row, column, verdict, mode="focus", **more):
        """Answer about a label; returns the answer's client."""
        self.number += 1
        client = f"{self.name}-{self.number:08}"
        answer = {
            "client": client, "image": self.review.names[row], "class": CLASSES[column],
            "verdict": verdict, "mode": mode, "width": 1280, "ms": 1000, **more,
        }  # fmt: skip
        self.post("/api/decisions", {"decisions": [answer]})
        return client

    def undo(self, client):
        self.number += 1
        undo = {"client": f"{self.name}-{self.number:08}", "verdict": "undone", "undoes": client}
        self.post("/api/decisions", {"decisions": [undo]})
