"""Control: draw the picture that belongs to a depth map or an edge map, or that has a subject."""

from __future__ import annotations

import torch
from comfy_api.v0_0_2 import io

from ..ssd_core.backbones.prompts import two_panels
from ..ssd_core.backbones.prompts.two_panels import CONTROLS, MAPS, TWO_PANELS
from ..ssd_core.engine.methods import Method, default_method
from ..ssd_core.output.knobs import sampling_knobs
from . import fitting, inputs, keeping, outcome, requests, running, weights
from .drawing import DrawingNode
from .errors import readable_errors
from .newer import ADVANCED, search_aliases
from .pictures import rgb
from .types import MethodType, TokenPictures
from .widgets import original_widgets

SAMPLED = ("cfg", "temperature", "top_k")
AUTHORS_TOP_K = 4096
SIDES = f"{TWO_PANELS[0]}x{TWO_PANELS[1] // 2}"  # px of one panel


class Control(DrawingNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        images, *others = outcome.outputs()
        return cls.drawing_schema(
            node_id="SSD_Control", display_name="Control by Map or Subject (SSD)",
            description="Draws the picture that belongs to a depth map or an edge map, or another "
                        "picture of a subject, with Lumina-mGPT 2.0-Omni. The map or the subject "
                        "is the upper half of a larger picture; the lower half is drawn below it "
                        "and cut out.",
            inputs=[
                inputs.backbone(tooltip="Lumina-mGPT-2.0-Omni, from Load Backbone."),
                inputs.heads(),
                MethodType.Input("method", optional=True,
                                 tooltip="From SSD Schedule or Baseline Method. Without it the "
                                         "method is exact."),
                io.Image.Input("image", tooltip="The depth map or edge map, from another node, or "
                                                "a picture of the subject. It is scaled and "
                                                f"cropped to {SIDES}; of a batch the first is "
                                                "used."),
                io.Combo.Input("control", options=list(CONTROLS), default="depth",
                               tooltip="What the image is: " + ", ".join(
                                   f"{name} = a {phrase}" for name, phrase in MAPS.items())
                                       + ", subject = the thing to draw again elsewhere."),
                *inputs.prompts(), *inputs.seed(), inputs.batch_size(), inputs.preview(),
                *original_widgets(
                    [knob for knob in sampling_knobs() if knob.name in SAMPLED], cfg=ADVANCED,
                    temperature=ADVANCED, top_k={**ADVANCED, "default": AUTHORS_TOP_K}),
                io.String.Input("subject", default="", optional=True,
                                tooltip="Only for control subject: what the image shows, in a few "
                                        "words. The prompt then says where it is drawn.")],
            outputs=[images, io.Image.Output(display_name="panels",
                                             tooltip="The image and the picture below it."),
                     *others],
            **search_aliases("controlnet", "depth", "canny", "edges", "subject"))

    @classmethod
    @readable_errors
    def execute(cls, backbone: weights.LoadedBackbone, image: torch.Tensor, control: str,
                prompt: str, negative: str, batch_size: int, preview: str,
                heads: weights.LoadedHeads | None = None, method: Method | None = None,
                subject: str = "", **widgets: int | float) -> io.NodeOutput:
        keep, rows = panel_of(backbone, image)
        width, height = size = backbone.module.two_panels
        fields, _ = keeping.fields_of(keep, rows, None, backbone, batch_size)
        words = two_panels.Control(control, prompt, subject).written(size)
        request = requests.request_of(
            backbone, heads, method or default_method(), requests.sampling_of(widgets), words,
            negative, f"{width}x{height}", pictures=batch_size, named=method is not None, **fields)
        runs = [running.NodeRun(part, backbone, heads) for part in request.parts()]
        ui = cls.draw(runs, preview, together=False)
        panels, *others = outcome.of(runs)
        lower = panels[:, height // 2 :] if isinstance(panels, torch.Tensor) else panels
        return io.NodeOutput(lower, panels, *others, ui=ui)


def panel_of(backbone: weights.LoadedBackbone, image: torch.Tensor) -> tuple[TokenPictures, int]:
    """The tokens of two panels, the upper one this image, and the rows of the upper one.

    Raises SSDError for a backbone that draws no panels.
    """
    backbone.module.require_controls()
    width, height = backbone.module.two_panels
    panel, *_ = fitting.fitted_to(rgb(image)[:1], (width, height // 2), 1, fitting.FILL)
    tokens, rows, _ = fitting.encoded(backbone, panel, fitting.EXTEND, f"{width}x{height}")
    return tokens, rows
