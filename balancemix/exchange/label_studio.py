"""Label Studio: findings as tasks with a prediction each, and the labelling interface for them.

A task is an image with at least one finding. Its prediction is the given labels as the audit would
correct them. `given` and `asked` in the task's data say what was given and which classes have a
finding; Label Studio keeps them in its export, which `label_studio_export` reads.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from balancemix.auditing.findings import Finding, Findings
from balancemix.data.source import Source
from balancemix.errors import InputError
from balancemix.exchange.pictures import by_image, pictures_of
from balancemix.files import to_json, write_text

LABELS, UNSURE, IMAGE = "labels", "unsure", "image"  # the names of the tags in the interface
LOCAL = "/data/local-files/?d="  # where Label Studio serves local files
MODEL = "balancemix"
_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def outputs(out: Path) -> list[Path]:
    """List the files that are written: the tasks, and the labelling interface."""
    return [out, out.with_suffix(".xml")]


def write(findings: Findings, out: Path, url: str | None) -> list[str]:
    """Write tasks and interface; returns what to do with them.

    `url` is what comes before the path of an image in its folder; by default, the address under
    which Label Studio serves local files if its document root is the parent of that folder.
    """
    source, images = pictures_of(findings, "Label Studio")
    folder = folder_of(source, images)
    interface = config(findings.classes)
    found = tasks(findings, folder, f"{LOCAL}{address(folder.name)}/" if url is None else url)
    write_text(out, "[\n" + ",\n".join(to_json(task) for task in found) + "\n]\n")
    write_text(out.with_suffix(".xml"), interface)
    return [
        f"in Label Studio: Settings > Labeling Interface > Code: paste {out.with_suffix('.xml')}",
        *[f"its document root (LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT): {folder.parent}"]
        * (url is None),
        f"Import: {out}; then label, Export > JSON, and: "
        f"balancemix review {source.path} --read EXPORT.json",
    ]


def tasks(findings: Findings, folder: Path, url: str) -> Iterator[dict[str, Any]]:
    """Make a task for each image with findings, the surest first."""
    source, images = pictures_of(findings, "Label Studio")
    given, classes = findings.labels, findings.classes
    for row, found in by_image(findings):
        present = [classes[k] for k in (given[row] == 1).nonzero()[:, 0].tolist()]
        wrong = {classes[each.column] for each in found if each.given == 1}
        added = [classes[each.column] for each in found if each.given < 1]
        chosen = [name for name in present if name not in wrong] + added
        path = address(Path(os.path.relpath(images[row], folder)))
        yield {
            "data": {
                "image": f"{url}{path}",
                "name": source.names[row],
                "given": present,
                "asked": [classes[each.column] for each in found],
                "findings": "; ".join(_sentence(each, classes) for each in found),
                "choices": [{"value": classes[each.column]} for each in found],
            },
            "predictions": [
                {
                    "model_version": MODEL,
                    "score": round(max(each.probability for each in found), 6),
                    "result": [_region(chosen)] if chosen else [],
                }
            ],
        }


def config(classes: list[str]) -> str:
    """Write the labelling interface: all classes, and of which of those asked one is unsure."""
    for name in classes:
        if _NOT_XML.search(name):
            raise InputError(f"class {name!r}: XML cannot hold it; rename the class")
    choices = "\n".join(f"      <Choice value={quoteattr(name)}/>" for name in classes)
    return f"""<View style="display: flex; gap: 1em">
  <View style="flex: 2">
    <Image name="{IMAGE}" value="$image" zoom="true"/>
  </View>
  <View style="flex: 1">
    <Header value="Which of these are in the picture?"/>
    <Text name="findings" value="$findings"/>
    <Filter name="filter" toName="{LABELS}" minlength="0" placeholder="find a class"/>
    <Choices name="{LABELS}" toName="{IMAGE}" choice="multiple" showInline="true">
{choices}
    </Choices>
    <Header value="Unsure about"/>
    <Choices name="{UNSURE}" toName="{IMAGE}" choice="multiple" showInline="true"
      value="$choices"/>
  </View>
</View>
"""


def folder_of(source: Source, images: list[Path]) -> Path:
    """Find the folder of the images: the data's, or the one that they have in common."""
    folder = Path(os.path.abspath(source.path))
    paths = [Path(os.path.abspath(image)) for image in images]
    if folder.is_dir() and all(path.is_relative_to(folder) for path in paths):
        return folder
    return Path(os.path.commonpath([path.parent for path in paths]))


def address(path: str | Path) -> str:
    """Write a path as part of an address, whatever bytes its names have.

    >>> address("a b/caf\\udce9.png")
    'a%20b/caf%E9.png'
    """
    return quote(os.fsencode(Path(path).as_posix()))


def _region(chosen: list[str]) -> dict[str, Any]:
    value = {"choices": chosen}
    return {"from_name": LABELS, "to_name": IMAGE, "type": "choices", "value": value}


def _sentence(finding: Finding, classes: list[str]) -> str:
    state = {1: "labelled", 0: "not labelled", -1: "label unknown"}[finding.given]
    there = 1 - finding.probability if finding.given == 1 else finding.probability
    return f"{classes[finding.column]}: {state}, the audit gives it {there:.0%}"
