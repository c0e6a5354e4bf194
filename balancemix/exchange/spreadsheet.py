"""Findings as a workbook of Excel, with a list of verdicts to choose from."""

from __future__ import annotations

from pathlib import Path

from balancemix.auditing.findings import HEADER, Findings
from balancemix.data.decisions.schema import VERDICTS
from balancemix.errors import InputError
from balancemix.files import neutralise, write_whole

ROWS = 1_048_575  # below the header; Excel has no more


def write(findings: Findings, out: Path) -> None:
    """Write a workbook with a row for each finding; `verdict` is left to people."""
    try:
        from openpyxl import Workbook
        from openpyxl.utils.exceptions import IllegalCharacterError
        from openpyxl.worksheet.datavalidation import DataValidation
    except ImportError as error:
        raise InputError(
            f"{out}: needs openpyxl; `pip install balancemix[tables]`, or write a .csv"
        ) from error
    if len(findings) > ROWS:
        raise InputError(
            f"{out}: a workbook has {ROWS:,} rows, not {len(findings):,}; write a .csv"
        )

    def save(draft: Path) -> None:
        book = Workbook(write_only=True)
        sheet = book.create_sheet("findings")
        sheet.freeze_panes = "A2"
        choice = DataValidation("list", formula1=f'"{",".join(VERDICTS)}"', allow_blank=True)
        choice.add(f"{'ABCDEFGHIJ'[HEADER.index('verdict')]}2:J{ROWS + 1}")
        sheet.data_validations.append(choice)
        sheet.append(list(HEADER))
        for line in findings.lines():
            cells = [_text(cell) if isinstance(cell, str) else cell for cell in line]
            cells[5] = float(str(line[5]))
            sheet.append(cells)
        with draft.open("wb") as stream:
            book.save(stream)

    try:
        write_whole(out, save)
    except UnicodeEncodeError as error:
        raise InputError(f"{out}: a workbook cannot hold {error.object!r}; write a .csv") from None
    except IllegalCharacterError as error:
        raise InputError(f"{out}: a workbook cannot hold {str(error)!r}; write a .csv") from None


def _text(cell: str) -> str:
    cell.encode()  # a name that is not UTF-8 would make XML that nobody can read
    return neutralise(cell)
