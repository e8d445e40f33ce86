"""Fields of dataclasses that become options of the command line, with their help."""

from __future__ import annotations

import dataclasses
from typing import Any


def flag(default: Any, text: str, *names: str) -> Any:
    """Declare a field that becomes an option with this help text.

    default: dataclasses.MISSING: the option is required. names: of the option, instead of the
    field's own.
    """
    return dataclasses.field(default=default, metadata={"help": text, "names": names})
