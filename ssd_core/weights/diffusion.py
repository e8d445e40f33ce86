"""Pixels of GLM-Image: the diffusion model of its pipeline paints them from the codes.

Runs `GlmImagePipeline` of the package diffusers, which is needed for this step alone. Without its
`vision_language_encoder`, so only the diffusion model is in memory. Knows no decoding method.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from ..backbones.reading.tensor_files import refuse_adapter_files
from ..errors import SSDError, first_line
from ..files import refuse_partial, user_path
from .find import PIPELINE

Source = tuple[torch.Tensor, torch.Tensor]  # pixels [H, W, 3] in 0..1, codes [r, c]
CELL = 32  # px
STEPS, GUIDANCE = 30, 1.5  # of the published examples
PARTS = ("transformer", "text_encoder", "tokenizer", "vae", "scheduler")
INSTALL = "pip install diffusers"


class DiffusionPainter:
    """A pipeline without its autoregressive part, on a device."""

    def __init__(self, pipeline: Any) -> None:
        self.pipeline = pipeline
        pipeline.set_progress_bar_config(disable=True)

    def paint(self, tokens: torch.Tensor, prompts: Sequence[str], seed: int = 0,
              steps: int = STEPS, guidance: float = GUIDANCE,
              on_step: Callable[[int, int], None] = lambda done, total: None,
              sources: Sequence[Source] = ()) -> torch.Tensor:
        """Codes [B, R, C] and their prompts -> pictures [B, H, W, 3] float32 in 0..1.

        Picture i starts from the noise of seed + i, so it is the same in any batch. on_step is
        called after each step with the steps that are done and all there are; an exception from it
        stops the painting. sources: those that all codes were drawn from.
        """
        if len(prompts) != len(tokens):
            raise SSDError(f"{len(prompts)} prompts for {len(tokens)} pictures: give one for each")
        pictures, total = [], steps * len(tokens)
        for number, (codes, prompt) in enumerate(zip(tokens, prompts, strict=True)):
            def step(pipeline: Any, index: int, time: Any, state: dict,
                     before: int = number * steps) -> dict:
                on_step(before + index + 1, total)
                return {}

            generator = torch.Generator().manual_seed((seed + number) % (1 << 64))
            pictures.append(self._one(codes, prompt, steps, guidance, generator, step, sources))
        return torch.cat(pictures)

    def _one(self, codes: torch.Tensor, prompt: str, steps: int, guidance: float,
             generator: torch.Generator, step: Callable[..., dict],
             sources: Sequence[Source]) -> torch.Tensor:
        """The picture [1, H, W, 3] of codes [R, C]."""
        rows, columns = codes.shape
        painted = self.pipeline(
            prompt=[prompt], prior_token_ids=doubled(codes).to(self.pipeline.device),
            height=CELL * rows, width=CELL * columns, num_inference_steps=steps,
            guidance_scale=guidance, generator=generator, callback_on_step_end=step,
            output_type="np", **self._conditions(sources))
        return torch.from_numpy(painted.images).float()

    def _conditions(self, sources: Sequence[Source]) -> dict:
        """The pipeline's arguments for source pictures."""
        if not sources:
            return {}
        place = self.pipeline.device
        codes = torch.cat([doubled(codes)[0] for _, codes in sources]).to(place)
        grids = torch.tensor([[1, 2 * len(codes), 2 * codes.shape[1]] for _, codes in sources])
        return {"image": [[fitted(pixels, codes) for pixels, codes in sources]],
                "prior_token_image_ids": [codes], "source_image_grid_thw": [grids.to(place)]}


def fitted(pixels: torch.Tensor, codes: torch.Tensor) -> Image.Image:
    """A source picture [H, W, 3] at the size that its codes [r, c] stand for."""
    picture = Image.fromarray((pixels[..., :3] * 255).round().clamp(0, 255).byte().cpu().numpy())
    size = (CELL * codes.shape[1], CELL * codes.shape[0])
    return picture if picture.size == size else picture.resize(size, Image.Resampling.BICUBIC)


def doubled(codes: torch.Tensor) -> torch.Tensor:
    """Codes [R, C] -> [1, 4 * R * C]: twice as many rows and columns, as the painter reads them."""
    return codes.long().repeat_interleave(2, 0).repeat_interleave(2, 1).flatten()[None]


def load_painter(folder: str | Path, device: str = "cpu",
                 dtype: torch.dtype = torch.bfloat16) -> DiffusionPainter:
    """Load the painter from the folder of GLM-Image's pipeline, or a file or folder in it.

    Raises SSDError if diffusers is not installed, or if a part of the pipeline is missing.
    """
    pipeline_class, root = imported(), pipeline_folder(user_path(folder))
    refuse_adapter_files(root, *(root / part for part in PARTS))
    for path in (file for part in PARTS for file in (root / part).iterdir() if file.is_file()):
        refuse_partial(path)
    try:
        pipeline = pipeline_class.from_pretrained(
            root, vision_language_encoder=None, processor=None, torch_dtype=dtype,
            use_safetensors=True, local_files_only=True)
    except (OSError, ValueError) as error:
        raise SSDError(f"{root}: diffusers cannot read it ({first_line(error)}): get the complete "
                       "model") from error
    return DiffusionPainter(pipeline.to(device))


def imported() -> Any:
    """diffusers' class, imported only when it is needed."""
    try:
        from diffusers import GlmImagePipeline
    except ImportError as error:
        raise SSDError(f"the pixels of GLM-Image need diffusers with GlmImagePipeline: {INSTALL}"
                       ) from error
    return GlmImagePipeline


def pipeline_folder(path: Path) -> Path:
    """The pipeline's folder, at or above a path; SSDError names what it lacks."""
    root = next((each for each in (path, *path.parents[:2]) if (each / PIPELINE).is_file()), None)
    if root is None:
        raise SSDError(f"{path}: no {PIPELINE} here or above it: the pixels need the whole folder "
                       f"of zai-org/GLM-Image, with {', '.join(PARTS)}")
    if missing := [part for part in PARTS if not (root / part).is_dir()]:
        raise SSDError(f"{root}: {', '.join(missing)} of zai-org/GLM-Image is missing: get the "
                       "complete model")
    return root
