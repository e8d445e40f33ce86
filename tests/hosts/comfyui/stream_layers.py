"""Run by ComfyUI's Python in its folder: does its own memory manager load and free single layers?

The CPU stands for a card of few bytes, which holds a part of `postcard`. What is drawn with waiting
layers must have the tokens of the whole model. DTYPE names the dtype.
"""

import os
import sys

from in_comfyui import pack

# isort: split
import comfy.model_management as mm
import torch
from comfyui_version import __version__

find_backbone = pack("ssd_core.weights.find").find_backbone
core = pack("ssd_core")
try:
    loaded = pack("nodes.weights").backbone(find_backbone("postcard")[0].files[0],
                                            os.environ["DTYPE"])
except pack("ssd_core.errors").SSDError as error:  # without torchao
    sys.exit(sys.stdout.write(f"{error}\n") and 0)
patcher, size = loaded.patcher, loaded.patcher.model_size()


def tokens() -> torch.Tensor:
    events = core.generate(loaded.module, "a red", core.methods.Rows(), sampling=core.Sampling(7))
    return list(events)[-1].tokens


def is_loaded(memory: float) -> int:
    """Layers on the card after ComfyUI loaded with so much free memory."""
    mm.get_free_memory = lambda dev=None, torch_free_too=False: (
        (memory - patcher.loaded_size(), 0) if torch_free_too else memory - patcher.loaded_size())
    mm.load_models_gpu([patcher], memory_required=0, force_full_load=False)
    (held,) = (model for model in mm.current_loaded_models if model.model is patcher)
    assert held.model_loaded_memory() == patcher.loaded_size() <= max(memory, patcher._bytes(1))
    return patcher.first


expected = tokens()
mm.is_device_cpu, mm.vram_state = (lambda device: False), mm.VRAMState.NORMAL_VRAM
mm.minimum_inference_memory = mm.extra_reserved_memory = lambda: 0
mm.MIN_WEIGHT_MEMORY_RATIO = 0.0
# ComfyUI 0.3.64 never loads less than 128 MiB, which is more than all of `postcard`.
mm.max = lambda *sizes: max(size for size in sizes if size != 128 << 20)
few, more, all_ = (is_loaded(memory) for memory in (1, patcher._bytes(2), 2 * size))
assert (few, more, all_) == (1, 2, patcher.layers), (few, more, all_)
assert patcher.waiting == 0 and not patcher.model.model_lowvram
(held,) = mm.current_loaded_models


class Replays:
    """Stands in for CUDA graphs on a CPU."""

    nbytes = 1 << 20

    def warm_up(self, work):
        return work()

    def record(self, work):
        return work

    def close(self):
        pass


graphs, decode = pack("ssd_core.engine.graphs"), pack("ssd_core.engine.decode")
eager, decode.runner = decode.runner, lambda backbone: graphs.GraphRunner(Replays())
session = loaded.module.session
assert torch.equal(tokens(), expected) and session.nbytes > 1 << 20
assert patcher.loaded_size() == size + session.nbytes, "ComfyUI sees what a run has left"
mm.free_memory(mm.get_free_memory() + 1, patcher.load_device)
assert session.nbytes == 0 and patcher.waiting == 0, "and has it back before any layer"
assert torch.equal(tokens(), expected) and session.nbytes
mm.free_memory(1e32, patcher.load_device)
assert session.nbytes == 0 == patcher.loaded_size() and not mm.current_loaded_models
decode.runner = eager
is_loaded(2 * size)
(held,) = mm.current_loaded_models
assert held.model_unload(1) is False and patcher.waiting == 2, "freed in part"
assert torch.equal(tokens(), expected)
if not __version__.startswith("0.3."):  # which frees only for other models
    assert is_loaded(patcher._bytes(1)) == 1, "what no longer fits leaves"
with patcher.in_use():
    assert held.model_unload(1) is True and patcher.waiting == 0 == patcher.loaded_size()
mm.current_loaded_models.clear()
is_loaded(1)
assert torch.equal(tokens(), expected) and patcher.waiting == patcher.layers - 1
mm.unload_all_models()
assert patcher.waiting == 0 == patcher.loaded_size() and not mm.current_loaded_models
assert torch.equal(tokens(), expected)
sys.stdout.write("layers were streamed\n")
