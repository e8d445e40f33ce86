"""`--like PICTURE.png`: the settings of a recipe; flags on the command line override them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TypeVar

import typer

from ..backbones.base import Backbone
from ..engine.heads import DraftHeads
from ..engine.methods import Method
from ..errors import SSDError
from ..model.grid import size_of
from ..model.sampling import Sampling
from ..output.drawing import Drawing, drawing_of, method_of, sampling_of
from ..output.foreign import texts_of, told_by
from ..output.picture_files import Size, fitted, opened, upright
from ..output.recipe import other_dtype, read_recipe, recipe_of
from ..output.words import drawn_words
from .options import Canvas, Knobs, Loading, SamplingOptions, flag
from .session import registry
from .specs import build_method

C = TypeVar("C", bound=Canvas)
NO_HEADS = "none"
NO_PROMPT = "no prompt: write what the picture should show, or name a picture with --like"


def recipe_in(path: Path) -> dict | None:
    """The recipe in a picture, if it has one."""
    with opened(path) as image:
        return recipe_of(path, image)


def told_in(path: Path) -> dict[str, str]:
    """prompt, negative and seed, as far as another program wrote them into a picture."""
    with opened(path) as image:
        return {} if recipe_of(path, image) else told_by(texts_of(image))


@contextmanager
def drawable(path: Path, sizes: Sequence[Size], other: Size | None = None
             ) -> Iterator[tuple[Path, str]]:
    """A picture of one of these sizes, for the block, and a phrase on how it was made.

    One of such a size is taken as it is, another one is cut to its middle and scaled: to `other`;
    None: to the size that cuts off least.
    """
    with opened(path) as image:
        picture = upright(image)
    if picture.size in sizes:
        yield path, ""
        return
    picture = fitted(picture, [other] if other else sizes)
    with tempfile.TemporaryDirectory(prefix="ssd-") as folder:
        png = Path(folder, "picture.png")
        picture.save(png)
        yield png, f"cut and scaled to {picture.width}x{picture.height}, "


@dataclass(frozen=True)
class Like:
    """Settings of another picture."""

    like: Path | None = flag(None, "PNG whose settings are used, from the prompt to the dtype; "
                                   "of another program's picture prompt, negative prompt and "
                                   "seed. Flags override them.")


@dataclass(frozen=True)
class RunSettings:
    """The settings of a run: the flags, and a recipe for those that are not set.

    flags_set: names of the parameters on the command line. foreign: what another program's picture
    tells in place of a recipe, see `told_in`.
    """

    recipe: Mapping | None = None
    flags_set: set[str] = field(default_factory=set)
    foreign: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, like: Like, context: typer.Context) -> RunSettings:
        if like.like is not None and (foreign := told_in(like.like)):
            return cls(None, named_in(context), foreign)
        return cls.of_recipe(None if like.like is None else read_recipe(like.like), context)

    @classmethod
    def of_recipe(cls, recipe: Mapping | None, context: typer.Context) -> RunSettings:
        return cls(recipe, named_in(context))

    def loading(self, flags: Loading) -> Loading:
        if self.recipe is None:
            return flags
        own = {"backbone": self.recipe["backbone"]["name"], "dtype": self.recipe["dtype"],
               **({"heads": NO_HEADS} if self.recipe["heads"] is None else {})}
        if "lora" not in self.flags_set:
            own["lora"] = registry(flags.models_dir).loras_of(self.recipe)
        return replace(flags, **self._silent(own))

    def picture(self, flags: C) -> C:
        if self.recipe is None:
            negative = self.foreign.get("negative")
            return replace(flags, **self._silent({"negative": negative} if negative else {}))
        own = {name: self.recipe[name] for name in ("negative", "size")}
        return replace(flags, **self._silent(own))

    def prompt(self, typed: str | None) -> str:
        own = self.foreign if self.recipe is None else self.recipe
        prompt = own.get("prompt") if typed is None else typed
        if prompt is None:
            raise SSDError(NO_PROMPT)
        return prompt

    def sampling(self, flags: SamplingOptions) -> Sampling:
        named = flags.sampling()
        if self.recipe is None:
            own = self._silent({"seed": int(seed)} if (seed := self.foreign.get("seed")) else {})
            return replace(named, **own) if own else named
        return replace(sampling_of(self.recipe), **{
            f.name: getattr(named, f.name) for f in fields(named) if f.name in self.flags_set})

    def method(self, flags: Knobs) -> Method:
        """The recipe's method with the knobs that are set, or the method of the flags alone."""
        if self.recipe is None or (
                flags.method or self.recipe["method"]).lower() != self.recipe["method"]:
            return flags.chosen()
        own = method_of(self.recipe)
        knobs = {name: value for name, value in flags.knobs.items() if value is not None}
        return build_method(own.name, {**asdict(own), **knobs})

    @property
    def names_method(self) -> bool:
        """Whether the user named the method, so that no other replaces it."""
        return self.recipe is not None or "method" in self.flags_set

    def options(self, backbone: Backbone, heads: DraftHeads | None) -> dict:
        """Further fields of the Drawing: the words drawn and the rows kept.

        Raises SSDError if backbone or heads differ from the recipe's, unless flags name them.
        """
        if self.recipe is None:
            return {}
        if "lora" not in self.flags_set:
            self._require_same("backbone", backbone.sha256, self.recipe["backbone"]["sha256"])
        self._require_same("heads", heads.sha256 if heads else None, self.recipe["heads"])
        typed, drawing = {"prompt", "negative", "expand"} & self.flags_set, drawing_of(self.recipe)
        fixed = {} if typed else {"fixed": (drawn_words(self.recipe),)}
        return {**fixed, **self._kept(drawing, backbone), "sources": drawing.sources}

    def drawn_before(self, backbone: Backbone) -> str | None:
        """A line about the recipe's picture, if this backbone may draw another one."""
        return None if self.recipe is None else other_dtype(self.recipe, backbone)

    def _kept(self, drawing: Drawing, backbone: Backbone) -> dict:
        """What the recipe's picture kept. drawing: that of the recipe."""
        if self.recipe is None or drawing.keep is None or {"keep", "keep_rows"} & self.flags_set:
            return {}
        rows = self.recipe["keep_rows"]
        if (backbone.sha256 != self.recipe["backbone"]["sha256"]
                or size_of(self.recipe["size"]) not in backbone.sizes_of_grid):
            what = f"the picture's top {rows} rows" if rows else "cells of the picture"
            raise SSDError(f"{what} were kept from another one, which needs its own backbone and "
                           "size: leave --backbone and --size out, or draw all rows with "
                           "--keep-rows 0")
        return {name: getattr(drawing, name) for name in ("keep", "keep_rows", "keep_mask", "edit")}

    def _require_same(self, flag_name: str, loaded: str | None, wanted: str | None) -> None:
        if flag_name not in self.flags_set and wanted not in (loaded, None):
            raise SSDError(f"the picture was drawn with {flag_name} {wanted[:10]}, but "
                           f"{loaded[:10] if loaded else 'none'} was found: name the picture's own "
                           f"with --{flag_name}, or another one to draw with")

    def _silent(self, own: Mapping[str, object]) -> dict:
        """The settings whose flag is not set."""
        return {name: value for name, value in own.items() if name not in self.flags_set}


def named_in(context: typer.Context) -> set[str]:
    """The parameters that the command line sets."""
    return {name for name in context.params
            if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"}
