"""Downloads against a Hub on loopback: whole or not at all, resumed, cancelled, refused by name."""

import hashlib
import json
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.fake_hub import FakeHub

from ssd_core import SSDError
from ssd_core.cli import main
from ssd_core.files import SUMS, known_sum
from ssd_core.weights import hub
from ssd_core.weights.catalogue import CATALOGUE

ROOT = Path(__file__).resolve().parents[2]
NAME, REPO = "Janus-Pro-1B-hf", "deepseek-community/Janus-Pro-1B"
LARGE, SMALL = "model.safetensors", "config.json"
CONTENT = {LARGE: random.Random(0).randbytes(300_000), SMALL: b'{"a": 1}', "tokenizer.json": b"{}",
           "README.md": b"not asked for", "old/config.json": b"deeper"}


@pytest.fixture
def server(monkeypatch, tmp_path):
    with FakeHub({REPO: dict(CONTENT)}) as running:
        monkeypatch.setenv("HF_ENDPOINT", running.url)
        monkeypatch.delenv("HF_TOKEN", raising=False)
        monkeypatch.setattr(hub, "PAUSE", 0.01)
        monkeypatch.setattr(hub, "POLL", 0.05)
        monkeypatch.chdir(tmp_path)
        yield running


def refused(call, *arguments, **options) -> str:
    with pytest.raises(SSDError) as caught:
        call(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def assert_whole(folder: Path) -> None:
    names = {path.name for path in folder.iterdir()} - {SUMS}
    assert names == {LARGE, SMALL, "tokenizer.json"}
    assert known_sum(folder / LARGE) == hashlib.sha256(CONTENT[LARGE]).hexdigest()
    assert all((folder / name).read_bytes() == CONTENT[name] for name in names)
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def left_over() -> dict[str, int]:
    """Sizes of what lies in the staging folder."""
    return {path.name.split(".safetensors")[0]: path.stat().st_size
            for path in Path("models/ssd_backbones").rglob("*.part") if path.is_file()}


# What is asked and told


def test_a_quote_tells_and_fetches_nothing(server):
    asked = hub.quote(NAME.lower(), "models")
    assert {file.target for file in asked.files} == {LARGE, SMALL, "tokenizer.json"}
    assert asked.bytes == asked.missing == sum(len(CONTENT[file.name]) for file in asked.files)
    assert asked.destination == Path("models/ssd_backbones", NAME)
    assert "DeepSeek" in asked.licence.name
    assert not server.fetched() and not list(Path().iterdir())


def test_a_quote_counts_what_is_here(server):
    folder = Path("models/ssd_backbones", NAME)
    folder.mkdir(parents=True)
    (folder / SMALL).write_bytes(CONTENT[SMALL])
    asked = hub.quote(NAME, "models")
    assert asked.bytes - asked.missing == len(CONTENT[SMALL])


def test_a_backbone_may_come_from_several_repositories(server):
    own = {"a.safetensors": b"1" * 2000, "tokenizer.json": b"own"}
    server.repos = {"BAAI/Emu3-Gen": own,
                    "BAAI/Emu3-VisionTokenizer": {"model.safetensors": b"2" * 2000},
                    "Emu3-community/Emu3-Gen-hf": {"tokenizer.json": b"port"}}
    folder = hub.download("Emu3-Gen", "models")
    assert (folder / "vq/model.safetensors").read_bytes() == b"2" * 2000
    assert (folder / "tokenizer.json").read_bytes() == b"own"
    del own["tokenizer.json"]
    assert (hub.download("Emu3-Gen", "other") / "tokenizer.json").read_bytes() == b"port"


def test_a_revision_is_that_of_the_first_repository(server):
    server.repos["Alpha-VLLM/Lumina-mGPT-7B-512"] = {"m.safetensors": b"1"}
    server.repos["leloy/Anole-7b-v0.1-vqvae-hf"] = {"model.safetensors": b"2"}
    hub.quote("Lumina-mGPT-7B-512", "models", "v1.0")
    paths = [path for path, *_ in server.requests]
    assert paths[0].endswith("/revision/v1.0") and not paths[1].endswith("/revision/v1.0")


@pytest.mark.parametrize("name", ["../model.safetensors", "/model.safetensors",
                                  "..\\model.safetensors", "x/../model.safetensors"])
def test_names_that_climb_out_are_never_written(server, name):
    server.repos[REPO][name] = b"evil"
    assert {file.name for file in hub.quote(NAME).files} == {LARGE, SMALL, "tokenizer.json"}


# Fetching


def test_a_download_is_whole_and_alone(server):
    told = []
    folder = hub.download(NAME, "models", lambda *figures: told.append(figures))
    assert_whole(folder)
    done, totals, files = zip(*told, strict=True)
    assert list(done) == sorted(done) and set(totals) == {done[-1]} and set(files) <= set(CONTENT)
    assert done[-1] == hub.quote(NAME).bytes


def test_a_second_download_only_checks(server):
    folder = hub.download(NAME)
    server.requests.clear()
    assert hub.download(NAME) == folder and not server.fetched()
    (folder / SMALL).unlink()
    assert_whole(hub.download(NAME))
    assert [name for name, _ in server.fetched()] == [SMALL]


def test_a_broken_connection_is_taken_up_where_it_broke(server):
    server.cut[LARGE] = [100_000]
    assert_whole(hub.download(NAME))
    ranges = [ranged for name, ranged in server.fetched() if name == LARGE]
    assert ranges[0] is None and int(ranges[-1].removeprefix("bytes=").rstrip("-")) > 0


def test_what_arrived_is_kept_for_the_next_time(server, monkeypatch):
    server.cut[LARGE] = [200_000, 0, 0]
    monkeypatch.setattr(hub, "RETRIES", 2)
    assert "broke 2 times in a row" in refused(hub.download, NAME)
    kept = left_over()["model"]
    assert 0 < kept <= 200_000 and not Path("models/ssd_backbones", NAME).exists()
    asked = hub.quote(NAME)
    assert asked.bytes - asked.missing >= kept
    server.requests.clear()
    assert_whole(hub.download(NAME))
    assert (LARGE, f"bytes={kept}-") in server.fetched()


def test_a_server_without_ranges_begins_again(server):
    server.cut[LARGE], server.ranges = [100_000], False
    assert_whole(hub.download(NAME))


def test_a_server_that_stumbles_is_asked_again(server):
    server.refuse[f"/{REPO}"] = (503, "")
    timer = threading.Timer(0.02, server.refuse.clear)
    timer.start()
    hub.PAUSE = 0.1  # undone by the fixture
    assert_whole(hub.download(NAME))


def test_cancel_stops_at_once_even_where_the_connection_hangs(server):
    server.cut[LARGE] = [-100_000]
    start, seen = time.monotonic(), []
    with pytest.raises(hub.DownloadCancelled, match="kept"):
        hub.download(NAME, "models", lambda done, *_: seen.append(done),
                     lambda: (bool(seen) and seen[-1] > 1000) or time.monotonic() > start + 20)
    assert time.monotonic() - start < 3 and not Path("models/ssd_backbones", NAME).exists()
    server.hold.set()
    assert_whole(hub.download(NAME))
    assert any(ranged for name, ranged in server.fetched() if name == LARGE)


def test_cancel_works_before_the_first_answer(server):
    server.repos[REPO][LARGE] = CONTENT[LARGE]
    with pytest.raises(hub.DownloadCancelled):
        hub.download(NAME, "models", cancelled=lambda: True)
    assert not list(Path().rglob("*.safetensors"))


def test_what_progress_raises_ends_the_download(server):
    def fail(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hub.download(NAME, "models", fail)
    assert_whole(hub.download(NAME))


@pytest.mark.parametrize("name", [LARGE, SMALL])
def test_a_wrong_checksum_is_refused_and_thrown_away(server, name):
    content = CONTENT[name]
    server.served[name] = content[:-1] + bytes([content[-1] ^ 1])
    assert f"{REPO}/{name}" in refused(hub.download, NAME)
    assert not Path("models/ssd_backbones", NAME).exists()
    server.served.clear()
    assert_whole(hub.download(NAME))


def test_a_server_that_sends_too_much_is_stopped(server):
    server.served[SMALL] = CONTENT[SMALL] + b"more"
    assert "checksum" in refused(hub.download, NAME)


@pytest.mark.parametrize("content", [b"my own", b'{"a": 2}'])
def test_a_file_of_ones_own_is_never_overwritten(server, content):
    path = Path("models/ssd_backbones", NAME, SMALL)
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    assert str(path) in refused(hub.download, NAME) and path.read_bytes() == content


def test_two_downloads_of_one_backbone_do_not_mix(server):
    server.cut[LARGE] = [-100_000]
    stop, failures = threading.Event(), []

    def first():
        failures.append(refused(hub.download, NAME, "models", None, stop.is_set))

    thread = threading.Thread(target=first)
    thread.start()
    while not any(name == LARGE for name, _ in server.fetched()):
        time.sleep(0.01)
    assert "already" in refused(hub.download, NAME)
    stop.set()
    thread.join()
    assert "cancelled" in failures[0]


# Refusals


def test_space_is_looked_at_first(server, monkeypatch):
    monkeypatch.setattr(hub.shutil, "disk_usage", lambda _: SimpleNamespace(free=hub.RESERVE + 5))
    message = refused(hub.download, NAME)
    assert "0.0 GB more" in message and "0.1 GB are free" in message
    assert not server.fetched() and not list(Path().iterdir())


def test_a_full_disk_is_told(server, monkeypatch):
    def full(self, out, chunk):
        raise hub.unwritable(self.plan, OSError(28, "No space left on device"))

    monkeypatch.setattr(hub.Transfer, "write", full)
    assert "No space left" in refused(hub.download, NAME)


def test_a_models_folder_that_is_a_file_is_refused(server):
    Path("models").write_text("")
    assert "cannot write to models" in refused(hub.download, NAME)


def test_offline_mode_asks_nobody(server, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    message = refused(hub.download, NAME)
    assert "HF_HUB_OFFLINE" in message and REPO in message and not server.requests


REFUSALS = {
    "no such repository": (f"/api/models/{REPO}", 404, "RepoNotFound", "no such repository"),
    "unauthorised": (f"/api/models/{REPO}", 401, "", "HF_TOKEN"),
    "gated": (f"/{REPO}", 403, "GatedRepo", f"gated.*huggingface.co/{REPO}.*HF_TOKEN"),
    "gated listing": (f"/api/models/{REPO}", 401, "GatedRepo", "accept its licence"),
    "forbidden": (f"/{REPO}", 403, "", "403.*HF_TOKEN"),
    "gone": (f"/{REPO}", 410, "", "410"),
    "busy": (f"/{REPO}", 503, "", "503"),
}


@pytest.mark.parametrize("case", REFUSALS.values(), ids=REFUSALS)
def test_refusals_of_the_hub_are_one_line(server, case, monkeypatch):
    start, status, code, words = case
    monkeypatch.setattr(hub, "RETRIES", 2)
    server.refuse[start] = (status, code)
    with pytest.raises(SSDError, match=words) as caught:
        hub.download(NAME)
    assert "\n" not in str(caught.value) and not Path("models/ssd_backbones", NAME).exists()


def test_a_revision_that_is_not_there_is_named(server):
    assert "nowhere" in refused(hub.quote, NAME, "models", "nowhere")


def test_a_hub_that_cannot_be_reached_is_named(server, monkeypatch):
    server.__exit__()
    assert server.url in refused(hub.quote, NAME)


@pytest.mark.parametrize("address", ["huggingface.co", "ftp://x", "http://[", "http://"])
def test_an_address_that_is_none_is_refused(server, monkeypatch, address):
    monkeypatch.setenv("HF_ENDPOINT", address)
    message = refused(hub.quote, NAME)
    assert "HF_ENDPOINT" in message and address.rstrip("/") in message


@pytest.mark.parametrize("answer", [b"<html>log in</html>", b"[]", b"{}", b"null"])
def test_a_page_that_is_no_hub_is_told(server, monkeypatch, answer):
    monkeypatch.setattr("support.fake_hub.json.dumps", lambda _: answer.decode())
    assert server.url in refused(hub.quote, NAME) or "holds no file" in refused(hub.quote, NAME)


def test_a_changed_layout_is_told(server):
    del server.repos[REPO][LARGE]
    assert "*.safetensors" in refused(hub.quote, NAME)


def test_a_token_goes_to_the_hub_and_nowhere_else(server, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    hub.download(NAME)
    by_place = {path.startswith("/cdn"): token for path, _, token in server.requests}
    assert by_place == {False: "Bearer hf_secret", True: None}


def test_importing_the_engine_imports_no_hub():
    script = "import sys, ssd_core.cli; sys.exit('huggingface_hub' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], check=False,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0


# The command


def test_the_command_tells_first_and_asks(server, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: False, closed=False))
    assert main(["download", NAME]) == 2
    out, err = capsys.readouterr()
    assert "0.3 MB" in out and "DeepSeek" in out and str(Path("models").absolute()) in out + err
    assert "--yes" in err and not server.fetched()


@pytest.mark.parametrize("answer, downloaded", [("y", True), ("n", False)])
def test_a_terminal_is_asked(server, monkeypatch, capsys, answer, downloaded):
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True, closed=False))
    monkeypatch.setattr("typer.confirm", lambda *a, **k: answer == "y")
    assert main(["download", NAME, "--models-dir", "m"]) == 0
    assert Path("m/ssd_backbones", NAME).is_dir() == downloaded
    assert ("nothing was downloaded" in capsys.readouterr().out) != downloaded


def test_the_command_gives_json(server, capsys):
    assert main(["download", NAME, "--models-dir", "m", "--yes", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["path"] == str(Path("m/ssd_backbones", NAME)) and LARGE in told["files"]
    assert_whole(Path(told["path"]))


def test_an_interrupt_keeps_the_part_and_ends_with_130(server, monkeypatch, capsys):
    def interrupt(bar, count):
        if count > 1000:
            raise KeyboardInterrupt

    server.cut[LARGE] = [-100_000]
    monkeypatch.setattr("tqdm.tqdm.update", interrupt)
    assert main(["download", NAME, "--models-dir", "models", "--yes"]) == 130
    assert capsys.readouterr().err.endswith("interrupted\n")
    assert left_over()["model"] > 0 and not Path("models/ssd_backbones", NAME).exists()


def test_the_command_lists_the_catalogue_without_the_network(server, capsys):
    assert main(["download", "--list", "--json"]) == 0
    out, err = capsys.readouterr()
    assert all(name in err for name in CATALOGUE) and not server.requests
    assert len(json.loads(out)["results"]) > 15


@pytest.mark.parametrize("arguments", [[], ["no-such"], ["postcard"]])
def test_wrong_names_are_one_line(server, capsys, arguments):
    assert main(["download", *arguments]) == 2
    assert len(capsys.readouterr().err.splitlines()) <= 2 and not server.requests


def test_a_mirror_may_give_sizes_as_text(server):
    server.said = {"size": "8", "lfs": None}
    assert {file.bytes for file in hub.quote(NAME).files} == {8}


@pytest.mark.parametrize("said", [
    {"size": "many"}, {"size": -1}, {"size": 1.5}, {"size": [8]}, {"size": None},
    {"blobId": "../../outside"}, {"blobId": 7}, {"rfilename": 7}, {"lfs": "yes"},
    {"lfs": {"size": 8}}], ids=str)
def test_a_mirror_that_makes_no_sense_is_refused_in_one_line(server, said):
    server.said = {"lfs": None, **said}
    assert refused(hub.quote, NAME)
