"""Work in batches: each picture once, whatever stops; `ssd render` in one process."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from dataclasses import dataclass
from io import BytesIO

import numpy as np
import pytest
import torch
from PIL import Image
from support.mock_backbone import random_heads, tiny_postcard

from ssd_core import Grid, Sampling, SSDError, load_backbone, methods
from ssd_core.backbones import postcard
from ssd_core.cli import main
from ssd_core.cli.options import Loading
from ssd_core.cli.render import file_name
from ssd_core.cli.session import load_for
from ssd_core.engine.heads import save_heads
from ssd_core.output.drawing import Drawing
from ssd_core.output.recipe import pixels_sha256, read_recipe, recipe_tokens
from ssd_core.runs.batch import render as draw
from ssd_core.runs.batch import workers as ray_crew
from ssd_core.runs.batch.prompts import read_prompts
from ssd_core.runs.batch.queue import TaskLocks, missing, work
from ssd_core.runs.batch.render import DrawTask, RenderItem, RenderSettings, draw_tasks
from ssd_core.runs.batch.workers import LoadedModels, LocalWorker, WorkerOptions, batches, share


@dataclass(frozen=True)
class Note:
    """A task without a model: two files that hold its number."""

    number: int
    log: list
    fails: bool = False
    count: int = 2

    @property
    def name(self):
        return f"part/{self.number}"

    def left(self, there):
        return None if there(f"{self.name}a") and there(f"{self.name}b") else self

    def run(self, loaded):
        if self.fails:
            raise SSDError("no")
        self.log.append(self.number)
        time.sleep(0.002)
        return {f"{self.name}{letter}": str(self.number).encode() for letter in "ab"}


def files_of(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*")
                  if path.is_file())


def done(tasks, folder):
    return work(tasks, folder, LocalWorker(None), "notes", quiet=True)


def test_what_is_there_is_not_done_again_and_a_stopped_run_goes_on(tmp_path):
    log = []
    tasks = [Note(n, log) for n in range(6)]
    with pytest.raises(SSDError, match="no"):
        done([*tasks[:2], Note(2, log, fails=True), *tasks[3:]], tmp_path)
    assert log == [0, 1] and len(missing(tasks, tmp_path)) == 4
    (tmp_path / "part/1b").unlink()
    assert done(tasks, tmp_path) == 10
    assert log == [0, 1, 1, 2, 3, 4, 5]
    assert files_of(tmp_path) == [f"part/{n}{letter}" for n in range(6) for letter in "ab"]
    assert done(tasks, tmp_path) == 0


def test_several_drivers_share_a_folder_and_nothing_is_done_twice(tmp_path):
    log, made = [], []
    tasks = [Note(n, log) for n in range(40)]
    drivers = [threading.Thread(target=lambda: made.append(done(tasks, tmp_path)))
               for _ in range(4)]
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join()
    assert sorted(log) == list(range(40)) and sum(made) == 80
    assert len(files_of(tmp_path)) == 80


def test_a_lock_is_one_process_and_one_task(tmp_path):
    ours, theirs = TaskLocks(tmp_path), TaskLocks(tmp_path)
    assert ours.take("a") and not theirs.take("a") and theirs.take("b")
    ours.release("a")
    assert theirs.take("a")
    theirs.release_all()
    assert list(tmp_path.iterdir()) == [], "an interrupted run leaves no claims"
    assert ours.take("a") and ours.take("b")


def test_a_folder_that_cannot_be_locked_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SSDError, match="cannot be locked there") as told:
        TaskLocks(tmp_path / "file").take("a")
    assert "\n" not in str(told.value)


def test_a_worker_loads_as_the_flags_say(tmp_path):
    """`graphs` included, which once held in this process only."""
    postcard.save(tiny_postcard(), tmp_path / "backbone.safetensors")
    options = Loading(str(tmp_path), device="cpu", dtype="fp32", graphs="off")
    loaded, models = load_for(WorkerOptions(workers=2), options, [methods.AR()])
    assert loaded.backbone.device.type == "meta" and (
        models.options == {**options.options, "lora": []})
    assert models.load().backbone.graphs == "off"


def test_batches_begin_at_the_same_numbers_however_many_there_are():
    assert batches(7, 3) == [range(3), range(3, 6), range(6, 7)]
    assert batches(9, 3)[:2] == batches(7, 3)[:2] and batches(0, 3) == []


def test_every_worker_gets_a_card_or_an_even_part_of_the_cores():
    small, large, cards = {"CPU": 4.0}, {"CPU": 16.0}, {"CPU": 8.0, "GPU": 2.0}
    assert share([small], 1, "auto") == {"num_cpus": 4}
    assert share([small, large], 5, "auto") == {"num_cpus": 4}
    assert share([small], 3, "cpu") == {"num_cpus": 1}
    assert share([cards, cards], 4, "auto") == {"num_gpus": 1, "num_cpus": 1}
    assert share([cards], 4, "cpu") == {"num_cpus": 2}
    for nodes, count, device, said in (([cards], 3, "cuda", "there are 2 cards"),
                                       ([small], 5, "auto", "there are 4 cores"),
                                       ([cards], 1, "cuda:1", "choose cuda")):
        with pytest.raises(SSDError, match=said):
            share(nodes, count, device)


def test_without_ray_several_workers_are_refused_in_one_line(monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    (tmp_path / "p.txt").write_text("a red house")
    flags = ["render", str(tmp_path / "p.txt"), "--out", str(tmp_path / "out"), "--method", "ar"]
    assert main([*flags, "--workers", "2"]) == 2
    assert "need the package ray: pip install ray" in capsys.readouterr().err
    assert main([*flags, "--workers", "0"]) == 2
    assert "workers 0: must be at least 1" in capsys.readouterr().err
    assert not WorkerOptions(workers=1).apart and WorkerOptions(address="10.0.0.5:6379").apart


class DeadRay:
    """A Ray whose tasks never end. hangs: its nodes do not answer either; else none is alive."""

    def __init__(self, hangs):
        self.hangs, self.killed, self.stopped = hangs, [], threading.Event()

    def wait(self, futures, num_returns, timeout):
        time.sleep(timeout)
        return [], futures

    def nodes(self):
        if self.hangs:
            self.stopped.wait()
        return [{"Alive": False, "Resources": {"CPU": 2.0}}]

    def kill(self, worker):
        self.killed.append(worker)
        self.nodes()


@pytest.mark.parametrize("hangs", [False, True])
def test_a_ray_that_is_gone_is_one_line_and_its_batches_are_free(tmp_path, monkeypatch, hangs):
    monkeypatch.setattr(ray_crew, "LOOK", 0.01)
    monkeypatch.setattr(ray_crew, "LIMIT", 0.05)
    crew = object.__new__(ray_crew.RayWorkers)
    crew.ray, crew.count, crew.own, crew.waiting = DeadRay(hangs), 2, False, deque()
    crew.idle, crew.facts, crew.running, crew.loading = [], {}, {}, {"loads": "a", "too": "b"}
    with pytest.raises(SSDError, match="run the same command again, with fewer --workers"):
        work([Note(n, []) for n in range(3)], tmp_path, crew, "notes", quiet=True)
    crew.close()
    assert crew.ray.killed
    crew.ray.stopped.set()
    assert done([Note(n, []) for n in range(3)], tmp_path) == 6


def test_names_of_pictures_are_safe_everywhere():
    assert file_name(7, "a red house , at night!") == "000007-a-red-house-at-night.png"
    assert file_name(0, "../../etc/passwd") == "000000-etc-passwd.png"
    assert file_name(1, "一座红房子。") == "000001-一座红房子.png"
    assert file_name(2, "???") == "000002.png"
    assert file_name(3, "longer " * 99) == f"000003-{'-'.join(['longer'] * 5)}-longe.png"


# Rendering


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A folder with a tiny postcard and its heads."""
    folder = tmp_path_factory.mktemp("tiny")
    postcard.save(tiny_postcard(grid=Grid(12, 12)), folder / "backbone.safetensors")
    backbone = load_backbone(folder, "cpu")
    save_heads(random_heads(backbone), folder / "heads.safetensors", backbone, {})
    return folder


