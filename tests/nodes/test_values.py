"""Widgets into methods, folders into combos, pictures into tokens, pictures into files."""

from __future__ import annotations

import inspect
import json
import shutil

import pytest
import torch
from PIL import Image

pytestmark = pytest.mark.slow


@pytest.fixture
def schedules(pack):
    return pack.module("nodes.schedules")


def numbers(k_h=-1, k_v=-1, r=-1, i=-1):
    """Widgets of a schedule; -1 leaves a number to the preset."""
    return {"k_h": k_h, "k_v": k_v, "r": r, "i": i}


@pytest.mark.parametrize(("preset", "name", "most"), [
    ("Faithful", "exact", 576), ("Balanced", "rolling", 72), ("Fast", "rolling", 48)])
def test_a_speed_is_a_method_of_its_own_whatever_the_numbers(schedules, preset, name, most):
    method = schedules.method_of(preset)
    assert method == schedules.method_of(preset, numbers(3, 2, 1, 1)) and method.name == name
    plan, text = schedules.plan_for(method, preset, None)
    assert 0.9 * most < plan.passes_max <= most and f"{plan.passes_max}" in text
    assert schedules.idle_knobs(preset, numbers()) is None
    assert schedules.idle_knobs(preset, numbers(0, 0, 0, 0)) is None  # an older workflow's
    assert "k_h 3, i 1" in schedules.idle_knobs(preset, numbers(k_h=3, incremental=1))
    assert schedules.idle_knobs("custom", numbers(k_h=3, incremental=1)) is None


def test_the_sampler_starts_with_the_products_own_method(schedules, pack):
    assert schedules.method_of(schedules.FAITHFUL) == pack.module(
        "ssd_core.engine.methods").default_method()


def test_the_connected_backbones_schedule_follows_the_backbone(schedules, pack):
    preset = pack.module("ssd_core.engine.methods").PAPER_PRESETS["Lumina-mGPT"]
    own = schedules.method_of(schedules.OWN).resolve(preset)
    assert (own.k_h, own.k_v, own.rounds, own.incremental) == (5, 2, 5, 4)
    assert schedules.method_of("custom", numbers()).resolve(preset) == own
    mine = schedules.method_of(schedules.OWN, numbers(k_v=3)).resolve(preset)
    assert (mine.k_h, mine.k_v, mine.rounds, mine.incremental) == (5, 3, 5, 4)
    literal = schedules.method_of("custom", numbers(rounds=0, incremental=0)).resolve(preset)
    assert (literal.k_h, literal.k_v, literal.rounds, literal.incremental) == (5, 2, 0, 0)


@pytest.mark.parametrize(("preset", "widgets", "knobs"), [
    ("postcard", numbers(), (5, 1, 2, 0)), ("Janus-Pro", numbers(k_h=3), (3, 1, 2, 0)),
    ("Lumina-mGPT", numbers(), (5, 2, 5, 4)), ("Lumina-mGPT", numbers(rounds=9, incremental=1), (5, 2, 9, 1)),
    ("Emu3", numbers(), (5, 1, 6, 0)), ("custom", numbers(5, 1, 0, 0), (5, 1, 0, 0))])
def test_minus_one_is_the_presets_own_and_custom_is_literal(schedules, preset, widgets, knobs):
    method = schedules.method_of(preset, widgets)
    assert (method.k_h, method.k_v, method.rounds, method.incremental) == knobs


@pytest.mark.parametrize("preset", ["postcard", "Janus-Pro", "Lumina-mGPT", "Emu3"])
def test_zeros_of_an_older_workflow_still_mean_the_presets_own(schedules, preset):
    assert schedules.method_of(preset, numbers(0, 0, 0, 0)) == schedules.method_of(preset)
    literal = schedules.method_of("custom", numbers(0, 0, 0, 0))
    assert (literal.k_h, literal.k_v, literal.rounds, literal.incremental) == (None, None, 0, 0)


