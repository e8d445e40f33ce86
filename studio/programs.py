"""The named endpoints, which gradio_client, curl and MCP clients call through Gradio's queue.

Each wraps endpoints of the JSON API, waits for its runs, and returns the same JSON. Gradio reads
their annotations, which must not be texts.
"""

import asyncio
import base64
import binascii
import hashlib
import inspect
import logging
import secrets
from collections.abc import Callable
from functools import wraps
from typing import Any

import gradio as gr
from starlette.datastructures import QueryParams

from ssd_core import SSDError
from ssd_core.model.knobs import NEW_NUMBER, coerce

from . import api, api_history, api_models
from .calls import TOKEN, VISITOR, Call
from .jobs import fault
from .services import Services
from .settings import RACED_SPEEDS
from .views import job_view, readable
from .words import language_of

LOOK = 0.05  # seconds between looks at a run
log = logging.getLogger(__name__)


class Programs:
    """The endpoints by the names of their methods.

    Settings are those of GET /api/schema; `quality` is one of its qualities or methods.
    """

    def __init__(self, services: Services) -> None:
        self.services = services

    def offer(self, server: gr.Server) -> None:
        for name in NAMES:
            server.api(guarded(getattr(self, name), self.services), name=name,
                       concurrency_limit=None)  # runs wait in our own queue

    async def draw(self, request: gr.Request, prompt: str, quality: str = "faithful",
                   seed: str = "", pictures: int = 1, settings: dict | None = None) -> dict:
        """Draw pictures of a prompt and wait for them.

        Args:
            prompt: What the pictures show.
            quality: plain, faithful, balanced, fast, or the name of a method.
            seed: A whole number; empty for a new one.
            pictures: How many.
            settings: Further settings by name, as in GET /api/schema.

        Returns:
            A job: its state, and in `saved` id and address of each picture.
        """
        values = {"settings": settings_of(prompt, quality, seed, settings, pictures=pictures)}
        return await self.over(api.draw, self.call(request, values))

    async def edit(self, request: gr.Request, id: str, prompt: str, old_prompt: str = "",
                   keep_mask: dict | None = None, quality: str = "faithful", seed: str = "",
                   pictures: int = 1, settings: dict | None = None) -> dict:
        """Redraw a part of a saved picture, by a mask or by other words, and wait for it.

        Args:
            id: The picture.
            prompt: What it shows afterwards.
            old_prompt: The words that it was drawn from; they and the new ones decide what changes.
            keep_mask: Its cells that stay, packed as in a recipe; then the others are redrawn.
            quality: plain, faithful, balanced, fast, or the name of a method.
            seed: A whole number; empty for a new one.
            pictures: How many suggestions.
            settings: Further settings by name, as in GET /api/schema.

        Returns:
            A job; its `result` says what an edit by words kept.
        """
        edited = settings_of(prompt, quality, seed, settings, parent=id, old_prompt=old_prompt,
                             keep_mask=keep_mask, pictures=pictures)
        return await self.over(api.edit, self.call(request, {"settings": edited}))

    async def race(self, request: gr.Request, prompt: str, racers: list[str], seed: str = "",
                   settings: dict | None = None, setting: str = "",
                   values: list[str] | None = None) -> dict:
        """Draw one prompt by several qualities or methods, side by side.

        Args:
            prompt: What the pictures show.
            racers: Names of qualities or methods.
            seed: A whole number; empty for a new one.
            settings: Further settings by name, as in GET /api/schema.
            setting: seed, cfg, temperature or prompt, for a row with each of `values`.
            values: The values of that setting, one a row.

        Returns:
            A job with a guarantee of each picture.
        """
        asked = {"settings": settings_of(prompt, "", seed, settings), "racers": racers,
                 "setting": setting, "values": values or []}
        return await self.over(api.race, self.call(request, asked))

    def plan(self, request: gr.Request, prompt: str, quality: str = "faithful", seed: str = "",
             settings: dict | None = None) -> dict:
        """Tell what a run would take, and what is wrong with its words, without drawing.

        Args:
            prompt: What the picture shows.
            quality: plain, faithful, balanced, fast, or the name of a method.
            seed: A whole number; empty for a new one.
            settings: Further settings by name, as in GET /api/schema.

        Returns:
            Passes, seconds and notes about words.
        """
        asked = settings_of(prompt, quality, seed, settings)
        return api.plan(self.call(request, {"settings": asked}))

    def restore(self, request: gr.Request, id: str = "", picture: str = "",
                name: str = "picture.png") -> dict:
        """Read the settings of a picture.

        Args:
            id: A saved picture.
            picture: Or a picture as base64.
            name: What that file is called.

        Returns:
            Its settings, null if it holds none, and a line about them.
        """
        if id:
            return api_history.restore_entry(self.call(request, {}, id=id))
        try:
            body = base64.b64decode(coerce("picture", picture, str), validate=True)
        except (binascii.Error, ValueError) as error:
            raise SSDError("picture: cannot be read: send a file as base64") from error
        return api_history.restore_upload(self.call(request, {}, body, name=name))

    async def seeds_start(self, request: gr.Request, prompt: str, count: int = 8,
                          part: str = "most", quality: str = "faithful", seed: str = "",
                          settings: dict | None = None) -> list[dict]:
        """Draw the top of several seeds and pause them.

        Args:
            prompt: What the pictures show.
            count: How many seeds.
            part: How much of each: third, half or most.
            quality: plain, faithful, balanced, fast, or the name of a method.
            seed: The first one; empty for a new one.
            settings: Further settings by name, as in GET /api/schema.

        Returns:
            Paused jobs; `seeds_finish` takes their ids.
        """
        values = {"settings": settings_of(prompt, quality, seed, settings), "count": count,
                  "part": part}
        return await self.all_over(api.seeds_start, self.call(request, values))

    async def seeds_finish(self, request: gr.Request, jobs: list[str]) -> list[dict]:
        """Finish paused seeds and save their pictures.

        Args:
            jobs: Their ids, from `seeds_start`.

        Returns:
            Jobs, with id and address of each picture in `saved`.
        """
        return await self.all_over(api.seeds_finish, self.call(request, {"jobs": jobs}))

    def doctor(self, request: gr.Request) -> str:
        """Tell what a bug report needs: versions, models, devices, and the last error.

        Returns:
            Lines of text.
        """
        return api_models.doctor(self.call(request, {}))["report"]

    def fit(self, request: gr.Request, name: str, dtype: str = "auto",
            settings: dict | None = None) -> str:
        """Tell whether a run fits into memory with a model.

        Args:
            name: A model on this machine, or one that can be downloaded.
            dtype: The precision of its weights.
            settings: Settings of the run by name, as in GET /api/schema.

        Returns:
            One line.
        """
        return api_models.fit(self.call(request, {"name": name, "dtype": dtype,
                                                  "settings": settings or {}}))["text"]

    async def use_backbone(self, request: gr.Request, name: str, dtype: str = "auto") -> dict:
        """Load another model; only on an app that is not shared.

        Args:
            name: A model on this machine.
            dtype: The precision of its weights.

        Returns:
            A job; `result` has the model's sizes and settings.
        """
        return await self.over(api_models.use, self.call(request, {"name": name, "dtype": dtype}))

    # Helpers

    def call(self, request: gr.Request, values: dict[str, Any], body: bytes = b"",
             **parameters: str) -> Call:
        """A call of an endpoint; parameters: of its address."""
        return Call(self.services, language_of(request, self.services.language), values,
                    visitor_of(request), parameters=QueryParams(parameters), body=body)

    async def over(self, endpoint: Callable[[Call], dict], call: Call) -> dict:
        """Submit one job and wait for it; SSDError if it fails."""
        view = await asyncio.to_thread(endpoint, call)
        return await self.waited(view, call)

    async def all_over(self, endpoint: Callable[[Call], dict], call: Call) -> list[dict]:
        views = await asyncio.to_thread(endpoint, call)
        return [await self.waited(view, call) for view in views["jobs"]]

    async def waited(self, view: dict, call: Call) -> dict:
        job = call.own_job(view["id"])
        while not job.over:
            await asyncio.sleep(LOOK)
        if job.state == "failed":
            raise SSDError(job.error or "the run failed")
        return await asyncio.to_thread(job_view, self.services, job, call.language)


