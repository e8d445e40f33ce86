"""As much of ComfyUI as the nodes touch, in its oldest supported form (0.33).

An argument that 0.33 does not know is an error here as it is there. `install` puts the stubs
into sys.modules; `load_pack` then imports the pack from its folder, as ComfyUI does.
"""

from __future__ import annotations

import importlib.util
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace

import torch

ROOT = Path(__file__).resolve().parents[2]
PACK = "ssd_pack_under_test"


class Input:
    io_type = "*"

    def __init__(self, id, display_name=None, optional=False, tooltip=None, lazy=None,
                 extra_dict=None, advanced=None):
        self.id, self.optional, self.tooltip = id, optional, tooltip
        self.advanced = advanced
        self.display_name = display_name or id
        self.extra_dict = extra_dict or {}
        self.widget = False


class WidgetInput(Input):
    def __init__(self, id, display_name=None, optional=False, tooltip=None, lazy=None,
                 default=None, socketless=None, extra_dict=None, advanced=None, **own):
        super().__init__(id, display_name, optional, tooltip, lazy, extra_dict, advanced)
        self.widget, self.default = True, default
        known = self.own
        assert set(own) <= set(known), f"{id}: 0.33 does not know {set(own) - set(known)}"
        for name in known:
            setattr(self, name, own.get(name))


class Output:
    io_type = "*"

    def __init__(self, id=None, display_name=None, tooltip=None, is_output_list=False):
        self.id, self.display_name, self.tooltip = id, display_name, tooltip


class DynamicCombo:
    """A list whose choices have inputs of their own."""

    io_type = "COMFY_DYNAMICCOMBO_V3"

    @dataclass
    class Option:
        key: str
        inputs: list

    class Input(Input):
        io_type = "COMFY_DYNAMICCOMBO_V3"

        def __init__(self, id, options, display_name=None, optional=False, tooltip=None, lazy=None,
                     extra_dict=None):
            super().__init__(id, display_name, optional, tooltip, lazy, extra_dict)
            self.options, self.widget, self.default = options, True, self.extra_dict["default"]


def make_type(io_type: str, own: tuple[str, ...] | None = None) -> type:
    """A type with Input and Output; `own` names the arguments of its widget."""
    base = Input if own is None else WidgetInput
    made = type(io_type, (), {
        "io_type": io_type,
        "Input": type("Input", (base,), {"io_type": io_type, "own": own}),
        "Output": type("Output", (Output,), {"io_type": io_type})})
    return made


@dataclass
class Schema:
    node_id: str
    display_name: str = None
    category: str = "sd"
    inputs: list = None
    outputs: list = None
    hidden: list = None
    description: str = ""
    is_input_list: bool = False
    is_output_node: bool = False
    is_deprecated: bool = False
    is_experimental: bool = False
    is_api_node: bool = False
    not_idempotent: bool = False
    enable_expand: bool = False
    search_aliases: list = None
    has_intermediate_output: bool = False


class NodeOutput:
    def __init__(self, *args, ui=None, expand=None, block_execution=None):
        self.args, self.ui = args, ui

    def __getitem__(self, index):
        return self.args[index]


class ComfyNode:
    hidden = SimpleNamespace(unique_id="5", prompt={"5": {}}, extra_pnginfo={"workflow": {"n": 1}})


class ComfyExtension:
    pass


class ExecutionBlocker:
    def __init__(self, message):
        self.message = message


