"""What commands print for people: names as they are, whatever is in them."""

from balancemix.bench.render import terminal
from balancemix.bench.table import Cell, Row, Table
from balancemix.commands.show import console, make_table

MARKUP, EMOJI, ESCAPE = "[/x] [red]a[/red]", ":smile:", "cat\x1b[2J\ndog"
NAMES = (MARKUP, EMOJI, ESCAPE)


def test_names_on_the_terminal_are_neither_markup_nor_commands(capsys):
    out = console()
    out.print(make_table(" ".join(NAMES), NAMES, [NAMES]), width=400)
    out.print(f"file: {' '.join(NAMES)}", soft_wrap=True)
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    for name in (MARKUP, EMOJI, r"cat\x1b[2J\ndog"):
        assert printed.count(name) == 4


def test_names_in_the_tables_of_a_bench_are_neither_markup_nor_commands(capsys):
    rows = tuple(Row(name, name, (Cell((1.0,), name), Cell((2.0,)))) for name in NAMES)
    table = Table("t", MARKUP, ((ESCAPE, EMOJI), (ESCAPE, MARKUP)), rows)
    console().print(terminal(table, 400), width=400)
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert printed.count(MARKUP) == 1 + 1 + 2
    assert printed.count(EMOJI) == 1 + 2
    assert printed.count(r"cat\x1b[2J\ndog") == 2
