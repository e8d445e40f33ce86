"""Load Model."""

from __future__ import annotations

from comfy_api.v0_0_2 import io

from ..ssd_core.engine.graphs import MODES
from ..ssd_core.weights.catalogue import CATALOGUE
from ..ssd_core.weights.eight_bits import EITHER
from . import folders, inputs
from .errors import readable_errors
from .language import clear_text, localized_for_all, show_text
from .later import advice, draft_heads, labels, model_size, weights
from .types import LOAD, ModelType

NO_CARD = ("Offload is not used: it frees the memory of a graphics card, and ComfyUI runs on the "
           "CPU.")
DTYPES = ["auto", "bf16", "fp16", "fp32", "int8", "int4", "fp8", EITHER]


class LoadModel(io.ComfyNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="SSD_LoadModel", display_name="Load Model (SSD)", category=LOAD,
            description="Loads the model that draws a picture token by token, and its draft heads "
                        "if there are any. 'postcard' is bundled and needs no download. "
                        "Janus-Pro, SimpleAR, LlamaGen, Lumina-mGPT, Anole, Emu3, Emu3.5, Tar and "
                        "GLM-Image load from your own files.",
            inputs=[
                io.Combo.Input("model", options=folders.registry().choices(), default="postcard",
                               tooltip="Bundled models, those in the model folder ssd_backbones, "
                                       "and known ones. If you choose one that is not here yet, "
                                       "the node offers its download."),
                inputs.heads(),
                io.Combo.Input("dtype", options=DTYPES, default="auto", optional=True,
                               tooltip="Precision of the weights. auto = int8 for postcard (fp32 "
                                       "on a CPU that is slow with integers), fp32 for other "
                                       "small models, otherwise bf16 (or fp16 on a card and "
                                       "fp32 on a CPU that lacks bf16). int8 is the fastest on "
                                       "CPUs with VNNI. fp8 needs an RTX 40 card or newer. "
                                       "int4 saves memory, not time. fp8 and int4 need torchao. "
                                       "8bit = the faster of int8 and fp8 on your machine."),
                io.Boolean.Input("offload", default=False, optional=True,
                                 tooltip="For cards with little memory: keeps only the model or "
                                         "its picture decoder on the card at a time."),
                io.Combo.Input(
                    "graphs", options=list(MODES), default=MODES[0],
                    tooltip="For NVIDIA cards. auto = forward passes are recorded once and "
                            "replayed, which is faster. off = use it if a run warns about "
                            "graphs.", optional=True, advanced=True),
            ],
            outputs=[ModelType.Output(display_name="model",
                                      tooltip="For SSD Sampler and the other nodes of this "
                                              "pack.")],
            hidden=[io.Hidden.unique_id],
            search_aliases=["checkpoint", "model loader", "backbone", "postcard", "janus", "emu3",
                             "lumina", "llamagen"])

    @classmethod
    def validate_inputs(cls, model: str | None = None) -> bool | str:
        """Heads are checked by ComfyUI: it repeats a complaint for each input that this takes."""
        wrong = folders.complaint_of_type(model) or folders.complaint_about_backbone(model)
        return localized_for_all(wrong or "") or True

    @classmethod
    def fingerprint_inputs(cls, model: str | None = None, heads: str | None = None, **_) -> str:
        return f"{folders.backbone_fingerprint(model)} {folders.heads_fingerprint(heads)}"

    @classmethod
    @readable_errors
    def execute(cls, model: str, heads: str, dtype: str, offload: bool,
                graphs: str) -> io.NodeOutput:
        clear_text(cls.hidden.unique_id)
        backbone = weights.backbone(folders.backbone_path(model), dtype, offload, graphs)
        loaded, line = draft_heads.with_heads(backbone, heads)
        lines = advice.advice_lines(CATALOGUE[model]) if model in CATALOGUE else []
        if dtype == EITHER:
            lines.append(f"dtype 8bit is {model_size.stored_dtype(loaded.module)} on this machine")
        if offload and not weights.may_offload():
            lines.append(NO_CARD)
        lines += [line, *labels.known_lines(loaded.module)]
        show_text(cls.hidden.unique_id, "\n".join(lines))
        return io.NodeOutput(loaded)
