"""The ComfyUI nodes, one file each; NODES below is their list.

This is the only Python here that knows ComfyUI. The engine (`ssd_core`) does the decoding.
"""

from __future__ import annotations

from comfy_api.v0_0_2 import ComfyExtension, io

from . import errors, routes
from .compare import Compare
from .edit_by_words import EditByWords
from .encode import Encode
from .finish import Finish
from .folders import estimates, register_folders
from .load_heads import LoadHeads
from .load_lora import LoadLora
from .load_model import LoadModel
from .load_picture import LoadPicture
from .run_info import RunInfo
from .run_viewer import RunViewer
from .sampler import Sampler
from .save_image import SaveImage
from .train_heads import TrainHeads

NODES: list[type[io.ComfyNode]] = [
    LoadModel, LoadHeads, LoadLora, TrainHeads, Sampler, Finish, LoadPicture, Encode, EditByWords,
    Compare, RunViewer, RunInfo, SaveImage,
]


class SSDExtension(ComfyExtension):
    """The extension that ComfyUI registers."""

    async def get_node_list(self) -> list[type[io.ComfyNode]]:
        register_folders()
        routes.register()
        errors.register()
        estimates()  # read here, before threads ask for them
        return NODES
