"""A shared app: who may enter, how much may be uploaded, what strangers may read."""

import base64

import pytest

pytest.importorskip("starlette", reason="starlette comes with gradio (the extra `app`)")

from starlette.applications import Starlette  # noqa: E402
from starlette.responses import PlainTextResponse  # noqa: E402
from starlette.routing import Route  # noqa: E402
from starlette.testclient import TestClient  # noqa: E402

from ssd_core import SSDError  # noqa: E402
from studio.rate_limit import RateLimit  # noqa: E402
from studio.sharing import UPLOADS, Password, UploadQuota, read_users, without_folders  # noqa: E402


@pytest.fixture
def page():
    def answer(request):
        return PlainTextResponse("in")

    return Starlette(routes=[Route("/{rest:path}", answer, methods=["GET", "POST"])])


def header(text):
    return {"authorization": "Basic " + base64.b64encode(text.encode()).decode()}


@pytest.mark.parametrize("path", ["/", "/api/feed", "/studio/picture/x.png", "/gradio_api/info"])
def test_nobody_enters_anywhere_without_name_and_password(page, path):
    client = TestClient(Password(page, {"ann": "pä:ss"}))
    assert client.get(path).status_code == 401
    for wrong in ("ann:", "ann:pass", "bob:pä:ss", ":", "ann"):
        assert client.get(path, headers=header(wrong)).status_code == 401, wrong
    assert client.get(path, headers={"authorization": "Basic ?"}).status_code == 401
    assert client.get(path, headers=header("ann:pä:ss")).text == "in"


def test_who_guesses_passwords_is_braked_by_address_and_nobody_else(page, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("studio.rate_limit.time.monotonic", lambda: now[0])
    guarded = Password(page, {"ann": "a"}, RateLimit(free=10, pause=6))
    inside, guessing, beside = (TestClient(guarded, client=(host, 1))
                                for host in ("1.1.1.1", "1.1.1.1", "2.2.2.2"))
    assert inside.get("/", headers=header("ann:a")).text == "in"
    statuses = [guessing.get("/", headers=header(f"ann:{n}")).status_code for n in range(60)]
    assert statuses == [401] * 10 + [429] * 50
    refused = guessing.get("/", headers=header("ann:a"))
    assert refused.status_code == 429 and refused.headers["retry-after"] == "6"
    assert guessing.get("/").status_code == 401, "a page that asks for a name is no guess"
    for visitor in (inside, beside):
        assert visitor.get("/", headers=header("ann:a")).text == "in"
    now[0] = 6.0
    assert guessing.get("/", headers=header("ann:a")).text == "in"


def test_a_cookie_alone_lets_nobody_in_and_its_browser_is_braked_too(page):
    client = TestClient(Password(page, {"ann": "a"}, RateLimit(free=3, pause=60)))
    assert client.get("/", headers=header("ann:a")).text == "in" and client.cookies
    assert client.get("/").status_code == 401
    statuses = [client.get("/", headers=header("bob:b")).status_code for _ in range(5)]
    assert statuses == [401] * 3 + [429] * 2


def test_users_are_read_from_a_file_of_lines(tmp_path):
    file = tmp_path / "users"
    file.write_text("ann:a:b\n\nbob:c\n")
    assert read_users(file) == {"ann": "a:b", "bob": "c"}
    for wrong in ("", "ann\n", "ann:\n", ":x\n"):
        file.write_text(wrong)
        with pytest.raises(SSDError, match="NAME:PASSWORD"):
            read_users(file)
    with pytest.raises(SSDError, match="no such file"):
        read_users(tmp_path / "none")


def test_a_visitor_uploads_so_much_an_hour_and_no_more(page):
    client, add, restore = (TestClient(UploadQuota(page, quota=100)), "/api/history/add",
                            "/api/restore")
    assert {add, restore, "/gradio_api/"} == set(UPLOADS)
    assert client.post(add, content=b"x" * 60).text == "in"
    for route in UPLOADS:
        refused = client.post(route, content=b"x" * 60)
        assert refused.status_code == 413 and "can be uploaded" in refused.text
    assert client.post(restore, content=b"x" * 40).text == "in", "what was refused does not count"
    assert client.post(add, content=iter([b"x"])).status_code == 413, "of unknown length"
    for route in ("/gradio_api/queue/join", "/gradio_api/call/restore"):
        assert client.post(route, content=b"x" * 60).status_code == 413, "what programs send, too"
    assert client.post("/api/plan", content=b"x" * 200).text == "in"


@pytest.mark.parametrize("text, left", [
    ("/home/ann/models/x.safetensors: is broken", "x.safetensors: is broken"),
    (r"C:\Users\Ann\out\a.png: no such file", "a.png: no such file"),
    ("k_h 9: must lie in 1 .. 5; 3/4 and/or https://x.org/a/b", None),
    ("cannot write to /mnt/out/today: full", "cannot write to today: full")])
def test_strangers_read_names_of_files_but_no_folders(text, left):
    assert without_folders(text) == (text if left is None else left)
