"""GLM Decode."""

from __future__ import annotations

import comfy.model_management as mm
import torch
from comfy.utils import ProgressBar
from comfy_api.v0_0_2 import io

from ..ssd_core.errors import SSDError
from ..ssd_core.weights.diffusion import GUIDANCE, STEPS
from . import inputs, painters, weights
from .errors import readable_errors
from .newer import search_aliases
from .sources import painted_from
from .types import CATEGORY, TokenPictures, TokensType

ROOM = 3 << 30  # bytes besides the weights for a picture of 1024 x 1024 px; not measured


class GlmDecode(io.ComfyNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="SSD_GlmDecode", display_name="GLM Decode (SSD)", category=CATEGORY,
            description="Paints the pixels of GLM-Image with the diffusion model of its download, "
                        "after the tokens were drawn. Needs the package diffusers. Frees the "
                        "memory of the backbone first.",
            inputs=[inputs.backbone(tooltip="The GLM-Image that drew the tokens; the diffusion "
                                            "model is found beside it."),
                    TokensType.Input("tokens", tooltip="From SSD Sampler."),
                    io.String.Input("prompt", default="", multiline=True,
                                    tooltip="What the pictures show. Empty = the prompts that the "
                                            "tokens were drawn from."),
                    *inputs.seed(),
                    io.Int.Input("steps", default=STEPS, min=1, max=200,
                                 tooltip="Steps of the diffusion model; more take longer."),
                    io.Float.Input("guidance", default=GUIDANCE, min=1.0, max=20.0, step=0.1,
                                   tooltip="Guidance of the diffusion model; 1 switches it off "
                                           "and halves the work."),
                    io.Image.Input("source", optional=True,
                                   tooltip="The source pictures that the tokens were drawn from, "
                                           "as SSD Sampler had them.")],
            outputs=[io.Image.Output(display_name="images",
                                     tooltip="One picture for each entry of the batch.")],
            **search_aliases("glm-image", "vae decode", "diffusion"))

    @classmethod
    @readable_errors
    def execute(cls, backbone: weights.LoadedBackbone, tokens: TokenPictures, prompt: str,
                seed: int, steps: int, guidance: float,
                source: torch.Tensor | None = None) -> io.NodeOutput:
        codes, drawn_from = tokens.for_backbone(backbone.module), painted_from(tokens, source)
        words = prompts_of(tokens, prompt)
        painter = painters.painter(backbone.path)
        bar = ProgressBar(steps * len(codes))

        def on_step(done: int, total: int) -> None:
            bar.update_absolute(done, total)
            mm.throw_exception_if_processing_interrupted()

        room = ROOM * codes[0].numel() // 32**2
        with weights.resident([painter], room, "draw a smaller size"):
            images = painter.painter.paint(codes, words, seed, steps, guidance, on_step,
                                           drawn_from)
        return io.NodeOutput(images.to(torch.float32).cpu())


def prompts_of(tokens: TokenPictures, prompt: str) -> list[str]:
    """The prompt of each picture: the typed one, else those in the recipes."""
    if prompt.strip():
        return [prompt] * len(tokens.tokens)
    if not tokens.recipes:
        raise SSDError("the prompt is empty and the tokens do not name theirs: type what the "
                       "pictures show")
    return [recipe.get("prompt_expanded") or recipe["prompt"] for recipe in tokens.recipes]
