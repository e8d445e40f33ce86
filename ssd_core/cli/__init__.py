"""The command line: loads models, runs requests and prints."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Annotated, Any, cast

import typer
from typer.core import TyperCommand, TyperGroup

from .. import __version__
from ..errors import SSDError, shortened
from ..launched import is_first
from ..stopping import INTERRUPTED, stopping_at_once
from ..streams import safe_output
from .paths import tidy

WRONG_INPUT = 2
# Raised for a wrong command line: click's class, or that of a typer with its own copy of click.
# It is cast to BadParameter, which has all attributes used here.
UsageError = cast(type[typer.BadParameter], typer.BadParameter.__base__)

# In the order of the help, each with the first sentence of its own help.
COMMANDS = {
    "generate": "Draw a prompt and save the picture(s) with the recipe inside.",
    "edit": "Edit a picture by its words, or draw a region of it anew; the rest stays.",
    "render": "Draw every prompt of a file as PNGs with recipes; resumes a stopped run.",
    "compare": "Draw a prompt with the same seed by several methods and show the differences.",
    "plan": "Count the passes of a method without running it; with a prompt, also show its "
            "expansion.",
    "bench": "Measure seconds, passes and speed of methods against AR at its best in the same run.",
    "frontier": "Sweep methods and knobs; resumes an interrupted run.",
    "methods": "List the methods, what their pictures guarantee, and their knobs.",
    "backbones": "List the backbones on this machine, by the names that --backbone takes.",
    "download": "Download a known backbone, resumable and checked; shows the terms and asks first.",
    "fit": "Estimate a run's memory on the device, and suggest a setting that would fit.",
    "convert": "Rewrite .bin, .pt, .pth and .ckpt weights as safetensors; the old files stay.",
    "vary": "Draw variations of a picture, each a picture of its own with the recipe inside.",
    "send": "Make a postcard of a picture: one HTML file that opens anywhere without a network.",
    "selftest": "Draw small pictures in every way this machine offers, and compare them.",
    "colours": "Fit the colour of each code from pictures, for previews of models without pixels.",
    "app": "Open the app in a browser; `ssd app --help` lists its options.",
    "evaluate": "Measure methods on held-out postcards, or draw a benchmark's prompts for its "
                "scorer.",
    "train": "Train a stage of the bundled backbone; self-distill and heads make draft heads for "
             "any backbone, mulo joins two sizes.",
}


OF_THE_LAB = ("evaluate", "frontier")  # commands of the package ssd_lab


class Commands(TyperGroup):
    """Imports a command when it is given: its module, and what that needs, such as torch."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: TyperCommand(name, help=text) for name, text in COMMANDS.items()}
        self.lists = False  # whether get_command is asked for the lines of the help alone

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if self.lists or cmd_name not in COMMANDS:
            return self.commands.get(cmd_name)
        return command_named(cmd_name)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self.lists = True
        super().format_help(ctx, formatter)
        self.lists = False


@cache
def command_named(name: str) -> Any:
    """A command, or a group of them, from the module of its name."""
    with stopping_at_once():
        from .beside import take
        from .options import takes_groups

        if name in OF_THE_LAB:
            take("ssd_lab")
            module = import_module(f"ssd_lab.commands.{name}")
        else:
            module = import_module(f".{'studio' if name == 'app' else name}", __name__)
    if hasattr(module, "app"):
        return typer.main.get_command(module.app)
    single = typer.Typer(add_completion=False)
    single.command(name, **getattr(module, "SETTINGS", {}))(takes_groups(module.command))
    return typer.main.get_command(single)


app = typer.Typer(cls=Commands, add_completion=False, pretty_exceptions_enable=False,
                  help="Spatially Speculative Decoding: pictures from tokens, in far fewer passes.")


def show_version(asked: bool) -> None:
    if asked:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def options(version: Annotated[bool, typer.Option(
        "--version", callback=show_version, is_eager=True, help="Print the version.")] = False
            ) -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code: 0, 2 (wrong input) or 130 (interrupted).

    Any other exception is a bug and is not caught (exit code 1).
    """
    with safe_output() as said:
        try:
            code = run(arguments)
        finally:
            tidy()
        said.flush()
        if said.error is None or code:
            return code
        return complain(f"error: the output cannot be written ({said.error.strerror}): send it to "
                        "another place", WRONG_INPUT)


def run(arguments: Sequence[str] | None) -> int:
    arguments = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if any("\0" in each for each in arguments):  # by a program; no shell passes one
        return complain("error: a NUL character is in no name and no word: remove it", WRONG_INPUT)
    try:
        code = typer.main.get_command(app).main(arguments, "ssd", standalone_mode=False) or 0
    except SSDError as error:
        return complain(f"error: {error}", WRONG_INPUT)
    except UsageError as error:
        return complain(f"error: {what_is_wrong(error)}", WRONG_INPUT)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return complain(f"error: {where}{error.strerror or error}: name another file or folder, "
                        "or mend this one", WRONG_INPUT)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    return complain("interrupted", code) if code == INTERRUPTED else code


def what_is_wrong(error: typer.BadParameter) -> str:
    """A line about a wrong command line."""
    message = error.format_message().rstrip(".")
    typed = error.ctx.params if error.ctx else {}
    if "unexpected extra argument" in message and typed.get("prompt"):
        more = message.partition(" (")[2].removesuffix(")")
        return f"put the whole prompt in quotes: \"{typed['prompt']} {more}\""
    return f"{message} (--help lists what there is)"


def complain(message: str, code: int) -> int:
    """Print the message as one line on stderr; of several processes, only the first one prints."""
    if is_first():
        typer.echo(shortened(message), err=True)
    return code
