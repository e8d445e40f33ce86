"""Downloads in a terminal: show the terms, ask, show a progress bar.

Needs none of the command line's packages, so it runs wherever the nodes run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tqdm import tqdm

from ..errors import SSDError
from . import hub
from .advice import advice_on, sizes_text
from .catalogue import CATALOGUE

WRONG_INPUT, INTERRUPTED = 2, 130


def main(arguments: Sequence[str]) -> int:
    """Run `install.py download NAME --models-dir FOLDER [--yes]` and return its exit code."""
    parser = argparse.ArgumentParser(prog="install.py download",
                                     description="Fetch a known backbone, resumable and checked.")
    parser.add_argument("name", metavar="NAME", help=f"one of {', '.join(CATALOGUE)}")
    parser.add_argument("--models-dir", required=True,
                        help="folder that gets ssd_backbones/NAME, such as ComfyUI's models")
    parser.add_argument("--yes", action="store_true", help="download without asking")
    options = parser.parse_args(arguments)
    try:
        say(ask_and_fetch(options.name, options.models_dir, options.yes))
    except SSDError as error:
        say(f"error: {error}")
        return WRONG_INPUT
    except KeyboardInterrupt:
        say("interrupted; downloaded data is kept, run it again to resume")
        return INTERRUPTED
    return 0


def ask_and_fetch(name: str, models_dir: str, yes: bool) -> str:
    """Download the missing files, after asking unless `yes`; return a line with the outcome."""
    quote = hub.quote(name, models_dir)
    say(terms(quote))
    if quote.missing and not yes and not confirm():
        return "nothing was downloaded"
    return f"whole and checked: {fetched(quote)}"


def confirm() -> bool:
    require_terminal()
    sys.stderr.write("Download it? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def require_terminal() -> None:
    if sys.stdin is None or not sys.stdin.isatty():
        raise SSDError("cannot ask without a terminal: add --yes to download")


def say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def terms(quote: hub.DownloadPlan) -> str:
    """Describe files, sizes, destination, sources and licence for the user's consent."""
    present = quote.bytes - quote.missing
    rest = f", of which {gigabytes(present)} are here already" if present else ""
    lines = [f"{quote.name}: {len(quote.files)} files, {gigabytes(quote.bytes)}{rest}",
             f"to {quote.destination.absolute()}",
             f"from {', '.join(dict.fromkeys(file.repo for file in quote.files))}",
             f"licence: {quote.licence.name} ({quote.licence.link}): {quote.licence.restricts}"]
    row = CATALOGUE[quote.name]
    known = advice_on(row)
    lines += [f"note: {row.note}"] if row.note else []
    lines += [f"sizes: {sizes_text(row)}", f"prompts: {known.prompts}",
              f"weak points: {known.weak} ({', '.join(link for _, link in known.sources)})"]
    return "\n".join(lines)


def gigabytes(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{count / 1e6:.1f} MB"


def fetched(quote: hub.DownloadPlan) -> Path:
    """Download with a progress bar on stderr, if that is a terminal."""
    with tqdm(total=quote.bytes, unit="B", unit_scale=True, leave=False, disable=None,
              file=sys.stderr) as bar:
        def show(done: int, _: int, file: str) -> None:
            bar.set_postfix_str(file, refresh=False)
            bar.update(done - bar.n)

        return hub.fetch(quote, show)
