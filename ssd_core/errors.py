"""The one exception whose message is written for users, and what is quoted of others."""


class SSDError(Exception):
    """The user's input cannot work. The message is one line: what is wrong, where, what to do."""


def first_line(error: BaseException, most: int = 200) -> str:
    """The first line of an exception's message, cut to `most` characters; else its type's name."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:most]
