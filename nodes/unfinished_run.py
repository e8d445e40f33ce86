"""Unfinished Run."""

from __future__ import annotations

from comfy_api.v0_0_2 import io

from . import unfinished
from .errors import noted
from .language import said
from .newer import found_by
from .types import CATEGORY, StartedPictures, StartedType


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
            **found_by("resume", "interrupted", "cancelled", "recover"))

    @classmethod
    def fingerprint_inputs(cls) -> str:
        return unfinished.fingerprint()

    @classmethod
    @noted
    def execute(cls) -> io.NodeOutput:
        recipes = unfinished.kept()
        lines = [f"{n}: {one['prompt']} (seed {one['seed']}, {one['method']} on "
                 f"{one['backbone']['name']}, {one['stopped_rows']} of "
                 f"{one['tokens']['shape'][0]} rows)" for n, one in enumerate(recipes, 1)]
        return io.NodeOutput(StartedPictures(recipes), said("\n".join(lines)))
