"""What all endpoints share: worker, backbones, saved pictures, paused seeds, downloads."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ssd_core.weights.downloads import Downloads

from .change_maps import ChangeMaps
from .history import History
from .jobs import Worker
from .learning import Learning
from .library import Library
from .seeds import ParkedSeeds
from .sharing import without_folders
from .things import Things


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
    change_maps: ChangeMaps = field(default_factory=ChangeMaps)
    things: Things = field(default_factory=Things)

    def __post_init__(self) -> None:
        self.library.before_switch.append(self.change_maps.drop)
        self.library.before_switch.append(self.things.drop)

    @cached_property
    def learning(self) -> Learning:
        return Learning(self.worker, self.library, self.history)

    def place(self, folder: Path) -> str:
        """Where pictures are, as a visitor may know it: on a shared app, without the way there."""
        if self.local:
            return str(folder)
        return "" if folder == self.history.folder else folder.name

    def for_visitors(self, text: str) -> str:
        """A text as visitors may read it: on a shared app, without this machine's folders."""
        return text if self.local else without_folders(text)

    def close(self) -> None:
        self.downloads.cancel()
        self.worker.close()
