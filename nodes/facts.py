"""Facts about backbones for ComfyUI's page: what a method costs, sizes, and known words.

The nodes show them before anything runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import comfy.model_management as mm

from ..ssd_core.backbones.base import Backbone
from ..ssd_core.backbones.prompt_guide import offered
from ..ssd_core.errors import SSDError
from ..ssd_core.weights.catalogue import CATALOGUE
from ..ssd_core.weights.load import load_backbone, noted_hash
from . import folders, language, learning, schedules
from .widgets import LIST


def described(name: str) -> Backbone | None:
    """A local backbone without its weights' values; None if no such backbone is installed."""
    model = folders.registry().listed(name)
    if model is None:
        return None
    backbone = _described(model.path, folders.fingerprint(model.path))
    backbone.sha256 = backbone.sha256 or noted_hash(backbone.files)  # it may be loaded by now
    return backbone


@lru_cache(maxsize=16)
def _described(path: Path, fingerprint: str) -> Backbone:
    """Load a description; the fingerprint, a cache key, changes when the file does."""
    return load_backbone(path, "meta", estimates=folders.estimates(), hashed=False)


def plan_of(widgets: Mapping[str, Any], name: str, list_: str = LIST) -> dict[str, Any]:
    """A line with the passes of a list's method, and the model's own numbers for its knobs.

    name: the connected model, empty if there is none. If an input is wrong, the line says so.
    """
    own: dict[str, Any] = {}
    value = {key.removeprefix(f"{list_}."): set_ for key, set_ in widgets.items()}
    try:
        method, _ = schedules.chosen(value, list_)
        backbone = described(name)
        own = schedules.own_values(str(value[list_]), backbone)
        line = schedules.passes_line(schedules.plan_for(method, backbone, mm.get_torch_device()))
    except SSDError as error:
        line = str(error)
    return {"plan": language.localized_for_all(line), "own": own}


def outlook_of(widgets: Mapping[str, Any], name: str) -> str:
    """A text with the pictures that drafts could learn from, and how long that would take.

    If an input is wrong, the text says so.
    """
    try:
        folder, kind, epochs = (widgets[key] for key in ("folder", "kind", "epochs"))
        text = learning.outlook(name, str(folder), str(kind), int(epochs), described(name))
    except SSDError as error:
        text = str(error)
    return language.localized_for_all(text)


def sizes_of(name: str) -> list[str]:
    """Sizes such as "384x384" of a local or a known backbone; [] for any other name."""
    try:
        backbone = described(name)
    except SSDError:  # Load Model says what is wrong with it
        return []
    known = (CATALOGUE[name].size,) if name in CATALOGUE else ()
    return [f"{width}x{height}" for width, height in (backbone.sizes if backbone else known)]


def kinds_of(name: str, chinese: bool = False) -> list[dict[str, Any]]:
    """The words of a backbone by kind; [] if it takes any words or is not installed."""
    try:
        backbone = described(name)
    except SSDError:  # Load Model says what is wrong with it
        return []
    return offered(backbone.word_kinds if backbone else (), chinese)
