"""What a loaded backbone keeps from one run for the next one, until the memory is needed.

A session holds buffers and graphs over them (engine/sessions.py). Graphs contain the addresses of
weights, so whoever moves the weights releases it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Protocol
from weakref import WeakSet


class Session(Protocol):
    """nbytes: memory on the device."""

    @property
    def nbytes(self) -> int:
        raise NotImplementedError

    def close(self) -> None:
        """Free the memory."""


class KeptSession:
    """At most one session of a backbone and its views. A run takes it out for as long as it runs.
    """

    def __init__(self) -> None:
        self._sessions: list[Session] = []
        every.add(self)

    @property
    def latest(self) -> Session | None:
        """The session, to look at it; a run `take`s it."""
        return next(iter(self._sessions), None)

    @property
    def nbytes(self) -> int:
        """Memory that `release` would free."""
        return sum(session.nbytes for session in list(self._sessions))

    def take(self) -> Session | None:
        """The session, which is the caller's from now on; None if there is none."""
        with suppress(IndexError):
            return self._sessions.pop()
        return None

    def keep(self, session: Session) -> None:
        """Keep a session in place of the one that another run has left here meanwhile."""
        self.release()
        self._sessions.append(session)

    def release(self) -> bool:
        """Free the session; returns whether there was one."""
        session = self.take()
        if session is not None:
            session.close()
        return session is not None


every: WeakSet[KeptSession] = WeakSet()


def release_all() -> bool:
    """Free the sessions of all backbones; returns whether there was any."""
    return any([session.release() for session in list(every)])  # noqa: C419  releases all
