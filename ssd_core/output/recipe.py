"""The recipe inside every PNG: the settings that made the picture, and its tokens.

A PNG has three text chunks: `ssd_recipe`, JSON with `version` 1; `parameters`, a line that other
tools read; and `workflow`, which ComfyUI opens (without it ComfyUI would parse `parameters`).
Tokens are stored as {"shape": [R, C], "data": base64}; data is little-endian int32 in raster order,
the bytes that `tokens_sha256` hashes. Files are not trusted: everything that is read is checked.
"""

from __future__ import annotations

import binascii
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from io import BytesIO
from pathlib import Path
from typing import TypeGuard

import numpy as np
import torch
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from ..backbones.base import Backbone, int8_kernel_of
from ..backbones.presets import resolve_sampling
from ..engine.heads import DraftHeads
from ..errors import SSDError, first_line
from ..files import atomic_write, is_unicode, refuse_newer
from ..model.attention_kernel import DEFAULT, attention_kernel
from ..model.grid import size_of
from ..model.knobs import LARGEST
from ..model.noise import VERSION as NOISE_VERSION
from ..model.products import INTEGERS
from ..weights.memory import WEIGHT_BYTES
from ..weights.model_size import stored_dtype
from .comfyui_workflow import workflow_of
from .drawing import Drawing, knobs_in
from .packed import pack, unpack
from .picture_files import Size, opened, upright
from .words import Words, drawn_words

VERSION = 1
CHUNK = "ssd_recipe"
MOST_LORAS = 64
MAX_CHARACTERS = 1 << 20  # an Emu3 recipe, 90 x 90 tokens, has about 45,000
COMPRESSION = 4  # of 0 to 9; zlib's 6 takes 2.4 times as long for a tenth fewer bytes


# Writing


def make_recipe(backbone: Backbone, heads: DraftHeads | None, drawing: Drawing,
                tokens: torch.Tensor, stats: Mapping) -> dict:
    """The recipe of one picture with tokens [R, C]; see `settings`."""
    from .. import __version__

    return {**settings(backbone, heads, drawing), **kernel_keys(backbone), "tokens": pack(tokens),
            "versions": {"ssd": __version__, "torch": torch.__version__},
            "passes": stats["passes"], "seconds": dict(stats["seconds"])}


def kernel_keys(backbone: Backbone) -> dict[str, dict[str, str]]:
    """The kernels that a measurement chose on this machine: others round in another way."""
    attention, int8 = attention_kernel(backbone.device), int8_kernel_of(backbone)
    kernels = {"attention": attention} if attention != DEFAULT else {}
    if int8 != INTEGERS:
        kernels["int8"] = int8
    return {"kernels": kernels} if kernels else {}


def settings(backbone: Backbone, heads: DraftHeads | None, drawing: Drawing) -> dict:
    """The part of a recipe that is known before the run and determines the picture.

    drawing: of one picture, with its method resolved; its words to draw are left out where they
    are those that were typed.
    """
    typed = (Words(drawing.prompt, drawing.negative or None),)
    drawn = replace(drawing, size=backbone.size, sources=backbone.sources,
                    fixed=() if drawing.fixed == typed else drawing.fixed,
                    sampling=resolve_sampling(drawing.sampling, backbone.preset))
    return {"version": VERSION, "noise_version": NOISE_VERSION,
            "backbone": {"name": backbone.name, "sha256": backbone.sha256},
            "dtype": stored_dtype(backbone), "heads": heads.sha256 if heads else None,
            **({"lora": [asdict(lora) for lora in backbone.lora]} if backbone.lora else {}),
            **drawn.to_json()}


def save_png(path: Path, picture: torch.Tensor, recipe: dict | None,
             extra: Mapping[str, str] | None = None) -> None:
    """Write `png_bytes` of a picture to a file, completely or not at all (SSDError)."""
    with atomic_write(path) as temporary:
        temporary.write_bytes(png_bytes(picture, recipe, extra))


