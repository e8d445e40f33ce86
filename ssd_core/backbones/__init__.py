"""Backbones: what turns prompts and tokens into logits, and tokens into pixels. One row each."""

from collections.abc import Callable

from . import postcard
from .base import Backbone

BACKBONES: dict[str, Callable[..., Backbone]] = {"postcard": postcard.load}
