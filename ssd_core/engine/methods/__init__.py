"""Decoding methods: each has a file with a frozen dataclass, and an entry in METHODS."""

from ...backbones.presets import PAPER
from .ar import AR
from .base import Method
from .exact import Exact
from .gsd import GSD
from .hawk import Hawk
from .jacobi import Jacobi
from .lantern import Lantern
from .mtp import MTP
from .mulo import MuLo
from .rolling import Rolling
from .rows import Rows
from .sjd import SJD
from .ssd import SSD
from .strict import Strict
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
