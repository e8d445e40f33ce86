"""Tokens as pixels: by the picture codec, or painted by GLM-Image's diffusion model."""

from __future__ import annotations

import comfy.model_management as mm
import torch
from comfy.utils import ProgressBar

from ..ssd_core.backbones.glm_image import GlmImage
from ..ssd_core.errors import SSDError
from . import painters, running, weights
from .sources import painted_from
from .types import LoadedModel, TokenPictures

ROOM = 3 << 30  # bytes besides the weights for a picture of 1024 x 1024 px; not measured


def images_of(model: LoadedModel, tokens: TokenPictures, prompt: str, seed: int, steps: int,
              guidance: float, source: torch.Tensor | None) -> torch.Tensor:
    """IMAGE [B, H, W, 3] of tokens."""
    if isinstance(model.module, GlmImage):
        return painted(model, tokens, prompt, seed, steps, guidance, source)
    codes, module = tokens.for_backbone(model.module), model.module.resized(tokens.size_of())
    with weights.codec_resident(model.backbone, running.pixel_room(module, codes)):
        return running.images_of(module, codes)


def painted(model: LoadedModel, tokens: TokenPictures, prompt: str, seed: int, steps: int,
            guidance: float, source: torch.Tensor | None) -> torch.Tensor:
    """IMAGE [B, H, W, 3] by the diffusion model; the memory of the rest is freed first."""
    codes, drawn_from = tokens.for_backbone(model.module), painted_from(tokens, source)
    words = prompts_of(tokens, prompt)
    painter = painters.painter(model.backbone.path)
    bar = ProgressBar(steps * len(codes))

    def on_step(done: int, total: int) -> None:
        bar.update_absolute(done, total)
        mm.throw_exception_if_processing_interrupted()

    room = ROOM * codes[0].numel() // 32**2
    with weights.resident([painter], room, "draw a smaller size"):
        images = painter.painter.paint(codes, words, seed, steps, guidance, on_step, drawn_from)
    return images.to(torch.float32).cpu()


def prompts_of(tokens: TokenPictures, prompt: str) -> list[str]:
    """The prompt of each picture: the typed one, else those in the recipes."""
    if prompt.strip():
        return [prompt] * len(tokens.tokens)
    if not tokens.recipes:
        raise SSDError("the prompt is empty and the tokens do not name theirs: type what the "
                       "pictures show")
    return [recipe.get("prompt_expanded") or recipe["prompt"] for recipe in tokens.recipes]
