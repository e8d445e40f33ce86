"""From widgets to methods, and a plan in words. Knows the engine, not ComfyUI."""

from __future__ import annotations

from dataclasses import fields, replace

from ..ssd_core.backbones.base import Backbone, Preset
from ..ssd_core.backbones.postcard import GRID, Postcard
from ..ssd_core.errors import SSDError
from ..ssd_core.grid import Grid
from ..ssd_core.methods import METHODS, PAPER_PRESETS, SSD, Method, Rows
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


def without_heads(method: SSD) -> Rows:
    """The same schedule by the method that needs no heads."""
    return Rows(method.k_h, method.k_v, method.rounds, method.incremental, method.acceptance)


def label(method: Method) -> str:
    """A resolved method in a few words: its schedule, and the knobs that are not as usual."""
    rounds, words = getattr(method, "rounds", None), [method.name]
    if getattr(method, "k_v", 1) > 1:
        words.append(f"k_v={method.k_v} b={rounds} i={method.incremental}")
    elif rounds is not None:
        words.append(f"r={rounds}")
    words += [f"{f.name}={getattr(method, f.name)}" for f in fields(method)
              if f.default is not None and getattr(method, f.name) != f.default
              and f.name not in ("k_v", "rounds", "incremental")]
    if window := getattr(method, "window", None):
        words.append(f"window={window}")
    return " ".join(words)


def knobs_of(method: Method) -> str:
    return ", ".join(f"{f.name} {getattr(method, f.name)}" for f in fields(method))


def plan_for(method: Method, preset: str, backbone: Backbone | None) -> tuple[Plan, str]:
    """The plan, on the backbone's grid or else on that of the preset, and the plan in words."""
    grid = GRIDS[preset] if backbone is None else backbone.grid
    own = PRESETS[preset] or Preset() if backbone is None else backbone.preset
    if backbone is None and (getattr(method, "window", None) or 0) > grid.slots:
        method = replace(method, window=None)  # a larger backbone may well have that many cells
    resolved = method.resolved(own)
    plan = resolved.plan(grid)
    return plan, plan_text(resolved, plan, f"{grid}" + (f" ({backbone.name})" if backbone else ""))


def plan_text(method: Method, plan: Plan, where: str) -> str:
    """Lines that say what a run will take."""
    lines = [f"{method.name} on {where}: {knobs_of(method) or 'no knobs'}"]
    if plan.passes is None:
        lines.append(f"at most {plan.passes_max} passes, how many depends on the picture; "
                     f"AR takes {plan.ar_passes}")
    else:
        lines.append(f"{plan.passes} passes; AR takes {plan.ar_passes}, "
                     f"{plan.step_acceleration:.2f} times as many")
    if plan.paper_passes and plan.paper_ar_passes:
        lines.append(f"the paper counts {plan.paper_passes} against {plan.paper_ar_passes}")
    return "\n".join(lines)
