"""What a run holds at its peak: weights, cache, states, noise, and activations as the rest.

    python benchmarks/memory.py            (Linux for the CPU figure, or any CUDA device)
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import torch
from conditions import conditions, table

from ssd_core import Sampling, generate, load_backbone, load_heads, methods
from ssd_core.engine.decode import prompt_branches
from ssd_core.engine.state import DecodeState

PROMPT = "a red house on the left , at night , under a starry sky ."
MIB = 1 << 20


class Peak:
    """Bytes allocated at most since `start`."""

    def __init__(self, device: torch.device) -> None:
        self.cuda = device.type == "cuda"

    def start(self) -> None:
        if self.cuda:
            torch.cuda.reset_peak_memory_stats()
            self.before = torch.cuda.memory_allocated()
        else:
            Path("/proc/self/clear_refs").write_text("5")  # resets the high-water mark
            self.before = resident("VmRSS")

    def grown(self) -> int:
        after = torch.cuda.max_memory_allocated() if self.cuda else resident("VmHWM")
        return after - self.before


def resident(field: str) -> int:
    status = Path("/proc/self/status").read_text()
    return int(re.search(rf"{field}:\s+(\d+) kB", status).group(1)) * 1024


def nbytes(*tensors: torch.Tensor) -> int:
    return sum(t.numel() * t.element_size() for t in tensors)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=1)
    args = parser.parse_args()
    backbone = load_backbone("postcard")
    heads = load_heads("postcard", backbone)
    weights = nbytes(*backbone.parameters(), *heads.parameters())
    prompts, cfg = [PROMPT] * args.batch, backbone.preset.cfg
    state = DecodeState(backbone, prompt_branches(backbone, prompts, None, cfg), args.batch,
                        Sampling(), cfg, heads)
    held = nbytes(state.hidden, state.tokens) + (
        nbytes(state.noise.held) if state.noise.held is not None else 0)
    cache = state.cache.nbytes
    del state
    rows = []
    for method in (methods.AR(), methods.SSD(k_h=5, k_v=1, rounds=2), methods.Exact()):
        list(generate(backbone, prompts, method, heads))  # warm-up: the allocator's own pools
        peak = Peak(backbone.device)
        peak.start()
        for _ in generate(backbone, prompts, method, heads):
            pass
        grown = peak.grown()
        rows.append([method.name, *(f"{n / MIB:.1f}" for n in (
            weights, cache, held, max(0, grown - cache - held), weights + grown))])
    print(f"{conditions(backbone.device)}; batch {args.batch}, guidance on, MiB\n")
    print(table(["method", "weights", "KV cache", "states and noise", "activations (rest)",
                 "peak"], rows))


if __name__ == "__main__":
    main()
