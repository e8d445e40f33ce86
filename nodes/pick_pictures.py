"""Pick Pictures."""

from __future__ import annotations

import re

from comfy_api.v0_0_2 import io
from comfy_execution.graph_utils import ExecutionBlocker

from ..ssd_core.errors import SSDError
from .errors import readable_errors
from .language import show_text
from .newer import search_aliases
from .types import DRAW, PartialPictures, StartedType

NOTHING_YET = ("Nothing is picked yet: write the numbers of the pictures you like, for example "
               "1, 3, and run again. What is drawn already is not drawn again.")


class PickPictures(io.ComfyNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="SSD_PickPictures", display_name="Pick Pictures (SSD)", category=DRAW,
            description="Takes the pictures you like from those that Start Pictures has begun. "
                        "While nothing is picked, the nodes after it wait.",
            inputs=[
                StartedType.Input("started", tooltip="From Start Pictures."),
                io.String.Input("pictures", default="",
                                tooltip="Their numbers in the overview, for example 1, 3 or 2-4. "
                                        "Empty = none yet."),
            ],
            outputs=[StartedType.Output(display_name="picked", tooltip="For Finish Pictures.")],
            hidden=[io.Hidden.unique_id], **search_aliases("choose", "select seeds"))

    @classmethod
    @readable_errors
    def execute(cls, started: PartialPictures, pictures: str) -> io.NodeOutput:
        wanted = numbers(pictures, len(started.recipes))
        if not wanted:
            show_text(cls.hidden.unique_id, NOTHING_YET)
            return io.NodeOutput(ExecutionBlocker(None))
        return io.NodeOutput(PartialPictures(tuple(started.recipes[n - 1] for n in wanted)))


def numbers(text: str, count: int) -> list[int]:
    """The numbers from 1 to `count` in a text such as "1, 3-5", in its order, without repeats.

    Raises SSDError for any other text.
    """
    picked: list[int] = []
    for part in re.split(r"[\s,，、;]+", re.sub(r"\s*[-–]\s*", "-", text.strip())):
        match = re.fullmatch(r"(\d{1,3})(?:-(\d{1,3}))?", part)
        ends = [int(end) for end in match.groups() if end] if match else []
        if part and not (ends and 1 <= ends[0] <= ends[-1] <= count):
            raise SSDError(f"pictures {part!r}: write numbers from 1 to {count}, such as 1, 3 or "
                           "2-4")
        picked += range(ends[0], ends[-1] + 1) if ends else []
    return list(dict.fromkeys(picked))
