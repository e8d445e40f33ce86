"""How the API reads requests and answers them: sizes, JSON, visitors, and errors in one line."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ssd_core import SSDError
from ssd_core.files import require_unicode
from ssd_core.model.knobs import coerce
from ssd_core.output.drawing import Drawing

from .history import Entry
from .jobs import Job, fault
from .panels import Panel
from .payloads import listed
from .schema import LARGEST_UPLOAD
from .services import Services
from .settings import anew, asked, named_settings
from .views import readable
from .words import language_of

VISITOR = "x-ssd-visitor"  # the header with a visitor's token, which nobody else can guess
TOKEN = re.compile(r"[0-9a-f]{64}")
LARGEST_JSON = 1 << 20  # bytes
MOST_LISTED = 500  # ids in one request
log = logging.getLogger(__name__)


class Refusal(SSDError):
    """An error with a status of HTTP other than 400."""

    def __init__(self, status: int, line: str) -> None:
        super().__init__(line)
        self.status = status


@dataclass(frozen=True)
class Call:
    """A request to an endpoint: what was sent with it, and who sent it.

    language: in which to answer. values: of the JSON body. visitor: the token that was sent. path,
    parameters: parts of the address. body: of an upload.
    """

    services: Services
    language: str
    values: Mapping[str, Any]
    visitor: str = ""
    path: Mapping[str, str] = field(default_factory=dict)
    parameters: QueryParams = field(default_factory=QueryParams)
    body: bytes = b""

    @property
    def owner(self) -> str:
        """The visitor, who owns runs; Refusal if none is named."""
        if not TOKEN.fullmatch(self.visitor):
            raise Refusal(400, f"{VISITOR}: send a header of this name with 64 hexadecimal digits "
                               "of your own, the same with every request")
        return self.visitor

    @property
    def settings(self) -> dict[str, Any]:
        """The settings in the body: a drawing's JSON, and the ids of pictures that it starts from.
        """
        raw = self.values.get("settings", {})
        if not isinstance(raw, dict):
            raise SSDError("settings: must be an object, with a value for each setting")
        return named_settings(raw)

    @property
    def drawing(self) -> Drawing:
        """The drawing to make anew; what is missing has its default."""
        return anew(self.editing)

    @property
    def editing(self) -> Drawing:
        """The same with what stays of the picture `parent`."""
        return replace(asked(self.settings), keep=None, keep_rows=0, sources=())

    def named(self, name: str) -> str:
        """The id, or another text, that the settings hold beside the drawing; "" for none."""
        value = coerce(name, self.settings.get(name) or "", str)
        require_unicode(name, value)
        return value

    @property
    def drafts(self) -> str:
        """The hash of the draft heads to draw with; "" for those in use."""
        return self.named("draft_hash")

    @property
    def panel(self) -> Panel:
        """The picture to draw below, if one is named."""
        return Panel(self.named("panel"), self.named("control"), self.named("subject"))

    def text(self, name: str, default: str | None = None) -> str:
        """A text in the body; without a default it must be there."""
        value = coerce(name, self.values.get(name, default), str)
        require_unicode(name, value)
        return value

    def flag(self, name: str, default: bool) -> bool:
        return coerce(name, self.values.get(name, default), bool)

    def ids(self, name: str = "ids") -> list[str]:
        """A list of ids in the body, each once."""
        ids = list(dict.fromkeys(listed(name, self.values.get(name))))
        require_unicode(name, "".join(ids))
        if not 1 <= len(ids) <= MOST_LISTED:
            raise SSDError(f"{name}: {len(ids)} are listed, send 1 to {MOST_LISTED}")
        return ids

    def query(self, name: str, default: str = "") -> str:
        """A parameter of the address."""
        value = self.parameters.get(name, default)
        require_unicode(name, value)
        return value

    def job(self) -> Job:
        """The visitor's own job that the address names."""
        return self.own_job(self.path["job"])

    def own_job(self, id_: str) -> Job:
        job = self.services.worker.job(id_)
        if job is None or job.owner != self.owner:
            raise Refusal(404, f"{id_[:40]}: no such run of yours; it may have expired")
        return job

    def entry(self, id_: str) -> Entry:
        """A saved picture."""
        require_unicode("id", id_)
        try:
            return self.services.history.entry(id_)
        except SSDError as error:
            raise Refusal(404, str(error)) from error

    def require_local(self) -> None:
        if not self.services.local:
            raise Refusal(403, "this app is shared: only the person who started it can do this, "
                               "on an app that is not shared")


Endpoint = Callable[[Call], Any]  # returns JSON, or a Response


def answering(services: Services, endpoint: Endpoint,
              upload: bool = False) -> Callable[[Request], Awaitable[Response]]:
    """What Starlette calls for an endpoint: errors become one line of JSON with a status."""
    async def answer(request: Request) -> Response:
        language = language_of(request, services.language)
        try:
            body = await body_of(request, LARGEST_UPLOAD if upload else LARGEST_JSON)
            values = {} if upload else values_in(body)
            call = Call(services, language, values, request.headers.get(VISITOR, ""),
                        request.path_params, request.query_params, body)
            return await run_in_threadpool(respond, endpoint, call)
        except SSDError as error:
            return failed(services, language, str(error), getattr(error, "status", 400))
        except ClientDisconnect:  # in the middle of the body; nobody reads the answer
            return Response(status_code=400)
        except Exception as error:
            log.exception("%s", endpoint.__name__)
            services.worker.last_error = fault(error)
            return failed(services, language, fault(error), 500)

    return answer


def nowhere(services: Services, routes: Sequence[Route]) -> Callable[[Request], Response]:
    """What answers addresses that none of these routes has, and methods that theirs do not take."""
    def answer(request: Request) -> Response:
        path = request.path_params["rest"]
        taken = sorted({method for route in routes if route.path_regex.match(f"/{path}")
                        for method in route.methods or ()})
        line = f"send {' or '.join(taken)}" if taken else "no such address; see docs/contract.md"
        return failed(services, language_of(request, services.language),
                      f"/api/{path[:80]}: {line}", 405 if taken else 404)

    return answer


def respond(endpoint: Endpoint, call: Call) -> Response:
    answer = endpoint(call)
    if isinstance(answer, Response):
        return answer
    return JSONResponse(answer, headers={"cache-control": "no-store"})


def failed(services: Services, language: str, line: str, status: int) -> Response:
    return JSONResponse({"error": readable(services, language, line)}, status,
                        headers={"cache-control": "no-store"})


async def body_of(request: Request, most: int) -> bytes:
    """What was sent, in memory; Refusal as soon as it is too large."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise Refusal(413, f"more than {most >> 20} MiB were sent: send less at once")
        parts.append(part)
    return b"".join(parts)


def values_in(body: bytes) -> dict[str, Any]:
    """The object of a JSON body; empty if nothing was sent."""
    if not body:
        return {}
    try:
        values = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise SSDError("the request cannot be read: send JSON") from error
    if not isinstance(values, dict):
        raise SSDError("the request cannot be read: send a JSON object")
    return values
