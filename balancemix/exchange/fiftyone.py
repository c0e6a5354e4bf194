"""FiftyOne: findings as classifications with confidences and tags, and tags of people back.

Written is the labels.json of a FiftyOneImageClassificationDataset: by the absolute path of each
image with a finding, a list of classifications. `confidence` is how sure the audit is that the
class is there. The tag is the problem: wrong, missing or unknown; of a label that is not doubted,
given.

A person answers by tags of labels: present, absent or unsure. They are read from the samples.json
of an exported FiftyOneDataset, or from a labels.json with attributes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from balancemix.auditing.findings import Findings
from balancemix.auditing.probability import SIDES
from balancemix.data.decisions.filled import Filled, FilledLabel
from balancemix.data.decisions.schema import VERDICTS
from balancemix.errors import InputError
from balancemix.exchange.known import Known, field, mapping, shown
from balancemix.exchange.pictures import by_image, pictures_of
from balancemix.files import to_json, write_text


def write(findings: Findings, out: Path) -> list[str]:
    """Write the labels; returns what to do with them."""
    source, images = pictures_of(findings, "FiftyOne")
    labels: dict[str, list[dict[str, Any]]] = {}
    given = findings.labels
    for row, found in by_image(findings):
        listed = {each.column for each in found}
        rest = [k for k in (given[row] == 1).nonzero()[:, 0].tolist() if k not in listed]
        classifications = [
            {
                "label": each.column,
                "confidence": _presence(each.given, each.probability),
                "attributes": {
                    "tags": [each.problem],
                    "image": source.names[row],
                    "problem": each.problem,
                    "probability": round(each.probability, 6),
                },
            }
            for each in found
        ]
        others = [
            {"label": k, "attributes": {"tags": ["given"], "image": source.names[row]}}
            for k in rest
        ]
        labels[os.path.abspath(images[row])] = classifications + others
    write_text(out, to_json({"classes": findings.classes, "labels": labels}, indent=1) + "\n")
    return [
        "in Python: fo.Dataset.from_dir(dataset_type=fo.types.FiftyOneImageClassificationDataset, "
        f"labels_path={str(out)!r}, dynamic=True)",
        f"tag labels {', '.join(VERDICTS)}; export a FiftyOneDataset, and: balancemix review "
        f"{source.path} --read samples.json",
    ]


def _presence(given: int, probability: float) -> float:
    """Return how sure the audit is that the class is there."""
    return round(1 - probability if given == 1 else probability, 6)


def recognise(content: Any) -> bool:
    """Tell whether JSON is samples or labels of FiftyOne.

    >>> recognise({"samples": []}), recognise({"classes": ["cat"], "labels": {}}), recognise([])
    (True, True, False)
    """
    if not isinstance(content, dict):
        return False
    return isinstance(content.get("samples"), list) or isinstance(content.get("labels"), dict)


def read(file: Path, content: dict[str, Any], known: Known) -> Filled:
    """Read the tags of people; `blank` counts the findings without one."""
    found = _samples(file, content) if "samples" in content else _labels(file, content)
    labels, blank = list[FilledLabel](), 0
    for where, path, label, facts in found:
        said = _tags(where, facts)
        answers = [word for word in VERDICTS if word in said]
        if len(answers) > 1:
            raise InputError(f"{where}: is tagged {' and '.join(answers)}; keep one of the tags")
        if not answers:
            blank += bool(said & set(SIDES))
            continue
        name = facts.get("image")
        image = known.image_at(where, path) if name is None else known.image(where, name)
        labels.append(FilledLabel(where, None, image, known.class_(where, label), answers[0]))
    return Filled(labels, [], blank)


Label = tuple[str, str, Any, dict[str, Any]]  # place, path of the image, class, tags and attributes


def _samples(file: Path, content: dict[str, Any]) -> Iterator[Label]:
    """List the classifications of every field of every sample."""
    for number, each in enumerate(content["samples"], start=1):
        where = f"{file} sample {number}"
        sample = mapping(where, each)
        path = field(where, sample, "filepath", str, "")
        for value in sample.values():
            kind = value.get("_cls") if isinstance(value, dict) else None
            if kind == "Classifications":
                listed = field(where, value, "classifications", list, [])
            else:
                listed = [value] if kind == "Classification" else []
            for label in listed:
                facts = mapping(where, label)
                yield where, path, facts.get("label"), facts


def _labels(file: Path, content: dict[str, Any]) -> Iterator[Label]:
    """List the classifications of a labels.json; a class is a name, or a number in `classes`."""
    classes = field(str(file), content, "classes", list, [])
    for path, targets in field(str(file), content, "labels", dict, {}).items():
        where = f"{file} {shown(path)}"
        for target in targets if isinstance(targets, list) else [targets]:
            facts = target if isinstance(target, dict) else {"label": target}
            label = facts.get("label")
            if isinstance(label, int) and not isinstance(label, bool) and classes:
                if not 0 <= label < len(classes):
                    raise InputError(f"{where}: there is no class {shown(label)} in classes")
                label = classes[label]
            yield where, path, label, field(where, facts, "attributes", dict, {})


def _tags(where: str, facts: dict[str, Any]) -> set[str]:
    words = [*field(where, facts, "tags", list, []), facts.get("verdict")]
    return {word.strip().casefold() for word in words if isinstance(word, str)}