NAMES = ("draw", "edit", "race", "plan", "restore", "seeds_start", "seeds_finish", "doctor", "fit",
         "use_backbone")


def settings_of(prompt: str, quality: str, seed: str, settings: dict | None, **more: Any) -> dict:
    """Settings as the API takes them."""
    if not isinstance(settings, dict | None):
        raise SSDError("settings: must be an object, with a value for each setting")
    raw = {**(settings or {}), **more, "prompt": prompt, "seed": str(seed) or str(NEW_NUMBER)}
    racer = coerce("quality", quality, str)
    return {**raw, **RACED_SPEEDS.get(racer, {"method": racer} if racer else {})}


def visitor_of(request: gr.Request) -> str:
    """The token that was sent, else one made of the session: a program's own, the same all along.
    """
    token = request.headers.get(VISITOR, "")
    if TOKEN.fullmatch(token):
        return token
    session = request.session_hash or secrets.token_hex()
    return hashlib.sha256(session.encode()).hexdigest()


def guarded(endpoint: Callable, services: Services) -> Callable:
    """An endpoint whose errors are one line; faults of ours are logged and told to Doctor."""
    @wraps(endpoint)
    async def answer(request: gr.Request, *args: Any, **options: Any) -> Any:
        try:
            if inspect.iscoroutinefunction(endpoint):
                return await endpoint(request, *args, **options)
            return await asyncio.to_thread(endpoint, request, *args, **options)
        except SSDError as error:
            line = str(error)
        except Exception as error:
            log.exception("%s", endpoint.__name__)
            line = services.worker.last_error = fault(error)
        language = language_of(request, services.language)
        raise gr.Error(readable(services, language, line), print_exception=False)

    known: Any = answer
    known.__signature__ = inspect.signature(endpoint)  # else a bound method's has `self`
    return known
