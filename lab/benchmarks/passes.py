"""Seconds of single passes over some cells in the middle of a picture, guidance on."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import torch

from ssd_core.backbones.base import Backbone
from ssd_core.model.transformer import Decoder, sequence_angles
from ssd_core.weights.catalogue import known

START, SLOTS = 300, 704  # of a picture of 24 x 24 cells, behind a prompt
SEQUENCES = 2  # with guidance


@torch.inference_mode()
def seconds_of(run: Callable[[], object], repeats: int, warmup: int = 1,
               clock: Callable[[], float] = time.perf_counter) -> list[float]:
    """Seconds of each of several runs; warm-up runs do not count."""
    seconds = []
    for _ in range(warmup + repeats):
        start = clock()
        run()
        seconds.append(clock() - start)
    return seconds[warmup:]


def backbone_pass(backbone: Backbone, cells: int, start: int = START, slots: int = SLOTS,
                  sequences: int = SEQUENCES) -> Callable[[], None]:
    """A function that runs one pass of a backbone, with its image head."""
    cache = backbone.new_cache(sequences, slots)
    x = backbone.embed(torch.zeros(sequences, cells, dtype=torch.long, device=backbone.device))

    def run() -> None:
        cache.seek(start, cells)
        backbone.logits(backbone(x, cache))

    return run


@torch.no_grad()
def one_layer(name: str, dtype: torch.dtype, device: torch.device) -> Decoder:
    """One layer as wide as a known backbone's, with random weights."""
    decoder = Decoder(replace(known(name).shape, layers=1)).to(device)
    draws = torch.Generator(device).manual_seed(0)
    for weight in decoder.parameters():
        if weight.dim() == 2:
            weight.normal_(std=0.02, generator=draws)
    return decoder.to(dtype).requires_grad_(False)


def layer_pass(decoder: Decoder, cells: int) -> Callable[[], None]:
    """A function that runs one pass of a decoder."""
    norm, shape = decoder.layers[0].attention_norm, decoder.shape
    cache = decoder.new_cache(SEQUENCES, SLOTS)
    x = torch.randn(SEQUENCES, cells, shape.hidden, device=norm.device).to(norm.dtype)
    angles = sequence_angles(SLOTS, shape.head_dim)[START : START + cells].to(norm.device)

    def run() -> None:
        cache.seek(START, cells)
        decoder(x, angles, cache)

    return run
