"""Modules of tools/ and lab/benchmarks/, which are scripts: they find their neighbours by name."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]


def script(folder: str, name: str) -> ModuleType:
    """A script as a module; its folder is on the path only while it is imported."""
    sys.path.insert(0, str(ROOT / folder))
    try:
        return import_module(name)
    finally:
        sys.path.remove(str(ROOT / folder))
