"""The app over HTTP without a browser: what is served, what is refused, and how it starts."""

import json
import os
import re
import sys
import time
import urllib.error
import urllib.request
import webbrowser
from pathlib import Path

import pytest
import torch

pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")

from gradio import Blocks  # noqa: E402
from starlette.requests import Request  # noqa: E402
from support.studio_visit import served  # noqa: E402

from ssd_core import SSDError  # noqa: E402
from ssd_core.weights.downloads import Downloads  # noqa: E402
from studio import start  # noqa: E402
from studio.history import History  # noqa: E402
from studio.jobs import Worker  # noqa: E402
from studio.library import Library  # noqa: E402
from studio.policy import LARGEST, refused  # noqa: E402
from studio.seeds import ParkedSeeds  # noqa: E402
from studio.server import serve  # noqa: E402
from studio.services import Services  # noqa: E402
from studio.words import SERVER, TEXTS  # noqa: E402

OWN = "http://127.0.0.1:7860"


@pytest.fixture(scope="module")
def app(models, tmp_path_factory):
    with served(tmp_path_factory.mktemp("app"), models=models, backbone="tiny") as running:
        yield running


def answer(app, path, body=None, method=None, **headers):
    """(status, body, headers) of a request."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(app.address + path, data, {
        "content-type": "application/json", **headers}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=20) as told:
            return told.status, told.read(), told.headers
    except urllib.error.HTTPError as error:
        return error.code, error.read(), error.headers


def ask(app, path, body=None, **headers):
    return answer(app, path, body, **headers)[:2]


def outcome(app, name, *values, **headers):
    """The events of a call of a named endpoint, as text."""
    status, told = ask(app, f"gradio_api/call/{name}", {"data": list(values)}, **headers)
    assert status == 200, told
    return ask(app, f"gradio_api/call/{name}/{json.loads(told)['event_id']}")[1].decode()


def result(app, endpoint, /, **values):
    """What a named endpoint returns for parameters by their names."""
    status, told = ask(app, f"gradio_api/call/v2/{endpoint}", values)
    assert status == 200, told
    events = ask(app, f"gradio_api/call/{endpoint}/{json.loads(told)['event_id']}")[1].decode()
    assert "event: complete" in events, events
    return json.loads(events.split("data: ")[-1])[0]


@pytest.fixture
def entry(app):
    return app.services.history.save(torch.zeros(16, 16, 3), None)


# The page


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_is_served_in_the_language_of_its_visitor(app, language):
    status, html, headers = answer(app, "", **{"accept-language": language})
    assert status == 200 and f'<html lang="{language}"'.encode() in html
    assert headers["cache-control"] == "no-cache"
    schema = json.loads(re.search(r'id="schema">(.*)</script>', html.decode())[1])
    assert schema["language"] == language


def test_a_visitor_s_choice_of_a_language_counts_more_than_the_browser_s(app):
    for cookie, language in (("ssd-language=zh", "zh"), ("a=b; ssd-language=zh; c=d", "zh"),
                             ("ssd-language=fr", "en"), ("other-ssd-language=zh", "en")):
        html = answer(app, "", **{"accept-language": "en", "cookie": cookie})[1]
        assert f'<html lang="{language}"'.encode() in html, cookie


def test_a_forced_language_counts_more_than_the_browser_s(models, tmp_path):
    with served(tmp_path, "zh", models, "tiny") as running:
        assert b'<html lang="zh"' in ask(running, "")[1]


def test_every_module_of_the_page_is_there_and_kept_by_the_browser_until_it_changes(app):
    html = ask(app, "")[1].decode()
    addresses = set(re.findall(r'(?:href|src)="(studio/web/[^"]+)"', html))
    assert len(addresses) > 10
    for address in addresses:
        status, _, headers = answer(app, address)
        assert status == 200 and "immutable" in headers["cache-control"], address
        older = re.sub("/v/[0-9a-f]+/", "/v/older/", address)
        assert answer(app, older)[2]["cache-control"] == "no-store"
        plain = re.sub("/v/[0-9a-f]+/", "/", address)
        asked = answer(app, plain)[2]
        assert asked["cache-control"] == "no-cache"
        assert ask(app, plain, **{"if-none-match": asked["etag"]})[0] == 304


@pytest.mark.parametrize("path", ["studio/web/../server.py", "studio/web/%2e%2e/server.py",
                                  "studio/web/v/x/../../../server.py", "studio/examples/../api.py",
                                  "studio/web/core/..%2f..%2fsharing.py"])
def test_no_file_beside_the_page_is_served(app, path):
    assert ask(app, path)[0] == 404


def test_while_another_model_is_loaded_the_page_says_so_and_asks_again(app, monkeypatch):
    library = app.services.library
    loaded, library._loaded = library.current, None
    with library._lock:
        status, html, headers = answer(app, "")
    library._loaded = loaded
    assert status == 503 and b"is being loaded" in html and headers["refresh"] == "2"


def test_the_page_runs_nothing_that_is_not_ours(app):
    policy = answer(app, "")[2]["content-security-policy"]
    assert "default-src 'self'" in policy and "unsafe" not in policy
    html = ask(app, "")[1].decode()
    assert not re.search(r"\son\w+=|style=|javascript:|<script>", html)


def test_every_text_is_in_both_languages():
    for section in (SERVER, *TEXTS.values()):
        for key, pair in section.items():
            assert len(pair) == 2 and all(pair), key
            names = [sorted(re.findall(r"\{(\w+)\}", text)) for text in pair]
            assert names[0] == names[1], key


# Pictures


def test_the_output_folder_is_not_served_only_its_pictures(app, entry):
    secret = app.services.history.folder / ".env"
    secret.write_text("secret")
    for path in (secret, entry.path):
        assert ask(app, f"gradio_api/file={path}")[0] == 404
    assert ask(app, f"studio/picture/{entry.id}") == (200, entry.path.read_bytes())


def test_a_picture_that_could_not_be_saved_is_served_from_memory(app):
    id_ = app.services.history.keep_unsaved(torch.zeros(16, 16, 3), None)
    status, png = ask(app, f"studio/picture/{id_}")
    assert status == 200 and png.endswith(b"IEND\xaeB`\x82")
    assert ask(app, f"studio/picture/{id_[:-5]}")[0] == 404


# Gradio's own


CLOSED = ("upload", "file=/etc/passwd", "file/etc/passwd", "file=http://example.com/x.png",
          "proxy=http://example.com/", "runs", "run/draw", "api/draw", "deep_link?session_hash=a",
          "stream/a", "component_server", "vibe-edit", "vibe-code", "process_recording",
          "startup-event/../upload", "openapi.json", "dev/reload", "upload_progress")


@pytest.mark.parametrize("path", [*(f"gradio_api/{path}" for path in CLOSED), "upload", "login",
                                  "monitoring", "docs", "openapi.json", "static/x", "assets/x",
                                  "theme.css", "manifest.json", "pwa_icon", "x"])
def test_routes_of_gradio_that_no_program_needs_are_closed(app, path):
    assert ask(app, path) == (404, b"nothing is here")
    assert ask(app, path, {}) == (404, b"nothing is here")


def test_no_file_is_downloaded_for_an_api_caller(app):
    file = {"path": "http://127.0.0.1:9/x.png", "meta": {"_type": "gradio.FileData"}}
    told = outcome(app, "restore", file, "", "x.png")
    assert "event: error" in told and "not fetched from elsewhere" in told


def test_no_file_of_this_machine_is_read_for_an_api_caller(app):
    file = {"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}}
    told = outcome(app, "plan", "a house", "fast", "", {"prompt": file})
    assert "event: error" in told and "root:" not in told


def request(method="POST", path="/gradio_api/call/draw", **headers):
    return Request({"type": "http", "method": method, "path": path,
                    "query_string": b"", "server": ("127.0.0.1", 7860), "scheme": "http",
                    "headers": [(name.replace("_", "-").encode(), value.encode())
                                for name, value in headers.items()]})


@pytest.mark.parametrize("path", ["/gradio_api/call/draw", "/api/draw"])
@pytest.mark.parametrize("headers, taken", [
    ({}, True), ({"origin": OWN}, True), ({"origin": "http://evil.example"}, False),
    ({"origin": "null"}, False), ({"origin": "http://127.0.0.1:8080"}, False),
    ({"sec_fetch_site": "same-origin", "origin": "https://behind.a.proxy"}, True),
    ({"sec_fetch_site": "cross-site"}, False), ({"sec_fetch_site": "same-site"}, False)])
def test_what_another_site_sends_or_reads_is_refused(path, headers, taken):
    host = {"host": "127.0.0.1:7860", "content_length": "2"}
    for method in ("POST", "GET", "DELETE"):
        assert (refused(request(method, path, **host, **headers)) is None) == taken
    linked = {**headers, "sec_fetch_mode": "navigate"}
    assert refused(request("GET", path, **host, **linked)) is None, "links may lead here"
    assert (refused(request("POST", path, **host, **linked)) is None) == taken


@pytest.mark.parametrize("length", [None, "", "-1", "x", str(LARGEST + 1)])
def test_calls_say_how_long_they_are_and_are_not_endless(length):
    said = {} if length is None else {"content_length": length}
    assert refused(request(**said)).status_code == 413


def test_a_feed_is_not_asked_for_with_endless_numbers(app):
    assert ask(app, f"api/feed?job=a&after={'9' * 5000}") == (200, b"{}")
    assert json.loads(ask(app, "api/feed?job=a&after=3")[1])["a"]["state"] == "gone"


def test_gradio_keeps_no_history_of_runs(app):
    assert b'"run_history":false' in ask(app, "config")[1].replace(b" ", b"")


# Programs


def test_the_example_of_the_contract_draws(app, capsys):
    contract = (Path(__file__).parents[3] / "docs" / "contract.md").read_text(encoding="utf-8")
    code = contract.split("```py\n")[1].split("```")[0]
    names = {}
    exec(code.replace("http://127.0.0.1:7860", app.address), names)  # noqa: S102
    assert names["plan"]["text"].startswith("How long") and names["job"]["state"] == "done"
    picture = capsys.readouterr().out.split()[-1].lstrip("/")
    assert ask(app, picture)[1].startswith(b"\x89PNG")


def test_the_named_endpoints_are_those_of_the_contract(app):
    contract = (Path(__file__).parents[3] / "docs" / "contract.md").read_text(encoding="utf-8")
    info = json.loads(ask(app, "gradio_api/info")[1])
    listed = dict(re.findall(r"^\| `(/\w+)` \| (.*?) \|", contract, re.MULTILINE))
    assert not info["unnamed_endpoints"] and set(listed) == set(info["named_endpoints"])
    for name, described in info["named_endpoints"].items():
        parameters = {one["parameter_name"] for one in described["parameters"]}
        assert parameters == set(re.findall(r"`(\w+)`", listed[name])), name


def test_a_program_draws_edits_races_and_finishes_seeds(app):
    job = result(app, "draw", prompt="a red house", seed="7", pictures=2)
    assert [saved["seed"] for saved in job["saved"]] == ["7", "8"] and job["state"] == "done"
    edited = result(app, "edit", id=job["saved"][0]["id"], prompt="a blue boat",
                    old_prompt="a red house", seed="9")
    assert edited["saved"] and edited["settings"]["parent"] == job["saved"][0]["id"]
    race = result(app, "race", prompt="a red house", racers=["plain", "fast"], seed="7")
    assert "Fast: " in race["result"]["guarantee"]
    mine = {"x-ssd-visitor": "c" * 64}
    told = outcome(app, "seeds_start", "a red house", 2, "third", "faithful", "3", None, **mine)
    jobs = json.loads(told.split("data: ")[-1])[0]
    assert [job["state"] for job in jobs] == ["paused", "paused"]
    ids = [job["id"] for job in jobs][1:]
    assert "expired" in outcome(app, "seeds_finish", ids), "they are another visitor's"
    finished = json.loads(outcome(app, "seeds_finish", ids, **mine).split("data: ")[-1])[0]
    assert finished[0]["saved"][0]["seed"] == "4"
    app.services.parked_seeds.drop_all()


def test_a_program_reads_settings_fit_and_report(app):
    id_ = result(app, "draw", prompt="a red house", seed="9")["saved"][0]["id"]
    assert result(app, "restore", id=id_)["settings"]["seed"] == "9"
    assert "weights" in result(app, "fit", name="tiny")
    assert "tiny" in result(app, "doctor")
    assert result(app, "use_backbone", name="bare")["result"]["name"] == "bare"
    assert result(app, "use_backbone", name="tiny")["state"] == "done"


@pytest.mark.parametrize(("name", "values"), [
    ("restore", [None, None, None]), ("restore", ["", "?", ""]), ("restore", [5, 5, 5]),
    ("seeds_finish", [None]), ("seeds_finish", [5]), ("draw", [None, 5, {}, "x", []]),
    ("plan", ["a", "none", "", {"k_h": []}]), ("plan", ["a", 7, 7, "x"]),
    ("race", ["a", "b", "", None, "seed", 5]),
    ("fit", ["none", "fp7", "x"])])
def test_values_that_no_program_sends_are_refused_in_one_line(app, name, values, caplog):
    told = outcome(app, name, *values)
    assert "event: error" in told and "Traceback" not in told
    assert not [one for one in caplog.records if one.exc_info]


def test_a_refusal_is_told_in_the_language_of_the_program(app):
    told = outcome(app, "plan", "a", "fast", "", {"cfg": 0}, **{"accept-language": "zh"})
    line = json.loads(told.split("data: ")[-1])["error"]
    assert "cfg" in line and not line.isascii()


# Starting


def told_at_start(monkeypatch, capsys, *arguments):
    """What the program says on its way out, with exit code 2."""
    monkeypatch.setattr(start.signal, "signal", lambda *_: None)
    with pytest.raises(SystemExit, match="2"):
        start.run("gradio_app.py", arguments=arguments)
    return capsys.readouterr().err


@pytest.mark.parametrize("arguments, word", [
    (["--port", "99999"], "--port 99999: give a number from 1 to 65535"),
    (["--port", "abc"], "--port abc: give a number"), (["--bogus"], "No such option: --bogus"),
    (["--port", "abc", "--check"], "--port abc"),
    (["--host", "192.0.2.7"], "cannot listen on 192.0.2.7"),
    (["--output-dir", f"{__file__}/x"], "--output-dir")])
def test_what_cannot_be_had_is_told_at_once(monkeypatch, capsys, arguments, word):
    told = told_at_start(monkeypatch, capsys, *arguments)
    assert word in told and told.count("\n") == 1


def test_options_are_checked_alone(monkeypatch, capsys):
    monkeypatch.setattr(start, "Library", None)
    monkeypatch.setattr(start.signal, "signal", lambda *_: None)
    with pytest.raises(SystemExit) as ended:
        start.run("gradio_app.py", arguments=["--check", "--port", "65001"])
    assert not ended.value.code


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
    opened = []
    monkeypatch.setattr(Blocks, "block_thread", lambda self: None)
    monkeypatch.setattr(webbrowser, "open", lambda url: opened.append((url, dict(os.environ))))
    monkeypatch.setenv("no_proxy", "example.org")
    library, history = Library(models, "tiny", device="cpu"), History(tmp_path)
    demo = serve(Services(Worker(), library, history, ParkedSeeds(library, history),
                          Downloads(models)), "127.0.0.1", None, share=False, browser=True)
    told = capsys.readouterr().out
    demo.close()
    assert f"Running on {demo.local_url}" in told and "share=True" not in told
    (url, environment), = opened
    assert url == demo.local_url and environment["no_proxy"] == "example.org"


def test_tools_for_mcp_need_their_package_which_is_told_at_once(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.setattr("studio.server.find_spec", lambda name: None)
    assert "pip install 'gradio[mcp]'" in told_at_start(monkeypatch, capsys, "--mcp")


def test_a_shared_app_with_passwords_says_that_only_their_owners_may_draw():
    line = start.shared_line(Path("users.txt"))
    assert "a name and password in users.txt may draw" in line and "all who" not in line


@pytest.mark.parametrize("path", ["gradio_api/queue/data?session_hash=x",
                                  "gradio_api/queue/data?session_hash=",
                                  "gradio_api/call/draw/x", "gradio_api/call/v2/draw/x/"])
def test_who_waits_for_a_call_that_nobody_made_is_answered_in_one_line(app, capfd, path):
    assert ask(app, path) == (404, b"no such call, or it is over")
    assert capfd.readouterr().err == ""


def test_a_call_with_too_few_values_prints_no_traceback(app, capfd):
    assert "event: error" in outcome(app, "draw", "a house")
    assert capfd.readouterr().err == ""


def test_an_app_that_nobody_uses_takes_one_percent_of_a_core_at_most(app):
    """Gradio's queue would wake it a thousand times a second."""
    app.wait_idle()
    shares = []
    for _ in range(3):  # the least: other tests' threads may come to their end
        before = time.process_time()
        time.sleep(1.5)
        shares.append((time.process_time() - before) / 1.5)
    assert min(shares) <= 0.01, shares
