"""What is asked for (`Drawing`), and its JSON: the form of recipes, of the app and of its API."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import torch

from ..arguments import require_fields
from ..engine.edits.words import Edit
from ..engine.methods import METHODS, Method, default_method
from ..errors import SSDError
from ..files import require_unicode
from ..model.grid import size_of
from ..model.knobs import KnobSpec, coerce, derived, specs
from ..model.sampling import Sampling
from .packed import pack, pack_mask, unpack, unpack_mask
from .words import FIELDS as DRAWN
from .words import Words

WHOLE = re.compile(r"-?\d{1,40}")


@dataclass(frozen=True, eq=False)
class Drawing:
    """One picture or several that somebody asks for, without the model that draws them.

    negative: the negative prompt; None if it is empty.
    size: (width, height) in px; None for that of keep_pixels, else the model's own.
    pictures: B.
    expand: whether the backbone completes the prompt, that of picture i by seed + i; never for an
        edit. Negations move to the negative prompt in both cases.
    open: names of additions to omit.
    fixed: the words to draw whatever `expand` is, for all pictures or for each: those of a picture
        that is kept, varied or drawn again.
    keep: tokens [B or 1, R, C] of a picture, of which a part is kept.
    keep_rows: the number of rows at the top that are kept.
    keep_mask: bool [R, C] or [B or 1, R, C], True for cells that are kept.
    keep_pixels: [B or 1, H, W, 3] float 0..1, the pixels of the picture `keep`, which kept cells
        retain; None: with a mask those that `keep` decodes to. Those of another size of the same
        grid are scaled. Not in JSON.
    edit: the words of the picture `keep`, which the prompt edits within keep_mask.
    sources: pictures that the backbone reads, as codes [r, c].

    Raises SSDError for a field of a wrong type.
    """

    prompt: str = ""
    negative: str | None = None
    method: Method = default_method()
    sampling: Sampling = Sampling()
    size: tuple[int, int] | None = None
    pictures: int = 1
    expand: bool = False
    open: tuple[str, ...] = ()
    fixed: tuple[Words, ...] = ()
    keep: torch.Tensor | None = None
    keep_rows: int = 0
    keep_mask: torch.Tensor | None = None
    keep_pixels: torch.Tensor | None = None
    edit: Edit | None = None
    sources: tuple[torch.Tensor, ...] = ()

    def __post_init__(self) -> None:
        require_fields(self, "size", "pictures")
        object.__setattr__(self, "pictures", coerce("pictures", self.pictures, int))

    @property
    def seeds(self) -> list[int]:
        return self.sampling.seeds(self.pictures)

    def with_seed(self, seed: int) -> Drawing:
        return replace(self, sampling=derived(self.sampling, seed=seed))

    def of_picture(self, n: int) -> Drawing:
        """The drawing of picture n alone."""
        def own(each: torch.Tensor | None) -> torch.Tensor | None:
            return None if each is None else each[n % len(each)][None]

        mask = self.keep_mask
        return replace(self, pictures=1, sampling=self.sampling.offset_seed(n), keep=own(self.keep),
                       keep_mask=None if mask is None else mask_of_picture(mask, n),
                       keep_pixels=own(self.keep_pixels),
                       fixed=self.fixed[n : n + 1] if len(self.fixed) > 1 else self.fixed)

    # JSON

    def to_json(self) -> dict[str, Any]:
        """The drawing of one picture, or of several with the same words and kept cells.

        null leaves a knob to the method or the model. Words to draw, kept cells, an edit and
        sources are there if the drawing has them.
        """
        known = {"prompt": self.prompt, "negative": self.negative, "method": self.method.name,
                 **asdict(self.method), **asdict(self.sampling),
                 "size": self.size and f"{self.size[0]}x{self.size[1]}",
                 "pictures": int(self.pictures), "expand": self.expand, "open": list(self.open),
                 "keep_rows": int(self.keep_rows)}
        for words in self.fixed[:1]:
            known |= dict(zip(DRAWN, (words.prompt, words.negative), strict=True))
        if self.keep is not None:
            known["keep"] = pack(self.keep[0])
        if self.keep_mask is not None:
            known["keep_mask"] = pack_mask(self.keep_mask)
        if self.sources:
            known["sources"] = [pack(codes) for codes in self.sources]
        return known if self.edit is None else {**known, **asdict(self.edit)}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any], over: Drawing | None = None) -> Drawing:
        """The drawing of JSON values. What is missing is as in `over`; words that were fixed for
        its prompts, and additions to omit, hold for no others. Other names are ignored.

        Raises SSDError naming the first value of a wrong type or out of range.
        """
        over = over or cls()
        made = replace(over, method=method_of(raw, over.method), sampling=sampling_of(raw, over),
                       **{name: read(name, raw[name]) for name, read in READERS.items()
                          if name in raw})
        if made.prompt != over.prompt and "open" not in raw:
            made = replace(made, open=())
        if DRAWN[0] in raw or (made.prompt, made.negative) != (over.prompt, over.negative):
            made = replace(made, fixed=fixed_in(raw))
        return replace(made, edit=edit_in(raw)) if "old_prompt" in raw else made


def drawing_of(recipe: Mapping) -> Drawing:
    """The drawing of a checked recipe, which reproduces its tokens.

    The first keep_rows rows are the picture's own, other kept cells those of `keep`.
    """
    drawing = Drawing.from_json(recipe)
    if not (rows := drawing.keep_rows):
        return drawing
    keep = unpack(recipe["tokens"])[None] if drawing.keep is None else drawing.keep
    keep[0, :rows] = unpack(recipe["tokens"])[:rows]
    if drawing.keep_mask is None:
        return replace(drawing, keep=keep)
    drawing.keep_mask[:rows] = True
    return replace(drawing, keep=keep, keep_rows=0)


def mask_of_picture(mask: torch.Tensor, n: int) -> torch.Tensor:
    """The mask [R, C] of picture n, out of [R, C] or [B or 1, R, C]."""
    return mask if mask.dim() < 3 else mask[n % len(mask)]


def method_of(raw: Mapping[str, Any], over: Method | None = None) -> Method:
    """The method and its knobs in JSON values; knobs that are missing are those of `over`."""
    kind = type(over or default_method())
    if "method" in raw:
        name = coerce("method", raw["method"], str)
        if name not in METHODS:
            raise SSDError(f"method {name[:40]!r}: choose one of {', '.join(METHODS)}")
        kind = METHODS[name]
    own = {f.name: getattr(over, f.name) for f in fields(kind) if hasattr(over, f.name)}
    return kind(**{**own, **values_in(raw, kind)})


def knobs_in(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """The knobs of a checked recipe's method, by name."""
    return {f.name: recipe[f.name] for f in fields(METHODS[recipe["method"]]) if f.name in recipe}


