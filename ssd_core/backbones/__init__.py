"""Backbones: they turn prompts and tokens into logits, and tokens into pixels."""

BACKBONES = ("postcard",)  # shipped with the package
