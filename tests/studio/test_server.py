"""The app over HTTP without a browser: what is served, what is refused, and how it starts."""

import json
import os
import re
import urllib.error
import urllib.request
from inspect import unwrap
from pathlib import Path

import pytest
import torch

pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")

from gradio import Blocks  # noqa: E402
from gradio.utils import get_upload_folder  # noqa: E402
from starlette.requests import Request  # noqa: E402
from support.studio_visit import served  # noqa: E402

from ssd_core import SSDError  # noqa: E402
from studio import start  # noqa: E402
from studio.downloads import Downloads  # noqa: E402
from studio.history import History  # noqa: E402
from studio.jobs import Worker  # noqa: E402
from studio.library import Library  # noqa: E402
from studio.seeds import ParkedSeeds  # noqa: E402
from studio.server import refused, serve  # noqa: E402
from studio.services import Services  # noqa: E402
from studio.tabs.gradio_files import picture_file, thumbnail_file  # noqa: E402

pytestmark = pytest.mark.slow

OWN = "http://127.0.0.1:7860"


@pytest.fixture(scope="module")
def app(models, tmp_path_factory):
    with served(tmp_path_factory.mktemp("app"), models=models, backbone="tiny") as running:
        yield running


def ask(app, path, body=None, **headers):
    """(status, text) of a request."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(app.address + path, data, {
        "content-type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def outcome(app, name, *values):
    """The events of a call of a named endpoint, as text."""
    _, told = ask(app, f"gradio_api/call/{name}", {"data": list(values)})
    return ask(app, f"gradio_api/call/{name}/{json.loads(told)['event_id']}")[1].decode()


@pytest.fixture
def entry(app):
    return app.services.history.save(torch.zeros(16, 16, 3), None)


def test_the_output_folder_is_not_served_only_its_pictures(app, entry):
    secret = app.services.history.folder / ".env"
    secret.write_text("secret")
    for path in (secret, entry.path):
        assert ask(app, f"gradio_api/file={path}")[0] == 403
    assert ask(app, f"studio/picture/{entry.id}") == (200, entry.path.read_bytes())
    assert ask(app, f"gradio_api/file={picture_file(entry)}") == (200, entry.path.read_bytes())


def test_a_picture_that_could_not_be_saved_is_served_from_memory(app):
    id_ = app.services.history.keep_unsaved(torch.zeros(16, 16, 3), None)
    status, png = ask(app, f"studio/picture/{id_}")
    assert status == 200 and png.endswith(b"IEND\xaeB`\x82")
    assert ask(app, f"studio/picture/{id_[:-5]}")[0] == 404


def test_a_thumbnail_stays_whole_for_a_page_that_reads_it_while_another_lists_it(
        app, entry, monkeypatch):
    path = Path(thumbnail_file(entry, app.services.history))
    whole = path.read_bytes()

    def write_and_look(place, data):
        with place.open("wb") as file:  # emptied, not yet written
            assert path.read_bytes() == whole
            file.write(data)

    with path.open("rb") as being_read, monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", write_and_look)
        assert thumbnail_file(entry, app.services.history) == str(path)
        assert being_read.read() == whole


@pytest.mark.parametrize("path", ["file=http://example.com/x.png", "file=//https://example.com",
                                  "proxy=http://example.com/"])
def test_gradio_fetches_nothing_that_a_request_names(app, path):
    assert ask(app, f"gradio_api/{path}")[0] == 403


def test_no_file_is_downloaded_for_an_api_caller(app):
    file = {"path": "http://127.0.0.1:9/x.png", "meta": {"_type": "gradio.FileData"}}
    told = outcome(app, "restore", file)
    assert "event: error" in told and "not fetched from elsewhere" in told


def request(method="POST", **headers):
    return Request({"type": "http", "method": method, "path": "/gradio_api/upload",
                    "query_string": b"", "server": ("127.0.0.1", 7860), "scheme": "http",
                    "headers": [(name.replace("_", "-").encode(), value.encode())
                                for name, value in headers.items()]})


@pytest.mark.parametrize("headers, taken", [
    ({}, True), ({"origin": OWN}, True), ({"origin": "http://evil.example"}, False),
    ({"origin": "null"}, False), ({"origin": "http://127.0.0.1:8080"}, False),
    ({"sec_fetch_site": "same-origin", "origin": "https://behind.a.proxy"}, True),
    ({"sec_fetch_site": "cross-site"}, False), ({"sec_fetch_site": "same-site"}, False)])
def test_what_another_site_sends_is_refused(headers, taken):
    host = {"host": "127.0.0.1:7860"}
    assert (refused(request(**host, **headers)) is None) == taken
    assert refused(request("GET", **host, **headers)) is None


def test_an_upload_from_another_site_is_not_kept(app):
    status, told = ask(app, "gradio_api/upload", {}, origin="http://evil.example")
    assert (status, told) == (403, b"this app takes nothing from other sites")


def test_a_feed_is_not_asked_for_with_endless_numbers(app):
    assert ask(app, f"studio/feed?job=a&after={'9' * 5000}") == (200, b"{}")
    assert json.loads(ask(app, "studio/feed?job=a&after=3")[1])["a"]["state"] == "gone"


def test_a_name_that_was_deleted_is_served_no_more(app, entry):
    from studio.page import build
    copy = picture_file(entry)
    tab = next(owner for fn in build(app.services).fns.values()
               if type(owner := getattr(unwrap(fn.fn), "__self__", None)).__name__ == "HistoryTab")
    assert "Deleted" in tab.remove(entry.id, None)
    assert not entry.path.exists() and not os.path.exists(copy)


# Gradio's own


def called(app, name):
    """What a handler of the page answers, asked for as the page does."""
    from studio.page import build
    index = next(id_ for id_, fn in build(app.services).fns.items()
                 if getattr(fn.fn, "__name__", "") == name)
    ask(app, "gradio_api/queue/join", {"fn_index": index, "data": [], "session_hash": "s"})
    events = ask(app, "gradio_api/queue/data?session_hash=s")[1].decode()
    return next(event for event in map(json.loads, re.findall("data: (.*)", events))
                if event["msg"] == "process_completed")


def test_words_and_examples_are_there_wherever_the_program_is_started(app, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRADIO_TEMP_DIR", get_upload_folder())
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))  # Gradio serves what lies there, too
    answer = called(app, "in_language")
    assert answer["success"], answer["output"]
    chips, fold, examples = answer["output"]["data"]
    assert "ssd-words" in chips and "studio-fold" in fold
    assert all(Path(picture["path"]).suffix == ".jpg" for picture, _ in examples["samples"])


def test_gradio_keeps_no_history_of_runs(app):
    assert ask(app, "gradio_api/runs")[0] == 404
    assert b'"run_history":false' in ask(app, "config")[1].replace(b" ", b"")


def test_the_example_of_the_contract_draws(app):
    contract = (Path(__file__).parents[2] / "docs" / "contract.md").read_text(encoding="utf-8")
    code = contract.split("```py\n")[1].split("```")[0]
    names = {}
    exec(code.replace("http://127.0.0.1:7860", app.address), names)  # noqa: S102
    assert "passes" in names["plan"] and "Saved as" in names["saved"]


def test_the_page_and_the_api_are_served_by_one_program(app):
    assert json.loads(ask(app, "api/models")[1])["in_use"]["name"] == "tiny"
    status, answer = ask(app, "api/plan", {"settings": {"k_h": 0}})
    assert status == 400 and "k_h" in json.loads(answer)["error"]
    status, answer = ask(app, "api/queue/stop", {}, origin="http://evil.example")
    assert (status, answer) == (403, b"this app takes nothing from other sites")


@pytest.mark.parametrize(("name", "values"), [
    ("restore", [None]), ("restore", [5]), ("seeds_finish", [None, True]),
    ("seeds_finish", [5, True])])
def test_values_that_no_page_sends_are_refused_in_one_line(app, name, values, caplog):
    told = outcome(app, name, *values)
    assert "event: error" in told and "Error\":" not in told
    assert not [one for one in caplog.records if one.exc_info]


# Starting


def told_at_start(monkeypatch, capsys, *arguments):
    """What the program says on its way out, with exit code 2."""
    monkeypatch.setattr(start.signal, "signal", lambda *_: None)
    with pytest.raises(SystemExit, match="2"):
        start.run("gradio_app.py", arguments=arguments)
    return capsys.readouterr().err


@pytest.mark.parametrize("arguments, word", [
    (["--port", "99999"], "--port"), (["--host", "192.0.2.7"], "cannot listen on 192.0.2.7"),
    (["--output-dir", f"{__file__}/x"], "--output-dir")])
def test_what_cannot_be_had_is_told_at_once(monkeypatch, capsys, arguments, word):
    assert word in told_at_start(monkeypatch, capsys, *arguments)


def test_a_port_that_is_taken_is_told(app, monkeypatch, capsys):
    port = app.address.rsplit(":", 1)[1].strip("/")
    assert f"127.0.0.1:{port}" in told_at_start(monkeypatch, capsys, "--port", port)


@pytest.mark.parametrize("arguments, local", [([], True), (["--share"], False),
                                              (["--host", "0.0.0.0"], False)])
def test_what_gradio_keeps_is_private_and_gone_at_the_end(
        monkeypatch, capsys, tmp_path, arguments, local):
    monkeypatch.setenv("GRADIO_TEMP_DIR", "as it was")
    seen = []

    def serve(services, *_):
        seen.append(Path(os.environ["GRADIO_TEMP_DIR"]))
        assert seen[0].is_dir() and services.local is local
        raise SSDError("enough")

    monkeypatch.setattr(start, "serve", serve)
    told = told_at_start(monkeypatch, capsys, "--output-dir", str(tmp_path), "--device", "cpu",
                         *arguments)
    assert "enough" in told and not seen[0].exists()
    assert ("other machines reach this app: all who visit may draw" in told) is not local


def test_the_start_says_where_the_page_is_and_gives_no_advice_on_code(
        models, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(Blocks, "block_thread", lambda self: None)
    library, history = Library(models, "tiny", device="cpu"), History(tmp_path)
    demo = serve(Services(Worker(), library, history, ParkedSeeds(library, history),
                          Downloads(models)), "127.0.0.1", None, share=False)
    told = capsys.readouterr().out
    demo.close()
    assert f"Running on {demo.local_url}" in told and "share=True" not in told


def test_a_shared_app_with_passwords_says_that_only_their_owners_may_draw():
    line = start.shared_line(Path("users.txt"))
    assert "a name and password in users.txt may draw" in line and "all who" not in line
