"""Widgets into methods, folders into combos, pictures into tokens, pictures into files."""

from __future__ import annotations

import inspect
import json
import shutil
from functools import partial
from pathlib import Path

import pytest
import torch
from PIL import Image
from support.mock_backbone import random_heads, tiny_postcard

from ssd_core import load_backbone
from ssd_core.backbones import postcard
from ssd_core.engine.heads import save_heads


@pytest.fixture
def schedules(pack):
    return pack.module("nodes.schedules")


SSD_CHOICE = "SSD (k_h, k_v, r, b/i)"


@pytest.mark.parametrize(("title", "name", "most"), [
    ("Faithful", "exact", 576), ("Balanced", "rolling", 72), ("Fast", "rolling", 48)])
def test_a_speed_is_a_method_of_its_own(schedules, title, name, most):
    method, named = schedules.chosen({"method": title})
    assert method.name == name and not named
    plan = schedules.plan_for(method, None)
    assert 0.9 * most < plan.passes_max <= most
    assert f"{plan.passes_max} passes" in schedules.passes_line(plan) or plan.prior_passes


def test_an_unknown_choice_is_told_and_a_knob_of_another_one_too(schedules):
    with pytest.raises(Exception, match="method 'Best': choose one of Faithful, Balanced, Fast"):
        schedules.chosen("Best")
    with pytest.raises(Exception, match="method SJD has no knob k_h: it has window"):
        schedules.chosen({"method": "SJD", "k_h": 3})
    with pytest.raises(Exception, match=r"^k_h 0: must lie in 1 \.\. "):
        schedules.chosen({"method": SSD_CHOICE, "k_h": 0})


def test_the_sampler_starts_with_the_product_s_own_method(schedules, pack):
    listed = next(one for one in pack.schemas["SSD_Sampler"].inputs if one.id == "method")
    assert schedules.chosen({"method": listed.default})[0] == pack.module(
        "ssd_core.engine.methods").default_method()


def test_ssd_takes_its_numbers_and_the_model_s_own_where_there_are_none(schedules, pack):
    preset = pack.module("ssd_core.engine.methods").PAPER_PRESETS["Lumina-mGPT"]

    def drawn(**numbers):
        method, named = schedules.chosen({"method": SSD_CHOICE, **numbers})
        assert named
        method = method.resolve(preset)
        return method.k_h, method.k_v, method.rounds, method.incremental

    assert drawn() == drawn(k_h=-1, k_v=-1) == (5, 2, 5, 4)
    assert drawn(k_v=3) == (5, 3, 5, 4)
    assert drawn(rounds=0, incremental=0) == (5, 2, 0, 0)


# Numbers


@pytest.mark.parametrize(("value", "cfg"), [(-1, None), (-1.0, None), (3, 3.0), (2.5, 2.5)])
def test_minus_one_is_the_model_s_own_number(pack, value, cfg):
    assert pack.module("nodes.requests").sampling_of({"seed": 7, "cfg": value}).cfg == cfg


@pytest.mark.parametrize(("knob", "value", "said"), [
    ("cfg", 0.5, "cfg 0.5: must lie in 1 .. 100"), ("cfg", 101, "cfg 101: must lie in 1 .. 100"),
    ("top_p", 5, "top_p 5: must lie above 0, at most 1"),
    ("method", {"method": "Balanced", "fewer": 1e5}, r"fewer 100000.0: must lie in 1 .. 1,000"),
    ("cfg", float("nan"), "cfg"), ("cfg", float("inf"), "cfg"), ("cfg", "two", "cfg"),
    ("picture_number", 2, "picture_number 2: the batch of 'picture' has 1")])
def test_other_numbers_are_refused_in_one_line(pack, model, knob, value, said):
    types = pack.module("nodes.types")
    run = types.Run(types.TokenPictures.of(
        model.module, torch.zeros(1, 24, 24, dtype=torch.long)))
    with pytest.raises(pack.error, match=f"^{said}") as refused:
        pack.run("SSD_Sampler", model=model, picture=run, keep_rows=3, **{knob: value})
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 200


# Sizes


@pytest.mark.parametrize(("widgets", "asked"), [
    ({}, None), ({"size": "640x384"}, (640, 384)), ({"width": 384, "height": 640}, (384, 640)),
    ({"size": "640x384", "width": 384, "height": 640}, (384, 640))])
