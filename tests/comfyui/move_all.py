"""Run by ComfyUI's Python in its folder: does its own patcher move all that a backbone holds?

BACKBONES names folders. Writes "all moved", or what stayed, of each. ComfyUI reads the arguments.
"""

import importlib
import os
import sys
from pathlib import Path

sys.path.insert(0, os.getcwd())
ROOT = Path(__file__).resolve().parents[2]
PACK = "ssd_pack"

import comfy.options  # noqa: E402

comfy.options.enable_args_parsing()

import torch  # noqa: E402
import utils.extra_config  # noqa: E402, F401  as main.py does, before another takes the name

spec = importlib.util.spec_from_file_location(PACK, ROOT / "__init__.py",
                                              submodule_search_locations=[str(ROOT)])
sys.modules[PACK] = importlib.util.module_from_spec(spec)
weights = importlib.import_module(f"{PACK}.nodes.weights")
find_backbone = importlib.import_module(f"{PACK}.ssd_core.weights.find").find_backbone


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
