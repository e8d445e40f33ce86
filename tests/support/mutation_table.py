"""Faults that somebody could make, two for each room, and the test that must notice each one."""

from __future__ import annotations

from typing import NamedTuple


class Mutation(NamedTuple):
    """In `file`, `old`, which stands there once, becomes `new`; then `test` fails."""

    room: str
    file: str
    old: str
    new: str
    test: str


CORE, MODELS, HOSTS = "tests/core/test_", "tests/models/test_", "tests/hosts/"
TABLE = [
    Mutation("engine/methods", "ssd_core/engine/methods/ssd.py",
             "passes, stale = passes + 1, step.stop", "passes, stale = passes + 2, step.stop",
             CORE + "methods.py::test_planned_passes_are_taken_when_nothing_converges"),
    Mutation("engine/methods", "ssd_core/engine/methods/window.py",
             "self.start.device + 1 + accepted", "self.start.device + 2 + accepted",
             CORE + "methods.py::test_exact_and_jacobi_are_ar"),
    Mutation("engine", "ssd_core/engine/accept.py",
             "weights = (target_probs - draft_probs).clamp_(min=0)",
             "weights = (target_probs - draft_probs).abs_()",
             CORE + "accept.py::test_equation_5_repairs_from_the_normalised_residual"),
    Mutation("engine", "ssd_core/engine/threads.py",
             "free < self.count or self.free_looks >= TRUSTED", "free < self.count",
             CORE + "threads.py::"
             "test_a_run_gives_way_at_once_and_spreads_out_again_when_it_is_sure"),
    Mutation("model", "ssd_core/model/sampling.py",
             "torch.lerp(uncond, cond, cfg)", "torch.lerp(cond, uncond, cfg)",
             CORE + "sampling.py::test_guidance_formula"),
    Mutation("model", "ssd_core/model/sampling.py",
             "ordered.cumsum(-1) - ordered >= top_p", "ordered.cumsum(-1) >= top_p",
             CORE + "sampling.py::test_top_p_keeps_the_fewest_that_reach_it"),
    Mutation("backbones", "ssd_core/backbones/reading/quantised.py",
             "weight.float() * scale.float().view", "weight.float() + 0 * scale.float().view",
             MODELS + "quantised_files.py::test_a_layer_is_read_back_as_floating_point"),
    Mutation("backbones", "ssd_core/backbones/simplear.py",
             "(?i)cosmos-0\\.1|", "(?i)",
             MODELS + "simplear.py::test_files_of_another_model_are_refused_by_name"),
    Mutation("weights", "ssd_core/weights/convert.py",
             "if size > free:", "if size > free * 2**40:",
             MODELS + "convert.py::test_a_disk_without_room_is_told_before"),
    Mutation("weights", "ssd_core/weights/load.py",
             '"half": "fp16"', '"half": "bf16"',
             MODELS + "load.py::test_a_dtype_and_a_device_have_their_usual_names_too"),
    Mutation("runs", "ssd_core/runs/live.py",
             "self.preview.pause()", "self.preview.refine()",
             CORE + "live.py::test_a_run_that_stopped_early_is_shown_as_paused"),
    Mutation("runs", "ssd_core/runs/live.py",
             """self.result.take(event, seconds)  # first: sending a message may raise an interrupt
        if self.preview is not None:
            self.preview(event, seconds)""",
             """if self.preview is not None:
            self.preview(event, seconds)
        self.result.take(event, seconds)""",
             CORE + "live.py::test_rows_count_though_showing_them_was_interrupted"),
    Mutation("output", "ssd_core/output/packed.py",
             '.astype("<i4")', '.astype(">i4")',
             CORE + "recipe.py::test_token_hash_is_little_endian_int32_in_raster_order"),
    Mutation("output", "ssd_core/output/words.py",
             "if parent is not None and same else ()", "if parent is not None else ()",
             CORE + "words.py"),
    Mutation("cli", "ssd_core/cli/paths.py",
             'path.open("xb")', 'path.open("wb")',
             HOSTS + "test_cli.py::test_default_name_never_overwrites"),
    Mutation("cli", "ssd_core/streams.py",
             "and not isinstance(error, BrokenPipeError)", "",
             HOSTS + "test_cli.py::test_a_closed_pipe_is_no_error_in_the_program"),
    Mutation("train", "ssd_core/train/versions.py",
             "[KEPT - 1 :]", "[KEPT:]", CORE + "own_pictures.py::test_three_versions_are_kept"),
    Mutation("train", "ssd_core/train/own_pictures.py",
             "if known.sha256 != backbone.sha256", 'if known.sha256 == ""',
             CORE + "own_pictures.py::test_only_whole_pictures_of_this_very_backbone_count"),
    Mutation("postcard", "ssd_core/backbones/postcard/__init__.py",
             "[PAD] * (len(prompt_ids) - 2)", "[PAD] * (len(prompt_ids) - 3)",
             MODELS + "load.py::test_prompts_of_the_bundled_kind"),
    Mutation("postcard", "ssd_core/backbones/postcard/words/spelling.py",
             '"three": 3', '"three": 2',
             MODELS + "expansion.py::test_as_many_things_are_drawn_as_were_typed"),
    Mutation("nodes", "nodes/filenames.py",
             'REFUSED.sub("_", path)', "path", HOSTS + "nodes/test_filenames.py"),
    Mutation("nodes", "nodes/filenames.py",
             "name.encode()[:MOST_BYTES]", "name.encode()", HOSTS + "nodes/test_filenames.py"),
    Mutation("studio", "studio/rate_limit.py",
             "self._left(visitor) - self.free + 1", "self._left(visitor) - self.free",
             HOSTS + "studio/test_sharing.py"),
    Mutation("studio", "studio/sharing.py",
             '"/api/history/add", ', "", HOSTS + "studio/test_sharing.py"),
]