def test_zeros_of_an_older_baseline_and_sampler_still_mean_their_own(pack):
    old = {"k_h": 0, "k_v": 0, "r": -1, "i": -1, "window": 0}
    for method in ("exact", "rows", "strict", "mtp", "ar"):
        assert pack.run("SSD_Method", method=method, **old)[0] == (
            pack.run("SSD_Method", method=method)[0])
    widgets = {**sampling_widgets(pack), "cfg": 0}
    assert pack.module("nodes.requests").sampling_of(widgets).cfg is None


def sampling_widgets(pack):
    """The sampler's widgets for sampling at their defaults."""
    return {i.id: i.default for i in pack.schemas["SSD_Sampler"].inputs
            if i.id in ("seed", "cfg", "temperature", "top_k", "top_p")}


@pytest.mark.parametrize(("preset", "passes", "paper"), [
    ("Janus-Pro", 77, "80 against 576"), ("Lumina-mGPT", 301 - 16, "281 against 4704")])
def test_a_schedule_plans_on_the_presets_own_grid(pack, preset, passes, paper):
    _, counted, text = pack.run("SSD_Method", preset=preset)
    assert paper in text and f"{counted} passes" in text and counted <= passes


def test_a_plan_follows_the_connected_backbone(pack, model):
    *_, text = pack.run("SSD_Method", preset="Emu3", model=model)
    assert "24x24 (postcard)" in text


def test_r_and_i_of_a_baseline_count_from_zero(pack):
    rows = pack.run("SSD_Method", method="rows", rounds=0, i=-1)[0]
    assert rows.rounds == 0 and rows.incremental is None
    assert pack.run("SSD_Method", method="mtp")[0].rounds == 1


@pytest.mark.parametrize("knob", [
    {"k_h": 2}, {"k_v": 2}, {"rounds": 0}, {"incremental": 3}, {"acceptance": "coupled"}, {"draft": "copy"},
    {"fused_commit": True}])
def test_every_knob_of_rows_arrives(pack, knob):
    plain, changed = (pack.run("SSD_Method", method="rows", **k)[0] for k in ({}, knob))
    assert plain != changed


@pytest.mark.parametrize("knob", [
    {"k_h": 2}, {"k_v": 2}, {"rounds": 1}, {"incremental": 3}, {"acceptance": "coupled"}, {"fused_commit": True},
    {"draft_choice": "argmax"}, {"draft_temperature": 0.5}])
def test_every_knob_of_a_schedule_arrives(pack, knob):
    plain, changed = (pack.run("SSD_Method", preset="postcard", **k)[0] for k in ({}, knob))
    assert plain != changed


def test_the_knobs_of_exact_and_strict_arrive(pack):
    assert pack.run("SSD_Method", method="exact", window=48)[0].window == 48
    assert pack.run("SSD_Method", method="strict", drafts="vertical")[0].drafts == (
        "vertical")


def test_a_plan_that_depends_on_the_picture_says_at_most(pack):
    _, passes, text = pack.run("SSD_Method", method="exact")
    assert passes == 576 and "at most 576" in text


def test_the_page_gets_a_schedule_s_passes_before_anything_runs(pack):
    plan_of = pack.module("nodes.routes").plan_of
    widgets = {"preset": "custom", "k_h": 5, "k_v": 1, "rounds": 1, "incremental": 0}
    for backbone in ("", "postcard"):
        passes = pack.run("SSD_Method", **widgets)[1]
        assert plan_of(widgets, backbone).startswith(f"{passes} passes; AR takes 576")
    assert "preset 'gone': choose one of" in plan_of({"preset": "gone"}, "postcard")
    assert pack.manager.loads == []


@pytest.mark.parametrize("node", [
    "SSD_Sampler", "SSD_Race", "SSD_Compare", "SSD_LoadModel", "SSD_LoadHeads"])
def test_a_complaint_can_land_on_one_widget_only(pack, node):
    """ComfyUI tells it once for every widget that validate_inputs names."""
    taken = inspect.getfullargspec(pack.nodes[node].validate_inputs)
    assert len(taken.args) == 2 and taken.varkw is None


@pytest.mark.parametrize("node", ["SSD_Sampler", "SSD_Race", "SSD_Compare"])
def test_a_list_of_prompts_is_refused_in_one_line(pack, node):
    """Programs may send one."""
    said = pack.nodes[node].validate_inputs(prompt=["a tent", "a house", "a boat"])
    assert said == ("it is of type list, not text: send one text, and a request for each prompt of "
                    "a list")


