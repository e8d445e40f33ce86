"""Which models a worker loads, told by names and paths, because a worker may be another machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..files import ASSETS
from ..weights.load import load_backbone, load_heads
from .task import Loaded


@dataclass(frozen=True)
class Models:
    """A backbone and its heads, as `load_backbone` and `load_heads` take them.

    size: (width, height) in px; None is the backbone's own. Paths must lead to the same files on
    every machine; a worker that finds others is refused (ray_crew.py).
    """

    backbone: str
    heads: str | None = None
    device: str = "auto"
    dtype: str = "auto"
    offload: bool = False
    size: tuple[int, int] | None = None

    def load(self) -> Loaded:
        backbone = load_backbone(self.backbone, self.device, self.dtype, self.offload)
        backbone = backbone.resized(self.size)
        return Loaded(backbone, load_heads(self.heads, backbone) if self.heads else None)


def portable(path: Path) -> str:
    """What names these files on every machine: a bundled model's name, else the whole path."""
    inside = path.absolute()
    if inside.is_relative_to(ASSETS):
        return inside.relative_to(ASSETS).parts[0]
    return str(inside)
