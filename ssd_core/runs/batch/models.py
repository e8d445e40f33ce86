"""The models of a worker, by names and paths, because it may run on another machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...weights.load import LoadOptions, load_backbone, load_heads
from .task import LoadedModels


@dataclass(frozen=True)
class ModelSpec(LoadOptions):
    """A backbone and its heads, as `load_backbone` and `load_heads` take them.

    size: (width, height) in px; None: the backbone's own. prompts: folder on each machine for the
    features that a text model computes of prompts. Paths of models must lead to the same files on
    every machine; a worker with other files is refused (ray_workers.py).
    """

    backbone: str
    heads: str | None = None
    size: tuple[int, int] | None = None
    prompts: str | None = None

    def load(self) -> LoadedModels:
        backbone = load_backbone(self.backbone, **self.options).resized(self.size)
        if self.prompts:
            backbone.cache_prompts(Path(self.prompts))
        return LoadedModels(backbone, load_heads(self.heads, backbone) if self.heads else None)
