"""Backbones on disk: what is found, what is loaded, what happens when that fails, will it fit."""

from __future__ import annotations

import gc
import re
import shutil
import threading
import weakref

import pytest
from support.drawings import by_methods, wished

from ssd_core import SSDError, load_backbone
from ssd_core.runs.diagnostics import report
from ssd_core.weights import fit, hub
from ssd_core.weights.downloads import Download
from studio import library as library_module
from studio import races, runs
from studio.library import Library
from studio.views import fit_view


def by_name(library):
    return {found.name: found for found in library.models()}


def test_the_bundled_backbone_is_there_without_any_folder(tmp_path):
    library = Library(tmp_path / "none")
    found, = library.models()
    assert (found.name, found.family, bool(found.heads), found.readable) == (
        "postcard", "postcard", True, True)
    assert library.current.name == "postcard" and library.current.heads is not None


def test_folders_are_found_with_their_heads(library, models):
    found = by_name(library)
    assert set(found) == {"postcard", "tiny", "bare"}
    assert found["tiny"].heads and not found["bare"].heads
    assert found["tiny"].path == models / "ssd_backbones" / "tiny" / "backbone.safetensors"
    assert all(one.readable for one in found.values())
    assert library.places() == [models / "ssd_backbones", models / "ssd_heads"]


def test_what_cannot_be_read_is_listed_with_the_reason(models, tmp_path):
    shutil.copytree(models, tmp_path / "m")
    wrong = tmp_path / "m" / "ssd_backbones" / "wrong"
    wrong.mkdir()
    (wrong / "backbone.safetensors").write_bytes(b"nonsense")
    found = by_name(Library(tmp_path / "m"))["wrong"]
    assert not found.readable and found.why_not and "\n" not in found.why_not


def test_a_backbone_named_by_its_path_is_found(models, tmp_path):
    path = str(models / "ssd_backbones" / "bare")
    library = Library(tmp_path, path)
    assert path in by_name(library) and library.current.heads is None


def test_an_unknown_backbone_is_refused_at_the_start(tmp_path):
    with pytest.raises(SSDError, match="ssd_backbones"):
        Library(tmp_path, "Mona-Lisa")


@pytest.mark.parametrize(("heads", "there"), [(None, True), ("none", False), ("tiny", True)])
def test_heads_as_they_were_asked_for(models, heads, there):
    assert (Library(models, "tiny", heads).current.heads is not None) == there


def test_heads_that_were_asked_for_and_do_not_fit_are_refused(models):
    with pytest.raises(SSDError, match="backbone"):
        Library(models, "bare", "tiny").current  # noqa: B018 - loading is what fails


def test_heads_that_lie_there_and_do_not_fit_are_a_remark(models, tmp_path):
    shutil.copytree(models, tmp_path / "m")
    heads = tmp_path / "m" / "ssd_heads"
    shutil.copytree(heads / "tiny", heads / "bare")
    loaded = Library(tmp_path / "m", "bare").current
    assert loaded.heads is None and "bare" in loaded.problem


def test_the_first_backbone_is_loaded_once(library, monkeypatch):
    loads = []
    monkeypatch.setattr(library_module, "load_backbone",
                        lambda *args, **kw: loads.append(args) or load_backbone(*args, **kw))
    assert library.current is library.current and len(loads) == 1


def test_another_backbone_takes_the_place_of_the_first(library):
    first = library.current.backbone.sha256
    freed = []
    library.before_switch.append(lambda: freed.append(library.current.name))
    library.use("bare")
    assert library.current.name == "bare" and library.current.backbone.sha256 != first
    assert freed == ["tiny"]


def test_the_former_backbone_is_let_go(library, history, parked_seeds, settings, ended):
    """Whatever was done with it: neither jobs nor parked runs nor saved pictures hold it."""
    former = weakref.ref(library.current.backbone)
    ended(runs.draw(library, history, settings))
    ended(races.race(library, history, by_methods(settings, "ar", "ssd")))
    for _, work in parked_seeds.start(settings, 2, owner="me"):
        ended(work)
    ended(lambda job: library.use("bare"))
    gc.collect()
    assert former() is None


def test_dtypes_are_taken(library):
    library.use("tiny", "bf16")
    assert str(library.current.backbone.dtype) == "torch.bfloat16"
    assert library.current.heads is not None


def test_a_name_that_is_not_there_changes_nothing(library):
    first = library.current
    with pytest.raises(SSDError, match="Mona"):
        library.use("Mona-Lisa")
    assert library.current is first


def test_after_a_failed_load_the_former_is_back(library, monkeypatch):
    sha256, loads = library.current.backbone.sha256, []

    def load(path, *options, **more):
        loads.append(path.parent.name)
        if path.parent.name == "bare":
            raise SSDError("broken file")
        return load_backbone(path, *options, **more)

    monkeypatch.setattr(library_module, "load_backbone", load)
    with pytest.raises(SSDError, match="broken file"):
        library.use("bare")
    assert loads == ["bare", "tiny"]  # at once, not when a page next asks
    assert library.current.name == "tiny" and library.current.backbone.sha256 == sha256


