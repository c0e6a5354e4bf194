"""A page taken apart for tests: whole, with nothing to load, its tables as cells."""

from html.parser import HTMLParser

from balancemix.bench.plan import BenchPlan
from balancemix.plan.settings import read_into

VOID = {"meta", "br", "img", "link", "input", "hr"}


class Page(HTMLParser):
    """Checks that tags are closed in order, and keeps headings, tables and what would be loaded."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.headings: list[str] = []
        self.loaded: list[str] = []
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.title = ""
        self.tables: dict[str, list[list[str]]] = {}  # by title: cells, the marked with their mark
        self.feed(text)
        self.close()
        assert self.opened == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in VOID:
            self.opened.append(tag)
        if tag in {"h2", "h3", "summary"}:
            self.title = ""
        if tag == "tr":
            self.tables.setdefault(self.title, []).append([])
        if tag in {"th", "td"}:
            mark = dict(attrs).get("class") or ""
            self.tables[self.title][-1].append(f"{mark}:" if mark in {"best", "second"} else "")
        for name, value in attrs:
            if name in {"src", "href", "xlink:href", "data"} and not value.startswith(
                ("#", "data:")
            ):
                self.loaded.append(value)
            if name == "id":
                self.ids.append(value)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.opened.pop()

    def handle_endtag(self, tag):
        assert self.opened.pop() == tag

    def handle_data(self, data):
        if self.opened and self.opened[-1] == "h2":
            self.headings.append(data)
        if self.opened and self.opened[-1] in {"h2", "h3", "summary"}:
            self.title += data
        if {"th", "td"} & set(self.opened):
            self.tables[self.title][-1][-1] += data


def planned(**tree) -> BenchPlan:
    return read_into(BenchPlan, tree)