class ModelPatcher:
    """Remembers where the weights are; moves nothing. The rules are ComfyUI's."""

    patches_uuid = "none"

    def __init__(self, model, load_device, offload_device, size=0):
        model.device, self.size = offload_device, size
        model.model_loaded_weight_memory, model.model_lowvram = 0, False
        self.model, self.load_device, self.offload_device = model, load_device, offload_device
        self.loads: list[float] = []

    def model_size(self):
        return self.size or sum(p.numel() * p.element_size() for p in self.model.parameters())

    def partially_load(self, device_to, extra_memory=0, force_patch_weights=False):
        self.loads.append(extra_memory)
        used = self.loaded_size()
        if not self.model.model_lowvram and used > 0:
            return 0
        self.load(device_to, used + extra_memory, full_load=used + extra_memory > self.size)
        return self.loaded_size() - used

    def partially_unload(self, device_to, memory_to_free=0):
        return memory_to_free

    def loaded_size(self):
        return self.model.model_loaded_weight_memory

    def load(self, device_to=None, lowvram_model_memory=0, force_patch_weights=False,
             full_load=False):
        self.model.model_loaded_weight_memory = self.size
        self.model.model_lowvram = not full_load

    def detach(self, unpatch_all=True):
        self.unpatch_model(self.offload_device, unpatch_all)

    def unpatch_model(self, device_to=None, unpatch_weights=True):
        self.model.to(device_to)
        self.model.device, self.model.model_loaded_weight_memory = device_to, 0
        self.model.model_lowvram = False


class InterruptProcessingException(BaseException):  # as in 0.33
    pass


class OutOfMemory(torch.OutOfMemoryError):  # ComfyUI's own name for it is an alias as well
    pass


class Manager:
    """comfy.model_management: what was asked of it, and the switches that tests flip."""

    def __init__(self):
        self.interrupt_at: int | None = None
        self.checks, self.loads, self.unloads = 0, [], 0

    def check(self):
        self.checks += 1
        if self.interrupt_at is not None and self.checks >= self.interrupt_at:
            self.interrupt_at = None
            raise InterruptProcessingException

    def load(self, patchers, memory_required=0, force_full_load=False):
        self.loads.append((list(patchers), memory_required, force_full_load))

    def unload(self):
        self.unloads += 1

    def module(self) -> dict:
        cpu = torch.device("cpu")
        return {
            "OOM_EXCEPTION": OutOfMemory, "current_loaded_models": [],
            "free_memory": lambda wanted, device: None,
            "InterruptProcessingException": InterruptProcessingException,
            "throw_exception_if_processing_interrupted": self.check,
            "load_models_gpu": self.load, "unload_all_models": self.unload,
            "soft_empty_cache": lambda: None, "pin_memory": lambda tensor: False,
            "is_oom": lambda error: isinstance(error, OutOfMemory), "get_torch_device": lambda: cpu,
            "unet_offload_device": lambda: cpu, "get_free_memory": lambda device: 2**30,
            "get_total_memory": lambda device: 2**31, "get_torch_device_name": str}


class Server:
    def __init__(self):
        self.client_id, self.sent, self.texts, self.waiting = "tab", [], [], 0
        self.prompt_queue = SimpleNamespace(get_tasks_remaining=lambda: self.waiting)
        self.asked = {}
        self.handlers = []
        self.add_on_prompt_handler = self.handlers.append
        take = lambda path: partial(self.asked.setdefault, path)  # noqa: E731
        self.routes = SimpleNamespace(get=take, post=take)

    def send_sync(self, event, data, sid=None):
        self.sent.append((event, data, sid))

    def send_progress_text(self, text, node_id, sid=None):
        self.texts.append((text, node_id, sid))


class ProgressBar:
    seen: list[tuple[int, int]] = []
    frames: list[tuple] = []

    def __init__(self, total, node_id=None):
        self.node_id = node_id

    def update_absolute(self, value, total=None, preview=None):
        if preview is None:
            self.seen.append((value, total))
        else:
            self.frames.append(preview)