def test_whoever_asks_while_a_backbone_loads_is_told_at_once(library, monkeypatch):
    begun, go_on = threading.Event(), threading.Event()

    def slow(*args, **options):
        begun.set()
        assert go_on.wait(5)
        return load_backbone(*args, **options)

    monkeypatch.setattr(library_module, "load_backbone", slow)
    thread = threading.Thread(target=library.use, args=("bare",))
    thread.start()
    assert begun.wait(5)
    with pytest.raises(SSDError, match="bare is being loaded"):
        library.current  # noqa: B018 - asking is what fails
    go_on.set()
    thread.join(5)
    assert library.current.name == "bare"


def test_offload_reaches_the_loader(models):
    with pytest.raises(SSDError, match="offload"):
        Library(models, "tiny", device="cpu", offload=True).current  # noqa: B018 - as above


# Will it fit


@pytest.mark.parametrize("name", ["tiny", "bare", "Janus-Pro-7B"])
def test_an_estimate_is_given_for_what_is_loaded_here_or_known(library, name):
    estimate = library.fit(name, wished(prompt="a"))
    line, chinese = (fit_view(estimate, language)["text"] for language in ("en", "zh"))
    assert "weights" in line and "keys and values" in line and "\n" not in line
    assert "约需" in chinese and not re.search("(?!int[48])[a-z]{3}", chinese)


@pytest.mark.parametrize("free", [0, 2 << 30, 5 << 30, 7 << 30])
def test_what_would_make_a_run_fit_is_told_in_chinese(library, monkeypatch, free):
    monkeypatch.setattr(fit, "free_bytes", lambda device: free)
    estimate = library.fit("Janus-Pro-7B", wished(prompt="a", pictures=4))
    advice = fit_view(estimate, "zh")["advice"]
    assert "约需" in advice and not re.search("[a-z]{3}", re.sub("int[48]|bf16|cfg", "", advice))


def test_what_the_present_backbone_holds_counts_as_free_for_its_successor(library, monkeypatch):
    monkeypatch.setattr(fit, "free_bytes", lambda device: 1000 << 20)
    held = fit.held_bytes(library.current.backbone, library.device)
    assert held > 0
    seen = []
    monkeypatch.setattr(fit, "advice", lambda run, free: seen.append(free) or "")
    library.fit("bare", wished(prompt="a"))
    library.fit("tiny", wished(prompt="a"))
    assert seen == [(1000 << 20) + held] * 2


def test_an_estimate_for_nothing_is_refused(library):
    with pytest.raises(SSDError, match="Mona"):
        library.fit("Mona-Lisa", wished())


def test_a_first_load_that_fails_is_tried_once(models, monkeypatch):
    library, tried = Library(models, "tiny", device="cpu"), []
    monkeypatch.setattr(library, "_load", lambda *asked: tried.append(asked) or refuse())
    with pytest.raises(SSDError, match="broken"):
        library.use("tiny")
    assert tried == [("tiny", "auto", ())]


def refuse():
    raise SSDError("it is broken")


def test_room_is_checked_for_the_batch_and_for_parked_runs(library, monkeypatch):
    library.require_room(wished(pictures=2))
    needed = fit.fit(library.current.backbone, wished().method, device="cpu").needed
    monkeypatch.setattr(fit, "free_bytes", lambda device: 2 * needed)
    library.require_room(wished())
    with pytest.raises(SSDError, match="start fewer seeds"):
        library.require_room(wished(), runs=500)
    monkeypatch.setattr(fit, "free_bytes", lambda device: 1 << 10)
    with pytest.raises(SSDError, match="are needed"):
        library.require_room(wished(pictures=64))


def test_doctor_tells_what_was_found_what_is_loaded_and_what_went_wrong(library, models):
    before = report(library.doctor_lines())
    assert "nothing yet, tiny is next" in before and "none since the start" in before
    sha256 = library.current.backbone.sha256
    text = report(library.doctor_lines(), "the last line", "gradio 6")
    for told in (str(models), "bare", sha256[:10], "fp32 on cpu", "the last line", "gradio 6",
                 "torch", "Python"):
        assert told in text


# Downloads


@pytest.mark.parametrize(("error", "line"), [
    (PermissionError("models is read-only"), "PermissionError: models is read-only"),
    (SSDError("no such repository"), "no such repository")])
def test_a_download_that_fails_says_why(tmp_path, monkeypatch, error, line):
    def failing(*args):
        raise error

    monkeypatch.setattr(hub, "download", failing)
    download = Download("Janus-Pro-1B-hf")
    download.run(tmp_path)
    assert line in download.error and download.over.is_set() and download.where is None


def test_doctor_says_that_the_bundled_backbone_came_along(models, library):
    lines = library.doctor_lines()
    assert {"  postcard (bundled), with draft heads", "  tiny, with draft heads", "  bare"
            } <= set(lines)
