"""The subgraphs of `subgraphs/`, which ComfyUI lists among its nodes as blueprints."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from workflow_graph import PROMPT, SEED_CHANGES, Graph
from workflow_graphs import ABOVE, SNOW

RESULTS = ("images", "run")  # of the sampler and of Finish


@dataclass
class Blueprint:
    """inputs: (name, node, its input); outputs: (name, node, its output). What is not named stays
    inside. aliases: further words that find it in the search.
    """

    description: str
    aliases: list[str]
    graph: Graph = field(default_factory=lambda: Graph([]))
    inputs: list[tuple[str, str, str]] = field(default_factory=list)
    outputs: list[tuple[str, str, int]] = field(default_factory=list)

    def take(self, node: str, *names: str, **renamed: str) -> None:
        """Make these inputs of a node inputs of the subgraph; renamed: the node's name of each."""
        pairs = {**dict(zip(names, names, strict=True)), **renamed}
        self.inputs += [(shown, node, name) for shown, name in pairs.items()]

    def give(self, node: str, *names: str) -> None:
        """Make the first outputs of a node outputs of the subgraph."""
        self.outputs += [(name, node, n) for n, name in enumerate(names)]


def draw() -> Blueprint:
    made = Blueprint("Draws a picture by Spatially Speculative Decoding: model and sampler in one "
                     "node. 'run' is for Save Image (SSD) and Keep and Redo (SSD).",
                     ["speculative decoding", "text to image", "postcard"])
    made.graph.model()
    made.graph.sampler("sampler", 1, prompt=PROMPT, seed=7, **SEED_CHANGES)
    made.take("model", "model")
    made.take("sampler", "prompt", "negative", "seed", "size", "method", "complete_prompt")
    made.give("sampler", *RESULTS)
    return made


def keep_and_redo() -> Blueprint:
    made = Blueprint("Keeps the top rows of a picture and draws the rest with a prompt and a seed "
                     "of its own. 'picture' takes the run of Draw (SSD) or of Encode (SSD), by "
                     "the same model.", ["inpaint", "outpaint", "redraw", "extend"])
    made.graph.model()
    made.graph.sampler("sampler", 1, prompt=f"a purple tree in the middle, on the sand, {ABOVE}",
                       seed=22, keep_rows=8, **SEED_CHANGES)
    made.take("sampler", "picture", "keep_rows")
    made.take("model", "model")
    made.take("sampler", "prompt", "negative", "seed", "method", "complete_prompt")
    made.give("sampler", *RESULTS)
    return made


def start_pick_finish() -> Blueprint:
    made = Blueprint("Draws only the top of several pictures, one for each seed. Write the numbers "
                     "of those you like into 'pictures' and run again: the rest of them is drawn.",
                     ["batch", "variations", "contact sheet", "choose"])
    made.graph.model()
    made.graph.sampler("start", 1, prompt=SNOW, seed=11, batch_size=6, part=0.35)
    made.graph.add("finish", "SSD_Finish", 2)
    for source, output, name in (("model", 0, "model"), ("start", 1, "run")):
        made.graph.link(source, output, "finish", name)
    made.take("model", "model")
    made.take("start", "prompt", "negative", "seed", "size", "method", "batch_size", "part",
              "complete_prompt")
    made.take("finish", "pictures")
    made.outputs.append(("started", "start", 0))
    made.give("finish", *RESULTS)
    return made


BLUEPRINTS: dict[str, Callable[[], Blueprint]] = {
    "Draw (SSD)": draw, "Keep and Redo (SSD)": keep_and_redo,
    "Start, Pick, Finish (SSD)": start_pick_finish}


def complaints(name: str, folder: Path) -> list[str]:
    """How a saved blueprint differs from its graph."""
    path, made = folder / f"{name}.json", BLUEPRINTS[name]()
    wanted = [[slot[0] for slot in made.inputs], [slot[0] for slot in made.outputs]]
    if path.exists():
        inside, = json.loads(path.read_text(encoding="utf-8"))["definitions"]["subgraphs"]
        actual = [[slot["name"] for slot in inside[kind]] for kind in ("inputs", "outputs")]
        if actual == wanted:
            return []
    return [f"{path.name} is missing or stale: run python tools/make.py blueprints"]