def test_width_and_height_take_the_place_of_the_list(pack, widgets, asked):
    plain = {"size": "auto", "width": 0, "height": 0}
    assert pack.module("nodes.requests").asked_size({**plain, **widgets}) == asked


@pytest.mark.parametrize(("widgets", "said"), [
    ({"width": 384}, "width 384: set height, too, or set width to 0"),
    ({"height": 640}, "height 640: set width, too, or set height to 0"),
    ({"width": 400, "height": 380},
     "size 400x380: postcard does not draw it; the nearest are 384x384"),
    ({"width": 640, "height": 300},
     "size 640x300: postcard does not draw it; the nearest are 512x288"),
    ({"width": 8, "height": 8}, "size 8x8: postcard does not draw it; the nearest are ")])
def test_a_pair_that_is_none_says_what_to_do(pack, model, widgets, said):
    for node in ("SSD_Sampler", "SSD_Compare"):
        with pytest.raises(pack.error, match=f"^{said}"):
            pack.run(node, model=model, **widgets)


def test_a_picture_is_drawn_at_the_width_and_height_of_other_nodes(pack, model):
    requests = pack.module("nodes.requests")
    size = requests.asked_size({"size": "auto", "width": 512, "height": 288})
    request = requests.request_of(
        model, pack.module("ssd_core.output.drawing").Drawing("a house", size=size))
    assert request.sized.size == (512, 288)


# Method


def test_every_knob_of_every_choice_arrives(pack, schedules):
    listed = next(one for one in pack.schemas["SSD_Sampler"].inputs if one.id == "method")
    assert len(listed.options) > 10
    for option in listed.options:
        for one in option.inputs:
            values = getattr(one, "options", None) or (
                [False, True] if one.io_type == "BOOLEAN" else [one.min, one.max])
            for value in [v for v in values if v not in (None, -1)]:
                method = schedules.chosen({"method": option.key, one.id: value})[0]
                assert getattr(method, one.id) == value, (option.key, one.id)


def test_a_number_of_another_method_is_its_own(schedules):
    rows = schedules.chosen({"method": "Rows (SSD without heads)", "rounds": 0})[0]
    assert rows.rounds == 0 and rows.incremental is None
    assert schedules.chosen("MTP")[0].rounds == 1
    faithful, named = schedules.chosen({"method": "Faithful", "window": 48})
    assert faithful.window == 48 and named, "it is not the speed alone any more"


def test_the_page_gets_a_method_s_passes_and_the_model_s_numbers_before_anything_runs(
        pack, schedules):
    plan_of = pack.module("nodes.facts").plan_of
    widgets = {"method": SSD_CHOICE, "method.k_h": 5, "method.k_v": 1, "method.rounds": 1,
               "method.incremental": 0}
    plan = schedules.plan_for(schedules.chosen(
        {"method": SSD_CHOICE, "k_h": 5, "k_v": 1, "rounds": 1, "incremental": 0})[0], None)
    for name in ("", "postcard"):
        told = plan_of(widgets, name)
        assert told["plan"].startswith(f"{plan.passes} of 576 passes")
        assert {"k_h", "k_v", "rounds", "incremental"} <= set(told["own"])
    assert "method 'gone': choose one of" in plan_of({"method": "gone"}, "postcard")["plan"]
    assert plan_of({**widgets, "method.k_h": 0}, "")["plan"].startswith("k_h 0: must lie in 1 ..")
    assert pack.manager.loads == []


# Validation


@pytest.mark.parametrize("node", ["SSD_Sampler", "SSD_Compare"])
def test_a_complaint_can_land_on_one_widget_only(pack, node):
    """ComfyUI tells it once for every widget that validate_inputs names."""
    taken = inspect.getfullargspec(pack.nodes[node].validate_inputs)
    assert len(taken.args) == 2 and taken.varkw is None


@pytest.mark.parametrize("node", ["SSD_Sampler", "SSD_Compare"])
def test_a_list_of_prompts_is_refused_in_one_line(pack, node):
    """Programs may send one."""
    said = pack.nodes[node].validate_inputs(prompt=["a tent", "a house", "a boat"])
    assert said == ("it is of type list, not text: send one text, and a request for each prompt of "
                    "a list")