def test_a_picture_is_the_same_in_any_batch_and_after_any_gap():
    loaded = LoadedModels(tiny_postcard(grid=Grid(4, 5)))
    how = RenderSettings(methods.Rows(rounds=0), Sampling(seed=2**64 - 2))
    wanted = [RenderItem(n, prompt, f"{n}.png") for n, prompt in enumerate(["a sun", "red",
                                                                            "a house"])]
    [together] = draw_tasks(wanted, how, 8)
    apart = draw_tasks(wanted, how, 1)
    gap = together.left(lambda name: name == "1.png")
    assert isinstance(gap, DrawTask) and [one.number for one in gap.pictures] == [0, 2]
    assert gap.name == together.name and together.left(lambda name: True) is None
    drawn = [together.run(loaded), {k: v for one in apart for k, v in one.run(loaded).items()},
             gap.run(loaded)]
    tokens = [{name: read(png)["tokens"] for name, png in one.items()} for one in drawn]
    assert tokens[0] == tokens[1] and tokens[2] == {k: tokens[0][k] for k in ("0.png", "2.png")}
    seeds = [read(drawn[0][one.file])["seed"] for one in wanted]
    assert seeds == [2**64 - 2, 2**64 - 1, 0]


def read(png):
    return json.loads(Image.open(BytesIO(png)).info["ssd_recipe"])