def sampling_of(raw: Mapping[str, Any], over: Drawing | None = None) -> Sampling:
    """The sampling in JSON values."""
    values = values_in(raw, Sampling)
    return replace(over.sampling, **values) if over else Sampling(**values)


def values_in(raw: Mapping[str, Any], record: type) -> dict[str, Any]:
    """The knobs of a method or of Sampling that JSON values hold."""
    return {spec.name: knob_value(spec, raw[spec.name]) for spec in specs(record)
            if spec.name in raw}


def knob_value(spec: KnobSpec, value: Any) -> Any:
    """A knob's value in its own type, for the record that checks it."""
    if value is None:
        return spec.default
    if spec.kind is int:
        value = whole(spec.name, value)
    elif spec.kind is float:
        value = float(coerce(spec.name, value, float))  # browsers send 12 for 12.0
    return value


def whole(name: str, value: Any) -> int:
    """An integer; also accepts text, and floats without a fraction."""
    if isinstance(value, str) and WHOLE.fullmatch(value.strip()):
        return int(value)
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise SSDError(f"{name} {str(value)[:20]!r}: must be a whole number")


def fixed_in(raw: Mapping[str, Any]) -> tuple[Words, ...]:
    """The words to draw that JSON values hold, if any."""
    prompt, negative = (text_or_none(name, raw.get(name)) for name in DRAWN)
    return () if prompt is None else (Words(prompt, negative),)


def edit_in(raw: Mapping[str, Any]) -> Edit | None:
    """The edit by words that JSON values hold, if any."""
    values = values_in(raw, Edit)
    return Edit(**values) if text_or_none("old_prompt", raw["old_prompt"]) else None


def text(name: str, value: Any) -> str:
    found = coerce(name, value, str)
    require_unicode(name, found)
    return found


def text_or_none(name: str, value: Any) -> str | None:
    return None if value is None else text(name, value) or None


def flag(name: str, value: Any) -> bool:
    return coerce(name, value, bool)


def texts(name: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise SSDError(f"{name} {str(value)[:40]!r}: must be a list of texts")
    return tuple(text(name, each) for each in value)


def size(name: str, value: Any) -> tuple[int, int] | None:
    return size_of(text_or_none(name, value))


def count(name: str, value: Any) -> int:
    number = whole(name, value)
    if number < 0:
        raise SSDError(f"{name} {number}: must be at least 0")
    return number


def unpacked(read: Callable[[Any, str], torch.Tensor], name: str, value: Any) -> torch.Tensor:
    try:
        return read(value, name)
    except ValueError as error:
        raise SSDError(f"{name}: cannot be read ({error}): send shape and data as in a recipe"
                       ) from error


def tokens(name: str, value: Any) -> torch.Tensor | None:
    return None if value is None else unpacked(unpack, name, value)[None]


def mask(name: str, value: Any) -> torch.Tensor | None:
    return None if value is None else unpacked(unpack_mask, name, value)


def sources(name: str, value: Any) -> tuple[torch.Tensor, ...]:
    packed = value if isinstance(value, list) else [] if value is None else [value]
    return tuple(unpacked(unpack, name, each) for each in packed)


READERS: dict[str, Callable[[str, Any], Any]] = {
    "prompt": text, "negative": text_or_none, "size": size, "pictures": whole, "expand": flag,
    "open": texts, "keep": tokens, "keep_rows": count, "keep_mask": mask, "sources": sources}
