"""Patterns in file names: what the server fills in where no page has, and what it never leaves."""

from __future__ import annotations

from datetime import datetime
from types import SimpleNamespace

import pytest
import torch

NOW = datetime(2026, 3, 4, 15, 6, 7)
PROMPT = {
    "3": {"class_type": "SSD_Sampler", "_meta": {"title": "Mine"},
          "inputs": {"seed": 42, "prompt": 'a/b: "c"?\n', "complete_prompt": True,
                     "method": ["1", 0]}},
    "4": {"class_type": "SSD_Sampler", "_meta": {"title": "Mine"}, "inputs": {"seed": 43}}}


@pytest.mark.parametrize(("prefix", "name"), [
    ("%date:yyyy-MM-dd%/x", "2026-03-04/x"),
    ("%date:yy_M_d hh:mm:ss%", "26_3_4 15_06_07"),
    ("%date:yyy%", "yyy"),  # as ComfyUI's page has it
    ("%SSD_Sampler.seed%-%Mine.complete_prompt%", "42-true"),
    ("%Mine.prompt%", "a_b_ _c___"),
    ("%width%x%height%_%year%", "%width%x%height%_%year%"),
    ("%SSD_Sampler.method% %Nobody.seed%", "%SSD_Sampler.method% %Nobody.seed%"),
    ("100% <|*> a\tb", "100% ____ a_b"),
    ("x/" + "é" * 200, "x/" + "é" * 100)])
def test_patterns_are_filled_in_and_nothing_is_left_that_windows_refuses(pack, prefix, name):
    assert pack.module("nodes.filenames").filled_in(prefix, PROMPT, NOW) == name


@pytest.mark.parametrize("node", ["SSD_SaveImage", "SSD_RunViewer"])
def test_a_name_may_have_widgets_of_the_run_and_a_date(pack, node, monkeypatch):
    hidden = SimpleNamespace(prompt=PROMPT, extra_pnginfo={})
    monkeypatch.setattr(pack.nodes[node], "hidden", hidden)
    images = torch.zeros(1, 8, 8, 3)
    types = pack.module("nodes.types")
    stats = types.RunStats("ar", {"acceptance": {}}, ({"keep_rows": 0},),
                           torch.zeros(1, 2, 2).numpy(), images.mul(255).byte().numpy())
    run = types.Run(types.TokenPictures(torch.zeros(1, 2, 2, dtype=torch.long), "m", "0"), stats)
    values = {"SSD_SaveImage": {"images": images},
              "SSD_RunViewer": {"run": run, "overlay": False, "seconds": 3.0, "format": "webp"}}
    entry, = pack.nodes[node].execute(
        filename_prefix="%SSD_Sampler.seed%/%date:hh:mm%", **values[node]).ui["images"]
    assert entry["subfolder"] == "42" and ":" not in entry["filename"]
    assert "date" not in entry["filename"]
    assert (pack.stubs.folders.output / "42" / entry["filename"]).is_file()


def test_two_processes_that_take_one_number_keep_both_pictures(pack, monkeypatch):
    """A second ComfyUI, for another card, counts the files of the output folder at the same time.
    """
    folder = pack.stubs.folders.output
    for module in ("nodes.save_image", "nodes.run_viewer"):
        monkeypatch.setattr(pack.module(module), "place_for",
                            lambda *_: (str(folder), "same", 7, ""))
    node = pack.nodes["SSD_SaveImage"]
    monkeypatch.setattr(node, "hidden", SimpleNamespace(prompt=None, extra_pnginfo={}))
    saved = [node.execute(images=torch.full((2, 8, 8, 3), grey), filename_prefix="same")
             .ui["images"] for grey in (0.0, 1.0)]
    names = [entry["filename"] for entries in saved for entry in entries]
    assert names == [f"same_{number:05}_.png" for number in range(7, 11)]
    assert len({(folder / name).read_bytes() for name in names}) == 2
    film = pack.module("nodes.run_viewer").save
    first, second = (film(body, "webp", str(folder), "same", 7, "") for body in (b"1", b"2"))
    assert [(folder / each["filename"]).read_bytes() for each in (first, second)] == [b"1", b"2"]


def test_a_name_whose_picture_cannot_be_written_stays_free(pack, monkeypatch):
    def fail(*_):
        raise pack.module("ssd_core.errors").SSDError("no room")

    monkeypatch.setattr(pack.module("ssd_core.output.recipe"), "save_png", fail)
    with pytest.raises(Exception, match="no room"):
        pack.run("SSD_SaveImage", images=torch.zeros(1, 8, 8, 3), filename_prefix="none")
    assert not list(pack.stubs.folders.output.glob("none*"))
