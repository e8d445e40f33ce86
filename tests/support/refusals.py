"""How models that cannot be used are refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ssd_core import SSDError


@contextmanager
def refused_in_one_line(named: str, path: Path) -> Iterator[None]:
    """The block raises an SSDError that matches `named`, names `path` and has one line."""
    with pytest.raises(SSDError, match=named) as refused:
        yield
    assert "\n" not in str(refused.value) and str(path) in str(refused.value)
