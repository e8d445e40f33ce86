"""GLM-Image: a GLM-4 that draws a small sketch of a picture, then the picture itself.

Both grids are codes of one vocabulary with the words. A cell is 32 x 32 px. Positions have three
axes: words move along all of them, the cells of a grid along rows and columns. With source pictures
their codes begin the prompt, and there is no sketch. The codes have no decoder to pixels of their
own: a diffusion model paints from them (weights/diffusion.py). Reads the folder of the published
pipeline, or its `vision_language_encoder` alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path

import torch
import torch.nn.functional as F

from ..errors import SSDError
from ..files import is_here
from ..model.grid import Grid
from ..model.kv_cache import KVCache
from ..model.sampling import Sampling
from ..model.transformer import Decoder, DecoderShape, axes_angles
from . import presets, sizes
from .base import SMALL_SLOTS, Backbone, empty
from .codecs.codec import in_float32
from .codecs.colours import CodeColours, read_colours
from .codecs.glm_encoder import halved, source_grid
from .prompts.text import Text, read_text, require_length
from .reading.checkpoint import Checkpoint, read_json
from .reading.decoder_config import number, read_constants, refusal, section
from .reading.weights import (
    LayerNames,
    Slice,
    decoder_shape,
    decoder_sources,
    fill,
    require_known,
    two_sizes,
)

STEP = 32  # px along a cell
SHORTEST, LONGEST = 256, 2048  # px along a side
SKETCH = 16  # cells along the side of a square sketch
FAMILY = "GLM-Image"
CODES, SECTIONS, HEAD_DIM = 16384, (8, 12, 12), 128  # of the published model
PREFIX, HEAD = "model.language_model.", "lm_head.weight"
NAMES = LayerNames(
    "input_layernorm.weight",
    ("self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight"),
    "self_attn.o_proj.weight", "post_attention_layernorm.weight", ("mlp.gate_up_proj.weight",),
    "mlp.down_proj.weight",
    post_norms=("post_self_attn_layernorm.weight", "post_mlp_layernorm.weight"))
# Of the codes themselves and of source pictures: read elsewhere.
UNUSED = (r"model\.visual\..*", r"model\.vqmodel\.(quantize\.embedding|(post_)?quant_conv)\..*")
PAINTER = "the node Finish paints their pixels"
PIXELS = f"the pictures show a false colour for each code; {PAINTER}"
FITTED = f"the pictures show one colour for each code; {PAINTER}"


def sketch_grid(grid: Grid) -> Grid:
    """The sketch of a grid: about 256 cells of the same shape, as the published processor rounds.
    """
    ratio = grid.rows / grid.columns
    return Grid(max(int(math.sqrt(ratio) * SKETCH), 1), max(int(math.sqrt(1 / ratio) * SKETCH), 1))


def cell_positions(grid: Grid, first: int) -> torch.Tensor:
    """[cells, 3]: the time, row and column of a grid's cells, counted from `first`."""
    return F.pad(grid.coordinates, (1, 0)) + first


def prompt_positions(sources: Sequence[torch.Tensor], words: int) -> torch.Tensor:
    """[n, 3]: positions of source pictures with a token before and behind each, then of words."""
    parts, at = [], 0
    for codes in sources:
        rows, columns = codes.shape
        behind = at + 1 + max(rows, columns)
        parts += [torch.full((1, 3), at), cell_positions(Grid(rows, columns), at + 1),
                  torch.full((1, 3), behind)]
        at = behind + 1
    return torch.cat((*parts, torch.arange(at, at + words + 1)[:, None].expand(-1, 3)))


def source_sides(file: Path) -> tuple[int, ...]:
    """The least and the greatest side in px of a source picture, as a processor's file says."""
    if not file.is_file():
        return ()
    known = read_json(file)
    size = known.get("size")
    edges = size if isinstance(size, dict) else {}
    areas = [known.get(f"{word}_pixels", edges.get(f"{name}_edge"))
             for word, name in (("min", "shortest"), ("max", "longest"))]
    sides = [round(math.sqrt(area)) for area in areas if isinstance(area, int) and area > 0]
    return tuple(sides) if len(sides) == len(areas) else ()


