"""The custom link types and their values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from comfy_api.v0_0_2 import io
from PIL import Image

from ..ssd_core.errors import SSDError
from ..ssd_core.model.grid import size_of

if TYPE_CHECKING:
    from ..ssd_core.backbones.base import Backbone
    from .weights import LoadedBackbone, LoadedHeads

# The menu's folders
LOAD, DRAW, EDIT, COMPARE, TOOLS = (
    f"SSD/{name}" for name in ("load", "draw", "edit", "compare", "tools"))
ModelType = io.Custom("SSD_MODEL")
RunType = io.Custom("SSD_RUN")


def image_of(pictures: Iterable[np.ndarray | Image.Image]) -> torch.Tensor:
    """Convert uint8 pictures of one size to an IMAGE: float 0..1 [B, H, W, 3]."""
    return torch.from_numpy(np.stack([np.asarray(picture) for picture in pictures])).float() / 255


@dataclass(frozen=True)
class LoadedModel:
    """SSD_MODEL: a backbone and the draft heads that go with it, None without any."""

    backbone: LoadedBackbone
    heads: LoadedHeads | None = None

    @property
    def module(self) -> Backbone:
        return self.backbone.module


@dataclass(frozen=True)
class TokenPictures:
    """Tokens [B, R, C] int64 on the CPU, and the backbone they belong to.

    recipes: one per picture if nodes of this pack drew them, else none. pixels: the pictures
    [B, H, W, 3] themselves, if they are known: a part that is kept has these. panel: what the upper
    half shows if the lower one is to be drawn below it: a kind of CONTROLS, and a subject's words.
    """

    tokens: torch.Tensor
    backbone: str
    sha256: str
    recipes: tuple[dict, ...] = ()
    pixels: torch.Tensor | None = None
    panel: tuple[str, str] | None = None

    @classmethod
    def of(cls, backbone: Backbone, tokens: torch.Tensor, recipes: tuple[dict, ...] = (),
           pixels: torch.Tensor | None = None) -> TokenPictures:
        return cls(tokens.cpu(), backbone.name, backbone.sha256, recipes, pixels)

    def picked(self, number: int) -> TokenPictures:
        """The picture with this number, counted from 1."""
        if not 1 <= number <= len(self.tokens):
            raise SSDError(f"picture_number {number}: the batch of 'picture' has "
                           f"{len(self.tokens)}: write a number from 1 to that, or 0 for all")
        return self.those([number])

    def those(self, numbers: Sequence[int]) -> TokenPictures:
        """The pictures with these numbers, counted from 1."""
        index = [number - 1 for number in numbers]
        return replace(self, tokens=self.tokens[index],
                       recipes=tuple(self.recipes[n] for n in index) if self.recipes else (),
                       pixels=None if self.pixels is None else self.pixels[index])

    def size_of(self, n: int = 0) -> tuple[int, int] | None:
        """(width, height) of a picture; None if only its tokens are known."""
        if n < len(self.recipes):
            return size_of(self.recipes[n]["size"])
        if self.pixels is None:
            return None
        height, width = self.pixels.shape[1:3]
        return width, height

    @property
    def unfinished(self) -> bool:
        """Whether only the top of the pictures is drawn."""
        return any("stopped_rows" in recipe for recipe in self.recipes)

    def require_finished(self) -> None:
        """Raise SSDError if only the top of the pictures is drawn."""
        if self.unfinished:
            raise SSDError("only the top of these pictures is drawn: put Finish between")

    def for_backbone(self, backbone: Backbone) -> torch.Tensor:
        """The tokens; raises SSDError if they belong to another backbone or are not all drawn."""
        self.require_finished()
        if self.sha256 != backbone.sha256:
            raise SSDError(f"these tokens are of the model {self.backbone} "
                           f"({self.sha256[:10]}), the connected one is {backbone.name} "
                           f"({backbone.sha256[:10]}): turn them into a picture with their own "
                           "model and put the picture through Encode")
        return self.tokens


@dataclass(frozen=True)
class RunStats:
    """The statistics and pictures of a run.

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
class Run:
    """SSD_RUN: pictures as tokens, and what is known of how they were drawn.

    stats: None of pictures that were not drawn but loaded or encoded. report: lines of text.
    """

    tokens: TokenPictures
    stats: RunStats | None = None
    report: str = ""

    @property
    def recipes(self) -> tuple[dict, ...]:
        return self.tokens.recipes

    def drawn(self) -> RunStats:
        """Its statistics; raises SSDError if no node of this pack drew it."""
        self.tokens.require_finished()
        if self.stats is None:
            raise SSDError("run: these pictures were loaded, not drawn: connect the run of a node "
                           "that draws")
        return self.stats

    def recipe(self) -> dict:
        """The recipe of its first picture; raises SSDError if it has none."""
        if not self.recipes:
            raise SSDError("run: these pictures have no recipe, which would tell their words and "
                           "seed: connect the run of a node that draws")
        return self.recipes[0]
