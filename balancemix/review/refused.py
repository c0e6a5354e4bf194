"""Refused: why a request is not answered."""


class Refused(Exception):  # noqa: N818  # what it is, not how it is raised
    """A request that is not answered: an HTTP status, a word for programs, a sentence for people.

    >>> Refused(404, "row", "There is no picture 7.").sentence
    'There is no picture 7.'
    """

    def __init__(self, status: int, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.code, self.sentence = status, code, sentence
