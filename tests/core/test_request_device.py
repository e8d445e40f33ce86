"""A run is planned for the device that will draw, and its recipe draws the same on any other."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import torch
from PIL import Image
from support.mock_backbone import MockBackbone
from support.requests import requested

from ssd_core import Grid, Sampling, methods
from ssd_core.output.recipe import recipe_of
from ssd_core.runs.batch.render import RenderItem, RenderSettings, draw_tasks
from ssd_core.runs.batch.workers import LoadedModels
from ssd_core.runs.request import Request

CPU, CARD = torch.device("cpu"), torch.device("cuda")
BACKBONE = MockBackbone(Grid(24, 4))  # a window is 48 cells on a CPU and 96 on a graphics card
OPEN = [methods.SJD(), methods.GSD(), methods.Rolling(), methods.Wave()]


def request(method, device: torch.device | None) -> Request:
    return requested(BACKBONE, None, method, Sampling(3), "a sun", device=device)


@pytest.mark.parametrize("method", [methods.SJD(), methods.Rolling(), methods.Exact()], ids=str)
def test_a_run_is_planned_for_the_device_that_will_draw(method):
    """ComfyUI keeps weights on the CPU until the run; a plan and a check come before it."""
    resting, here = request(method, CARD), request(method, None)
    resting.check()
    widths = [run.method.for_device(BACKBONE.grid, run.device_type).window
              for run in (resting, here)]
    assert widths == [96, 48]
    assert resting.bytes_needed > here.bytes_needed
    if method.guarantee == "identical":  # the others have their window as a knob
        assert "usual on a graphics card" in resting.plan.tuning
        assert "usual on a CPU" in here.plan.tuning


@pytest.mark.parametrize(("drawn_on", "restored_on"), [(CPU, CARD), (CARD, CPU)])
@pytest.mark.parametrize("method", OPEN, ids=str)
def test_a_recipe_draws_the_same_picture_on_another_type_of_device(method, drawn_on, restored_on):
    first = request(method, drawn_on).run()
    recipe = {**first.recipes()[0], "pixels_sha256": ""}
    assert recipe[method.window_knob] == method.for_device(BACKBONE.grid,
                                                                    drawn_on.type).window
    again = Request.of_recipe(recipe, BACKBONE, None, restored_on)
    assert again.method == first.request.method
    assert torch.equal(again.run().tokens, first.tokens)


def test_the_pictures_of_both_types_of_device_would_differ():
    """So the recipes above need the window."""
    on_cpu, on_card = (request(methods.SJD(), device).run().tokens for device in (CPU, CARD))
    assert not torch.equal(on_cpu, on_card)


@pytest.mark.parametrize("method", OPEN, ids=str)
def test_pictures_of_workers_have_the_window_of_their_device_in_the_recipe(method, monkeypatch):
    """The process that hands out the tasks may have no device of its own."""
    monkeypatch.setattr("ssd_core.runs.batch.render.pixels",
                        lambda _, tokens: [torch.full((24, 4, 3), 0.5)] * len(tokens))
    task, = draw_tasks([RenderItem(0, "a sun", "0.png")], RenderSettings(method, Sampling(3)), 1)
    png = task.run(LoadedModels(BACKBONE))["0.png"]
    with Image.open(io.BytesIO(png)) as image:
        recipe = recipe_of(Path("0.png"), image)
    assert recipe[method.window_knob] == method.for_device(BACKBONE.grid, "cpu").window
