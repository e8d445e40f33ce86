"""GLM-Image's encoder of pictures: a vision transformer, then the nearest codes of the codebook.

A picture is read at half its size, in patches of 16 px, so that a code stands for 32 x 32 px of it.
The encoder is read from the model's files for each call and freed afterwards, since drawing from
words does not need its weights. Knows no decoder.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import nn

from ...errors import SSDError
from ...model.surroundings import scaled_dot_product_attention
from ..reading.checkpoint import Checkpoint
from ..reading.weights import refuse_unknown
from .vqgan import nearest_codes

VISUAL, TO_CODE = "model.visual.", "model.vqmodel.quant_conv."
PATCH = 16  # px of the halved picture
SHORTEST, LONGEST = 512, 2048  # px; the sides to which the published processor scales a picture
STEEPEST = 4  # times as long as wide
MEAN = (0.48145466, 0.4578275, 0.40821073)  # of CLIP
DEVIATION = (0.26862954, 0.26130258, 0.27577711)
HEAD_DIM, EPS = 96, 1e-6  # of the published encoder


class Block(nn.Module):
    """A layer of the vision transformer; its parts have the names of the files."""

    def __init__(self, width: int, ffn: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width, EPS), nn.LayerNorm(width, EPS)
        self.attn = nn.ModuleDict({"qkv": nn.Linear(width, 3 * width),
                                   "proj": nn.Linear(width, width)})
        self.mlp = nn.ModuleDict({"fc1": nn.Linear(width, ffn), "fc2": nn.Linear(ffn, width)})

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[cells, d] -> [cells, d]."""
        parts = self.attn["qkv"](self.norm1(x)).view(len(x), 3, self.heads, -1)
        q, k, v = parts.permute(1, 2, 0, 3)[:, None].unbind(0)
        mixed = scaled_dot_product_attention(q, k, v)[0].transpose(0, 1).flatten(1)
        x = x + self.attn["proj"](mixed)
        return x + self.mlp["fc2"](F.gelu(self.mlp["fc1"](self.norm2(x))))


class GlmEncoder(nn.Module):
    """Pictures to codes. The position embedding is one of a square, stretched over any grid."""

    def __init__(self, width: int, ffn: int, heads: int, layers: int, positions: int,
                 code_dim: int) -> None:
        super().__init__()
        self.patch_embed = nn.ModuleDict({"proj": nn.Conv2d(3, width, PATCH, PATCH)})
        self.embeddings = nn.ModuleDict({"position_embedding": nn.Embedding(positions, width)})
        self.blocks = nn.ModuleList(Block(width, ffn, heads) for _ in range(layers))
        self.to_code = nn.Linear(width, code_dim)

    def vectors(self, pixels: torch.Tensor) -> torch.Tensor:
        """Normalised pixels [3, 16 R, 16 C] -> vectors in the codebook's space [R, C, d]."""
        patches = self.patch_embed["proj"](pixels[None])[0]
        rows, columns = patches.shape[1:]
        x = patches.flatten(1).T + self.positions(rows, columns)
        for block in self.blocks:
            x = block(x)
        return self.to_code(x).unflatten(0, (rows, columns))

    def positions(self, rows: int, columns: int) -> torch.Tensor:
        """The position embedding at the middle of each cell, [R * C, d], by linear interpolation.
        """
        table = self.embeddings.get_parameter("position_embedding.weight")
        side = math.isqrt(len(table))
        square = table.float().cpu().T.reshape(1, -1, side, side)  # not every device has "border"
        y, x = ((torch.arange(n) + 0.5) / n * 2 - 1 for n in (rows, columns))
        at = torch.stack((x.expand(rows, -1), y[:, None].expand(-1, columns)), -1)
        found = F.grid_sample(square, at[None], "bilinear", "border", align_corners=False)
        return found[0].flatten(1).T.to(table)


