"""What all tabs share: worker, backbones, saved pictures, paused seeds, downloads."""

from __future__ import annotations

from dataclasses import dataclass, field

from .downloads import Downloads
from .history import History
from .jobs import Worker
from .library import Library
from .seeds import ParkedSeeds
from .visits import Visits


@dataclass(frozen=True)
class Services:
    """One of each for the whole app; `language` is auto, en or zh.

    local: only this machine can reach the app; otherwise visitors may not delete pictures, download
    or switch backbones.
    """

    worker: Worker
    library: Library
    history: History
    parked_seeds: ParkedSeeds
    downloads: Downloads
    language: str = "auto"
    local: bool = True
    visits: Visits = field(default_factory=Visits)

    def close(self) -> None:
        self.downloads.cancel()
        self.worker.close()
