"""LoRA adapters, merged into a model's weights while these are read, before they are quantised.

Reads what PEFT saves (LoRA, rsLoRA, DoRA, trained embeddings, modules and biases that are saved
whole) and single files with `lora_A`/`lora_B` or `lora_down`/`lora_up`. The strength multiplies
what an adapter changes. Files are not trusted: patterns in them are compared as text.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from ...errors import SSDError, refusing
from ...files import sum_of, user_path
from .checkpoint import Checkpoint, read_json
from .tensor_files import SAFETENSORS, open_tensors

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
PARTS = {"lora_A": "down", "lora_down": "down", "lora_B": "up", "lora_up": "up",
         "lora_embedding_A": "embedded", "lora_embedding_B": "embedding",
         "lora_magnitude_vector": "magnitude"}
PART = re.compile(rf"(.+)\.({'|'.join(PARTS)})(?:\.default)?(?:\.weight)?|(.+)\.(alpha)")
OTHER_KINDS = re.compile(r"lora_|(^|\.)(loha|lokr|hada|lycoris|oft|boft|ia3|vera|glora|diff|dora|"
                         r"prompt)(_|\.|$)")
WHOLE = re.compile(r"\.(modules_to_save|base_layer)(\.default)?(?=\.)")
UNTRAINED = ".original_module."  # what a module that is saved whole was before
# Of PEFT: what cannot be merged into one weight, or changes the model when training begins.
UNREAD = ("fan_in_fan_out", "layer_replication", "trainable_token_indices", "target_parameters",
          "alora_invocation_tokens", "use_qalora", "arrow_config", "lora_bias")
CHANGED_BASE = ("pissa", "olora", "corda", "loftq", "lora_ga")
NUMBER = re.compile(r"(?<=_)[^_]+_\d+_")  # "layers_0_"
LETTERS = re.compile(r"\^?[\w.\\]+")
STRENGTHS = (-10.0, 10.0)


@dataclass(frozen=True)
class Lora:
    """An adapter in use, as recipes name it. name: of its file or folder."""

    name: str
    sha256: str
    strength: float


def split(named: str | Path | tuple[str | Path, float]) -> tuple[Path, float]:
    """A file or folder, and a strength, of "FILE", "FILE:0.8" or (FILE, 0.8).

    Raises SSDError for a strength that is none.
    """
    if not isinstance(named, str | Path):
        if not isinstance(named, tuple) or len(named) != 2 or not isinstance(named[0], str | Path):
            raise SSDError(f"LoRA {str(named)[:80]}: give FILE, FILE:0.8 or (FILE, 0.8)")
        path, strength = named
    else:
        text, _, number = str(named).rpartition(":")
        try:
            path, strength = (text, float(number)) if text else (named, 1.0)
        except ValueError:
            path, strength = named, 1.0
    low, high = STRENGTHS
    if not isinstance(strength, int | float) or not low <= strength <= high:  # also for NaN
        raise SSDError(f"LoRA {path}: strength {strength} must lie in {low:g} .. {high:g}")
    return user_path(path), float(strength)


def files_of(path: Path) -> tuple[Path, Path | None]:
    """(tensors, PEFT's config or None) of an adapter's folder or file; SSDError if there is none.
    """
    file = path / WEIGHTS if path.is_dir() else path
    config = file.with_name(CONFIG)
    if file.suffix != SAFETENSORS or not file.is_file():
        raise SSDError(f"LoRA {path}: no such adapter: name a folder with {CONFIG} and {WEIGHTS}, "
                       f"or a {SAFETENSORS} file")
    if file.name == WEIGHTS and not config.is_file():
        raise SSDError(f"LoRA {file}: {CONFIG} is missing beside it, which says how strong it is")
    return file, config if file.name == WEIGHTS else None


def hash_of(path: Path) -> str:
    """The hash by which recipes name an adapter: of its tensors' file, and of its config."""
    sums = [str(sum_of(file)) for file in files_of(path) if file is not None]
    return hashlib.sha256("".join(sums).encode()).hexdigest()


@dataclass
class Change:
    """What an adapter does to one module: to its weight, or to any of its tensors as a whole."""

    file: Path
    scale: float = 1.0
    tensors: dict[str, torch.Tensor] = field(default_factory=dict)

    @property
    def of_embedding(self) -> bool:
        return "embedded" in self.tensors

    @property
    def halves(self) -> list[torch.Tensor]:
        """[rank, in] and [out, rank]; fewer if the file lacks one."""
        names = ("embedded", "embedding") if self.of_embedding else ("down", "up")
        return [self.tensors[name] for name in names if name in self.tensors]

    @property
    def rank(self) -> int:
        return len(self.halves[0])

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the weight that it fits."""
        down, up = self.halves
        return (down.shape[1], len(up)) if self.of_embedding else (len(up), down.shape[1])

    def require_whole(self, name: str) -> None:
        """Raise SSDError for parts that do not belong together."""
        shapes = [tuple(half.shape) for half in self.halves]
        if len(shapes) != 2 or [len(shape) for shape in shapes] != [2, 2] or (
                shapes[0][0] != shapes[1][1] or not shapes[0][0]):
            raise SSDError(f"{self.file}: tensor {name} has parts of shapes {shapes}, expected two "
                           "matrices of one rank: only LoRA of linear layers and of embeddings is "
                           "read")
        if self.tensors.get("magnitude", torch.empty(len(self.halves[1]))).numel() != shapes[1][0]:
            raise SSDError(f"{self.file}: tensor {name} has a magnitude of another size: get it "
                           "again")

    def applied(self, weight: torch.Tensor, strength: float) -> torch.Tensor:
        """The merged weight [out, in] in float32."""
        down, up = (half.float() for half in self.halves)
        delta, weight = (up @ down).T if self.of_embedding else up @ down, weight.float()
        if "magnitude" not in self.tensors:
            return weight + delta * (self.scale * strength)
        turned = weight + delta * self.scale
        factor = self.tensors["magnitude"].float().flatten() / torch.linalg.norm(turned, dim=1)
        return blended(weight, factor[:, None] * turned, strength)


def blended(weight: torch.Tensor, other: torch.Tensor, strength: float) -> torch.Tensor:
    return other if strength == 1 else torch.lerp(weight, other, strength)


class Adapter:
    """An adapter's file. changes: by module; whole: tensors that replace the model's, by name."""

    def __init__(self, path: Path) -> None:
        self.file, config = files_of(path)
        self.name, self.sha256 = path.name, hash_of(path)
        settings = read_json(config) if config else None
        self.changes: dict[str, Change] = defaultdict(lambda: Change(self.file))
        self.whole: dict[str, torch.Tensor] = {}
        alphas: dict[str, float] = {}
        with refusing(self.file):
            stored = open_tensors(self.file)
            for name in stored.shapes:
                self._take(name, stored.tensor(name), alphas)
        if not self.changes:
            raise SSDError(f"{self.file}: holds no tensors of a LoRA")
        for module, change in self.changes.items():
            change.require_whole(module)
            change.scale = (scale_in(settings, module, change.rank, config)
                            if settings is not None else
                            alphas.get(module, change.rank) / change.rank)

    def _take(self, name: str, tensor: torch.Tensor, alphas: dict[str, float]) -> None:
        if not tensor.is_floating_point() and tensor.numel() != 1:
            raise SSDError(f"{self.file}: tensor {name} is quantised: get the LoRA in bf16 or fp32")
        if match := PART.fullmatch(name):
            if match[4]:
                alphas[match[3]] = float(tensor)
            else:
                self.changes[match[1]].tensors[PARTS[match[2]]] = tensor
        elif OTHER_KINDS.search(name) or not name.endswith((".weight", ".bias")):
            raise SSDError(f"{self.file}: tensor {name} belongs to an adapter of another kind than "
                           "LoRA (such as LyCORIS), which cannot be merged: merge it with the "
                           "program that made it, and load what that saves")
        else:
            own = WHOLE.sub("", name)
            if UNTRAINED not in name and (own != name or own not in self.whole):
                self.whole[own] = tensor


def scale_in(config: Mapping[str, Any], module: str, rank: int, file: Path | None) -> float:
    """What PEFT multiplies an update by; SSDError for settings that are not read."""
    kind, begun = config.get("peft_type"), str(config.get("init_lora_weights")).lower()
    unread = [name for name in UNREAD if config.get(name)]
    if str(kind).upper() != "LORA" or unread or begun.startswith(CHANGED_BASE):
        what = (f"peft_type {kind}" if str(kind).upper() != "LORA" else unread[0] if unread
                else f"init_lora_weights {begun}")
        raise SSDError(f"{file}: {what[:60]} cannot be merged here: merge it into the model with "
                       "peft's merge_and_unload, and load what that saves")
    alpha, patterns = config.get("lora_alpha"), config.get("alpha_pattern") or {}
    own = next((value for pattern, value in patterns.items() if fits(pattern, module, file)), alpha)
    if isinstance(own, bool) or not isinstance(own, int | float) or not math.isfinite(own):
        raise SSDError(f"{file}: lora_alpha is {str(own)[:20]}, expected a number")
    return own / (math.sqrt(rank) if config.get("use_rslora") else rank)


def fits(pattern: str, module: str, file: Path | None) -> bool:
    """Whether a key of alpha_pattern names a module, by its end or, after ^, as a whole."""
    if not LETTERS.fullmatch(pattern):
        raise SSDError(f"{file}: alpha_pattern {pattern[:60]!r} is no plain name of a module: "
                       "write the names out")
    plain, whole = pattern.lstrip("^").replace("\\", ""), without_wrapper(module)
    return whole == plain or (pattern[0] != "^" and whole.endswith(f".{plain}"))


def without_wrapper(module: str) -> str:
    return module.removeprefix("base_model.model.")


class Adapters:
    """Adapters of one checkpoint: called with the name and value of a tensor, returns it merged.

    Raises SSDError for an adapter that does not fit the checkpoint, naming its tensor.
    """

    def __init__(self, named: Iterable[str | Path | tuple[str | Path, float]],
                 checkpoint: Checkpoint) -> None:
        self.used: tuple[Lora, ...] = ()
        self.read: set[str] = set()
        self._merges: dict[str, list[tuple[Change | torch.Tensor, float]]] = defaultdict(list)
        for each in [named] if isinstance(named, str | Path) else named:
            path, strength = split(each)
            adapter = Adapter(path)
            self.used += (Lora(adapter.name, adapter.sha256, strength),)
            for key, change in placed(adapter, checkpoint):
                self._merges[key].append((change, strength))

    def __call__(self, key: str, value: torch.Tensor) -> torch.Tensor:
        self.read.add(key)
        for change, strength in self._merges.get(key, ()):
            if strength:
                value = (change.applied(value, strength) if isinstance(change, Change)
                         else blended(value.float(), change.float(), strength))
        return value

    def digest(self, base: str) -> str:
        """The hash of the merged model, given the model's own; that one if nothing is changed."""
        merged = [f"{lora.sha256}:{lora.strength:g}" for lora in self.used if lora.strength]
        return hashlib.sha256("\n".join((base, *merged)).encode()).hexdigest() if merged else base

    @property
    def unread(self) -> list[str]:
        """The tensors that they change and pictures do not need."""
        return sorted(set(self._merges) - self.read)

    def require_read(self) -> None:
        """Raise SSDError if nothing that they change was read."""
        if self._merges and not self.read & set(self._merges):
            raise SSDError(f"LoRA {self.used[0].name}: it changes nothing that draws pictures, "
                           f"such as {self.unread[0]}: load one of this model")


def placed(adapter: Adapter, checkpoint: Checkpoint
           ) -> list[tuple[str, Change | torch.Tensor]]:
    """(name of the checkpoint's tensor, what changes it), whole tensors first."""
    shapes: dict[str, tuple[int, ...]] = {
        f"{module}.weight": change.shape for module, change in adapter.changes.items()}
    shapes |= {name: tuple(tensor.shape) for name, tensor in adapter.whole.items()}
    keys = keys_for(shapes, checkpoint.shapes)
    for name, shape in shapes.items():
        found = keys.get(name)
        if found is None:
            raise SSDError(f"{adapter.file}: tensor {name} changes a layer that this model has "
                           "not: it was made for another model, or for other names of its layers")
        if checkpoint.shapes[found] != shape:
            raise SSDError(f"{adapter.file}: tensor {name} fits a layer of shape {shape}, this "
                           f"model's {found} has {checkpoint.shapes[found]}: it was made for "
                           "another model")
    return [*((keys[name], tensor) for name, tensor in adapter.whole.items()),
            *((keys[f"{module}.weight"], change) for module, change in adapter.changes.items())]


def keys_for(names: Mapping[str, tuple[int, ...]],
             known: Mapping[str, tuple[int, ...]]) -> dict[str, str]:
    """{name in an adapter: name in a checkpoint}, as many as one change of prefix can map, to
    tensors of the same shapes if there are any.

    Prefixes such as base_model.model. or lora_unet_ go, those of the checkpoint come, up to the
    word before a layer's number; some programs write _ for every dot.
    """
    plain = {key.replace(".", "_"): key for key in known}
    flat = {name: name.replace(".", "_") for name in names}
    best: dict[str, str] = {}
    most = (0, 0)
    first = max(flat.values(), key=lambda name: (NUMBER.search(name) is not None, -len(name)))
    limit = match.start() if (match := NUMBER.search(first)) else first.find("_")
    for start in (0, *(at + 1 for at, sign in enumerate(first[:limit]) if sign == "_")):
        rest, cut = first[start:], first[:start]
        for key in plain:
            if key == rest or key.endswith(f"_{rest}"):
                put = key.removesuffix(rest)
                found = {name: plain[put + each.removeprefix(cut)] for name, each in flat.items()
                         if each.startswith(cut) and put + each.removeprefix(cut) in plain}
                fit = sum(names[name] == known[own] for name, own in found.items())
                if (fit, len(found)) > most:
                    best, most = found, (fit, len(found))
        if most[0] == len(names):
            break
    return best
