"""The diffusion model that paints GLM-Image's pixels, under ComfyUI's memory management."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import comfy.model_management as mm
from torch import nn

from ..ssd_core.weights.diffusion import DiffusionPainter, load_painter, pipeline_folder
from ..ssd_core.weights.find import PIPELINE
from ..ssd_core.weights.load import pick_dtype
from . import weights


@dataclass(eq=False)
class LoadedPainter(weights.LoadedWeights):
    """`painter` paints with the parts that `patcher` moves."""

    painter: DiffusionPainter


def painter(path: Path) -> LoadedPainter:
    """Load the diffusion model that paints GLM-Image's pixels; path: a file of its pipeline."""
    index = pipeline_folder(path) / PIPELINE

    def make() -> LoadedPainter:
        dtype = pick_dtype("auto", mm.get_torch_device(), small=False)
        made = load_painter(index.parent, str(mm.unet_offload_device()), dtype)
        parts = nn.ModuleDict({name: part for name, part in made.pipeline.components.items()
                               if isinstance(part, nn.Module)})
        return LoadedPainter(index, parts, weights.patcher_of(parts), made)

    return weights.loaded_once(LoadedPainter, (index,), make, (painter, (path,)))
