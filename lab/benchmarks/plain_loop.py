"""Autoregressive decoding written plainly, in the manner of gpt-fast.

One model, one static cache, one token a pass, both guidance branches in one batch; it uses nothing
of the engine. With `compiled` torch.compile makes the pass, which reads the whole cache, so that
shapes never change; without it, the pass reads only the filled part of the cache.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F

from ssd_core.backbones.base import Backbone
from ssd_core.backbones.janus import Janus


class PlainModel:
    """Weights of postcard, Janus-Pro or Emu3, and a cache of `slots` for both branches."""

    def __init__(self, backbone: Backbone, slots: int, compiled: bool) -> None:
        self.weights, s = backbone, backbone.decoder.shape
        self.shape, self.compiled = s, compiled
        cache = (2, s.kv_heads, slots, s.head_dim)
        self.cache = [(backbone.norm.new_zeros(cache), backbone.norm.new_zeros(cache))
                      for _ in range(s.layers)]
        self.angles = backbone.angles[:slots]
        self.cos, self.sin = (part.to(backbone.dtype)
                              for part in (self.angles.real, self.angles.imag))
        self.step = torch.compile(self.forward, fullgraph=True) if compiled else self.forward

    def forward(self, x: torch.Tensor, at: torch.Tensor, seen: int) -> torch.Tensor:
        """Logits [2, codes] after embeddings x [2, n, d] in slots at [n]; reads slots < seen."""
        s, b = self.shape, self.weights
        here = at if self.compiled else slice(seen - len(at), seen)  # a slice is copied faster
        x = x if b.positions is None else x + b.positions[here]
        mask = None
        if len(at) > 1 or self.compiled:
            mask = torch.arange(seen, device=at.device) <= at[:, None]
        for layer, (keys, values) in zip(b.decoder.layers, self.cache, strict=True):
            y = F.rms_norm(x, x.shape[-1:], layer.attention_norm, s.eps)
            qkv = F.linear(y, layer.qkv).unflatten(-1, (-1, s.head_dim)).transpose(1, 2)
            qk, v = qkv.split((s.heads + s.kv_heads, s.kv_heads), dim=1)
            q, k = self.rotated(qk, here).split((s.heads, s.kv_heads), dim=1)
            keys[:, :, here], values[:, :, here] = k, v
            y = F.scaled_dot_product_attention(q, keys[:, :, :seen], values[:, :, :seen], mask,
                                               enable_gqa=s.heads != s.kv_heads)
            x = x + F.linear(y.transpose(1, 2).flatten(2), layer.out)
            y = F.rms_norm(x, x.shape[-1:], layer.ffn_norm, s.eps)
            gate, up = F.linear(y, layer.gate_up).chunk(2, dim=-1)
            x = x + F.linear(F.silu(gate) * up, layer.down)
        return self.logits(x[:, -1])

    def rotated(self, x: torch.Tensor, here: torch.Tensor | slice) -> torch.Tensor:
        """Rotary embedding of x [N, heads, n, D], of neighbouring pairs, by these slots' angles."""
        if self.compiled:  # torch.compile has no complex numbers
            cos, sin = self.cos[here], self.sin[here]
            a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
            return torch.stack((a * cos - b * sin, b * cos + a * sin), dim=-1).flatten(-2)
        pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))
        return torch.view_as_real(pairs * self.angles[here]).flatten(-2).to(x.dtype)

    def logits(self, x: torch.Tensor) -> torch.Tensor:
        b = self.weights
        x = F.rms_norm(x, x.shape[-1:], b.norm, self.shape.eps)
        if isinstance(b, Janus):
            x = F.gelu(F.linear(x, b.projection, b.projection_bias))
            return F.linear(x, b.head, b.head_bias).float()
        return F.linear(x, b.head).float()


def plain_loop(backbone: Backbone, branches: list[list[int]], cfg: float, greedy: bool,
               compiled: bool = False) -> Callable[[], torch.Tensor]:
    """A function that draws one picture and returns its tokens [slots], row ends included.

    branches: prompt ids of the picture and of guidance, of one length.
    """
    grid, prompt = backbone.grid, torch.tensor(branches, device=backbone.device)
    length, device = prompt.shape[1], backbone.device
    total = length + grid.slots
    model = PlainModel(backbone, total, compiled)

    @torch.inference_mode()
    def draw() -> torch.Tensor:
        tokens = torch.empty(grid.slots, dtype=torch.long, device=device)
        logits = model.forward(backbone.embed_prompt(prompt), torch.arange(length, device=device),
                               total if compiled else length)
        for slot in range(grid.slots):
            tokens[slot] = token = next_token(slot, logits)
            if slot + 1 < grid.slots:
                at = length + slot
                x = backbone.code_embedding[token].expand(2, 1, -1)
                logits = model.step(x, torch.tensor([at], device=device),
                                    total if compiled else at + 1)
        return tokens

    def next_token(slot: int, logits: torch.Tensor) -> torch.Tensor:
        if grid.row_end and (slot + 1) % grid.width == 0:
            return torch.tensor(backbone.codes, device=device)
        cond, uncond = logits
        guided = uncond + cfg * (cond - uncond)
        if greedy:
            return guided.argmax()
        probs = guided.softmax(-1)  # gpt-fast's way of sampling without waiting for the device
        return (probs / torch.empty_like(probs).exponential_(1)).argmax()

    return draw
