"""Reports: of a run, and for a bug report."""

from __future__ import annotations

import sys

import comfy.model_management as mm
import torch

from ..ssd_core.engine.own_runs import known_of, name_of
from ..ssd_core.output import labels
from ..ssd_core.runs.diagnostics import registry
from ..ssd_core.runs.diagnostics import report as doctors_report
from ..ssd_core.weights.model_size import stored_dtype
from ..ssd_core.weights.registry import named
from . import errors, folders, running


def sampled(run: running.NodeRun) -> str:
    """Lines about one finished run."""
    request, stats = run.request, run.result.measured
    module, drawing = request.backbone, request.drawing
    lines = [
        f"{request.label} on {module.name}, {mm.get_torch_device()}, {stored_dtype(module)}",
        f"{stats['passes']} passes (AR takes {stats['ar_passes']}, "
        f"{stats['step_acceleration']:.2f} times as many), {stats['seconds']['total']:.2f} s "
        f"without pixels, {stats['tokens_per_second']:.0f} tokens/s",
        *(labels.known_text(each) for each in known_of(request.sized)
          if each.method == name_of(request.method)),
        f"knobs: {labels.knobs_of(request.method, run.heads is not None) or 'none'}",
        labels.accepted(stats["acceptance"]) if stats["acceptance"] else None,
        f"heads: {named(run.heads.path)}" if run.heads else None,
        f"seeds: {', '.join(map(str, request.seeds))}",
        "drawn in an earlier run, not again" if run.earlier else None,
        *run.word_notes,
        f"kept: the top {drawing.keep_rows} rows, token for token" if drawing.keep_rows else None,
        redrawn(drawing.keep_mask) if drawing.edit is None else None,
        f"guarantee: {run.result.guarantee_text}",
        *(f"note: {note}" for note in run.notes),
        *(f"note: {note}" for note in (run.result.edit.notes if run.result.edit else ())),
        f"problem: {run.problem}" if run.problem else None]
    return "\n".join(filter(None, lines))


def redrawn(keep_mask: torch.Tensor | None) -> str | None:
    """A line about a mask."""
    if keep_mask is None:
        return None
    free = ~keep_mask.view(-1, *keep_mask.shape[-2:])
    counts = " and ".join(dict.fromkeys(str(int(mask.sum())) for mask in free))
    return f"redrawn: {counts} of {free[0].numel()} cells; all else is kept, token for token"


def doctor() -> str:
    """Versions, device, attention, found models, last error."""
    device = mm.get_torch_device()
    memory = mm.get_free_memory(device), mm.get_total_memory(device)
    last = errors.last_error[0] if errors.last_error else None
    return doctors_report(registry(folders.registry()), last, f"ComfyUI {comfyui_version()}",
                          mm.get_torch_device_name(device), memory, device)


def comfyui_version() -> str:
    module = sys.modules.get("comfyui_version")
    return getattr(module, "__version__", "unknown")
