"""Unfinished Run."""

from __future__ import annotations

from comfy_api.v0_0_2 import io

from . import unfinished
from .errors import readable_errors
from .language import localized
from .newer import search_aliases
from .types import CATEGORY, PartialPictures, StartedType


class UnfinishedRun(io.ComfyNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="SSD_UnfinishedRun", display_name="Unfinished Run (SSD)", category=CATEGORY,
            description="Gives back what the latest interrupted run had drawn, also after a "
                        "restart of ComfyUI. Finish draws the rest.",
            inputs=[],
            outputs=[StartedType.Output(display_name="started", tooltip="For Finish, or for "
                                                                        "Pick."),
                     io.String.Output(display_name="report", tooltip="Which run it is.")],
            **search_aliases("resume", "interrupted", "cancelled", "recover"))

    @classmethod
    def fingerprint_inputs(cls) -> str:
        return unfinished.fingerprint()

    @classmethod
    @readable_errors
    def execute(cls) -> io.NodeOutput:
        recipes = unfinished.load()
        lines = [f"{n}: {recipe['prompt']} (seed {recipe['seed']}, {recipe['method']} on "
                 f"{recipe['backbone']['name']}, {recipe['stopped_rows']} of "
                 f"{recipe['tokens']['shape'][0]} rows)" for n, recipe in enumerate(recipes, 1)]
        return io.NodeOutput(PartialPictures(recipes), localized("\n".join(lines)))
