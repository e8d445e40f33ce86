"""Which visitor a page belongs to: a token in the browser tab survives a reload.

Gradio knows a page by its session, which ends with the page; the token outlives it. Nobody can
guess another visitor's token: it is 32 random bytes that only that tab and this program know.
"""

from __future__ import annotations

import random
import re
import threading
from collections import OrderedDict

from ssd_core.output.words import Words

TOKEN = re.compile(r"[0-9a-f]{64}")
MOST = 4096  # entries per table; the latest are kept


class Visits:
    """Owners of runs by session. A visitor's owner is the first session that sent its token."""

    def __init__(self) -> None:
        self._owners: OrderedDict[str, str] = OrderedDict()  # by token
        self._sessions: OrderedDict[str, str] = OrderedDict()  # owners by session
        self._lock = threading.Lock()

    def attach(self, session: str, token: object) -> None:
        """Assign this session to the holder of `token`; an invalid token is ignored."""
        if not (session and isinstance(token, str) and TOKEN.fullmatch(token)):
            return
        with self._lock:
            owner = self._owners.pop(token, session)
            for table, key in ((self._owners, token), (self._sessions, session)):
                table[key] = owner
                table.move_to_end(key)
                if len(table) > MOST:
                    table.popitem(last=False)

    def holder(self, token: object) -> str | None:
        """The owner of what the holder of `token` starts; None for an invalid token."""
        if not (isinstance(token, str) and TOKEN.fullmatch(token)):
            return None
        with self._lock:
            owner = self._owners.setdefault(token, token)
            self._owners.move_to_end(token)
            if len(self._owners) > MOST:
                self._owners.popitem(last=False)
        return owner

    def owner(self, session: str) -> str:
        """The owner of what a session starts: itself until it has sent a token."""
        with self._lock:
            return self._sessions.get(session, session)


class NextSeeds:
    """The seed that each page draws next, chosen ahead so that its words can be shown before."""

    def __init__(self) -> None:
        self._seeds: OrderedDict[str, int] = OrderedDict()  # by session
        self._lock = threading.Lock()

    def of(self, session: str | None) -> int:
        with self._lock:
            return self._seeds.setdefault(session or "", random.getrandbits(32))

    def renew(self, session: str | None) -> None:
        """Choose another one, after it was drawn."""
        with self._lock:
            self._seeds[session or ""] = random.getrandbits(32)
            self._seeds.move_to_end(session or "")
            if len(self._seeds) > MOST:
                self._seeds.popitem(last=False)


class LastWords:
    """The words that each visitor last drew, or that the app last put into the boxes."""

    def __init__(self) -> None:
        self._words: OrderedDict[str, Words] = OrderedDict()  # by owner
        self._lock = threading.Lock()

    def note(self, owner: str, words: Words) -> None:
        with self._lock:
            self._words[owner] = words
            self._words.move_to_end(owner)
            if len(self._words) > MOST:
                self._words.popitem(last=False)

    def note_first(self, owner: str, words: Words) -> None:
        """Note what a page begins with, unless its visitor was here before."""
        if owner not in self._words:
            self.note(owner, words)

    def typed_since(self, owner: str, words: Words) -> bool:
        """Whether these words in the boxes were typed after that."""
        return self._words.get(owner, words) != words
