"""Decoding methods: each has a file with a frozen dataclass, and an entry in METHODS."""

from ...backbones.presets import PAPER
from .ar import AR
from .base import Method
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

METHODS: dict[str, type[Method]] = {method.name: method for method in (
    AR, MTP, SSD, Strict, Rows, Exact, SJD, Jacobi, GSD, Wave, Hawk, MuLo, Lantern, Rolling,
)}

PAPER_PRESETS = {name: setting.preset for name, setting in PAPER.items()}


def default_method() -> Method:
    """The default method of every host; it draws AR's picture, with or without heads."""
    return Exact()


__all__ = ["AR", "GSD", "METHODS", "MTP", "PAPER_PRESETS", "SJD", "SSD", "Exact", "Hawk", "Jacobi",
           "Lantern", "Method", "MuLo", "Rolling", "Rows", "Strict", "Wave",
           "default_method"]
