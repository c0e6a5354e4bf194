"""FiftyOne: findings go out with confidences and tags, tags of people come back as answers."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balancemix.data.decisions.reading import Taken
from balancemix.errors import InputError
from balancemix.exchange import fiftyone
from balancemix.exchange.known import Known
from tests.exchange.conftest import CLASSES
from tests.exchange.sources import source_of


@pytest.fixture
def written(work, tmp_path) -> dict:
    fiftyone.write(work.findings, tmp_path / "labels.json")
    return json.loads((tmp_path / "labels.json").read_text(encoding="utf-8"))


def put(tmp_path, content, name="samples.json") -> Path:
    file = tmp_path / name
    file.write_text(json.dumps(content), encoding="utf-8")
    return file


def samples_of(written, tags) -> dict:
    """Make the samples that FiftyOne exports of what was written, with tags of a person."""
    samples = []
    for path, targets in written["labels"].items():
        labels = [
            {
                "_id": {"$oid": "0"},
                "_cls": "Classification",
                "label": written["classes"][target["label"]],
                "confidence": target.get("confidence"),
                **target["attributes"],
            }
            for target in targets
        ]
        for label in labels:
            label["tags"] = label["tags"] + tags.get((Path(path).name, label["label"]), [])
        field = {"_cls": "Classifications", "classifications": labels}
        samples.append({"filepath": path, "tags": [], "metadata": None, "ground_truth": field})
    return {"samples": samples}


def test_classifications_have_the_confidence_in_presence_and_the_problem_as_a_tag(work, written):
    assert written["classes"] == CLASSES
    path = str(work.folder / "0.png")
    dog, cat = written["labels"][path]
    assert (dog["label"], dog["confidence"], dog["attributes"]["tags"]) == (1, 0.97, ["missing"])
    assert (cat["label"], cat["confidence"], cat["attributes"]["tags"]) == (0, 0.1, ["wrong"])
    assert (cat["attributes"]["image"], cat["attributes"]["probability"]) == ("0.png", 0.9)
    kinds = [each["attributes"]["tags"] for each in written["labels"][str(work.folder / "2.png")]]
    assert kinds == [["unknown"], ["given"], ["given"]]
    assert len(written["labels"]) == 2


def test_tags_of_people_are_answers_once(work, written, tmp_path):
    tags = {("0.png", "dog"): ["Present"], ("2.png", "cat"): ["unsure", "nice"]}
    file = put(tmp_path, samples_of(written, tags))
    assert work.take(file) == Taken(new=2, blank=2)
    assert work.take(file) == Taken(known=2, blank=2)
    assert work.answers() == {("0.png", "dog"): "present", ("2.png", "cat"): "unsure"}


def test_an_image_without_its_name_is_found_by_its_path(work, tmp_path):
    label = {"_cls": "Classification", "label": "cat", "tags": ["absent"]}
    sample = {"filepath": str(work.folder / "sub" / "1 é.png"), "mine": label}
    assert work.take(put(tmp_path, {"samples": [sample]})).new == 1
    assert work.answers() == {("sub/1 é.png", "cat"): "absent"}


def test_a_labels_json_with_attributes_is_read_too(work, written, tmp_path):
    path = str(work.folder / "0.png")
    written["labels"][path][0]["attributes"]["verdict"] = "present"
    written["labels"][path][1]["attributes"]["tags"].append("absent")
    written["labels"][path] += ["dog", 1, {"label": "cat"}, None]
    assert work.take(put(tmp_path, written, "labels.json")) == Taken(new=2, blank=1)
    assert work.answers() == {("0.png", "dog"): "present", ("0.png", "cat"): "absent"}
    assert work.take(tmp_path / "labels.json").new == 0


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ({"tags": ["present", "absent"], "label": "cat"}, "is tagged present and absent; keep one"),
        ({"tags": ["present"], "label": "cta", "image": "0.png"}, "'cta' is not a class of"),
        ({"tags": ["present"], "label": "cat", "image": "9.png"}, "'9.png' is not an image of"),
        ({"tags": ["present"], "label": "cat"}, "'data/0.png' is not an image of"),
        ({"tags": "present", "label": "cat"}, "tags is 'present', not a list"),
    ],
)
def test_a_bad_export_is_refused_with_its_place_and_nothing_is_saved(
    work, tmp_path, label, message
):
    good = {"_cls": "Classification", "tags": ["present"], "label": "cat", "image": "0.png"}
    bad = {"_cls": "Classifications", "classifications": [{"_cls": "Classification", **label}]}
    samples = [{"filepath": "data/0.png", "x": each} for each in (good, bad)]
    file = put(tmp_path, {"samples": samples})
    with pytest.raises(InputError) as caught:
        work.take(file)
    assert str(caught.value).startswith(f"{file} sample 2")
    assert message in str(caught.value)
    assert work.answers() == {}


def test_a_number_without_a_class_is_refused(work, tmp_path):
    content = {"classes": ["cat"], "labels": {"a": [{"label": 1, "attributes": {}}]}}
    with pytest.raises(InputError, match="'a': there is no class 1 in classes"):
        work.take(put(tmp_path, content, "labels.json"))


WORDS = st.lists(
    st.sampled_from(["present", "absent", "unsure", "wrong", "given", "x"]), max_size=3
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from(CLASSES), WORDS))
def test_a_label_has_the_answer_of_its_one_tag(tags):
    labels = [{"label": c, "tags": t, "image": "a.png"} for c, t in tags.items()]
    field = {"_cls": "Classifications", "classifications": labels}
    content = {"samples": [{"filepath": "/a.png", "f": field}]}
    expected = {c: {"present", "absent", "unsure"} & set(t) for c, t in tags.items()}
    known = Known(source_of(["a.png"], CLASSES))
    if any(len(each) > 1 for each in expected.values()):
        with pytest.raises(InputError, match="keep one of the tags"):
            fiftyone.read(Path("x"), content, known)
        return
    found = fiftyone.read(Path("x"), content, known)
    assert {each.class_: {each.verdict} for each in found.labels} == {
        c: words for c, words in expected.items() if words
    }
    assert found.blank == sum("wrong" in t and not expected[c] for c, t in tags.items())
