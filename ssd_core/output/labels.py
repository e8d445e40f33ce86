"""Methods and plans as text, the same in every host. Knows no host."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields

from ..engine.methods import Method
from ..engine.methods.ssd import RowSchedule
from ..engine.plan import Plan


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
    words += [f"{name}={value}" for name in ("window", "cells", "budget")
              if (value := vars(method).get(name))]
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
    if plan.tuning:
        lines.append(plan.tuning)
    if plan.paper_passes and plan.paper_ar_passes:
        lines.append(f"the paper counts {plan.paper_passes} against {plan.paper_ar_passes}")
    return "\n".join(lines)


def accepted(acceptance: Mapping[str, float]) -> str:
    """How many drafts the model kept, by stage and round of a run's statistics."""
    shares = ", ".join(f"{key} {percent(share)}" for key, share in acceptance.items())
    return f"drafts accepted by stage/round: {shares}"


def percent(share: float) -> str:
    """Rounded down, so that "100%" means all."""
    return f"{math.floor(share * 100)}%"
