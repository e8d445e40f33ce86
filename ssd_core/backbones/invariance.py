"""Measures whether a cell's numbers depend on the width of the pass on this machine.

Matrix libraries choose a kernel by the size of a matrix, and each kernel adds in its own order. If
passes of any width give the same bits (batch invariance), a window of cells chooses exactly the
tokens of plain autoregression. Otherwise rounding may decide between tokens whose logits differ by
less than the difference measured here on the model's own weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch

from ..model.kv_cache import KVCache
from .base import Backbone

LAYERS = 2  # of the decoder that are probed, from the first one on
PREFIX = 41  # slots before the cells, a length that suits no kernel
PICTURES = 3  # size of a batch whose first picture is compared with the same picture alone
Work = Callable[[], torch.Tensor]


@dataclass(frozen=True)
class Widths:
    """The passes that are compared. each: cells of a pass, beside all `cells` at once.

    keys: a pass reads a multiple of this many slots, and its own are a tensor, as in runs on a
    card; 0: plain slices, as on a CPU.
    """

    cells: int = 48
    each: tuple[int, ...] = (1, 3, 8, 16)
    keys: int = 0


@torch.inference_mode()
def rounding(backbone: Backbone, widths: Widths = Widths(),
             call: Callable[[Work], torch.Tensor] = lambda work: work()) -> float:
    """Root-mean-square difference of logits between passes of different width; 0: same bits.

    Extrapolated from the first layers to the whole depth; takes about 50 ms for a small model.
    call: computes the passes that are compared with those of all cells, for example by graphs.
    """
    depth = backbone.decoder.shape.layers
    probe = Probe(backbone, min(LAYERS, depth), widths)
    reference = probe.logits(probe.cells)
    results = [call(partial(probe.logits, width)) for width in widths.each]
    results += [call(partial(probe.logits, width, PICTURES))[::PICTURES]
                for width in (widths.each[1], probe.cells)]
    return max((logits - reference).double().square().mean().sqrt().item()
               for logits in results) * depth / probe.layers


class Probe:
    """Feeds the same tokens in passes of any width through the decoder's first `layers` layers."""

    def __init__(self, backbone: Backbone, layers: int, widths: Widths) -> None:
        self.backbone, self.layers, self.keys = backbone, layers, widths.keys
        generator = torch.Generator().manual_seed(0)
        room = widths.cells + PREFIX if backbone.angles is None else len(backbone.angles)
        self.cells = min(widths.cells, room // 2)
        self.prefix = min(PREFIX, room - self.cells)
        shape = (2, self.prefix + self.cells)  # both branches of guidance
        self.tokens = torch.randint(backbone.codes, shape, generator=generator).to(backbone.device)

    def logits(self, width: int, pictures: int = 1) -> torch.Tensor:
        """Logits [2 * pictures, cells, codes] of the cells, fed `width` at a time."""
        x = self.backbone.embed(self.tokens).repeat_interleave(pictures, 0)
        decoder, angles, out = self.backbone.decoder, self.backbone.angles, []
        slots = -(-x.shape[1] // self.keys) * self.keys if self.keys else x.shape[1]
        cache = decoder.new_cache(len(x), slots, self.layers)
        for start, stop in self._spans(width):
            self._seek(cache, start, stop)
            here = None if angles is None else angles[start:stop]
            hidden = decoder(x[:, start:stop], here, cache, self.layers)
            out.append(self.backbone.logits(hidden))
        return torch.cat(out[1:], dim=1)

    def _seek(self, cache: KVCache, start: int, stop: int) -> None:
        if not self.keys:
            cache.seek(start, stop - start)
            return
        slots = torch.arange(start, stop, device=cache.keys.device)
        cache.seek_each(slots.expand(cache.keys.shape[1], -1), -(-stop // self.keys) * self.keys)

    def _spans(self, width: int) -> list[tuple[int, int]]:
        stop = self.prefix + self.cells
        starts = range(self.prefix, stop, width)
        return [(0, self.prefix), *((at, min(at + width, stop)) for at in starts)]
