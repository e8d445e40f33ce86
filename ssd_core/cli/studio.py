"""`ssd app`: start the Gradio app, which parses its own options."""

from __future__ import annotations

from importlib import import_module

import typer

from ..errors import SSDError
from .beside import take

# All options are the app's own.
SETTINGS = {"add_help_option": False, "context_settings": {
    "allow_extra_args": True, "ignore_unknown_options": True}}


def command(context: typer.Context) -> None:
    """Open the app in a browser; `ssd app --help` lists its options."""
    take("ssd_studio")
    try:
        start = import_module("ssd_studio.start")
    except ModuleNotFoundError as missing:
        if missing.name != "gradio":
            raise
        raise SSDError("the app needs the package gradio: pip install gradio") from missing
    start.run("ssd app", arguments=context.args)