def png_bytes(picture: torch.Tensor, recipe: dict | None,
              extra: Mapping[str, str] | None = None) -> bytes:
    """Picture [H, W, 3] float 0..1 as a PNG with its recipe, if any.

    extra: further text chunks; None: a workflow for ComfyUI is added.
    """
    pixels, info, file = to_bytes(picture), PngInfo(), BytesIO()
    if recipe is not None:
        recipe = {**recipe, "pixels_sha256": pixels_sha256(pixels)}
        info.add_text("parameters", parameters(recipe))
        info.add_text(CHUNK, json.dumps(recipe))
        if extra is None:
            info.add_text("workflow", json.dumps(workflow_of(recipe), separators=(",", ":")))
    for key, text in (extra or {}).items():
        info.add_text(key, text)
    Image.fromarray(pixels).save(file, format="PNG", pnginfo=info, compress_level=COMPRESSION)
    return file.getvalue()


def parameters(recipe: Mapping) -> str:
    """The recipe in the text format of Automatic1111's web UI, which many tools show."""
    knobs = " ".join(f"{name}={value}" for name, value in knobs_in(recipe).items())
    settings = {
        "Steps": recipe["passes"], "Sampler": f"{recipe['method']} {knobs}".strip(),
        "CFG scale": recipe["cfg"], "Seed": recipe["seed"], "Size": recipe["size"],
        "Model hash": recipe["backbone"]["sha256"][:10], "Model": recipe["backbone"]["name"],
        "Temperature": recipe["temperature"], "Top K": recipe["top_k"], "Top P": recipe["top_p"],
        "Min P": recipe["min_p"], **varied(recipe), **drawn_as(recipe),
        "Version": f"ssd {recipe['versions']['ssd']}"}
    negative = f"\nNegative prompt: {recipe['negative']}" if recipe["negative"] else ""
    line = ", ".join(f"{key}: {value}" for key, value in settings.items())
    return f"{recipe['prompt']}{negative}\n{line}"


def varied(recipe: Mapping) -> dict[str, object]:
    """The variation, in the names of Automatic1111's web UI."""
    if not recipe.get("variation"):
        return {}
    return {"Variation seed": recipe["variation_seed"],
            "Variation seed strength": recipe["variation"]}


def drawn_as(recipe: Mapping) -> dict[str, str]:
    """The expanded prompts that the picture was drawn from, quoted because of their commas."""
    words = drawn_words(recipe)
    return {key: json.dumps(text, ensure_ascii=False)
            for key, text in (("Expanded prompt", words.prompt),
                              ("Expanded negative prompt", words.negative))
            if "prompt_expanded" in recipe and text}


def to_bytes(picture: torch.Tensor) -> np.ndarray:
    """[H, W, 3] float 0..1 -> uint8."""
    return (picture.detach().cpu().float() * 255).round().clamp(0, 255).byte().numpy()


def pixels_sha256(pixels: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(pixels).tobytes()).hexdigest()


def recipe_tokens(recipe: Mapping) -> torch.Tensor:
    """Tokens [R, C] int64 of a recipe; ValueError if they are malformed."""
    return unpack(recipe.get("tokens"))


# Reading


def read_recipe(path: Path) -> dict:
    """The checked recipe inside a PNG; SSDError if there is none or it is invalid."""
    with opened(path) as image:
        recipe = recipe_of(path, image)
    if recipe is None:
        raise SSDError(f"{path}: this PNG has no settings in it: it comes from another program, "
                       "or was saved without them")
    return recipe


def tokens_from_png(path: Path, backbone: Backbone) -> tuple[torch.Tensor, str]:
    """Tokens [1, R, C] of a PNG for this backbone, and a phrase about their source.

    They are read from the recipe if it names this backbone and the pixels are unchanged; otherwise
    the picture is encoded. Raises SSDError for a picture of another size; it is never resized.
    """
    with opened(path) as image:
        if image.size not in backbone.sizes and image.size[::-1] not in backbone.sizes:
            raise of_no_size(path, image.size, backbone)
        recipe = recipe_of(path, image)
        pixels = np.array(upright(image))
    size = pixels.shape[1], pixels.shape[0]
    if size not in backbone.sizes:
        raise of_no_size(path, size, backbone)
    reason = reason_to_encode(recipe, backbone, pixels)
    if recipe is not None and reason is None:
        return fitting(path, recipe_tokens(recipe), backbone)[None], "tokens from its recipe"
    picture = torch.from_numpy(pixels).float() / 255
    return backbone.encode(picture[None].to(backbone.device)).cpu(), f"encoded: {reason}"


