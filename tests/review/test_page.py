"""The page's files: joined, compressed, and not sent again while they are the same."""

import gzip
import re

import pytest

from balancemix.review.page import STATIC, STYLES, join_scripts, page_files

BUDGET = 40_000  # bytes of script and style together, as they are sent
CODE = ("/static/review.js", "/static/review.css")


def test_script_and_style_are_sent_within_the_budget(review):
    browser, sent, plain = review.browser(None), 0, 0
    page = browser.get("/").text
    asked = re.findall(r'(?:href|src)="([^"]*)"', page)
    assert {path for path in asked if not path.endswith(".svg")} == set(CODE)
    for path in CODE:
        reply = browser.get(path)
        assert reply.headers["content-encoding"] == "gzip"
        sent += int(reply.headers["content-length"])
        plain += len(reply.content)
    assert sent < BUDGET < plain, (sent, plain)


def test_every_script_and_style_is_in_them(review):
    script, style = (review.browser(None).get(path).text for path in CODE)
    assert sorted(path.name for path in STATIC.glob("*.css")) == sorted(STYLES)
    for path in STATIC.glob("*.js"):
        assert f"const ${path.stem} = " in script
    for name in STYLES:
        assert (STATIC / name).read_text("utf-8") in style


@pytest.mark.parametrize("path", ["/", "/static/icon.svg", *CODE])
def test_who_takes_no_gzip_gets_the_same_plain(review, path):
    browser = review.browser(None)
    packed = browser.get(path, **{"Accept-Encoding": "br, gzip"})
    for kinds in ("", "identity", "gzip;q=0", "gzip; q=0.000, br"):
        plain = browser.get(path, **{"Accept-Encoding": kinds})
        assert "content-encoding" not in plain.headers
        assert plain.content == packed.content
        assert plain.headers["etag"] != packed.headers["etag"]
        assert plain.headers["vary"] == packed.headers["vary"] == "Accept-Encoding"


@pytest.mark.parametrize("path", ["/", *CODE])
def test_what_a_browser_has_is_not_sent_again(review, path):
    browser = review.browser(None)
    first = browser.get(path)
    for known in (first.headers["etag"], f'"x", W/{first.headers["etag"]}'):
        again = browser.get(path, **{"If-None-Match": known})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == first.headers["etag"]
        assert again.headers["x-content-type-options"] == "nosniff"
    assert browser.get(path, **{"If-None-Match": '"x"'}).status_code == 200
    assert first.headers["cache-control"] == "no-cache"  # it asks each time


@pytest.mark.parametrize("path", ["/api/state", "/api/queue", "/image/0/256"])
def test_what_is_secret_is_not_compressed(review, path):
    reply = review.browser("Ana").get(path, **{"Accept-Encoding": "gzip"})
    assert reply.status_code == 200
    assert "content-encoding" not in reply.headers


def test_files_are_the_same_bytes_at_each_start():
    first, second = page_files(), page_files()
    assert first == second
    for each in first.values():
        assert gzip.decompress(each.packed) == each.plain


def test_scripts_are_joined_in_the_order_in_which_they_need_each_other(tmp_path):
    (tmp_path / "a.js").write_text(
        'import {b, c as d} from "./b.js";\nexport const a = b + d;\nconst hidden = 1;\n'
    )
    (tmp_path / "b.js").write_text(
        'import {e} from "./e.js";\nexport const b = 1;\nexport function c() { return e(); }\n'
    )
    (tmp_path / "e.js").write_text(
        'import {c} from "./b.js";\nexport async function e() { return c; }\n'
    )
    assert join_scripts(tmp_path, "a") == (
        "const $e = (() => {\nconst c = (...all) => $b.c(...all);\n"
        "async function e() { return c; }\nreturn {e};\n})();\n"
        "const $b = (() => {\nconst {e: e} = $e;\n"
        "const b = 1;\nfunction c() { return e(); }\nreturn {b, c};\n})();\n"
        "const $a = (() => {\nconst {b: b, c: d} = $b;\n"
        "const a = b + d;\nconst hidden = 1;\nreturn {a};\n})();\n"
    )


@pytest.mark.parametrize(
    "line",
    ['import * as b from "./b.js";', 'import b from "./b.js";', "export default 1;",
     "export {b};", "export let b = 1;", 'import {b} from "https://elsewhere/b.js";'],
)  # fmt: skip
def test_other_forms_of_import_and_export_are_refused(tmp_path, line):
    (tmp_path / "a.js").write_text(f"{line}\n")
    (tmp_path / "b.js").write_text("export const b = 1;\n")
    with pytest.raises(ValueError, match=r"a\.js: has an import or export of another form"):
        join_scripts(tmp_path, "a")
