"""Tokens as pixels: by the picture codec, or painted by GLM-Image's diffusion model."""

from __future__ import annotations

import comfy.model_management as mm
import torch
from comfy.utils import ProgressBar
from comfy_api.v0_0_2 import io

from ..ssd_core.backbones.glm_image import GlmImage
from ..ssd_core.errors import SSDError
from ..ssd_core.weights.diffusion import GUIDANCE, STEPS
from . import painters, running, weights
from .sources import painted_from
from .types import TokenPictures

ROOM = 3 << 30  # bytes besides the weights for a picture of 1024 x 1024 px; not measured
GLM = "Only for GLM-Image: "


def inputs() -> list[io.Input]:
    """What the diffusion model of GLM-Image needs."""
    return [
        io.Image.Input("source", optional=True,
                       tooltip=f"{GLM}the source pictures that the tokens were drawn from, as SSD "
                               "Sampler had them."),
        io.String.Input("prompt", default="", multiline=True, optional=True, advanced=True,
                        tooltip=f"{GLM}what the pictures show. Empty = the prompts that the "
                                "tokens were drawn from."),
        io.Int.Input("seed", default=0, min=0, max=(1 << 64) - 1, control_after_generate=True,
                     optional=True, advanced=True, tooltip=f"{GLM}the seed of the painting."),
        io.Int.Input("steps", default=STEPS, min=1, max=200, optional=True, advanced=True,
                     tooltip=f"{GLM}steps of the diffusion model; more take longer."),
        io.Float.Input("guidance", default=GUIDANCE, min=1.0, max=20.0, step=0.1, optional=True,
                       advanced=True,
                       tooltip=f"{GLM}guidance of the diffusion model; 1 switches it off and "
                               "halves the work.")]


def images_of(model: weights.LoadedModel, tokens: TokenPictures, prompt: str, seed: int, steps: int,
              guidance: float, source: torch.Tensor | None) -> torch.Tensor:
    """IMAGE [B, H, W, 3] of tokens."""
    if isinstance(model.module, GlmImage):
        return painted(model, tokens, prompt, seed, steps, guidance, source)
    codes, module = tokens.for_backbone(model.module), model.module.resized(tokens.size_of())
    with weights.codec_resident(model.backbone, running.pixel_room(module, codes)):
        return running.images_of(module, codes)


def painted(model: weights.LoadedModel, tokens: TokenPictures, prompt: str, seed: int, steps: int,
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
