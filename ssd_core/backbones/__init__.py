"""Backbones: what turns prompts and tokens into logits, and tokens into pixels.

A family is a module with FAMILY (its name), claims(checkpoint) -> bool, by the names of tensors,
and load(checkpoint, device, dtype) -> Backbone. One row each.
"""

from . import chameleon, emu3, janus, llamagen, postcard, tar

FAMILIES = (postcard, janus, llamagen, tar, chameleon, emu3)
BACKBONES = ("postcard",)  # those whose weights are bundled
