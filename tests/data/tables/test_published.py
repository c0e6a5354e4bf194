"""Published tables: patients are groups, and what people found absent is absent."""

from pathlib import Path

import pytest
import torch

from balancemix.cli import main
from balancemix.data import ReadOptions, read
from balancemix.data.formats import table
from balancemix.data.splits import hold_out
from balancemix.errors import InputError

PLAIN = ReadOptions(labels_only=True)
FINDINGS = "No Finding,Cardiomegaly,Lung Opacity,Edema,Fracture"
OPENIMAGES = (
    "ImageID,Source,LabelName,Confidence\n"
    "0a1,verification,/m/cat,1\n"
    "0a1,crowdsource-verification,/m/dog,0\n"
    "0a2,verification,/m/dog,1\n"
    "0a2,machine,/m/owl,1\n"
    "0a3,verification,/m/owl,0\n"
)


def saved(folder: Path, text: str) -> Path:
    (folder / "x.csv").write_text(text)
    return folder / "x.csv"


def chexpert(path: str) -> str:
    rows = [path.format(patient=i // 3 + 1, view=i % 3 + 1) for i in range(30)]
    return f"Path,Sex,{FINDINGS}\n" + "".join(
        f"{row},F,{i % 2}.0,{i // 2 % 2}.0,,0.0,-1.0\n" for i, row in enumerate(rows)
    )


def test_chexpert_s_patients_are_groups(tmp_path):
    path = "CheXpert-v1.0-small/train/patient{patient:05}/study1/view{view}_frontal.jpg"
    source = read(saved(tmp_path, chexpert(path)), PLAIN)
    assert source.groups == [f"patient{i // 3 + 1:05}" for i in range(30)]
    assert any("images of one patient are a group, by their" in line for line in source.recognised)
    split = hold_out("x", 30, 0.2, 0, source.group_numbers)
    assert split.count("test") == 6
    assert all(len(set(split[i : i + 3])) == 1 for i in range(0, 30, 3))
    other = read(saved(tmp_path, chexpert("p{patient}-{view}.jpg")), PLAIN)
    assert other.groups is None
    text = chexpert(path).replace("Sex", "Group")
    assert set(read(saved(tmp_path, text), PLAIN).groups) == {"F"}  # as the table says


def test_nih_s_patients_are_groups(tmp_path):
    text = "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age\n"
    text += "1_000.png,No Finding,0,1,58\n1_001.png,Mass|Nodule,1,1,58\n2_000.png,Mass,0,2,3\n"
    source = read(saved(tmp_path, text), PLAIN)
    assert source.groups == ["1", "1", "2"]
    table.write(source, source.given, tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == text


def test_openimages_says_what_is_absent_and_who_looked(tmp_path):
    source = read(saved(tmp_path, OPENIMAGES), PLAIN)
    assert source.names == ["0a1", "0a2", "0a3"]
    assert source.classes == ["/m/cat", "/m/dog", "/m/owl"]
    assert source.given.tolist() == [[1, 0, -1], [-1, 1, 1], [-1, -1, 0]]
    assert source.verified.int().tolist() == [[1, 1, 0], [0, 1, 0], [0, 0, 1]]
    assert "it is OpenImages', by its columns: Confidence 1 is present, 0 is absent" in (
        source.recognised
    )
    absent = read(tmp_path / "x.csv", ReadOptions(labels_only=True, unlabelled="absent"))
    assert absent.given.tolist() == [[1, 0, 0], [0, 1, 1], [0, 0, 0]]


def test_openimages_comes_back(tmp_path, capsys):
    """A decision changes the confidence of its row, or is a new row of people."""
    file, out = saved(tmp_path, OPENIMAGES), tmp_path / "out.csv"
    source = read(file, PLAIN)
    table.write(source, source.given, out)
    assert out.read_text() == OPENIMAGES
    (tmp_path / "x.csv.balancemix").mkdir()
    (tmp_path / "x.csv.balancemix" / "decisions.csv").write_text(
        "image,class,verdict\n0a1,/m/cat,absent\n0a1,/m/owl,present\n0a2,/m/owl,present\n"
        "0a3,/m/cat,absent\n"
    )
    assert main(["export", str(file), "--out", str(out), "--force"]) == 0
    assert "verified" not in capsys.readouterr().err
    assert out.read_text() == (
        "ImageID,Source,LabelName,Confidence\n"
        "0a1,verification,/m/cat,0\n"
        "0a1,crowdsource-verification,/m/dog,0\n"
        "0a1,verification,/m/owl,1\n"
        "0a2,verification,/m/dog,1\n"
        "0a2,verification,/m/owl,1\n"
        "0a3,verification,/m/owl,0\n"
        "0a3,verification,/m/cat,0\n"
    )
    again, decided = read(out, PLAIN), read(file, PLAIN)
    assert torch.equal(again.given, decided.given)
    assert torch.equal(again.verified, decided.verified)


def test_unknown_labels_of_openimages_have_no_row(tmp_path):
    source, out = read(saved(tmp_path, OPENIMAGES), PLAIN), tmp_path / "out.csv"
    given = source.given.clone()
    given[0, 0] = given[2, 2] = -1
    table.write(source, given, out)
    lines = OPENIMAGES.splitlines()
    assert out.read_text().splitlines() == [lines[0], *lines[2:5], "0a3,verification,,"]
    again = read(out, PLAIN)
    assert again.names == source.names
    assert again.classes == ["/m/dog", "/m/owl"]
    assert again.given.tolist() == given[:, 1:].tolist()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("0a3,machine,/m/cat,0.7", r"row 7: Confidence '0\.7' is a machine's guess; keep the rows"),
        ("0a3,verification,/m/owl,1", r"row 7: '/m/owl' is 1 here and 0 in row 6 of the same ima"),
    ],
)
def test_what_is_not_clear_is_refused(tmp_path, row, message):
    with pytest.raises(InputError, match=message):
        read(saved(tmp_path, f"{OPENIMAGES}{row}\n"), PLAIN)
