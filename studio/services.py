"""What all tabs share: the one worker, the backbones, the saved pictures, the parked runs,
downloads."""

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
    """One of each for the whole app; `language` is auto, en or zh. local: whether only this machine
    reaches the app; others may neither delete, download nor switch the backbone."""

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