@pytest.mark.parametrize("node", ["SSD_Sampler", "SSD_Race", "SSD_Compare"])
def test_an_empty_prompt_is_refused_before_anything_runs(pack, node):
    check = pack.nodes[node].validate_inputs
    assert "empty" in check(prompt="  ") and check(prompt="a tent") is True
    assert check() is True  # linked: known only when it runs


def test_no_click_on_cfg_leads_to_something_illegal(pack):
    widget = next(i for i in pack.schemas["SSD_Sampler"].inputs if i.id == "cfg")
    steps = int((widget.max - widget.min) / widget.step)
    sampling = [pack.module("nodes.requests").sampling_of(
        {**sampling_widgets(pack), "cfg": widget.min + n * widget.step}) for n in range(steps + 1)]
    assert [one.cfg for one in sampling[:7]] == [None, None, None, 1.0, 1.0, 1.5, 2.0]
    assert sampling[-1].cfg == 100


# Folders


@pytest.fixture
def shelf(pack):
    """The model folders, empty again afterwards."""
    paths = {name: pack.stubs.folders.paths(name)[-1] for name in ("ssd_backbones", "ssd_heads")}
    yield paths
    for path in paths.values():
        shutil.rmtree(path, ignore_errors=True)


def copy(root, name, folder):
    folder.mkdir(parents=True)
    shutil.copy(root / "ssd_core" / "assets" / "postcard" / name, folder)


def options(pack, node, name):
    schema = pack.nodes[node].define_schema()
    return next(i.options for i in schema.inputs if i.id == name)


def test_found_backbones_and_heads_are_listed_and_load(pack, shelf, root, tmp_path_factory):
    from pathlib import Path

    copy(root, "backbone.safetensors", Path(shelf["ssd_backbones"], "mine"))
    copy(root, "heads.safetensors", Path(shelf["ssd_heads"], "some"))
    assert "mine" in options(pack, "SSD_LoadModel", "backbone")
    assert "some [postcard]" in options(pack, "SSD_LoadHeads", "heads")
    backbone = pack.run("SSD_LoadModel", model="mine")[0]
    assert backbone.path.parent.name == "mine"
    heads = pack.run("SSD_LoadHeads", model=model, heads="some [postcard]")[0]
    assert heads.module.k_h >= 1
    with pytest.raises(pack.error, match="lies beside"):
        pack.run("SSD_LoadHeads", model=model, heads="bundled")
    assert "mine" in pack.run("SSD_Doctor")[0]


def test_the_bundled_backbone_loads_in_int8_and_beside_it_in_fp32(pack):
    stored = pack.module("ssd_core.weights.figures").stored_dtype
    loaded = {dtype: pack.run("SSD_LoadModel", model="postcard", dtype=dtype)[0]
              for dtype in ("int8", "fp32", "bf16")}
    assert {dtype: stored(each.module) for dtype, each in loaded.items()} == {
        "int8": "int8", "fp32": "fp32", "bf16": "bf16"}
    small, whole = (pack.run("SSD_LoadHeads", backbone=loaded[dtype], heads="bundled")[0].module
                    for dtype in ("int8", "fp32"))
    assert small.sha256 == whole.sha256 and small is not whole
    assert small.horizontal[0].w2.__class__ is not whole.horizontal[0].w2.__class__


def test_foreign_files_are_not_offered_and_doctor_says_why(pack, shelf, root):
    from pathlib import Path

    copy(root, "heads.safetensors", Path(shelf["ssd_backbones"], "wrong"))
    assert "wrong" not in options(pack, "SSD_LoadModel", "backbone")
    assert "not read: wrong" in pack.run("SSD_Doctor")[0]


def test_a_link_to_nothing_takes_no_node_down(pack, shelf):
    from pathlib import Path

    for folder in ("ssd_backbones", "ssd_heads"):
        Path(shelf[folder]).mkdir(parents=True, exist_ok=True)
        Path(shelf[folder], "gone.safetensors").symlink_to("nowhere.safetensors")
    assert not any("gone" in name for name in options(pack, "SSD_LoadModel", "backbone"))
    assert not any("gone" in name for name in options(pack, "SSD_LoadHeads", "heads"))


