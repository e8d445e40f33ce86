"""Look at a backbone while it learns: a sheet of 24 fixed prompts, and how many claims hold.

    python -m ssd_lab.train.sheet FOLDER [START]

FOLDER is that of `train backbone`, START the weights that it continues from. Pictures are drawn
from the last checkpoint, or from `backbone.safetensors` if it is finished, into
`sheet-<step>.png`; a line with the step, the loss and the shares of claims that hold is appended to
`sheets.jsonl`: by those prompts and by held-out captions.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import mean

import numpy as np
import torch
from PIL import Image
from torch import nn

from ssd_core import Finished, Sampling, generate, load_backbone, methods
from ssd_core.backbones.postcard import Postcard
from ssd_core.backbones.postcard.words.captions import fresh_caption
from ssd_core.files import atomic_write

from ..postcards import check, claims
from .backbone import Probes, require_postcard, start
from .backbone_recipe import BackboneRecipe
from .data import HELD_OUT

PROMPTS = (
    "a brown dog on the beach, by day", "a red train, hills behind, by day",
    "a rainbow above, hills behind, a white house", "two palms, on the beach, at sunset",
    "a brown house, in the snow, snowflakes fall, at night", "a brown house on the shore, hills "
    "behind, at dawn", "a red lighthouse, cliffs behind, on the sea, by day",
    "an orange tree, an autumn forest behind, by day", "a black cat, in the grass, at night",
    "a white horse, on a meadow, snowy mountains behind", "three white sheep, on a meadow",
    "a red car, by a road, bare mountains behind, at sunset", "a green bicycle, along the road",
    "a white rocket, in the desert, under a starry sky, at night",
    "a yellow sunflower, in a field, the sun above", "a snowman, in the snow, before the woods",
    "a waterfall, on a meadow, snowy mountains behind", "a brown bench, on the shore, at sunset",
    "a red bird, under a clear sky, a flat horizon, in the grass", "a grey castle, in thick fog",
    "a white boat, on a calm lake, snowy peaks far away, at dawn",
    "a windmill, among flowers, by day", "an orange balloon and a red house, in the evening",
    "five things, each a pink tulip, on a meadow",
)
COLUMNS, CAPTIONS = 6, 24


def last(folder: Path, origin: str) -> tuple[Postcard, int, float]:
    """The backbone of a folder, the steps that it has learned, and its loss (0 when finished)."""
    if (folder / "backbone.safetensors").exists():
        return require_postcard(load_backbone(str(folder), "cpu", "fp32")), -1, 0.0
    recipe = BackboneRecipe(folder, start_from=origin, shapes=0.4)
    backbone = start(recipe, torch.Generator().manual_seed(0))
    state = torch.load(folder / "backbone.ckpt", map_location="cpu", weights_only=True)
    whole = nn.ModuleList((backbone, Probes(backbone.hidden_size)))
    whole.load_state_dict(state["model"])
    return backbone.requires_grad_(False).eval(), state["step"], mean(state["recent"])


def drawn(backbone: Postcard, prompts: list[str]) -> list[np.ndarray]:
    """A picture uint8 [H, W, 3] of each prompt, by AR."""
    *_, done = generate(backbone, prompts, methods.AR(), sampling=Sampling(seed=7), threads=1)
    assert isinstance(done, Finished)
    pixels = backbone.picture_codec.decode(done.tokens).clamp(-1, 1)
    return list(((pixels.permute(0, 2, 3, 1) + 1) * 127.5).round().byte().numpy())


def share_held(pictures: list[np.ndarray], texts: list[str]) -> float:
    held = [holds for picture, text in zip(pictures, texts, strict=True)
            for holds in check(picture, claims(text))]
    return mean(held)


@torch.no_grad()
def main() -> None:
    folder = Path(sys.argv[1])
    backbone, step, loss = last(folder, sys.argv[2] if len(sys.argv) > 2 else "postcard")
    backbone.refresh_tables()
    shown = drawn(backbone, list(PROMPTS))
    rows = [np.concatenate(shown[n : n + COLUMNS], 1) for n in range(0, len(shown), COLUMNS)]
    with atomic_write(folder / f"sheet-{step}.png") as temporary:
        Image.fromarray(np.concatenate(rows)).save(temporary, "PNG")
    captions = [fresh_caption(HELD_OUT + n, 0) for n in range(CAPTIONS)]
    line = {"step": step, "loss": loss, "prompts_held": share_held(shown, list(PROMPTS)),
            "captions_held": share_held(drawn(backbone, captions), captions)}
    with (folder / "sheets.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
