"""Options that several commands share, as groups: frozen dataclasses whose fields become flags.

Knobs of methods are not listed here; they come from the fields of the methods.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterable
from dataclasses import Field, asdict, dataclass, fields, is_dataclass
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from ..engine.methods import SSD, Method, default_method
from ..model.flags import flag
from ..model.grid import size_of
from ..model.sampling import Sampling
from ..output.guarantees import guarantee_list
from ..output.knobs import Described, all_knobs, check_pictures, sampling_knobs
from ..weights.load import LoadOptions
from .specs import build_method

NO_NUMERICS = ("--numerics has no effect any more: a picture is AR's own wherever its verdict is "
               "'identical'")
EXPAND = ("Add what the prompt leaves open (places, sky, ground, ...), by the seed; only some "
          "backbones can, such as postcard. --no-expand draws it as typed.")
MODELS = "models"  # default folder of downloads and of searches

Json = Annotated[bool, typer.Option(
    "--json", help="Print one JSON object as the last line; all else goes to stderr.")]


@dataclass(frozen=True)
class Loading(LoadOptions):
    """Model and device."""

    backbone: str = flag("postcard", "Bundled name, file, folder, or the folder's parent.")
    heads: str | None = flag(None, "Draft heads: file, folder, or none. Default: those stored "
                                   "with the backbone, for methods that use them.")
    models_dir: str | None = flag(None, "Folder with ssd_backbones/NAME and ssd_heads/NAME. "
                                        f"Default: {MODELS}.")


@dataclass(frozen=True)
class Canvas:
    """Picture."""

    negative: str | None = flag(None, "What should not appear in the picture.")
    size: str | None = flag(None, "WxH in pixels; must be a size that the backbone supports.")

    def pixels(self) -> tuple[int, int] | None:
        """(width, height); None without --size."""
        return size_of(self.size)


@dataclass(frozen=True)
class CanvasOptions(Canvas):
    """Picture."""

    strict_words: bool = flag(False, "Stop if the backbone does not know a word of the prompt.")


@dataclass(frozen=True)
class PictureOptions(CanvasOptions):
    """Picture."""

    batch: int = flag(1, "Number of pictures.")
    expand: bool = flag(True, EXPAND)

    def __post_init__(self) -> None:
        check_pictures(self.batch, "batch")


def as_flag(knob: Described) -> tuple[str, Any, Field]:
    """A knob as the field of a group; unset, it takes the method's or backbone's value."""
    owners = f" ({', '.join(knob.methods)})" if knob.methods else ""
    legal = "" if knob.kind is bool else f" Legal: {knob.range}."
    default = knob.default if not knob.methods else None
    usual = f" Default: {knob.usual}." if default is None else ""  # otherwise typer shows it
    kind = knob.kind | None if default is None else knob.kind
    return knob.name, kind, flag(default, f"{knob.knob.help}{legal}{usual}{owners}")


Group = TypeVar("Group")


def with_flags(knobs: Iterable[Described]) -> Callable[[type[Group]], type[Group]]:
    """Add one field per knob to a group."""
    def extended(group: type[Group]) -> type[Group]:
        return dataclasses.make_dataclass(group.__name__, map(as_flag, knobs), bases=(group,),
                                          namespace={"__doc__": group.__doc__}, frozen=True)
    return extended


@with_flags(all_knobs().values())
@dataclass(frozen=True)
class Knobs:
    """The method and its knobs."""

    method: str | None = flag(None, f"{guarantee_list()}. Default: {default_method().name}, AR's "
                                    "picture in fewer passes; ssd if knobs of ssd are set.")

    def chosen(self) -> Method:
        """The named method; without a name the default, or SSD if it lacks a knob that is set."""
        named = {name: value for name, value in asdict(self).items() if value is not None}
        usual = default_method()
        foreign = set(named) - {"method", *(f.name for f in fields(usual))}
        return build_method(named.pop("method", SSD.name if foreign else usual.name), named)


@with_flags(sampling_knobs())
@dataclass(frozen=True)
class SamplingOptions:
    """Sampling."""

    numerics: str | None = flag(None, "Has no effect any more.", hidden=True)

    def sampling(self) -> Sampling:
        values = asdict(self)
        if values.pop("numerics") is not None:
            typer.echo(NO_NUMERICS, err=True)
        return Sampling(**values)


def takes_groups(command: Callable) -> Callable:
    """Adapt a command for typer: a parameter of a dataclass type becomes its fields' flags."""
    hints = get_type_hints(command, include_extras=True)
    plain = inspect.signature(command).parameters
    groups = {name: hints[name] for name in plain if is_dataclass(hints[name])}

    @functools.wraps(command)
    def grouped(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{f.name: values.pop(f.name) for f in fields(group)})
        command(**values)

    own = [p.replace(kind=p.KEYWORD_ONLY, annotation=hints[p.name])
           for p in plain.values() if p.name not in groups]
    flags = [as_parameter(f, group) for group in groups.values()
             for f in sorted(fields(group), key=lambda f: bool(f.kw_only))]  # as in its signature
    grouped.__dict__["__signature__"] = inspect.Signature([*own, *flags])
    grouped.__annotations__ = {p.name: p.annotation for p in (*own, *flags)}
    return grouped


def as_parameter(f: Field, group: type) -> inspect.Parameter:
    said = group.__doc__ or ""
    written = said and not said.startswith(f"{group.__name__}(")  # dataclasses generates one
    panel = said.splitlines()[0].rstrip(".") if written else None
    option = typer.Option(*f.metadata.get("names", ()), help=f.metadata.get("help"),
                          rich_help_panel=panel, hidden=f.metadata.get("hidden", False))
    default = inspect.Parameter.empty if f.default is dataclasses.MISSING else f.default
    return inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=default,
                             annotation=Annotated[get_type_hints(group)[f.name], option])
