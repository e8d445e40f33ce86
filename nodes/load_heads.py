"""Load Draft Heads."""

from __future__ import annotations

from comfy_api.v0_0_2 import io

from . import folders, inputs
from .errors import readable_errors
from .language import localized_for_all, show_text
from .later import draft_heads
from .types import LOAD, LoadedModel, ModelType


class LoadHeads(io.ComfyNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="SSD_LoadHeads", display_name="Load Draft Heads (SSD)", category=LOAD,
            description="Gives a loaded model other draft heads, for example to compare two files "
                        "of heads. Load Model finds a model's own heads by itself.",
            inputs=[inputs.model(tooltip="The model that these heads were made for."),
                    inputs.heads()],
            outputs=[ModelType.Output(display_name="model",
                                      tooltip="The same model with these heads.")],
            hidden=[io.Hidden.unique_id],
            search_aliases=["draft model", "speculative"])

    @classmethod
    def validate_inputs(cls, heads: str | None = None) -> bool | str:
        wrong = folders.complaint_of_type(heads) or folders.complaint_about_heads(heads)
        return localized_for_all(wrong or "") or True

    @classmethod
    def fingerprint_inputs(cls, heads: str | None = None) -> str:
        return folders.heads_fingerprint(heads)

    @classmethod
    @readable_errors
    def execute(cls, model: LoadedModel, heads: str) -> io.NodeOutput:
        loaded, line = draft_heads.with_heads(model.backbone, heads)
        show_text(cls.hidden.unique_id, line)
        return io.NodeOutput(loaded)
