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

from ..errors import in_language
from ..jobs import Worker, fault
from ..words import AUTO, language_of

log = logging.getLogger(__name__)


def guard_all(demo: gr.Blocks, worker: Worker, forced: str = AUTO) -> None:
    """Guard all handlers that were wired by now; forced: the one language of the page."""
    for function in demo.fns.values():
        if function.fn is not None:
            function.fn = guarded(function.fn, worker, forced)


def guarded(handler: Callable, worker: Worker, forced: str = AUTO) -> Callable:
    """The same handler, of the same kind and signature, which fails with one line."""
    if inspect.isasyncgenfunction(handler):
        async def safe(*args, **options):
            with one_line(handler, worker, spoken(args, forced)):
                async for told in handler(*args, **options):
                    yield told
    elif inspect.iscoroutinefunction(handler):
        async def safe(*args, **options):
            with one_line(handler, worker, spoken(args, forced)):
                return await handler(*args, **options)
    else:
        def safe(*args, **options):
            with one_line(handler, worker, spoken(args, forced)):
                return handler(*args, **options)
    safe = wraps(handler)(safe)
    safe.__signature__ = inspect.signature(handler)  # a bound method's own would have `self`
    return safe


@contextmanager
def one_line(handler: Callable, worker: Worker, language: str) -> Iterator[None]:
    """What the user got wrong leaves no traceback; a fault of ours is logged and told to Doctor."""
    try:
        yield
    except gr.Error:
        raise
    except SSDError as error:
        raise refused(str(error), language) from error
    except Exception as error:
        log.exception("%s", getattr(handler, "__qualname__", handler))
        worker.last_error = fault(error)
        raise refused(worker.last_error, language) from error


def spoken(arguments: tuple, forced: str) -> str:
    """The language of whoever called a handler with these arguments."""
    request = next((one for one in arguments if isinstance(one, gr.Request)), None)
    return language_of(request, forced)


def refused(line: str, language: str) -> gr.Error:
    return gr.Error(escape(in_language(language, line)), print_exception=False)
