"""Turn widgets into methods, and plan them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import torch

from ..ssd_core.backbones.base import Backbone
from ..ssd_core.backbones.postcard import GRID, Postcard
from ..ssd_core.engine.decode import plan
from ..ssd_core.engine.events import Plan
from ..ssd_core.engine.methods import AR, METHODS, SSD, Exact, Method
from ..ssd_core.engine.tuning import Machine, tune
from ..ssd_core.errors import SSDError
from ..ssd_core.model.knobs import KnobSpec
from ..ssd_core.output.knob_words import KNOB_WORDS
from ..ssd_core.output.knobs import all_knobs, visible_knobs
from ..ssd_core.output.labels import DEFAULT, SPEEDS, plan_text
from .widgets import values_of

CPU = torch.device("cpu")
CUSTOM = "custom"
FASTER = {speed.title: speed for speed in SPEEDS.values() if speed.method != AR()}
FAITHFUL = SPEEDS[DEFAULT].title
QUALITIES = [*FASTER, CUSTOM]  # what the sampler itself offers
NAMES = [SSD.name, *(name for name in METHODS if name != SSD.name)]
SCHEDULE = ("k_h", "k_v", "rounds", "incremental")  # SSD's knobs on the sampler itself


def schedule_knobs() -> list[KnobSpec]:
    return [knob for knob in visible_knobs(SSD) if knob.name in SCHEDULE]


def method_knobs() -> list[KnobSpec]:
    """Every knob of any method once, new ones last: ComfyUI stores widgets by position."""
    places = {name: place for place, name in enumerate(KNOB_WORDS)}
    return sorted(all_knobs(NAMES).values(),
                  key=lambda knob: places.get(knob.name, len(places)))


def of_quality(quality: str, widgets: Mapping[str, Any]) -> Method:
    """The method of a quality; `custom` is SSD with these widgets."""
    if quality in FASTER:
        return FASTER[quality].method
    if quality != CUSTOM:  # ComfyUI 0.3.64 does not look whether a list has it
        raise SSDError(f"quality {quality!r}: choose one of {', '.join(QUALITIES)}")
    return SSD(**values_of(schedule_knobs(), widgets))


def touched(quality: str, widgets: Mapping[str, Any]) -> list[str]:
    """The sampler's own method settings that differ from those of a new node."""
    values = values_of(schedule_knobs(), widgets)
    return [f"quality {quality}"] * (quality != FAITHFUL) + [
        f"{name} {value}" for name, value in values.items() if value is not None]


def idle_knobs(quality: str, widgets: Mapping[str, Any]) -> str | None:
    """A note on changed numbers that the quality does not use, or None."""
    idle = touched(FAITHFUL, widgets)
    if quality == CUSTOM or not idle:
        return None
    return (f"quality {quality} does not use {', '.join(idle)}: choose '{CUSTOM}' to draw with "
            "them")


def of_name(name: str, widgets: Mapping[str, Any]) -> Method:
    """The method with the widgets that are its knobs; "auto" is the method's own value."""
    if name not in METHODS:
        raise SSDError(f"method {name!r}: choose one of {', '.join(NAMES)}")
    own = {f.name for f in fields(METHODS[name])}
    values = values_of(method_knobs(), widgets)
    return METHODS[name](**{knob: value for knob, value in values.items()
                            if knob in own and value is not None})


def without_effect(name: str, widgets: Mapping[str, Any]) -> str | None:
    """A note on changed widgets that are no knobs of this method, or None."""
    own = {f.name for f in fields(METHODS[name])}
    others = [knob for knob in method_knobs() if knob.name not in own]
    values = values_of(others, widgets)
    idle = [f"{knob.name} {shown(values[knob.name])}" for knob in others
            if knob.name in values and values[knob.name] != knob.default]
    return f"{name} does not use {', '.join(idle)}" if idle else None


def shown(value: Any) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def plan_for(method: Method, backbone: Backbone | None,
             device: torch.device = CPU) -> tuple[Plan, str]:
    """The plan on the backbone's grid, or postcard's without one, and the plan in words.

    device: the device of the run, to which the backbone may not have been moved yet.
    """
    if backbone is None:
        if isinstance(method, Exact) and (method.window or 0) > GRID.slots:
            method = Exact()  # a larger model may have that many cells
        resolved = method.resolve(Postcard.preset)
        known = plan(GRID, resolved, device=device.type)
        return known, plan_text(resolved, known, f"{GRID}")
    own = backbone.preset
    machine = Machine.of(backbone, None, 1 if own.cfg == 1 else 2, device=device)
    selection = tune(machine, method.resolve(own), named=True)
    known = plan(backbone, selection.method, heads=True, device=device.type)
    known = replace(known, tuning=selection.text or known.tuning)
    return known, plan_text(selection.method, known, f"{backbone.grid} ({backbone.name})")
