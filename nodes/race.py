"""Race."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from comfy_api.latest import io

from ..ssd_core.engine.methods import AR, Method
from ..ssd_core.front.compare import identical_share, side_by_side
from ..ssd_core.front.recipe import to_bytes
from . import inputs, jobs, previews, report, running, schedules, weights
from .errors import noted
from .types import CATEGORY, MethodType


class Race(io.ComfyNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="SSD_Race", display_name="Race (SSD)", category=CATEGORY,
            description="Two methods draw the same prompt with the same seed and are timed "
                        "separately. Shows which is faster, and whether the picture is the same.",
            inputs=[
                inputs.backbone(), inputs.heads(),
                MethodType.Input("method_a", optional=True, tooltip="Left. Default: AR."),
                MethodType.Input("method_b", optional=True,
                                 tooltip="Right. Default: what preset 'auto' of SSD "
                                         "Sampler draws with."),
                *inputs.prompts(), *inputs.sampling(), inputs.size(), inputs.preview(),
                *inputs.more_sampling()],
            outputs=[
                io.Image.Output(display_name="image_a", tooltip="The left picture."),
                io.Image.Output(display_name="image_b", tooltip="The right picture."),
                io.Image.Output(display_name="side_by_side",
                                tooltip="Both, labelled with seconds, passes and verdict."),
                io.String.Output(display_name="report", tooltip="What was measured.")],
            hidden=previews.HIDDEN, **previews.RESENT)

    @classmethod
    def validate_inputs(cls, prompt: str | None = None) -> bool | str:
        return inputs.complaint_about_prompt(prompt) or True

    @classmethod
    @noted
    def execute(cls, backbone: weights.LoadedBackbone, prompt: str, negative: str, size: str,
                preview: str, heads: weights.LoadedHeads | None = None,
                method_a: Method | None = None, method_b: Method | None = None,
                **widgets: int | float | str | bool) -> io.NodeOutput:
        sampling = jobs.sampling_of(widgets)
        racers = [jobs.Job(backbone, heads, method.resolved(backbone.module.preset), sampling,
                           prompt, negative.strip() or None, jobs.size_of(size))
                  for method in (method_a or AR(), method_b or schedules.method_of(schedules.AUTO))]
        done = running.run(racers, previews.Place.of(cls.hidden), preview, equal_to_ar)
        text = "\n\n".join(report.sampled(one.job, one, share)
                           for one, share in zip(done, equal_to_ar(done), strict=True))
        return io.NodeOutput(*(one.output for one in done), sheet(done),
                             f"{text}\n\n{measured(done)}", ui=running.ui_of(done))


def equal_to_ar(outcomes: Sequence[running.Outcome]) -> list[float | None]:
    """Each racer's share of tokens equal to AR's; None where AR did not run."""
    baseline = next((o.finished.tokens for o in outcomes if isinstance(o.job.method, AR)), None)
    return [None if baseline is None else identical_share(o.finished.tokens, baseline)
            for o in outcomes]


def sheet(done: Sequence[running.Outcome]) -> torch.Tensor | object:
    """IMAGE [1, H, W, 3] of both; what stands for a picture that is missing, where one is."""
    missing = next((one.output for one in done if one.images is None), None)
    if missing is not None:
        return missing
    stamps = [report.stamp(one, share) for one, share in zip(done, equal_to_ar(done), strict=True)]
    image = side_by_side([to_bytes(one.images[0]) for one in done], stamps)
    return torch.from_numpy(np.array(image)).float()[None] / 255


def measured(done: Sequence[running.Outcome]) -> str:
    """One line that compares."""
    a, b = (one.finished.stats for one in done)
    seconds = a["seconds"]["total"] / max(b["seconds"]["total"], 1e-9)
    same = identical_share(*(one.finished.tokens for one in done))
    return (f"{done[1].job.label} against {done[0].job.label}: {seconds:.2f} times as fast, "
            f"{a['passes'] / b['passes']:.2f} times fewer passes, {same:.0%} of tokens equal "
            "(measured)")