def of_no_size(path: Path, size: Size, backbone: Backbone) -> SSDError:
    legal = ", ".join(f"{width}x{height}" for width, height in backbone.sizes)
    return SSDError(f"{path}: the picture has {size[0]}x{size[1]} pixels, {backbone.name} takes "
                    f"{legal}: resize it first")


def reason_to_encode(recipe: Mapping | None, backbone: Backbone, pixels: np.ndarray) -> str | None:
    """Why the recipe's tokens do not represent these pixels; None if they do."""
    if recipe is None:
        return "it carries no recipe"
    if recipe["backbone"]["sha256"] != backbone.sha256:
        return f"its recipe is of another backbone ({recipe['backbone']['name'][:40]!r})"
    if pixels.shape[1::-1] != size_of(recipe["size"]):
        return "it has another size than the picture that its recipe draws"
    if recipe.get("pixels_sha256") != pixels_sha256(pixels):
        return "it was changed since its recipe was written"
    return None


def fitting(path: Path, tokens: torch.Tensor, backbone: Backbone) -> torch.Tensor:
    grid = backbone.grid
    if tuple(tokens.shape) != (grid.rows, grid.columns) or tokens.max() >= backbone.codes:
        raise damaged(path, f"tokens do not fit {backbone.name}")
    return tokens


def recipe_of(path: Path, image: Image.Image) -> dict | None:
    text = image.info.get(CHUNK)
    return parsed(path, text) if text is not None else None


def parsed(path: Path | str, text: str) -> dict:
    """The recipe in a text; errors call its picture `path`."""
    if len(text) > MAX_CHARACTERS:
        raise damaged(path, f"{len(text):,} characters long")
    try:
        recipe = checked(path, json.loads(text, parse_constant=refuse_constant))
    except (ValueError, TypeError, RecursionError, binascii.Error) as error:
        raise damaged(path, first_line(error, 80)) from error
    return recipe


def checked(path: Path | str, recipe: object) -> dict:
    """A recipe with all keys. Raises ValueError or TypeError if it is damaged, SSDError if it has
    a newer version.
    """
    if not isinstance(recipe, dict):
        raise ValueError("not an object")
    refuse_newer_recipe(path, recipe)
    check(recipe)
    return recipe


def damaged(path: Path | str, what: str) -> SSDError:
    return SSDError(f"{path}: its recipe is damaged ({what}): "
                    "use another picture, or save this one again without metadata")


def refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")


def refuse_newer_recipe(path: Path | str, recipe: Mapping) -> None:
    """Raise SSDError if the recipe or its noise field has a newer version than this program."""
    for kind, key, own in (("ssd-recipe", "version", VERSION),
                           ("ssd-noise", "noise_version", NOISE_VERSION)):
        refuse_newer(path, f"{kind}/{recipe.get(key)}", f"{kind}/{own}")


def other_dtype(recipe: Mapping, backbone: Backbone) -> str | None:
    """A note if a recipe's picture was drawn with these weights in another dtype or by another
    int8 kernel.
    """
    drawn, here = recipe["dtype"], stored_dtype(backbone)
    if recipe["backbone"]["sha256"] != backbone.sha256:
        return None
    if drawn == here:
        by, now = drawn_by(recipe), int8_kernel_of(backbone)
        return None if by == now else (
            f"the picture was drawn by the int8 kernel {by}, here {backbone.name} uses {now}: it "
            "may differ in details")
    return (f"the picture was drawn in {drawn}, {backbone.name} is loaded in {here}: it may come "
            f"out different; load it with dtype {drawn} for the same picture")


