"""The one exception whose message is written for users, and what is quoted of others."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LONGEST = 300  # characters of a line about an error
LONG_WORD = re.compile(r"(\S{50})\S{30,}(\S{20})")


class SSDError(Exception):
    """The user's input cannot work. The message is one line: what is wrong, where, what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.splitlines()))


@contextmanager
def refusing(path: Path) -> Iterator[None]:
    """Whatever goes wrong in the block, in a library's panic too, becomes an SSDError on the file.
    """
    try:
        yield
    except (SSDError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # Rust's panics are no Exception
        raise SSDError(f"{path}: cannot be read ({type(error).__name__}: {first_line(error, 80)}): "
                       "get it again") from error


def shortened(line: str) -> str:
    """A line about an error as it is shown: long words, then its middle, give way to "..."."""
    line = " ".join(line.split())
    if len(line) > LONGEST:
        line = LONG_WORD.sub(r"\1...\2", line)
    if len(line) > LONGEST:  # it begins with what is wrong, and ends with what to do
        head = LONGEST * 2 // 3
        line = f"{line[:head]} ... {line[head + 5 - LONGEST:]}"
    return line


def first_line(error: BaseException, most: int = 200) -> str:
    """The first line of an exception's message, else its type's name.

    Of a longer one than `most` characters the whole sentences within them; else so many characters.
    """
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return line if len(line) <= most else line[:most].rpartition(". ")[0] or line[:most]
