"""The packages beside ssd_core, the app and the laboratory: imported when a command needs them."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from ..errors import SSDError

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {"ssd_studio": ("studio", "app"), "ssd_lab": ("lab", "laboratory")}


def take(package: str) -> None:
    """Make a package importable: the folder beside ssd_core, or else the one that is installed."""
    folder, name = FOLDERS[package]
    if package in sys.modules:
        return
    if (ROOT / folder).is_dir():
        take_from(ROOT / folder, package)
        return
    try:
        import_module(package)
    except ModuleNotFoundError as missing:
        if missing.name != package:
            raise
        raise SSDError(f"this folder has the ComfyUI nodes without the {name}: clone the "
                       "repository for it") from missing


def take_from(folder: Path, package: str) -> None:
    """Import a folder as a package, even if another module has the folder's name."""
    spec = spec_from_file_location(package, folder / "__init__.py",
                                   submodule_search_locations=[str(folder)])
    if spec is None or spec.loader is None:
        raise SSDError(f"{folder}: a part of the program is incomplete: reinstall it")
    sys.modules[package] = module = module_from_spec(spec)
    spec.loader.exec_module(module)
