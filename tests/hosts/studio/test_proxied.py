"""The app behind reverse proxies and tunnels: below a path, by other names, safe as before."""

import json
import re
import urllib.error
import urllib.request
from pathlib import Path

import pytest

pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")

from starlette.applications import Starlette  # noqa: E402
from starlette.responses import PlainTextResponse  # noqa: E402
from starlette.routing import Route  # noqa: E402
from starlette.testclient import TestClient  # noqa: E402
from support.reverse_proxy import Recipe, reverse_proxy  # noqa: E402
from support.studio_client import HOUSE, line_of  # noqa: E402
from support.studio_visit import PROMPT, served  # noqa: E402

from ssd_core import SSDError  # noqa: E402
from studio import pages, start  # noqa: E402
from studio.policy import middleware  # noqa: E402
from studio.proxied import as_name, as_proxy, as_root  # noqa: E402

NAME = "studio.example.org"
FORWARDED = {"x-forwarded-host": "{host}", "x-forwarded-proto": "{scheme}"}
RECIPES = {  # the first three are those of docs/app.md
    "nginx": Recipe("/ssd", host=True, says={**FORWARDED, "x-forwarded-prefix": "{prefix}"}),
    "Caddy": Recipe("/ssd", host=True, says=FORWARDED, scheme="https"),
    "JupyterHub": Recipe("/user/ann@b.org/proxy/7860", host=True, scheme="https",
                         says={**FORWARDED, "x-forwarded-prefix": "{prefix}"}),
    "nginx's default Host": Recipe("/ssd"),
    "default Host, told": Recipe("/ssd", says=FORWARDED),
    "the path passed on": Recipe("/ssd", strips=False, host=True),
    "RFC 7239": Recipe("/ssd", says={"forwarded": 'for=_a;host="{host}";proto={scheme}'}),
    "no path": Recipe(host=True),
}


@pytest.fixture(scope="module")
def app(models, tmp_path_factory):
    with served(tmp_path_factory.mktemp("app"), models=models, backbone="tiny", root="/ssd",
                names=[NAME]) as running:
        yield running


@pytest.fixture(scope="module")
def plain(models, tmp_path_factory):
    """An app that knows a name, but no path: a proxy takes it away or tells it."""
    with served(tmp_path_factory.mktemp("app"), models=models, backbone="tiny",
                names=[NAME]) as running:
        yield running


def ask(address, body=None, **headers):
    """(status, body) of a request as a page at http://NAME sends it over plain HTTP."""
    data = None if body is None else json.dumps(body).encode()
    own = {"host": NAME, "content-type": "application/json", "x-ssd-visitor": "a" * 64}
    if data:
        own["origin"] = f"http://{NAME}"
    request = urllib.request.Request(address, data, {**own, **headers})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def guarded(root="", names=(), peer="127.0.0.1", users=None):
    """A client of an app that answers everything, behind the middleware of ours."""
    def answer(request):
        return PlainTextResponse("in")

    routes = [Route("/{rest:path}", answer, methods=["GET", "POST"])]
    app = Starlette(routes=routes,
                    middleware=middleware("127.0.0.1", bool(users), users or {}, root, names))
    return TestClient(app, "http://127.0.0.1", client=(peer, 1))


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
@pytest.mark.by_day(3)
def test_everything_is_there_behind_a_proxy(app, plain, recipe):
    running = plain if recipe.strips else app
    with reverse_proxy(running.address, recipe) as proxy:
        page = f"{proxy}{recipe.prefix}/"
        status, html = ask(page)
        links = re.findall(r'(?:href|src)="([^#"]+)"', html.decode())
        assert status == 200 and len(links) > 10
        assert {ask(page + link)[0] for link in links} == {200}
        status, told = ask(f"{page}api/draw", {"settings": HOUSE})
        assert status == 200, told
        job = json.loads(told)["id"]
        assert running.services.worker.job(job).wait(30)
        fed = json.loads(ask(f"{page}api/feed?job={job}&after=0")[1])[job]
        assert fed["state"] == "done" and fed["messages"]
        picture = json.loads(ask(f"{page}api/jobs/{job}")[1])["saved"][0]["picture"]
        assert ask(page + picture)[1].startswith(b"\x89PNG")
        status, told = ask(f"{page}gradio_api/call/plan", {"data": ["a house", "fast", "", {}]})
        events = ask(f"{page}gradio_api/call/plan/{json.loads(told)['event_id']}")[1]
        assert b"event: complete" in events