def drawn_by(recipe: Mapping) -> str:
    """The int8 kernel that drew a checked recipe's picture; INTEGERS also in other dtypes."""
    return str(recipe.get("kernels", {}).get("int8", INTEGERS))[:40]


def check(recipe: Mapping) -> None:
    """Raise ValueError unless every field has the right type and range.

    Readers of a recipe rely on this check. FIELDS are required, OPTIONAL fields may be missing.
    """
    for key, kind in FIELDS.items():
        require(recipe, key, kind)
    for key, kind in OPTIONAL.items():
        if key in recipe:
            require(recipe, key, kind)
    for key in ("name", "sha256"):
        require(recipe["backbone"], key, is_text)
    try:
        drawing = Drawing.from_json(recipe)
    except SSDError as error:
        raise ValueError(str(error)) from error
    rows = len(recipe_tokens(recipe))
    check_kept(drawing, recipe_tokens(recipe))
    for key, most in (("keep_rows", rows - 1), ("stopped_rows", rows)):
        if recipe.get(key, 0) > most:
            raise ValueError(f"{key} {recipe[key]}: must lie in 0 .. {most}")


def check_kept(drawing: Drawing, tokens: torch.Tensor) -> None:
    """Raise ValueError unless what was kept fits the picture's tokens [R, C]."""
    keep, mask = drawing.keep, drawing.keep_mask
    if keep is not None and keep[0].shape != tokens.shape:
        raise ValueError("keep has another shape than tokens")
    if drawing.edit is not None and keep is None:
        raise ValueError("the edit has no picture that it keeps")
    if mask is None:
        return
    if keep is None or mask.shape != tokens.shape:
        raise ValueError("keep_mask does not fit tokens and keep")
    if mask.all() or not mask.any():
        raise ValueError("keep_mask must keep some cells, not all")


def require(mapping: Mapping, key: str, kind: Callable[[object], bool]) -> None:
    if key not in mapping or not kind(mapping[key]):
        raise ValueError(f"{key} is missing or of the wrong kind")


def is_int(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def is_count(value: object) -> bool:
    return is_int(value) and 0 <= value <= LARGEST


def is_version(value: object) -> bool:
    return is_int(value) and value >= 1


def is_seed(value: object) -> bool:
    """Not -1, which asks for a new one."""
    return is_int(value) and value >= 0


def is_there(value: object) -> bool:
    """Whatever it is: `Drawing.from_json` checks it."""
    return True


def is_set(value: object) -> bool:
    return value is not None


def is_text(value: object) -> TypeGuard[str]:
    """Whether it is text that can be encoded, without half a surrogate pair."""
    return isinstance(value, str) and is_unicode(value)


def is_text_or_none(value: object) -> bool:
    return value is None or is_text(value)


def is_dtype(value: object) -> bool:
    return isinstance(value, str) and value in WEIGHT_BYTES


def is_mapping(value: object) -> TypeGuard[dict]:
    return isinstance(value, dict)


def is_loras(value: object) -> bool:
    return isinstance(value, list) and len(value) <= MOST_LORAS and all(
        is_mapping(lora) and is_text(lora.get("name")) and is_text(lora.get("sha256"))
        and isinstance(lora.get("strength"), float | int) for lora in value)


FIELDS: dict[str, Callable[[object], bool]] = {
    "version": is_version, "noise_version": is_version, "backbone": is_mapping, "dtype": is_dtype,
    "heads": is_text_or_none, "tokens": is_mapping, "passes": is_count, "seconds": is_mapping,
    "versions": is_mapping, "negative": is_there, "keep_rows": is_count,
    "seed": is_seed, **dict.fromkeys(("prompt", "method", "size", "cfg", "temperature", "top_k",
                                      "top_p", "min_p"), is_set)}
OPTIONAL: dict[str, Callable[[object], bool]] = {
    "lora": is_loras, "stopped_rows": is_count, "source": is_text, "kernels": is_mapping,
    "pixels_sha256": is_text}
