"""Models of the template of large ones, and what writes a tiny checkpoint of each."""

from __future__ import annotations

from pathlib import Path

from . import tiny_checkpoints, tiny_image_models
from .tiny_glm_image import glm_image
from .tiny_glm_pipeline import glm_pipeline
from .tiny_simplear import simplear


def whole_glm_image(folder: Path) -> Path:
    return glm_pipeline(glm_image(folder))


LARGE_MODELS = "12_large_models"  # the template
TINY_OF_MODEL = {
    "Janus-Pro-1B-hf": tiny_image_models.janus_port,
    "SimpleAR-0.5B-RL": simplear,
    "Lumina-mGPT-2.0": tiny_checkpoints.lumina2,
    "Emu3.5-Image": tiny_checkpoints.emu3_5,
    "GLM-Image": whole_glm_image,
}
