"""How a pass rounds on this machine: whether a cell's numbers depend on the width of the pass.

Matrix libraries choose kernels by the size of a matrix, and another kernel adds in another order.
Where passes of any width give the same bits (batch invariance), a window of cells chooses exactly
the tokens that plain autoregression would. Elsewhere the difference, measured here on the model's
own weights, tells how close two tokens must be for rounding to decide between them.
"""

from __future__ import annotations

import torch

from .base import Backbone

LAYERS = 2  # of the decoder that are probed, from the first one on
PREFIX, CELLS = 41, 48  # slots before the cells; not a multiple of anything that kernels like
WIDTHS = (1, 3, 8, 16)  # beside all cells at once
PICTURES = 3  # a batch, of which a picture is compared with the same one alone


@torch.inference_mode()
def rounding(backbone: Backbone) -> float:
    """How far a logit differs between passes of different width, root mean square; 0: same bits.

    Estimated for the whole depth from the first layers, in some 50 ms for a small model.
    """
    depth = backbone.decoder.shape.layers
    probe = Probe(backbone, min(LAYERS, depth))
    reference = probe.logits(CELLS)
    found = [probe.logits(width) for width in WIDTHS]
    found += [probe.logits(width, PICTURES)[::PICTURES] for width in (3, CELLS)]
    return max((logits - reference).double().square().mean().sqrt().item()
               for logits in found) * depth / probe.layers


class Probe:
    """The same tokens fed in passes of any width; `layers` of the decoder, from the first on."""

    def __init__(self, backbone: Backbone, layers: int) -> None:
        self.backbone, self.layers = backbone, layers
        generator = torch.Generator().manual_seed(0)
        room = CELLS + PREFIX if backbone.angles is None else len(backbone.angles)
        self.cells = min(CELLS, room // 2)
        self.prefix = min(PREFIX, room - self.cells)
        shape = (2, self.prefix + self.cells)  # both branches of guidance
        self.tokens = torch.randint(backbone.codes, shape, generator=generator).to(backbone.device)

    def logits(self, width: int, pictures: int = 1) -> torch.Tensor:
        """Logits [2 * pictures, cells, codes] of the cells, fed `width` at a time."""
        x = self.backbone.embed(self.tokens).repeat_interleave(pictures, 0)
        decoder, out = self.backbone.decoder, []
        cache = decoder.new_cache(len(x), x.shape[1], self.layers)
        for start, stop in self._spans(width):
            cache.seek(start, stop - start)
            hidden = decoder(x[:, start:stop], self._angles(start, stop), cache, self.layers)
            out.append(self.backbone.logits(hidden))
        return torch.cat(out[1:], dim=1)

    def _spans(self, width: int) -> list[tuple[int, int]]:
        stop = self.prefix + self.cells
        starts = range(self.prefix, stop, width)
        return [(0, self.prefix), *((at, min(at + width, stop)) for at in starts)]

    def _angles(self, start: int, stop: int) -> torch.Tensor | None:
        angles = self.backbone.angles
        return None if angles is None else angles[start:stop]
