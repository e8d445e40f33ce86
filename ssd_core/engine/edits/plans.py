"""The plan of an edit by words, and the statistics of one that draws nothing."""

from __future__ import annotations

from dataclasses import replace

from ..plan import Plan
from .words import Revision


def edited_plan(plan: Plan, edit: Revision) -> Plan:
    """The plan of an edit by words: one more pass, over the old picture; none without a change."""
    if all(edit.same):
        return replace(plan, passes=0, passes_max=0, paper_passes=None)
    passes = None if plan.passes is None else plan.passes + 1
    return replace(plan, passes=passes, passes_max=plan.passes_max + 1, paper_passes=None)


def nothing_drawn(plan: Plan, pictures: int) -> dict:
    """The statistics of a run without a pass."""
    return {"passes": 0, "ar_passes": plan.ar_passes, "step_acceleration": float(plan.ar_passes),
            "seconds": {"total": 0.0, "prefill": 0.0, "draft": 0.0, "verify": 0.0, "commit": 0.0},
            "tokens_per_second": 0.0, "acceptance": {}, "acceptance_by_offset": {},
            "passes_each": [0] * pictures, "converged_rows": [0] * pictures, "drafter_passes": 0,
            "captured": 0, "cache_bytes": 0, "threads": []}
