"""Picture codecs in files: names and sizes of their tensors, and loading them.

Works on names and shapes alone, before a tensor is read. Knows no file format: the caller gives
{key: shape} and a function that reads one tensor.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import torch

from ...errors import SSDError
from .codec import PictureCodec, PublishedCodec, VQGANShape

CODEBOOK_KEY = "quantize.embedding.weight"
VQGAN_KIND, MOVQ_KIND, MOVQGAN_KIND = "a VQGAN", "Emu3's MoVQ", "a MoVQGAN"
ONLY_IN = {"quant_conv.conv.weight": MOVQ_KIND, "decoder.norm_out.conv_y.weight": MOVQGAN_KIND}
# Of training alone: losses, averages, counters. Published files hold them besides.
UNUSED = re.compile(r"(loss|model_ema|ema_\w+)\..*|quantize\.codebook_used"
                    r"|.*\.num_batches_tracked")
Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class CodecNames:
    """How a kind of file names a codec's tensors.

    rules: (pattern, replacement) applied to our own names in order. `up_reversed`: the file's
    `up.0` is the finest level, ours the coarsest.
    """

    rules: tuple[tuple[str, str], ...]
    prefix: str = ""
    up_reversed: bool = False

    def key(self, name: str, levels: int) -> str:
        """The file's key for one of our own names."""
        if self.up_reversed:
            name = re.sub(r"\bup\.(\d+)", lambda m: f"up.{levels - 1 - int(m[1])}", name)
        for pattern, replacement in self.rules:
            name = re.sub(pattern, replacement, name)
        return self.prefix + name

    def keys(self, codec: PublishedCodec) -> dict[str, str]:
        """{own name: file key} of all tensors of a codec, which may be on the meta device."""
        levels = len(codec.shape.multipliers)
        return {name: self.key(name, levels) for name in codec.state_dict()}


def prefix_of(shapes: Shapes) -> str:
    """The prefix of a codec's names in a file. Raises SSDError if there is no codec."""
    codebook = next((key for key in shapes if key.endswith(CODEBOOK_KEY)), None)
    if codebook is None:
        raise SSDError(f"no picture codec: no tensor is named {CODEBOOK_KEY}")
    prefix = codebook.removesuffix(CODEBOOK_KEY)
    if f"{prefix}decoder.conv_in.weight" not in shapes:
        raise SSDError(f"the picture codec has no decoder ({prefix}decoder.conv_in.weight is "
                       "missing): take the codec from a file that holds one")
    return prefix


def require_kind(shapes: Shapes, kind: str) -> str:
    """The prefix of a codec of this kind in a file. SSDError says which kind is there instead."""
    prefix = prefix_of(shapes)
    found = next((name for key, name in ONLY_IN.items() if prefix + key in shapes), VQGAN_KIND)
    if found != kind:
        raise SSDError(f"the picture codec is {found}, expected {kind}")
    return prefix


def count(shapes: Shapes, layout: CodecNames, template: str) -> int:
    """How many tensors numbered from 0 a file holds; `template` is our name with `{}`."""
    number = 0
    while layout.key(template.format(number), 0) in shapes:
        number += 1
    return number


def measured(shapes: Shapes, layout: CodecNames) -> VQGANShape:
    """A codec's sizes, from the shapes of the encoder and the codebook."""
    def size(name: str, axis: int = 0) -> int:
        key = layout.key(name, 0)
        if key not in shapes or len(shapes[key]) <= axis or not shapes[key][axis]:
            raise SSDError(f"the picture codec's tensor {key} is missing or empty")
        return shapes[key][axis]

    number = partial(count, shapes, layout)
    channels = size("encoder.conv_in.weight")
    levels = range(number("encoder.down.{}.blocks.0.conv1.weight"))
    return VQGANShape(
        channels=channels, res_blocks=number("encoder.down.0.blocks.{}.conv1.weight"),
        multipliers=tuple(size(f"encoder.down.{i}.blocks.0.conv1.weight") // channels
                          for i in levels),
        z_channels=size("encoder.conv_out.weight"), codes=size("codebook"),
        code_dim=size("codebook", 1),
        attention_levels=tuple(i for i in levels
                               if number(f"encoder.down.{i}.attentions.{{}}.query.weight")))


def matching_keys(codec: PublishedCodec, layout: CodecNames, shapes: Shapes) -> dict[str, str]:
    """Return `layout.keys`; SSDError names the tensor in which the file differs from the codec.

    A projection may be a 1 x 1 convolution in the file and a Linear here, or the reverse. Tensors
    used only in training are ignored (UNUSED); any other unknown one is refused.
    """
    keys = layout.keys(codec)
    for name, own in codec.state_dict().items():
        key = keys[name]
        if key not in shapes:
            raise SSDError(f"the picture codec's tensor {key} is missing")
        if [n for n in shapes[key] if n != 1] != [n for n in own.shape if n != 1]:
            raise SSDError(f"the picture codec's tensor {key} has shape {tuple(shapes[key])}, "
                           f"expected {tuple(own.shape)}")
    known = set(keys.values())
    for key in shapes:
        if key.startswith(layout.prefix) and key not in known and not UNUSED.fullmatch(
                key.removeprefix(layout.prefix)):
            raise SSDError(f"the picture codec's tensor {key} has no place in a codec of "
                           f"{codec.shape}")
    return keys


def load_weights(codec: PictureCodec, keys: Mapping[str, str],
                 read: Callable[[str], torch.Tensor], adopted: bool = False) -> None:
    """Load a codec's weights from `read(file key)`, one tensor at a time.

    They become float32, unless adopted (a loaded model's own), on the device that `read` returns
    them on; the codec is frozen.
    """
    weights = {}
    for name, own in codec.state_dict().items():
        tensor = read(keys[name])
        if not tensor.is_floating_point():
            raise SSDError(f"the picture codec's tensor {keys[name]} holds {tensor.dtype}, "
                           "expected floating-point numbers")
        weights[name] = (tensor if adopted else tensor.float()).reshape(own.shape)
    codec.load_state_dict(weights, assign=True)
    codec.requires_grad_(False).eval()
