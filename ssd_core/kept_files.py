"""Where figures measured on this machine are kept: a folder of the user's cache. Without torch.

SSD_CACHE names another folder; "off" keeps and measures nothing.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

VARIABLE, OFF = "SSD_CACHE", "off"
FOLDER = "ssd-decoding"


def switched_off() -> bool:
    return os.environ.get(VARIABLE, "").lower() == OFF


def cache_folder() -> Path | None:
    """The folder, which need not exist yet; None if it is switched off or there is no home."""
    if named := os.environ.get(VARIABLE):
        return None if switched_off() else Path(named)
    try:
        return places() / FOLDER
    except RuntimeError:  # no home folder
        return None


def places() -> Path:
    """The user's folder for caches, where this system has it."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    name, otherwise = (("LOCALAPPDATA", "AppData/Local") if sys.platform == "win32"
                       else ("XDG_CACHE_HOME", ".cache"))
    own = os.environ.get(name)
    return Path(own) if own and Path(own).is_absolute() else Path.home() / otherwise
