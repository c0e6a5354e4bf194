"""The page's files as they are sent: scripts and styles as one file each, compressed once.

Sent one by one, 23 files take as many requests and compress less well.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from balancemix.review.refused import Refused

STATIC = Path(__file__).parent / "static"
STYLES = ("review.css", "settle.css", "sweep.css", "progress.css")  # later ones go before
SCRIPT = "app"  # imports all others
_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./(\w+)\.js";$\n?', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async function|function|class|const) (\w+))", re.MULTILINE)


@dataclass(frozen=True)
class PageFile:
    """A file of the page, plain and compressed; its names change with what it holds."""

    kind: str
    plain: bytes
    packed: bytes
    name: str

    @classmethod
    def of(cls, kind: str, text: str) -> PageFile:
        """Compress a file, in the same bytes each time."""
        plain = text.encode()
        name = hashlib.sha256(plain).hexdigest()[:16]
        return cls(kind, plain, gzip.compress(plain, mtime=0), name)

    def answer(self, request: Request) -> Response:
        """Send the file, or that it is still what the browser has; it holds nothing secret."""
        is_packed = _takes_gzip(request.headers.get("accept-encoding", ""))
        tag = f'"{self.name}-gzip"' if is_packed else f'"{self.name}"'
        headers = {"cache-control": "no-cache", "vary": "Accept-Encoding", "etag": tag}
        known = request.headers.get("if-none-match", "").split(",")
        if tag in (each.strip().removeprefix("W/") for each in known):
            return Response(status_code=304, headers=headers)
        if is_packed:
            headers["content-encoding"] = "gzip"
        content = self.packed if is_packed else self.plain
        return Response(content, media_type=self.kind, headers=headers)


def page_files() -> dict[str, PageFile]:
    """Make the files by the names at which they are asked for; "" is the page itself."""
    styles = "".join((STATIC / name).read_text("utf-8") for name in STYLES)
    plain = {name: (STATIC / name).read_text("utf-8") for name in ("index.html", "icon.svg")}
    return {
        "": PageFile.of("text/html; charset=utf-8", plain["index.html"]),
        "icon.svg": PageFile.of("image/svg+xml", plain["icon.svg"]),
        "review.css": PageFile.of("text/css; charset=utf-8", styles),
        "review.js": PageFile.of("text/javascript; charset=utf-8", join_scripts(STATIC, SCRIPT)),
    }


def find_file(files: dict[str, PageFile], name: str) -> PageFile:
    """Find a file by the name at which it is asked for."""
    if name not in files:
        raise Refused(404, "address", "There is nothing at this address.")
    return files[name]


def join_scripts(folder: Path, first: str) -> str:
    """Write a script and all that it imports as one: each a function that returns its exports.

    Of two scripts that import each other, one comes first; in it, what it imports of the other are
    functions that look for theirs when they are called. Imports and exports have one form each, as
    in this package; any other is refused.
    """
    return "".join(_joined(folder, first, set(), set()))


def _joined(folder: Path, name: str, begun: set[str], ended: set[str]) -> Iterator[str]:
    """Go through the scripts, what is imported first."""
    begun.add(name)
    text = (folder / f"{name}.js").read_text("utf-8")
    imports = _IMPORT.findall(text)
    for _, other in imports:
        if other not in begun:
            yield from _joined(folder, other, begun, ended)
    lines = [_import_of(names, other, other in ended) for names, other in imports]
    exports = [found[2] for found in _EXPORT.finditer(text)]
    body = _EXPORT.sub(r"\1", _IMPORT.sub("", text))
    if re.search(r"^(import|export)\b", body, re.MULTILINE):
        raise ValueError(f"{name}.js: has an import or export of another form")
    ended.add(name)
    returned = f"return {{{', '.join(exports)}}};\n"
    yield f"const ${name} = (() => {{\n{''.join(lines)}{body}{returned}}})();\n"


def _import_of(names: str, other: str, is_there: bool) -> str:
    """Write an import as constants."""
    words = [each.strip().partition(" as ") for each in names.split(",")]
    pairs = [(old, new or old) for old, _, new in words]
    if is_there:
        return f"const {{{', '.join(f'{old}: {new}' for old, new in pairs)}}} = ${other};\n"
    return "".join(f"const {new} = (...all) => ${other}.{old}(...all);\n" for old, new in pairs)


def _takes_gzip(header: str) -> bool:
    """Tell whether a browser takes gzip.

    >>> _takes_gzip("gzip, deflate, br"), _takes_gzip("gzip;q=0"), _takes_gzip("")
    (True, False, False)
    """
    for each in header.lower().split(","):
        kind, _, quality = each.strip().partition(";")
        if kind.strip() == "gzip":
            return not re.fullmatch(r"q=0(\.0*)?", quality.strip())
    return False
