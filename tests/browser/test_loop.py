"""The loop closes: review in the browser, export, train, audit, compare."""

import csv
import json
from pathlib import Path

import pytest

from balancemix.cli import main
from balancemix.labels.table import Status
from balancemix.run import Run
from tests.browser.asking import answer_truly
from tests.browser.conftest import enter
from tests.browser.serving import wait_until

SMALL = ("--image-size", "96")  # the usual backbone: a random one finds next to nothing
TRAIN = (*SMALL, "--method", "ridge", "--workers", "0")
ANSWERS = 20


def told(capsys, *call: str) -> str:
    assert main(list(call)) == 0
    return capsys.readouterr().out


def listed(file: str | Path) -> set[tuple[str, str]]:
    """List the labels of a table of findings."""
    with open(file, newline="", encoding="utf-8") as lines:
        return {(row["image"], row["class"]) for row in csv.DictReader(lines)}


@pytest.mark.point(14)
def test_only_what_was_accepted_changes_and_is_not_asked_again(
    photos, serve, new_context, monkeypatch, capsys
):
    monkeypatch.chdir(photos.path.parent)
    before = (photos.path / "labels.csv").read_bytes()
    told(capsys, "train", "photos", *TRAIN, "--out", "before")
    told(capsys, "audit", "photos", *SMALL, "--above", "0.2", "--out", "first.csv")
    review = serve(photos)
    page = enter(new_context(), review, "Ana", "#focus")
    answers = answer_truly(page, review, photos, ANSWERS)
    review.stop()
    assert (photos.path / "labels.csv").read_bytes() == before

    # Export: only what was accepted.
    told(capsys, "export", "photos", "--out", "new.csv")
    old, new = photos.labels(), photos.labels(Path("new.csv"))
    changed = {(image, name) for image in old for name in old[image] ^ new[image]}
    assert changed
    assert changed == {
        label for label, there in answers.items() if there != (label[1] in old[label[0]])
    }

    # Train and audit trust it, and do not ask again.
    told(capsys, "train", "photos", *TRAIN, "--out", "trusted")
    table = Run.open(Path("trusted")).table
    assert int((table.status == Status.VERIFIED).sum()) > 0
    told(capsys, "audit", "photos", *SMALL, "--above", "0.2", "--out", "second.csv")
    assert answers.keys() & listed("first.csv")
    assert not answers.keys() & listed("second.csv")
    review.start()
    page.goto(f"{review.url}/#focus")
    more = answer_truly(page, review, photos, 5)
    assert not more.keys() & answers.keys()

    # Did it help?
    told(capsys, "train", "new.csv", "--images", "photos", *TRAIN, "--out", "after")
    result = json.loads(told(capsys, "compare", "before", "after", "--json"))
    assert result["mAP"]["low"] <= result["mAP"]["difference"] <= result["mAP"]["high"]
    wait_until(page, lambda: page.locator("#saved").get_attribute("title"), "the header")
