"""From tensors in files to parameters: which keys form which parameter, and loading the values.

Knows the two naming schemes of Llama-shaped decoders, and nothing about prompts or pictures. A
module is created on the meta device; `fill` then loads its values, one tensor at a time.

A backbone on a model that transformers has loaded (`LoadedModel`) computes on the model's own
tensors. Where it stores several matrices as one (q, k and v; gate and up), they are joined one
group at a time, and the model's parameters become views of the joined matrix: the values, their
order and the memory stay the same, and the model works as before.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from ...errors import SSDError
from ...model.products import put
from ...model.transformer import DecoderLayer, DecoderShape
from .checkpoint import Checkpoint, plain_names
from .decoder_config import require_silu
from .quantised import refuse_quantiser
from .tensor_files import refuse_adapter_keys

Piece = tuple[str, int, int]  # name of a tensor, first row, row after the last
LANES = 16  # sums that the fingerprint takes of a row; changes places that are a multiple apart
BLOCK = 1 << 17  # values summed at once: they fit a processor's cache
CHUNK = 1 << 22  # values copied, then summed beside the copying of the next ones
GOLDEN = -0x61C8864680B583EB  # 2^64 / the golden ratio, as a signed number


class LoadedModel(Checkpoint):
    """A model's tensors by the names of its state dict; `folder` has its tokenizer."""

    adopted = True

    def __init__(self, model: nn.Module, folder: Path) -> None:
        self.model, self.folder, self.root = model, folder, folder
        self.files = (Path(type(model).__name__),)  # for error messages
        self.transform = lambda name, value: value
        self.metadata, self._scale_of = {}, {}
        tensors = model.state_dict(keep_vars=True)
        refuse_adapter_keys(tensors, self.files[0])
        refuse_quantiser(tensors, self._quantisation(), self.files[0], self.metadata)
        names = plain_names(tensors)
        self._tensors: dict[str, torch.Tensor] = {names[name]: tensors[name] for name in tensors}
        self.shapes = {name: tuple(tensor.shape) for name, tensor in self._tensors.items()}

    def file_of(self, name: str) -> Path:
        if name not in self._tensors:
            raise SSDError(f"{self.files[0]}: tensor {name} is missing: load the complete model")
        return self.files[0]

    def tensor(self, name: str) -> torch.Tensor:
        self.file_of(name)
        return self._tensors[name].detach()

    def views(self) -> Iterator[Checkpoint]:
        """This model alone: its class has named the tensors."""
        yield self

    def close(self) -> None:
        """There is no file to close."""

    def config(self) -> dict:
        to_dict = getattr(getattr(self.model, "config", None), "to_dict", None)
        return to_dict() if to_dict else {}

    def joined(self, parts: list[Piece]) -> torch.Tensor:
        """Return pieces as one tensor that shares the model's memory; few rows are copied."""
        tensors = [self.tensor(name)[start:stop] for name, start, stop in parts]
        if len(tensors) == 1:
            return tensors[0]
        if (together := as_one(tensors)) is not None:
            return together
        together = torch.cat(tensors)
        if all(len(rows) == len(self._tensors[name])
               for rows, (name, _, _) in zip(tensors, parts, strict=True)):
            views = together.split([len(rows) for rows in tensors])
            for (name, _, _), view in zip(parts, views, strict=True):
                self._tensors[name].data = view
        return together

    def place(self) -> tuple[torch.device, torch.dtype]:
        """The device and dtype of all weights; SSDError if they have several."""
        weights = [value for value in self._tensors.values() if value.is_floating_point()]
        devices, dtypes = {value.device for value in weights}, {value.dtype for value in weights}
        if len(devices) != 1 or torch.device("meta") in devices:
            raise SSDError(f"{self.files[0]}: its weights lie on {listed(devices)}: load it on one "
                           "device, without device_map")
        if len(dtypes) != 1:
            raise SSDError(f"{self.files[0]}: its weights are {listed(dtypes)}: convert them to "
                           "one dtype, for example by model.to(torch.bfloat16)")
        return devices.pop(), dtypes.pop()


def as_one(tensors: list[torch.Tensor]) -> torch.Tensor | None:
    """A view of tensors that follow each other in memory, as an earlier call leaves them."""
    first, offset = tensors[0], tensors[0].storage_offset()
    for rows in tensors:
        if (rows.untyped_storage().data_ptr() != first.untyped_storage().data_ptr()
                or rows.storage_offset() != offset or not rows.is_contiguous()):
            return None
        offset += rows.numel()
    shape = (sum(map(len, tensors)), *first.shape[1:])
    return first.as_strided(shape, first.stride(), first.storage_offset())


