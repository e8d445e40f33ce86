"""From widgets to methods, and their plans. Knows the engine, not ComfyUI."""

from __future__ import annotations

from dataclasses import fields, replace

from ..ssd_core.backbones.base import Backbone, Preset
from ..ssd_core.backbones.postcard import GRID, Postcard
from ..ssd_core.errors import SSDError
from ..ssd_core.grid import Grid
from ..ssd_core.labels import plan_text
from ..ssd_core.methods import METHODS, PAPER_PRESETS, SSD, Method
from ..ssd_core.plan import Plan

CUSTOM = "custom"
PRESETS: dict[str, Preset | None] = {"postcard": Postcard.preset, **PAPER_PRESETS, CUSTOM: None}
GRIDS = {"postcard": GRID, "Janus-Pro": Grid(24, 24), "Lumina-mGPT": Grid(48, 48, True),
         "Emu3": Grid(90, 90, True), CUSTOM: GRID}
BASELINES = [name for name in METHODS if name != SSD.name]


def ssd_method(preset: str, k_h: int, k_v: int, r: int, i: int,
               acceptance: str = "residual") -> SSD:
    """The schedule that these widgets mean; SSDError for a combination that cannot run."""
    if preset not in PRESETS:
        raise SSDError(f"preset {preset!r}: choose one of {', '.join(PRESETS)}")
    known = PRESETS[preset]
    given = {"k_h": k_h, "k_v": k_v, "rounds": r, "incremental": i}
    if known is not None:
        given = {name: value or getattr(known, name) for name, value in given.items()}
    elif min(k_h, k_v) < 1:
        raise SSDError(f"preset custom takes every number as it stands: k_h and k_v must be at "
                       f"least 1 (they are {k_h} and {k_v}), r and i may be 0")
    method = SSD(**given, acceptance=acceptance)
    method.check()
    return method


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
    grid = GRIDS[preset] if backbone is None else backbone.grid
    own = PRESETS[preset] or Preset() if backbone is None else backbone.preset
    if backbone is None and (getattr(method, "window", None) or 0) > grid.slots:
        method = replace(method, window=None)  # a larger backbone may well have that many cells
    resolved = method.resolved(own)
    plan = replace(resolved.plan(grid), choice=resolved.choice(grid, device))
    return plan, plan_text(resolved, plan, f"{grid}" + (f" ({backbone.name})" if backbone else ""))
