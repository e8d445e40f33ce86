"""load_backbone over every family: by its tensors, in any dtype, without values, offloaded."""

import json

import pytest
import torch
from safetensors.torch import save_file
from support.layouts import LAYOUTS
from support.mock_backbone import MockBackbone, events, tokens
from torch import nn

from ssd_core import SSDError, load_backbone, methods
from ssd_core.backbones.families import families
from ssd_core.backbones.offload import DeviceOffloader
from ssd_core.cli import main
from ssd_core.engine.events import FinalRows
from ssd_core.model.products import Int8Matrix
from ssd_core.output.preview import Preview
from ssd_core.weights.load import pick_dtype

CPU, META = torch.device("cpu"), torch.device("meta")


@pytest.fixture(scope="module")
def plain(folders):
    """Each layout's backbone as it is; tests that change one load their own."""
    return {name: load_backbone(folder, "cpu") for name, folder in folders.items()}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.by_day(3)
def test_every_layout_is_claimed_by_one_family_alone(folders, plain, layout):
    backbone = plain[layout]
    family = next(f for f in families() if type(backbone).__module__.startswith(f.__name__))
    assert layout.split("-")[0].lower() in f"{family.__name__} {backbone.name}"
    assert backbone.dtype == torch.float32 and len(backbone.sha256) == 64
    assert load_backbone(folders[layout].parent, "cpu").sha256 == backbone.sha256
    assert not any(weight.requires_grad for weight in backbone.parameters())


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.by_day(3)
def test_half_precision_takes_the_decoder_and_spares_the_codec(folders, plain, layout):
    backbone = load_backbone(folders[layout], "cpu", "bf16")
    assert {weight.dtype for weight in backbone.decoder.parameters()} == {torch.bfloat16}
    assert {weight.dtype for weight in backbone.picture_codec.parameters()} == {torch.float32}
    assert backbone.code_embedding.dtype == backbone.head.dtype == torch.bfloat16
    assert backbone.sha256 == plain[layout].sha256


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.by_day(4)
def test_without_values_everything_else_is_there(folders, plain, layout):
    backbone, real = load_backbone(folders[layout], "meta"), plain[layout]
    assert {weight.device for weight in backbone.parameters()} == {META}
    assert (backbone.grid, backbone.sizes, backbone.preset, backbone.name, backbone.codes) == (
        real.grid, real.sizes, real.preset, real.name, real.codes)
    for name, weight in backbone.named_parameters():
        assert weight.shape == real.get_parameter(name).shape, name


def test_the_original_and_its_port_are_the_same_backbone(plain):
    assert plain["janus-original"].sha256 == plain["janus-port"].sha256


def test_several_backbones_in_one_place_are_named(folders, tmp_path):
    for name in ("anole", "janus-port"):
        (tmp_path / name).symlink_to(folders[name])
    with pytest.raises(SSDError, match=r"several backbones.*anole.*Janus-Pro"):
        load_backbone(tmp_path)


def test_what_no_family_claims_is_described(tmp_path):
    save_file({"unet.weight": torch.ones(1)}, tmp_path / "model.safetensors")
    with pytest.raises(SSDError, match="no backbone known here, model.safetensors holds tensors "
                                       "such as unet.weight; families: postcard, Janus-Pro"):
        load_backbone(tmp_path)


@pytest.mark.parametrize("name, small, bf16, on_cpu, on_a_card", [
    ("auto", True, True, "float32", "float32"), ("auto", False, True, "bfloat16", "bfloat16"),
    ("auto", False, False, "float32", "float16"), ("int8", True, True, "float32", "float32"),
    ("int8", False, True, "bfloat16", "bfloat16"), ("int8", False, False, "float32", "float16"),
    ("int4", True, True, "bfloat16", "bfloat16"), ("int4", False, False, "bfloat16", "float16"),
    ("fp8", True, True, "bfloat16", "bfloat16"),
    ("fp16", True, True, "float16", "float16"), ("fp32", False, True, "float32", "float32"),
    ("bf16", False, False, "bfloat16", "bfloat16")])
def test_the_dtype_that_is_computed_in(monkeypatch, name, small, bf16, on_cpu, on_a_card):
    monkeypatch.setattr("ssd_core.weights.load.has_bf16", lambda device: bf16)
    assert pick_dtype(name, CPU, small) == getattr(torch, on_cpu)
    assert pick_dtype(name, torch.device("cuda"), small) == getattr(torch, on_a_card)


def test_small_is_counted_in_parameters(folders, monkeypatch):
    monkeypatch.setattr("ssd_core.weights.load.SMALL", 1000)
    for has, dtype in ((True, torch.bfloat16), (False, torch.float32)):
        monkeypatch.setattr("ssd_core.model.processor.capabilities", lambda has=has: {"bf16": has})
        assert load_backbone(folders["anole"], "cpu").dtype == dtype


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.by_day(3)
def test_int8_streams_into_the_decoder_and_the_image_head_alone(folders, plain, layout):
    backbone = load_backbone(folders[layout], "cpu", "int8")
    assert backbone.sha256 == plain[layout].sha256
    quantised = {name for name, module in backbone.named_modules()
                 if isinstance(module, Int8Matrix)}
    assert quantised == {name for name, _ in plain[layout].named_parameters()
                         if (name.startswith("decoder.layers.")
                         and "norm" not in name and "bias" not in name)
                         or name in ("head", "projection")}


# Turns on a small card


class Moved(nn.Module):
    """Remembers where it was sent."""

    def __init__(self, log: list, name: str) -> None:
        super().__init__()
        self.log, self.name = log, name

    def to(self, device):
        self.log.append((self.name, device.type))
        return self