def require_size(name: str, size: tuple[int, int]) -> None:
    """Raise SSDError for a size that is not in steps of 32 px; it names the nearest two."""
    if all(SHORTEST <= side <= LONGEST and side % STEP == 0 for side in size):
        return
    nearest = [[min(max(side // STEP * STEP + more, SHORTEST), LONGEST) for side in size]
               for more in (0, STEP)]
    legal = " or ".join(dict.fromkeys(f"{width}x{height}" for width, height in nearest))
    raise SSDError(f"size {size[0]}x{size[1]}: {name} draws sides of {SHORTEST} to {LONGEST} px in "
                   f"steps of {STEP}: choose {legal}")


@dataclass(frozen=True)
class Rotation:
    """theta: base of the angles. sections: the pairs of a head that each axis turns."""

    theta: float
    sections: tuple[int, ...]


class GlmImage(Backbone):
    """Draws `sketch` first; its own prompts then end with the sketch's codes."""

    name = "glm-image"
    prompt_limit = 1024
    takes_negative = takes_guidance = False
    preset = presets.GLM_IMAGE
    sketched = 0  # codes at the end of a prompt: of the sketch, or none while it is drawn

    def __init__(self, shape: DecoderShape, words: int, codes: int, text: Text,
                 rotation: Rotation) -> None:
        super().__init__()
        self.codes, self.text, self.rotation = codes, text, rotation
        self.begin = f"<|dit_token_{codes}|>"
        self.decoder = Decoder(shape)
        self.word_embedding, self.head = empty(words, shape.hidden), empty(codes, shape.hidden)
        self.norm = empty(shape.hidden)

    @property
    def code_embedding(self) -> torch.Tensor:  # type: ignore[override]
        """Codes are the first ids of the vocabulary."""
        return self.word_embedding[: self.codes]

    @property
    def word_reader(self) -> Text:
        return self.text

    def tokenize(self, prompt: str) -> list[int]:
        self.text.require_plain(prompt)
        sides = (f"<sop>{grid.rows} {grid.columns}<eop>" for grid in self.grids)
        ids = self.text.encode(f"{prompt}{''.join(sides)}{self.begin}")
        require_length(self.name, ids, self.prompt_limit)
        before = ([self.codes, *codes.flatten().tolist(), self.codes + 1] for codes in self.sources)
        return [*itertools.chain(*before), *ids]

    def notes(self, sampling: Sampling) -> list[str]:
        return [FITTED if getattr(self.picture_codec, "fitted", False) else PIXELS]

    def unconditional(self, prompt_ids: list[int]) -> list[int]:
        raise SSDError(f"{self.name} draws its codes without guidance: set cfg to 1; the guidance "
                       "of the diffusion model is a setting of the step that paints the pixels")

    # Sizes and grids

    def resized(self, size: tuple[int, int] | None) -> Backbone:
        """A view at any size in steps of 32 px; SSDError names the nearest for others."""
        if size is not None and tuple(size) not in self.sizes:
            require_size(self.name, size)
            view = copy(self)
            view.sizes = (*self.sizes, (size[0], size[1]))
            return Backbone.resized(view, size)
        return super().resized(size)

    def apply_size(self) -> None:
        width, height = self.size
        self.grid = Grid(height // STEP, width // STEP)
        small = sketch_grid(self.grid)
        self.grids: tuple[Grid, ...] = (self.grid,) if self.sources else (self.grid, small)
        self.sketched = 0 if self.sources else small.cells
        parts, first = [], 0
        for grid in reversed(self.grids):
            parts.append(cell_positions(grid, first))
            first += max(grid.rows, grid.columns)  # the positions that a grid takes
        self.angles = self.turned(prompt_positions(self.sources, self.prompt_limit))
        self.cell_angles = self.turned(torch.cat(parts))

    def turned(self, positions: torch.Tensor) -> torch.Tensor:
        """Rotary angles of positions [n, 3]."""
        return axes_angles(positions, self.rotation.sections, self.decoder.shape.head_dim,
                           self.rotation.theta).to(self.device)

    def sketch(self) -> Backbone | None:
        if not self.sketched:
            return None
        view = copy(self)
        view.grid, view.sketched, view.first_slot = self.grids[-1], 0, SMALL_SLOTS
        return view

    def after_sketch(self, prompt_ids: list[int], tokens: list[int]) -> list[int]:
        return [*prompt_ids, *tokens]

    # Source pictures

    def read_sources(self, pictures: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """The codes of pictures that are scaled as the published processor scales them."""
        codec = self.ensure_on_device(self.picture_codec)
        assert isinstance(codec, CodeColours)
        sides = source_sides(self.text.source.with_name("preprocessor_config.json"))
        pixels = [halved(picture[..., :3].permute(2, 0, 1),
                         source_grid(picture.shape[0], picture.shape[1], *sides))
                  for picture in pictures]
        with in_float32(codec):
            return tuple(codes.cpu() for codes in codec.codes(pixels))

    def drawn_from(self, sources: Sequence[torch.Tensor]) -> Backbone:
        if not sources:
            return self
        if max(int(codes.max()) for codes in sources) >= self.codes:
            raise SSDError(f"source pictures have codes beyond those of {self.name}: read them "
                           "again by read_sources")
        view = copy(self)
        view.sources = tuple(sources)
        view.apply_size()
        return view

    def angles_at(self, at: slice | torch.Tensor, cache: KVCache | None) -> torch.Tensor | None:
        """Those of a word, or of the first cell times those of a cell relative to it.

        The cells of both grids stand behind the words in one sequence.
        """
        if cache is None or cache.prompts is None:
            raise SSDError(f"{self.name}: finished pictures cannot be judged without their "
                           "sketches: choose another backbone")
        assert self.angles is not None
        at = torch.arange(at.start, at.stop, device=self.device) if isinstance(at, slice) else at
        words = (cache.prompts - self.sketched).clamp(min=0)  # step_times.py times shorter prompts
        cells = (at - words).clamp(0, len(self.cell_angles) - 1)
        return self.angles[torch.minimum(at, words)] * self.cell_angles[cells]


def matches(checkpoint: Checkpoint) -> bool:
    """Only GLM-Image has norms behind attention, and codes in its head."""
    keys = (f"{PREFIX}layers.0.{NAMES.post_norms[0]}", f"{PREFIX}embed_tokens.weight", HEAD)
    return set(keys) <= set(checkpoint.shapes)


def load(checkpoint: Checkpoint, device: torch.device, dtype: torch.dtype) -> GlmImage:
    """Read a GLM-Image; SSDError names the file and what is wrong with it."""
    config = section(checkpoint, "text_config")
    codes = int(number(checkpoint, checkpoint.config(), "image_start_token_id", CODES))
    embedding = f"{PREFIX}embed_tokens.weight"
    words, hidden = two_sizes(checkpoint, embedding)
    shape, rotation = shape_in(checkpoint, config, hidden)
    text = read_text(tokenizer_of(checkpoint), words)
    with torch.device("meta"):
        backbone = GlmImage(shape, words, codes, text, rotation)
    require_codes(backbone, checkpoint)
    sources = {"word_embedding": embedding, "head": Slice(HEAD, 0, codes),
               "norm": f"{PREFIX}norm.weight",
               **decoder_sources(PREFIX, shape.layers, NAMES, qkv_bias=True)}
    require_known(checkpoint, sources, UNUSED)
    backbone.sha256 = fill(backbone, sources, checkpoint, device, dtype).hexdigest()
    backbone.picture_codec = read_colours(checkpoint, codes, STEP, device, dtype,
                                          backbone.sha256)
    backbone.sizes = sizes.GLM_IMAGE
    backbone.apply_size()
    return backbone.eval()


def require_codes(backbone: GlmImage, checkpoint: Checkpoint) -> None:
    """Raise SSDError if tokenizer and config count the codes differently."""
    for code in (backbone.codes, backbone.codes + 1):  # before and behind a picture
        name = f"<|dit_token_{code}|>"
        if (found := backbone.text.id(name)) != code:
            raise SSDError(f"{backbone.text.source}: {name} has id {found}, config.json of "
                           f"{checkpoint.folder} says {code}: take the tokenizer that belongs to "
                           "this model")


def shape_in(checkpoint: Checkpoint, config: Mapping, hidden: int) -> tuple[DecoderShape, Rotation]:
    """The decoder's sizes and its rotation, which turns a part of each head."""
    rope = dict(config.get("rope_parameters") or {})
    share = rope.pop("partial_rotary_factor", config.get("partial_rotary_factor", 0.5))
    sections = tuple(rope.pop("mrope_section", None) or SECTIONS)
    plain = {**config, "partial_rotary_factor": None, "rope_parameters": rope}
    constants = read_constants(checkpoint, plain, theta=10_000.0, eps=1e-5)
    heads = int(number(checkpoint, config, "num_attention_heads", max(hidden // HEAD_DIM, 1)))
    shape = decoder_shape(checkpoint, PREFIX, heads, NAMES, config, eps=constants.eps,
                          qkv_bias=True)
    if (share * shape.head_dim != 2 * sum(map(int, sections))) or len(sections) != 3:
        raise refusal(checkpoint, f"mrope_section is {list(sections)} and partial_rotary_factor "
                      f"{share}: three sections of {share * shape.head_dim / 2:g} pairs together "
                      "are expected")
    return (replace(shape, rotary_dim=2 * sum(sections)), Rotation(constants.theta, sections))


def tokenizer_of(checkpoint: Checkpoint) -> Path:
    """tokenizer.json: beside the weights, or in the pipeline's folder `processor`."""
    beside = (checkpoint.folder.parent / "processor", checkpoint.root / "processor")
    paths = (folder / "tokenizer.json" for folder in beside)
    found = next((path for path in paths if is_here(path)), None)
    own = checkpoint.folder / "tokenizer.json"
    if is_here(own) or found is None:
        return checkpoint.path("tokenizer.json")
    return found
