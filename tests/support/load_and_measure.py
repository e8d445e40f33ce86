"""Run by test_weights.py in a process of its own: load a decoder, print the memory it took.

The last line is one JSON object: bytes of the parameters, and the highest resident memory of the
process beyond what it had before.
"""

import json
import sys
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from ssd_core.backbones.reading.checkpoint import open_checkpoint
from ssd_core.backbones.reading.weights import Fingerprint, decoder_shape, decoder_sources, fill
from ssd_core.model.transformer import Decoder


def memory(name: str) -> int:
    """A figure of /proc/self/status in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


def load(folder: str, dtype: torch.dtype) -> Decoder:
    checkpoint = open_checkpoint(Path(folder))
    shape = decoder_shape(checkpoint, "model.", heads=8)
    holder = nn.Module()
    with torch.device("meta"):
        holder.decoder = Decoder(shape)
    fill(holder, decoder_sources("model.", shape.layers), checkpoint, torch.device("cpu"), dtype)
    return holder.decoder


# What the first use of torch itself takes, of its kernels and in the thread that sums values:
torch.ones(8, 8) @ torch.ones(8, 8)
first = Fingerprint()
first.add("", torch.ones(999, 999), torch.ones(999, 999))
first.hexdigest()
before = memory("VmRSS")
decoder = load(sys.argv[1], getattr(torch, sys.argv[2]))
own = sum(weight.numel() * weight.element_size() for weight in decoder.parameters())
print(json.dumps({"own": own, "peak": memory("VmHWM") - before}))  # noqa: T201
