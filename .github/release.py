"""Stops a release that is not complete, with a line for each thing: python release.py v1.2.3

Standard library only; publish.yml runs it before anything leaves this repository.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# What only the owner knows, by the key in pyproject.toml.
OWNERS = {"PublisherId": "the publisher's id in the registry",
          "Icon": "the address of an icon, at most 800 x 400 pixels",
          "Repository": "the address of the public repository, below [project.urls]"}


def complaints(tag: str, project: str, changes: str) -> list[str]:
    """What is wrong with publishing this project, with these changes, under this tag."""
    version = re.search(r'^version = "(.+)"$', project, re.M).group(1)
    found = [f"pyproject.toml: {key} is missing: fill in {what}" for key, what in OWNERS.items()
             if not re.search(rf'^{key} = "[^"]+"', project, re.M)]
    if tag != f"v{version}":
        found.append(f"tag {tag}: pyproject.toml has version {version}: tag v{version}, or change "
                     "the version")
    if not re.search(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", changes, re.M):
        found.append(f"CHANGELOG.md: no heading '## [{version}] - YYYY-MM-DD': write the date of "
                     "the release")
    return found


if __name__ == "__main__":
    texts = (ROOT.joinpath(name).read_text("utf-8") for name in ("pyproject.toml", "CHANGELOG.md"))
    sys.exit("\n".join(complaints(sys.argv[1], *texts)) or None)
