"""Tiny checkpoints of every published layout, each in a folder of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from .tiny_checkpoints import anole, emu3, lumina
from .tiny_image_models import janus_original, janus_port, llamagen_c2i, tar
from .tiny_simplear import simplear

LAYOUTS = {"janus-original": janus_original, "janus-port": janus_port, "lumina": lumina,
           "anole": anole, "emu3": emu3, "llamagen": llamagen_c2i, "tar": tar,
           "simplear": simplear}


def every_layout(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Each layout in a folder that tells Lumina-mGPT's size and LlamaGen's as their names do."""
    made = {}
    for name, write in LAYOUTS.items():
        made[name] = tmp_path_factory.mktemp(name) / "Lumina-mGPT-7B-512"
        write(made[name])
    return made
