"""Which branches of a module a reader's cases take, by tracing byte code.

A branch is one of the two ways on from a conditional jump, inside expressions too, of a function
that was called at all; the way out of an `except` that does not fit is not counted.
"""

import dis
import importlib
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

Arc = tuple[str, int, int, int]  # name, first line, offset of the jump, offset behind it


def code_objects(code: CodeType) -> Iterator[CodeType]:
    """List a code object and all that are defined in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from code_objects(constant)


def jumps_of(code: CodeType) -> dict[int, tuple[int, int]]:
    """Find the conditional jumps of a function, and where each leads."""
    found = {}
    listed = [each for each in dis.get_instructions(code) if each.opname != "CACHE"]
    for i, each in enumerate(listed[:-1]):
        conditional = re.search("JUMP.*IF|FOR_ITER", each.opname)
        handler = listed[i - 1].opname in ("CHECK_EXC_MATCH", "WITH_EXCEPT_START")
        if conditional and not handler:
            found[each.offset] = (listed[i + 1].offset, int(each.argval))
    return found


class Branches:
    """The branches of some modules, and which of them were taken."""

    def __init__(self, modules: tuple[str, ...]) -> None:
        self.jumps: dict[CodeType, dict[int, tuple[int, int]]] = {}
        self.taken: set[Arc] = set()
        self.entered: set[tuple[str, int]] = set()
        self.files = set()
        for name in modules:
            file = importlib.import_module(name).__file__ or ""
            self.files.add(file)
            with open(file, encoding="utf-8") as stream:
                module = compile(stream.read(), file, "exec")
            for code in code_objects(module):
                if code is not module and not _is_class(code, module):
                    self.jumps[code] = jumps_of(code)
        self.known = {(c.co_name, c.co_firstlineno): jumps for c, jumps in self.jumps.items()}

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Note the branches that are taken meanwhile."""
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            yield
        finally:
            sys.settrace(before)

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if code.co_filename not in self.files:
            return None
        jumps = self.known.get((code.co_name, code.co_firstlineno))
        self.entered.add((code.co_name, code.co_firstlineno))
        if not jumps:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        last = -1

        def trace(inner: FrameType, kind: str, value: Any) -> Any:
            nonlocal last
            if kind == "opcode":
                if last in jumps and inner.f_lasti in jumps[last]:
                    self.taken.add((code.co_name, code.co_firstlineno, last, inner.f_lasti))
                last = inner.f_lasti
            return trace

        return trace

    def all(self) -> set[Arc]:
        """List every branch of the functions that were called."""
        return {
            (code.co_name, code.co_firstlineno, at, to)
            for code, jumps in self.jumps.items()
            if (code.co_name, code.co_firstlineno) in self.entered
            for at, ways in jumps.items()
            for to in ways
        }


def _is_class(code: CodeType, module: CodeType) -> bool:
    return code in module.co_consts and "__module__" in code.co_names
