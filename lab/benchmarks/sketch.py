"""What a sketch by *Fast* saves *Faithful*, and what its words' next change is best drawn from.

    python lab/benchmarks/sketch.py --prompts 100

Fresh prompts of `postcard`, completed as the app does, prompt i with seed i. Each is drawn by
*Fast*, then by *Faithful* as usual and with the sketch's tokens as first guesses (`guess=parent`),
both with the window that plans choose here. Some words of a prompt are then changed: the sketch is
drawn anew, with the sketch before as first guess, and as an edit by words of the sketch before.
CPU seconds are those of one thread, so that other programs change them little.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from conditions import conditions, table, write_page
from script import options, postcard

from ssd_core import Sampling
from ssd_core.backbones.postcard.words.captions import fresh_prompt
from ssd_core.engine.edits.words import Edit
from ssd_core.engine.methods import AR, Exact
from ssd_core.files import write_text
from ssd_core.output.choices import SPEEDS
from ssd_core.output.drawing import Drawing
from ssd_core.output.guarantees import identical_share
from ssd_core.runs.batch.workers import LoadedModels
from ssd_core.runs.request import Request

FAST = SPEEDS["fast"].method
CHECKED = 20  # of so many prompts one is drawn by AR, too
TYPED = (  # prompts before and after a change of their words
    ("a red house", "a red house on the left"),
    ("a red house on the left", "a red house on the left, a yellow boat on the right"),
    ("a red house on the left, on a lake", "a blue house on the left, on a lake"),
    ("a tower in a field", "a tower in a field, mountains behind"),
    ("a tower, mountains behind", "a tower, mountains behind, in the snow"),
    ("a white church on the right", "a white church on the left"),
    ("a green tree, on the sand", "a green tree, on the sand, at sunset"),
    ("a boat on the sea, at noon", "a boat on the sea, at night, a full moon"),
    ("two towers, hills behind", "a tower, hills behind"),
    ("a pink house, a forest behind", "a pink house, a yellow tree, a forest behind"),
)


@dataclass(frozen=True)
class Drawn:
    """tokens [R, C]. seconds: of the processor. words: those that it was drawn from."""

    tokens: torch.Tensor
    passes: int
    seconds: float
    words: tuple[str, str | None]


def drawn(loaded: LoadedModels, drawing: Drawing) -> Drawn:
    request = Request(loaded.backbone, loaded.heads, drawing, named=True)
    begun = time.process_time()
    result = request.run()
    words = request.words[0]
    return Drawn(result.tokens[0], result.measured["passes"], time.process_time() - begun,
                 (words.prompt, words.negative))


def asked(prompt: str, seed: int) -> Drawing:
    return Drawing(prompt=prompt, sampling=Sampling(seed=seed), expand=True, method=FAST)


def window_here(loaded: LoadedModels) -> int:
    """The window of *Faithful* that plans choose on this machine."""
    request = Request(loaded.backbone, loaded.heads, replace(asked("a house", 0), method=Exact()),
                      named=True)
    method = request.method
    assert isinstance(method, Exact) and method.window is not None
    return method.window


def guesses(loaded: LoadedModels, prompts: int, window: int) -> list[dict]:
    """Of every prompt the passes of both first guesses, and whether the tokens are the same."""
    rows = []
    for seed in range(prompts):
        own = asked(fresh_prompt(np.random.default_rng(seed)), seed)
        exact = replace(own, method=Exact(window))
        sketch, usual = drawn(loaded, own), drawn(loaded, exact)
        parent = drawn(loaded, replace(exact, method=Exact(window, guess="parent"),
                                       keep=sketch.tokens[None]))
        same = [parent.tokens.equal(usual.tokens)]
        if seed % CHECKED == 0:
            same.append(drawn(loaded, replace(own, method=AR())).tokens.equal(usual.tokens))
        rows.append({"usual": usual.passes, "parent": parent.passes, "same": all(same),
                     "usual_seconds": usual.seconds, "parent_seconds": parent.seconds,
                     "alike": identical_share(sketch.tokens, usual.tokens)})
        print(seed, rows[-1], flush=True)
    return rows


def changes(loaded: LoadedModels, seeds: int) -> dict[str, list[tuple[int, float, float]]]:
    """(passes, seconds, share of *Faithful*'s tokens) of the second sketch, by how it is drawn."""
    found: dict[str, list[tuple[int, float, float]]] = {}
    for number, (old, new) in enumerate((*TYPED,) * seeds):
        before, after = drawn(loaded, asked(old, number)), asked(new, number)
        own = drawn(loaded, replace(after, method=Exact()))
        edit = Drawing(prompt=own.words[0], negative=own.words[1], sampling=after.sampling,
                       method=Exact(), keep=before.tokens[None], edit=Edit(before.words[0]))
        ways = {"anew": after, "first guesses from the sketch before": replace(
            after, method=replace(FAST, guess="parent"), keep=before.tokens[None]),
            "edit by words of the sketch before": edit}
        for way, drawing in ways.items():
            done = drawn(loaded, drawing)
            found.setdefault(way, []).append(
                (done.passes, done.seconds, identical_share(done.tokens, own.tokens)))
            print(number, way, found[way][-1], flush=True)
    return found


def mean(rows: list[dict], name: str) -> float:
    return statistics.mean(row[name] for row in rows)


def saved(rows: list[dict], unit: Callable[[dict], tuple[float, float]]) -> str:
    """What the sketch saves of a sum, and the standard error of the mean of each prompt's share."""
    each = [1 - parent / usual for usual, parent in map(unit, rows)]
    usual, parent = (sum(column) for column in zip(*map(unit, rows), strict=True))
    return f"{1 - parent / usual:.1%} ± {statistics.stdev(each) / len(each) ** 0.5:.1%}"


def page_parts(rows: list[dict], ways: dict, window: int) -> list[str]:
    units = [("passes", lambda row: (row["usual"], row["parent"])),
             ("CPU seconds", lambda row: (row["usual_seconds"], row["parent_seconds"]))]
    first = [[name, *(f"{statistics.mean(each):.2f}" for each in
                      zip(*map(unit, rows), strict=True)), saved(rows, unit)]
             for name, unit in units]
    second = [[way, *(f"{statistics.mean(each):.2f}" for each in zip(*runs, strict=True))]
              for way, runs in ways.items()]
    return [f"*Faithful* with window {window} over {len(rows)} prompts, a mean of each. The tokens "
            f"are the same in {sum(row['same'] for row in rows)} of them; AR's own were drawn for "
            f"every {CHECKED}th. {mean(rows, 'alike'):.0%} of a sketch's tokens are those of "
            "*Faithful*.",
            table(["", "usual first guess", "the sketch's tokens", "saved"], first),
            f"The sketch after a change of its words, {len(ways['anew'])} changes:",
            table(["drawn", "passes", "CPU seconds", "tokens that *Faithful* draws"], second)]


def main() -> None:
    parser = options(__doc__, "sketch.md")
    parser.add_argument("--prompts", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=1, help="for each change of words")
    parser.add_argument("--window", type=int, help="instead of the one that plans choose here")
    args = parser.parse_args()
    torch.set_num_threads(1)
    loaded = postcard()
    window = args.window or window_here(loaded)
    ways = changes(loaded, args.seeds)
    rows = guesses(loaded, args.prompts, window)
    write_text(args.out.with_suffix(".json"), json.dumps(
        {"window": window, "guesses": rows, "changes": ways}, indent=1) + "\n")
    write_page(args.out, "The sketch while one types", conditions(dtype="fp32"),
               *page_parts(rows, ways, window))


if __name__ == "__main__":
    main()
