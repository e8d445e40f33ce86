"""Start the app: its options, and the preparations before the page is served.

`python gradio_app.py` and `ssd app` both run this; only their model and output folders differ.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"  # read when gradio is imported
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

from ssd_core import SSDError
from ssd_core.backbones.estimates import Estimates
from ssd_core.cli import UsageError, what_is_wrong
from ssd_core.errors import shortened
from ssd_core.kept_files import cache_folder
from ssd_core.proxies import require_usable, without_proxies
from ssd_core.streams import safe_output
from ssd_core.weights.downloads import Downloads
from ssd_core.weights.memory import WEIGHT_BYTES
from ssd_core.weights.quantize import ABOUT

from .history import History
from .jobs import Worker
from .library import Library
from .proxied import LOOPBACK, as_name, as_proxy, as_root
from .seeds import ParkedSeeds
from .selftesting import when_idle
from .services import Services
from .sharing import read_users

with without_proxies():  # Gradio makes its HTTP clients when it is imported
    from .server import require_address, require_mcp, serve


def as_port(text: str) -> int:
    """The number of a port."""
    if text.isdecimal() and 1 <= int(text[:6]) <= 65535:
        return int(text)
    raise SSDError(f"--port {text[:40]}: give a number from 1 to 65535")


def main(
    backbone: Annotated[str, typer.Option(help="Bundled name, folder or file.")] = "postcard",
    heads: Annotated[str, typer.Option(
        help="Folder or file; auto: those beside the backbone; none.")] = "auto",
    models_dir: Annotated[Path, typer.Option(
        help="Folder with ssd_backbones/NAME and ssd_heads/NAME.")] = Path("models"),
    output_dir: Annotated[Path, typer.Option(
        help="Where finished pictures are saved.")] = Path("outputs"),
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps, xpu.")] = "auto",
    dtype: Annotated[str, typer.Option(
        help=f"auto, {', '.join(WEIGHT_BYTES)}. {ABOUT}.")] = "auto",
    lora: Annotated[list[str] | None, typer.Option(
        metavar="FILE",
        help="A LoRA for the model, as FILE or FILE:STRENGTH. May be given again.")] = None,
    offload: Annotated[bool, typer.Option(
        "--offload", help="Decoder and picture codec take turns on the card.")] = False,
    graphs: Annotated[str, typer.Option(
        help="auto, off: off never replays passes as CUDA graphs.")] = "auto",
    host: Annotated[str, typer.Option(
        help="0.0.0.0 lets other machines in your network use the app.")] = "127.0.0.1",
    port: Annotated[int | None, typer.Option(
        parser=as_port, metavar="<int>",
        help="1 to 65535. Default: the first free one from 7860.")] = None,
    share: Annotated[bool, typer.Option(
        "--share", help="A public link through Gradio's servers. Off unless given.")] = False,
    auth: Annotated[Path | None, typer.Option(
        help="A file with lines NAME:PASSWORD: only these visitors may enter.")] = None,
    root_path: Annotated[str, typer.Option(
        envvar="GRADIO_ROOT_PATH",
        help="The path below which a reverse proxy has the app, such as /ssd.")] = "",
    allow_host: Annotated[list[str] | None, typer.Option(
        envvar="SSD_ALLOW_HOST", metavar="NAME",
        help="A name of your reverse proxy or tunnel. May be given again.")] = None,
    proxy: Annotated[list[str] | None, typer.Option(
        envvar="SSD_PROXY", metavar="ADDRESS",
        help="A reverse proxy whose X-Forwarded-For counts. May be given again.")] = None,
    language: Annotated[str, typer.Option(help="auto (the browser's), en, zh.")] = "auto",
    mcp: Annotated[bool, typer.Option(
        "--mcp", help="Offer the endpoints as MCP tools, at /gradio_api/mcp.")] = False,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Only check these options.")] = False,
) -> None:
    """Open the app in a browser: everything runs on this machine."""
    users = read_users(auth) if auth else {}
    root, names = as_root(root_path), [as_name(name) for name in allow_host or ()]
    proxies = [as_proxy(address) for address in proxy or ()]
    require_place(host, port, mcp, share, language)
    if check:
        return
    library = Library(models_dir, backbone, heads, device, dtype, offload, graphs,
                      Estimates.stored_in(cache_folder()))
    library.use(backbone, dtype, lora or ())  # report errors here, before a page opens
    history = History(output_dir)
    history.require_writable()
    local = host in LOOPBACK and not share and not names
    if not local:
        sys.stderr.write(f"{shared_line(auth)}\n")
    services = services_of(library, history, models_dir, language, local)
    with private_cache():
        serve(services, host, port, share, open_, True, users, mcp, root, names, proxies)


def services_of(library: Library, history: History, models_dir: Path, language: str,
                local: bool) -> Services:
    worker = Worker(lambda: when_idle(services), lambda: services.learning.when_rested())
    services = Services(worker, library, history, ParkedSeeds(library, history),
                        Downloads(models_dir), language, local)
    return services


def require_place(host: str, port: int | None, mcp: bool, share: bool, language: str) -> None:
    """Raise SSDError unless the page can be served in this way."""
    if language not in ("auto", "en", "zh"):
        raise SSDError(f"language {language!r}: choose auto, en or zh")
    require_address(host, port)
    if mcp:
        require_mcp()
    if share:
        require_usable()


def shared_line(auth: Path | None) -> str:
    """Who may draw on an app that other machines reach."""
    who = f"visitors with a name and password in {auth}" if auth else "all who visit"
    return (f"other machines reach this app: {who} may draw, and see all prompts and pictures of "
            "the history")


@contextmanager
def private_cache() -> Iterator[None]:
    """A folder of our own for Gradio's uploads and served pictures; deleted at the end."""
    with tempfile.TemporaryDirectory(prefix="ssd-studio-", ignore_cleanup_errors=True) as folder:
        os.environ["GRADIO_TEMP_DIR"] = folder
        yield


def run(program: str, home: Path = Path(), arguments: Sequence[str] | None = None) -> None:
    """Serve the page until it is closed; models and outputs are in `home` by default.

    Wrong input ends with exit code 2 and one line, as on the command line.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that cleanup runs
    with safe_output():
        run_safely(program, home, arguments)


def run_safely(program: str, home: Path, arguments: Sequence[str] | None) -> None:
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(main)
    places = {"models_dir": str(home / "models"), "output_dir": str(home / "outputs")}
    try:
        sys.exit(app(arguments, prog_name=program, default_map=places, standalone_mode=False))
    except (SSDError, OSError, UsageError) as error:
        line = what_is_wrong(error) if isinstance(error, UsageError) else error
        sys.stderr.write(f"{shortened(f'error: {line}')}\n")
        sys.exit(2)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
