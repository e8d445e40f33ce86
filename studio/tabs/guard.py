"""Every handler of the page: one that fails says one line, and the page lives on."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from html import escape

import gradio as gr

from ssd_core import SSDError

from ..jobs import Worker, fault

log = logging.getLogger(__name__)


def guard_all(demo: gr.Blocks, worker: Worker) -> None:
    """Guard all handlers that were wired by now."""
    for function in demo.fns.values():
        if function.fn is not None:
            function.fn = guarded(function.fn, worker)


def guarded(handler: Callable, worker: Worker) -> Callable:
    """The same handler, of the same kind and signature, which fails with one line."""
    if inspect.isasyncgenfunction(handler):
        async def safe(*args, **options):
            with one_line(handler, worker):
                async for told in handler(*args, **options):
                    yield told
    elif inspect.iscoroutinefunction(handler):
        async def safe(*args, **options):
            with one_line(handler, worker):
                return await handler(*args, **options)
    else:
        def safe(*args, **options):
            with one_line(handler, worker):
                return handler(*args, **options)
    safe = wraps(handler)(safe)
    safe.__signature__ = inspect.signature(handler)  # a bound method's own would have `self`
    return safe


@contextmanager
def one_line(handler: Callable, worker: Worker) -> Iterator[None]:
    """What the user got wrong leaves no traceback; a fault of ours is logged and told to Doctor."""
    try:
        yield
    except gr.Error:
        raise
    except SSDError as error:
        raise gr.Error(escape(str(error)), print_exception=False) from error
    except Exception as error:
        log.exception("%s", getattr(handler, "__qualname__", handler))
        worker.last_error = fault(error)
        raise gr.Error(escape(worker.last_error), print_exception=False) from error
