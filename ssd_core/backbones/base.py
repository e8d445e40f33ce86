"""The interface between engine and backbone: prompts in; hidden states, logits and pixels out.

The decoding loop calls only these methods, so tests can replace eight billion weights with a mock
of thirty lines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import torch
import torch.nn.functional as F
from torch import nn

from ..errors import SSDError
from ..model.grid import Grid, nearest_sizes
from ..model.kv_cache import KVCache
from ..model.products import INTEGERS, Int8Matrix, int8_kernel, parts_of, product
from ..model.sampling import Sampling
from ..model.surroundings import undisturbed
from ..model.transformer import Decoder
from .codecs.codec import PictureCodec, in_float32
from .estimates import Estimates
from .offload import Offloader
from .presets import Preset
from .prompt_guide import PromptGuide
from .prompts.own_words import OwnWords
from .sessions import KeptSession

if TYPE_CHECKING:
    from .reading.adapters import Lora

M = TypeVar("M", bound=nn.Module)


SMALL_SLOTS = 1 << 20  # slots of a smaller picture are numbered from here in the noise field
NEAR = 4  # sizes that a refusal names
SHORT_NAMES = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}


def empty(*sizes: int) -> nn.Parameter:
    """An uninitialised parameter; its values come from a file."""
    return nn.Parameter(torch.empty(sizes))


def module_device(module: nn.Module) -> torch.device:
    """Return the device of a module's weights; codec and decoder may be on different devices."""
    return next(module.parameters()).device