def test_the_path_is_found_whether_a_proxy_takes_it_away_or_not(app):
    for path in ("", "ssd/"):
        assert ask(f"{app.address}{path}")[0] == 200
        assert ask(f"{app.address}{path}api/jobs")[0] == 200
        assert ask(f"{app.address}{path}gradio_api/upload", {})[0] == 404, "it is closed"
    with urllib.request.urlopen(f"{app.address}ssd", timeout=20) as answer:
        assert answer.url == f"{app.address}ssd/", "relative links need the slash"
    assert json.loads(ask(f"{app.address}config")[1])["root"].endswith("/ssd")
    assert ask(f"{app.address}other/")[0] == 404


@pytest.mark.parametrize(("root", "peer", "headers", "end"), [
    ("", "127.0.0.1", {}, "Path=/"), ("/ssd", "127.0.0.1", {}, "Path=/ssd/"),
    ("", "127.0.0.1", {"x-forwarded-prefix": "/hub/"}, "Path=/hub/"),
    ("", "127.0.0.1", {"x-forwarded-prefix": "/a b"}, "Path=/"),
    ("", "127.0.0.1", {"x-forwarded-proto": "https"}, "Path=/; Secure"),
    ("", "::1", {"forwarded": "for=x;proto=https"}, "Path=/; Secure"),
    ("", "192.0.2.7", {"x-forwarded-proto": "https"}, "Path=/")])
def test_cookies_belong_to_the_path_and_to_https(root, peer, headers, end):
    client = guarded(root, peer=peer, users={"ann": "a"})
    answer = client.get("/", auth=("ann", "a"), headers=headers)
    assert answer.headers["set-cookie"].endswith(f"SameSite=Lax; {end}")


@pytest.mark.parametrize("prefix", ["/x/../..", "//[", "//evil.example", "/a\\b", "x;y", "http://x/y"])
def test_a_false_prefix_opens_nothing(prefix):
    client = guarded()
    for path in ("/api/jobs", "/gradio_api/upload", "/x/gradio_api/upload", prefix):
        bare = client.get(path, follow_redirects=False)
        answer = client.get(path, headers={"x-forwarded-prefix": prefix}, follow_redirects=False)
        assert answer.status_code in (bare.status_code, 404)


# Who is answered


LOCAL = "127.0.0.1:7860"


def status(client, method="POST", **headers):
    answer = client.request(method, "/api/queue/clear" if method == "POST" else "/api/jobs",
                            headers={name.replace("_", "-"): value
                                     for name, value in headers.items()})
    if answer.status_code != 200:
        line_of(answer)
    return answer.status_code


@pytest.mark.parametrize(("headers", "expected"), [
    ({"host": NAME, "origin": f"http://{NAME}"}, 200),
    ({"host": f"{NAME.upper()}:80", "origin": f"http://{NAME}"}, 200),
    ({"host": LOCAL, "origin": f"http://{NAME}"}, 200),
    ({"host": LOCAL, "origin": f"https://{NAME}", "sec_fetch_site": "same-origin"}, 200),
    ({"host": LOCAL, "x_forwarded_host": f"{NAME}:8080", "origin": f"http://{NAME}:8080"}, 200),
    ({"host": LOCAL, "x_forwarded_host": f"{NAME}:443", "origin": f"https://{NAME}"}, 200),
    ({"host": LOCAL, "forwarded": f"host={NAME}:81", "origin": f"http://{NAME}:81"}, 200),
    ({"host": LOCAL, "origin": f"http://{LOCAL}"}, 200),
    ({"host": LOCAL, "x_forwarded_host": "localhost", "origin": "http://localhost"}, 200),
    ({"host": "[::1]:7860", "origin": "http://[::1]:7860"}, 200),
    # other sites, which cannot send these headers without asking first
    ({"host": LOCAL, "origin": f"http://{NAME}:9000"}, 403),
    ({"host": LOCAL, "origin": "http://evil.example"}, 403),
    ({"host": LOCAL, "x_forwarded_host": "localhost", "origin": "http://localhost:81"}, 403),
    ({"host": LOCAL, "origin": "null"}, 403),
    ({"host": NAME, "origin": f"http://{LOCAL}"}, 403),
    ({"host": NAME, "origin": f"http://{NAME}", "sec_fetch_site": "cross-site"}, 403),
    ({"host": NAME, "origin": f"http://{NAME}.evil.example"}, 403),
    ({"host": NAME, "origin": f"http://evil.example@{NAME}"}, 403),
    # DNS rebinding, directly or by way of a proxy that tells what it was asked for
    ({"host": "evil.example", "origin": "http://evil.example"}, 400),
    ({"host": "evil.example", "x_forwarded_host": "localhost"}, 400),
    ({"host": "evil.example", "forwarded": "host=localhost"}, 400),
    ({"host": LOCAL, "x_forwarded_host": "evil.example", "origin": "http://evil.example"}, 400),
    ({"host": LOCAL, "x_forwarded_host": f"evil.example, {NAME}"}, 400),
    ({"host": LOCAL, "forwarded": 'for=a;host="evil.example:80"'}, 400),
    ({"host": f"evil.example@{NAME}"}, 400), ({"host": f"{NAME}.evil.example"}, 400),
    ({"host": "["}, 400), ({"host": ""}, 400)])
