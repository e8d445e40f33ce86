"""Peak memory of runs beside the estimate of `fit`: one process for each run.

    python lab/benchmarks/memory.py [--device cuda] [--out FILE.md]

Random weights in the sizes of real families, with few layers. On a CPU (Linux) the peak is resident
memory beyond the loaded interpreter; the C library returns every larger block at once, so that
freed memory does not count. On a CUDA device it is the peak of PyTorch's allocator. Pictures are
decoded while keys and values are in memory, as for a preview.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from conditions import conditions, page_of, table
from random_backbones import NARROW, random_backbone, random_heads
from script import in_new_process, options

from ssd_core import Sampling, generate
from ssd_core.backbones.base import Backbone
from ssd_core.engine.events import FinalRows, Pass
from ssd_core.engine.heads import DraftHeads
from ssd_core.engine.methods import AR, SSD, Method
from ssd_core.files import write_text
from ssd_core.model.grid import Grid
from ssd_core.output.pixels import pixels
from ssd_core.weights.catalogue import KnownBackbone, known
from ssd_core.weights.fit import fit
from ssd_core.weights.load import DTYPES, pick_device
from ssd_core.weights.quantize import KINDS, quantise, quantiser

MIB = 1 << 20
PROMPT = "a small house at the edge of a wood in the evening"
METHODS = {"AR": AR(), "SSD": SSD()}
PARTS = ("weights", "cache", "activations", "pixels", "needed", "peak")
HEAD = ["backbone, layers", "dtype", "decoding", "pictures", "weights", "keys and values",
        "states, noise, a pass", "pixels", "estimate", "peak", "estimate / peak"]
# glibc gives blocks of at least so many bytes back to the system as soon as they are freed
BLOCKS = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536",
          "MALLOC_ARENA_MAX": "1", "OMP_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Case:
    """One run. layers, side (rows and columns), codec_channels: None means the backbone's own."""

    name: str
    dtype: str
    method: str
    batch: int = 1
    layers: int | None = None
    side: int | None = None
    vocabulary: int = 4096
    codec_channels: int | None = None

    def row(self) -> KnownBackbone:
        row = known(self.name)
        shape = replace(row.shape, layers=self.layers or row.shape.layers)
        grid = row.grid if self.side is None else Grid(self.side, self.side, row.grid.row_end)
        words = self.vocabulary + row.codes * (row.family in ("Lumina-mGPT", "Anole", "Emu3"))
        return replace(row, shape=shape, grid=grid, vocabulary=words,
                       codec_channels=self.codec_channels or row.codec_channels)


CASES = (Case("LlamaGen-c2i-B-256", "fp32", "AR"),
         Case("LlamaGen-c2i-B-256", "bf16", "SSD", 4),
         Case("LlamaGen-c2i-B-256", "int8", "SSD"),
         Case("Janus-Pro-1B", "fp32", "SSD", 1, 2),
         Case("Emu3-Gen", "bf16", "AR", 1, 1, 16),
         Case("Lumina-mGPT-7B-512", "bf16", "AR", 4, 1, 16),
         Case("Janus-Pro-1B", "bf16", "SSD", 4, 2),
         Case("Janus-Pro-1B", "int4", "SSD", 1, 3))
WARM = Case("LlamaGen-c2i-B-256", "fp32", "SSD", 1, 1, 4, codec_channels=NARROW)


class Peak:
    """The peak of allocated bytes since `start`."""

    def __init__(self, device: torch.device) -> None:
        self.cuda = device.type == "cuda"

    def start(self) -> None:
        if self.cuda:
            torch.cuda.reset_peak_memory_stats()
            self.before = torch.cuda.memory_allocated()
        else:
            Path("/proc/self/clear_refs").write_text("5")  # resets the high-water mark
            self.before = resident("VmRSS")

    def again(self) -> None:
        """Forget the peak so far; the base stays that of `start`."""
        before = self.before
        self.start()
        self.before = before

    def grown(self) -> int:
        after = torch.cuda.max_memory_allocated() if self.cuda else resident("VmHWM")
        return after - self.before


