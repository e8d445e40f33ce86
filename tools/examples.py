"""Pictures of the app's examples, drawn by `postcard` itself, and the seeds that drew them.

Each is the first picture, from seed 0 or a seed that looked better on, that shows everything its
expanded prompt claims.
"""

from __future__ import annotations

import json
from itertools import count

from PIL import Image

from ssd_core import Sampling, load_backbone, load_heads, methods
from ssd_core.files import atomic_write, write_text
from ssd_core.output.drawing import Drawing
from ssd_core.output.recipe import to_bytes
from ssd_core.runs.request import Request
from ssd_lab.postcards import check
from ssd_lab.postcards.claims import claims
from studio.prompts import EXAMPLES, THUMBNAILS

# Where to begin: before these, a dusk in dull colours, and a lantern and a castle that look broken.
BY_EYE = {"a red house": 4, "lighthouse at night": 5, "castle in the mountains": 1}


def main(arguments: list[str]) -> None:
    backbone = load_backbone("postcard")
    heads = load_heads("postcard", backbone)
    THUMBNAILS.mkdir(exist_ok=True)
    seeds = []
    for number, prompt in enumerate(EXAMPLES):
        seed, picture = first_obedient(backbone, heads, prompt)
        with atomic_write(THUMBNAILS / f"{number}.jpg") as temporary:
            picture.save(temporary, format="JPEG", quality=88)
        seeds.append(seed)
        print(f"{number}.jpg: seed {seed}, {prompt}")
    write_text(THUMBNAILS / "seeds.json", json.dumps(seeds) + "\n")


def first_obedient(backbone, heads, prompt: str) -> tuple[int, Image.Image]:
    """The lowest seed whose picture shows all claims of the expanded prompt, and the picture."""
    for seed in count(BY_EYE.get(prompt, 0)):
        request = Request(backbone.smallest, heads, Drawing(
            prompt, method=methods.Exact(), sampling=Sampling(seed=seed), expand=True))
        pixels = to_bytes(next(request.run().pictures()).pixels)
        if all(check(pixels, claims(request.words[0].prompt))):
            return seed, Image.fromarray(pixels)
    raise AssertionError("unreachable")
