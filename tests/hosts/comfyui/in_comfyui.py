"""Set-up of the scripts that ComfyUI's Python runs in its folder: ComfyUI's options, and the pack.

Import it before anything of ComfyUI. ComfyUI reads the arguments.
"""

import importlib
import os
import sys
from pathlib import Path
from types import ModuleType

sys.path.insert(0, os.getcwd())
ROOT = Path(__file__).resolve().parents[3]
PACK = "ssd_pack"

import comfy.options  # noqa: E402

comfy.options.enable_args_parsing()

import utils.extra_config  # noqa: E402, F401  as main.py does, before another takes the name


def pack(module: str) -> ModuleType:
    """A module of the pack, which is imported from its folder without its nodes' entry point."""
    if PACK not in sys.modules:
        spec = importlib.util.spec_from_file_location(PACK, ROOT / "__init__.py",
                                                      submodule_search_locations=[str(ROOT)])
        sys.modules[PACK] = importlib.util.module_from_spec(spec)
    return importlib.import_module(f"{PACK}.{module}")
