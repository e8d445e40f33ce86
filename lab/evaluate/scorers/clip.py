"""CLIP score (Hessel et al., 2021): how well a picture fits its prompt, by transformers' CLIP.

The score is 100 times the cosine of the two embeddings, 0 if it is negative, as in most papers; the
original paper scales by 2.5. Prompts are cut to the 77 tokens of CLIP's text encoder; DPG-Bench's
are often longer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from ssd_core.errors import SSDError, first_line

from ..metrics import with_errors
from .gallery import Gallery, Scoring

WANTED = ("a folder of a CLIP in transformers' format with model.safetensors, such as "
          "openai/clip-vit-large-patch14 from Hugging Face")


def score(gallery: Gallery, scoring: Scoring) -> dict[str, float]:
    model, processor = load(scoring.required_weights(WANTED))
    model.to(scoring.device)
    limit, values = model.config.text_config.max_position_embeddings, []
    for pictures, prompts in gallery.batches(scoring.batch):
        inputs = processor(text=prompts, images=pictures, return_tensors="pt", padding=True,
                           truncation=True, max_length=limit)
        with torch.inference_mode():
            out = model(**inputs.to(scoring.device))
        cosines = (out.image_embeds * out.text_embeds).sum(-1)  # both have length 1
        values += (100 * cosines.clamp(min=0)).tolist()
    return with_errors({"clip_score": values})


def load(folder: Path) -> tuple[Any, Any]:
    """Model and processor from a local folder, safetensors only."""
    from transformers import CLIPModel, CLIPProcessor

    try:
        model = CLIPModel.from_pretrained(folder, local_files_only=True, use_safetensors=True)
        return model.eval(), CLIPProcessor.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, RuntimeError, KeyError, TypeError) as error:
        raise SSDError(f"weights {folder}: transformers cannot load them as CLIP "
                       f"({first_line(error, 120)}): give {WANTED}") from error
