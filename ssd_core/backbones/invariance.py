"""Measures whether a cell's numbers depend on the width of the pass on this machine.

Matrix libraries choose a kernel by the size of a matrix, and each kernel adds in its own order. If
passes of any width give the same bits (batch invariance), a window of cells chooses exactly the
tokens of plain autoregression. Otherwise rounding may decide between tokens whose logits differ by
less than the difference measured here on the model's own weights.
"""

from __future__ import annotations

import torch

from .base import Backbone

LAYERS = 2  # of the decoder that are probed, from the first one on
PREFIX, CELLS = 41, 48  # slots before the cells, a length that suits no kernel; cells
WIDTHS = (1, 3, 8, 16)  # beside all cells at once
PICTURES = 3  # size of a batch whose first picture is compared with the same picture alone


@torch.inference_mode()
def rounding(backbone: Backbone) -> float:
    """Root-mean-square difference of logits between passes of different width; 0: same bits.

    Extrapolated from the first layers to the whole depth; takes about 50 ms for a small model.
    """
    depth = backbone.decoder.shape.layers
    probe = Probe(backbone, min(LAYERS, depth))
    reference = probe.logits(CELLS)
    results = [probe.logits(width) for width in WIDTHS]
    results += [probe.logits(width, PICTURES)[::PICTURES] for width in (3, CELLS)]
    return max((logits - reference).double().square().mean().sqrt().item()
               for logits in results) * depth / probe.layers


class Probe:
    """Feeds the same tokens in passes of any width through the decoder's first `layers` layers."""

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
        decoder, angles, out = self.backbone.decoder, self.backbone.angles, []
        cache = decoder.new_cache(len(x), x.shape[1], self.layers)
        for start, stop in self._spans(width):
            cache.seek(start, stop - start)
            here = None if angles is None else angles[start:stop]
            hidden = decoder(x[:, start:stop], here, cache, self.layers)
            out.append(self.backbone.logits(hidden))
        return torch.cat(out[1:], dim=1)

    def _spans(self, width: int) -> list[tuple[int, int]]:
        stop = self.prefix + self.cells
        starts = range(self.prefix, stop, width)
        return [(0, self.prefix), *((at, min(at + width, stop)) for at in starts)]
