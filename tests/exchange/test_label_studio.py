"""Label Studio: findings go out as tasks with predictions, annotations come back as answers."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balancemix.data.decisions.reading import Taken
from balancemix.errors import InputError
from balancemix.exchange import label_studio, label_studio_export
from balancemix.exchange.known import Known
from tests.exchange.conftest import CLASSES

ODD = CLASSES[2]


@pytest.fixture
def tasks(work, tmp_path) -> list:
    label_studio.write(work.findings, tmp_path / "tasks.json", None)
    return json.loads((tmp_path / "tasks.json").read_text(encoding="utf-8"))


def annotated(task, choices, unsure=(), who=7, at="2026-03-02T10:00:00.500000Z", **more):
    """Make a task as Label Studio exports it, annotated."""
    result = [
        {"id": "a", "from_name": name, "to_name": "image", "type": "choices", "origin": "manual",
         "value": {"choices": list(chosen)}}
        for name, chosen in (("labels", choices), ("unsure", unsure))
        if chosen
    ]  # fmt: skip
    annotation = {"id": 1, "completed_by": who, "result": result, "was_cancelled": False}
    annotation |= {"created_at": "2026-03-01T10:00:00Z", "updated_at": at, **more}
    return {**task, "id": 1, "annotations": [annotation], "predictions": [1], "drafts": []}


def put(tmp_path, content, name="export.json") -> Path:
    file = tmp_path / name
    file.write_text(json.dumps(content), encoding="utf-8")
    return file


def test_a_task_is_an_image_with_findings_and_its_prediction_the_corrected_labels(tasks):
    first, second = tasks
    assert first["data"]["name"] == "0.png"
    assert first["data"]["image"] == "/data/local-files/?d=photos/0.png"
    assert (first["data"]["given"], first["data"]["asked"]) == (["cat"], ["dog", "cat"])
    assert first["data"]["findings"] == (
        "dog: not labelled, the audit gives it 97%; cat: labelled, the audit gives it 10%"
    )
    [prediction] = first["predictions"]
    assert (prediction["model_version"], prediction["score"]) == ("balancemix", 0.97)
    [region] = prediction["result"]
    assert region["value"] == {"choices": ["dog"]}
    assert (region["from_name"], region["to_name"], region["type"]) == (
        "labels",
        "image",
        "choices",
    )
    assert second["predictions"][0]["result"][0]["value"] == {"choices": ["cat", "dog", ODD]}


def test_the_interface_is_xml_with_every_class(work, tasks, tmp_path):
    view = ElementTree.parse(tmp_path / "tasks.xml").getroot()
    choices = view.find(".//Choices[@name='labels']")
    assert [choice.get("value") for choice in choices] == CLASSES
    assert choices.get("choice") == "multiple"


def test_addresses_of_images(work, tmp_path):
    url = "https://pictures.example/x/"
    found = label_studio.tasks(work.findings, work.folder, url)
    assert [task["data"]["image"] for task in found] == [f"{url}0.png", f"{url}2.png"]
    object.__setattr__(work.findings, "row", work.findings.row * 0 + 1)
    [task] = label_studio.tasks(work.findings, work.folder, url)
    assert task["data"]["image"] == f"{url}sub/1%20%C3%A9.png"


def test_annotations_answer_for_what_was_shown_and_chosen(work, tasks, tmp_path):
    first, second = tasks
    export = [annotated(first, ["dog"]), annotated(second, ["cat", ODD], ["dog"])]
    file = put(tmp_path, export)
    assert work.take(file) == Taken(new=5)
    assert work.answers() == {
        ("0.png", "cat"): "absent", ("0.png", "dog"): "present",  # nothing of <b>…: not shown
        ("2.png", "cat"): "present", ("2.png", "dog"): "unsure", ("2.png", ODD): "present",
    }  # fmt: skip
    assert work.take(file) == Taken(known=5)
    assert work.take(put(tmp_path, export, "again.json")) == Taken(known=5)


def test_a_later_annotation_counts_and_an_older_export_changes_nothing(work, tasks, tmp_path):
    old = put(tmp_path, [annotated(tasks[0], ["dog"])], "old.json")
    new = put(tmp_path, [annotated(tasks[0], ["cat"], at="2026-03-02T11:00:00+00:00")], "new.json")
    assert work.take(old).new == 2
    assert work.take(new).new == 2
    assert work.take(old) == Taken(known=2)
    assert work.answers() == {("0.png", "cat"): "present", ("0.png", "dog"): "absent"}


def test_of_two_annotations_of_one_person_the_later_counts(work, tasks, tmp_path):
    task = annotated(tasks[0], ["cat"], at="2026-03-02T11:00:00Z")
    task["annotations"] += annotated(tasks[0], ["dog"], at="2026-03-01T11:00:00Z")["annotations"]
    assert work.take(put(tmp_path, [task])).new == 4
    assert work.answers()["0.png", "dog"] == "absent"


def test_two_people_who_differ_are_a_dispute(work, tasks, tmp_path):
    task = annotated(tasks[0], ["dog"], who={"id": 1, "email": "ana@example.org"})
    task["annotations"] += annotated(tasks[0], ["cat", "dog"], who=2)["annotations"]
    assert work.take(put(tmp_path, [task])).new == 4
    assert work.answers() == {("0.png", "cat"): "disputed", ("0.png", "dog"): "present"}


def test_skipped_and_open_tasks_say_nothing_and_an_empty_annotation_says_absent(
    work, tasks, tmp_path
):
    skipped = annotated(tasks[0], ["dog"], was_cancelled=True)
    export = [skipped, {**tasks[1], "annotations": []}]
    assert work.take(put(tmp_path, export)) == Taken(blank=2)
    assert work.answers() == {}
    assert work.take(put(tmp_path, [annotated(tasks[0], [])], "empty.json")).new == 2
    assert set(work.answers().values()) == {"absent"}


def test_other_controls_are_left_out_and_a_taxonomy_is_read(work, tasks, tmp_path):
    task = annotated(tasks[0], [])
    value = {"taxonomy": [["animals", "dog"]]}
    task["annotations"][0]["result"] = [
        {"from_name": "note", "type": "textarea", "value": {"text": ["odd"]}},
        {"from_name": "labels", "type": "taxonomy", "value": value},
    ]
    work.take(put(tmp_path, [task]))
    assert work.answers() == {("0.png", "cat"): "absent", ("0.png", "dog"): "present"}


def without(task, name):
    data = {key: value for key, value in task["data"].items() if key != name}
    return annotated({**task, "data": data}, ["dog"])


def with_result(task, result):
    task = annotated(task, [])
    task["annotations"][0]["result"] = result
    return task


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda t: t, "task 2: holds no annotations; in Label Studio, Export > JSON"),
        (lambda t: 3, "task 2: is 3, not an object"),
        (lambda t: {**t, "annotations": 3}, "task 2: annotations is 3, not a list"),
        (lambda t: {**t, "annotations": [3]}, "task 2 annotation 1: is 3, not an object"),
        (lambda t: without(t, "name"), "task has no data.name; import the tasks that"),
        (lambda t: without(t, "asked"), "task 2 annotation 1: its task has no data.asked"),
        (lambda t: annotated(t, ["dgo"]), "'dgo' is not a class of"),
        (lambda t: annotated(t, [["a", 3]]), "3 is not a class of"),
        (lambda t: annotated(t, ["dog"], who=[1]), "completed_by is [1], neither"),
        (lambda t: annotated(t, ["dog"], who="x" * 300), "annotation 1: the reviewer"),
        (lambda t: annotated(t, ["dog"], at="yesterday"), "time 'yesterday' is not like"),
        (lambda t: annotated({**t, "data": {**t["data"], "name": "9.png"}}, []), "'9.png' is not"),
        (lambda t: with_result(t, None), "annotation 1: has no result"),
        (lambda t: with_result(t, [{"type": "choices", "from_name": "other"}]), "of 'other'; this"),
        (lambda t: with_result(t, [{"type": "choices", "from_name": "labels"}]), "are missing"),
        (lambda t: with_result(t, [3]), "result: is 3, not an object"),
    ],
)
def test_a_bad_export_is_refused_with_its_place_and_nothing_is_saved(
    work, tasks, tmp_path, make, message
):
    file = put(tmp_path, [annotated(tasks[0], ["dog"]), make(tasks[1])])
    with pytest.raises(InputError) as caught:
        work.take(file)
    assert str(caught.value).startswith(f"{file} task 2")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert work.answers() == {}


def test_the_short_export_is_refused(work, tmp_path):
    short = [{"image": "x", "labels": "dog", "annotator": 1, "annotation_id": 2}]
    with pytest.raises(InputError, match="task 1: holds no annotations; in Label Studio, Export"):
        work.take(put(tmp_path, short))


def test_a_class_that_xml_cannot_hold_is_refused():
    with pytest.raises(InputError, match="XML cannot hold it; rename the class"):
        label_studio.config(["cat", "d\x01og"])


SETS = st.sets(st.sampled_from(CLASSES))


@settings(max_examples=60, deadline=None)
@given(SETS, SETS, SETS, SETS)
def test_every_class_that_was_shown_gets_the_answer_that_was_chosen(labels, unsure, shown, asked):
    from tests.exchange.sources import source_of

    source = source_of(["a.png"], CLASSES)
    data = {"name": "a.png", "given": sorted(shown), "asked": sorted(asked)}
    task = annotated({"data": data}, sorted(labels), sorted(unsure))
    found = label_studio_export.read(Path("x.json"), [task], Known(source))
    said = {each.class_: each.verdict for each in found.labels}
    assert set(said) == labels | unsure | shown | asked
    assert {name for name, verdict in said.items() if verdict == "unsure"} == unsure
    assert {name for name, verdict in said.items() if verdict == "present"} == labels - unsure
    assert found.blank == (not said)
