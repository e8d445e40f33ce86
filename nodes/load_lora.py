"""Load LoRA."""

from __future__ import annotations

from pathlib import Path

from comfy_api.v0_0_2 import io

from ..ssd_core.backbones.reading.adapters import STRENGTHS
from ..ssd_core.errors import SSDError
from ..ssd_core.weights.registry import NONE
from . import folders, inputs
from .errors import readable_errors
from .language import localized_for_all, show_text
from .later import weights
from .types import LOAD, LoadedModel, ModelType


class LoadLora(io.ComfyNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        low, high = STRENGTHS
        return io.Schema(
            node_id="SSD_LoadLora", display_name="Load LoRA (SSD)", category=LOAD,
            description="Merges a LoRA into a loaded model, as PEFT does: for a style or a subject "
                        "that somebody trained it on. Several of these nodes in a row merge "
                        "several. The model is read once more for it, so that both are in memory.",
            inputs=[
                inputs.model(tooltip="From Load Model, or from another Load LoRA."),
                io.Combo.Input("lora", options=choices(), default=NONE, optional=True,
                               tooltip="What lies in ComfyUI's model folder loras: folders that "
                                       "PEFT has saved, and .safetensors files. One of another "
                                       "model is refused when the node runs. none = the model as "
                                       "it is."),
                io.Float.Input("strength", default=1.0, min=low, max=high, step=0.05,
                               optional=True,
                               tooltip="How much of it is merged. 1 = as it was trained, 0 = the "
                                       "model's own picture; below 0 it does the opposite.")],
            outputs=[ModelType.Output(display_name="model",
                                      tooltip="The model with this LoRA, and the same draft "
                                              "heads.")],
            hidden=[io.Hidden.unique_id],
            search_aliases=["lora", "adapter", "peft", "style"])

    @classmethod
    def validate_inputs(cls, lora: str | None = None) -> bool | str:
        wrong = folders.complaint_of_type(lora) or complaint(lora)
        return localized_for_all(wrong or "") or True

    @classmethod
    def fingerprint_inputs(cls, lora: str | None = None, **_: object) -> str:
        return folders.fingerprint(folders.registry().loras().get(lora or ""))

    @classmethod
    @readable_errors
    def execute(cls, model: LoadedModel, lora: str, strength: float) -> io.NodeOutput:
        if lora == NONE:
            return io.NodeOutput(model)
        backbone = with_lora(model.backbone, lora_path(lora), strength)
        drafts = weights.heads(model.heads.path, backbone) if model.heads else None
        named = ", ".join(f"{each.name} {each.strength:g}" for each in backbone.module.lora)
        show_text(cls.hidden.unique_id, f"LoRA: {named}.")
        return io.NodeOutput(LoadedModel(backbone, drafts))


def choices() -> list[str]:
    return [NONE, *folders.registry().loras()]


def complaint(name: str | None) -> str | None:
    """Why a name cannot be chosen, or None."""
    if name is None or name in choices():
        return None
    return f"LoRA {name!r} is not here: put it into ComfyUI's model folder loras"


def lora_path(name: str) -> Path:
    """The file or folder of a name in the list; SSDError if it is not there."""
    if line := complaint(name):
        raise SSDError(line)
    return folders.registry().loras()[name]


def with_lora(backbone: weights.LoadedBackbone, path: Path,
              strength: float) -> weights.LoadedBackbone:
    """The same backbone with one more adapter."""
    _, (file, dtype, offload, graphs, earlier) = backbone.again
    return weights.backbone(file, dtype, offload, graphs, (*earlier, (path, float(strength))))
