"""Proxies that the environment names: the app starts whatever they are, downloads name them."""

import os
import re
import subprocess
import sys
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from huggingface_hub import utils
from support.fake_hub import FakeHub

from ssd_core import SSDError
from ssd_core.proxies import proxy_for, require_usable, without_proxies
from ssd_core.weights import hub

ROOT = Path(__file__).resolve().parents[2]
NAME, REPO = "Janus-Pro-1B-hf", "deepseek-community/Janus-Pro-1B"
DEAD = "http://ann:secret@127.0.0.1:9"
VARIABLES = [f"{use}_proxy" for use in ("http", "https", "all", "no")]
UNUSABLE = {  # what stopped the app, each by its own traceback
    "a proxy that is down": {"http_proxy": DEAD, "https_proxy": DEAD},
    "SOCKS": {"all_proxy": "socks5://127.0.0.1:7890"},
    "SOCKS, with loopback excepted": {"ALL_PROXY": "socks5h://127.0.0.1:7890",
                                      "NO_PROXY": "localhost,127.0.0.1"},
    "brackets": {"NO_PROXY": "localhost,[::1]"},
    "no address": {"HTTP_PROXY": "http://127.0.0.1:port", "ALL_PROXY": "socks4://127.0.0.1:9"},
    "certificates": {"SSL_CERT_FILE": "/nowhere.pem"},
}


def without_variables(environment):
    known = {*VARIABLES, "ssl_cert_file"}
    return {name: value for name, value in environment.items() if name.lower() not in known}


def read_anew():
    """The Hub's client reads the variables when it is made, and is made again now."""
    getattr(utils, "close_session", lambda: None)()  # older ones read them with each request


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """No proxy is named but what a test sets."""
    for name in {*os.environ} - {*without_variables(os.environ)}:
        monkeypatch.delenv(name)
    read_anew()
    yield monkeypatch
    read_anew()


# Starting


def page_of(command, environment, folder):
    """The page of an app that is started in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, *command, "--device", "cpu", "--output-dir", str(folder / "outputs")],
        cwd=ROOT, env={**without_variables(os.environ), **environment}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    lines = []
    try:
        for line in process.stdout:
            lines.append(line)
            if address := re.search(r"Running on (http://127\.0\.0\.1:\d+/)", line):
                direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
                return direct.open(address[1], timeout=60).read().decode()
        pytest.fail("".join(lines[-5:]))
    finally:
        process.kill()
        process.communicate(timeout=60)


GRADIO_APP, SSD_APP = ["gradio_app.py"], ["-m", "ssd_core", "app"]


def test_the_app_starts_whatever_the_environment_names(tmp_path):
    pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")
    every_one = {name: value for case in UNUSABLE.values() for name, value in case.items()}
    assert "SSD Studio" in page_of(GRADIO_APP, every_one, tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("variables", UNUSABLE.values(), ids=UNUSABLE)
@pytest.mark.parametrize("command", [GRADIO_APP, SSD_APP], ids=["gradio_app", "ssd app"])
def test_the_app_starts_with_each(command, variables, tmp_path):
    pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")
    assert "SSD Studio" in page_of(command, variables, tmp_path)


@pytest.mark.nightly
@pytest.mark.skipif(subprocess.run(["unshare", "-rnu", "true"], check=False).returncode != 0
                    if sys.platform == "linux" else True, reason="needs namespaces of Linux")
def test_the_app_starts_without_a_network_and_with_a_name_that_nobody_knows(tmp_path):
    pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")
    script = """
import fcntl, runpy, socket, struct, sys, threading, urllib.request
with socket.socket() as probe:  # loopback alone goes up
    fcntl.ioctl(probe, 0x8914, struct.pack("16sh14x", b"lo", 0x41))
socket.sethostname("nobody-knows-this-name")
from gradio import Blocks
def block(self):
    print(urllib.request.urlopen(self.local_url, timeout=60).read().decode())
