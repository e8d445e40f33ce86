"""Texts that nodes put out: what a run took, and what a bug report needs."""

from __future__ import annotations

import sys

import comfy.model_management as mm

from ..ssd_core.front import labels
from ..ssd_core.front.doctor import report as doctors_report
from ..ssd_core.front.doctor import shelf
from ..ssd_core.front.shelf import named
from ..ssd_core.weights.fit import stored_dtype
from . import errors, folders, running
from .jobs import Job


def sampled(job: Job, outcome: running.Outcome, share: float | None = None) -> str:
    """Lines about one run; share: of its tokens equal to AR's, None where AR did not run."""
    stats = outcome.finished.stats
    module = job.backbone
    seeds = job.sampling.seeds(job.pictures)
    accepted = ", ".join(f"{key} {mean:.2f}" for key, mean in stats["acceptance"].items())
    lines = [
        f"{job.label} on {module.name}, {mm.get_torch_device()}, {stored_dtype(module)}",
        f"{stats['passes']} passes (AR takes {stats['ar_passes']}, "
        f"{stats['step_acceleration']:.2f} times as many), {stats['seconds']['total']:.2f} s "
        f"without pixels, {stats['tokens_per_second']:.0f} tokens/s",
        f"knobs: {labels.knobs_of(job.method) or 'none'}",
        f"accepted by stage/round: {accepted}" if accepted else None,
        f"heads: {named(job.heads.path)}" if job.used_heads else None,
        f"seeds: {', '.join(map(str, seeds))}",
        f"kept: the top {job.keep_rows} rows, token for token" if job.keep_rows else None,
        f"verdict: {labels.claim(job.method, module.dtype, share)}",
        *(f"note: {note}" for note in job.notes),
        f"problem: {outcome.problem}" if outcome.problem else None]
    return "\n".join(filter(None, lines))


def stamp(outcome: running.Outcome, share: float | None) -> list[str]:
    """Three short lines below a racer's picture."""
    job = outcome.job
    return labels.stamp(job.label, job.method, job.backbone.dtype, outcome.finished.stats, share)


def doctor() -> str:
    """Versions, device, attention, what was found where, the last error."""
    device = mm.get_torch_device()
    memory = mm.get_free_memory(device), mm.get_total_memory(device)
    last = errors.last_error[0] if errors.last_error else None
    return doctors_report(shelf(folders.shelf()), last, f"ComfyUI {comfyui_version()}",
                          mm.get_torch_device_name(device), memory)


def comfyui_version() -> str:
    module = sys.modules.get("comfyui_version")
    return getattr(module, "__version__", "unknown")