class Backbone(PromptGuide, nn.Module):
    """Decoder plus embeddings, final norm and image head; what it says of prompts: `PromptGuide`.

    Subclasses set the attributes below and implement `tokenize` and `unconditional`, `embed_prompt`
    if they have no `word_embedding`, and `apply_size` if they support several sizes. Picture tokens
    have ids 0..codes-1; a forced row end has id `codes`.
    """

    name: str
    sha256: str = ""  # of the weights, with adapters if there are any
    base_sha256: str = ""  # of the weights without adapters, if there are any
    lora: tuple[Lora, ...] = ()  # that were merged at loading
    grid: Grid
    codes: int
    sizes: tuple[tuple[int, int], ...]  # legal (width, height) in px, the current one first
    scale: int = 1  # a side of its pictures, against that of the pictures that the codec encodes
    prompt_limit: int
    controls: tuple[str, ...] = ()  # what a picture may be below which it draws another one
    two_panels: tuple[int, int]  # size of both, (width, height) in px, if it has controls
    own_words: OwnWords = OwnWords()
    takes_negative: bool = True
    takes_guidance: bool = True
    sources: tuple[torch.Tensor, ...] = ()  # codes [r, c] of the pictures that this view draws from
    preset: Preset
    decoder: Decoder
    word_embedding: nn.Parameter
    code_embedding: torch.Tensor
    norm: torch.Tensor
    head: torch.Tensor
    angles: torch.Tensor | None = None
    positions: torch.Tensor | None = None
    first_slot: int = 0  # its number in the noise field
    graphs: str = "auto"  # "off": passes are never captured as CUDA graphs
    rounding: float | None = None  # of logits, as measured at loading (invariance.py)
    batch_invariant: bool = False
    """A cell gets the same bits in passes of any width."""
    offloader: Offloader | None = None  # with offload: moves decoder or codec to the device
    picture_codec: PictureCodec
    find_drafter: Callable[[Backbone], nn.Module] | None = None  # loads a Drafter (drafter.py)
    files: tuple[Path, ...] = ()  # the weights were read from these
    doubts: tuple[str, ...] = ()  # what the files do not tell, and what was taken instead
    estimates: Estimates = Estimates()
    """What runs took on this machine: of this process, unless a host loads with stored ones."""

    def __init__(self) -> None:
        super().__init__()
        self.session = KeptSession()  # of all views: what the last run left for the next one

    def _apply(self, fn: Callable, recurse: bool = True) -> Backbone:
        """Move or convert; graphs read the weights where they were."""
        self.session.release()
        return super()._apply(fn, recurse)

    @property
    def hashes(self) -> tuple[str, ...]:
        """Of the backbones whose draft heads suit this one, itself first."""
        return tuple(filter(None, dict.fromkeys((self.sha256, self.base_sha256))))

    @property
    def size(self) -> tuple[int, int]:
        """Current picture size (width, height) in px; `resized` sets another."""
        return self.sizes[0]

    def resized(self, size: tuple[int, int] | None) -> Backbone:
        """Return a view of this backbone at another size; it shares all weights. None: self."""
        if size is None or tuple(size) == self.size:
            return self
        if tuple(size) not in self.sizes:
            near = [f"{width}x{height}" for width, height in nearest_sizes(size, self.sizes)]
            raise SSDError(f"size {size[0]}x{size[1]}: {self.name} does not draw it; the nearest "
                           f"are {', '.join(near[:NEAR])}")
        view = copy(self)
        others = [other for other in self.sizes if other != tuple(size)]
        view.sizes = ((size[0], size[1]), *others)
        view.apply_size()
        return view

    @property
    def sizes_of_grid(self) -> tuple[tuple[int, int], ...]:
        """The sizes in which the same tokens can be decoded, the current one first."""
        return (self.size,)

    @property
    def smallest(self) -> Backbone:
        """This backbone at the smallest size of its grid: the one that the codec encodes, that
        programs read pictures in, and that takes least time to decode.
        """
        return self.resized(min(self.sizes_of_grid))

    def require_controls(self) -> None:
        """Raise SSDError if this backbone draws nothing below another picture."""
        if not self.controls:
            raise SSDError(f"{self.name} draws no panels: load Lumina-mGPT-2.0-Omni, and leave "
                           "Omni in the name of its folder, or give --family")

    def apply_size(self) -> None:
        """Set what depends on `size`: grid, angles, positions."""
        raise NotImplementedError

    @property
    def hidden_size(self) -> int:
        return self.decoder.shape.hidden

    @property
    def device(self) -> torch.device:
        return self.norm.device

    @property
    def dtype(self) -> torch.dtype:
        return self.norm.dtype

    def overflowed(self) -> str:
        """Return one line about numbers that are not finite; checks files that have a checksum."""
        from ..files import damaged

        problem = f"the numbers overflowed in {str(self.dtype)[6:]}"
        if broken := damaged(self.files):
            return (f"{problem}: {broken[0]} is damaged, it does not have the checksum that its "
                    "folder knows: get it again")
        if self.dtype == torch.float16:
            return (f"{problem}: load the backbone with dtype bf16, or fp32 where the card has no "
                    "bf16")
        paths = f" ({', '.join(map(str, self.files[:2]))})" if self.files else ""
        return (f"{problem}, so the weights may be damaged: get the files of {self.name}{paths} "
                "again")

    def tokenize(self, prompt: str) -> list[int]:
        """Prompt ids with special tokens; the last one predicts cell (0, 0)."""
        raise NotImplementedError

    def tokenize_negative(self, prompt: str) -> list[int]:
        """Ids of a negative prompt, for backbones that format it differently."""
        return self.tokenize(prompt)

    def unconditional(self, prompt_ids: list[int]) -> list[int]:
        """Prompt ids of guidance's unconditional branch."""
        raise NotImplementedError

    def sketch(self) -> Backbone | None:
        """The view that draws a small picture first, if the model does; else None."""
        return None

    def after_sketch(self, prompt_ids: list[int], tokens: list[int]) -> list[int]:
        """Prompt ids, and the tokens that `sketch` has drawn after them."""
        raise NotImplementedError

    def read_sources(self, pictures: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """Codes [r, c] int64 of source pictures [H, W, 3], float in 0..1, each of any size."""
        raise self.from_words_alone()

    def drawn_from(self, sources: Sequence[torch.Tensor]) -> Backbone:
        """A view that draws from source pictures besides words, given their codes [r, c]."""
        if sources:
            raise self.from_words_alone()
        return self

    def from_words_alone(self) -> SSDError:
        return SSDError(f"{self.name} takes no source picture: leave it out, or load GLM-Image")

    def notes(self, sampling: Sampling) -> list[str]:
        """What a user should know of a run with this sampling, a sentence each."""
        return [*self.doubts]

    def masked_prompt_slots(self, prompt_ids: list[int]) -> int:
        """Return how many of the prompt's first slots are masked from attention."""
        return 0

    def cache_prompts(self, folder: Path) -> None:
        """Cache the output of a text model in this folder, and read it from there.

        Useful where prompts repeat, or where several processes read the same ones. Backbones
        without a text model cache nothing.
        """

    def embed_prompt(self, ids: torch.Tensor) -> torch.Tensor:
        """[N, P] int64 -> [N, P, d]."""
        return F.embedding(ids, self.word_embedding)

    def ensure_on_device(self, module: M) -> M:
        """Return the decoder or codec; with offload, move it to the device first."""
        if self.offloader is not None:
            self.offloader.take(module)
        return module

    def decode(self, tokens: torch.Tensor) -> torch.Tensor:
        """Tokens [B, R, C] int64 -> pictures [B, H, W, 3] float32 in 0..1."""
        self.require_codes(tokens)
        codec = self.ensure_on_device(self.picture_codec)
        with undisturbed(), in_float32(codec):
            pixels = codec.decode(tokens.to(module_device(codec)), self.scale)
        return pixels.permute(0, 2, 3, 1).add(1).div(2).clamp(0, 1)

    def glance(self, tokens: torch.Tensor) -> torch.Tensor:
        """Much like `decode`, at the smallest size and quicker, where the codec has a way."""
        codec = self.picture_codec
        with in_float32(codec):
            pixels = codec.glance(tokens.to(module_device(codec)))
        return pixels.permute(0, 2, 3, 1).add(1).div(2).clamp(0, 1)

    def require_codes(self, tokens: torch.Tensor) -> None:
        """Raise SSDError for what are no tokens of this backbone's pictures."""
        if not isinstance(tokens, torch.Tensor) or tokens.dim() != 3 or (
                tokens.is_floating_point() or not tokens.numel()):
            raise SSDError("tokens: must be a tensor of whole numbers [pictures, rows, columns]")
        if tokens.device.type != "meta" and not 0 <= int(tokens.min()) <= int(
                tokens.max()) < self.codes:
            raise SSDError(f"tokens: must lie in 0 .. {self.codes - 1}")

    def encode(self, pictures: torch.Tensor) -> torch.Tensor:
        """Pictures [B, H, W, 3] float in 0..1, of one of `sizes_of_grid` -> tokens [B, R, C] int64.
        """
        if tuple(pictures.shape[1:]) not in [(h, w, 3) for w, h in self.sizes_of_grid]:
            width, height = self.size
            raise SSDError(f"{self.name} encodes pictures of {width}x{height} pixels, "
                           f"not {pictures.shape[2]}x{pictures.shape[1]}: resize it first")
        codec = self.ensure_on_device(self.picture_codec)
        small = averaged(pictures.to(module_device(codec), torch.float32),
                         min(self.sizes_of_grid))
        pixels = small.permute(0, 3, 1, 2) * 2 - 1
        with undisturbed(), in_float32(codec):
            return codec.encode(pixels)

    def embed(self, tokens: torch.Tensor) -> torch.Tensor:
        """e of the paper: picture tokens [N, n] -> input embeddings [N, n, d]."""
        return F.embedding(tokens, self.code_embedding)

    def forward(self, x: torch.Tensor, cache: KVCache | None = None) -> torch.Tensor:
        """One pass: embeddings [N, n, d] -> h_pre [N, n, d], before the final RMSNorm.

        The cache gives the positions; without a cache they are 0..n-1.
        """
        at = slice(0, x.shape[1]) if cache is None else cache.positions
        angles = self.angles_at(at, cache)
        if self.positions is not None:
            x = x + self.positions[at]
        return self.ensure_on_device(self.decoder)(x, angles, cache)

    def angles_at(self, at: slice | torch.Tensor, cache: KVCache | None) -> torch.Tensor | None:
        """The rotary angles of sequence positions: a slice, or [N, n] int64."""
        return None if self.angles is None else self.angles[at]

    @property
    def in_int8(self) -> bool:
        """Whether the decoder's matrices are 8-bit integers (model/products.py)."""
        return isinstance(self.decoder.layers[0].qkv, Int8Matrix)

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """GenHead(RMSNorm(h)): [..., d] -> float32 [..., codes]; h may be exact or estimated."""
        hidden = F.rms_norm(hidden, hidden.shape[-1:], self.norm, self.decoder.shape.eps)
        return product(hidden, self.head).float()

    def new_cache(self, rows: int, slots: int) -> KVCache:
        return self.ensure_on_device(self.decoder).new_cache(rows, slots)


def averaged(pictures: torch.Tensor, size: tuple[int, int]) -> torch.Tensor:
    """Pictures [B, H, W, 3] at (width, height): means of whole blocks of pixels."""
    if (pictures.shape[2], pictures.shape[1]) == tuple(size):
        return pictures
    small = F.interpolate(pictures.permute(0, 3, 1, 2), size[::-1], mode="area")
    return small.permute(0, 2, 3, 1)


def stored_dtype(backbone: Backbone) -> str:
    """Name the dtype that layers are stored in; the `dtype` of quantised tensors is another."""
    if backbone.in_int8:
        return "int8"
    weight = backbone.decoder.layers[0].get_parameter("qkv")
    each = stored_bytes(weight) / weight.numel()
    if each >= 1.5:
        return SHORT_NAMES[backbone.dtype]
    return "int4" if each < 0.75 else "fp8"


def int8_kernel_of(backbone: Backbone) -> str:
    """What multiplies int8 matrices on the backbone's device; pictures by other kernels than
    INTEGERS differ in details from those by it.
    """
    in_halves = backbone.in_int8 and backbone.dtype != torch.float32
    return int8_kernel(backbone.device) if in_halves else INTEGERS


def stored_bytes(weight: torch.Tensor) -> int:
    """Bytes of a tensor; of a quantised tensor, those of all its parts."""
    return sum(part.numel() * part.element_size() for part in parts_of(weight))
