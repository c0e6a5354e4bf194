"""What every format must keep to, whatever it reads."""

from pathlib import Path

import pytest
import torch

from balancemix.data import FeatureRows, Rows, Source, load
from balancemix.data.formats import Format, WritableFormat
from balancemix.data.source import ReadOptions
from balancemix.errors import InputError


def feature_rows(rows: Rows) -> FeatureRows:
    """The same rows, which must be of features."""
    assert isinstance(rows, FeatureRows)
    return rows


def refused(data, message: str, **options) -> None:
    """Loading fails with one line, of which `message` is a part."""
    with pytest.raises(InputError) as caught:
        load(data, options=ReadOptions(**options))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def labels_of(source: Source) -> list[set[str]]:
    """The names of the classes that are present in each row."""
    present = source.given == 1
    return [{source.classes[k] for k in row.nonzero().flatten().tolist()} for row in present]


def check_reading(form: Format, path: Path) -> Source:
    """Read what is recognised, and see that all of it is of one size."""
    assert form.recognise(path)
    assert form.recognise(path / "nowhere") is None
    source = form.read(path, ReadOptions())
    assert source.given.dtype == torch.int8
    assert source.given.shape == (len(source.names), len(source.classes))
    assert len(set(source.classes)) == len(source.classes) >= 2
    for part in (source.split, source.truth, source.images, source.features, source.stored):
        assert part is None or len(part) == len(source)
    return source


def check_writing(form: WritableFormat, path: Path, file: Path, out: Path) -> None:
    """Write what is read: the same `file`; with one label changed, that label alone differs."""
    source = check_reading(form, path)
    form.write(source, source.given, out)
    assert out.suffix == form.ENDING
    assert out.read_bytes() == file.read_bytes()
    given = source.given.clone()
    given[1, 0] = 1 - given[1, 0]
    form.write(source, given, out)
    file.write_bytes(out.read_bytes())
    again = form.read(path, ReadOptions())
    assert torch.equal(again.given, given)
    assert (again.names, again.classes, again.split) == (source.names, source.classes, source.split)
