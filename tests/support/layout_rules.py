"""What is wrong with a page as it stands, by rules of layout: see layout_rules.js."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

RULES = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
STRIPS = (".filmstrip",)  # made to be scrolled sideways


def faults(page: Any, *, root: str = "body", main: Sequence[str] = (), after_key: bool = False,
           strips: Sequence[str] = STRIPS) -> list[str]:
    """One line for each fault within the elements `root`, the rule first.

    main: selectors of the controls that are needed now; after_key: a key was pressed just before.
    """
    return page.evaluate(f"(options) => {{ {RULES}\nreturn layoutFaults(options); }}",
                         {"root": root, "main": list(main), "afterKey": after_key,
                          "strips": list(strips)})


def lasting_faults(page: Any, seconds: float = 10, **options: Any) -> list[str]:
    """The faults of a page that stands still: what a slow machine still shows late is none."""
    until = time.monotonic() + seconds
    while (found := faults(page, **options)) and time.monotonic() < until:
        page.wait_for_timeout(100)
    return found
