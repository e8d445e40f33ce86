"""Requests to the app's endpoints without a server: who asks, and what comes back."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.applications import Starlette
from starlette.testclient import TestClient

from studio.calls import VISITOR
from studio.policy import middleware
from studio.server import routes
from studio.services import Services

HOUSE = {"prompt": "a red house", "seed": "7"}
ANN, BOB = ({VISITOR: digit * 64} for digit in "ab")
CHINESE = {"accept-language": "zh-CN,zh"}


def serving(services: Services, users: Mapping[str, str] | None = None,
            **headers: str) -> TestClient:
    """A client of the app's routes behind its middleware, on loopback or shared with users."""
    app = Starlette(routes=routes(services),
                    middleware=middleware("127.0.0.1", bool(users), users or {}))
    return TestClient(app, "http://127.0.0.1", headers={**ANN, **headers},
                      raise_server_exceptions=False)


def line_of(answer) -> str:
    """The error of a refused request: one line that can be shown."""
    error = answer.json()["error"]
    assert error and "\n" not in error and error.isprintable()
    return error
