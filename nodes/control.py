"""Control: draw the picture that belongs to a depth map or an edge map, or that has a subject."""

from __future__ import annotations

from typing import Any

import torch
from comfy_api.v0_0_2 import io

from ..ssd_core.backbones.prompts import two_panels
from ..ssd_core.backbones.prompts.two_panels import CONTROLS, MAPS, TWO_PANELS
from ..ssd_core.engine.methods import Method, default_method
from ..ssd_core.output.drawing import Drawing
from ..ssd_core.output.knobs import sampling_knobs
from . import fitting, inputs, keeping, outcome, requests, running, weights
from .drawing import DrawingNode
from .errors import readable_errors
from .newer import search_aliases
from .pictures import rgb
from .types import DRAW, MethodType, TokenPictures
from .widgets import widgets

SAMPLED = ("cfg", "temperature", "top_k")
SIDES = f"{TWO_PANELS[0]}x{TWO_PANELS[1] // 2}"  # px of one panel


class Control(DrawingNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        images, *others = outcome.outputs()
        return cls.drawing_schema(
            DRAW, node_id="SSD_Control", display_name="Control by Map or Subject (SSD)",
            description="Draws the picture that belongs to a depth map or an edge map, or another "
                        "picture of a subject, with Lumina-mGPT 2.0-Omni. The map or the subject "
                        "is the upper half of a larger picture; the lower half is drawn below it "
                        "and cut out.",
            inputs=[
                inputs.model(tooltip="Lumina-mGPT-2.0-Omni, from Load Model."),
                MethodType.Input("method", optional=True,
                                 tooltip="From Method. Without it the method is exact."),
                io.Image.Input("image", tooltip="The depth map or edge map, from another node, or "
                                                "a picture of the subject. It is scaled and "
                                                f"cropped to {SIDES}; of a batch the first is "
                                                "used."),
                io.Combo.Input("control", options=list(CONTROLS), default="depth",
                               tooltip="What the image is: " + ", ".join(
                                   f"{name} = a {phrase}" for name, phrase in MAPS.items())
                                       + ", subject = the thing to draw again elsewhere."),
                io.String.Input("subject", default="",
                                tooltip="Only for control subject: what the image shows, in a few "
                                        "words. The prompt then says where it is drawn."),
                *inputs.prompts(), inputs.seed(), inputs.batch_size(), inputs.preview(),
                *widgets([knob for knob in sampling_knobs() if knob.name in SAMPLED],
                         **dict.fromkeys(SAMPLED, {"folded": True}))],
            outputs=[images, io.Image.Output(display_name="panels",
                                             tooltip="The image and the picture below it."),
                     *others],
            **search_aliases("controlnet", "depth", "canny", "edges", "subject"))

    @classmethod
    @readable_errors
    def execute(cls, model: weights.LoadedModel, image: torch.Tensor, control: str, subject: str,
                prompt: str, negative: str, batch_size: int, preview: bool,
                method: Method | None = None, **knobs: Any) -> io.NodeOutput:
        panel, rows = panel_of(model, image)
        height = (size := model.module.two_panels)[1]
        fields, _ = keeping.fields_of(panel, rows, None, model, batch_size)
        words = two_panels.Control(control, prompt, subject).written(size)
        drawing = Drawing(words, requests.typed_words(words, negative).negative,
                          method or default_method(), requests.sampling_of(knobs), size, batch_size,
                          **fields)
        request = requests.request_of(model, drawing, named=method is not None)
        runs = [running.NodeRun(part, model) for part in request.parts()]
        ui = cls.draw(runs, preview, together=False)
        panels, *others = outcome.of(runs)
        lower = panels[:, height // 2 :] if isinstance(panels, torch.Tensor) else panels
        return io.NodeOutput(lower, panels, *others, ui=ui)


def panel_of(model: weights.LoadedModel, image: torch.Tensor) -> tuple[TokenPictures, int]:
    """The tokens of two panels, the upper one this image, and the rows of the upper one.

    Raises SSDError for a model that draws no panels.
    """
    model.module.require_controls()
    width, height = model.module.two_panels
    panel, *_ = fitting.fitted_to(rgb(image)[:1], (width, height // 2), 1, fitting.FILL)
    tokens, rows, _ = fitting.encoded(model, panel, fitting.EXTEND, (width, height))
    return tokens, rows
