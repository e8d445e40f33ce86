"""Runs a coroutine to its end, also where the browser of other tests has a loop of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def result_of(coroutine: Coroutine) -> Any:
    """What the coroutine returns; it runs on a thread of its own."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()
