"""The models of a worker, by names and paths, because it may run on another machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...backbones import BACKBONES
from ...files import ASSETS
from ...weights.load import HEADS_FILE, load_backbone, load_heads
from .task import LoadedModels


@dataclass(frozen=True)
class ModelSpec:
    """A backbone and its heads, as `load_backbone` and `load_heads` take them.

    size: (width, height) in px; None: the backbone's own. prompts: folder on each machine for the
    features that a text model computes of prompts. Paths of models must lead to the same files on
    every machine; a worker with other files is refused (ray_workers.py).
    """

    backbone: str
    heads: str | None = None
    device: str = "auto"
    dtype: str = "auto"
    offload: bool = False
    size: tuple[int, int] | None = None
    prompts: str | None = None

    def load(self) -> LoadedModels:
        backbone = load_backbone(self.backbone, self.device, self.dtype, self.offload)
        backbone = backbone.resized(self.size)
        if self.prompts:
            backbone.cache_prompts(Path(self.prompts))
        return LoadedModels(backbone, load_heads(self.heads, backbone) if self.heads else None)


def portable(name_or_path: str | Path) -> str:
    """The name of a bundled model, which is valid on every machine, else the absolute path.

    The file of a bundled backbone has no such name, because its folder has files of two dtypes.
    """
    path = Path(name_or_path).expanduser().absolute()
    if str(name_or_path) in BACKBONES or path.parent == ASSETS:
        return path.name
    bundled_heads = path.name == HEADS_FILE and path.parent.parent == ASSETS
    return path.parent.name if bundled_heads else str(path)
