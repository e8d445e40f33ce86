"""Train Draft Heads."""

from __future__ import annotations

from comfy_api.v0_0_2 import io

from ..ssd_core.errors import SSDError
from ..ssd_core.train import HEADS, LEAST_STEPS, ROW
from . import folders, inputs
from .errors import readable_errors
from .language import localized, localized_for_all, show_text
from .later import learning, own_pictures
from .types import LOAD, LoadedModel, ModelType

NEW_PICTURES = 20


class TrainHeads(io.ComfyNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="SSD_TrainHeads", display_name="Train Draft Heads (SSD)", category=LOAD,
            description="Lets draft heads learn from the pictures that you have drawn with this "
                        "model: ssd then draws pictures closer to the model's own, and the other "
                        "methods that use them take fewer passes. New drafts are used only if "
                        "more of them are accepted on pictures kept apart. After an interrupt the "
                        "next run goes on.",
            inputs=[
                inputs.model(tooltip="The model that drew the pictures."),
                io.String.Input("folder", default="", optional=True,
                                tooltip="A folder in ComfyUI's output folder, with its "
                                        "subfolders; empty = the whole output folder. Only "
                                        "pictures of this very model count, saved by Save Image "
                                        "(SSD), the app or the command line. The report counts "
                                        "the others."),
                io.Combo.Input("kind", options=list(inputs.DRAFTS), default="both", optional=True,
                               tooltip="heads = horizontal and vertical draft heads, for ssd, "
                                       "strict, mtp, hawk and lantern. row drafter = drafts whole "
                                       "rows, for knob 'drafter' = row. both = one after the "
                                       "other, or only the row drafter where memory is short."),
                io.Int.Input("new_pictures", default=NEW_PICTURES, min=0, max=10000,
                             optional=True,
                             tooltip="The drafts learn again when there are so many more pictures "
                                     "than last time; until then the model passes through with "
                                     "the drafts that there are. 0 = they learn at every run."),
                io.Int.Input(
                    "epochs", default=3, min=1, max=100,
                    tooltip="How often each picture is seen, on average. Few pictures are seen "
                            f"more often: draft heads learn for at least {LEAST_STEPS[HEADS]} "
                            f"steps, the row drafter for {LEAST_STEPS[ROW]}.",
                    optional=True, advanced=True),
            ],
            outputs=[ModelType.Output(display_name="model",
                                      tooltip="The same model, with the new drafts or with "
                                              "those before, whichever are accepted more."),
                     io.String.Output(display_name="report",
                                      tooltip="How many drafts are accepted now and before, how "
                                              "many pictures they learned from, and which were "
                                              "left out.")],
            hidden=[io.Hidden.unique_id], is_output_node=True,
            search_aliases=["distill", "finetune", "draft model", "speculative"])

    @classmethod
    def validate_inputs(cls, folder: str | None = None) -> bool | str:
        return localized_for_all(folders.complaint_about_pictures(folder) or "") or True

    @classmethod
    def fingerprint_inputs(cls, folder: str | None = None, new_pictures: int | None = None,
                           **_) -> float | int:
        """A number that changes about when there are enough new pictures to learn again."""
        if new_pictures == 0:
            return float("nan")  # never equal to itself
        try:
            paths = own_pictures.pngs_below([folders.pictures_folder(folder or "")])
            pictures = sum(1 for _ in paths)
        except SSDError:
            return 0
        return pictures // (new_pictures or NEW_PICTURES)

    @classmethod
    @readable_errors
    def execute(cls, model: LoadedModel, folder: str, kind: str, new_pictures: int,
                epochs: int) -> io.NodeOutput:
        node = cls.hidden.unique_id
        lessons = learning.Lessons.of(model, folder, kind, epochs)
        text = learning.learn_if_due(lessons, new_pictures, node)
        show_text(node, text)
        return io.NodeOutput(lessons.drafts(), localized(text), ui={"text": [localized(text)]})
