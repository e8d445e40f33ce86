"""Find a backbone's picture codec: in its own files, or in others beside them."""

from __future__ import annotations

from collections.abc import Callable

import torch

from ...errors import SSDError
from ..reading.checkpoint import Checkpoint
from .codec import PublishedCodec
from .files import CODEBOOK_KEY, Shapes, load_weights
from .vqgan import vqgan_of

Build = Callable[[Shapes], tuple[PublishedCodec, dict[str, str]]]


def holds_codec(checkpoint: Checkpoint) -> bool:
    """Whether the tensors include a picture codec."""
    return any(key.endswith(CODEBOOK_KEY) for key in checkpoint.shapes)


def draws(codes: int) -> Callable[[Checkpoint], bool]:
    """Return a function that tests for a codec of `codes` codes, with its decoder."""
    def matches(checkpoint: Checkpoint) -> bool:
        shapes = checkpoint.shapes
        return any(f"{key.removesuffix(CODEBOOK_KEY)}decoder.conv_in.weight" in shapes
                   for key, shape in shapes.items()
                   if key.endswith(CODEBOOK_KEY) and shape[:1] == (codes,))
    return matches


def read_codec(checkpoint: Checkpoint, device: torch.device, advice: str,
               matches: Callable[[Checkpoint], bool] = holds_codec,
               build: Build = vqgan_of) -> PublishedCodec:
    """Load the float32 codec from a backbone's files, or from files beside them.

    matches: accepts a checkpoint that holds the codec. build: `vqgan_of`, or another function from
    shapes to a codec and its keys. Raises SSDError with `advice` (what to put where) if there is
    no codec, and an SSDError that names the file for a damaged one.
    """
    holder = checkpoint if matches(checkpoint) else checkpoint.companion(matches)
    if holder is None:
        raise SSDError(f"{checkpoint.root}: the picture codec is missing: {advice}")
    try:
        codec, keys = build(holder.shapes)
        load_weights(codec, keys, lambda key: holder.floating(key).to(device,
                                                                      copy=not holder.adopted),
                     holder.adopted)
    except SSDError as error:
        raise SSDError(f"{holder.files[0]}: {error}") from error
    return codec