@pytest.mark.parametrize("node", ["SSD_Sampler", "SSD_Compare"])
def test_an_empty_prompt_is_refused_before_anything_runs(pack, node):
    check = pack.nodes[node].validate_inputs
    assert "empty" in check(prompt="  ") and check(prompt="a tent") is True
    assert check() is True  # linked: known only when it runs


# Folders


@pytest.fixture
def registry(pack):
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


def test_found_models_and_heads_are_listed_and_load(pack, registry, root):
    copy(root, "backbone.safetensors", Path(registry["ssd_backbones"], "mine"))
    copy(root, "heads.safetensors", Path(registry["ssd_heads"], "some"))
    assert "mine" in options(pack, "SSD_LoadModel", "model")
    for node in ("SSD_LoadModel", "SSD_LoadHeads"):
        assert options(pack, node, "heads") == ["auto", "none", "some [postcard]"]
    loaded, = pack.run("SSD_LoadModel", model="mine", heads="some [postcard]")
    assert loaded.backbone.path.parent.name == "mine" and loaded.heads.module.k_h >= 1
    assert "mine" in pack.module("nodes.report").doctor()


def test_the_bundled_model_loads_in_int8_and_beside_it_in_fp32(pack):
    stored = pack.module("ssd_core.weights.model_size").stored_dtype
    loaded = {dtype: pack.run("SSD_LoadModel", dtype=dtype)[0]
              for dtype in ("int8", "fp32", "bf16")}
    assert {dtype: stored(each.module) for dtype, each in loaded.items()} == {
        "int8": "int8", "fp32": "fp32", "bf16": "bf16"}
    small, whole = (loaded[dtype].heads.module for dtype in ("int8", "fp32"))
    assert small.sha256 == whole.sha256 and small is not whole
    assert small.horizontal[0].w2.__class__ is not whole.horizontal[0].w2.__class__


def test_foreign_files_are_not_offered_and_doctor_says_why(pack, registry, root):
    copy(root, "heads.safetensors", Path(registry["ssd_backbones"], "wrong"))
    assert "wrong" not in options(pack, "SSD_LoadModel", "model")
    assert "not read: wrong" in pack.module("nodes.report").doctor()


def test_a_link_to_nothing_takes_no_node_down(pack, registry):
    for folder in ("ssd_backbones", "ssd_heads"):
        Path(registry[folder]).mkdir(parents=True, exist_ok=True)
        Path(registry[folder], "gone.safetensors").symlink_to("nowhere.safetensors")
    assert not any("gone" in name for name in options(pack, "SSD_LoadModel", "model"))
    assert not any("gone" in name for name in options(pack, "SSD_LoadHeads", "heads"))


def test_a_known_model_that_is_not_here_is_refused_with_what_to_press(pack, registry):
    line = pack.nodes["SSD_LoadModel"].validate_inputs("Janus-Pro-1B")
    assert "4.2 GB" in line and "press Download on Load Model" in line and len(line) < 150
    with pytest.raises(pack.error, match="Janus-Pro-1B is not here yet"):
        pack.run("SSD_LoadModel", model="Janus-Pro-1B")
    Path(registry["ssd_backbones"], "Janus-Pro-1B").mkdir(parents=True)
    with pytest.raises(pack.error, match=r"lacks files.*press Download on Load Model, or put .*"
                                         r"ssd_backbones.Janus-Pro-1B: pytorch_model\*.bin, "
                                         r"\*.json of https://huggingface.co/deepseek-ai"):
        pack.run("SSD_LoadModel", model="Janus-Pro-1B")


def test_load_model_blames_no_input_but_the_model(pack):
    """ComfyUI repeats a complaint for every input that a check takes."""
    check = inspect.signature(pack.nodes["SSD_LoadModel"].validate_inputs)
    assert list(check.parameters) == ["model"]


def test_unknown_names_are_refused_at_validation_with_folder_and_choices(pack):
    message = pack.nodes["SSD_LoadModel"].validate_inputs("gone")
    assert "ssd_backbones" in message and "postcard" in message
    assert "ssd_heads" in pack.nodes["SSD_LoadHeads"].validate_inputs("gone [postcard]")