def test_a_batch_is_as_large_as_memory_allows():
    how, loaded = RenderSettings(methods.AR(), Sampling()), LoadedModels(tiny_postcard())
    assert draw.at_once(how, "a sun", loaded, None) == draw.MOST_AT_ONCE
    assert draw.at_once(how, "a sun", loaded, 1 << 40) == draw.MOST_AT_ONCE
    assert draw.at_once(how, "a sun", loaded, 1) == 1


def render(tiny, folder, *flags):
    (folder / "p.txt").write_text("# things\na red house\n\n  a sun\nred\n", encoding="utf-8")
    return ["render", str(folder / "p.txt"), "--backbone", str(tiny), "--out",
            str(folder / "out"), "--method", "rows", "--rounds", "0", "--device", "cpu", *flags]


def test_render_draws_a_file_of_prompts_and_goes_on(tiny, tmp_path, capsys):
    assert main(render(tiny, tmp_path, "--each", "2", "--seed", "5", "--json")) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (told["prompts"], told["pictures"], told["drawn_now"]) == (3, 6, 6)
    names = [f"{n:06d}-{word}.png" for n, word in enumerate(
        ["a-red-house", "a-red-house", "a-sun", "a-sun", "red", "red"])]
    assert numbered(tmp_path) == names
    recipes = [read_recipe(tmp_path / "out" / name) for name in names]
    assert [recipe["seed"] for recipe in recipes] == [5, 6, 7, 8, 9, 10]
    assert [recipe["prompt"] for recipe in recipes[::2]] == ["a red house", "a sun", "red"]
    (tmp_path / "out" / names[3]).unlink()
    assert main(render(tiny, tmp_path, "--each", "2", "--seed", "5", "--json")) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["drawn_now"] == 1
    again = read_recipe(tmp_path / "out" / names[3])
    assert torch.equal(recipe_tokens(again), recipe_tokens(recipes[3]))
    assert again["pixels_sha256"] == recipes[3]["pixels_sha256"]
    # One picture drawn by `generate` alone is the same one.
    alone = ["generate", "a sun", "--backbone", str(tiny), "--out", str(tmp_path / "x.png"),
             "--method", "rows", "--rounds", "0", "--device", "cpu", "--seed", "8"]
    assert main(alone) == 0
    assert read_recipe(tmp_path / "x.png")["tokens"] == again["tokens"]
    # Other settings do not pass for these.
    for flags, said in ((("--seed", "6"), "drawn with seed 5, now it is 6"),
                        (("--seed", "5", "--k-v", "2"), "drawn with k_v 1, now it is 2"),
                        (("--seed", "5", "--dtype", "int8"), "give --dtype fp32")):
        assert main(render(tiny, tmp_path, "--each", "2", *flags)) == 2
        assert said in capsys.readouterr().err


