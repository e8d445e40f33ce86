"""The decoder: one Llama-shaped transformer whose variants are switches, not classes.

It returns the hidden state *before* the final RMSNorm, which SSD's draft heads estimate (paper,
section 3.3). Knows nothing about text, pictures or sampling.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import nn

from .kv_cache import KVCache
from .processor import cpu_has_bf16
from .products import Int8Matrix, Matrix, added, product
from .surroundings import scaled_dot_product_attention

Angles = torch.Tensor | tuple[torch.Tensor, torch.Tensor] | None  # `rotate_`'s or tables
FEW = 4  # queries; fewer have kernels of their own for fp32 products on CPUs


@dataclass(frozen=True)
class DecoderShape:
    """Sizes and switches of a decoder.

    rotary: which numbers of a head's query or key form a rotary pair in the model's files:
    "interleaved" for neighbours, "split" for (i, i + D/2), or "none". In memory pairs are always
    neighbours (`DecoderLayer.to_runtime_layout`), except for "halves": then they are as in "split"
    files, and every pass reorders its queries and keys. qk_norm: each head of q and k has a
    LayerNorm of its own (Chameleon). qkv_bias: q, k and v have biases (Qwen2). qk_rms_norm: each
    head has an RMSNorm, with one weight for all heads of q and one for those of k (Emu3.5).
    rotary_dim: the first numbers of a head that form pairs, None: all; the angles of the others
    are 0. post_norms: what attention and feed-forward network add is normed first (GLM-4).
    """

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    rotary: str = "split"
    qk_norm: bool = False
    eps: float = 1e-6
    qkv_bias: bool = False
    qk_rms_norm: bool = False
    rotary_dim: int | None = None
    post_norms: bool = False


def rotate_(x: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
    """Rotate neighbouring pairs of x [N, n, heads, D] by complex angles [n or 1, 1, D/2].

    Returns float32; overwrites x if that is its dtype.
    """
    x = x.float()
    torch.view_as_complex(x.unflatten(-1, (-1, 2))).mul_(angles)
    return x


def rotation_tables(angles: torch.Tensor, groups: int) -> tuple[torch.Tensor, torch.Tensor]:
    """What `rotated_by_tables` multiplies by, from complex angles [..., n, D/2].

    float32 [..., n, groups, 1, D/2, 2]: cosine and sine for the first of a pair, minus sine and
    cosine for the second. The last group, the values, is not rotated.
    """
    turns = angles.new_ones(*angles.shape[:-1], groups, 1, angles.shape[-1])
    turns[..., :-1, :, :] = angles[..., None, None, :]
    return torch.view_as_real(turns), torch.view_as_real(turns * 1j)


def rotated_by_tables(qkv: torch.Tensor, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Rotate queries and keys of qkv [N, n, all heads, D] by two kernels, which also cast.

    For half precision on cards; `rotate_` takes three, and may differ in the last bit.
    """
    pairs = qkv.view(*qkv.shape[:2], first.shape[-4], -1, *first.shape[-2:])
    products = pairs[..., 1:] * second
    return torch.addcmul(products, pairs[..., :1], first, out=torch.empty_like(pairs)).view_as(qkv)


def interleave_rotary(x: torch.Tensor, dim: int, count: int | None = None) -> torch.Tensor:
    """Reorder the first `count` of D numbers, or all, from the "split" layout to neighbours."""
    if count is not None and count < x.shape[dim]:
        pairs, rest = x.split((count, x.shape[dim] - count), dim)
        return torch.cat((interleave_rotary(pairs, dim), rest), dim)
    return x.unflatten(dim, (2, -1)).transpose(dim, dim + 1).flatten(dim, dim + 1)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None,
              causal: bool, by_products: bool = False) -> torch.Tensor:
    """Attend from q [N, heads, n, D] to k and v [N, kv_heads, slots, D].

    With a mask [..., n, slots], query heads that share a key head are folded into one head with
    more queries. SDPA's kernels that take a mask cannot share keys and would copy keys and values
    for every head. The causal kernels can share them. by_products: see `two_products`.
    """
    group = q.shape[1] // k.shape[1]
    if causal and q.requires_grad and q.device.type == "cpu" and group == 1:
        return causal_products(q, k, v)
    if causal:
        return scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=group > 1)
    attend = two_products if by_products else scaled_dot_product_attention
    if group == 1:
        return attend(q, k, v, mask)
    q = q.unflatten(1, (-1, group)).flatten(2, 3)  # [N, kv_heads, group * n, D]
    return attend(q, k, v, mask).unflatten(2, (group, -1)).flatten(1, 2)


