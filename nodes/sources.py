"""Source pictures of a run: the pictures that GLM-Image draws from besides the words."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..ssd_core.errors import SSDError
from ..ssd_core.output.drawing import drawing_of
from . import weights
from .pictures import rgb
from .types import LoadedModel, TokenPictures

ROOM = 1 << 30  # bytes besides the weights of the encoder; not measured


def fields_of(model: LoadedModel, source: torch.Tensor | None) -> dict:
    """The field of Drawing for an IMAGE [B, H, W, C] of source pictures, all for each picture."""
    if source is None:
        return {}
    with weights.codec_resident(model.backbone, model.module.picture_codec.encoder_bytes + ROOM):
        return {"sources": model.module.read_sources(list(rgb(source, "source")))}


def painted_from(tokens: TokenPictures, source: torch.Tensor | None
                 ) -> Sequence[tuple[torch.Tensor, torch.Tensor]]:
    """Pixels and codes of the source pictures that tokens were drawn from; () without any.

    Raises SSDError unless there are as many pictures as the tokens' recipe has.
    """
    codes = drawing_of(tokens.recipes[0]).sources if tokens.recipes else ()
    found = 0 if source is None else len(source)
    if found != len(codes):
        raise SSDError(f"the tokens were drawn from {len(codes)} source pictures, {found} are "
                       "connected to 'source': connect what the sampler had")
    return [] if source is None else list(zip(rgb(source, "source"), codes, strict=True))
