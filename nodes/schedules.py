"""Turn a node's list of methods into a method, and plan it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from ..ssd_core.backbones.base import Backbone, Preset
from ..ssd_core.backbones.postcard import GRID, Postcard
from ..ssd_core.engine.decode import plan
from ..ssd_core.engine.events import Plan
from ..ssd_core.engine.methods import Exact, Method
from ..ssd_core.engine.tuning import Machine, tune
from ..ssd_core.output import choices
from ..ssd_core.output.labels import prior_text
from .widgets import LIST, values_of

CPU = torch.device("cpu")


def chosen(value: Mapping[str, Any] | str, name: str = LIST) -> tuple[Method, bool]:
    """The method of a list, and whether that very method was asked for, by its name or its knobs.

    value: as ComfyUI gives it: the choice under the list's own name, and its knobs. Knobs that are
    missing, or -1, are the model's own. Raises SSDError for a wrong choice or knob.
    """
    knobs = dict(value) if isinstance(value, Mapping) else {name: value}
    title = knobs.pop(name, choices.FAITHFUL)
    known = choices.choice(title)  # before its knobs are looked up
    own = {knob.name: knob for knob in choices.knobs_of(title)}
    known = choices.method_of(title, {**knobs, **values_of(own.values(), knobs)})
    return known, title not in choices.BY_SPEED or known != choices.choice(title)


def own_values(title: str, backbone: Backbone | None) -> dict[str, Any]:
    """The numbers that a choice uses of a model, postcard's without one."""
    preset: Preset = Postcard.preset if backbone is None else backbone.preset
    return choices.own_values(title, preset)


def plan_for(method: Method, backbone: Backbone | None,
             device: torch.device = CPU) -> Plan:
    """The plan on the backbone's grid, or postcard's without one.

    device: the device of the run, to which the backbone may not have been moved yet.
    """
    if backbone is None:
        if isinstance(method, Exact) and (method.window or 0) > GRID.slots:
            method = Exact()  # a larger model may have that many cells
        return plan(GRID, method.resolve(Postcard.preset), device=device.type)
    own = backbone.preset
    machine = Machine.of(backbone, None, 1 if own.cfg == 1 else 2, device=device)
    selection = tune(machine, method.resolve(own), named=True)
    known = plan(backbone, selection.method, heads=True, device=device.type)
    return replace(known, tuning=selection.text or known.tuning)


def passes_line(known: Plan) -> str:
    """How many passes a run takes, in a line."""
    if known.passes is not None:
        return f"{known.passes} of {known.ar_passes} passes at these knobs"
    if known.prior_passes:
        line = f"about {known.prior_passes} of {known.ar_passes} passes, as the picture needs"
    else:
        line = f"at most {known.passes_max} passes, as the picture needs"
    return "\n".join(filter(None, (line, prior_text(known))))
