"""Downloads that visitors asked for: each on a thread of its own, told about and cancelled here."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field
from pathlib import Path

from ssd_core import SSDError, hub

from .jobs import fault

log = logging.getLogger(__name__)


@dataclass
class Download:
    """One backbone on its way; `done` and `total` are bytes, `over` comes last."""

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
        except Exception as error:
            log.exception("download of %s", self.name)
            self.error = fault(error)
        finally:
            self.over.set()

    def _progress(self, done: int, total: int, file: str) -> None:
        self.done, self.total, self.file = done, total, file


class Downloads:
    """At most one a visitor."""

    def __init__(self, models_dir: Path) -> None:
        self.models_dir = models_dir
        self._running: dict[str, Download] = {}

    def start(self, owner: str, name: str) -> Download:
        """Begin; SSDError where this visitor's last one is still under way."""
        last = self._running.get(owner)
        if last is not None and not last.over.is_set():
            raise SSDError(f"{last.name} is still being downloaded: cancel it first")
        download = self._running[owner] = Download(name)
        threading.Thread(target=download.run, args=(self.models_dir,), daemon=True).start()
        return download

    def cancel(self, owner: str) -> None:
        if owner in self._running:
            self._running[owner].stop.set()

    def close(self) -> None:
        for download in self._running.values():
            download.stop.set()
