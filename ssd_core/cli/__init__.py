"""The command line: loads models, runs requests and prints."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, cast

import typer

from .. import __version__
from ..errors import SSDError, shortened
from ..launched import is_first
from . import (
    backbones,
    bench,
    colours,
    compare,
    convert,
    download,
    edit,
    evaluate,
    fit,
    frontier,
    generate,
    methods,
    plan,
    render,
    selftest,
    studio,
    train,
    vary,
)
from .options import takes_groups
from .output import give_up_output, is_of_output
from .paths import tidy

WRONG_INPUT, INTERRUPTED = 2, 130
# Raised for a wrong command line: click's class, or that of a typer with its own copy of click.
# It is cast to BadParameter, which has all attributes used here.
UsageError = cast(type[typer.BadParameter], typer.BadParameter.__base__)

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False,
                  help="Spatially Speculative Decoding: pictures from tokens, in far fewer passes.")
for module, name in ((generate, "generate"), (edit, "edit"), (render, "render"),
                     (compare, "compare"), (plan, "plan"), (bench, "bench"),
                     (frontier, "frontier"), (methods, "methods"), (backbones, "backbones"),
                     (download, "download"), (fit, "fit"), (convert, "convert"),
                     (vary, "vary"), (selftest, "selftest"), (colours, "colours")):
    app.command(name)(takes_groups(module.command))
app.add_typer(evaluate.app, name="evaluate")
app.add_typer(train.app, name="train")
app.command("app", add_help_option=False, context_settings={
    "allow_extra_args": True, "ignore_unknown_options": True})(studio.command)


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
    try:
        return run(arguments)
    finally:
        tidy()


def run(arguments: Sequence[str] | None) -> int:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a console may lack a prompt's characters
            stream.reconfigure(errors="backslashreplace")
    arguments = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    try:
        code = typer.main.get_command(app).main(arguments, "ssd", standalone_mode=False) or 0
    except SSDError as error:
        return complain(f"error: {error}", WRONG_INPUT)
    except UsageError as error:
        message = error.format_message().rstrip(".")
        return complain(f"error: {message} (--help lists what there is)", WRONG_INPUT)
    except OSError as error:
        if not is_of_output(error):
            where = f"{error.filename}: " if error.filename else ""
            return complain(f"error: {where}{error.strerror or error}: name another file or "
                            "folder, or mend this one", WRONG_INPUT)
        give_up_output()
        return complain(f"error: the output cannot be written ({error.strerror}): send it to "
                        "another place", WRONG_INPUT)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    return complain("interrupted", code) if code == INTERRUPTED else code


def complain(message: str, code: int) -> int:
    """Print the message as one line on stderr; of several processes, only the first one prints."""
    if is_first():
        with suppress(OSError):  # there is no other place to print it
            typer.echo(shortened(message), err=True)
    return code