def listed(values: set) -> str:
    return ", ".join(sorted(str(value).removeprefix("torch.") for value in values))


@dataclass(frozen=True)
class Slice:
    """Rows start..stop-1 of a tensor."""

    key: str
    start: int
    stop: int


@dataclass(frozen=True)
class Concat:
    """Sources stacked on dim 0."""

    parts: tuple[Source, ...]


Source = str | Slice | Concat


@dataclass(frozen=True)
class LayerNames:
    """Names of one layer's tensors in a kind of file, in the order of our parameters."""

    attention_norm: str
    qkv: tuple[str, ...]
    out: str
    ffn_norm: str
    gate_up: tuple[str, ...]
    down: str
    q_norm: str = "self_attn.q_norm"
    k_norm: str = "self_attn.k_norm"
    post_norms: tuple[str, ...] = ()  # behind attention and behind the feed-forward network


HF = LayerNames("input_layernorm.weight",
           ("self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight"),
           "self_attn.o_proj.weight", "post_attention_layernorm.weight",
           ("mlp.gate_proj.weight", "mlp.up_proj.weight"), "mlp.down_proj.weight")
LLAMAGEN = LayerNames("attention_norm.weight", ("attention.wqkv.weight",), "attention.wo.weight",
                 "ffn_norm.weight", ("feed_forward.w1.weight", "feed_forward.w3.weight"),
                 "feed_forward.w2.weight")
COMPUTED = r"(.*\.)?rotary_emb\.inv_freq"  # computed tables, stored in some files


def decoder_sources(prefix: str, layers: int, names: LayerNames = HF, qk_norm: bool = False,
                    qkv_bias: bool = False,
                    rms_normed: tuple[int, int] | None = None) -> dict[str, Source]:
    """{own parameter: source} of a backbone's `decoder`; `prefix` is the file's.

    rms_normed: the heads of q and of k that share an RMSNorm each, if they have one.
    """
    return {f"decoder.layers.{i}.{own}": source for i in range(layers)
            for own, source in layer_sources(
                f"{prefix}layers.{i}.", names, qk_norm, qkv_bias, rms_normed).items()}


def layer_sources(layer: str, names: LayerNames, qk_norm: bool, qkv_bias: bool = False,
                  rms_normed: tuple[int, int] | None = None) -> dict[str, Source]:
    """The sources of one layer whose keys begin with `layer`."""
    def joined(parts: tuple[str, ...]) -> Source:
        return layer + parts[0] if len(parts) == 1 else Concat(tuple(layer + p for p in parts))

    sources = {"attention_norm": layer + names.attention_norm, "qkv": joined(names.qkv),
               "out": layer + names.out, "ffn_norm": layer + names.ffn_norm,
               "gate_up": joined(names.gate_up), "down": layer + names.down}
    if qkv_bias:
        sources["qkv_bias"] = joined(tuple(re.sub("weight$", "bias", key) for key in names.qkv))
    for own, name in zip(("attention_post_norm", "ffn_post_norm"), names.post_norms, strict=False):
        sources[own] = layer + name
    for kind in ("weight", "bias") if qk_norm else ("weight",) if rms_normed else ():
        q, k = (f"{layer}{name}.{kind}" for name in (names.q_norm, names.k_norm))
        queries, keys = rms_normed or (1, 1)
        sources[f"qk_norm_{kind}"] = Concat((q,) * queries + (k,) * keys)
    return sources


