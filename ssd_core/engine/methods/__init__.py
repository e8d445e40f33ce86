"""Decoding methods: one frozen dataclass a file, one row here."""

from .ar import AR
from .base import Method, Resolved
from .exact import Exact
from .mtp import MTP
from .rows import Rows
from .ssd import PAPER_PRESETS, SSD
from .strict import Strict

METHODS: dict[str, type[Method]] = {
    method.name: method for method in (AR, MTP, SSD, Strict, Rows, Exact)
}


def default_method() -> Method:
    """What every host draws with unless told otherwise: AR's picture, with heads or without."""
    return Exact()


__all__ = ["AR", "METHODS", "MTP", "PAPER_PRESETS", "SSD", "Exact", "Method", "Resolved", "Rows",
           "Strict", "default_method"]
