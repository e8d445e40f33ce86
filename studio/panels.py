"""Work for the Worker: draw below a saved picture, which is a map or a subject.

The backbone draws two panels; the saved picture is the upper one, and only the lower one is saved.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps

from ssd_core import SSDError
from ssd_core.backbones.base import Backbone
from ssd_core.backbones.prompts.two_panels import Control, control_of
from ssd_core.output.drawing import Drawing
from ssd_core.output.picture_files import upright

from .edits import known
from .history import Entry, History, require_picture
from .jobs import Job
from .library import Library
from .pictures import decoded
from .results import DrawResult
from .runs import Work, draw
from .settings import anew


@dataclass(frozen=True)
class Panel:
    """A saved picture to draw below.

    id: of the picture; "" for none. control: what it is, one of the backbone's `controls`: a depth
    map, edges, a pose or a subject. subject: what it shows, if it is one.
    """

    id: str = ""
    control: str = ""
    subject: str = ""


def draw_below(library: Library, history: History, drawing: Drawing, panel: Panel,
               metadata: bool = True, drafts: str = "") -> Work:
    """Draw the lower panel of two; otherwise as `draw`.

    Raises SSDError for a backbone without controls, and for a panel that names none.
    """
    own, path = fitted(library.current.backbone, drawing, panel), history.entry(panel.id).path
    loaded = library.as_now()

    def work(job: Job) -> DrawResult:
        backbone = loaded().backbone.resized(own.size)
        pixels = as_upper_panel(path, backbone.size)
        tokens = backbone.encode(pixels.to(backbone.device)).cpu()
        return draw(library, history, replace(own, keep=tokens, keep_pixels=pixels), metadata,
                    history.id_of(path), backbone.size[1] // 2, drafts)(job)

    return work


def fitted(backbone: Backbone, drawing: Drawing, panel: Panel) -> Drawing:
    """What draws both panels: size and prompt are theirs, the upper half stays."""
    backbone.require_controls()
    if not panel.id:
        raise SSDError("panel: missing: name the picture to draw below by its id")
    size = backbone.two_panels
    control = Control(panel.control, drawing.prompt, panel.subject)
    return replace(anew(drawing), size=size, expand=False, fixed=(), prompt=control.written(size),
                   keep_rows=backbone.resized(size).grid.rows // 2)


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


def below_again(history: History, entry: Entry, drawing: Drawing) -> tuple[Drawing, Panel]:
    """What draws a picture below another one again, while the history has that one; any other
    drawing as it is.
    """
    control, panel = control_of(drawing.prompt), known(history, entry.source)
    if control is None or not panel:
        return drawing, Panel()
    return (replace(anew(drawing), prompt=control.prompt, size=None),
            Panel(panel, control.kind, control.subject))
