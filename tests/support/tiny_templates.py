"""Templates of models whose real weights are not here; what writes a tiny checkpoint of each."""

from __future__ import annotations

from pathlib import Path

from . import tiny_checkpoints, tiny_image_models
from .tiny_glm_image import glm_image
from .tiny_glm_pipeline import glm_pipeline
from .tiny_simplear import simplear


def whole_glm_image(folder: Path) -> Path:
    return glm_pipeline(glm_image(folder))


TINY_OF_TEMPLATE = {
    "6_janus_pro": tiny_image_models.janus_port,
    "13_simplear": simplear,
    "14_lumina_mgpt_2": tiny_checkpoints.lumina2,
    "15_emu3_5": tiny_checkpoints.emu3_5,
    "16_glm_image": whole_glm_image,
    "17_control": tiny_checkpoints.lumina2,
}
