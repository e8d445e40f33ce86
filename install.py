"""Set-up, using only the standard library.

    python install.py         for ComfyUI-Manager: lists what is missing, changes nothing
    python install.py app     makes .venv beside this file, draws a first postcard, opens the app;
                              more arguments go to the app (--port 8000, --share ...)
    python install.py test    makes the same .venv and runs Ruff, mypy and all tests, or those of
                              some subjects (core, models, hosts, lab, repository); more go to
                              pytest
    python install.py download NAME --models-dir FOLDER
                              fetches a backbone with the Python that runs this, such as ComfyUI's
    python install.py --help  prints this

pip runs only for `app` and `test`, and only inside .venv; an installed torch is kept. The size of
the download is printed first. pip's output is shown if pip fails, or with --verbose.
"""

from __future__ import annotations

import importlib.metadata
import platform
import re
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent
OLDEST_PYTHON = (3, 10)
HELP = {"-h", "--help"}


class InstallError(Exception):
    """One line: what failed and what to do."""


def main(arguments: list[str]) -> int:
    """Run a command and return its exit code, or 1 after one line on stderr."""
    try:
        return run(*arguments)
    except InstallError as error:
        print(f"install.py: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("install.py: interrupted; run it again to go on", file=sys.stderr)
        return 130


def run(command: str = "", *arguments: str) -> int:
    if not command:
        return check()
    if command == "download":
        return download(arguments)
    if HELP & {command, *arguments}:
        print(__doc__, end="")
        return 0
    if command in ("app", "test"):
        return set_up(command, list(arguments))
    raise InstallError(f"{command!r}: choose app, test or download, or give no argument; --help "
                       "says what they do")


def download(arguments: tuple[str, ...]) -> int:
    """Run a download, which asks first, and return its exit code."""
    look_beside_this_file()
    from ssd_core.weights.fetch import main as fetch

    return fetch(arguments)


def set_up(command: str, arguments: list[str]) -> int:
    """Make .venv and run the app or the tests in it; returns their exit code."""
    if complaints := old_python():
        raise InstallError(complaints[0])
    environment = load_environment()
    try:
        return getattr(environment, command)(arguments)
    except environment.SetUpError as error:
        raise InstallError(str(error)) from error


def load_environment() -> ModuleType:
    """The module that calls pip, which the published node pack lacks."""
    look_beside_this_file()
    try:
        import environment
    except ModuleNotFoundError as missing:
        if missing.name != "environment":
            raise
        raise InstallError("this folder has the ComfyUI nodes alone; the app and the tests are in "
                           "the repository: clone it, and run this there") from missing
    return environment


def look_beside_this_file() -> None:
    """An embedded Python does not search the script's folder."""
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))


# Without arguments: only check


def check() -> int:
    """Print what is missing or too old; returns 0, since a node pack must not break a start."""
    missing = [*old_python(), *filter(None, map(complaint, requirements()))]
    for line in missing:
        print(f"SSD: {line}")
    if not missing:
        print("SSD: all requirements are there; nothing to do")
    return 0


def old_python() -> list[str]:
    if sys.version_info >= OLDEST_PYTHON:
        return []
    needed = ".".join(map(str, OLDEST_PYTHON))
    return [f"Python {platform.python_version()} is too old: {needed} or newer is needed"]


def requirements(path: Path = ROOT / "requirements.txt") -> list[tuple[str, str]]:
    """(package, oldest version) of each line."""
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [tuple(line.split(">=")) for line in lines if line and not line.startswith("#")]


def complaint(requirement: tuple[str, str]) -> str | None:
    """What is wrong with an installed package, or None."""
    name, oldest = requirement
    try:
        found = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return f"{name} is missing: pip install -r requirements.txt"
    if numbers(found) < numbers(oldest):
        return f"{name} {found} is older than {oldest}: pip install -r requirements.txt"
    return None


def numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: "2.13.0+cpu" -> (2, 13, 0)."""
    return tuple(map(int, re.match(r"\d+(?:\.\d+)*", version).group().split(".")))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
