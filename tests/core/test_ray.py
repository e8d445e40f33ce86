"""Workers by Ray on this machine: a lost worker, a stopped driver, and the pictures of one process.
"""

import os
import signal
from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch
from support.mock_backbone import random_heads, tiny_postcard

from ssd_core import Sampling, SSDError, load_backbone, methods
from ssd_core.backbones import postcard
from ssd_core.engine.heads import save_heads
from ssd_core.files import read_safetensors
from ssd_core.output.recipe import read_recipe
from ssd_core.runs.batch import workers as ray_crew
from ssd_core.runs.batch.queue import missing, work
from ssd_core.runs.batch.render import RenderItem, RenderSettings, draw_tasks
from ssd_core.runs.batch.workers import LocalWorker, ModelSpec, RayWorkers, models_of
from ssd_core.train import self_distill
from ssd_core.train.picture_files import FORMAT
from ssd_core.train.self_distill import SelfDistillRecipe
from ssd_lab.evaluate.quality import evaluate

PICTURES = 6


@pytest.fixture(scope="module")
def ray():
    """A small Ray for all tests; crews use it as they find it.

    Workers have one thread, as tests have: codecs round by the number of threads.
    """
    package = ray_crew.ray_of("")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setattr(ray_crew, "share", lambda *_: {"num_cpus": 1})
        package.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False,
                     logging_level="error", object_store_memory=80 << 20)
        yield package
    package.shutdown()


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    postcard.save(tiny_postcard(), folder / "backbone.safetensors")
    backbone = load_backbone(folder, "cpu")
    save_heads(random_heads(backbone), folder / "heads.safetensors", backbone, {})
    return ModelSpec(str(folder), str(folder), device="cpu")


def crew(models, count, say=print):
    known = replace(models, device="meta").load()
    return RayWorkers(models, models_of(known), count, say=say)


def tasks():
    pictures = [RenderItem(n, "a red house", f"{n}.png") for n in range(PICTURES)]
    return draw_tasks(pictures, RenderSettings(methods.Rows(rounds=0), Sampling(seed=3)), 1)


def outcome(folder):
    """What a folder's pictures are: tokens and pixels by name."""
    recipes = {path.name: read_recipe(path) for path in folder.glob("*.png")}
    return {name: (one["tokens"], one["pixels_sha256"]) for name, one in recipes.items()}


class Stopped(Exception):
    pass


@pytest.fixture(scope="module")
def one(ray, models):
    """A single worker of its own process."""
    second = crew(models, 1)
    yield second
    second.close()


def test_self_distillation_by_workers_is_that_of_one_process(one, models, tmp_path, monkeypatch):
    @contextmanager
    def given(wanted, *_):
        yield one if wanted.apart else LocalWorker(models.load())

    monkeypatch.setattr(self_distill, "crew_of", given)
    recipe = SelfDistillRecipe(tmp_path / "one", models.backbone, pictures=3, batch=2, seed=4,
                               device="cpu", dtype="fp32")
    told = [self_distill.train(recipe), self_distill.train(replace(recipe, out=tmp_path / "ray",
                                                                   workers=2))]
    assert [result["drawn_now"] for result in told] == [3, 3]
    assert told[0]["passes"] == told[1]["passes"]
    files = [sorted((tmp_path / name / "self-distill").glob("*.safetensors"))
             for name in ("one", "ray")]
    assert [path.name for path in files[0]] == ["000000.safetensors", "000002.safetensors"]
    for mine, theirs in zip(*files, strict=True):
        (tensors, about), (others, theirs_about) = (read_safetensors(path, FORMAT)
                                                    for path in (mine, theirs))
        assert about == theirs_about and set(tensors) == set(others)
        assert all(torch.equal(tensors[name], others[name]) for name in tensors)


@pytest.mark.nightly
def test_evaluation_by_workers_is_that_of_one_process(one, models):
    known = replace(models, device="meta").load()
    wanted = [("ar", methods.AR()), ("rows", methods.Rows(rounds=0))]
    here = models.load()
    rows = [evaluate(loaded.backbone, loaded.heads, wanted, 3, 2, crew=who)
            for loaded, who in ((here, None), (known, one))]
    for mine, theirs in zip(*rows, strict=True):
        assert {**mine, "seconds": 0} == {**theirs, "seconds": 0}


def test_workers_that_hold_something_else_are_refused(one, models, monkeypatch):
    facts = next(iter(one.facts.values()))
    assert one.checked(facts) is facts
    for other, said in ((replace(facts, version="0.0.1"), "its version is 0.0.1"),
                        (replace(facts, models=("0" * 64, None)), "are others than here"),
                        (replace(facts, place=replace(facts.place, dtype=torch.bfloat16)),
                         "computes on cpu in torch.bfloat16")):
        with pytest.raises(SSDError, match=said):
            one.checked(other)
    monkeypatch.setattr(one, "lost", ray_crew.LOSSES)
    with pytest.raises(SSDError, match="4 workers were lost one after the other"):
        one.replace(None, None)


@pytest.mark.nightly
def test_a_lost_worker_and_a_stopped_driver_leave_every_picture_once(ray, one, models, tmp_path,
                                                                     monkeypatch):
    drawn, lost, told = [], [], []
    first = crew(models, 2, told.append)

    def settle():
        """Lose a worker in the middle of its task, and after three pictures the driver."""
        if drawn and first.running and not lost:
            lost.extend(next(iter(first.running.values())))
            os.kill(first.facts[lost[0]].process, signal.SIGKILL)
        done = RayWorkers.settle(first)
        if done is not None:
            drawn.append(done[0].name)
            if len(drawn) == 4:
                raise Stopped
        return done

    monkeypatch.setattr(first, "settle", settle)
    with pytest.raises(Stopped):
        work(tasks(), tmp_path / "ray", first, "render", quiet=True)
    first.close()
    assert len(told) == 1 and told[0].startswith("a worker was lost on ")
    there = outcome(tmp_path / "ray")
    assert sorted(there) == sorted(drawn[:3])  # what the driver had no time to write is not there
    assert work(tasks(), tmp_path / "ray", one, "render", quiet=True) == PICTURES - 3
    assert not [path for path in (tmp_path / "ray").iterdir() if path.suffix != ".png"]
    alone = LocalWorker(models.load())
    assert work(tasks(), tmp_path / "alone", alone, "render", quiet=True) == PICTURES
    assert outcome(tmp_path / "ray") == outcome(tmp_path / "alone")
    assert missing(tasks(), tmp_path / "ray") == []
