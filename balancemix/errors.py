"""What a person gave us cannot be used: one line that says where and what to do."""


class InputError(ValueError):
    """A mistake in a file or an argument; the commands print it and end with exit code 2."""
