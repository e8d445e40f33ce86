"""Pictures of any size as tokens: how they are fitted to a size that the backbone draws."""

from __future__ import annotations

import torch
from torch.nn.functional import interpolate

from ..ssd_core.backbones.base import Backbone
from ..ssd_core.errors import SSDError
from ..ssd_core.weights.memory import MemoryEstimate
from ..ssd_core.weights.model_size import ModelSize
from . import weights
from .pictures import CROP, EXTEND, FILL, FIT_WIDTH, REFUSE, rgb, stack
from .types import LoadedModel, TokenPictures


def encoded(model: LoadedModel, image: torch.Tensor, fit: str,
            size: tuple[int, int] | None = None) -> tuple[TokenPictures, int, str]:
    """The tokens of pictures, the rows that these fill, and a note on how they were fitted."""
    image = rgb(image)
    picture_size = size_of(image)
    module = model.module.resized(size or suitable(picture_size, model.module, fit))
    fitted, rows, report = fitted_to(image, module.size, module.grid.rows, fit)
    room = MemoryEstimate(ModelSize.of(module)).pixels + module.picture_codec.encoder_bytes
    with weights.codec_resident(model.backbone, room):
        tokens = torch.cat([module.encode(picture[None]).cpu() for picture in fitted])
    return TokenPictures.of(module, tokens, pixels=fitted.cpu()), rows, report


def suitable(picture: tuple[int, int], module: Backbone, fit: str) -> tuple[int, int]:
    """The picture's own size if the model draws it, else the first of the model's that `fit` suits.

    The model's own one if it suits none.
    """
    if picture in module.sizes:
        return picture
    sizes = (size for size in module.sizes_of_grid if suits(picture, size, fit))
    return next(sizes, module.size)


def suits(picture: tuple[int, int], size: tuple[int, int], fit: str) -> bool:
    """Whether `fit` brings a picture of another size, (width, height), to this one."""
    if fit == CROP:
        return picture[0] >= size[0] and picture[1] >= size[1]
    if fit == EXTEND:
        return picture[0] == size[0] and picture[1] < size[1]
    return fit != REFUSE


def fitted_mask(mask: torch.Tensor, picture: tuple[int, int], size: tuple[int, int], rows: int,
                fit: str) -> torch.Tensor:
    """A MASK [B, h, w] of pictures of size `picture`, fitted as they are; [B, H, W]."""
    on_picture = interpolate(stack(mask)[:, None].float(), picture[::-1], mode="area")
    fitted, filled, _ = fitted_to(on_picture.movedim(1, -1), size, rows, fit)
    fitted = fitted[..., 0].clone()
    fitted[:, filled * size[1] // rows :] = 1
    return fitted


def fitted_to(image: torch.Tensor, size: tuple[int, int], rows: int,
              fit: str) -> tuple[torch.Tensor, int, str]:
    """Fit pictures to `size` (width, height).

    Returns the pictures [B, H, W, 3], the rows of tokens that they fill, and a note on what was
    done. Raises SSDError if `fit` does not suit their size.
    """
    picture_size = size_of(image)
    if picture_size == size:
        return image, rows, f"encoded {named(picture_size)} as it is"
    if fit in (FILL, FIT_WIDTH):
        image, note = scaled(image, size, fit)
        fitted, rows, done = fitted_to(image, size, rows, CROP if fit == FILL else EXTEND)
        return fitted, rows, f"{note}, {done}"
    (width, height), (picture_width, picture_height) = size, picture_size
    if fit == CROP and suits(picture_size, size, fit):
        left, top = (picture_width - width) // 2, (picture_height - height) // 2
        return (image[:, top : top + height, left : left + width], rows,
                f"cut the middle {named(size)} out of {named(picture_size)}")
    if fit == EXTEND and suits(picture_size, size, fit):
        below = image[:, -1:].expand(-1, height - picture_height, -1, -1)
        return (torch.cat((image, below), 1), picture_height * rows // height,
                f"encoded {named(picture_size)}, the last line repeated below it")
    raise SSDError(f"the picture is {named(picture_size)}, the model takes {named(size)}: "
                   f"choose fit '{FILL}' or '{FIT_WIDTH}'; '{CROP}' suits a larger picture, "
                   f"'{EXTEND}' one of width {width} and less height")


def scaled(image: torch.Tensor, size: tuple[int, int], fit: str) -> tuple[torch.Tensor, str]:
    """Scale pictures to fill `size`, or to its width and at most its height; also return a note."""
    (width, height), (picture_width, picture_height) = size, size_of(image)
    factor = width / picture_width
    if fit == FILL:
        factor = max(factor, height / picture_height)
    to = max(width, round(picture_width * factor)), max(1, round(picture_height * factor))
    if fit == FILL:
        to = to[0], max(height, to[1])
    pixels = interpolate(image.movedim(-1, 1), to[::-1], mode="bicubic", antialias=True)
    image = pixels.movedim(1, -1).clamp(0, 1)
    note = f"scaled {named((picture_width, picture_height))} to {named(to)}"
    return (image[:, :height], note) if fit == FIT_WIDTH else (image, note)


def size_of(image: torch.Tensor) -> tuple[int, int]:
    return image.shape[2], image.shape[1]


def named(size: tuple[int, int]) -> str:
    return f"{size[0]}x{size[1]}"
