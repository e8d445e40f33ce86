"""`python -m ssd_core COMMAND`."""

import sys

try:
    from .cli import run
except ModuleNotFoundError as error:  # the nodes run without these packages
    if error.name not in ("typer", "rich"):
        raise
    sys.exit(f"error: the commands need the package {error.name}: pip install typer rich")

if __name__ == "__main__":
    run()