def test_names_that_were_allowed_are_answered_and_no_others(headers, expected):
    client = guarded(names=[NAME])
    assert status(client, **headers) == expected
    if expected == 400:
        assert status(client, "GET", **headers) == 400


def test_names_are_not_known_without_the_flag():
    client = guarded()
    for headers in ({"host": NAME}, {"x-forwarded-host": NAME}, {"forwarded": f"host={NAME}"}):
        refused = client.get("/", headers=headers)
        assert refused.status_code == 400 and f"--allow-host {NAME}" in refused.text
    answer = client.post("/api/plan", json={}, headers={"origin": f"http://{NAME}:81"})
    assert answer.status_code == 403 and f"--allow-host {NAME}:81" in line_of(answer)
    chinese = client.get("/api/jobs", headers={"host": NAME, "accept-language": "zh"})
    assert f"请用 --allow-host {NAME}" in line_of(chinese)


def test_every_line_of_a_header_counts():
    client = guarded(names=[NAME])
    for name, text in (("x-forwarded-host", "{}"), ("forwarded", "host={}")):
        lines = [(name, text.format(host)) for host in (NAME, "evil.example")]
        assert client.get("/api/jobs", headers=[*client.headers.items(), lines[0]]).is_success
        both = client.get("/api/jobs", headers=[*client.headers.items(), *lines])
        assert both.status_code == 400


def test_a_name_with_its_port_allows_pages_of_that_port():
    client = guarded(names=[f"{NAME}:8080"])
    assert status(client, host=LOCAL, origin=f"http://{NAME}:8080") == 200
    assert status(client, host=LOCAL, origin=f"http://{NAME}") == 403


def test_no_other_site_may_ask_whether_it_may_send_headers(app):
    request = urllib.request.Request(f"{app.address}api/draw", method="OPTIONS", headers={
        "host": LOCAL, "origin": "http://evil.example", "access-control-request-method": "POST",
        "access-control-request-headers": "x-forwarded-host"})
    try:
        headers = urllib.request.urlopen(request, timeout=20).headers
    except urllib.error.HTTPError as error:
        headers = error.headers
    assert "access-control-allow-origin" not in headers


def test_an_app_with_names_is_shared(app):
    body = {"ids": [], "name": "bare"}
    for path in ("history/delete", "models/download"):
        told, line = ask(f"{app.address}api/{path}", body)
        assert told == 403 and b"only the person who started it" in line


@pytest.mark.parametrize(("text", "root"), [
    ("", ""), ("/", ""), ("/ssd", "/ssd"), ("ssd/", "/ssd"), ("/a/b/", "/a/b"),
    ("/user/ann%40b.org", "/user/ann@b.org"), ("https://example.org/ssd", "/ssd")])
def test_a_root_path_is_written_in_many_ways(text, root):
    assert as_root(text) == root


def test_what_is_no_path_or_name_is_refused():
    for path in ("/a b", "/..", "//[", "/a//b", "/a/./b"):
        with pytest.raises(SSDError, match="--root-path"):
            as_root(path)
    assert as_name("Studio.example.org:81") == "studio.example.org:81"
    for name in ("*", "", "https://x.org", "x/y", ".x", "a b", "x:", "x:y", "x;y"):
        with pytest.raises(SSDError, match="--allow-host"):
            as_name(name)


