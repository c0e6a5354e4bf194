"""The manifest: damage is noticed, a kill at any moment is not damage."""

import json
from pathlib import Path

import pytest

from balancemix.errors import DamagedFile, InputError
from balancemix.manifest import NAME, Manifest, Outputs


def write(manifest, text, keep=None, name="a.txt"):
    manifest.write(name, lambda draft: draft.write_text(text), keep)


def test_a_file_is_intact_until_it_changes(tmp_path):
    manifest = Manifest(tmp_path)
    for text in ("one", "two", "three"):
        write(manifest, text)
        manifest.check("a.txt", "start over")
    (tmp_path / "a.txt").write_text("thr3e")
    with pytest.raises(DamagedFile, match=r"a\.txt: is not as balancemix wrote it.*start over"):
        manifest.check("a.txt", "start over")


def test_a_file_of_an_older_version_is_read_unchecked(tmp_path):
    manifest = Manifest(tmp_path)
    write(manifest, "one")
    (tmp_path / "b.txt").write_text("older")
    assert manifest.is_intact("b.txt") is None
    manifest.check("b.txt", "start over")


def test_every_flipped_byte_of_the_manifest_is_noticed(tmp_path):
    manifest = Manifest(tmp_path)
    write(manifest, "one")
    content = (tmp_path / NAME).read_bytes()
    for place in range(len(content)):
        for bit in (1, 32, 128):
            flipped = bytearray(content)
            flipped[place] ^= bit
            (tmp_path / NAME).write_bytes(flipped)
            try:
                same = json.loads(flipped) == json.loads(content)  # white space may change
            except ValueError:
                same = False
            if same:
                manifest.check("a.txt", "start over")
            else:
                with pytest.raises(DamagedFile):
                    manifest.check("a.txt", "start over")


def test_a_directory_without_checksums_is_read_unchecked(tmp_path):
    (tmp_path / "a.txt").write_text("old")
    assert Manifest(tmp_path).is_intact("a.txt") is None
    Manifest(tmp_path).check("a.txt", "start over")


class Killed(BaseException):
    pass


@pytest.mark.parametrize("moment", range(1, 6))
def test_a_kill_at_any_moment_leaves_an_intact_file(tmp_path, monkeypatch, moment):
    """Die at the n-th replacement of a file: before or after the manifest's, or the file's own."""
    manifest = Manifest(tmp_path)
    write(manifest, "one", "previous.txt")
    write(manifest, "two", "previous.txt")
    replace, count = Path.replace, 0

    def dying(self, target):
        nonlocal count
        count += 1
        if count == moment:
            raise Killed
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", dying)
    try:
        for text in ("three", "four"):
            write(manifest, text, "previous.txt")
    except Killed:
        pass
    monkeypatch.undo()
    present = [name for name in ("a.txt", "previous.txt") if (tmp_path / name).exists()]
    assert present
    for name in present:
        assert manifest.is_intact(name)
    write(manifest, "five", "previous.txt")
    assert manifest.is_intact("a.txt")


def test_an_output_is_written_again_until_somebody_edits_it(tmp_path):
    path, outputs = tmp_path / "findings.csv", Outputs(tmp_path)
    outputs.check_output(path)
    path.write_text("ours")
    with pytest.raises(InputError, match="already exists"):
        outputs.check_output(path)
    outputs.remember(path)
    outputs.check_output(path)
    path.write_text("edited")
    assert outputs.edited() == ["findings.csv"]
    with pytest.raises(InputError, match="was edited since it was written; --force replaces it"):
        outputs.check_output(path)
    outputs.check_output(path, force=True)
