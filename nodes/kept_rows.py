"""Kept Rows."""

from __future__ import annotations

import torch
from comfy_api.v0_0_2 import io

from ..ssd_core.output import kept_rows
from .errors import readable_errors
from .newer import search_aliases
from .types import CATEGORY, TokenPictures, TokensType


class KeptRows(io.ComfyNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="SSD_KeptRows", display_name="Kept Rows (SSD)", category=CATEGORY,
            description="Holds the rows or cells that a picture took over from another one. It "
                        "comes with a picture that was drawn outside ComfyUI and dropped onto the "
                        "page, so that it is drawn again with the same ones.",
            inputs=[io.String.Input("text", multiline=True, default="",
                                    tooltip="The rows of tokens, as text. They are written by the "
                                            "program that drew the picture.")],
            outputs=[TokensType.Output(display_name="tokens", tooltip="For 'keep' of SSD Sampler."),
                     io.Int.Output(display_name="keep_rows",
                                   tooltip="How many rows there are; connect it to keep_rows."),
                     io.Mask.Output(display_name="mask",
                                    tooltip="White where the picture was redrawn, if it kept "
                                            "cells and not rows; for 'mask' of SSD Sampler.")],
            **search_aliases("keep", "tokens"))

    @classmethod
    @readable_errors
    def execute(cls, text: str) -> io.NodeOutput:
        rows = kept_rows.read(text)
        tokens = TokenPictures(rows.tokens[None], rows.backbone, rows.sha256)
        redrawn = torch.zeros_like(rows.tokens) if rows.redrawn is None else rows.redrawn
        return io.NodeOutput(tokens, rows.rows, redrawn[None].float())