def test_known_backbones_say_where_their_weights_belong(pack, shelf):
    from pathlib import Path

    assert pack.nodes["SSD_LoadModel"].validate_inputs("Janus-Pro-1B") is True
    with pytest.raises(pack.error, match=r"4.2 GB.*DeepSeek.*download Janus-Pro-1B --models-dir.*"
                                         r"ssd_backbones.Janus-Pro-1B: pytorch_model\*.bin, "
                                         r"\*.json of https://huggingface.co/deepseek-ai"):
        pack.run("SSD_LoadModel", model="Janus-Pro-1B")
    Path(shelf["ssd_backbones"], "Janus-Pro-1B").mkdir(parents=True)
    with pytest.raises(pack.error, match="Janus-Pro-1B lacks files"):
        pack.run("SSD_LoadModel", model="Janus-Pro-1B")


def test_unknown_names_are_refused_at_validation_with_folder_and_choices(pack):
    message = pack.nodes["SSD_LoadModel"].validate_inputs("gone")
    assert "ssd_backbones" in message and "postcard" in message
    assert "ssd_heads" in pack.nodes["SSD_LoadHeads"].validate_inputs("gone [postcard]")


def test_auto_heads_are_the_backbones_own_and_the_node_says_which(pack, model):
    assert heads.path.name == "heads.safetensors"
    (text, node, _), = pack.server.texts
    assert node == "5" and "postcard/heads.safetensors" in text


def test_auto_heads_are_found_on_the_shelf_and_foreign_ones_are_not(pack, shelf, root):
    from pathlib import Path

    copy(root, "backbone.safetensors", Path(shelf["ssd_backbones"], "mine"))
    backbone = pack.run("SSD_LoadModel", model="mine")[0]
    before = pack.nodes["SSD_LoadHeads"].fingerprint_inputs(heads="auto")
    assert pack.run("SSD_LoadHeads", model=model)[0] is None
    assert "no draft heads for postcard" in pack.server.texts[-1][0]
    copy(root, "heads.safetensors", Path(shelf["ssd_heads"], "some"))
    assert pack.nodes["SSD_LoadHeads"].fingerprint_inputs(heads="auto") != before
    assert pack.run("SSD_LoadHeads", model=model)[0].path.parent.name == "some"
    assert pack.module("nodes.folders").heads_path("auto", backbone.path, "0" * 64) is None


def test_no_heads_is_a_choice(pack, model):
    assert pack.run("SSD_LoadHeads", model=model, heads="none")[0] is None


# Pictures


def test_encode_and_decode_are_each_others_inverse_in_shape(pack, model):
    image = torch.rand(2, 384, 384, 3)
    tokens, rows, report, _ = pack.run("SSD_ImageToTokens", model=model, image=image)
    assert tokens.tokens.shape == (2, 24, 24) and rows == 24 and "as it is" in report
    assert pack.run("SSD_TokensToImage", model=model, tokens=tokens)[0].shape == image.shape


def test_encode_crops_the_middle_when_asked(pack, model):
    image = torch.rand(1, 448, 512, 3)
    cut = pack.run("SSD_ImageToTokens", model=model, image=image, fit="crop")
    middle = pack.run("SSD_ImageToTokens", model=model, image=image[:, 32:416, 64:448])
    assert torch.equal(cut[0].tokens, middle[0].tokens) and "middle" in cut[2]


def test_encode_leaves_room_below_when_asked(pack, model):
    _, rows, report, _ = pack.run("SSD_ImageToTokens", model=model, fit="extend below",
                                 image=torch.rand(1, 200, 384, 3))
    assert rows == 12 and "12 of 24 rows" in report


@pytest.mark.parametrize(("fit", "size", "rows"), [
    ("scale and crop", (200, 512), 24), ("scale and crop", (900, 500), 24),
    ("scale to width", (200, 512), 9), ("scale to width", (900, 500), 24)])
def test_encode_scales_when_asked(pack, model, fit, size, rows):
    _, there, report, _ = pack.run("SSD_ImageToTokens", model=model, fit=fit,
                                  image=torch.rand(1, *size, 3))
    assert there == rows and report.startswith(f"scaled {size[1]}x{size[0]} to ")


