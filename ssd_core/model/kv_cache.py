"""The key/value cache: one buffer, allocated once, where slot = sequence position.

Before a pass, `seek` sets the slots that it feeds. Each layer then stores its keys and values there
(`update`) and attends to the slots at or before each query. Rolling back needs no operation: a
later pass overwrites the same slots. Candidates for the same position lie in different slots, and
`move` copies the chosen ones to their final slots. Knows nothing about pictures or methods.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import torch
import torch.nn.functional as F

KEYS = 64  # with keys by columns, passes read a multiple of this many slots: see `two_products`
WHOLE_MASK = 1 << 21  # numbers; up to this size, the masks of all slots are built once


def stored_by_columns(dtype: torch.dtype, device: torch.device, integers: bool = False) -> bool:
    """Whether attention on this device is computed by two products (transformer.two_products).

    integers: whether the decoder's matrices are integers. Then only attention can make the bits of
    a cell depend on the width of its pass, and two products do not.
    """
    return device.type == "cpu" and (dtype == torch.bfloat16 or integers)


def slots_made(slots: int, dtype: torch.dtype, device: torch.device, integers: bool = False) -> int:
    """The number of slots that a cache allocates to hold `slots`."""
    step = KEYS if stored_by_columns(dtype, device, integers) else 1
    return -(-slots // step) * step


class KVCache:
    """Keys and values [layers, N, kv_heads, slots, head_dim] of one run with N sequences.

    mask: additive [N or 1, 1, group * n, slots], repeated for the `group` query heads that share a
    key head. None if the pass attends to every slot, or if it is `causal` from slot 0.
    prompts: int64 [N, 1], the lengths of the prompts, for backbones whose angles depend on them.
    keys, values: views of one buffer, so that a layer stores both at once. by_columns: of two; keys
    are stored column by column, as the products of `attention` read them, and passes read a
    multiple of KEYS slots; in fp32 they read all slots, because there the number of keys changes
    the order of the sums.
    """

    def __init__(self, layers: int, sequences: int, kv_heads: int, slots: int, head_dim: int,
                 dtype: torch.dtype, device: torch.device, group: int = 1,
                 integers: bool = False) -> None:
        self.by_columns = stored_by_columns(dtype, device, integers)
        slots = slots_made(slots, dtype, device, integers)
        self._step = 1 if not self.by_columns else slots if dtype == torch.float32 else KEYS

        def made(parts: int, *vectors: int) -> torch.Tensor:
            return torch.zeros(layers, parts, sequences, kv_heads, *vectors, dtype=dtype,
                               device=device)

        self._set_buffers(*((made(1, head_dim, slots).mT, made(1, slots, head_dim))
                            if self.by_columns else (made(2, slots, head_dim),)))
        self._sequence_index = torch.arange(sequences, device=device)[:, None]
        self.slots: slice | torch.Tensor = slice(0, 0)
        self.positions: slice | torch.Tensor = self.slots  # in a tree they differ from the slots
        self.mask: torch.Tensor | None = None
        self.causal = False
        self.prompts: torch.Tensor | None = None
        self._group = group
        self._visible_from: torch.Tensor | None = None
        self._triangle = self._additive_of_all() if slots * slots <= WHOLE_MASK else None

    def _set_buffers(self, *buffers: torch.Tensor) -> None:
        """Buffers [layers, 1 or 2, N, kv_heads, slots, head_dim]: keys and values, or both."""
        self._buffers = buffers
        self.keys, self.values = buffers[0][:, 0], buffers[-1][:, -1]
        self._layers = tuple(zip(self.keys, self.values, zip(*buffers, strict=True), strict=True))

    def _rounded(self, stop: int) -> int:
        """The number of slots that a pass reads if it needs those before `stop`."""
        return -(-stop // self._step) * self._step

    @property
    def nbytes(self) -> int:
        return 2 * self.keys.numel() * self.keys.element_size()

    def hide(self, counts: torch.Tensor) -> None:
        """Hide the first counts[i] slots of sequence i from all later passes; counts [N] int64.

        A hidden slot still attends to itself, because a softmax over nothing would be NaN.
        """
        if self._visible_from is None:
            self._visible_from = counts[:, None, None].clone()
        else:
            self._visible_from.copy_(counts[:, None, None])

    def seek(self, start: int, count: int) -> None:
        """Prepare a pass over slots start..start+count-1 of every sequence, by plain slices."""
        self.slots = self.positions = fed = slice(start, start + count)
        self._end = self._rounded(fed.stop)
        none_hidden = self._visible_from is None
        self.causal = none_hidden and start == 0
        if self.causal or (none_hidden and count == 1 and self._end == fed.stop):
            self.mask = None
        elif none_hidden and self._triangle is not None:
            self.mask = self._grouped(self._triangle[None, None, fed, : self._end])
        else:
            slots = torch.arange(start, fed.stop, device=self.keys.device)
            self.mask = self._at_or_before(slots[None])

    def seek_each(self, slots: torch.Tensor, stop: int, visible: torch.Tensor | None = None,
                  positions: torch.Tensor | None = None) -> None:
        """Prepare a pass over slots [N, n] int64, which may differ per sequence.

        The pass reads the slots before `stop`. visible [N, n, stop] bool replaces the rule "at or
        before the query's position", for methods that commit out of raster order (wavefronts,
        trees). positions [N, n] int64: sequence positions, where these are not the slots.
        """
        self.positions = slots if positions is None else positions
        self.slots, self._end, self.causal = slots, self._rounded(stop), False
        if visible is not None:
            visible = F.pad(visible, (0, self._end - stop))
        self.mask = self._at_or_before(self.positions) if visible is None else self._additive(
            self._unhidden(visible, slots)[:, None])

    def of_sequences(self, start: int, stop: int) -> KVCache:
        """The same memory for sequences start..stop-1 alone."""
        view = copy(self)
        view._set_buffers(*(buffer[:, :, start:stop] for buffer in self._buffers))
        view._sequence_index = self._sequence_index[: stop - start]
        if self.prompts is not None:
            view.prompts = self.prompts[start:stop]
        if self._visible_from is not None:
            view._visible_from = self._visible_from[start:stop]
        return view

    def take(self, other: KVCache, sequences: slice) -> None:
        """Copy the keys and values of these sequences from a cache of the same slots."""
        slots = min(self.keys.shape[3], other.keys.shape[3])
        for own, others in ((self.keys, other.keys), (self.values, other.values)):
            own[:, sequences, :, :slots] = others[:, sequences, :, :slots]

    def move(self, source: torch.Tensor, target: torch.Tensor) -> None:
        """Copy keys and values from slots source [N, m] to slots target [N, m]."""
        each = self._sequence_index
        for buffer in self._buffers:
            buffer[:, :, each, :, target] = buffer[:, :, each, :, source]

    def update(self, layer: int, kv: torch.Tensor) -> Sequence[torch.Tensor]:
        """Store keys and values, each [N, kv_heads, n, head_dim], joined along the heads.

        Returns those up to the last fed slot.
        """
        k, v, buffers = self._layers[layer]
        fed = kv.unflatten(1, (2, -1))
        for buffer, part in zip(buffers, fed.chunk(len(buffers), 1), strict=True):
            if isinstance(self.slots, slice):
                buffer[:, :, :, self.slots] = part.transpose(0, 1)
            else:
                buffer[:, self._sequence_index, :, self.slots] = part.permute(
                    0, 3, 1, 2, 4).to(buffer.dtype)
        if self.causal and self.by_columns:  # SDPA saves memory only with keys by rows
            return fed.to(k.dtype).unbind(1)
        return k[:, :, : self._end], v[:, :, : self._end]

    def _additive_of_all(self) -> torch.Tensor:
        """[slots, slots]: row s is the mask of a query in slot s if nothing is hidden."""
        slots = self.keys.shape[3]
        return self.values.new_full((slots, slots), float("-inf")).triu_(1)

    def _at_or_before(self, slots: torch.Tensor) -> torch.Tensor:
        """The mask that lets positions [N or 1, n] attend to slots at or before themselves."""
        if self._triangle is not None and self._visible_from is None:
            return self._grouped(self._triangle[slots, : self._end][:, None])
        seen = torch.arange(self._end, device=slots.device) <= slots[..., None]
        return self._additive(self._unhidden(seen, slots)[:, None])

    def _unhidden(self, seen: torch.Tensor, slots: torch.Tensor) -> torch.Tensor:
        """seen [N or 1, n, slots] of the queries in slots [N or 1, n], without hidden slots."""
        if self._visible_from is None:
            return seen
        slot = torch.arange(self._end, device=slots.device)
        return seen & (slot >= self._visible_from) | (slot == slots[..., None])

    def _additive(self, visible: torch.Tensor) -> torch.Tensor:
        """A float mask, built once per pass: SDPA would convert a bool mask in every layer."""
        mask = torch.zeros(visible.shape, dtype=self.keys.dtype, device=visible.device)
        return self._grouped(mask.masked_fill_(~visible, float("-inf")))

    def _grouped(self, mask: torch.Tensor) -> torch.Tensor:
        """Repeat the mask [N or 1, 1, n, slots] for the query heads that share a key head."""
        return mask if self._group == 1 else mask.repeat(1, 1, self._group, 1)
