"""Guard every handler of the page: an error shows one line, and the page keeps working."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from html import escape
from typing import Any

import gradio as gr

from ssd_core import SSDError

from ..errors import in_language
from ..jobs import fault
from ..services import Services
from ..words import language_of

log = logging.getLogger(__name__)


def guard_all(demo: gr.Blocks, services: Services) -> None:
    """Guard all handlers connected so far."""
    for function in demo.fns.values():
        if function.fn is not None:
            function.fn = guarded(function.fn, services)


def guarded(handler: Callable, services: Services) -> Callable:
    """Wrap a handler, keeping its kind and signature; errors become one line."""
    def guard(arguments: tuple) -> AbstractContextManager[None]:
        return errors_in_one_line(handler, services, spoken(arguments, services.language))

    async def updates(*args, **options):
        with guard(args):
            async for update in handler(*args, **options):
                yield update

    async def answer(*args, **options):
        with guard(args):
            return await handler(*args, **options)

    def plain(*args, **options):
        with guard(args):
            return handler(*args, **options)

    kind: Callable = (updates if inspect.isasyncgenfunction(handler)
                      else answer if inspect.iscoroutinefunction(handler) else plain)
    safe: Any = wraps(handler)(kind)
    safe.__signature__ = inspect.signature(handler)  # else a bound method's has `self`
    return safe


@contextmanager
def errors_in_one_line(handler: Callable, services: Services, language: str) -> Iterator[None]:
    """Show users' errors without a traceback; log our own faults and report them to Doctor."""
    try:
        yield
    except gr.Error:
        raise
    except SSDError as error:
        raise refused(services, str(error), language) from error
    except Exception as error:
        log.exception("%s", getattr(handler, "__qualname__", handler))
        services.worker.last_error = fault(error)
        raise refused(services, fault(error), language) from error


def spoken(arguments: tuple, forced: str) -> str:
    """The language of the request among a handler's arguments."""
    request = next((argument for argument in arguments if isinstance(argument, gr.Request)), None)
    return language_of(request, forced)


def refused(services: Services, line: str, language: str) -> gr.Error:
    text = services.for_visitors(in_language(language, line))
    return gr.Error(escape(text), print_exception=False)
