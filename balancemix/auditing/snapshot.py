"""Snapshots: what an audit says of a data set, kept in the store for the review page."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass

import numpy as np

from balancemix.auditing.findings import Findings
from balancemix.auditing.judged import Judged
from balancemix.auditing.probability import SIDES
from balancemix.data.decisions.snapshots import Band, Snapshot, Suspicion
from balancemix.data.decisions.store import Store
from balancemix.data.source import Source, present
from balancemix.files import from_json, to_json
from balancemix.labels.chunks import chunks
from balancemix.progress import Show, silence

BANDS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.0)  # of probability
LEAST = 0.1  # probability of a finding that is kept; fewer than one in ten of others is an error
RUN_AGAIN = "Your answers are kept. Run the audit again to continue."


@dataclass(frozen=True)
class Judge:
    """How a data set was judged.

    `measured` are the problems with probabilities that were measured, `not_judged` the classes
    that have too few labels.
    """

    measured: tuple[str, ...] = ()
    not_judged: tuple[str, ...] = ()

    @classmethod
    def read(cls, text: str) -> Judge:
        """Read what `write` wrote; nothing is known of another text.

        >>> Judge.read(Judge(("wrong",)).write()), Judge.read("ridge")
        (Judge(measured=('wrong',), not_judged=()), Judge(measured=(), not_judged=()))
        """
        try:
            content = from_json(text)
            return cls(tuple(content["measured"]), tuple(content["not_judged"]))
        except (ValueError, TypeError, KeyError):
            return cls()

    def write(self) -> str:
        """Write it as a text."""
        return to_json(asdict(self))


def save_snapshot(
    store: Store, findings: Findings, show: Show = silence, *, least: float = LEAST
) -> int:
    """Keep the findings of an audit, and how probable all labels are; returns its number.

    Less probable ones than `least` are left out.
    """
    judged = findings.judged
    assert judged.source is not None
    names, classes = judged.names, judged.classes
    kept = findings[findings.probability >= least]
    not_judged = tuple(
        name for name, able in zip(classes, judged.judged.tolist(), strict=True) if not able
    )
    expected = judged.expected.double().sum(0).tolist()
    return store.add_snapshot(
        source=str(judged.source.path),
        fingerprint=fingerprint_of(judged.source),
        judge=Judge(tuple(sorted(findings.measured)), not_judged).write(),
        seed=0,
        expected=(expected[0], expected[1]),
        bands=bands_of(judged),
        findings=[
            Suspicion(
                names[f.row], classes[f.column], f.problem, f.given, f.suggested, f.probability
            )
            for f in kept
        ],
        names=names,
        show=show,
    )


def bands_of(judged: Judged) -> list[Band]:
    """Count all labels by their side and the band of their probability."""
    found = []
    for side, value in SIDES.items():
        labels, total = np.zeros((2, len(BANDS) - 1))
        for rows in chunks(*judged.given.shape):
            p = judged.probability[rows][judged.given[rows] == value].double().numpy()
            band = np.searchsorted(BANDS[1:-1], p, side="right")
            labels += np.bincount(band, minlength=len(labels))
            total += np.bincount(band, p, minlength=len(labels))
        found += [
            Band(side, i, int(labels[i]), float(total[i])) for i in range(len(labels)) if labels[i]
        ]
    return found


def fingerprint_of(source: Source) -> str:
    """Describe the rows and labels of a data set as they are in its files, decisions left out.

    Rows without their image do not count: an audit leaves them out, or refuses them.
    """
    source = source.as_in_file
    if source.features is None and isinstance(source.images, list):
        here = present(source.images)
        if not all(here):
            source = source.subset([i for i, there in enumerate(here) if there])
    order = sorted(range(len(source)), key=source.names.__getitem__)
    names = "\n".join(source.names[i] for i in order)
    given = source.given[order].numpy().astype(np.int8).tobytes()
    classes = "\n".join(source.classes)
    return f"{len(source)} {_digest(names)} {_digest(classes)} {_digest(given)}"


def changes_since(snapshot: Snapshot, source: Source, store: Store) -> str | None:
    """Say what of the data has changed since an audit; None if nothing has."""
    now = fingerprint_of(source)
    if now == snapshot.fingerprint or snapshot.fingerprint.count(" ") != now.count(" "):
        return None  # or of a kind that cannot be compared
    before, after = snapshot.fingerprint.split(" "), now.split(" ")
    if before[1] != after[1]:
        new = store.new_names(source.names)
        gone = max(int(before[0]) - (int(after[0]) - new), 0)
        what = f"{new + gone:,} pictures are new or gone"
        if new + gone == 1:
            what = "1 picture is new or gone"
    elif before[2] != after[2]:
        what = "its classes are not what they were"
    else:
        what = "its labels are not what they were"
    return f"The data has changed since this audit: {what}. {RUN_AGAIN}"


def _digest(content: str | bytes) -> str:
    raw = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
    return hashlib.blake2b(raw, digest_size=12).hexdigest()
