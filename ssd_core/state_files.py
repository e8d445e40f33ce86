"""Files of state in JSON, such as favourites, which several programs may read and change.

A file that cannot be read is never replaced: it is put aside under another name, and the log says
so.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, Generic, TypeVar

from .errors import SSDError, first_line
from .files import parse, require_regular, write_text

WAIT = 10.0  # seconds for another program to finish its change
WRONG = (ValueError, TypeError, AttributeError, LookupError, OverflowError)  # other values
State = TypeVar("State")
log = logging.getLogger(__name__)


class StateFile(Generic[State]):
    """parsed: the state from JSON; raises one of WRONG for impossible values. empty: the state
    while there is no file. to_json: its values for JSON.
    """

    def __init__(self, path: Path, parsed: Callable[[Any], State], empty: Callable[[], State],
                 to_json: Callable[[State], Any]) -> None:
        self.path, self.parsed, self.empty, self.to_json = path, parsed, empty, to_json

    def stored(self) -> State:
        """What the file holds; SSDError if it cannot be read."""
        try:
            require_regular(self.path)
            return self.parsed(parse(self.path))
        except FileNotFoundError:
            return self.empty()
        except (OSError, *WRONG) as error:
            raise SSDError(f"{self.path}: cannot be read ({first_line(error)}): mend or remove it"
                           ) from error

    def read(self) -> State:
        """The same; an unreadable file counts as empty."""
        with suppress(SSDError):
            return self.stored()
        return self.empty()

    def change(self, changed: Callable[[State], State]) -> State:
        """Replace the state by the one that `changed` makes of it, which is returned; no other
        program does so meanwhile.

        An unreadable file is put aside first. Raises SSDError if the new one cannot be written.
        """
        with held(self.path):
            try:
                state = self.stored()
            except SSDError as error:
                if not isinstance(error.__cause__, WRONG):  # a drive that does not answer, a pipe
                    raise
                put_aside(self.path)
                state = self.empty()
            state = changed(state)
            write_text(self.path, json.dumps(self.to_json(state), indent=1) + "\n")
            return state


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Keep other programs and threads out of a block that changes a file.

    Where the folder's drive has no locks the block runs without one.
    """
    from filelock import FileLock, Timeout

    path = Path(os.path.realpath(path))
    lock = FileLock(path.with_name(f".{path.name}.lock"))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        open(lock.lock_file, "ab").close()
        lock.acquire(timeout=WAIT)
    except Timeout as error:
        raise SSDError(f"{path}: another program has been changing it for {WAIT:g} s: try again, "
                       "or end that program") from error
    except (OSError, NotImplementedError):
        pass  # whoever writes says what is wrong with the folder
    try:
        yield
    finally:
        lock.release()


def put_aside(path: Path) -> None:
    """Give a file that cannot be read the first free name such as NAME.unreadable."""
    aside = next(name for number in count(1)
                 if not (name := path.with_name(f"{path.name}.unreadable{number}")).exists())
    try:
        path.rename(aside)
    except OSError as error:
        raise SSDError(f"{path}: cannot be read, nor renamed ({error.strerror}): mend or remove it"
                       ) from error
    log.warning("%s could not be read: it is now %s, and a new one begins", path, aside.name)