def source_grid(height: int, width: int, shortest: int = SHORTEST,
                longest: int = LONGEST) -> tuple[int, int]:
    """Rows and columns of codes for a source picture of any size, as published.

    A small picture is scaled up to `shortest`, a large one down to `longest` px a side. Raises
    SSDError for one that is far too narrow.
    """
    if min(height, width) < PATCH or max(height, width) > STEEPEST * min(height, width):
        raise SSDError(f"source picture of {width}x{height} px: its longer side may be at most "
                       f"{STEEPEST} times the shorter one, of at least {PATCH} px: crop it")
    scale = max(shortest / min(height, width), 1.0)
    if max(height, width) * scale > longest:
        scale = longest / max(height, width)
    sides = [max(round(side // 2 * scale / PATCH), 1) for side in (height, width)]
    if (most := max(sides) * PATCH) > longest:
        sides = [max(int(side * PATCH * longest / most / PATCH), 1) for side in sides]
    return sides[0], sides[1]


def halved(picture: torch.Tensor, grid: tuple[int, int]) -> torch.Tensor:
    """A picture [3, H, W], float in 0..1, as normalised pixels [3, 16 R, 16 C] for a grid (R, C).

    The published processor resizes bytes on the CPU; so does this.
    """
    pixels = (picture * 255).round().clamp(0, 255).to("cpu", torch.uint8)
    size = (grid[0] * PATCH, grid[1] * PATCH)
    small = F.interpolate(pixels[None], size, mode="bicubic", antialias=True)[0]
    mean, deviation = (torch.tensor(each)[:, None, None] for each in (MEAN, DEVIATION))
    return (small.float() / 255 - mean) / deviation


def visual_bytes(checkpoint: Checkpoint, dtype: torch.dtype) -> int:
    """The encoder's size in memory; 0 for a loaded model, which has it there already."""
    if checkpoint.adopted:
        return 0
    return sum(math.prod(shape) for name, shape in checkpoint.shapes.items()
               if name.startswith(VISUAL)) * dtype.itemsize


def read_encoder(checkpoint: Checkpoint, device: torch.device, dtype: torch.dtype) -> GlmEncoder:
    """The encoder of a GLM-Image checkpoint; SSDError names a tensor that is missing."""
    shapes, config = checkpoint.shapes, checkpoint.config().get("vision_config") or {}
    checkpoint.file_of(f"{VISUAL}patch_embed.proj.weight")
    width = shapes[f"{VISUAL}patch_embed.proj.weight"][0]
    layers = sum(name.startswith(f"{VISUAL}blocks.") and name.endswith(".norm1.weight")
                 for name in shapes)
    heads = int(config.get("num_heads", max(width // HEAD_DIM, 1)))
    with torch.device("meta"):
        encoder = GlmEncoder(
            width, shapes.get(f"{VISUAL}blocks.0.mlp.fc1.weight", (1,))[0], heads, layers,
            shapes.get(f"{VISUAL}embeddings.position_embedding.weight", (1,))[0],
            shapes.get(f"{TO_CODE}weight", (1,))[0])
    refuse_unknown(checkpoint, {f"{VISUAL}{name}" for name in encoder.state_dict()}, prefix=VISUAL)
    weights = {name: read(checkpoint, name, own, device, dtype)
               for name, own in encoder.state_dict().items()}
    checkpoint.close()
    encoder.load_state_dict(weights, assign=True)
    return encoder.requires_grad_(False).eval()


def read(checkpoint: Checkpoint, name: str, own: torch.Tensor, device: torch.device,
         dtype: torch.dtype) -> torch.Tensor:
    """A tensor of the encoder, in its own shape; the last one is a 1 x 1 convolution in files."""
    key = name.replace("to_code.", TO_CODE) if name.startswith("to_code.") else f"{VISUAL}{name}"
    file, shape = checkpoint.file_of(key), checkpoint.shapes[key]
    if [n for n in shape if n != 1] != [n for n in own.shape if n != 1]:
        raise SSDError(f"{file}: tensor {key} has shape {shape}, expected {tuple(own.shape)}")
    value = checkpoint.floating(key).to(device, dtype, copy=not checkpoint.adopted)
    return value.reshape(own.shape)


@torch.inference_mode()
def codes_of(pixels: Sequence[torch.Tensor], encoder: GlmEncoder,
             vectors: torch.Tensor) -> list[torch.Tensor]:
    """Normalised pixels [3, 16 R, 16 C] of each picture -> its codes [R, C] int64.

    vectors: the codebook [codes, d], scaled to unit length.
    """
    place = encoder.to_code.weight
    found = (F.normalize(encoder.vectors(each.to(place.device, place.dtype)).float(), dim=-1)
             for each in pixels)
    return [nearest_codes(each, vectors.float()) for each in found]
