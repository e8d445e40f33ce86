"""Tiny random adapters made by PEFT itself, over modules named as a checkpoint's tensors are."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from ssd_core.backbones.reading.checkpoint import Checkpoint
from ssd_core.weights.find import find_backbone

Tensors = dict[str, torch.Tensor]


class Tree(nn.Module):
    """Modules in modules, as dots in names have them."""

    def put(self, name: str, module: nn.Module) -> None:
        first, _, rest = name.partition(".")
        if not rest:
            self.add_module(first, module)
            return
        if not hasattr(self, first):
            self.add_module(first, Tree())
        self.get_submodule(first).put(rest, module)


def tree_of(tensors: Mapping[str, torch.Tensor], embedding: str = "") -> Tree:
    """A Linear for every matrix, an Embedding for the one of this name."""
    tree = Tree()
    for name, weight in tensors.items():
        module = name.removesuffix(".weight")
        bias = tensors.get(f"{module}.bias")
        if module == name or weight.dim() != 2:
            continue
        layer = (nn.Embedding(*weight.shape) if module == embedding else
                 nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None))
        layer.weight.data = weight.clone()
        if bias is not None and isinstance(layer, nn.Linear):
            layer.bias.data = bias.clone()
        tree.put(module, layer)
    return tree


def peft_lora(folder: Path, to: Path, seed: int = 0, **settings: Any) -> tuple[Path, Tensors]:
    """(the folder of a random adapter for a checkpoint, the tensors that PEFT merges it into).

    settings: of LoraConfig; by default it changes every matrix of the layers.
    """
    from peft import LoraConfig, get_peft_model

    tensors = tensors_of(folder)
    matrices = [name.removesuffix(".weight") for name, value in tensors.items()
                if ".layers." in f".{name}" and value.dim() == 2 and name.endswith(".weight")
                and not any(part in name for part in ("norm", "vision", "vq", "aligner"))]
    settings = {"r": 3, "lora_alpha": 5, "target_modules": matrices, **settings}
    tree = tree_of(tensors, settings.pop("embedding", ""))
    torch.manual_seed(seed)
    model = get_peft_model(tree, LoraConfig(**settings))
    for weight in model.parameters():
        if weight.requires_grad:
            weight.data += torch.randn_like(weight) * 0.1
    model.save_pretrained(str(to), save_embedding_layers=False)
    merged = model.merge_and_unload().state_dict()
    return to, {name: value for name, value in merged.items()
                if name in tensors and not value.equal(tensors[name])}


def tensors_of(folder: Path) -> Tensors:
    checkpoint: Checkpoint = find_backbone(folder)[0]
    return {name: checkpoint.copied(name, torch.device("cpu")) for name in checkpoint.shapes
            if checkpoint.tensor(name).is_floating_point()}


def merged_copy(folder: Path, changed: Mapping[str, torch.Tensor], to: Path) -> Path:
    """A copy of a checkpoint with other values."""
    shutil.copytree(folder, to)
    for path in sorted(to.iterdir()):
        if path.suffix == ".safetensors":
            held = load_file(path)
            save_file({**held, **{name: value for name, value in changed.items() if name in held}},
                      path, {"format": "pt"})
        elif path.suffix in (".bin", ".pt", ".pth"):
            held = torch.load(path, weights_only=True)
            replaced(held, changed)
            torch.save(held, path)
    return to


def replaced(held: Any, changed: Mapping[str, torch.Tensor]) -> None:
    for name, value in list(held.items()) if isinstance(held, dict) else ():
        if name in changed:
            held[name] = changed[name]
        else:
            replaced(value, changed)
