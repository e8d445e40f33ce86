"""Texts that nodes put out: what a run took, and what a bug report needs."""

from __future__ import annotations

import platform
import sys

from ..ssd_core import __version__, labels
from . import errors, folders, running
from .jobs import Job


def sampled(job: Job, outcome: running.Outcome, note: str | None = None) -> str:
    """Lines about one run."""
    stats = outcome.finished.stats
    module = job.backbone
    words = ", ".join(job.unknown_words)
    seeds = job.sampling.seeds(job.pictures)
    accepted = ", ".join(f"{key} {mean:.2f}" for key, mean in stats["acceptance"].items())
    lines = [
        f"{job.label} on {module.name}, {module.device}, "
        f"{str(module.dtype).removeprefix('torch.')}",
        f"{stats['passes']} passes (AR takes {stats['ar_passes']}, "
        f"{stats['step_acceleration']:.2f} times as many), {stats['seconds']['total']:.2f} s "
        f"without pixels, {stats['tokens_per_second']:.0f} tokens/s",
        f"knobs: {labels.knobs_of(job.method) or 'none'}",
        f"accepted by stage/round: {accepted}" if accepted else None,
        f"seeds: {', '.join(map(str, seeds))}",
        f"kept: the top {job.keep_rows} rows, token for token" if job.keep_rows else None,
        f"verdict: {labels.claim(job.method)}",
        f"note: {note}" if note else None,
        f"note: {module.name} does not know, and ignores: {words}" if words else None,
        f"problem: {outcome.problem}" if outcome.problem else None]
    return "\n".join(filter(None, lines))


def stamp(outcome: running.Outcome, share: float | None) -> list[str]:
    """Three short lines below a racer's picture."""
    job = outcome.job
    return labels.stamp(job.label, job.method, outcome.finished.stats, share)


def doctor() -> str:
    """Versions, device, attention, what was found where, the last error."""
    import comfy.model_management as mm
    import torch

    device = mm.get_torch_device()
    flash, efficient = torch.backends.cuda.flash_sdp_enabled(), (
        torch.backends.cuda.mem_efficient_sdp_enabled())
    lines = [
        f"ssd-decoding {__version__}, ComfyUI {comfyui_version()}, torch {torch.__version__}, "
        f"Python {platform.python_version()}, {platform.system()} {platform.machine()}",
        f"device: {mm.get_torch_device_name(device)}, "
        f"{mm.get_free_memory(device) / 2**30:.1f} GiB free of "
        f"{mm.get_total_memory(device) / 2**30:.1f}",
        f"attention: torch scaled_dot_product_attention (flash {flash}, memory-efficient "
        f"{efficient} where the device has them)",
        f"backbones in {folders.places(folders.BACKBONE_FOLDER)}:",
        *(f"  {name}" for name in folders.backbones() or ["none; postcard is bundled"]),
        *(f"  {line}" for line in folders.unread()),
        f"heads in {folders.places(folders.HEADS_FOLDER)}:",
        *(f"  {name}" for name in folders.heads_files() or ["none; postcard's are bundled"]),
        f"last error: {errors.last_error[0] if errors.last_error else 'none since the start'}"]
    return "\n".join(lines)


def comfyui_version() -> str:
    module = sys.modules.get("comfyui_version")
    return getattr(module, "__version__", "unknown")
