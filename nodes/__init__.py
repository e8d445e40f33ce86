"""The ComfyUI nodes, one file each; NODES below is their list.

This is the only Python here that knows ComfyUI. The engine (`ssd_core`) does the decoding.
"""

from __future__ import annotations

from comfy_api.v0_0_2 import ComfyExtension, io

from . import errors, routes
from .compare import Compare
from .control import Control
from .doctor import Doctor
from .edit_by_words import EditByWords
from .finish_pictures import FinishPictures
from .folders import estimates, register_folders
from .image_to_tokens import ImageToTokens
from .load_heads import LoadHeads
from .load_lora import LoadLora
from .load_model import LoadModel
from .load_picture import LoadPicture
from .method import MethodNode
from .pick_pictures import PickPictures
from .run_viewer import RunViewer
from .sampler import Sampler
from .save_image import SaveImage
from .start_pictures import StartPictures
from .tokens_to_image import TokensToImage
from .train_heads import TrainHeads

NODES: list[type[io.ComfyNode]] = [
    LoadModel, LoadHeads, LoadLora, TrainHeads, Sampler, MethodNode, StartPictures, PickPictures,
    FinishPictures, Control, LoadPicture, EditByWords, ImageToTokens, TokensToImage, Compare,
    RunViewer, SaveImage, Doctor,
]


class SSDExtension(ComfyExtension):
    """The extension that ComfyUI registers."""

    async def get_node_list(self) -> list[type[io.ComfyNode]]:
        register_folders()  # not in on_load, which ComfyUI 0.3.64 never calls
        routes.register()
        errors.register()
        estimates()  # read here, before threads ask for them
        return NODES
