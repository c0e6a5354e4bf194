"""Progress in plain lines and as a bar."""

import io

import pytest

from balancemix.progress import Bar, Lines, Silent, hidden, progress


@pytest.mark.parametrize("kind", [Lines, Bar])
def test_no_step_is_no_step(kind):
    show = kind("training", 4, io.StringIO())
    show.every = -1.0  # always long ago
    show.advance(0)  # as a resumed training does that has no pilot
    assert show.done == 0


def test_a_line_says_what_share_is_done():
    out = io.StringIO()
    Lines("training", 4, out, every=-1.0).advance(4)
    assert out.getvalue() == "training 100%  0:00 left\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_job_within_a_job_has_no_bar_of_its_own():
    out = Terminal()
    with progress("training", 4, out) as outer:
        with progress("score", 4, out) as inner:
            assert isinstance(inner, Silent)
        assert isinstance(outer, Bar)
    with progress("training", 4, out) as again:
        assert isinstance(again, Bar)


def test_what_is_hidden_shows_nothing():
    with hidden(), progress("score", 4, io.StringIO()) as show:
        assert isinstance(show, Silent)
