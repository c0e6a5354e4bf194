"""Measure the review page with 100,000 findings in a real browser, beside its budget.

    python benchmarks/review.py [--findings 100000] [--work FOLDER]

Pictures are drawn, large as a camera's, and linked under many names; they and the store are made
once in FOLDER (default a temporary directory) and used again. Each line is one JSON line: the
median and the 95th percentile of its repetitions, in milliseconds. Needs chromium.
"""

from __future__ import annotations

import argparse
import csv
import http.client
import json
import os
import shutil
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import BrowserContext, Page, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from balancemix.auditing.snapshot import fingerprint_of
from balancemix.data import read
from balancemix.data.decisions import store_folder
from balancemix.data.decisions.snapshots import Suspicion
from balancemix.data.decisions.store import Store
from balancemix.progress import progress
from tests.browser.conftest import FLAGS, NAMES, enter
from tests.browser.drawn import CLASSES, draw
from tests.browser.serving import Forge, Served

COLUMNS = [*CLASSES, *(f"class {k:02}" for k in range(len(CLASSES), 80))]
EACH = 4  # findings of a picture
LARGE = (4000, 3000)  # a camera's picture
DIFFERENT = 40  # pictures; the others are the same files by other names
ANSWERS, CALLS, STARTS = 50, 200, 5
THINKING = 1500  # milliseconds that a person looks at a picture
BUDGET = {
    "address to first picture": 1000.0,
    "answer to next picture painted": 50.0, "answer to commit": 10.0,
    "/api/queue": 10.0, "/api/state, class counts": 100.0,
}  # fmt: skip
# Answer the questions of a picture; resolves to the time from the last one to the next picture.
NEXT = """async () => {
  const main = document.querySelector("main");
  const frame = () => new Promise(requestAnimationFrame);
  for (;;) {
    const start = performance.now();
    document.activeElement.dispatchEvent(new KeyboardEvent("keydown",
      {key: "y", code: "KeyY", bubbles: true, cancelable: true}));
    if (main.classList.contains("gated")) {
      while (main.classList.contains("gated")) await frame();
      return performance.now() - start;
    }
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
}"""
FIRST = """() => { const now = document.querySelector("main:not(.gated) .frame img");
  return now && now.complete && now.naturalWidth > 0; }"""


