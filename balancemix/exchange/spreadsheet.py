"""Findings as a workbook of Excel, with a list of verdicts to choose from."""

from __future__ import annotations

import re
from pathlib import Path

from balancemix.auditing.findings import HEADER, Findings
from balancemix.data.decisions.schema import VERDICTS
from balancemix.errors import InputError
from balancemix.files import neutralise, write_whole

ROWS = 1_048_575  # below the header; Excel has no more
LONGEST = 32_766  # characters of a cell, which is cut without a word
_NOT_CELL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def write(findings: Findings, out: Path) -> None:
    """Write a workbook with a row for each finding; `verdict` is left to people."""
    try:
        from openpyxl import Workbook
        from openpyxl.worksheet.datavalidation import DataValidation
    except ImportError as error:
        raise InputError(
            f"{out}: needs openpyxl; `pip install balancemix[tables]`, or write a .csv"
        ) from error
    if len(findings) > ROWS:
        many = f"{len(findings):,}"
        raise InputError(f"{out}: a workbook has {ROWS:,} rows, not {many}; write a .csv")
    for name in [*findings.judged.names, *findings.judged.classes, *set(findings.judged.split)]:
        if _NOT_CELL.search(name) or len(name) > LONGEST:
            raise InputError(f"{out}: a workbook cannot hold {name!r}; write a .csv")

    def save(draft: Path) -> None:
        book = Workbook(write_only=True)
        sheet = book.create_sheet("findings")
        sheet.freeze_panes = "A2"
        choice = DataValidation("list", formula1=f'"{",".join(VERDICTS)}"', allow_blank=True)
        letter = "ABCDEFGHIJ"[HEADER.index("verdict")]
        choice.add(f"{letter}2:{letter}{ROWS + 1}")
        sheet.data_validations.append(choice)
        sheet.append(list(HEADER))
        for line in findings.lines():
            cells = [neutralise(cell) if isinstance(cell, str) else cell for cell in line]
            cells[HEADER.index("probability")] = float(str(line[HEADER.index("probability")]))
            sheet.append(cells)
        with draft.open("wb") as stream:
            book.save(stream)

    write_whole(out, save)