def two_products(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
                 mask: torch.Tensor | None) -> torch.Tensor:
    """softmax(q k^T / sqrt(D) + mask) v as two matrix products; all [N, heads, n or slots, D].

    On CPUs this is faster in bf16 than SDPA's kernel, and a query's result has the same bits at any
    number of queries and slots; in fp32 at any number of queries from FEW on, so that fewer are
    padded (`backbones/invariance.py` checks this on the current machine).
    """
    if q.dtype == torch.float32 and (padding := FEW - q.shape[2]) > 0:
        mask = F.pad(mask, (0, 0, 0, padding)) if mask is not None and mask.shape[2] > 1 else mask
        return two_products(F.pad(q, (0, 0, 0, padding)), k, v, mask)[:, :, :-padding]
    sequences, heads, n, width = q.shape
    if mask is None:  # every slot is visible
        mask = q.new_zeros(1, 1, 1, 1)
    mask = mask[0] if len(mask) == 1 else mask.expand(-1, heads, -1, -1).flatten(0, 1)
    scores = torch.baddbmm(mask, q.reshape(-1, n, width), k.flatten(0, 1).mT, alpha=width**-0.5)
    return torch.bmm(scores.softmax(-1), v.flatten(0, 1)).view(sequences, heads, n, width)


def causal_products(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Causal attention of training, all [N, heads, n, D], a part of the queries at a time.

    On CPUs this takes half as long as SDPA's kernel, forward and backward.
    """
    n = q.shape[2]
    part = -(-n // 4)
    hidden = q.new_full((n, n), float("-inf")).triu(1)[None, None]
    return torch.cat([
        two_products(q[:, :, a : a + part], k[:, :, : a + part], v[:, :, : a + part],
                     hidden[..., a : a + part, : a + part])
        for a in range(0, n, part)], dim=2)


class DecoderLayer(nn.Module):
    """Pre-norm attention with fused q, k, v, then SwiGLU with fused gate and up."""

    qkv_bias: nn.Parameter | None  # None without qkv_bias
    attention_post_norm: nn.Parameter | None  # None without post_norms, as ffn_post_norm
    ffn_post_norm: nn.Parameter | None
    qk_norm_weight: nn.Parameter  # of the heads of q, then of k; with qk_norm or qk_rms_norm
    qk_norm_bias: nn.Parameter  # with qk_norm

    def __init__(self, shape: DecoderShape) -> None:
        super().__init__()
        d, width = shape.hidden, shape.head_dim
        self.shape = shape
        self.attention_norm = nn.Parameter(torch.ones(d))
        rows = (shape.heads + 2 * shape.kv_heads) * width
        rotated = shape.heads + shape.kv_heads
        self.qkv = nn.Parameter(torch.empty(rows, d))
        self.register_parameter(
            "qkv_bias", nn.Parameter(torch.zeros(rows)) if shape.qkv_bias else None)
        self.out = nn.Parameter(torch.empty(d, shape.heads * width))
        self.ffn_norm = nn.Parameter(torch.ones(d))
        self.gate_up = nn.Parameter(torch.empty(2 * shape.ffn, d))
        self.down = nn.Parameter(torch.empty(d, shape.ffn))
        for name in ("attention_post_norm", "ffn_post_norm"):
            self.register_parameter(
                name, nn.Parameter(torch.ones(d)) if shape.post_norms else None)
        if shape.qk_norm:
            self.qk_norm_weight = nn.Parameter(torch.ones(rotated, width))
            self.qk_norm_bias = nn.Parameter(torch.zeros(rotated, width))
        elif shape.qk_rms_norm:
            self.qk_norm_weight = nn.Parameter(torch.ones(rotated * width))

    def forward(self, x: torch.Tensor, sequences: int, angles: Angles, index: int,
                cache: KVCache | None) -> torch.Tensor:
        """x [N * n, d] of N sequences -> [N * n, d]."""
        s, width = self.shape, (self.shape.hidden,)
        y = F.rms_norm(x, width, self.attention_norm, s.eps)
        qkv = product(y, self.qkv, self.qkv_bias)
        qkv = qkv.view(sequences, -1, s.heads + 2 * s.kv_heads, s.head_dim)
        y = self.attend(qkv, angles, index, cache)
        x = self.joined(x, y, self.out, self.attention_post_norm)
        y = F.rms_norm(x, width, self.ffn_norm, s.eps)
        gate, up = product(y, self.gate_up).split(s.ffn, dim=-1)
        return self.joined(x, F.silu(gate) * up, self.down, self.ffn_post_norm)

    def joined(self, x: torch.Tensor, y: torch.Tensor, weight: Matrix,
               norm: torch.Tensor | None) -> torch.Tensor:
        """x [m, d] + y @ weight.T, which `norm` scales first where there is one."""
        if norm is None:
            return added(x, y, weight)
        return x + F.rms_norm(product(y, weight), norm.shape, norm, self.shape.eps)

    def attend(self, qkv: torch.Tensor, angles: Angles, index: int,
               cache: KVCache | None) -> torch.Tensor:
        """The attention output [N * n, heads * D], from qkv [N, n, all heads, D].

        Rotated keys lie beside the values, so that the cache stores both at once.
        """
        s = self.shape
        qkv = self.turned(qkv, angles)
        q, kv = (part.transpose(1, 2) for part in (qkv[:, :, : s.heads], qkv[:, :, s.heads :]))
        if cache is None:
            k, v = kv.chunk(2, dim=1)
            y = attention(q, k, v, None, True)
        else:
            k, v = cache.update(index, kv)
            y = attention(q.to(k.dtype), k, v, cache.mask, cache.causal, cache.by_columns)
        return y.transpose(1, 2).reshape(-1, s.heads * s.head_dim)

    def turned(self, qkv: torch.Tensor, angles: Angles) -> torch.Tensor:
        """qkv with queries and keys normed and rotated; may overwrite it."""
        s = self.shape
        if isinstance(angles, tuple):
            return rotated_by_tables(qkv, *angles)
        qk = turned = qkv[:, :, : s.heads + s.kv_heads]
        if s.qk_norm or s.qk_rms_norm:
            turned = self.normed(turned)
        if s.rotary == "halves":
            turned = interleave_rotary(turned, 3, s.rotary_dim)
        if angles is not None:
            turned = rotate_(turned, angles)
        if turned is not qk:
            qk.copy_(turned)
        return qkv

    def normed(self, qk: torch.Tensor) -> torch.Tensor:
        """LayerNorm or RMSNorm of each head of qk [N, n, q and k heads, D], before the rotation."""
        s, width = self.shape, qk.shape[-1:]
        weight = self.qk_norm_weight.view(qk.shape[2:])
        if s.qk_rms_norm:
            return F.rms_norm(qk, width, eps=s.eps) * weight
        return torch.addcmul(self.qk_norm_bias, F.layer_norm(qk, width, eps=1e-5), weight)

    def to_runtime_layout(self, name: str, value: torch.Tensor) -> torch.Tensor:
        """Convert a parameter from the files' layout to this layer's.

        Rotary pairs become neighbours. Queries and keys are reordered in the same way, so attention
        stays the same and one rotation serves every backbone.
        """
        s = self.shape
        if s.rotary != "split" or not name.startswith("qk"):
            return value
        heads = (value.unflatten(0, (-1, s.head_dim)) if name.startswith("qkv")
                 else value.view(-1, s.head_dim))
        rotated = s.heads + s.kv_heads  # the heads of v are not reordered
        paired = interleave_rotary(heads[:rotated], 1, s.rotary_dim)
        return torch.cat((paired, heads[rotated:])).view_as(value)


class LayerStreaming(Protocol):
    """Interface by which a decoder asks for a layer that it is about to use."""

    @property
    def waiting(self) -> int:
        """How many layers wait elsewhere."""
        raise NotImplementedError

    def load_layer(self, index: int) -> nn.Module:
        """The layer, on the device of the others."""
        raise NotImplementedError


class Decoder(nn.Module):
    """A stack of layers applied to input embeddings."""

    def __init__(self, shape: DecoderShape) -> None:
        super().__init__()
        self.shape = shape
        self.layers = nn.ModuleList(DecoderLayer(shape) for _ in range(shape.layers))
        self.streaming: LayerStreaming | None = None  # of layers that wait elsewhere

    def forward(self, x: torch.Tensor, angles: torch.Tensor | None, cache: KVCache | None = None,
                layers: int | None = None) -> torch.Tensor:
        """Embeddings [N, n, d] -> hidden states [N, n, d] before the final norm.

        angles: complex64 [n, D/2], or [N, n, D/2] if sequences differ, or None without rotary.
        layers: compute only the first `layers` layers. cache: call its `seek` first; without a
        cache this is a plain causal forward pass from slot 0.
        """
        turns, y = self.turns(angles, x, cache), x.reshape(-1, x.shape[-1])
        for index, layer in enumerate(self.layers[:layers]):
            layer = layer if self.streaming is None else self.streaming.load_layer(index)
            y = layer(y, len(x), turns, index, cache)
        return y.view_as(x)

    def turns(self, angles: torch.Tensor | None, x: torch.Tensor, cache: KVCache | None) -> Angles:
        """The angles as the layers use them in this pass, the same for all heads."""
        s = self.shape
        if angles is None:
            return None
        plain = not (s.qk_norm or s.qk_rms_norm or s.rotary == "halves")
        if plain and cache is not None and not cache.by_columns and x.dtype != torch.float32:
            return rotation_tables(angles, s.heads // s.kv_heads + 2)
        return angles[..., None, :]

    def store_column_major(self) -> None:
        """Store the matrices column by column; their values stay the same.

        `processor.prefers_column_major` says for which device and dtype this is faster.
        """
        for name, weight in self.named_parameters():
            if weight.dim() == 2 and type(weight) is nn.Parameter and "norm" not in name:
                weight.data = weight.data.t().contiguous().t()

    def new_cache(self, rows: int, slots: int, layers: int | None = None) -> KVCache:
        """A cache of `slots` for each of `rows` sequences and the first `layers` layers, or all."""
        s, norm = self.shape, self.layers[0].get_parameter("attention_norm")
        dtype = self.cache_dtype(norm.dtype, norm.device)
        return KVCache(layers or s.layers, rows, s.kv_heads, slots, s.head_dim, dtype, norm.device,
                       s.heads // s.kv_heads, self.integers)

    @property
    def integers(self) -> bool:
        """Whether the matrices are 8-bit integers."""
        return isinstance(self.layers[0].qkv, Int8Matrix)

    def cache_dtype(self, dtype: torch.dtype, device: torch.device) -> torch.dtype:
        """The dtype of keys and values for hidden states of this dtype."""
        return cache_dtype(dtype, device, self.integers)


def cache_dtype(dtype: torch.dtype, device: torch.device, integers: bool) -> torch.dtype:
    """bf16 for integer matrices on a CPU that computes in bf16, else the dtype of the states."""
    return torch.bfloat16 if integers and device.type == "cpu" and cpu_has_bf16() else dtype


def frequencies(pairs: int, theta: float = 10_000.0) -> torch.Tensor:
    """[pairs] float64 rotary frequencies theta^(-i/pairs)."""
    return theta ** (-torch.arange(pairs, dtype=torch.float64) / pairs)


def sequence_angles(slots: int, head_dim: int, theta: float = 10_000.0) -> torch.Tensor:
    """complex64 [slots, head_dim/2]: ordinary one-dimensional rotary angles."""
    turn = torch.outer(torch.arange(slots, dtype=torch.float64), frequencies(head_dim // 2, theta))
    return torch.polar(torch.ones_like(turn), turn).to(torch.complex64)


def axial_angles(rows: torch.Tensor, columns: torch.Tensor, head_dim: int,
                 theta: float = 10_000.0) -> torch.Tensor:
    """complex64 [n, head_dim/2]: half of the pairs encode the row, half the column."""
    frequency = frequencies(head_dim // 4, theta)
    turn = torch.cat((torch.outer(rows.double(), frequency),
                      torch.outer(columns.double(), frequency)), dim=-1)
    return torch.polar(torch.ones_like(turn), turn).to(torch.complex64)


def axes_angles(positions: torch.Tensor, sections: Sequence[int], head_dim: int,
                theta: float = 10_000.0) -> torch.Tensor:
    """complex64 [n, head_dim/2]: each section of the pairs encodes one axis.

    positions: [n, axes]; sections: the pairs of each axis, in order of falling frequency. Pairs
    behind the sections are not rotated.
    """
    axis = torch.repeat_interleave(torch.arange(len(sections)), torch.tensor(sections))
    turn = positions.double()[:, axis] * frequencies(len(axis), theta)
    turn = F.pad(turn, (0, head_dim // 2 - len(axis)))
    return torch.polar(torch.ones_like(turn), turn).to(torch.complex64)
