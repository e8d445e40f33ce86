"""Downloads that a page starts; each runs on its own thread and can be cancelled by any page."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import SSDError, first_line
from . import hub

log = logging.getLogger(__name__)


@dataclass
class Download:
    """One download; `done` and `total` are bytes, `over` is set last."""

    name: str
    done: int = 0
    total: int = 0
    file: str = ""
    error: str | None = None
    cancelled: bool = False
    where: Path | None = None
    over: threading.Event = field(default_factory=threading.Event)
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self, models_dir: Path) -> None:
        try:
            self.where = hub.download(self.name, models_dir, self._progress, self.stop.is_set)
        except hub.DownloadCancelled:
            self.cancelled = True
        except SSDError as error:
            self.error = str(error)
        except BaseException as error:  # it must never look done
            log.exception("download of %s", self.name)
            self.error = fault(error)
        finally:
            self.over.set()

    def _progress(self, done: int, total: int, file: str) -> None:
        self.done, self.total, self.file = done, total, file


def fault(error: BaseException) -> str:
    """One line about an error that the user did not cause."""
    return (f"an error in this program: {type(error).__name__}: {first_line(error)}; "
            "see the terminal")


class Downloads:
    """At most one download at a time, independent of the page that started it.

    Any page may show or cancel it. `last` is the current download, or the previous one.
    """

    def __init__(self, models_dir: Path) -> None:
        self.models_dir = models_dir
        self.last: Download | None = None
        self._lock = threading.Lock()

    def start(self, name: str, missing: object) -> Download:
        """Start a download whose quote was seen.

        missing: the bytes that are missing by its quote. Raises SSDError for any other number, and
        if another download is running.
        """
        with self._lock:
            if self.last is not None and not self.last.over.is_set():
                raise SSDError(f"{self.last.name} is still being downloaded: cancel it first")
            quoted = hub.quote(name, self.models_dir)
            if missing != quoted.missing:
                raise SSDError(f"bytes: {quoted.missing} are to be downloaded: ask for size and "
                               "licence first, and send this number")
            self.last = download = Download(name, total=quoted.bytes)
        threading.Thread(target=download.run, args=(self.models_dir,), daemon=True).start()
        return download

    def cancel(self) -> None:
        if self.last is not None:
            self.last.stop.set()
