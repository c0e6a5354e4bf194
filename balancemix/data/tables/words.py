"""How cells say present, absent and unknown, and how to say another in the same way."""

from __future__ import annotations

from collections.abc import Iterable

PRESENT, ABSENT, BLANK, MINUS, OTHER = 1, 0, -1, -2, -3  # what a cell says
VALUES = {
    "1": PRESENT, "1.0": PRESENT, "true": PRESENT, "yes": PRESENT,
    "0": ABSENT, "0.0": ABSENT, "false": ABSENT, "no": ABSENT,
    "": BLANK, "nan": BLANK, "-1": MINUS, "-1.0": MINUS,
}  # fmt: skip
OPPOSITE = {
    "1": "0", "1.0": "0.0", "true": "false", "yes": "no",
    "0": "1", "0.0": "1.0", "false": "true", "no": "yes", "-1": "1",
    "-1.0": "1.0",
}  # fmt: skip


def value_of(cell: str) -> int:
    """Read what a cell says.

    >>> value_of("1"), value_of(" Yes "), value_of(""), value_of("0.7")
    (1, 1, -1, -3)
    """
    value = VALUES.get(cell)
    return VALUES.get(cell.strip().lower(), OTHER) if value is None else value


def word_for(value: int, column: Iterable[str], minus: int | None) -> str:
    """Write a value as the cells of a column do; `minus` is what −1 means there.

    >>> word_for(0, ["Yes", ""], None), word_for(0, ["1", "-1"], 0), word_for(-1, ["1"], None)
    ('No', '-1', '')
    """
    meaning = {MINUS: minus}
    words = [cell.strip() for cell in column]
    for word in words:
        code = value_of(word)
        if meaning.get(code, code) == value and code != BLANK:
            return word
    if value == BLANK:
        return ""
    for word in words:
        opposite = OPPOSITE.get(word.lower())
        if opposite is not None:
            return (
                opposite.upper()
                if word.isupper()
                else (opposite.title() if word.istitle() else opposite)
            )
    return str(value)


def is_number(text: str) -> bool:
    """Tell whether a cell is a number.

    >>> is_number("0.7"), is_number("cat")
    (True, False)
    """
    try:
        float(text)
    except ValueError:
        return False
    return True
