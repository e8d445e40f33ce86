"""Pictures and masks of other nodes, in the one shape that ours work with.

ComfyUI's own nodes take grey pictures and masks of two to four dimensions; so do these.
"""

from __future__ import annotations

import torch

from ..ssd_core.errors import SSDError

# How a picture comes to a size that the model draws.
REFUSE, CROP, EXTEND = "refuse", "crop", "extend below"
FILL, FIT_WIDTH = "scale and crop", "scale to width"


def rgb(image: torch.Tensor, name: str = "image") -> torch.Tensor:
    """An IMAGE as [B, H, W, 3]: grey is grey in all three channels, transparency is left out.

    Raises SSDError, with the input's name, for what is no picture.
    """
    image = image[None] if image.dim() == 3 else image
    if image.numel() == 0:
        raise SSDError(f"{name}: there is no picture in it: look at the node that it comes from")
    if not bool(image.isfinite().all()):
        raise SSDError(f"{name}: it holds values that are not numbers, so the node that it comes "
                       "from has failed: look at what that node shows")
    return image[..., :3] if image.shape[-1] > 2 else image[..., :1].expand(-1, -1, -1, 3)


def stack(mask: torch.Tensor) -> torch.Tensor:
    """A MASK [H, W], [B, H, W] or [B, 1, H, W] as [B, H, W]."""
    if mask.numel() == 0:
        raise SSDError("mask: there is none in it: look at the node that it comes from")
    return mask.reshape(-1, *mask.shape[-2:])
