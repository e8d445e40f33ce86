"""The custom link types and their values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from comfy_api.v0_0_2 import io
from PIL import Image

from ..ssd_core.backbones.base import Backbone
from ..ssd_core.errors import SSDError
from ..ssd_core.model.grid import size_of

# The menu's folders
LOAD, DRAW, EDIT, COMPARE, TOOLS = (
    f"SSD/{name}" for name in ("load", "draw", "edit", "compare", "tools"))
ModelType = io.Custom("SSD_MODEL")
MethodType = io.Custom("SSD_METHOD")
TokensType = io.Custom("SSD_TOKENS")
StatsType = io.Custom("SSD_STATS")
StartedType = io.Custom("SSD_STARTED")


def image_of(pictures: Iterable[np.ndarray | Image.Image]) -> torch.Tensor:
    """Convert uint8 pictures of one size to an IMAGE: float 0..1 [B, H, W, 3]."""
    return torch.from_numpy(np.stack([np.asarray(picture) for picture in pictures])).float() / 255


@dataclass(frozen=True)
class TokenPictures:
    """SSD_TOKENS: tokens [B, R, C] int64 on the CPU, and the backbone they belong to.

    recipes: one per picture if nodes of this pack drew them, else none. pixels: the pictures
    [B, H, W, 3] themselves, if they are known: a part that is kept has these.
    """

    tokens: torch.Tensor
    backbone: str
    sha256: str
    recipes: tuple[dict, ...] = ()
    pixels: torch.Tensor | None = None

    @classmethod
    def of(cls, backbone: Backbone, tokens: torch.Tensor, recipes: tuple[dict, ...] = (),
           pixels: torch.Tensor | None = None) -> TokenPictures:
        return cls(tokens.cpu(), backbone.name, backbone.sha256, recipes, pixels)

    def picked(self, number: int) -> TokenPictures:
        """The picture with this number, counted from 1."""
        if not 1 <= number <= len(self.tokens):
            raise SSDError(f"picture_number {number}: the batch of 'picture' has "
                           f"{len(self.tokens)}: write a number from 1 to that, or all")
        index = slice(number - 1, number)
        return replace(self, tokens=self.tokens[index], recipes=self.recipes[index],
                       pixels=None if self.pixels is None else self.pixels[index])

    def size_of(self, n: int = 0) -> tuple[int, int] | None:
        """(width, height) of a picture; None if only its tokens are known."""
        if n < len(self.recipes):
            return size_of(self.recipes[n]["size"])
        if self.pixels is None:
            return None
        height, width = self.pixels.shape[1:3]
        return width, height

    def for_backbone(self, backbone: Backbone) -> torch.Tensor:
        """The tokens; raises SSDError if they belong to another backbone."""
        if self.sha256 != backbone.sha256:
            raise SSDError(f"these tokens are of the model {self.backbone} "
                           f"({self.sha256[:10]}), the connected one is {backbone.name} "
                           f"({backbone.sha256[:10]}): turn them into a picture with their own "
                           "model and put the picture through Image to Tokens")
        return self.tokens


@dataclass(frozen=True)
class RunStats:
    """SSD_STATS: the statistics and pictures of a run.

    stats: as in docs/contract.md. recipes: one per picture. acceptance: [B, R, C], the share of
    verifications that accepted each cell, NaN if it was never verified. pictures: uint8
    [B, H, W, 3], None if the tokens could not be decoded. messages: those of the preview, empty
    without one. All tensors are on the CPU.
    """

    label: str
    stats: Mapping
    recipes: tuple[dict, ...]
    acceptance: np.ndarray
    pictures: np.ndarray | None
    messages: tuple[Mapping, ...] = ()

    def cells(self) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        """Each picture's acceptance [R, C] and its pixels."""
        for n, share in enumerate(self.acceptance):
            yield share, None if self.pictures is None else self.pictures[n]


@dataclass(frozen=True)
class PartialPictures:
    """SSD_STARTED: pictures whose first rows are drawn, as the recipes of stopped runs."""

    recipes: tuple[dict, ...]
