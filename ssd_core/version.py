"""The version, which is written in pyproject.toml alone."""

import re
from pathlib import Path

NAME = "ssd-decoding"
PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
LINES = re.compile(rf'^name = "{NAME}"\nversion = "(.+)"$', re.MULTILINE)


def version(project: Path = PROJECT) -> str:
    """From the file beside this package (a clone, a folder of ComfyUI), else of the installed one.

    "unknown" if somebody copied the package alone.
    """
    if written := LINES.search(project.read_text("utf-8") if project.is_file() else ""):
        return written[1]
    from importlib import metadata  # slower than reading the file

    try:
        return metadata.version(NAME)
    except metadata.PackageNotFoundError:
        return "unknown"
