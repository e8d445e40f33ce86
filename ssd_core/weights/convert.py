"""Convert torch files (.bin, .pt, .pth, .ckpt, .jit) to safetensors.

Torch files are converted one shard at a time; tensor names and values do not change. New files get
their final names only after all of them are complete.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file

from ..backbones.reading.checkpoint import INDEX, Checkpoint, group_of, model_name, models_at
from ..backbones.reading.tensor_files import TORCH
from ..errors import SSDError
from ..files import flush, user_path

SHARD_BYTES = 2 * 2**30
Progress = Callable[[int, int], None]  # bytes done, total bytes


def convert(path: Path, out: Path | None = None, shard_bytes: int = SHARD_BYTES,
            progress: Progress = lambda done, total: None) -> list[Path]:
    """Write the models of a file or folder as safetensors beside them, or into the folder `out`.

    With `out`, the JSON files beside them (config, tokenizer ...) are copied too. Returns the new
    files. Raises SSDError if there is nothing to convert, a target exists, or the disk is full.
    """
    path = user_path(path)
    models = [model for model in models_at(path) if is_torch(model)]
    if not models:
        raise SSDError(f"{path}: nothing to convert, the weights are safetensors already")
    checkpoints = [Checkpoint(group_of(model), as_stored=True) for model in models]
    if out is not None and len({checkpoint.folder for checkpoint in checkpoints}) > 1:
        raise SSDError(f"{path}: weights lie in several folders: name one of them with --out")
    if shard_bytes <= 0:
        raise SSDError(f"shards of {shard_bytes} bytes: must be above 0")
    require_own_names(checkpoints)
    written = []
    for checkpoint in checkpoints:
        folder = checkpoint.folder if out is None else user_path(out)
        written += convert_model(checkpoint, folder, shard_bytes, progress)
        if out is not None:
            written += copy_json(checkpoint.folder, folder)
    return written


def require_own_names(checkpoints: Sequence[Checkpoint]) -> None:
    """Raise SSDError if two models would become files of the same name."""
    known: dict[Path, Path] = {}
    for checkpoint in checkpoints:
        file = checkpoint.files[0]
        first = known.setdefault(checkpoint.folder / model_name(file), file)
        if first != file:
            raise SSDError(f"{first} and {file.name}: both would become {model_name(file)}"
                           ".safetensors: convert them one by one, each with its own --out")


def is_torch(model: Path) -> bool:
    return model.name.lower().removesuffix(INDEX).endswith(TORCH)


def convert_model(checkpoint: Checkpoint, folder: Path, shard_bytes: int,
                  progress: Progress) -> list[Path]:
    """Convert one model into `folder` and return the new files."""
    shards = list(plan_shards(checkpoint, shard_bytes))
    total = sum(size for _, size in shards)
    stem = model_name(checkpoint.files[0])
    names = [f"{stem}.safetensors"] if len(shards) == 1 else [
        f"{stem}-{i + 1:05}-of-{len(shards):05}.safetensors" for i in range(len(shards))]
    if len(shards) > 1:
        names.append(f"{stem}.safetensors{INDEX}")  # renamed last: it lists all other files
    require_room(folder, names, total)
    with tempfile.TemporaryDirectory(prefix=f".{stem}.", dir=folder) as temporary:
        done = 0
        for name, (keys, size) in zip(names, shards, strict=False):
            write_shard(checkpoint, keys, Path(temporary, name))
            done += size
            progress(done, total)
        if len(shards) > 1:
            weight_map = {key: name for name, (keys, _) in zip(names, shards, strict=False)
                          for key in keys}
            index = {"metadata": {"total_size": total}, "weight_map": weight_map}
            Path(temporary, names[-1]).write_text(json.dumps(index, indent=2), encoding="utf-8")
        for name in names:
            flush(Path(temporary, name))
        for name in names:
            os.replace(Path(temporary, name), folder / name)
    return [folder / name for name in names]


def plan_shards(checkpoint: Checkpoint, shard_bytes: int) -> Iterator[tuple[list[str], int]]:
    """Yield (names, bytes) of each shard in file order; only a single tensor exceeds the limit."""
    names: list[str] = []
    size = 0
    for name in checkpoint.shapes:
        tensor = checkpoint.tensor(name)
        nbytes = tensor.numel() * tensor.element_size()
        if names and size + nbytes > shard_bytes:
            yield names, size
            names, size = [], 0
        names.append(name)
        size += nbytes
    yield names, size


def write_shard(checkpoint: Checkpoint, names: list[str], path: Path) -> None:
    """Write one shard; tensors that shared memory in the original become independent."""
    tensors = {name: checkpoint.tensor(name).clone(memory_format=torch.contiguous_format)
               for name in names}
    try:
        save_file(tensors, path, {"format": "pt"})
    except (OSError, SafetensorError) as error:
        raise SSDError(f"cannot write {path}: {error}; choose another place") from error


def require_room(folder: Path, names: list[str], size: int) -> None:
    """Raise SSDError if a file exists already or the disk has too little room."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise SSDError(f"cannot write to {folder}: {error.strerror}; choose another place"
                       ) from error
    for name in names:
        if (folder / name).exists():
            raise SSDError(f"{folder / name}: there already; remove it, or choose another --out")
    if size > free:
        raise SSDError(f"{folder}: {size / 1e9:.1f} GB are needed, {free / 1e9:.1f} GB are free: "
                       "make room, or choose another --out")


def copy_json(source: Path, folder: Path) -> list[Path]:
    """Copy config.json, tokenizer.json and the like; skip indexes and files that exist."""
    files = [path for path in sorted(source.glob("*.json")) if not path.name.endswith(INDEX)
             and not (folder / path.name).exists()]
    return [Path(shutil.copy(path, folder)) for path in files]
