"""IBQ, the codec of Emu3.5: taming's VQGAN, whose encoder chooses codes by inner product.

Knows no file, device or backbone. Weights and pixels are float32.
"""

from __future__ import annotations

import torch

from .files import Shapes, matching_keys, measured
from .vqgan import VQGAN, layout_of

CELLS_AT_ONCE = 256  # cells whose products with all codes are in memory together


class IBQ(VQGAN):
    """Tokens [B, R, C] to pixels and back, for grids of any size."""

    def encode(self, pictures: torch.Tensor) -> torch.Tensor:
        latents = self.to_code(self.encoder(pictures.float())).permute(0, 2, 3, 1)
        likeliest = [(part @ self.codebook.T).argmax(-1)
                     for part in latents.flatten(0, -2).split(CELLS_AT_ONCE)]
        return torch.cat(likeliest).view(latents.shape[:-1])


def ibq_of(shapes: Shapes) -> tuple[IBQ, dict[str, str]]:
    """The codec of a file on the meta device, and {own name: file key} for `load_weights`.

    Raises SSDError if a tensor is missing, unknown or of another shape.
    """
    layout = layout_of(shapes)
    with torch.device("meta"):
        codec = IBQ(measured(shapes, layout))
    return codec, matching_keys(codec, layout, shapes)
