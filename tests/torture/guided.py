"""Let atheris choose the bytes of a reader's file, by the branches that they reach.

    pip install atheris        # not a dependency: there is no build of it for every system
    python -m tests.torture.guided labels.csv -max_total_time=60

What follows the reader's name goes to libFuzzer. It starts from files of the torture, and stops at
the first that ends in a traceback, is read wrongly or is refused untidily.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

MADE = 50  # files to start from


def main(arguments: list[str]) -> None:
    """Try bytes until atheris ends the process."""
    try:
        import atheris  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        sys.exit("atheris is not installed: pip install atheris")
    name, *options = arguments or ["labels.csv"]
    with atheris.instrument_imports(include=["balancemix"]):
        from tests.torture.draw import Draw
        from tests.torture.outcome import FAILURES, attempt, judge
        from tests.torture.readers import LABEL_READERS, put, take

    readers = {reader.name: reader for reader in LABEL_READERS}
    if name not in readers:
        sys.exit(f"{name}: not a reader; use one of: {', '.join(readers)}")
    reader, drawn = readers[name], [Draw(name, 0, i) for i in range(MADE)]
    made = [reader.damage(reader.make(draw), draw) for draw in drawn]
    files = made[0]
    main_file = next(iter(files))
    with TemporaryDirectory() as temporary:
        folder, corpus = Path(temporary, "case"), Path(temporary, "corpus")
        reader.prepare(folder)
        corpus.mkdir()
        for i, each in enumerate(made):
            (corpus / str(i)).write_bytes(each.get(main_file, b""))

        def try_bytes(content: bytes) -> None:
            put(folder, {**files, main_file: content})
            answer, outcome = attempt(
                lambda: reader.read(folder), (folder.name, Path(main_file).name)
            )
            outcome = judge(answer, outcome, lambda: reader.literal(folder))
            take(folder, list(files))
            if outcome.kind in FAILURES:
                raise AssertionError(f"{name}: {outcome.kind}: {outcome.detail}")

        atheris.Setup([sys.argv[0], *options, str(corpus)], try_bytes)
        atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
