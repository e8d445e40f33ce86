"""The base class of the nodes that draw, and their outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from comfy_api.v0_0_2 import io

from . import limits, previews
from .later import running, things
from .types import RunType


def outputs() -> list[io.Output]:
    return [
        io.Image.Output(display_name="images", tooltip="The pictures."),
        RunType.Output(display_name="run",
                       tooltip="The pictures as tokens, with words, seed, statistics and report: "
                               "for Save Image, Run Viewer, Run Info, Finish, Edit by Words and "
                               "'picture' of SSD Sampler.")]


class DrawingNode(io.ComfyNode):
    """A node that draws pictures and shows their rows on itself while they are decoded."""

    @classmethod
    def drawing_schema(cls, category: str, **fields: Any) -> io.Schema:
        """A schema of `fields` and of what all these nodes need for their previews."""
        return io.Schema(category=category, hidden=previews.HIDDEN,
                         has_intermediate_output=True, **fields)  # a cached `ui` is sent again

    @classmethod
    def validate_inputs(cls, prompt: str | None = None, *, method: Any = None,
                        method_1: Any = None, method_2: Any = None, method_3: Any = None,
                        method_4: Any = None, method_5: Any = None,
                        method_6: Any = None) -> bool | str:
        """Check the prompt; it is None if it is linked or if the node has none.

        ComfyUI passes lists of methods without being asked. Were they positional, it would repeat
        the complaint for each; by **kwargs it would not check any other input.
        """
        return limits.complaint_about_prompt(prompt) or True

    @classmethod
    def draw(cls, runs: Sequence[running.NodeRun], preview: bool, **options: Any) -> dict | None:
        """Draw the runs on this node and return its `ui`; options: see `running.run_all`."""
        ui = running.run_all(runs, previews.NodeRef.of(cls.hidden), preview, **options)
        things.remember(runs, cls.hidden)
        return ui
