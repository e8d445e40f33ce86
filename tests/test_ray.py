"""Workers by Ray on this machine: a lost worker, a stopped driver, and the pictures of one process.
"""

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from support.mock_backbone import random_heads, tiny_postcard

from ssd_core import Sampling, SSDError, load_backbone, methods
from ssd_core.backbones import postcard
from ssd_core.engine.heads import save_heads
from ssd_core.files import read_safetensors
from ssd_core.front.recipe import read_recipe
from ssd_core.measure.evaluate import evaluate
from ssd_core.train import self_distill
from ssd_core.train.drawn import FORMAT
from ssd_core.workers import ray_crew
from ssd_core.workers.crew import InProcess
from ssd_core.workers.draw import How, ToDraw, draw_tasks
from ssd_core.workers.models import Models
from ssd_core.workers.ray_crew import RayCrew, models_of
from ssd_core.workers.work import missing, work

pytestmark = [pytest.mark.slow, pytest.mark.skipif(
    os.name == "nt", reason="Windows has no SIGKILL to lose a worker by")]
PICTURES = 8


@pytest.fixture(scope="module")
def ray():
    """A small Ray for all tests; crews use it as they find it.

    Workers have one thread, as tests have: codecs round by the number of threads.
    """
    package = ray_crew.ray_of("")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        package.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False,
                     logging_level="error", object_store_memory=80 << 20)
        yield package
    package.shutdown()


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    postcard.save(tiny_postcard(), folder / "backbone.safetensors")
    backbone = load_backbone(folder, "cpu")
    save_heads(random_heads(backbone), folder / "heads.safetensors", backbone, {})
    return Models(str(folder), str(folder), "cpu")


def crew(models, count, say=print):
    known = replace(models, device="meta").load()
    return RayCrew(models, models_of(known), count, say=say)


def tasks():
    pictures = [ToDraw(n, "a red house", f"{n}.png") for n in range(PICTURES)]
    return draw_tasks(pictures, How(methods.Rows(rounds=0), Sampling(seed=3)), 1)


def outcome(folder):
    """What a folder's pictures are: tokens and pixels by name."""
    recipes = {path.name: read_recipe(path) for path in folder.glob("*.png")}
    return {name: (one["tokens"], one["pixels_sha256"]) for name, one in recipes.items()}


class Stopped(Exception):
    pass


def test_a_lost_worker_and_a_stopped_driver_leave_every_picture_once(ray, models, tmp_path,
                                                                     monkeypatch):
    drawn, told = [], []
    first = crew(models, 2, told.append)

    def settle():
        """Lose a worker in the middle of its task, and after three pictures the driver."""
        done = RayCrew.settle(first)
        if done is not None:
            drawn.append(done[0].name)
            if len(drawn) == 1:
                busy, _ = next(iter(first.running.values()))
                os.kill(first.facts[busy].process, signal.SIGKILL)
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
    second = crew(models, 1)
    assert work(tasks(), tmp_path / "ray", second, "render", quiet=True) == PICTURES - 3
    second.close()
    assert not [path for path in (tmp_path / "ray").iterdir() if path.suffix not in (".png",
                                                                                     ".claim")]
    alone = InProcess(models.load())
    assert work(tasks(), tmp_path / "alone", alone, "render", quiet=True) == PICTURES
    assert outcome(tmp_path / "ray") == outcome(tmp_path / "alone")
    assert missing(tasks(), tmp_path / "ray") == []
