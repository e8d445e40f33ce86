"""Stops a release whose tag is not the version, or that has no publisher: python release.py v1.2.3

Standard library only; publish.yml runs it before anything leaves this repository.
"""

import re
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def complaint(tag: str, project: str) -> str | None:
    """What is wrong with publishing this project under this tag, or None."""
    version = re.search(r'^version = "(.+)"$', project, re.M).group(1)
    if tag != f"v{version}":
        return f"tag {tag}: pyproject.toml has version {version}; tag v{version}, or change both"
    if not re.search(r'^PublisherId = "[^"]+"', project, re.M):
        return "pyproject.toml: PublisherId is empty; fill in the publisher's id of the registry"
    return None


if __name__ == "__main__":
    sys.exit(complaint(sys.argv[1], PROJECT.read_text(encoding="utf-8")))