def test_a_picture_is_encoded_at_the_size_that_is_asked_for(pack, model, monkeypatch):
    """On a backbone of several sizes: the bundled one, told what a grid of each size is."""
    grid = type(model.module.grid)

    def apply_size(self):
        width, height = self.size
        self.grid = grid(height // 16, width // 16)

    monkeypatch.setattr(type(model.module), "apply_size", apply_size)
    monkeypatch.setattr(model.module, "sizes", ((384, 384), (640, 384), (384, 640)))
    wide = pack.run("SSD_ImageToTokens", model=model, fit="scale and crop", size="640x384",
                    image=torch.rand(1, 384, 384, 3))
    assert wide[0].tokens.shape == (1, 24, 40) and wide[1] == 24 and "640x640" in wide[2]
    tall = pack.run("SSD_ImageToTokens", model=model, fit="extend below", size="384x640",
                    image=torch.rand(1, 384, 384, 3))
    assert tall[0].tokens.shape == (1, 40, 24) and tall[1] == 24 and "24 of 40" in tall[2]
    with pytest.raises(pack.error, match="384x640"):
        pack.run("SSD_ImageToTokens", model=model, size="8x8", image=torch.rand(1, 8, 8, 3))


def test_a_first_photograph_is_encoded_and_the_node_says_how(pack, model):
    for height, width in ((300, 200), (200, 300), (900, 500)):
        pack.server.texts.clear()
        tokens, rows, report, _ = pack.run("SSD_ImageToTokens", model=model,
                                           image=torch.rand(1, height, width, 3))
        assert rows == tokens.tokens.shape[1] and "cut the middle" in report
        assert pack.server.texts[-1][0] == report


def test_grey_pictures_are_pictures_and_what_is_none_is_refused_in_one_line(pack, model):
    grey = torch.rand(1, 384, 384, 1)
    colour = pack.run("SSD_ImageToTokens", model=model, image=grey.expand(-1, -1, -1, 3))[0]
    for same in (grey, torch.cat((grey, grey * 0), -1), grey[0]):  # with transparency, alone
        tokens = pack.run("SSD_ImageToTokens", model=model, image=same)[0]
        assert tokens.tokens.equal(colour.tokens)
        pack.run("SSD_SaveImage", images=same, filename_prefix="grey")
    for wrong, said in ((grey[:0], "there is no picture in it"),
                        (grey * float("nan"), "values that are not numbers")):
        for node, values in (("SSD_ImageToTokens", {"model": model, "image": wrong}),
                             ("SSD_SaveImage", {"images": wrong}),
                             ("SSD_EditByWords", {"model": model, "image": wrong})):
            with pytest.raises(pack.error, match=f"^images?: .*{said}"):
                pack.run(node, **values)


def test_a_scaled_picture_keeps_its_shape(pack):
    """A white square stays as wide as tall, in the middle."""
    image = torch.zeros(1, 300, 600, 3)
    image[:, 100:200, 250:350] = 1
    fitted_to = pack.module("nodes.fitting").fitted_to
    square = fitted_to(image, (384, 384), 24, "scale and crop")[0][0, ..., 0] > 0.5
    assert square.any(0).sum() == square.any(1).sum() == 128
    assert abs(square.any(0).nonzero().float().mean() - 191.5) < 1


@pytest.mark.parametrize(("fit", "size"), [
    ("refuse", (384, 512)), ("crop", (200, 512)), ("extend below", (200, 512))])
def test_encode_resizes_only_when_asked(pack, model, fit, size):
    with pytest.raises(pack.error, match="choose fit 'scale and crop'"):
        pack.run("SSD_ImageToTokens", model=model, fit=fit, image=torch.rand(1, *size, 3))


def test_tokens_of_another_backbone_are_refused(pack, model):
    kind = pack.module("nodes.types").TokenPictures
    foreign = kind(torch.zeros(1, 24, 24, dtype=torch.long), "other", "0" * 64)
    with pytest.raises(pack.error, match="other"):
        pack.run("SSD_TokensToImage", model=model, tokens=foreign)


# Files


@pytest.fixture
def drawn(small_bundle, pack, model):
    return pack.run("SSD_Sampler", model=model, cfg=1.0, batch_size=2)


def save(pack, **values):
    """The saved pictures, opened."""
    output = pack.nodes["SSD_SaveImage"].execute(filename_prefix="a/b", **values)
    assert output.args == (values["images"],), "they are passed on"
    folder = pack.stubs.folders.output
    paths = [folder / entry["subfolder"] / entry["filename"] for entry in output.ui["images"]]
    return paths, [Image.open(path) for path in paths]


def test_saved_pictures_carry_workflow_parameters_and_recipe(pack, drawn, backbone):
    images, tokens, stats, *_ = drawn
    paths, opened = save(pack, images=images, tokens=tokens, stats=stats)
    for n, (path, image) in enumerate(zip(paths, opened, strict=True)):
        assert json.loads(image.info["prompt"]) == {"5": {}}
        assert json.loads(image.info["workflow"]) == {"n": 1}
        assert f"Seed: {7 + n}" in image.info["parameters"]
        kept, how = pack.module("ssd_core.output.recipe").tokens_from_png(path, model.module)
        assert torch.equal(kept[0], tokens.tokens[n]) and how == "tokens from its recipe"


def test_a_changed_picture_does_not_pass_for_its_tokens(pack, drawn, backbone):
    images, _, stats, *_ = drawn
    paths, _ = save(pack, images=1 - images, stats=stats)
    _, how = pack.module("ssd_core.output.recipe").tokens_from_png(paths[0], model.module)
    assert "changed" in how


def test_disable_metadata_leaves_nothing(pack, drawn):
    pack.stubs.args.disable_metadata = True
    _, opened = save(pack, images=drawn[0], tokens=drawn[1], stats=drawn[2])
    assert all(image.info == {} for image in opened)


def test_parts_of_different_runs_are_not_saved_together(pack, drawn, backbone, heads):
    other = pack.run("SSD_Sampler", model=model, cfg=1.0, seed=1)
    with pytest.raises(pack.error, match="2 pictures"):
        save(pack, images=drawn[0], stats=other[2])
    with pytest.raises(pack.error, match="different runs"):
        save(pack, images=other[0], tokens=drawn[1], stats=other[2])


@pytest.mark.parametrize(("name", "widgets", "note"), [
    ("sjd", {"k_h": 3, "window": 8}, "sjd does not use k_h 3"),
    ("ar", {"fused_commit": True, "rounds": 0}, "ar does not use r 0, fused_commit on"),
    ("mtp", {"k_h": 3}, None), ("sjd", {"k_h": -1, "acceptance": "residual"}, None)])
def test_what_a_method_makes_nothing_of_is_named(schedules, name, widgets, note):
    assert schedules.without_effect(name, widgets) == note


def test_a_connected_method_names_only_the_widgets_that_were_set(pack, schedules):
    chosen, method = pack.module("nodes.requests").chosen_method, schedules.AR()
    untouched = {"k_h": -1, "k_v": -1, "r": -1, "i": -1}
    assert chosen(method, "Faithful", untouched) == (method, [])
    assert chosen(method, "Faithful", dict.fromkeys(untouched, 0)) == (method, [])  # an older one
    assert chosen(method, "Fast", {**untouched, "rounds": 2})[1] == [
        "the connected method draws: quality Fast, r 2 of this node are not used"]


def test_a_widget_names_the_methods_of_its_knob_for_the_page(pack):
    inputs = {one.id: one for one in pack.schemas["SSD_Method"].inputs if one.widget}
    assert inputs["k_h"].extra_dict["methods"] == ["mtp", "strict", "rows", "hawk", "lantern"]
    assert inputs["r"].extra_dict["methods"] == ["mtp", "rows"]
    assert {name for name, one in inputs.items() if not hasattr(one, "extra_dict")} == {"method"}


def test_the_node_shows_its_plan_and_what_has_no_effect(pack):
    pack.server.client_id = "page"
    text = pack.run("SSD_Method", method="sjd", k_h=3)[2]
    assert text.endswith("note: sjd does not use k_h 3")
    assert [line for line, *_ in pack.server.texts][-1] == text
