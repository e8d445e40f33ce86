"""Spatially Speculative Decoding: draft whole rows of a picture, verify them in a few passes.

The public names are imported when they are first used: torch takes a second or two, and until then
the command line must be able to end quietly (`__main__.py`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import openmp  # noqa: F401  before torch
from .errors import SSDError
from .version import version

if TYPE_CHECKING:
    from .engine import methods
    from .engine.decode import generate, plan
    from .engine.edits.look import change_map, object_map
    from .engine.edits.things import Thing, thing_at, things_of
    from .engine.edits.words import Edit
    from .engine.events import FinalRows, Finished, Pass, Plan, Started
    from .model.grid import Grid
    from .model.sampling import Sampling
    from .runs.comparison import compare
    from .weights.load import load_backbone, load_heads

__version__ = version()
__all__ = ["Edit", "FinalRows", "Finished", "Grid", "Pass", "Plan", "SSDError", "Sampling",
           "Started", "Thing", "change_map", "compare", "generate", "load_backbone", "load_heads",
           "methods", "object_map", "plan", "thing_at", "things_of"]
_HOMES = {"methods": ".engine", **dict.fromkeys(("generate", "plan"), ".engine.decode"),
          **dict.fromkeys(("Finished", "Pass", "Plan", "FinalRows", "Started"), ".engine.events"),
          **dict.fromkeys(("change_map", "object_map"), ".engine.edits.look"),
          **dict.fromkeys(("Thing", "thing_at", "things_of"), ".engine.edits.things"),
          "Edit": ".engine.edits.words", "compare": ".runs.comparison",
          "Grid": ".model.grid", "Sampling": ".model.sampling",
          **dict.fromkeys(("load_backbone", "load_heads"), ".weights.load")}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "methods":
        return import_module(".engine.methods", __name__)
    return getattr(import_module(_HOMES[name], __name__), name)
