"""Methods, plans and the choices of speed as text, the same in every host. Knows no host."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import fields

from ..backbones.base import Backbone
from ..backbones.presets import Preset
from ..engine.events import Plan
from ..engine.methods import Method
from ..engine.methods.rolling import USUAL_FEWER
from ..engine.methods.ssd import RowSchedule
from ..engine.own_runs import KnownMethod, known_of
from ..engine.prior_passes import ENOUGH, is_postcard
from ..engine.tuning import duration
from .choices import SPEEDS, QualityPreset

UNMEASURED = "first run on this model: measuring"


def label(method: Method) -> str:
    """A short label of a resolved method: its schedule, and knobs that differ from the default."""
    rounds, words = getattr(method, "rounds", None), [method.name]
    if isinstance(method, RowSchedule) and (method.k_v or 1) > 1:
        words.append(f"k_v={method.k_v} rounds={rounds} incremental={method.incremental}")
    elif rounds is not None:
        words.append(f"rounds={rounds}")
    words += [f"{f.name}={getattr(method, f.name)}" for f in fields(method)
              if f.default is not None and getattr(method, f.name) != f.default
              and f.name not in ("k_v", "rounds", "incremental")]
    words += [f"{name}={value}" for name in ("fewer", "window", "cells", "budget")
              if (value := vars(method).get(name))
              and not (name == "fewer" and value in USUAL_FEWER)]
    return " ".join(words)


def knobs_of(method: Method, heads: bool = False) -> str:
    """Every knob that has a value, except drafter "heads" if there are no draft heads."""
    known = {f.name: getattr(method, f.name) for f in fields(method)}
    unused = {"drafter"} if known.get("drafter") == "heads" and not heads else set()
    unused |= {"guess"} if known.get("guess") == "auto" else set()
    return ", ".join(f"{name} {value}" for name, value in known.items()
                     if value is not None and name not in unused)


def plan_text(method: Method, plan: Plan, where: str) -> str:
    """Lines with the method, its knobs and the passes of a run."""
    lines = [f"{method.name} on {where}: {knobs_of(method) or 'no knobs'}"]
    if plan.passes is None:
        about = f"usually about {plan.prior_passes}, " if plan.prior_passes else ""
        repeats = ", if near ties are checked again" if plan.passes_max > plan.ar_passes else ""
        lines.append(f"{about}at most {plan.passes_max} passes{repeats}, how many depends on the "
                     f"picture; AR takes {plan.ar_passes}")
    else:
        lines.append(f"{plan.passes} passes; AR takes {plan.ar_passes}, "
                     f"{plan.step_acceleration:.2f} times as many")
    if source := prior_text(plan):
        lines.append(source)
    if plan.tuning:
        lines.append(plan.tuning)
    if plan.paper_passes and plan.paper_ar_passes:
        lines.append(f"the paper counts {plan.paper_passes} against {plan.paper_ar_passes}")
    return "\n".join(lines)


def prior_text(plan: Plan) -> str:
    """Where the plan's prior passes come from; empty for postcard's own, or if there are none."""
    if plan.stand_in:
        return (f"{UNMEASURED}; until it has drawn, passes are what a stand-in for models of this "
                "size takes")
    if plan.prior_pictures >= ENOUGH:
        return f"passes measured over {plan.prior_pictures} pictures on this machine"
    if plan.prior_pictures:
        return f"passes measured so far: {plan.prior_pictures} of {ENOUGH} pictures"
    return ""


def known_text(known: KnownMethod) -> str:
    """A line: what a method takes with a backbone on this machine."""
    drafts = ("" if known.acceptance is None or not known.heads
              else f", {percent(known.acceptance)} of drafts accepted")
    return (f"{known.method}: {known.passes:.0f} passes and {duration(known.seconds)} a picture"
            f"{drafts} (drawn here: {known.pictures})")


def known_lines(backbone: Backbone) -> list[str]:
    """A line for each method that drew with this backbone, or that it has drawn nothing yet."""
    known = [known_text(each) for each in known_of(backbone)]
    return known or [UNMEASURED] * (not is_postcard(backbone))


def accepted(acceptance: Mapping[str, float]) -> str:
    """How many drafts the model kept, by stage and round of a run's statistics."""
    shares = ", ".join(f"{key} {percent(share)}" for key, share in acceptance.items())
    return f"drafts accepted by stage/round: {shares}"


def percent(share: float) -> str:
    """Rounded down, so that "100%" means all."""
    return f"{math.floor(share * 100)}%"


# Knobs that are chosen for the machine, and the shares of AR's passes that Balanced takes.
MACHINES = re.compile(r" (window|cells|budget)=\S+| fewer=[68](\.0)?(?= |$)")


def speed_of(name: str) -> QualityPreset | None:
    """The speed whose runs have this label; None if none has."""
    name = MACHINES.sub("", name)
    return next((speed for speed in SPEEDS.values()
                 if label(speed.method.resolve(Preset())) == name), None)
