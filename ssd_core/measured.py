"""Choices between ways to compute that were measured on this machine, such as a kernel's name.

They are kept in the user's cache (kept_files.py), for each combination of device, driver, torch and
program. After an update they are measured again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress

import torch

from .errors import SSDError
from .files import write_text
from .kept_files import cache_folder
from .machine_faults import combination

FILE = "measured.json"
MOST = 16  # combinations in the file
_in_memory: dict[str, dict[str, str]] = {}  # where no folder keeps them


def kept_choice(name: str, device: torch.device, measure: Callable[[], str]) -> str:
    """The choice that `measure` has made on this machine under this name, or makes now."""
    known, key = _stored(), combination(device)
    of_machine = known.pop(key, {})
    if name not in of_machine:
        known[key] = {**of_machine, name: measure()}
        _store(known)
        return known[key][name]
    return of_machine[name]


def _stored() -> dict[str, dict[str, str]]:
    if (folder := cache_folder()) is None:
        return dict(_in_memory)
    with suppress(OSError, ValueError, TypeError, AttributeError):
        raw = json.loads((folder / FILE).read_text(encoding="utf-8"))
        return {key: {str(name): str(choice) for name, choice in choices.items()}
                for key, choices in raw.items()}
    return {}


def _store(known: dict[str, dict[str, str]]) -> None:
    while len(known) > MOST:
        known.pop(next(iter(known)))
    if (folder := cache_folder()) is None:
        _in_memory.update(known)
        return
    with suppress(SSDError):
        write_text(folder / FILE, json.dumps(known, indent=1))
