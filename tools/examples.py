"""Thumbnails of the app's examples, drawn by `postcard` itself.

Each is the first picture from seed 0 on that shows all its prompt claims.
"""

from __future__ import annotations

from itertools import count

from PIL import Image

from ssd_core import Finished, Sampling, generate, load_backbone, load_heads, methods
from ssd_core.files import written_whole
from ssd_core.postcards import check, claims
from studio.tabs.examples import EXAMPLES, THUMBNAILS

SIDE, AT_ONCE = 192, 8  # px; pictures drawn at a time


def main(arguments: list[str]) -> None:
    backbone = load_backbone("postcard")
    heads = load_heads("postcard", backbone)
    THUMBNAILS.mkdir(exist_ok=True)
    for number, prompt in enumerate(EXAMPLES):
        seed, picture = first_obedient(backbone, heads, prompt)
        with written_whole(THUMBNAILS / f"{number}.jpg") as temporary:
            picture.resize((SIDE, SIDE), Image.Resampling.LANCZOS).save(
                temporary, format="JPEG", quality=88)
        print(f"{number}.jpg: seed {seed}, {prompt}")


def first_obedient(backbone, heads, prompt: str) -> tuple[int, Image.Image]:
    """The lowest seed whose picture shows all that the prompt claims, and the picture."""
    for first in count(0, AT_ONCE):
        *_, last = generate(backbone, [prompt] * AT_ONCE, methods.Exact(), heads,
                            Sampling(seed=first))
        assert isinstance(last, Finished)
        pixels = (backbone.decode(last.tokens) * 255).round().byte().cpu().numpy()
        for offset, one in enumerate(pixels):
            if all(check(one, claims(prompt))):
                return first + offset, Image.fromarray(one)
    raise AssertionError("unreachable")
