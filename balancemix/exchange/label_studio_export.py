"""Read what people decided in Label Studio: its export as JSON, of tasks that `audit` made.

An annotation answers for the classes that its task showed as given or asked about, and for those
that the person chose: chosen is present, unsure is unsure, the others are absent. Of other classes
it says nothing: nobody may have looked for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from balancemix.data.decisions.filled import Filled, FilledLabel
from balancemix.errors import InputError
from balancemix.exchange.known import Known, field, mapping, reviewer, shown, utc
from balancemix.exchange.label_studio import LABELS, UNSURE

WRITTEN = "import the tasks that `balancemix audit --for label-studio` wrote"


def recognise(content: Any) -> bool:
    """Tell whether JSON is an export, or tasks, of Label Studio.

    >>> recognise([{"id": 1, "data": {}, "annotations": []}]), recognise([{"image": "a.png"}])
    (True, False)
    """
    first = content[0] if isinstance(content, list) and content else None
    if not isinstance(first, dict):
        return False
    kept = {"annotations", "predictions"} & first.keys()
    return bool("data" in first and kept) or {"annotator", "annotation_id"} <= first.keys()


def read(file: Path, content: list[Any], known: Known) -> Filled:
    """Read the annotations of all tasks; `blank` counts the tasks without one."""
    labels, blank = list[FilledLabel](), 0
    for number, each in enumerate(content, start=1):
        where = f"{file} task {number}"
        task = mapping(where, each)
        if "annotations" not in task:
            raise InputError(f"{where}: holds no annotations; in Label Studio, Export > JSON")
        found = field(where, task, "annotations", list, [])
        answers = [
            answer
            for place, annotation in enumerate(found, start=1)
            for answer in _answers(f"{where} annotation {place}", task, annotation, known)
        ]
        labels += answers
        blank += not answers
    labels.sort(key=lambda label: label.at or "")  # of two answers of a person, the later counts
    return Filled(labels, [], blank)


def _answers(where: str, task: dict[str, Any], content: Any, known: Known) -> Iterator[FilledLabel]:
    annotation = mapping(where, content)
    if field(where, annotation, "was_cancelled", bool, False):  # skipped
        return
    data = field(where, task, "data", dict, {})
    for name in ("name", "given", "asked"):
        if name not in data:
            raise InputError(f"{where}: its task has no data.{name}; {WRITTEN}")
    image = known.image(where, data["name"])
    chosen = _chosen(where, annotation, known)
    present, unsure = chosen[LABELS], chosen[UNSURE]
    said = [each for name in ("given", "asked") for each in field(where, data, name, list, [])]
    shown_ = {known.class_(where, each) for each in said}
    who, at = _who(where, annotation), _when(where, annotation)
    for name in known.source.classes:
        if name in shown_ | present | unsure:
            verdict = "unsure" if name in unsure else "present" if name in present else "absent"
            yield FilledLabel(where, who, image, name, verdict, at)


def _chosen(where: str, annotation: dict[str, Any], known: Known) -> dict[str, set[str]]:
    """Collect the choices of each tag; refuses choices of a tag that is not ours."""
    chosen: dict[str, set[str]] = {LABELS: set(), UNSURE: set()}
    result = field(where, annotation, "result", list, None)
    if result is None:  # which is not the same as nothing chosen
        raise InputError(f"{where}: has no result; in Label Studio, Export > JSON")
    for each in result:
        region = mapping(f"{where} result", each)
        kind = region.get("type")
        if kind not in ("choices", "taxonomy"):
            continue  # a remark, a drawing
        tag = region.get("from_name")
        if tag not in (LABELS, UNSURE):
            raise InputError(
                f"{where}: has choices of {shown(tag)}; this reads those of {LABELS!r} and "
                f"{UNSURE!r}; {WRITTEN}"
            )
        value = field(where, region, "value", dict, {})
        if kind not in value:
            raise InputError(f"{where}: its {kind} are missing; in Label Studio, Export > JSON")
        for choice in field(where, value, kind, list, []):
            path = choice if isinstance(choice, list) else [choice]
            chosen[tag].add(known.class_(where, path[-1] if path else ""))
    return chosen


def _who(where: str, annotation: dict[str, Any]) -> str | None:
    """Name the person: by the address, or by the number that Label Studio gives."""
    person = annotation.get("completed_by")
    if isinstance(person, dict):
        person = person.get("email") or person.get("id")
    if person is None:
        return None
    if isinstance(person, bool) or not isinstance(person, str | int):
        raise InputError(f"{where}: completed_by is {shown(person)}, neither a number nor a person")
    name = person if isinstance(person, str) else f"Label Studio user {shown(person)}"
    return reviewer(where, name)


def _when(where: str, annotation: dict[str, Any]) -> str | None:
    for name in ("updated_at", "created_at"):
        if text := field(where, annotation, name, str, ""):
            return utc(where, text)
    return None
