"""What audits said, so that answers can be compared with it later."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from balancemix.data.decisions.logs import check, insert, now, rows_of
from balancemix.progress import Show, silence

if TYPE_CHECKING:
    from balancemix.data.decisions.store import Store

EVERY = 1000  # findings after which the progress moves


class Band(NamedTuple):
    """How many labels of a side have a probability within a band, and the sum of these."""

    side: str  # "wrong" or "missing"
    band: int
    labels: int
    sum_p: float


class Snapshot(NamedTuple):
    """What an audit said, and of which data; `findings` are in the order of the store."""

    id: int
    made_at: str
    source: str
    fingerprint: str
    judge: str
    expected: tuple[float | None, float | None]
    findings: list[Suspicion]


class Suspicion(NamedTuple):
    """A finding: a label and what the audit says of it."""

    image: str
    class_: str
    problem: str  # "wrong", "missing" or "unknown"
    given: int
    suggested: int
    probability: float
    probe: bool = False


def add_snapshot(
    self: Store,
    *,
    source: str,
    fingerprint: str,
    judge: str,
    seed: int,
    expected: tuple[float | None, float | None],
    bands: Iterable[Band] = (),
    findings: Sequence[Suspicion] = (),
    names: Iterable[str] = (),
    show: Show = silence,
) -> int:
    """Save what an audit says, and return its number; the same as the newest is not saved again.

    `expected` is how many wrong and missing labels the judge's model expects; `names` are those of
    all images that were judged.
    """
    bands = list(bands)
    digest = hashlib.sha256(ascii((source, fingerprint, judge, seed, expected, bands)).encode())
    for each in findings:
        digest.update(ascii(tuple(each)).encode())
    with self._writing() as ids:
        run = self._connection.execute
        newest = run("SELECT id, digest FROM snapshot ORDER BY id DESC LIMIT 1").fetchone()
        if newest is not None and newest[1] == digest.hexdigest():
            return int(newest[0])
        number = 1 if newest is None else int(newest[0]) + 1
        row = (number, now(), source, fingerprint, judge, seed, *expected, digest.hexdigest())
        insert(self._connection, "snapshot", [row])
        insert(self._connection, "band", ((number, *band) for band in bands))
        for name in names:
            ids.image(name)
        ids.save()
        with show("save the findings", len(findings)) as bar:
            for start in range(0, len(findings), EVERY):
                part = findings[start : start + EVERY]
                rows = [(number, ids.image(f[0]), ids.class_(f[1]), *f[2:]) for f in part]
                ids.save()
                insert(self._connection, "finding", rows)
                bar.advance(len(part))
        return number


def newest_snapshot(self: Store) -> Snapshot | None:
    """Read what the newest audit said; None if there was none."""
    with self._reading() as ids:
        columns = "id, made_at, source, fingerprint, judge, expected_wrong, expected_missing"
        rows = list(rows_of(self._connection, "snapshot", columns, "id"))
        if not rows:
            return None
        number, made_at, source, fingerprint, judge, *expected = rows[-1]
        check(self._connection, "finding")
        image, class_ = ids.names("image"), ids.names("class")
        query = "SELECT image, class, problem, given, suggested, p, probe FROM finding"
        found = self._connection.execute(f"{query} WHERE snapshot=?", (number,))
        findings = [Suspicion(image[row[0]], class_[row[1]], *row[2:]) for row in found]
        both = (expected[0], expected[1])
        return Snapshot(number, made_at, source, fingerprint, judge, both, findings)


def newest_snapshot_id(self: Store) -> int | None:
    """Return the number of the newest audit."""
    with self._reading():
        number = self._connection.execute("SELECT max(id) FROM snapshot").fetchone()[0]
        return None if number is None else int(number)
