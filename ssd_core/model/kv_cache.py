"""The key/value cache: one buffer, allocated once, where slot = sequence position.

Before a pass, `seek` sets the slots it feeds. Each layer then stores its keys and values there
(`update`) and attends to the slots at or before each query. Rolling back needs no operation: a
later pass writes the same slots again. Candidates for the same position wait in different slots,
and `move` takes the chosen ones to their place. Knows nothing about pictures or methods.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

KEYS = 64  # with keys by columns, passes read a multiple of so many slots: see `two_products`
WHOLE_MASK = 1 << 21  # numbers; up to so many, the masks of all slots are made once


def stored_by_columns(dtype: torch.dtype, device: torch.device) -> bool:
    """Whether attention on this device is computed by two products (transformer.two_products)."""
    return device.type == "cpu" and dtype == torch.bfloat16


def slots_made(slots: int, dtype: torch.dtype, device: torch.device) -> int:
    """How many slots a cache has that was asked for so many."""
    step = KEYS if stored_by_columns(dtype, device) else 1
    return -(-slots // step) * step


class KVCache:
    """Keys and values [layers, rows, kv_heads, slots, head_dim] of one run.

    mask: additive [rows or 1, 1, group * n, slots], repeated for the `group` query heads that share
    a key head. None if the pass attends to every slot, or if it is `causal` from slot 0.
    by_columns: keys are stored column by column, as the products of `attention` read them, and
    passes read a multiple of KEYS slots.
    """

    def __init__(self, layers: int, rows: int, kv_heads: int, slots: int, head_dim: int,
                 dtype: torch.dtype, device: torch.device, group: int = 1) -> None:
        self.by_columns = stored_by_columns(dtype, device)
        self._step = KEYS if self.by_columns else 1
        slots = self._rounded(slots)
        shape = (layers, rows, kv_heads, slots, head_dim)
        self.values = torch.zeros(shape, dtype=dtype, device=device)
        self.keys = (torch.zeros((*shape[:3], head_dim, slots), dtype=dtype, device=device).mT
                     if self.by_columns else torch.zeros_like(self.values))
        self._every_row = torch.arange(rows, device=device)[:, None]
        self._layers = tuple(zip(self.keys, self.values, strict=True))
        self.slots: slice | torch.Tensor = slice(0, 0)
        self.positions: slice | torch.Tensor = self.slots  # in a tree other than the slots
        self.mask: torch.Tensor | None = None
        self.causal = False
        self._group = group
        self._visible_from: torch.Tensor | None = None
        self._triangle = self._additive_of_all() if slots * slots <= WHOLE_MASK else None

    def _rounded(self, stop: int) -> int:
        """The slots that a pass reads which needs those before `stop`."""
        return -(-stop // self._step) * self._step

    @property
    def nbytes(self) -> int:
        return 2 * self.keys.numel() * self.keys.element_size()

    def hide(self, counts: torch.Tensor) -> None:
        """Hide the first counts[row] slots of each row from all later passes; counts [rows] int64.

        A hidden slot still attends to itself: a softmax over nothing would be NaN.
        """
        self._visible_from = counts[:, None, None]

    def seek(self, start: int, count: int) -> None:
        """The next pass feeds slots start..start+count-1 of every row, by plain slices."""
        self.slots = self.positions = fed = slice(start, start + count)
        self._end = self._rounded(fed.stop)
        all_seen = self._visible_from is None
        self.causal = all_seen and start == 0
        if self.causal or (all_seen and count == 1 and self._end == fed.stop):
            self.mask = None
        elif all_seen and self._triangle is not None:
            self.mask = self._grouped(self._triangle[None, None, fed, : self._end])
        else:
            slots = torch.arange(start, fed.stop, device=self.keys.device)
            self.mask = self._at_or_before(slots[None])

    def seek_each(self, slots: torch.Tensor, stop: int, visible: torch.Tensor | None = None,
                  positions: torch.Tensor | None = None) -> None:
        """The next pass feeds slots [rows, n] int64, which may differ per row.

        It reads the slots before `stop`. `visible` [rows, n, stop] bool replaces the rule "at or
        before the query's position", for methods that commit out of raster order (wavefronts,
        trees). positions [rows, n] int64: places in the sequence, where they are not the slots.
        """
        self.positions = slots if positions is None else positions
        self.slots, self._end, self.causal = slots, self._rounded(stop), False
        if visible is not None:
            visible = F.pad(visible, (0, self._end - stop))
        self.mask = self._at_or_before(self.positions) if visible is None else self._additive(
            self._unhidden(visible, slots)[:, None])

    def move(self, source: torch.Tensor, target: torch.Tensor) -> None:
        """Copy keys and values from slots source [rows, m] to slots target [rows, m]."""
        for stored in (self.keys, self.values):
            stored[:, self._every_row, :, target] = stored[:, self._every_row, :, source]

    def update(self, layer: int, keys: torch.Tensor, values: torch.Tensor):
        """Store [rows, kv_heads, n, head_dim]; return keys and values up to the last fed slot."""
        k, v = self._layers[layer]
        if isinstance(self.slots, slice):
            k[:, :, self.slots] = keys
            v[:, :, self.slots] = values
        else:
            k[self._every_row, :, self.slots] = keys.transpose(1, 2).to(k.dtype)
            v[self._every_row, :, self.slots] = values.transpose(1, 2).to(v.dtype)
        if self.causal and self.by_columns:  # SDPA is lean only with keys by rows
            return keys.to(k.dtype).contiguous(), values.to(v.dtype)
        return k[:, :, : self._end], v[:, :, : self._end]

    def _additive_of_all(self) -> torch.Tensor:
        """Row s of [slots, slots] is the mask of a query in slot s, if nothing is hidden."""
        slots = self.keys.shape[3]
        return self.values.new_full((slots, slots), float("-inf")).triu_(1)

    def _at_or_before(self, slots: torch.Tensor) -> torch.Tensor:
        """The mask with which positions [rows or 1, n] attend to slots at or before themselves."""
        if self._triangle is not None and self._visible_from is None:
            return self._grouped(self._triangle[slots, : self._end][:, None])
        seen = torch.arange(self._end, device=slots.device) <= slots[..., None]
        return self._additive(self._unhidden(seen, slots)[:, None])

    def _unhidden(self, seen: torch.Tensor, slots: torch.Tensor) -> torch.Tensor:
        """What slots [rows or 1, n] see [rows or 1, n, slots] without the hidden slots."""
        if self._visible_from is None:
            return seen
        slot = torch.arange(self._end, device=slots.device)
        return seen & (slot >= self._visible_from) | (slot == slots[..., None])

    def _additive(self, visible: torch.Tensor) -> torch.Tensor:
        """A float mask, made once per pass: SDPA would convert a bool mask in every layer."""
        mask = torch.zeros(visible.shape, dtype=self.keys.dtype, device=visible.device)
        return self._grouped(mask.masked_fill_(~visible, float("-inf")))

    def _grouped(self, mask: torch.Tensor) -> torch.Tensor:
        """The mask [rows or 1, 1, n, slots] for the query heads that share a key head."""
        return mask if self._group == 1 else mask.repeat(1, 1, self._group, 1)
