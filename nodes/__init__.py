"""The ComfyUI nodes, one file each; NODES below is their list.

This is the only Python here that knows ComfyUI. The engine (`ssd_core`) does the decoding.
"""

from __future__ import annotations

from comfy_api.v0_0_2 import ComfyExtension, io

from . import errors, routes
from .acceptance_map import AcceptanceMap
from .baseline import BaselineMethod
from .compare_methods import CompareMethods
from .control import Control
from .decode_tokens import DecodeTokens
from .doctor import Doctor
from .edit_by_words import EditByWords
from .encode_image import EncodeImage
from .finish import Finish
from .folders import estimates, register_folders
from .glm_decode import GlmDecode
from .kept_rows import KeptRows
from .load_backbone import LoadBackbone
from .load_heads import LoadHeads
from .load_picture import LoadPicture
from .pick import Pick
from .race import Race
from .replay import Replay
from .sampler import Sampler
from .save_image import SaveImage
from .schedule import Schedule
from .start_seeds import StartSeeds
from .unfinished_run import UnfinishedRun

NODES: list[type[io.ComfyNode]] = [
    LoadBackbone, LoadHeads, Schedule, BaselineMethod, Sampler, StartSeeds, Pick, Finish,
    UnfinishedRun, Race, CompareMethods, DecodeTokens, EncodeImage, SaveImage, Replay,
    AcceptanceMap, Doctor, KeptRows, LoadPicture, EditByWords, Control, GlmDecode,
]


class SSDExtension(ComfyExtension):
    """The extension that ComfyUI registers."""

    async def get_node_list(self) -> list[type[io.ComfyNode]]:
        register_folders()  # not in on_load, which ComfyUI 0.3.64 never calls
        routes.register()
        errors.register()
        estimates()  # read here, before threads ask for them
        return NODES