def test_auto_heads_are_the_model_s_own_and_the_node_says_which(pack):
    for values in ({}, {"heads": "auto"}):
        pack.server.texts.clear()
        assert pack.run("SSD_LoadModel", **values)[0].heads.path.name == "heads.safetensors"
        *cleared, (text, node, _) = pack.server.texts
        assert all(not before for before, *_ in cleared)
        assert node == "5" and "Draft heads: postcard/heads.safetensors, made for postcard" in text
    bare, = pack.run("SSD_LoadModel", heads="none")
    assert bare.heads is None and "Draft heads: none." in pack.server.texts[-1][0]


def test_auto_heads_are_found_on_the_shelf_and_foreign_ones_are_not(pack, registry, root):
    copy(root, "backbone.safetensors", Path(registry["ssd_backbones"], "mine"))
    load, before = (pack.nodes["SSD_LoadModel"], partial(
        pack.nodes["SSD_LoadModel"].fingerprint_inputs, model="mine", heads="auto"))
    seen = before()
    mine, = pack.run("SSD_LoadModel", model="mine")
    assert mine.heads is None and "no draft heads for postcard" in pack.server.texts[-1][0]
    copy(root, "heads.safetensors", Path(registry["ssd_heads"], "some"))
    assert load.fingerprint_inputs(model="mine", heads="auto") != seen
    assert pack.run("SSD_LoadModel", model="mine")[0].heads.path.parent.name == "some"
    path = mine.backbone.path
    assert pack.module("nodes.folders").heads_path("auto", path, "0" * 64) is None


def test_load_draft_heads_gives_a_model_others(pack, registry, root, model):
    before = pack.nodes["SSD_LoadHeads"].fingerprint_inputs(heads="auto")
    copy(root, "heads.safetensors", Path(registry["ssd_heads"], "some"))
    assert pack.nodes["SSD_LoadHeads"].fingerprint_inputs(heads="auto") != before
    other, = pack.run("SSD_LoadHeads", model=model, heads="some [postcard]")
    assert other.backbone is model.backbone and other.heads.path.parent.name == "some"
    assert "Draft heads: some/heads.safetensors" in pack.server.texts[-1][0]
    assert pack.run("SSD_LoadHeads", model=other)[0] == model
    assert pack.run("SSD_LoadHeads", model=other, heads="none")[0].heads is None


@pytest.mark.parametrize("node", ["SSD_LoadModel", "SSD_LoadHeads"])
def test_heads_of_another_model_are_refused(pack, registry, model, node, tmp_path):
    postcard.save(tiny_postcard(1), tmp_path / "backbone.safetensors")
    foreign = load_backbone(tmp_path / "backbone.safetensors", "cpu")
    save_heads(random_heads(foreign), Path(registry["ssd_heads"], "tiny.safetensors"), foreign, {})
    values = {"model": model} if node == "SSD_LoadHeads" else {}
    with pytest.raises(pack.error, match="made for .*, the loaded backbone postcard"):
        pack.run(node, heads="tiny.safetensors [postcard]", **values)


# Pictures


def encode(pack, model, image, **use):
    """(tokens, rows, report) of the picture."""
    run, mask, rows = pack.run("SSD_Encode", model=model, image=image,
                               use={"use": "a picture", **use})
    assert mask.shape == (1, *run.tokens.pixels.shape[1:3])
    return run.tokens, rows, run.report


def test_encode_and_decode_are_each_others_inverse_in_shape(pack, model):
    image = torch.rand(2, 384, 384, 3)
    tokens, rows, report = encode(pack, model, image=image)
    assert tokens.tokens.shape == (2, 24, 24) and rows == 24 and "as it is" in report
    run = pack.module("nodes.types").Run(tokens)
    assert pack.run("SSD_Finish", model=model, run=run, pictures="all")[0].shape == image.shape


def test_encode_crops_the_middle_when_asked(pack, model):
    image = torch.rand(1, 448, 512, 3)
    cut = encode(pack, model, image=image, fit="crop")
    middle = encode(pack, model, image=image[:, 32:416, 64:448])
    assert torch.equal(cut[0].tokens, middle[0].tokens) and "middle 384x384" in cut[2]
    large = encode(pack, model, image=torch.rand(1, 800, 900, 3),
                     fit="crop")
    assert large[0].tokens.shape == cut[0].tokens.shape and "middle 768x768" in large[2]


