"""Control: draw the picture that belongs to a depth map or an edge map."""

from __future__ import annotations

import torch
from comfy_api.v0_0_2 import io

from ..ssd_core.backbones.lumina2 import CONTROLS, TWO_PANELS, Lumina2, control_prompt
from ..ssd_core.engine.methods import Method, default_method
from ..ssd_core.errors import SSDError
from ..ssd_core.output.knobs import sampling_knobs
from . import fitting, inputs, keeping, outcome, requests, running, weights
from .drawing import DrawingNode
from .errors import readable_errors
from .newer import ADVANCED, search_aliases
from .types import MethodType, TokenPictures
from .widgets import original_widgets

SAMPLED = ("cfg", "temperature", "top_k")
AUTHORS_TOP_K = 4096
PANEL = (TWO_PANELS[0], TWO_PANELS[1] // 2)  # px of one panel
SIZE = f"{TWO_PANELS[0]}x{TWO_PANELS[1]}"


class Control(DrawingNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        images, *others = outcome.outputs()
        return cls.drawing_schema(
            node_id="SSD_Control", display_name="Control by Depth or Canny (SSD)",
            description="Draws the picture that belongs to a depth map or an edge map, with "
                        "Lumina-mGPT 2.0-Omni. The map is the upper half of a larger picture; the "
                        "lower half is drawn below it and cut out.",
            inputs=[
                inputs.backbone(tooltip="Lumina-mGPT-2.0-Omni, from Load Backbone."),
                inputs.heads(),
                MethodType.Input("method", optional=True,
                                 tooltip="From SSD Schedule or Baseline Method. Without it the "
                                         "method is exact."),
                io.Image.Input("image", tooltip="The depth map or edge map, from another node. It "
                                                f"is scaled and cropped to {PANEL[0]}x{PANEL[1]}; "
                                                "of a batch the first is used."),
                io.Combo.Input("control", options=list(CONTROLS), default="depth",
                               tooltip="What the image is: " + ", ".join(
                                   f"{name} = a {phrase}" for name, phrase in CONTROLS.items())
                                       + "."),
                *inputs.prompts(), *inputs.seed(), inputs.batch_size(), inputs.preview(),
                *original_widgets(
                    [knob for knob in sampling_knobs() if knob.name in SAMPLED], cfg=ADVANCED,
                    temperature=ADVANCED, top_k={**ADVANCED, "default": AUTHORS_TOP_K})],
            outputs=[images, io.Image.Output(display_name="panels",
                                             tooltip="The map and the picture below it."),
                     *others],
            **search_aliases("controlnet", "depth", "canny", "edges"))

    @classmethod
    @readable_errors
    def execute(cls, backbone: weights.LoadedBackbone, image: torch.Tensor, control: str,
                prompt: str, negative: str, batch_size: int, preview: str,
                heads: weights.LoadedHeads | None = None, method: Method | None = None,
                **widgets: int | float) -> io.NodeOutput:
        keep, rows = panel_of(backbone, image)
        fields, _ = keeping.fields_of(keep, rows, None, backbone, batch_size)
        request = requests.request_of(
            backbone, heads, method or default_method(), requests.sampling_of(widgets),
            control_prompt(control, prompt), negative, SIZE, pictures=batch_size,
            named=method is not None, **fields)
        runs = [running.NodeRun(part, backbone, heads) for part in request.parts()]
        ui = cls.draw(runs, preview, together=False)
        panels, *others = outcome.of(runs)
        lower = panels[:, PANEL[1] :] if isinstance(panels, torch.Tensor) else panels
        return io.NodeOutput(lower, panels, *others, ui=ui)


def panel_of(backbone: weights.LoadedBackbone, image: torch.Tensor) -> tuple[TokenPictures, int]:
    """The tokens of two panels, the upper one this image, and the rows of the upper one.

    Raises SSDError for a backbone that draws no panels.
    """
    if not isinstance(backbone.module, Lumina2):
        raise SSDError(f"{backbone.module.name} draws no panels: load Lumina-mGPT-2.0-Omni")
    panel, *_ = fitting.fitted_to(image[:1, ..., :3], PANEL, 1, fitting.FILL)
    tokens, rows, _ = fitting.encoded(backbone, panel, fitting.EXTEND, SIZE)
    return tokens, rows
