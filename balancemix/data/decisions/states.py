"""What follows from answers: the opinion of each person, the state of a label, what is verified.

All functions are pure. An image's answers come in the order in which they were given.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

State = Literal["open", "unsure", "decided", "disputed", "resolved"]
Verdict = Literal["present", "absent", "unsure"]

LARGE = 512  # pixels at which the absence of something is seen


class Answer(NamedTuple):
    """What a person said about one label, or, where `class_` is None, about all of `covers`.

    An answer about a whole image says that nothing of `covers` is there.
    """

    seq: int  # of the decision; of a whole image, of the last decision before it
    reviewer: int
    class_: int | None
    verdict: str
    mode: str = "file"
    width: int | None = None
    whole: bool = False
    covers: Collection[int] = ()


@dataclass(frozen=True)
class LabelState:
    """What people say about a label: `verdict` is None unless they agree."""

    state: State
    verdict: str | None
    verified: bool
    seq: int  # of the newest answer that counts


def is_seen(answer: Answer) -> bool:
    """Tell whether an answer verifies a label: presence shows in a tile, absence does not.

    >>> is_seen(Answer(1, 1, 1, "absent", "sweep")), is_seen(Answer(1, 1, 1, "present", "sweep"))
    (False, True)
    >>> is_seen(Answer(1, 1, 1, "absent", "focus", 511)), is_seen(Answer(1, 1, 1, "absent", "file"))
    (False, True)
    """
    if answer.verdict == "present" or answer.mode in ("settle", "file"):
        return True
    return answer.mode != "sweep" and (answer.whole or (answer.width or 0) >= LARGE)


def state_of(answers: Sequence[Answer]) -> LabelState:
    """Say what holds for a label by all answers about it that are not undone, oldest first.

    A person's newest answer is their opinion. One that resolves a dispute sets aside those before.

    >>> state_of([Answer(1, 7, 3, "present"), Answer(2, 8, 3, "unsure")]).state
    'decided'
    >>> state_of([Answer(1, 7, 3, "present"), Answer(2, 8, 3, "absent")]).state
    'disputed'
    """
    if len(answers) == 1 and answers[0].mode != "resolve" and answers[0].verdict != "unsure":
        only = answers[0]  # the commonest case, a million times
        return LabelState("decided", only.verdict, is_seen(only), only.seq)
    resolved = max((i for i, each in enumerate(answers) if each.mode == "resolve"), default=None)
    counted = answers if resolved is None else answers[resolved:]
    if not counted:
        return LabelState("open", None, False, 0)
    opinions = list({each.reviewer: each for each in counted}.values())
    seq = max(each.seq for each in opinions)
    definite = [each for each in opinions if each.verdict != "unsure"]
    verdicts = {each.verdict for each in definite}
    if not verdicts:
        return LabelState("unsure", None, False, seq)
    if len(verdicts) > 1:
        return LabelState("disputed", None, False, seq)
    state: State = "decided" if resolved is None else "resolved"
    return LabelState(state, definite[0].verdict, any(map(is_seen, definite)), seq)


def states_of_image(
    answers: Iterable[Answer], touched: Iterable[int] = ()
) -> tuple[dict[int, LabelState], set[int]]:
    """Work out the state of every label of an image that has an answer of its own, by class.

    `touched` are further classes to answer for, such as those of which every answer was undone.
    Also returns the classes that are absent only because the image as a whole was settled.
    """
    whole: list[Answer] = []
    by_class: dict[int, list[Answer]] = {class_: [] for class_ in touched}
    implied: set[int] = set()
    for answer in answers:
        if answer.class_ is None:
            whole.append(answer)
            implied.update(answer.covers)
        else:
            by_class.setdefault(answer.class_, []).append(answer)
    states = {}
    for class_, about in by_class.items():
        if whole:
            about = about + [each for each in whole if class_ in each.covers]
            about.sort(key=lambda each: (each.seq, each.class_ is None))  # stable: oldest first
        states[class_] = state_of(about)
    return states, implied - set(states)
