"""Decoding methods: each has a file with a frozen dataclass, and a line in the table below.

METHODS maps names to classes. A class is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ...backbones.presets import PAPER
from .base import Method

if TYPE_CHECKING:
    from .ar import AR
    from .baselines.gsd import GSD
    from .baselines.hawk import Hawk
    from .baselines.jacobi import Jacobi
    from .baselines.lantern import Lantern
    from .baselines.mtp import MTP
    from .baselines.mulo import MuLo
    from .baselines.sjd import SJD
    from .baselines.strict import Strict
    from .exact import Exact
    from .rolling import Rolling
    from .rows import Rows
    from .ssd import SSD
    from .wave import Wave

    METHODS: dict[str, type[Method]]

# The file of each class, in the order of METHODS.
_FILES = {
    "AR": ".ar", "MTP": ".baselines.mtp", "SSD": ".ssd", "Strict": ".baselines.strict",
    "Rows": ".rows", "Exact": ".exact", "SJD": ".baselines.sjd", "Jacobi": ".baselines.jacobi",
    "GSD": ".baselines.gsd", "Wave": ".wave", "Hawk": ".baselines.hawk",
    "MuLo": ".baselines.mulo", "Lantern": ".baselines.lantern", "Rolling": ".rolling",
}

PAPER_PRESETS = {name: setting.preset for name, setting in PAPER.items()}


def __getattr__(name: str) -> Any:
    if name == "METHODS":
        kinds = [getattr(import_module(file, __name__), kind) for kind, file in _FILES.items()]
        found: Any = {kind.name: kind for kind in kinds}
    elif name in _FILES:
        found = getattr(import_module(_FILES[name], __name__), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def default_method() -> Method:
    """The default method of every host; it draws AR's picture, with or without heads."""
    from .exact import Exact

    return Exact()


__all__ = ["AR", "GSD", "METHODS", "MTP", "PAPER_PRESETS", "SJD", "SSD", "Exact", "Hawk", "Jacobi",
           "Lantern", "Method", "MuLo", "Rolling", "Rows", "Strict", "Wave",
           "default_method"]