class Folders:
    """folder_paths over one folder of models and one of outputs."""

    def __init__(self, base: Path):
        self.models_dir = str(base / "models")
        self.output, self.input = base / "output", base / "input"
        self.input.mkdir(exist_ok=True)
        self.folder_names_and_paths: dict[str, tuple[list[str], set[str]]] = {
            "loras": ([str(base / "models" / "loras")], {".safetensors"})}

    def module(self) -> dict:
        return {"models_dir": self.models_dir,
                "folder_names_and_paths": self.folder_names_and_paths,
                "add_model_folder_path": self.add, "get_folder_paths": self.paths,
                "get_input_directory": lambda: str(self.input),
                "get_annotated_filepath": lambda name: str(
                    self.input / name.removesuffix(" [input]")),
                "exists_annotated_filepath": lambda name: (
                    self.input / name.removesuffix(" [input]")).is_file(),
                "get_output_directory": lambda: str(self.output),
                "get_user_directory": lambda: str(self.output.with_name("user")),
                "get_temp_directory": lambda: str(self.output.with_name("temp")),
                "get_save_image_path": self.save_path}

    def add(self, name, path, is_default=False):
        paths, _suffixes = self.folder_names_and_paths.setdefault(name, ([], set()))
        if path not in paths:
            paths.append(path)

    def paths(self, name):
        return list(self.folder_names_and_paths[name][0])

    def save_path(self, prefix, folder, width=0, height=0):
        path = Path(folder, prefix)
        path.parent.mkdir(parents=True, exist_ok=True)
        return str(path.parent), path.name, 1, str(Path(prefix).parent), prefix


def version_0_0_2() -> dict:
    number = ("min", "max", "step", "display_mode")
    kinds = {
        "Int": make_type("INT", (*number, "control_after_generate")),
        "Float": make_type("FLOAT", (*number, "round")),
        "String": make_type("STRING", ("multiline", "placeholder", "dynamic_prompts")),
        "Boolean": make_type("BOOLEAN", ("label_on", "label_off")),
        "Combo": make_type("COMBO", ("options", "control_after_generate", "upload")),
        "Image": make_type("IMAGE"), "Mask": make_type("MASK"),
        "DynamicCombo": DynamicCombo,
        "UploadType": SimpleNamespace(image="image_upload"), "Custom": make_type, "Schema": Schema,
        "NodeOutput": NodeOutput, "ComfyNode": ComfyNode, "Input": Input, "Output": Output,
        "Hidden": SimpleNamespace(unique_id="UNIQUE_ID", prompt="PROMPT",
                                  extra_pnginfo="EXTRA_PNGINFO")}
    return {"io": SimpleNamespace(**kinds), "ComfyExtension": ComfyExtension}


@contextmanager
def pack(base: Path):
    """The pack's nodes by id over stubs, and the stubs themselves; all gone again afterwards."""
    manager, server, folders = Manager(), Server(), Folders(base)
    modules = {
        "comfy_api": {}, "comfy_api.v0_0_2": version_0_0_2(), "comfy": {},
        "comfy.model_management": manager.module(),
        "comfy.model_patcher": {"ModelPatcher": ModelPatcher},
        "comfy.utils": {"ProgressBar": ProgressBar},
        "comfy.cli_args": {"args": SimpleNamespace(disable_metadata=False, preview_size=512)},
        "comfy_execution": {}, "comfy_execution.graph_utils": {
            "ExecutionBlocker": ExecutionBlocker},
        "comfy_execution.utils": {"get_executing_context": lambda: None},
        "protocol": {"BinaryEventTypes": SimpleNamespace(PREVIEW_IMAGE_WITH_METADATA=4)},
        "folder_paths": folders.module(),
        "server": {"PromptServer": SimpleNamespace(instance=server)}}
    for name, content in modules.items():
        sys.modules[name] = module = ModuleType(name)
        vars(module).update(content)
        parent, _, own = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], own, module)
    try:
        spec = importlib.util.spec_from_file_location(
            PACK, ROOT / "__init__.py", submodule_search_locations=[str(ROOT)])
        sys.modules[PACK] = root = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(root)
        yield SimpleNamespace(root=root, manager=manager, server=server, folders=folders,
                              args=modules["comfy.cli_args"]["args"], bars=ProgressBar.seen,
                              frames=ProgressBar.frames)
    finally:
        for name in [*modules, *(n for n in sys.modules if n.partition(".")[0] == PACK)]:
            del sys.modules[name]