Blocks.block_thread = block
sys.argv[:] = ["gradio_app.py", "--device", "cpu", "--output-dir", sys.argv[1]]
runpy.run_path("gradio_app.py", run_name="__main__")
"""
    done = subprocess.run(["unshare", "-rnu", sys.executable, "-c", script, str(tmp_path)],
                          cwd=ROOT, env=without_variables(os.environ), capture_output=True,
                          text=True, timeout=300, check=False)
    assert "SSD Studio" in done.stdout, done.stderr


def test_the_environment_is_as_before_once_the_app_has_started(environment):
    environment.setenv("SSL_CERT_FILE", "/nowhere.pem")
    before = dict(os.environ)
    for hosts in ("*", "localhost"):
        with without_proxies(hosts):
            assert os.environ["no_proxy"] == hosts
        assert dict(os.environ) == before
    environment.setenv("no_proxy", "x")
    with without_proxies():
        assert "SSL_CERT_FILE" not in os.environ
    assert os.environ["no_proxy"] == "x"


def test_a_link_to_share_needs_a_proxy_that_can_be_used(environment, capsys):
    pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")
    from studio import start

    environment.setattr(start.signal, "signal", lambda *_: None)
    environment.setenv("all_proxy", "ftp://127.0.0.1:9")
    with pytest.raises(SystemExit, match="2"):
        start.run("gradio_app.py", arguments=["--share"])
    assert "all_proxy=ftp://127.0.0.1:9" in capsys.readouterr().err


# Downloads


@pytest.fixture
def server(environment, tmp_path):
    with FakeHub({REPO: {"model.safetensors": b"1" * 2000, "config.json": b"{}"}}) as running:
        environment.setenv("HF_ENDPOINT", running.url)
        environment.setattr(hub, "PAUSE", 0.01)
        environment.chdir(tmp_path)
        yield running


def refused(call, *arguments):
    with pytest.raises(SSDError) as caught:
        call(*arguments)
    assert "\n" not in str(caught.value) and "secret" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("variable", ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"])
def test_a_proxy_that_is_down_is_named_without_its_password(server, environment, variable):
    environment.setenv(variable, DEAD)
    line = refused(hub.quote, NAME)
    assert f"cannot be reached through {variable}=http://127.0.0.1:9 (" in line
    assert server.url in line and f"unset {variable}" in line


def test_a_proxy_that_wants_a_name_is_named(server, environment):
    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_error(407)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as proxy:
        threading.Thread(target=proxy.serve_forever, args=(0.02,), daemon=True).start()
        environment.setenv("http_proxy", f"http://127.0.0.1:{proxy.server_port}")
        line = refused(hub.quote, NAME)
        proxy.shutdown()
    assert f"through http_proxy=http://127.0.0.1:{proxy.server_port} (" in line and "407" in line


def test_a_proxy_that_fails_amid_a_download_is_named(server, environment):
    plan = hub.quote(NAME)
    environment.setenv("http_proxy", DEAD)
    read_anew()
    line = refused(hub.fetch, plan)
    assert "the connection broke" in line and "through http_proxy=http://127.0.0.1:9)" in line


def test_a_socks_proxy_says_which_package_it_needs(server, environment):
    environment.setattr("ssd_core.proxies.find_spec", lambda name: None)
    environment.setenv("all_proxy", "socks5://ann:secret@127.0.0.1:7890")
    line = refused(hub.quote, NAME)
    assert "all_proxy=socks5://127.0.0.1:7890" in line
    assert re.search("pip install (socksio|pysocks)", line)
    environment.setenv("no_proxy", "*")
    assert hub.quote(NAME).bytes


@pytest.mark.parametrize("address", ["http://ann:secret@127.0.0.1:port", "http://127.0.0.1:99999",
                                     "socks4://127.0.0.1:9", "ftp://x:9", "http://[::1", "http://",
                                     "http://ann:sec/ret@127.0.0.1:x"])
def test_what_is_no_address_of_a_proxy_is_named(server, environment, address):
    environment.setenv("HTTPS_PROXY", address)
    line = refused(hub.quote, NAME)
    assert line.startswith("HTTPS_PROXY=") and "write http://HOST:PORT" in line
    assert "sec" not in line and address.rpartition("@")[2] in line


def test_exceptions_that_the_http_client_cannot_read_are_named(server, environment):
    httpx = pytest.importorskip("httpx")
    environment.setattr(utils, "get_session", httpx.Client)
    environment.setenv("NO_PROXY", "localhost,[::1]")
    assert refused(hub.quote, NAME).startswith("NO_PROXY: cannot be read (Invalid port")


def test_certificates_that_are_not_there_are_named(server, environment, tmp_path):
    environment.setenv("SSL_CERT_FILE", "/nowhere.pem")
    assert "SSL_CERT_FILE /nowhere.pem: no such file" in refused(hub.quote, NAME)
    (tmp_path / "text.pem").write_text("none")
    environment.setenv("SSL_CERT_FILE", str(tmp_path / "text.pem"))
    assert refused(hub.quote, NAME).startswith("SSL_CERT_FILE or SSL_CERT_DIR: cannot be read (")


@pytest.mark.parametrize(("variables", "proxy"), [
    ({}, None), ({"http_proxy": "http://x:1"}, None), ({"all_proxy": "x:1"}, "all_proxy=x:1"),
    ({"https_proxy": "http://x:1", "HTTPS_PROXY": "http://y:1"}, "https_proxy=http://x:1"),
    ({"https_proxy": "http://x:1", "all_proxy": "http://y:1"}, "https_proxy=http://x:1"),
    ({"HTTPS_PROXY": "http://a@b:c@x:1"}, "HTTPS_PROXY=http://x:1"),
    ({"https_proxy": "http://x:1", "no_proxy": "huggingface.co"}, None),
    ({"https_proxy": "http://x:1", "NO_PROXY": "a, .co"}, None),
    ({"https_proxy": "http://x:1", "no_proxy": "face.co"}, "https_proxy=http://x:1"),
    ({"https_proxy": "", "HTTPS_PROXY": "http://y:1"}, None),
    ({"https_proxy": "http://x:1", "no_proxy": "a, *"}, None),
    ({"https_proxy": "http://x:1", "no_proxy": "localhost"}, "https_proxy=http://x:1")])
def test_the_proxy_of_an_address_is_the_one_that_counts(environment, variables, proxy):
    for name, value in variables.items():
        environment.setenv(name, value)
    require_usable()
    found = proxy_for("https://huggingface.co")
    assert (found and str(found)) == proxy
