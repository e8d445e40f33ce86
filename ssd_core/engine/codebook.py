"""How much codes resemble each other: distances in the codebook of the picture codec."""

from __future__ import annotations

from functools import cached_property

import torch

from ..backbones.base import Backbone


class Codebook:
    """The codes of a backbone, on the device of a run; tables are made when they are asked for."""

    def __init__(self, backbone: Backbone, device: torch.device) -> None:
        self.backbone, self.device = backbone, device
        self._similar: dict[int, torch.Tensor] = {}  # by the width of the table

    @cached_property
    def vectors(self) -> torch.Tensor:
        """[codes, d] float32."""
        vectors = self.backbone.picture_codec.code_vectors[: self.backbone.codes]
        return vectors.to(self.device, torch.float32)

    def distances(self, codes: torch.Tensor) -> torch.Tensor:
        """Euclidean distances [..., V] from codes [...] to all codes."""
        return torch.cdist(self.vectors[codes], self.vectors)

    def similar(self, codes: torch.Tensor, count: int) -> torch.Tensor:
        """[B, n, count] int64: codes [B, n] and the nearest others, by distance."""
        if (table := self._similar.get(count)) is None:
            codec, all_ = self.backbone.picture_codec, self.backbone.codes
            table = codec.similar_codes(all_, min(count, all_)).to(codes.device)
            self._similar[count] = table
        return table[codes].long()
