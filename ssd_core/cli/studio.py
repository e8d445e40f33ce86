"""`ssd app`: start the Gradio app, which parses its own options."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import typer

from ..errors import SSDError

PACKAGE = "ssd_studio"  # in a wheel, the name of the folder `studio`
BESIDE = Path(__file__).resolve().parents[2] / "studio"
MISSING = {"gradio": "the app needs the package gradio: pip install gradio",
           PACKAGE: "this folder has the ComfyUI nodes without the app: clone the repository for "
                    "it"}


def command(context: typer.Context) -> None:
    """Open the app in a browser; `ssd app --help` lists its options."""
    if PACKAGE not in sys.modules and BESIDE.is_dir():
        take_from(BESIDE)
    try:
        start = import_module(f"{PACKAGE}.start")
    except ModuleNotFoundError as missing:
        if missing.name not in MISSING:
            raise
        raise SSDError(MISSING[missing.name]) from missing
    start.run("ssd app", arguments=context.args)


def take_from(folder: Path) -> None:
    """Import a folder as the app's package, even if another module is named `studio`."""
    spec = spec_from_file_location(PACKAGE, folder / "__init__.py",
                                   submodule_search_locations=[str(folder)])
    if spec is None or spec.loader is None:
        raise SSDError(f"{folder}: the app is incomplete: reinstall it")
    sys.modules[PACKAGE] = module = module_from_spec(spec)
    spec.loader.exec_module(module)
