"""Options that several commands share, as groups: frozen dataclasses whose fields become flags.

Knobs of methods are not listed here; they come from the fields of the methods.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer

from ..engine.methods import SSD, Method, default_method
from ..errors import SSDError
from ..files import user_path
from ..model.grid import size_of
from ..model.knobs import WANTED, KnobSpec, flag
from ..model.sampling import Sampling
from ..output.guarantees import guarantee_list
from ..output.knobs import all_knobs, check_pictures, sampling_knobs
from ..weights.load import LoadOptions
from .specs import build_method

EXPAND = ("Add what the prompt leaves open (places, sky, ground, ...), by the seed; only some "
          "backbones can, such as postcard. --no-expand adds nothing; \"no trees\" moves to the "
          "negative prompt all the same.")
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

    negative: str | None = flag(None, "What should not appear in the picture. Default: the model's "
                                      "own words, if its authors have any; none: no words.")
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


def knob_flags(knobs: Iterable[KnobSpec]) -> Any:
    """A dataclass field with the values of these knobs by name; each knob becomes an option."""
    return dataclasses.field(default_factory=dict, metadata={"knobs": tuple(knobs)})


@dataclass(frozen=True)
class Knobs:
    """The method and its knobs."""

    method: str | None = flag(None, f"{guarantee_list()}. Default: {default_method().name}, AR's "
                                    "picture in fewer passes; ssd if knobs of ssd are set.")
    knobs: Mapping[str, Any] = knob_flags(all_knobs().values())

    def chosen(self) -> Method:
        """The named method; without a name the default, or SSD if it lacks a knob that is set."""
        knobs = {name: value for name, value in self.knobs.items() if value is not None}
        usual = default_method()
        foreign = set(knobs) - {f.name for f in fields(usual)}
        return build_method(self.method or (SSD.name if foreign else usual.name), knobs)


@dataclass(frozen=True)
class SamplingOptions:
    """Sampling."""

    knobs: Mapping[str, Any] = knob_flags(sampling_knobs())

    def sampling(self) -> Sampling:
        return Sampling(**self.knobs)


def takes_groups(command: Callable) -> Callable:
    """Adapt a command for typer: a parameter of a dataclass type becomes its fields' flags."""
    hints = get_type_hints(command, include_extras=True)
    plain = inspect.signature(command).parameters
    groups = {name: hints[name] for name in plain if is_dataclass(hints[name])}

    @functools.wraps(command)
    def grouped(**values: Any) -> None:
        values = {name: path_of(value) for name, value in values.items()}
        typed = dict(values)
        try:
            for name, group in groups.items():
                values[name] = group(**{f.name: value_of(f, values) for f in fields(group)})
            command(**values)
        except SSDError as error:
            raise SSDError(with_flag(str(error), flags, typed, named)) from error

    own = [p.replace(kind=p.KEYWORD_ONLY, annotation=hints[p.name])
           for p in plain.values() if p.name not in groups]
    flags = [each for group in groups.values() for each in parameters(group)]
    named = {f.name: f.metadata["names"] for group in groups.values() for f in fields(group)
             if f.metadata.get("names")}
    grouped.__dict__["__signature__"] = inspect.Signature([*own, *flags])
    grouped.__annotations__ = {p.name: p.annotation for p in (*own, *flags)}
    return grouped


def with_flag(line: str, flags: Iterable[inspect.Parameter], typed: Mapping[str, Any],
              named: Mapping[str, Sequence[str]]) -> str:
    """A line about an option's value, with the flag that was typed in place of its field's name.

    named: the flags of fields that do not have the field's own name.
    """
    for each in flags:
        name, value = each.name, typed[each.name]
        about = line.replace("-", "_").startswith(name) and value != each.default
        after = line[len(name):]
        if about and after.startswith((":", " '", f" {value}")):
            return f"{flag_of(name, named.get(name, ()))}{after}"
    return line


def flag_of(name: str, names: Sequence[str]) -> str:
    """The flag of an option: the first of its names, else its field's."""
    return names[0] if names else f"--{name.replace('_', '-')}"


def path_of(value: Any) -> Any:
    """A value as typed, or its paths as `user_path` reads them."""
    if isinstance(value, list):
        return [path_of(each) for each in value]
    return user_path(value) if isinstance(value, Path) else value


def value_of(f: Field, values: dict[str, Any]) -> Any:
    """The value of a group's field; takes it, or the values of the field's knobs, out of `values`.
    """
    if knobs := f.metadata.get("knobs"):
        return {knob.name: values.pop(knob.name) for knob in knobs}
    return values.pop(f.name)


def parameters(group: type) -> Iterator[inspect.Parameter]:
    """The options of a group's fields, in a panel that its docstring names."""
    said, hints = group.__doc__ or "", get_type_hints(group)
    written = said and not said.startswith(f"{group.__name__}(")  # dataclasses generates one
    panel = said.splitlines()[0].rstrip(".") if written else None
    for f in sorted(fields(group), key=lambda f: bool(f.kw_only)):  # as in its signature
        if knobs := f.metadata.get("knobs"):
            yield from (knob_option(knob, panel) for knob in knobs)
        else:
            default = inspect.Parameter.empty if f.default is dataclasses.MISSING else f.default
            yield option(f.name, hints[f.name], default, panel, **f.metadata)


def knob_option(knob: KnobSpec, panel: str | None) -> inspect.Parameter:
    """The option of a knob; without it, the method's or backbone's value applies."""
    owners = f" ({', '.join(knob.methods)})" if knob.methods else ""
    legal = "" if knob.kind is bool else f" Legal: {knob.range_text}."
    default = knob.default if not knob.methods else None
    usual = f" Default: {knob.default_text}." if default is None else ""  # otherwise typer shows it
    kind = knob.kind | None if default is None else knob.kind
    return option(knob.name, kind, default, panel, f"{knob.help}{legal}{usual}{owners}",
                  also=knob.also)


def option(name: str, kind: Any, default: Any, panel: str | None,
           help: str | None = None,
           names: tuple[str, ...] = (), also: str = "") -> inspect.Parameter:
    """A parameter that typer makes an option of; names: instead of the name's own. also: see
    `KnobSpec`.
    """
    number: Any = next((each for each in get_args(kind) or (kind,) if each in (int, float)), None)
    parser: Any = number and {"parser": reads(number, flag_of(name, names), also),
                              "metavar": f"<{number.__name__}>"}
    about = typer.Option(*names, help=help, rich_help_panel=panel, **(parser or {}))
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default,
                             annotation=Annotated[kind, about])


def reads(kind: type, flag_name: str, also: str) -> Callable[[Any], Any]:
    """A function that reads the number of a flag, or says what to give."""
    def number(text: Any) -> Any:
        try:
            return kind(text)
        except ValueError as error:
            raise SSDError(f"{flag_name} {text[:40]}: give {WANTED[kind]}{also}") from error
    return number