def test_one_is_on_the_device_and_the_others_are_not():
    log = []
    one, two = Moved(log, "one"), Moved(log, "two")
    offloader = DeviceOffloader(META, one, two)
    assert log == [("two", "cpu"), ("one", "meta")]  # room is made before it is taken
    offloader.take(one)
    assert len(log) == 2
    offloader.take(two)
    assert log[2:] == [("one", "cpu"), ("two", "meta")]


class Recorded(DeviceOffloader):
    """Turns that also tell their order; on the CPU nothing needs to move."""

    def __init__(self, *modules: nn.Module) -> None:
        self.taken = []
        super().__init__(CPU, *modules)

    def take(self, module: nn.Module) -> None:
        if module is not self.present:
            self.taken.append(type(module).__name__)
        super().take(module)


def test_decoder_and_codec_take_turns_in_a_run(folders, plain):
    backbone = load_backbone(folders["anole"], "cpu")
    backbone.offloader = Recorded(backbone.decoder, backbone.picture_codec)
    kept = torch.zeros(1, 32, 32, dtype=torch.long)
    def draw(one):
        return tokens(one, methods.Rows(rounds=0), keep=kept, keep_rows=30)

    picture = draw(backbone)
    assert torch.equal(picture, draw(plain["anole"]))
    with torch.inference_mode():
        pixels = backbone.decode(picture)
        assert torch.equal(pixels, plain["anole"].decode(picture))
        backbone.encode(pixels)
    draw(backbone)
    assert backbone.offloader.taken == ["Decoder", "VQGAN", "Decoder"]


def test_views_of_a_backbone_share_its_turns(folders):
    backbone = load_backbone(folders["lumina"], "cpu")
    backbone.offloader = Recorded(backbone.decoder, backbone.picture_codec)
    view = backbone.resized(backbone.sizes[1])
    with torch.inference_mode():
        view.decode(torch.zeros(1, view.grid.rows, view.grid.columns, dtype=torch.long))
    assert backbone.offloader.present is backbone.picture_codec


def test_weights_that_moved_in_a_run_serve_outside_of_it():
    """What moves under inference mode would otherwise be refused by autograd later."""
    layers = nn.Linear(2, 2), nn.Linear(2, 2)
    offloader = DeviceOffloader(CPU, *layers)
    with torch.inference_mode():
        offloader.take(layers[1])
        offloader.take(layers[0])
    layers[0](torch.ones(1, 2)).sum().backward()
    assert layers[0].weight.grad is not None


def test_a_preview_does_not_send_the_decoder_away():
    """Rows are looked up, though decoding them would be quick."""
    backbone = MockBackbone()
    backbone.decode = lambda tokens: torch.zeros(len(tokens), 4, 5, 3)
    for offloader, refined in ((None, True), (object(), False)):
        sent = []
        backbone.offloader = None
        preview = Preview(backbone, methods.AR(), sent.append, label="x")
        preview.decode_seconds = 0.0
        for event in events(backbone, methods.AR()):
            backbone.offloader = offloader if isinstance(event, FinalRows) else None
            preview(event, 1e6)
        rows = [message for message in sent if message["kind"] == "rows"]
        assert rows and {message["refined"] for message in rows} == {refined}


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_offload_without_a_card_is_refused(folders, device):
    with pytest.raises(SSDError, match=f"offload saves memory.*device is {device}"):
        load_backbone(folders["anole"], device, offload=True)


def test_offload_is_for_decoder_and_codec_on_the_chosen_device(folders, monkeypatch):
    """The device without values stands in for a card; nothing is really moved."""
    monkeypatch.setattr("ssd_core.weights.load.NO_CARD", ())
    monkeypatch.setattr("ssd_core.weights.load.DeviceOffloader", lambda *arguments: arguments)
    backbone = load_backbone(folders["anole"], "meta", offload=True)
    assert backbone.offloader == (META, backbone.decoder, backbone.picture_codec)
    assert load_backbone(folders["anole"], "meta").offloader is None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA card")
@pytest.mark.parametrize("dtype", ["fp32", "bf16", "int8"])
def test_offload_on_a_card_draws_the_same_picture(folders, dtype):
    if dtype == "int8":
        pytest.importorskip("torchao", reason="torchao is not installed")
    plain, backbone = (load_backbone(folders["anole"], "cuda", dtype, offload=offload)
                       for offload in (False, True))
    pictures = [tokens(one, methods.Rows(rounds=0)) for one in (plain, backbone)]
    assert torch.equal(*pictures)
    with torch.inference_mode():
        assert torch.equal(*(one.decode(pictures[0]) for one in (plain, backbone)))
    assert backbone.decoder.layers[0].qkv.device.type == "cpu"


def test_a_backbone_without_values_draws_nothing(folders):
    with pytest.raises(SSDError, match="loaded without its values"):
        tokens(load_backbone(folders["anole"], "meta"), methods.AR())


@pytest.mark.parametrize("flags, reason", [
    (("--offload", "--device", "cpu"), "offload saves"), (("--device", "meta"), "without its"),
    (("--dtype", "int3"), "int8, int4")], ids=str)
def test_the_command_line_hands_its_flags_on(folders, flags, reason, capsys):
    out = str(folders["anole"] / "x.png")
    assert main(["generate", "a sun", "--backbone", str(folders["anole"]), "--method", "ar",
                 "--out", out, *flags]) == 2
    assert reason in capsys.readouterr().err


def test_a_plan_reads_a_real_backbones_grid(folders, capsys):
    assert main(["plan", "--backbone", str(folders["lumina"]), "--method", "ar", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ar_passes"] == 32 * 32
