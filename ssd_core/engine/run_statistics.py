"""The statistics of a finished run, from the counters of its state."""

from __future__ import annotations

from .plan import Plan
from .state import DecodeState


def statistics(state: DecodeState, plan: Plan) -> dict:
    """The statistics that docs/contract.md lists, from the counters of a finished run."""
    each = state.passes - state.stats.finished_early
    stages = state.clock.seconds
    seconds = {"total": sum(stages.values()), **stages}
    mask = state.region.mask
    tokens = int(mask.sum()) * state.pictures // len(mask)
    return {"passes": state.passes, "ar_passes": plan.ar_passes,
            "step_acceleration": plan.ar_passes / state.passes, "seconds": seconds,
            "tokens_per_second": tokens / max(seconds["total"], 1e-9),
            "acceptance": state.stats.acceptance("/"),
            "acceptance_by_offset": state.stats.acceptance("+"),
            "passes_each": each.tolist(),
            "converged_rows": state.stats.converged_rows.tolist(),
            "drafter_passes": state.stats.drafter_passes,
            "captured": state.run.captured, "cache_bytes": state.cache.nbytes}