def make_data(folder: Path, findings: int) -> tuple[Path, list[Suspicion]]:
    """Draw pictures and write labels.csv, unless they are there."""
    data, pictures = folder / "photos", findings // EACH
    generator = np.random.default_rng(0)
    names = [f"{i:06}.jpg" for i in range(pictures)]
    listed = []
    for name in names:
        for k in generator.choice(len(COLUMNS), EACH, replace=False):
            side, p = int(generator.random() < 0.3), round(float(generator.uniform(0.5, 0.99)), 4)
            problem = "wrong" if side else "missing"
            listed.append(Suspicion(name, COLUMNS[k], problem, side, 1 - side, p))
    if (data / "labels.csv").exists():
        return data, listed
    shutil.rmtree(data, ignore_errors=True)
    (data / "images").mkdir(parents=True)
    with progress("draw the pictures", DIFFERENT) as bar:
        for i in range(DIFFERENT):
            there = list(generator.choice(CLASSES, 4, replace=False))
            draw(there, generator, LARGE).save(data / "images" / names[i], quality=90)
            bar.advance()
    for i in range(DIFFERENT, pictures):
        os.link(data / "images" / names[i % DIFFERENT], data / "images" / names[i])
    given: dict[str, list[str]] = {name: [] for name in names}
    for each in listed:
        if each.given:
            given[each.image].append(each.class_)
    with (data / "labels.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["image", *COLUMNS])
        writer.writerows([name, *(int(c in given[name]) for c in COLUMNS)] for name in names)
    return data, listed


def report(case: str, milliseconds: list[float]) -> None:
    """Print the line of a case."""
    middle, high = np.percentile(milliseconds, [50, 95])
    line: dict[str, Any] = {"benchmark": "review", "case": case, "ms": round(float(middle), 1)}
    if len(milliseconds) > 1:
        line["95th percentile"] = round(float(high), 1)
    if case in BUDGET:
        line |= {"requirement": f"< {BUDGET[case]:.0f} ms", "met": bool(middle < BUDGET[case])}
    print(json.dumps(line), flush=True)


@contextmanager
def timed(into: list[float]) -> Iterator[None]:
    """Add the milliseconds of a step."""
    start = time.perf_counter()
    yield
    into.append(1000 * (time.perf_counter() - start))


def save_findings(data: Path, findings: list[Suspicion]) -> None:
    """Save the findings as an audit does."""
    took: list[float] = []
    names, fingerprint = [*dict.fromkeys(f.image for f in findings)], fingerprint_of(read(data))
    shutil.rmtree(store_folder(data), ignore_errors=True)
    with Store.open(store_folder(data), create=True) as store, timed(took):
        store.add_snapshot(
            source=str(data), fingerprint=fingerprint, judge="", seed=0, expected=(None, None),
            findings=findings, names=names,
        )  # fmt: skip
    report(f"import {len(findings):,} findings", took)


def calls(served: Served, context: BrowserContext) -> None:
    """Time what the server answers, without the browser."""
    port = int(served.url.rpartition(":")[2])
    cookie = "; ".join(f"{each['name']}={each['value']}" for each in context.cookies())
    connection = http.client.HTTPConnection("127.0.0.1", port)
    headers = {"Cookie": cookie, "Tab": str(uuid.uuid4())}
    for case, path in (
        ("/api/queue", "/api/queue?n=6"),
        ("/api/state, class counts", "/api/state"),
    ):
        took: list[float] = []
        for _ in range(CALLS):
            with timed(took):
                connection.request("GET", path, headers=headers)
                reply = connection.getresponse()
                reply.read()
            assert reply.status == 200, reply.status
        report(case, took)
    connection.close()


def first_pictures(served: Served, context: BrowserContext) -> Page:
    """Time a page from its address to its first picture, which was never shown before."""
    took: list[float] = []
    for _ in range(STARTS):
        shutil.rmtree(served.file.parent / "thumbs", ignore_errors=True)
        page = context.new_page()
        with timed(took):
            page.goto(f"{served.url}/#focus")
            page.wait_for_function(FIRST)
        if len(took) < STARTS:
            page.close()
    report("address to first picture", took)
    return page


def answers(page: Page) -> None:
    """Time answers: until the next picture is painted, and until they are saved."""
    painted = []
    page.wait_for_timeout(2 * THINKING)
    page.evaluate("performance.setResourceTimingBufferSize(5000)")
    with progress("answer", ANSWERS) as bar:
        for _ in range(ANSWERS):
            painted.append(float(page.evaluate(NEXT)))
            page.wait_for_timeout(THINKING)
            bar.advance()
    report("answer to next picture painted", painted)
    saved = page.evaluate(
        """performance.getEntriesByType("resource").filter((e) => e.name.endsWith("/api/decisions"))
           .map((e) => e.responseEnd - e.requestStart)"""
    )
    report("answer to commit", saved)


def main() -> None:
    """Measure every step of the budget."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--findings", type=int, default=100_000)
    parser.add_argument("--work", type=Path)
    arguments = parser.parse_args()
    browser = next(filter(None, map(shutil.which, NAMES)), None)
    if browser is None:
        sys.exit("benchmarks/review.py needs chromium; install it (apt-get install chromium)")
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.work or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        data, findings = make_data(folder, arguments.findings)
        save_findings(data, findings)
        forge = Forge()
        served = Served(forge, data, store_folder(data))
        took: list[float] = []
        try:
            with timed(took):
                served.start()
            report("command to address, after imports", took)
            with sync_playwright() as playwright:
                running = playwright.chromium.launch(executable_path=browser, args=FLAGS)
                context = running.new_context(viewport={"width": 1440, "height": 900})
                enter(context, served, "Ana").close()
                calls(served, context)
                answers(first_pictures(served, context))
                running.close()
        finally:
            served.kill()
            forge.close()


if __name__ == "__main__":
    main()
