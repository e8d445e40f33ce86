"""What bf16, fp8, int8 and int4 do to a pass and to pictures.

    python lab/benchmarks/low_precision.py [--device cuda] [--prompts 32] [--out FILE.md]

A pass: AR's and a row's, through one layer as wide as a real backbone's, random weights. Pictures:
`postcard` by AR on held-out captions, all scored by the fp32 backbone. Precisions that the device
lacks are left out, with the reason.
"""

from __future__ import annotations

import statistics
import time
from functools import partial

import torch
from conditions import conditions, table, write_page
from passes import layer_pass, one_layer, seconds_of
from script import options

from ssd_core import Sampling, SSDError, load_backbone
from ssd_core.engine.methods import AR
from ssd_core.measure.machine import synchronised
from ssd_core.model.transformer import Decoder
from ssd_core.weights.catalogue import known
from ssd_core.weights.load import DTYPES, pick_device
from ssd_core.weights.model_size import stored_bytes
from ssd_core.weights.quantize import KINDS, quantise, quantiser
from ssd_lab.evaluate.metrics import Trial, decode_all

PRECISIONS = ("fp32", "bf16", *KINDS)
WIDTHS = {"cpu": "Janus-Pro-1B", "cuda": "Janus-Pro-7B"}  # whose layer is timed
PASS_HEAD = ["weights", "MiB a layer", "AR's pass, ms", "row's pass, ms", "AR against bf16",
             "row against bf16"]
QUALITY_HEAD = ["weights", "captions", "objects", "NLL", "tokens as in fp32"]


def layer(name: str, precision: str, device: torch.device) -> Decoder:
    """One layer of a backbone's width with random weights in this precision."""
    become = quantiser(precision, device) if precision in KINDS else None
    decoder = one_layer(name, DTYPES.get(precision, torch.bfloat16), device)
    if become:
        quantise(decoder, become)
    return decoder


def pass_seconds(decoder: Decoder, cells: int, repeats: int, device: torch.device) -> float:
    """Median seconds of a pass over `cells` cells: of the processor, or of the card."""
    clock = time.process_time if device.type == "cpu" else partial(synchronised, device)
    return statistics.median(seconds_of(layer_pass(decoder, cells), repeats, 2, clock))


def passes(device: torch.device, repeats: int) -> tuple[list[list[str]], list[str]]:
    """Lines of the table, and the reasons why precisions are left out."""
    name, results, left_out = WIDTHS.get(device.type, WIDTHS["cpu"]), {}, []
    for precision in PRECISIONS:
        try:
            decoder = layer(name, precision, device)
        except SSDError as error:
            left_out.append(str(error))
            continue
        size = sum(stored_bytes(weight) for weight in decoder.parameters())
        row = known(name).grid.width
        results[precision] = size, *(pass_seconds(decoder, cells, repeats, device)
                                     for cells in (1, row))
    return [[precision, f"{size / 2**20:.0f}", f"{1000 * single:.2f}", f"{1000 * row:.2f}",
             f"{results['bf16'][1] / single:.2f}", f"{results['bf16'][2] / row:.2f}"]
            for precision, (size, single, row) in results.items()], left_out


def quality(device: torch.device, prompts: int, batch: int) -> list[list[str]]:
    """AR's pictures on `postcard` in each precision that the device supports."""
    judge, lines = Trial(load_backbone("postcard", str(device), "fp32"), prompts, batch,
                         Sampling(seed=0)), []
    baseline = judge.run(AR(), None)
    for precision in PRECISIONS:
        try:
            backbone = load_backbone("postcard", str(device), precision)
        except SSDError:
            continue  # `passes` gives the reason
        drawn = baseline if precision == "fp32" else decode_all(
            backbone, None, AR(), judge.captions, batch, judge.sampling)
        row = judge.row(drawn, baseline.tokens)
        lines.append([precision, *(f"{row[key]:.3f} ± {row[key + '_se']:.3f}" for key in (
            "caption_accuracy", "object_accuracy", "nll")), f"{row['identical_tokens']:.2f}"])
        print(*lines[-1], sep=" | ", flush=True)
    return lines


def main() -> None:
    parser = options(__doc__, "low_precision.md")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--prompts", type=int, default=32)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=20)
    args = parser.parse_args()
    device = pick_device(args.device)
    if device.type == "cpu":
        torch.set_num_threads(1)  # processor seconds are meaningful only for one
    timed, left_out = passes(device, args.repeats)
    clock = ("one thread, processor seconds, so that other work does not count"
             if device.type == "cpu" else "the card's seconds")
    name = WIDTHS.get(device.type, WIDTHS["cpu"])
    write_page(
        args.out, "Low precision", f"{conditions(device)}.", "## A pass",
        f"One layer as wide as {name}'s, guidance on, medians of {args.repeats} passes over 1 cell "
        f"(AR) and over a row of {known(name).grid.width}; {clock}. Against bf16: above 1 is "
        "faster.", table(PASS_HEAD, timed), *(f"Left out: {line}." for line in left_out),
        "## Pictures", f"`postcard` by AR, {args.prompts} held-out captions with the same seeds, "
        "all judged by the fp32 backbone. Captions, objects: shares of claims and of things that "
        "hold (README.md).", table(QUALITY_HEAD, quality(device, args.prompts, args.batch)))


if __name__ == "__main__":
    main()