def resident(field: str) -> int:
    status = Path("/proc/self/status").read_text()
    return int(re.search(rf"{field}:\s+(\d+) kB", status).group(1)) * 1024


def loaded(case: Case, device: torch.device) -> tuple[Backbone, DraftHeads | None]:
    """The random backbone, and heads if the method drafts with them."""
    plain = DTYPES.get(case.dtype, torch.bfloat16)
    backbone = random_backbone(case.row(), device, plain)
    if case.dtype in KINDS:
        quantise(backbone.decoder, quantiser(case.dtype, device))
    preset = backbone.preset
    drafts = METHODS[case.method].uses_heads
    return backbone, random_heads(backbone, preset.k_h, preset.k_v) if drafts else None


def draw(backbone: Backbone, heads: DraftHeads | None, method: Method, batch: int) -> None:
    """One run; the picture is decoded when its last rows are final."""
    for event in generate(backbone, [PROMPT] * batch, method, heads, Sampling(seed=1)):
        if isinstance(event, Pass):
            shape = (1, backbone.grid.rows, backbone.grid.columns)
        elif isinstance(event, FinalRows) and event.last == backbone.grid.rows:
            list(pixels(backbone, torch.zeros(shape, dtype=torch.long)))


def measure(case: Case, device: torch.device) -> dict:
    """The estimate and the peak of one run, in bytes; the process should do nothing else."""
    if device.type == "cpu":
        torch.set_num_threads(1)
    draw(*loaded(replace(WARM, dtype=case.dtype), device), SSD(), 1)
    gc.collect()
    peak = Peak(device)
    peak.start()
    backbone, heads = loaded(case, device)
    gc.collect()
    peak.again()  # without making the random weights, as real ones come from files
    method = METHODS[case.method]
    draw(backbone, heads, method, case.batch)
    estimate = fit(backbone, method, case.batch, device=str(device), heads=heads,
               prompt_slots=len(backbone.tokenize(PROMPT)))
    return {**asdict(case), **estimate.to_json(), "peak": peak.grown()}


def apart(case: Case, device: str = "cpu") -> dict:
    """`measure` in a process of its own."""
    return in_new_process(__file__, "--device", device, "--case", json.dumps(asdict(case)),
                          variables={**os.environ, **BLOCKS})


def line(row: dict) -> list[str]:
    name = f"{row['name']}, {row['layers'] or 'all'}"
    return [name, row["dtype"], row["method"], str(row["batch"]),
            *(f"{row[part] / MIB:,.0f}" for part in PARTS), f"{row['needed'] / row['peak']:.2f}"]


def page(rows: list[dict], device: torch.device) -> str:
    what = ("allocated by PyTorch" if device.type == "cuda" else
            "resident beyond the loaded interpreter, one thread; freed blocks of 64 KiB or more "
            "go back to the system at once")
    return page_of(
        "Memory: estimate and peak",
        f"{conditions(device)}. Peak: {what}. Each run in a process of its own: random weights in "
        "the sizes of real backbones (few layers, smaller text vocabularies; Lumina-mGPT and Emu3 "
        "on smaller grids), guidance on, one whole picture, decoded to pixels while keys and "
        "values are there, as a preview may do it. MiB.", table(HEAD, [line(row) for row in rows]),
        "The estimate is what `fit` says is needed. It has a margin of 5 %. What loading takes for "
        "a moment is not in it: tensors come one by one, before the codec, keys and values are "
        "there.")


def main() -> None:
    parser = options(__doc__, "memory.md")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--case", type=json.loads, help=argparse.SUPPRESS)
    args = parser.parse_args()
    device = pick_device(args.device)
    if args.case:
        print(json.dumps(measure(Case(**args.case), device)))
        return
    rows: list[dict] = []
    for case in CASES:
        rows.append(apart(case, str(device)))
        print(*line(rows[-1]), sep=" | ", flush=True)
        write_text(args.out, page(rows, device))  # a stopped run keeps its rows


if __name__ == "__main__":
    main()
