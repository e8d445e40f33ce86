"""Work for the Worker: draw below a saved picture, which is a map or a subject.

The backbone draws two panels; the saved picture is the upper one, and only the lower one is saved.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps

from ssd_core import SSDError
from ssd_core.backbones.base import Backbone
from ssd_core.backbones.prompts.two_panels import Control, control_of
from ssd_core.output.packed import pack_mask
from ssd_core.output.picture_files import upright

from .edits import known
from .history import Entry, History, require_picture
from .jobs import Job
from .library import Library
from .pictures import decoded
from .results import DrawResult
from .runs import Work, draw
from .settings import Settings


def draw_below(library: Library, history: History, settings: Settings,
               metadata: bool = True) -> Work:
    """Draw the lower panel of two. The upper one is the picture with the id `settings.panel`.

    `settings.control` says what that picture is: a depth map, edges, a pose or a subject. Otherwise
    as `draw`. Raises SSDError for a backbone without controls, and for settings that lack one.
    """
    own, path = fitted(library.current.backbone, settings), history.entry(settings.panel).path
    loaded = library.as_now()

    def work(job: Job) -> DrawResult:
        backbone = loaded().backbone.resized(own.pixels())
        pixels = as_upper_panel(path, backbone.size)
        tokens = backbone.encode(pixels.to(backbone.device)).cpu()
        return draw(library, history, own, tokens, metadata=metadata, source=history.id_of(path),
                    keep_pixels=pixels, cut=backbone.size[1] // 2)(job)

    return work


def fitted(backbone: Backbone, settings: Settings) -> Settings:
    """The settings that draw both panels: size and prompt are theirs, the upper half stays."""
    backbone.require_controls()
    if not settings.panel:
        raise SSDError("panel: missing: name the picture to draw below by its id")
    width, height = size = backbone.two_panels
    grid = backbone.resized(size).grid
    known = torch.zeros(grid.rows, grid.columns, dtype=torch.bool)
    known[: grid.rows // 2] = True
    control = Control(settings.control, settings.prompt, settings.subject)
    return replace(settings.anew, size=f"{width}x{height}", expand=False, fixed=None,
                   keep_mask=pack_mask(known), prompt=control.written(size))


def as_upper_panel(path: Path, size: tuple[int, int]) -> torch.Tensor:
    """Pixels [1, H, W, 3] of both panels, float 0..1: the picture scaled and cropped, and its last
    line repeated below it.
    """
    width, height = size
    require_picture(path)
    with decoded(path) as image:
        panel = ImageOps.fit(upright(image), (width, height // 2), Image.Resampling.LANCZOS)
    pixels = torch.from_numpy(np.array(panel))[None].float() / 255
    return torch.cat((pixels, pixels[:, -1:].expand(-1, height - height // 2, -1, -1)), 1)


def below_again(history: History, entry: Entry, settings: Settings) -> Settings:
    """The settings of a picture that was drawn below another one, while the history has that one;
    those of any other picture as they are.
    """
    control, panel = control_of(settings.prompt), known(history, entry.source)
    if control is None or not panel:
        return settings
    return replace(settings.anew, panel=panel, control=control.kind, subject=control.subject,
                   prompt=control.prompt, size=None)