def decoder_shape(checkpoint: Checkpoint, prefix: str, heads: int, names: LayerNames = HF,
                  config: Mapping[str, object] | None = None, rotary: str = "split",
                  eps: float = 1e-6, qkv_bias: bool = False) -> DecoderShape:
    """Derive a decoder's sizes from tensor shapes and the number of heads.

    config: the part of config.json that describes this decoder; it must agree with the shapes.
    qkv_bias: whether q, k and v of this family have biases.
    Raises SSDError if a layer is incomplete or holds an unknown tensor, or if shapes, heads and
    config contradict each other.
    """
    where = checkpoint.folder if len(checkpoint.files) > 1 else checkpoint.files[0]
    require_positive(checkpoint, "num_attention_heads", heads, int)
    require_positive(checkpoint, "rms_norm_eps", eps, float)
    layers = count_layers(checkpoint, prefix, names)
    qk_norm, qk_rms_norm = norms_of_heads(checkpoint, f"{prefix}layers.0.{names.q_norm}")
    require_known(checkpoint, decoder_sources(
        prefix, layers, names, qk_norm, qkv_bias=qkv_bias,
        rms_normed=(1, 1) if qk_rms_norm else None), prefix=f"{prefix}layers.")
    first = layer_sources(f"{prefix}layers.0.", names, qk_norm)
    hidden, across = two_sizes(checkpoint, first["out"])
    rows = two_sizes(checkpoint, first["qkv"])[0]
    ffn = two_sizes(checkpoint, first["gate_up"])[0] // 2
    head_dim, uneven = divmod(across, heads)
    kv_heads = (rows - across) // (2 * head_dim) if head_dim else 0
    if uneven or kv_heads < 1 or heads % kv_heads or rows != across + 2 * kv_heads * head_dim:
        raise SSDError(f"{where}: q, k and v of {rows} rows do not divide into {heads} heads of "
                       f"{across} numbers: another model, or an altered one")
    if checkpoint.adopted and rotary == "split":
        rotary = "halves"  # a loaded model's rows keep their order
    shape = DecoderShape(layers, hidden, heads, kv_heads, head_dim, ffn, rotary, qk_norm, eps,
                         qkv_bias, qk_rms_norm, post_norms=bool(names.post_norms))
    require_config(checkpoint, shape, config or {})
    require_silu(checkpoint, config or {})
    return shape


def norms_of_heads(checkpoint: Checkpoint, q_norm: str) -> tuple[bool, bool]:
    """Whether each head of q and k has a LayerNorm, or an RMSNorm, which has no bias."""
    normed, biased = (f"{q_norm}.{kind}" in checkpoint.shapes for kind in ("weight", "bias"))
    return normed and biased, normed and not biased


def count_layers(checkpoint: Checkpoint, prefix: str, names: LayerNames) -> int:
    """Highest layer number in a file, plus one; gaps are found when their tensors are read."""
    start = f"{prefix}layers."
    numbers = {key.removeprefix(start).partition(".")[0] for key in checkpoint.shapes
               if key.startswith(start)}
    layers = 1 + max((int(number) for number in numbers if number.isdecimal()), default=-1)
    if not layers:
        checkpoint.file_of(f"{start}0.{names.out}")
    return layers


def require_known(checkpoint: Checkpoint, sources: Mapping[str, Source],
                  unused: Sequence[str] = (), prefix: str = "") -> None:
    """Raise SSDError for a tensor that no source reads and that is not known to be unused.

    unused: regular expressions of whole names; the picture codec checks its own tensors
    (codecs/files.py). prefix: only tensors whose names begin with it are looked at.
    """
    refuse_unknown(checkpoint, {key for source in sources.values()
                                for key, _, _ in pieces(checkpoint, source)}, unused, prefix)


def refuse_unknown(checkpoint: Checkpoint, known: Collection[str], unused: Sequence[str] = (),
                   prefix: str = "") -> None:
    """`require_known` for the names of tensors."""
    for key in checkpoint.shapes:
        if key.startswith(prefix) and key not in known and not any(
                re.fullmatch(pattern, key) for pattern in (COMPUTED, *unused)):
            raise SSDError(f"{checkpoint.file_of(key)}: tensor {key} has no place in this model: "
                           "another kind of model, or an altered one")


def two_sizes(checkpoint: Checkpoint, source: Source) -> tuple[int, int]:
    """(rows, columns) of a source of matrices."""
    shape = shape_of(checkpoint, source)
    if len(shape) != 2 or not all(shape):
        key = next(pieces(checkpoint, source))[0]
        raise SSDError(f"{checkpoint.file_of(key)}: tensor {key} has shape {shape}, expected a "
                       "matrix")
    return shape


def require_positive(checkpoint: Checkpoint, name: str, value: object,
                     kind: type[int] | type[float]) -> None:
    """Raise SSDError if a value from config.json is not a positive number."""
    if not isinstance(value, kind) or isinstance(value, bool) or not 0 < value < math.inf:
        raise SSDError(f"{checkpoint.folder / 'config.json'}: {name} is {value!r}, expected "
                       f"{'a whole number' if kind is int else 'a number'} above 0")


