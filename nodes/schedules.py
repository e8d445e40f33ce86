"""From widgets to methods, and their plans. Knows the engine, not ComfyUI."""

from __future__ import annotations

from dataclasses import fields, replace

from ..ssd_core.backbones.base import Backbone, Preset
from ..ssd_core.backbones.postcard import GRID, Postcard
from ..ssd_core.engine.methods import METHODS, PAPER_PRESETS, SSD, Method, default_method
from ..ssd_core.engine.plan import Plan
from ..ssd_core.engine.usual import usual_passes
from ..ssd_core.errors import SSDError
from ..ssd_core.front.labels import plan_text
from ..ssd_core.model.grid import Grid

AUTO, OWN, CUSTOM = "auto", "SSD for this backbone", "custom"
NAMED: dict[str, Preset] = {"postcard": Postcard.preset, **PAPER_PRESETS}
PRESETS = [AUTO, OWN, *NAMED, CUSTOM]
GRIDS = {"Janus-Pro": Grid(24, 24), "Lumina-mGPT": Grid(48, 48, True), "Emu3": Grid(90, 90, True)}
BASELINES = [name for name in METHODS if name != SSD.name]


def method_of(preset: str, k_h: int = 0, k_v: int = 0, r: int = 0, i: int = 0,
              acceptance: str = "residual") -> Method:
    """What these widgets mean; 0 is the preset's own.

    `custom` takes r and i as they stand; no draft has 0 cells or rows, so 0 stays the backbone's
    own for k_h and k_v. What is left None, the backbone's preset fills in.
    """
    if preset not in PRESETS:
        raise SSDError(f"preset {preset!r}: choose one of {', '.join(PRESETS)}")
    if preset == AUTO:
        return default_method()
    given = {"k_h": k_h or None, "k_v": k_v or None, "rounds": r, "incremental": i}
    if preset != CUSTOM:
        own = NAMED.get(preset)
        given = {name: value or getattr(own, name, None) for name, value in given.items()}
    return SSD(**given, acceptance=acceptance)


def idle_knobs(preset: str, k_h: int, k_v: int, r: int, i: int) -> str | None:
    """A note about numbers that were set, but that preset `auto` does not use."""
    knobs = {"k_h": k_h, "k_v": k_v, "r": r, "i": i}
    idle = [f"{name} {value}" for name, value in knobs.items() if value]
    if preset != AUTO or not idle:
        return None
    return (f"preset {AUTO} does not use {', '.join(idle)}: choose '{OWN}' or '{CUSTOM}' to draw "
            "with them")


def baseline(name: str, **knobs: int | str | bool) -> Method:
    """The method with those of the knobs that it has; 0 or less leaves a number to the method.

    r and i count from 0, so for them only -1 does.
    """
    if name not in METHODS:
        raise SSDError(f"method {name!r}: choose one of {', '.join(BASELINES)}")
    own = {f.name for f in fields(METHODS[name])}
    least = {"rounds": 0, "incremental": 0}
    given = {knob: value for knob, value in knobs.items()
             if knob in own and (isinstance(value, str) or value >= least.get(knob, 1))}
    return METHODS[name](**given)


def plan_for(method: Method, preset: str, backbone: Backbone | None,
             device: str = "cpu") -> tuple[Plan, str]:
    """The plan, on the backbone's grid or else on that of the preset, and the plan in words.

    device: the type of the one that will draw; a backbone may be elsewhere until then.
    """
    grid = GRIDS.get(preset, GRID) if backbone is None else backbone.grid
    own = NAMED.get(preset, Postcard.preset) if backbone is None else backbone.preset
    if backbone is None and (getattr(method, "window", None) or 0) > grid.slots:
        method = replace(method, window=None)  # a larger backbone may well have that many cells
    resolved = method.resolved(own)
    plan = replace(resolved.plan(grid), choice=resolved.choice(grid, device),
                   usual=backbone and usual_passes(backbone, resolved, True, device))
    return plan, plan_text(resolved, plan, f"{grid}" + (f" ({backbone.name})" if backbone else ""))
