"""Choices between ways to compute that were measured on this machine, such as a kernel's name.

They are kept in the user's cache (kept_files.py), for each combination of device, driver, torch and
program. After an update they are measured again.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from .kept_entries import KeptEntries
from .machine_faults import combination

FILE = "measured.json"


def tuned(name: str, device: torch.device, measure: Callable[[], str]) -> str:
    """The choice that `measure` has made on this machine under this name, or makes now."""
    key = combination(device)
    of_machine = _kept.read().get(key, {})
    if name not in of_machine:
        of_machine[name] = measure()
        _kept.put(key, of_machine)
    return of_machine[name]


def parsed(raw: dict) -> dict[str, str]:
    """A stored entry; raises AttributeError for impossible values."""
    return {str(name): str(choice) for name, choice in raw.items()}


_kept = KeptEntries(FILE, parsed, dict)
