"""Run by ComfyUI's Python in its folder: does its own patcher move all that a backbone holds?

BACKBONES names folders. Writes "all moved", or what stayed, of each.
"""

import os
import sys
from pathlib import Path

from in_comfyui import pack

# isort: split
import torch

weights = pack("nodes.weights")
find_backbone = pack("ssd_core.weights.find").find_backbone


def stayed(folder: Path) -> list[str]:
    loaded = weights.backbone(find_backbone(folder)[0].files[0], "fp32")
    for patcher in loaded.patchers:
        patcher.partially_load(torch.device("meta"), 1e32)
        assert patcher.loaded_size() == patcher.model_size() > 0
        assert patcher.current_loaded_device() == torch.device("meta")
    left = [name for name, weight in loaded.module.named_parameters() if not weight.is_meta]
    return left + [f"{type(part).__name__}.{name}" for part in loaded.module.modules()
                   for name, value in vars(part).items()
                   if isinstance(value, torch.Tensor) and not value.is_meta]


for folder in map(Path, os.environ["BACKBONES"].split(os.pathsep)):
    sys.stdout.write(f"{folder.name}: {', '.join(stayed(folder)) or 'all moved'}\n")