def require_config(checkpoint: Checkpoint, shape: DecoderShape,
                   config: Mapping[str, object]) -> None:
    """Raise SSDError if config.json contradicts the tensors."""
    expected = {"num_hidden_layers": shape.layers, "hidden_size": shape.hidden,
             "num_attention_heads": shape.heads, "num_key_value_heads": shape.kv_heads,
             "head_dim": shape.head_dim, "intermediate_size": shape.ffn}
    for name, size in expected.items():
        if config.get(name) not in (None, size):
            raise SSDError(f"{checkpoint.folder / 'config.json'}: {name} is {config[name]}, the "
                           f"tensors have {size}: files of two models, or an incomplete one")


def pieces(checkpoint: Checkpoint, source: Source) -> Iterator[tuple[str, int, int]]:
    """(key, first row, row after the last) of every part of a source, in order."""
    if isinstance(source, Concat):
        for part in source.parts:
            yield from pieces(checkpoint, part)
        return
    key = source if isinstance(source, str) else source.key
    file = checkpoint.file_of(key)
    rows = (*checkpoint.shapes[key], 0)[0]  # a scalar has none
    start, stop = (0, rows) if isinstance(source, str) else (source.start, source.stop)
    if not 0 <= start <= stop <= rows:
        raise SSDError(f"{file}: tensor {key} has {rows} rows, expected at least {stop}: another "
                       "vocabulary or another model")
    yield key, start, stop


def shape_of(checkpoint: Checkpoint, source: Source) -> tuple[int, ...]:
    """Return the shape of a source. Raises SSDError if its parts do not fit together."""
    parts = list(pieces(checkpoint, source))
    first = checkpoint.shapes[parts[0][0]]
    for key, _, _ in parts:
        if (shape := checkpoint.shapes[key])[1:] != first[1:]:
            raise SSDError(f"{checkpoint.file_of(key)}: tensor {key} has shape {shape}, expected "
                           f"(..., {', '.join(map(str, first[1:]))})")
    return (sum(stop - start for _, start, stop in parts), *first[1:])


