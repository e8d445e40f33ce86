"""Pictures of two panels: a map or a subject above, and below it the picture that belongs to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from ..ssd_core.backbones.prompts import two_panels
from . import fitting
from .pictures import rgb
from .types import LoadedModel, TokenPictures


def upper(model: LoadedModel, image: torch.Tensor, kind: str,
          subject: str) -> tuple[TokenPictures, int]:
    """The tokens of two panels, the upper one the first of these images, and that one's rows.

    Raises SSDError for a model that draws no panels, and for a subject without words.
    """
    model.module.require_controls()
    width, height = model.module.two_panels
    two_panels.Control(kind, "", subject).written()
    panel, *_ = fitting.fitted_to(rgb(image)[:1], (width, height // 2), 1, fitting.FILL)
    tokens, rows, _ = fitting.encoded(model, panel, fitting.EXTEND, (width, height))
    return replace(tokens, panel=(kind, subject)), rows


def words(known: TokenPictures, model: LoadedModel,
          prompt: str) -> tuple[str, int, tuple[int, int]]:
    """What draws the lower panel: prompt, rows that stay, size."""
    assert known.panel is not None
    kind, subject = known.panel
    model.module.require_controls()
    size = model.module.two_panels
    written = two_panels.Control(kind, prompt, subject).written(size)
    return written, known.tokens.shape[1] // 2, size


def cut(images: Any, known: TokenPictures | None) -> Any:
    """The lower panels of images [B, H, W, 3] that were drawn below a map or a subject."""
    if known is None or known.panel is None or not isinstance(images, torch.Tensor):
        return images
    return images[:, images.shape[1] // 2 :]
