"""The families of backbones.

A family is a module with FAMILY (its name), matches(checkpoint) -> bool (decided by tensor names)
and load(checkpoint, device, dtype) -> Backbone. Each family has one entry in FAMILIES.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType

FAMILIES = ("postcard", "janus", "llamagen", "tar", "chameleon", "lumina2", "emu3", "emu3_5",
            "simplear", "glm_image")


@cache
def families() -> tuple[ModuleType, ...]:
    """The modules, imported when a checkpoint is read."""
    return tuple(import_module(f".{name}", __package__) for name in FAMILIES)