@pytest.mark.parametrize("width", [384, 768])
def test_encode_leaves_room_below_when_asked(pack, model, width):
    tokens, rows, report = encode(pack, model, fit="extend below",
                                      image=torch.rand(1, width * 25 // 48, width, 3))
    assert rows == 12 and "12 of 24 rows" in report
    assert tokens.pixels.shape == (1, width, width, 3)


@pytest.mark.parametrize(("fit", "size", "rows"), [
    ("scale and crop", (200, 512), 24), ("scale and crop", (900, 500), 24),
    ("scale to width", (200, 512), 9), ("scale to width", (900, 500), 24)])
def test_encode_scales_when_asked(pack, model, fit, size, rows):
    _, there, report = encode(pack, model, fit=fit,
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
    wide = encode(pack, model, fit="scale and crop", size="640x384",
                    image=torch.rand(1, 384, 384, 3))
    assert wide[0].tokens.shape == (1, 24, 40) and wide[1] == 24 and "640x640" in wide[2]
    tall = encode(pack, model, fit="extend below", size="384x640",
                    image=torch.rand(1, 384, 384, 3))
    assert tall[0].tokens.shape == (1, 40, 24) and tall[1] == 24 and "24 of 40" in tall[2]
    with pytest.raises(pack.error, match="384x640"):
        encode(pack, model, size="8x8", image=torch.rand(1, 8, 8, 3))


def test_a_first_photograph_is_encoded_and_the_node_says_how(pack, model):
    for height, width in ((300, 200), (200, 300), (900, 500)):
        pack.server.texts.clear()
        tokens, rows, report = encode(pack, model, image=torch.rand(1, height, width, 3))
        assert rows == tokens.tokens.shape[1] and "cut the middle" in report
        assert pack.server.texts[-1][0] == report


def test_grey_pictures_are_pictures_and_what_is_none_is_refused_in_one_line(pack, model):
    grey = torch.rand(1, 384, 384, 1)
    colour = encode(pack, model, image=grey.expand(-1, -1, -1, 3))[0]
    for same in (grey, torch.cat((grey, grey * 0), -1), grey[0]):  # with transparency, alone
        tokens = encode(pack, model, image=same)[0]
        assert tokens.tokens.equal(colour.tokens)
        pack.run("SSD_SaveImage", images=same, filename_prefix="grey")
    for wrong, said in ((grey[:0], "there is no picture in it"),
                        (grey * float("nan"), "values that are not numbers")):
        for node, values in (("SSD_Encode", {"model": model, "image": wrong,
                                             "use": "a picture"}),
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
        encode(pack, model, fit=fit, image=torch.rand(1, *size, 3))


def test_tokens_of_another_backbone_are_refused(pack, model):
    kind = pack.module("nodes.types").TokenPictures
    foreign = kind(torch.zeros(1, 24, 24, dtype=torch.long), "other", "0" * 64)
    with pytest.raises(pack.error, match="other"):
        pack.run("SSD_Finish", model=model, run=pack.module("nodes.types").Run(foreign))


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


def test_saved_pictures_carry_workflow_parameters_and_recipe(pack, drawn, model):
    images, run = drawn
    paths, opened = save(pack, images=images, run=run)
    for n, (path, image) in enumerate(zip(paths, opened, strict=True)):
        assert json.loads(image.info["prompt"]) == {"5": {}}
        assert json.loads(image.info["workflow"]) == {"n": 1}
        assert f"Seed: {7 + n}" in image.info["parameters"]
        kept, how = pack.module("ssd_core.output.recipe").tokens_from_png(path, model.module)
        assert torch.equal(kept[0], run.tokens.tokens[n]) and how == "tokens from its recipe"


def test_a_changed_picture_does_not_pass_for_its_tokens(pack, drawn, model):
    images, run = drawn
    paths, _ = save(pack, images=1 - images, run=run)
    _, how = pack.module("ssd_core.output.recipe").tokens_from_png(paths[0], model.module)
    assert "changed" in how


def test_disable_metadata_leaves_nothing(pack, drawn):
    pack.stubs.args.disable_metadata = True
    _, opened = save(pack, images=drawn[0], run=drawn[1])
    assert all(image.info == {} for image in opened)


def test_pictures_are_not_saved_with_another_run(pack, drawn, model):
    other = pack.run("SSD_Sampler", model=model, cfg=1.0, seed=1)
    with pytest.raises(pack.error, match="2 pictures, but the run drew 1: connect images and run"):
        save(pack, images=drawn[0], run=other[1])