@pytest.mark.parametrize(("text", "flags", "said"), [
    (None, (), "gone.txt: no such file"), ("# only\n\n", (), "holds no prompts"),
    ("red\n" + "red house " * 20, (), "line 2: the prompt has 40 words"),
    ("a zeppelin, the sea", ("--strict-words",), "words unknown to postcard: zeppelin"),
    ("red", ("--each", "0"), "each must be at least 1"), ("red", ("--cfg", "0.5"), "cfg 0.5"),
    ("red", ("--size", "64x64"), "size 64x64"), ("red", ("--cfg", "1", "--negative", "sun"),
                                                "a negative prompt needs guidance")])
def test_what_cannot_be_rendered_is_one_line(tiny, tmp_path, capsys, text, flags, said):
    command = render(tiny, tmp_path, *flags)
    path = tmp_path / ("gone.txt" if text is None else "p.txt")
    if text is not None:
        path.write_text(text, encoding="utf-8")
    command[1] = str(path)
    assert main(command) == 2
    line = capsys.readouterr().err.strip()
    assert line.startswith("error: ") and said in line and "\n" not in line
    assert not (tmp_path / "out").exists()


def numbered(folder):
    return sorted(path.name for path in (folder / "out").glob("*.png"))


@pytest.mark.parametrize(("lines", "said"), [
    ("a boat\na red house\na sun\n", "000000-a-red-house.png, picture 0: drawn with prompt "
     "a red house, now it is a boat: the list of prompts has changed: add new ones at its end"),
    ("a red house\n", ""), ("a red house\na sun\nred\n", "")])
def test_a_list_that_has_changed_draws_no_number_twice(tiny, tmp_path, capsys, lines, said):
    command = render(tiny, tmp_path)
    (tmp_path / "p.txt").write_text("a red house\na sun\n", encoding="utf-8")
    assert main(command) == 0
    before = numbered(tmp_path)
    (tmp_path / "p.txt").write_text(lines, encoding="utf-8")
    assert main(command) == (2 if said else 0)
    line = capsys.readouterr().err.splitlines()[-1]
    assert said in line
    new = ["000002-red.png"] if "red\n" in lines.splitlines(keepends=True) else []
    assert numbered(tmp_path) == before + new


@pytest.mark.parametrize("name", ["000001-favourite.png", "favourite.png"])
def test_a_picture_that_was_renamed_is_still_known(tiny, tmp_path, capsys, name):
    command, out = render(tiny, tmp_path, "--json"), tmp_path / "out"
    assert main(command) == 0
    (out / "000001-a-sun.png").rename(out / name)
    Image.new("RGB", (4, 4)).save(out / "of another program.png")
    capsys.readouterr()
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["drawn_now"] == 0
    assert len(numbered(tmp_path)) == 4
    assert main([*command, "--cfg", "3", "--temperature", "0.5"]) == 2
    told = capsys.readouterr().err
    assert "drawn with cfg " in told and "; with temperature 1.0, now it is 0.5: choose" in told


def prompts_in(path, text):
    path.write_text(text, encoding="utf-8")
    return [line.prompt for line in read_prompts(path, tiny_postcard())]


def test_prompts_are_read_from_json_lines(tmp_path):
    text = '{"tag": "x", "prompt": "a red house"}\n\n"a sun"\n{"prompt": "#1 red"}\n'
    assert prompts_in(tmp_path / "p.jsonl", text) == ["a red house", "a sun", "#1 red"]


