"""Stage 3: pictures that the backbone draws itself, on which its draft heads then learn.

Plain AR with the backbone's own guidance, in batches; every batch is a file of its own, so an
interrupted run goes on where it stopped.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from tqdm import tqdm

from ..backbones.base import Backbone
from ..decode import generate
from ..errors import SSDError
from ..events import Finished
from ..files import read_safetensors, write_safetensors
from ..load import load_backbone
from ..methods import AR
from ..sampling import Sampling
from .data import fresh_caption

FORMAT = "ssd-pictures/1"
PROMPT_SEED = 2_000_000_000  # captions for self-distillation come from scenes of their own


@dataclass(frozen=True)
class SelfDistillRecipe:
    """Pictures first .. pictures-1, so that several processes or machines can share the work."""

    out: Path
    backbone: str = ""
    pictures: int = 5184
    first: int = 0
    batch: int = 64
    cfg: float = 0.0
    seed: int = 0
    device: str = "auto"
    dtype: str = "auto"


def draw(backbone: Backbone, captions: list[str], seed: int, cfg: float | None) -> torch.Tensor:
    """Tokens int16 [n, R, C] of one AR run."""
    for event in generate(backbone, captions, AR(), sampling=Sampling(seed=seed, cfg=cfg)):
        if isinstance(event, Finished):
            return event.tokens.short().cpu()
    raise SSDError("the run ended without a picture")


def train(recipe: SelfDistillRecipe) -> dict:
    """Draw `recipe.pictures` pictures into recipe.out/self-distill and say how long it took."""
    backbone = load_backbone(recipe.backbone or recipe.out, recipe.device, recipe.dtype)
    started, drawn = time.perf_counter(), 0
    for first in tqdm(range(recipe.first, recipe.pictures, recipe.batch), desc="self-distill"):
        path = recipe.out / "self-distill" / f"{first:06d}.safetensors"
        count = min(recipe.batch, recipe.pictures - first)
        if path.exists():
            continue
        captions = [fresh_caption(PROMPT_SEED + first + i, 0) for i in range(count)]
        tokens = draw(backbone, captions, recipe.seed + first, recipe.cfg or None)
        write_safetensors({"tokens": tokens}, path, {
            "format": FORMAT, "backbone_sha256": backbone.sha256,
            "captions": json.dumps(captions)})
        drawn += count
    return {"stage": "self-distill", "pictures": recipe.pictures, "drawn_now": drawn,
            "seconds": time.perf_counter() - started}


def load_pictures(folder: Path, backbone: Backbone) -> tuple[torch.Tensor, list[str]]:
    """Tokens int64 [n, R*C] and captions that `train` left in folder/self-distill."""
    files = sorted((Path(folder) / "self-distill").glob("*.safetensors"))
    if not files:
        raise SSDError(f"{folder}/self-distill: no pictures; run 'train self-distill' first")
    tokens, captions = [], []
    for path in files:
        tensors, metadata = read_safetensors(path, FORMAT)
        if metadata.get("backbone_sha256") != backbone.sha256:
            raise SSDError(f"{path}: drawn by another backbone; remove {path.parent} and run "
                           "'train self-distill' again")
        tokens.append(tensors["tokens"].flatten(1).long())
        captions += json.loads(metadata["captions"])
    return torch.cat(tokens), captions
