"""What all tabs share: the one worker, the backbones, the saved pictures, the parked runs,
downloads."""

from __future__ import annotations

from dataclasses import dataclass

from .downloads import Downloads
from .history import History
from .jobs import Worker
from .library import Library
from .runs import Nursery


@dataclass(frozen=True)
class Services:
    """One of each for the whole app; `language` is auto, en or zh. local: whether only this machine
    reaches the app; others may neither delete, download nor switch the backbone."""

    worker: Worker
    library: Library
    history: History
    nursery: Nursery
    downloads: Downloads
    language: str = "auto"
    local: bool = True

    def leave(self, owner: str) -> None:
        """A tab was closed: its runs stop, its parked runs give their memory back."""
        self.worker.dismiss(owner)
        self.nursery.drop_owner(owner)
        self.downloads.cancel(owner)

    def close(self) -> None:
        self.downloads.close()
        self.worker.close()