def test_a_line_tells_seed_negative_and_size_and_what_else_it_holds_is_named(tmp_path):
    """As JSON, and in the form of Automatic1111's web UI."""
    (tmp_path / "p.jsonl").write_text(json.dumps({
        "Prompt": "a sun", "Negative prompt": "red", "seed": 5, "width": 384, "height": 384,
        "CFG scale": 3, "steps": 20, "sed": 1}) + "\n")
    (tmp_path / "p.txt").write_text(
        '# --seed 1\n--prompt "a sun" --negative_prompt "red" --seed 5 --width 384 --height 384 '
        "--cfg_scale 3 --steps 20 --sed 1\na sun\n")
    for name in ("p.jsonl", "p.txt"):
        line = read_prompts(tmp_path / name, tiny_postcard())[0]
        assert (line.prompt, line.seed, line.negative) == ("a sun", 5, "red")
        assert line.settings["size"] == "384x384" and line.settings["cfg"] == 3
        assert [note.partition(", ")[2] for note in line.notes] == [
            f"line {1 + (name == 'p.txt')}: steps: without meaning here",
            f"line {1 + (name == 'p.txt')}: sed: not a setting; did you mean seed?"]
        line.require_shared(Drawing(size=(384, 384), sampling=Sampling(cfg=3.0)))
        with pytest.raises(SSDError, match="cfg 3.0, the run draws all pictures with 2.0"):
            line.require_shared(Drawing(size=(384, 384), sampling=Sampling(cfg=2.0)))


@pytest.mark.parametrize(("name", "text", "said"), [
    ("p.jsonl", '{"prompt": "red", "seed": "x"}', "line 1: seed 'x'"),
    ("p.jsonl", '{"prompt": "red", "width": 9}', "line 1: width, height: give both"),
    ("p.txt", '--prompt red sun', "line 1: 'sun' follows no flag"),
    ("p.txt", '--prompt "red', "line 1: No closing quotation"),
    ("p.txt", '--seed 1', "line 1: has no text"),
    ("p.jsonl", "a red house\n", "line 1: not JSON"),
    ("p.jsonl", '"red"\n{"text": "red"}\n', "line 2: has no text under the key prompt"),
    ("p.jsonl", '{"prompt": " "}', "line 1: has no text"),
    ("p.jsonl", "[1]", "line 1: has no text"),
    ("p.jsonl", '"\\ud800"', "line 1: prompt"), ("p.json", '["red"]', "not read from .json files"),
    ("p.csv", "red", "not read from .csv files")])
def test_what_holds_no_prompts_is_not_drawn_as_words(tmp_path, name, text, said):
    with pytest.raises(SSDError, match=said) as told:
        prompts_in(tmp_path / name, text)
    assert "\n" not in str(told.value)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_a_killed_run_leaves_whole_pictures_and_no_lock(tiny, tmp_path, capsys):
    command = render(tiny, tmp_path, "--each", "5", "--batch", "1", "--json")
    run = subprocess.Popen([sys.executable, "-m", "ssd_core", *command],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    out = tmp_path / "out"
    while len(list(out.glob("*.png"))) < 2:
        assert run.poll() is None
        time.sleep(0.01)
    run.send_signal(signal.SIGKILL)
    run.wait()
    there = {path: path.stat().st_mtime_ns for path in out.glob("*.png")}
    assert 2 <= len(there) < 15
    for path in there:
        recipe = read_recipe(path)
        assert recipe["pixels_sha256"] == pixels_sha256(np.array(Image.open(path)))
    command = render(tiny, tmp_path, "--each", "5", "--batch", "8", "--json")
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["drawn_now"] == 15 - len(there)
    assert all(path.stat().st_mtime_ns == when for path, when in there.items())
    assert len(list(out.glob("*.png"))) == 15
