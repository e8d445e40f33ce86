"""Turn widgets into methods, and plan them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any

import torch

from ..ssd_core.backbones.base import Backbone, Preset
from ..ssd_core.backbones.postcard import GRID, Postcard
from ..ssd_core.backbones.presets import PAPER
from ..ssd_core.engine.choice import Machine, chosen
from ..ssd_core.engine.decode import plan
from ..ssd_core.engine.methods import AR, METHODS, PAPER_PRESETS, SSD, Exact, Method
from ..ssd_core.engine.plan import Plan
from ..ssd_core.errors import SSDError
from ..ssd_core.output.comfyui_workflow import WIDGETS
from ..ssd_core.output.knobs import all_knobs, visible_knobs
from ..ssd_core.output.labels import plan_text
from ..ssd_core.output.quality_presets import DEFAULT, SPEEDS
from .widgets import name_of, values_of

CPU = torch.device("cpu")
OWN, CUSTOM = "SSD for this backbone", "custom"
NAMED: dict[str, Preset] = {"postcard": Postcard.preset, **PAPER_PRESETS}
FASTER = {speed.title: speed for speed in SPEEDS.values() if speed.method != AR()}
FAITHFUL = SPEEDS[DEFAULT].title
PRESETS = [*FASTER, OWN, *NAMED, CUSTOM]
QUALITIES = [*FASTER, CUSTOM]  # what the sampler itself offers
BASELINES = [name for name in METHODS if name != SSD.name]


def method_of(preset: str, widgets: Mapping[str, Any] = MappingProxyType({})) -> Method:
    """The method of a preset and widgets; -1 means the preset's own value.

    `custom` has no values of its own: the backbone's preset replaces each None. With other presets
    r and i of 0 also mean the preset's own, as in workflows saved before -1 was introduced.
    """
    if preset not in PRESETS:
        raise SSDError(f"preset {preset!r}: choose one of {', '.join(PRESETS)}")
    if preset in FASTER:
        return FASTER[preset].method
    knobs = values_of(visible_knobs(SSD), widgets, zero_is_own=preset != CUSTOM)
    own = {f.name: getattr(NAMED.get(preset), f.name, None) for f in fields(Preset)}
    return SSD(**{**{knob.name: own[knob.name] for knob in visible_knobs(SSD) if knob.name in own},
                  **{name: value for name, value in knobs.items() if value is not None}})


def touched(quality: str, widgets: Mapping[str, Any]) -> list[str]:
    """The sampler's own method settings that differ from those of a new node."""
    values = values_of(visible_knobs(SSD), widgets, zero_is_own=True)
    usual = {knob.name: knob.default for knob in visible_knobs(SSD)}
    return [f"quality {quality}"] * (quality != FAITHFUL) + [
        f"{WIDGETS.get(name, name)} {value}" for name, value in values.items()
        if value != usual[name]]


def idle_knobs(preset: str, widgets: Mapping[str, Any], kind: str = "preset",
               using: str = f"'{OWN}' or '{CUSTOM}'") -> str | None:
    """A note on changed numbers that the preset does not use, or None.

    kind: the node's word for a preset; using: its presets that use the numbers.
    """
    idle = touched(FAITHFUL, widgets)
    if preset not in FASTER or not idle:
        return None
    return f"{kind} {preset} does not use {', '.join(idle)}: choose {using} to draw with them"


def baseline(name: str, widgets: Mapping[str, Any]) -> Method:
    """The method with the widgets that are its knobs; -1 is the method's own value."""
    if name not in METHODS:
        raise SSDError(f"method {name!r}: choose one of {', '.join(BASELINES)}")
    knobs = values_of(all_knobs(BASELINES).values(), widgets)
    own = {f.name for f in fields(METHODS[name])}
    return METHODS[name](**{knob: value for knob, value in knobs.items()
                            if knob in own and value is not None})


def without_effect(name: str, widgets: Mapping[str, Any]) -> str | None:
    """A note on changed widgets that are no knobs of this baseline, or None."""
    own = {f.name for f in fields(METHODS[name])}
    others = [knob for name, knob in all_knobs(BASELINES).items() if name not in own]
    values = values_of(others, widgets)
    idle = [f"{name_of(knob)} {shown(values[knob.name])}" for knob in others
            if knob.name in values and values[knob.name] != knob.default]
    return f"{name} does not use {', '.join(idle)}" if idle else None


def shown(value: Any) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def plan_for(method: Method, preset: str, backbone: Backbone | None,
             device: torch.device = CPU) -> tuple[Plan, str]:
    """The plan on the grid of the backbone, or else of the preset, and the plan in words.

    device: the device of the run, to which the backbone may not have been moved yet.
    """
    paper = PAPER[preset].grid if preset in PAPER else GRID
    grid = paper if backbone is None else backbone.grid
    own = NAMED.get(preset, Postcard.preset) if backbone is None else backbone.preset
    if backbone is None and isinstance(method, Exact) and (method.window or 0) > grid.slots:
        method = Exact()  # a larger backbone may have that many cells
    resolved = method.resolve(own)
    if backbone is None:
        known = plan(grid, resolved, device=device.type)
        return known, plan_text(resolved, known, f"{grid}")
    machine = Machine.of(backbone, None, 1 if own.cfg == 1 else 2, device=device)
    selection = chosen(machine, resolved, named=True)
    known = plan(backbone, selection.method, heads=True, device=device.type)
    known = replace(known, choice=selection.text or known.choice)
    return known, plan_text(resolved, known, f"{grid} ({backbone.name})")
