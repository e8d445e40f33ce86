"""Texts in pictures; and what other programs tell there: prompt, negative prompt and seed.

Automatic1111's web UI and its kin write a text, ComfyUI its graph. Files are not trusted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from PIL import Image

from .picture_files import UNREADABLE
from .recipe import CHUNK

MOST_CHARACTERS = 4 << 20
EXIF, COMMENT, NOTE = 0x8769, 0x9286, 0x927C  # tags: where these texts stand in JPEG and WebP
OWN = b"ssd\0"  # how our recipe begins there
UNICODE = b"UNICODE\0"
MOST_EXIF = 60_000  # bytes that fit into a JPEG
SEEDS = 1 << 64
NEGATIVE = "Negative prompt:"
SEED = re.compile(r"(?:^|, )Seed: (\d+)(?:,|$)")
STEPS = re.compile(r"Steps: \d+")
SAMPLED = ("seed", "noise_seed")  # inputs of ComfyUI's nodes
TEXTS = ("text", "prompt", "text_g", "clip_l", "t5xxl", "string", "value")
DEEPEST = 32  # links that are followed to a text


def texts_of(image: Image.Image) -> dict[str, str]:
    """The texts of a picture by their names; those of JPEG and WebP are in their EXIF."""
    if image.format == "PNG":
        return {str(name): text for name, text in image.info.items() if isinstance(text, str)}
    try:
        tags = image.getexif().get_ifd(EXIF)
    except UNREADABLE:
        return {}
    comment, note = tags.get(COMMENT), tags.get(NOTE)
    texts = {"parameters": commented(comment) if isinstance(comment, bytes) else comment}
    if isinstance(note, bytes) and note.startswith(OWN):
        texts[CHUNK] = note[len(OWN):].decode("utf-8", "replace")
    return {name: text for name, text in texts.items() if isinstance(text, str) and text}


def commented(comment: bytes) -> str:
    """The text of a comment: its first eight bytes tell the encoding."""
    if not comment.startswith(UNICODE):
        return comment[8:].decode("utf-8", "replace")
    text = comment[len(UNICODE):]
    return text.decode("utf-16-le" if text[1:2] == b"\0" else "utf-16-be", "replace")


def exif_of(texts: Mapping[str, str]) -> bytes:
    """EXIF with the texts; the recipe is left out where it is too large for a JPEG."""
    exif = Image.Exif()
    if "parameters" in texts:
        exif.get_ifd(EXIF)[COMMENT] = UNICODE + texts["parameters"].encode("utf-16-be")
    recipe = OWN + texts.get(CHUNK, "").encode()
    if len(OWN) < len(recipe) <= MOST_EXIF:
        exif.get_ifd(EXIF)[NOTE] = recipe
    return exif.tobytes()


def told_by(texts: Mapping[str, str]) -> dict[str, str]:
    """prompt, negative and seed, as far as a picture's texts tell them."""
    for name, read in (("parameters", from_parameters), ("prompt", from_graph)):
        text = texts.get(name, "")
        if text and len(text) <= MOST_CHARACTERS and (found := read(text)):
            return found
    return {}


def from_parameters(text: str) -> dict[str, str]:
    """Of the text of Automatic1111's web UI."""
    lines = text.strip().splitlines()
    at = next((n for n in range(len(lines) - 1, -1, -1) if STEPS.match(lines[n].strip())), None)
    if at is None:
        return {}
    typed = "\n".join(lines[:at])
    prompt, _, negative = typed.partition(NEGATIVE)
    seed = SEED.search(lines[at].strip())
    return {"prompt": prompt.strip(), "negative": negative.strip(),
            **({"seed": seed[1]} if seed and int(seed[1]) < SEEDS else {})}


def from_graph(text: str) -> dict[str, str]:
    """Of ComfyUI's graph: of the first node that samples."""
    try:
        graph = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(graph, dict):
        return {}
    nodes = {id_: node["inputs"] for id_, node in graph.items()
             if isinstance(node, dict) and isinstance(node.get("inputs"), dict)}
    for inputs in nodes.values():
        if any(name in inputs for name in SAMPLED):
            prompt = worded(nodes, inputs.get("positive", inputs.get("prompt", inputs)))
            if prompt:
                return {"prompt": prompt, "negative": worded(nodes, inputs.get("negative")),
                        **seed_of(nodes, inputs)}
    return {}


def worded(nodes: Mapping[str, Any], value: Any, depth: int = 0) -> str:
    """The text of an input, which may be a link to a node that has one; "" if there is none."""
    if isinstance(value, str):
        return value.strip()
    if depth > DEEPEST:
        return ""
    inputs = value if isinstance(value, dict) else nodes.get(link_of(value), {})
    named = [inputs[name] for name in TEXTS if name in inputs]
    linked = [other for name, other in inputs.items() if link_of(other) and name not in TEXTS]
    found = (worded(nodes, other, depth + 1) for other in named + linked)
    return next((words for words in found if words), "")


def link_of(value: Any) -> str:
    """The id of the node that an input is linked to."""
    is_link = isinstance(value, list) and len(value) == 2 and isinstance(value[0], str)
    return value[0] if is_link else ""


def seed_of(nodes: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, str]:
    seed: Any = next(inputs[name] for name in SAMPLED if name in inputs)
    for name in (*SAMPLED, "value"):
        if link_of(seed):
            seed = nodes.get(link_of(seed), {}).get(name, seed)
    is_seed = isinstance(seed, int) and not isinstance(seed, bool) and 0 <= seed < SEEDS
    return {"seed": str(seed)} if is_seed else {}