class Fingerprint:
    """A hash of names, shapes and all values, independent of their order in files.

    Values count as bfloat16, so that an original and its port to another dtype match. Of each row
    `LANES` sums are taken over its bits as integers: exact in any order, on every device, and far
    faster than a cryptographic hash. A single changed value always changes its row's number. They
    are summed in a second thread, beside the reading of the next rows, or on the card.
    """

    def __init__(self) -> None:
        self._rows: dict[str, list[Future[torch.Tensor]]] = {}
        self._thread = ThreadPoolExecutor(1, "fingerprint")

    def add(self, name: str, stored: torch.Tensor, copy: torch.Tensor | None = None) -> None:
        """Add values as stored in a file; computed values would differ between machines.

        copy: a tensor of that shape, which takes the values; where they are the same, they are
        summed there.
        """
        own = stored.detach() if stored.dim() else stored.detach().view(1)
        copy = own if copy is None else copy
        same = copy.dtype in (torch.bfloat16, own.dtype) and copy.device.type in ("cpu", "cuda")
        numbers = self._rows[f"{name} {tuple(stored.shape)}"] = []
        most = max(1, CHUNK // max(1, own[:1].numel())) if own.dim() > 1 else max(1, len(own))
        for rows, copied in zip(own.split(most), copy.split(most), strict=True):
            if copied is not rows:
                copied.copy_(rows)
            summed = copied if same else rows.cpu()
            if summed.is_cuda:  # on the stream that copied them
                numbers.append(Future())
                numbers[-1].set_result(row_numbers(summed))
            else:
                numbers.append(self._thread.submit(row_numbers, summed))
        wait(numbers)  # so that no tensor is held

    def hexdigest(self) -> str:
        """The hash; empty if nothing was added."""
        self._thread.shutdown()
        lines = []
        for name, numbers in sorted(self._rows.items()):
            digest = hashlib.sha256(name.encode())
            for rows in numbers:
                digest.update(rows.result().cpu().numpy().tobytes())
            lines.append(f"{name} {digest.hexdigest()}")
        return hashlib.sha256("\n".join(lines).encode()).hexdigest() if lines else ""


@torch.inference_mode()
def row_numbers(tensor: torch.Tensor) -> torch.Tensor:
    """One integer per row [n] int64, where a tensor of one dimension is a row."""
    table = tensor.flatten(1) if tensor.dim() > 1 else tensor.reshape(1, -1)
    most = CHUNK if tensor.is_cuda else BLOCK
    blocks = table.split(max(1, most // max(1, table.shape[1])))
    # Odd factors: a change in one lane cannot become zero, and hardly ones in several.
    odd = torch.arange(1, LANES + 1, device=tensor.device) * GOLDEN | 1
    return (torch.cat([lane_sums(block) for block in blocks]) * odd).sum(1)


def lane_sums(rows: torch.Tensor) -> torch.Tensor:
    """Sums [n, LANES] int64 over each row's values [n, m], four of which make an integer."""
    values = rows.to(torch.bfloat16)
    values = F.pad(values, (0, -values.shape[1] % (4 * LANES))).contiguous()
    if values.storage_offset() % 4:
        values = values.clone()
    return values.view(torch.int64).unflatten(1, (-1, LANES)).sum(1)


def fingerprint_of(checkpoint: Checkpoint, sources: Mapping[str, Source],
                   fingerprint: Fingerprint | None = None) -> Fingerprint:
    """The fingerprint of sources, added to one that there is already."""
    fingerprint = fingerprint or Fingerprint()
    for name, source in sources.items():
        for number, (key, start, stop) in enumerate(pieces(checkpoint, source)):
            fingerprint.add(f"{name} {number}", checkpoint.floating(key)[start:stop])
    return fingerprint


def fill(module: nn.Module, sources: Mapping[str, Source], checkpoint: Checkpoint,
         device: torch.device, dtype: torch.dtype) -> Fingerprint:
    """Fill a module on the meta device, one tensor at a time, in `dtype` on `device`.

    sources: for every parameter that is still on the meta device. They are read in file order, so
    that one shard is open at a time, and frozen. All shapes are checked before anything is read;
    SSDError names file, key, found and expected shape.
    """
    on_meta = {name for name, own in module.named_parameters() if own.is_meta}
    if on_meta != set(sources):
        raise ValueError(f"sources and parameters differ: {sorted(on_meta ^ set(sources))}")
    for name, source in sources.items():
        require_shape(checkpoint, source, tuple(module.get_parameter(name).shape))
    fingerprint = Fingerprint()
    for name in sorted(sources, key=lambda name: first_file(checkpoint, sources[name])):
        value = copy_source(checkpoint, sources[name], device, dtype, fingerprint, name)
        parent, _, leaf = name.rpartition(".")
        put(module.get_submodule(parent), leaf,
            checkpoint.transform(name, to_runtime_layout(module, name, value)))
    checkpoint.close()
    return fingerprint


def require_shape(checkpoint: Checkpoint, source: Source, expected: tuple[int, ...]) -> None:
    if (shape := shape_of(checkpoint, source)) != expected:
        key = next(pieces(checkpoint, source))[0]
        raise SSDError(f"{checkpoint.file_of(key)}: tensor {key} gives shape {shape}, expected "
                       f"{expected}")


def first_file(checkpoint: Checkpoint, source: Source) -> int:
    key = next(pieces(checkpoint, source))[0]
    return checkpoint.files.index(checkpoint.file_of(key))


def copy_source(checkpoint: Checkpoint, source: Source, device: torch.device, dtype: torch.dtype,
                fingerprint: Fingerprint, name: str) -> torch.Tensor:
    """Copy a source's pieces into one tensor; those of a loaded model are shared."""
    if isinstance(checkpoint, LoadedModel):
        fingerprint_of(checkpoint, {name: source}, fingerprint)
        return checkpoint.joined(list(pieces(checkpoint, source)))
    value = torch.empty(shape_of(checkpoint, source), dtype=dtype, device=device)
    if value.is_meta and not checkpoint.hashed:
        return value
    row = 0
    for number, (key, start, stop) in enumerate(pieces(checkpoint, source)):
        whole = checkpoint.floating(key)
        rows = whole[start:stop]
        place = value[row : row + len(rows)]
        fingerprint.add(f"{name} {number}", rows, place)
        if not value.is_meta and (adapted := checkpoint.adapt(key, whole)) is not whole:
            place.copy_(adapted[start:stop])
        row += len(rows)
    return value


def to_runtime_layout(module: nn.Module, name: str, value: torch.Tensor) -> torch.Tensor:
    """Return a parameter's value in the order in which its layer uses it."""
    parent, _, leaf = name.rpartition(".")
    layer = module.get_submodule(parent)
    return layer.to_runtime_layout(leaf, value) if isinstance(layer, DecoderLayer) else value
