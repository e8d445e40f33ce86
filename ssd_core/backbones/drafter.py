"""MuLo-SD's low-resolution drafter: a smaller picture and the samplers between the two grids.

The drafter is a backbone of the same kind that draws the picture with fewer cells. The up-sampler
converts its rows to rows of the target; the down-sampler converts verified rows back (MuLo-SD,
section 3.2). Both work on code vectors and are row-causal: a row depends on no row below it.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from ..errors import SSDError, first_line
from ..files import read_safetensors, write_safetensors
from .base import Backbone
from .codecs.vqgan import nearest_codes

FORMAT = "ssd-samplers/1"
WIDTH, BLOCKS = 96, 3


class RowCausal(nn.Conv2d):
    """A 3 x 3 convolution that sees its own row and the two rows above."""

    def __init__(self, channels_in: int, channels: int) -> None:
        super().__init__(channels_in, channels, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(F.pad(x, (1, 1, 2, 0)))


def zero_parameters(layer: nn.Module) -> None:
    """Set all parameters of a layer to zero, so that it starts with zeros as output."""
    for weight in layer.parameters():
        nn.init.zeros_(weight)


class ResidualBlock(nn.Module):
    """Two row-causal convolutions added to the input; the norm mixes the channels of one cell."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.Parameter(torch.ones(channels))
        self.conv1, self.conv2 = RowCausal(channels, channels), RowCausal(channels, channels)
        zero_parameters(self.conv2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        cells = x.permute(0, 2, 3, 1)
        normed = F.rms_norm(cells, self.norm.shape, self.norm, 1e-6).permute(0, 3, 1, 2)
        return x + self.conv2(F.silu(self.conv1(normed)))


class Upsampler(nn.Module):
    """Code vectors [B, d, R, C] of the drafter to [B, d, ratio * R, ratio * C] of the target.

    It starts as nearest-neighbour repetition and learns what to add.
    """

    def __init__(self, dim: int, ratio: int, width: int = WIDTH, blocks: int = BLOCKS) -> None:
        super().__init__()
        self.ratio = ratio
        self.inward = RowCausal(dim, width)
        self.blocks = nn.Sequential(*(ResidualBlock(width) for _ in range(blocks)))
        self.outward = nn.Conv2d(width, dim * ratio**2, 1)
        zero_parameters(self.outward)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        learnt = F.pixel_shuffle(self.outward(self.blocks(self.inward(x))), self.ratio)
        return F.interpolate(x, scale_factor=float(self.ratio), mode="nearest") + learnt


class Downsampler(nn.Module):
    """Code vectors [B, d, ratio * R, ratio * C] of the target to [B, d, R, C] of the drafter.

    It starts as the mean of the cells and learns what to add.
    """

    def __init__(self, dim: int, ratio: int, width: int = WIDTH, blocks: int = BLOCKS) -> None:
        super().__init__()
        self.ratio = ratio
        self.inward = RowCausal(dim * ratio**2, width)
        self.blocks = nn.Sequential(*(ResidualBlock(width) for _ in range(blocks)))
        self.outward = nn.Conv2d(width, dim, 1)
        zero_parameters(self.outward)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        learnt = self.outward(self.blocks(self.inward(F.pixel_unshuffle(x, self.ratio))))
        return F.avg_pool2d(x, self.ratio) + learnt


class Drafter(nn.Module):
    """A low-resolution backbone, the code vectors of both codecs, and the samplers between them."""

    small: torch.Tensor  # [codes, d]
    large: torch.Tensor  # [codes, d]

    def __init__(self, backbone: Backbone, target: Backbone, up: Upsampler,
                 down: Downsampler) -> None:
        super().__init__()
        self.backbone, self.up, self.down, self.ratio = backbone, up, down, up.ratio
        for name, owner in (("small", backbone), ("large", target)):
            vectors = owner.picture_codec.code_vectors[: owner.codes]
            self.register_buffer(name, vectors.to(owner.device, torch.float32))

    def upsampled(self, tokens: torch.Tensor) -> torch.Tensor:
        """Tokens [B, R, C] of the drafter -> [B, ratio * R, ratio * C] of the target."""
        return resampled(self.up, tokens, self.small, self.large)

    def downsampled(self, tokens: torch.Tensor) -> torch.Tensor:
        """Tokens [B, ratio * R, ratio * C] of the target -> [B, R, C] of the drafter."""
        return resampled(self.down, tokens, self.large, self.small)

    def require(self, target: Backbone) -> None:
        """Raise SSDError if the two grids do not belong together."""
        own, other = self.backbone.grid, target.grid
        if (own.rows * self.ratio, own.columns * self.ratio) != (other.rows, other.columns):
            raise SSDError(f"the drafter draws {own.rows}x{own.columns} cells and its samplers "
                           f"enlarge {self.ratio} times, {target.name} draws {other.rows}x"
                           f"{other.columns}: choose another size, or train samplers for this one")


def resampled(sampler: nn.Module, tokens: torch.Tensor, source: torch.Tensor,
              target: torch.Tensor) -> torch.Tensor:
    """Apply a sampler to the vectors of tokens; return the nearest codes of `target` [codes, d]."""
    vectors = sampler(source[tokens].permute(0, 3, 1, 2))
    return nearest_codes(vectors.permute(0, 2, 3, 1), target)


def save_samplers(drafter: Drafter, target: Backbone, path: Path, source: str,
                  training: dict) -> None:
    """Write both samplers and the hashes of their two backbones.

    source: path of the drafter, relative to the file's folder. training: more metadata.
    """
    tensors = {f"{name}.{key}": value.detach().half().cpu().contiguous()
               for name in ("up", "down")
               for key, value in getattr(drafter, name).state_dict().items()}
    shape = {"dim": drafter.small.shape[1], "ratio": drafter.ratio,
             "width": drafter.up.inward.out_channels, "blocks": len(drafter.up.blocks)}
    write_safetensors(tensors, path, {
        "format": FORMAT, "shape": json.dumps(shape), "target_sha256": target.sha256,
        "drafter": source, "drafter_sha256": drafter.backbone.sha256,
        **{key: json.dumps(value) for key, value in training.items()}})


def read_drafter(path: Path, backbone: Backbone, target: Backbone) -> Drafter:
    """Read samplers made for exactly these two backbones; SSDError names a mismatch."""
    tensors, metadata = read_safetensors(path, FORMAT)
    for key, owner in (("target_sha256", target), ("drafter_sha256", backbone)):
        if metadata.get(key) != owner.sha256:
            raise SSDError(f"{path}: these samplers were made for another backbone, not for "
                           f"{owner.name}: train them again with 'python -m ssd_core train mulo'")
    try:
        shape = json.loads(metadata["shape"])
        with torch.device("meta"):
            up, down = Upsampler(**shape), Downsampler(**shape)
        for name, sampler in (("up", up), ("down", down)):
            own = {key.partition(".")[2]: value.float() for key, value in tensors.items()
                   if key.startswith(f"{name}.")}
            sampler.load_state_dict(own, assign=True)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise SSDError(f"{path}: damaged samplers ({first_line(error)}): get or train "
                       "them again") from error
    drafter = Drafter(backbone, target, up.to(target.device), down.to(target.device))
    return drafter.requires_grad_(False).eval()
