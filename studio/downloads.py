"""Downloads that visitors start; each runs on its own thread and can be cancelled here."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field
from pathlib import Path

from ssd_core import SSDError
from ssd_core.weights import hub

from .jobs import fault

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


class Downloads:
    """At most one download at a time, independent of the page that started it.

    Any page may show or cancel it. `last` is the current download, or the previous one.
    """

    def __init__(self, models_dir: Path) -> None:
        self.models_dir = models_dir
        self.last: Download | None = None
        self._lock = threading.Lock()

    def start(self, name: str) -> Download:
        """Start a download; SSDError if another one is running."""
        with self._lock:
            if self.last is not None and not self.last.over.is_set():
                raise SSDError(f"{self.last.name} is still being downloaded: cancel it first")
            self.last = download = Download(name)
        threading.Thread(target=download.run, args=(self.models_dir,), daemon=True).start()
        return download

    def cancel(self) -> None:
        if self.last is not None:
            self.last.stop.set()