def test_the_models_page_names_the_proxy_that_failed(client, monkeypatch):
    from huggingface_hub import utils

    for name in ("http_proxy", "no_proxy", "all_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("HF_ENDPOINT", "http://hub.example.org")
    monkeypatch.setenv("http_proxy", "http://ann:secret@127.0.0.1:9")
    read_anew = getattr(utils, "close_session", lambda: None)
    read_anew()
    for language, words in (("en", "cannot be reached through"), ("zh", "无法通过")):
        answer = client.post("/api/models/quote", json={"name": "Janus-Pro-1B"},
                             headers={"accept-language": language})
        line = line_of(answer)
        assert words in line and "http_proxy=http://127.0.0.1:9" in line and "secret" not in line
    read_anew()


@pytest.mark.parametrize(("arguments", "variables"), [
    (["--root-path", "ssd/", "--allow-host", "A.example", "--allow-host", "b:81"], {}),
    ([], {"GRADIO_ROOT_PATH": "https://a.example/ssd", "SSD_ALLOW_HOST": "a.example b:81"})])
def test_options_and_variables_say_path_and_names(
        monkeypatch, tmp_path, capsys, arguments, variables):
    def serve(services, *options):
        assert not services.local and options[-3:] == ("/ssd", ["a.example", "b:81"], [])
        raise SSDError("enough")

    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(start, "serve", serve)
    monkeypatch.setattr(start.signal, "signal", lambda *_: None)
    with pytest.raises(SystemExit, match="2"):
        start.run("gradio_app.py", arguments=["--device", "cpu", "--output-dir", str(tmp_path),
                                              *arguments])
    told = capsys.readouterr().err
    assert "enough" in told and "other machines reach this app" in told


# In a browser


def test_the_page_has_no_address_that_leaves_its_path():
    folder = Path(pages.__file__).parent / "web"
    files = [file for place in (folder, pages.PREVIEW) for file in place.iterdir()]
    absolute = re.compile(r"""["'`(]/(studio|api|gradio_api)\b""")
    assert [file.name for file in files if absolute.search(file.read_text(encoding="utf-8"))] == []


PLACES = ("race", "seeds", "history", "models", "doctor")


@pytest.fixture(scope="module")
def postcard(small_assets, tmp_path_factory):
    from support.small_bundle import small_bundle

    with small_bundle(small_assets):
        with served(tmp_path_factory.mktemp("app"), names=[NAME]) as running:
            yield running


@pytest.mark.parametrize("name", ["nginx's default Host", "nginx", "JupyterHub"])
@pytest.mark.by_day(1)
def test_a_visit_to_every_place_below_a_path(chromium, postcard, name):
    """Over plain HTTP, where browsers do not say from which site a request comes."""
    from support.studio_visit import visits

    failed = []
    with reverse_proxy(postcard.address, RECIPES[name]) as proxy, \
            visits(chromium, postcard) as visit:
        address = f"http://{NAME}{RECIPES[name].prefix}/"
        visitor = visit(address, proxy={"server": proxy})
        page = visitor.page
        page.on("response", lambda answer: answer.status >= 400 and failed.append(answer.url))
        page.fill("#prompt", PROMPT)
        visitor.draw()
        assert visitor.is_painted()
        page.wait_for_selector(".mask-field")
        for place in PLACES:
            visitor.go(place)
        page.reload()
        visitor.ready()
    elsewhere = [url for url in visitor.asked if not url.startswith((address, "data:", "blob:"))]
    assert failed == [] and elsewhere == []


@pytest.mark.parametrize(("proxies", "peer", "told", "visitor"), [
    ((), "127.0.0.1", "6.6.6.6", "127.0.0.1"),
    (("127.0.0.1",), "127.0.0.1", "6.6.6.6, 1.1.1.1", "1.1.1.1"),
    (("127.0.0.1",), "2.2.2.2", "6.6.6.6", "2.2.2.2"),
    (("127.0.0.1", "10.0.0.0/8"), "127.0.0.1", "6.6.6.6, 1.1.1.1, 10.1.2.3", "1.1.1.1"),
    (("127.0.0.1",), "127.0.0.1", "", "127.0.0.1"),
    (("::1",), "::1", "fe80::2", "fe80::2")])
def test_only_a_named_proxy_tells_who_its_visitors_are(proxies, peer, told, visitor):
    def answer(request):
        return PlainTextResponse(request.client.host)

    names = middleware("127.0.0.1", False, {}, names=[NAME], proxies=[as_proxy(p) for p in proxies])
    app = Starlette(routes=[Route("/", answer)], middleware=names)
    client = TestClient(app, f"http://{NAME}", client=(peer, 1))
    assert client.get("/", headers={"x-forwarded-for": told}).text == visitor


def test_a_proxy_is_an_address():
    assert as_proxy("10.1.2.3") == "10.1.2.3/32" and as_proxy("10.0.0.0/8") == "10.0.0.0/8"
    with pytest.raises(SSDError, match="--proxy"):
        as_proxy("proxy.example.org")


def test_who_tells_another_address_with_each_password_is_stopped(models, tmp_path):
    """Over a real connection: nobody has named a proxy, so that all come from this machine; behind
    one that was named, all together are stopped later.
    """
    def guesses(address, count):
        return [ask(address, authorization="Basic YTpi",
                    **{"x-forwarded-for": f"6.6.{n // 200}.{n % 200}"})[0] for n in range(count)]

    with served(tmp_path, models=models, backbone="tiny", names=[NAME], users={"a": "c"}) as app:
        assert guesses(app.address, 12) == [401] * 10 + [429] * 2
    with served(tmp_path, models=models, backbone="tiny", names=[NAME], users={"a": "c"},
                proxies=["127.0.0.1/32"]) as app:
        told = guesses(app.address, 160)
        assert told[:100] == [401] * 100 and told[-1] == 429
