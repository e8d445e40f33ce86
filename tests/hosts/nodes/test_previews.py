"""Preview messages are stored, for pages that were reloaded and for ComfyUI's cache."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image
from support import comfyui_stub
from support.small_bundle import SIDE

pytestmark = pytest.mark.usefixtures("small_bundle")


@pytest.fixture
def sampled(pack, model, monkeypatch):
    """Run a sampler (or another node) as node 5 of the workflow `flow`."""
    def run(node="SSD_Sampler", graph="flow", **values):
        hidden = SimpleNamespace(unique_id="5", prompt={},
                                 extra_pnginfo={"workflow": {"id": graph}})
        monkeypatch.setattr(pack.nodes[node], "hidden", hidden)
        defaults = {i.id: i.default for i in pack.schemas[node].inputs if i.widget}
        return pack.nodes[node].execute(**{**defaults, "model": model,
                                           "cfg": 1.0, **values})
    return run


def picture(pack, message: dict, n: int = 0) -> np.ndarray:
    path = Path(pack.stubs.folders.output.with_name("temp"), message["files"][n]["filename"])
    return np.asarray(Image.open(path).convert("RGB"))


def test_every_message_names_its_workflow_and_has_a_number_of_its_own(pack, sampled):
    sampled()
    messages = pack.preview()
    assert {message["graph"] for message in messages} == {"flow"}
    serials = [message["serial"] for message in messages]
    assert serials == sorted(set(serials))


def test_the_finished_picture_is_the_node_s_ui_in_a_few_messages(pack, sampled):
    output = sampled(batch_size=2)
    entry, = output.ui["ssd_preview"]
    assert [m["kind"] for m in entry["messages"]] == ["started", "pass", "rows", "finished"]
    rows = entry["messages"][2]
    assert rows["strips"] == [] and (rows["first"], rows["last"]) == (0, SIDE)
    for n in range(2):
        drawn = (output.args[0][n] * 255).round().to(torch.uint8).numpy()
        assert np.array_equal(picture(pack, rows, n), drawn)


def test_one_message_has_the_marks_of_every_cell(pack, sampled):
    judged = sampled().ui["ssd_preview"][0]["messages"][1]
    assert judged["first"] == 0 and [len(line) for line in judged["marks"]] == [SIDE * SIDE]
    assert "a" in judged["marks"][0] and set(judged["marks"][0]) <= set("arcd")


def test_a_comparison_keeps_both_panels(pack, sampled):
    messages = sampled("SSD_Compare").ui["ssd_preview"][0]["messages"]
    assert [m["panel"] for m in messages] == [0] * 4 + [1] * 4


def test_a_page_may_ask_for_what_it_missed(pack, sampled):
    pack.module("nodes.previews")._logs.clear()  # what another file's tests have shown
    messages_for = pack.module("nodes.previews").messages_for
    output = sampled()
    shown = output.ui["ssd_preview"][0]["messages"]
    assert messages_for("flow") == messages_for("flow", "5") == shown
    assert messages_for("flow", "6") == messages_for("another") == []
    sampled(graph="another")
    assert len(messages_for("another")) == len(messages_for("flow")) == 4


def test_a_stopped_run_is_there_as_far_as_it_came(pack, sampled):
    pack.manager.interrupt_at = 3 * SIDE  # later than the first row's last cell
    with pytest.raises(comfyui_stub.InterruptProcessingException):
        sampled(method={"method": "Reference (AR)"})
    messages = pack.module("nodes.previews").messages_for("flow")
    assert next(m["kind"] for m in messages) == "started" and messages[-1]["kind"] == "cancelled"
    painted = [(m["first"], m["last"]) for m in messages if m["kind"] == "rows"]
    assert painted and len(set(painted)) == len(painted)


def test_only_so_many_nodes_are_kept(pack, sampled, monkeypatch):
    previews = pack.module("nodes.previews")
    monkeypatch.setattr(previews, "MAX_LOGS", 2)
    for graph in "abc":
        sampled(graph=graph)
    messages_for = previews.messages_for
    assert not messages_for("a") and messages_for("b") and messages_for("c")


def test_a_full_disk_costs_no_picture(pack, sampled, monkeypatch):
    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    rows = sampled().ui["ssd_preview"][0]["messages"][2]
    assert "files" not in rows and len(rows["strips"]) == 1


def test_without_a_preview_nothing_is_kept(pack, sampled):
    assert sampled(preview=False, graph="dark").ui is None
    assert pack.module("nodes.previews").messages_for("dark") == []


def test_the_ways_to_ask_are_registered(pack):
    pack.module("nodes.routes").register()
    assert set(pack.server.asked) == {
        f"/ssd/{name}" for name in ("cancel", "doctor", "download", "language", "model", "models",
                                   "outlook", "plan", "preview", "quote", "sizes",
                                   "things", "words")}


def test_prompts_of_scripts_have_no_workflow(pack):
    node_ref = pack.module("nodes.previews").NodeRef
    for extra in (None, {}, {"workflow": None}, {"workflow": {}}, {"workflow": []}):
        hidden = SimpleNamespace(unique_id="5", extra_pnginfo=extra)
        ref = node_ref.of(hidden)
        assert ref == node_ref("5", "")
        assert ref.page == bool(extra and extra["workflow"] is not None)


def test_what_another_pack_left_in_torch_changes_no_picture(sampled, monkeypatch):
    """A default device, autocast around everything, an attention that ignores masks."""
    def masked_by_nothing(q, k, v, attn_mask=None, **options):
        return own(q, k, v, **options)

    def tokens():
        return sampled(seed=7)[1].tokens.tokens

    own, expected = F.scaled_dot_product_attention, tokens()
    monkeypatch.setattr(F, "scaled_dot_product_attention", masked_by_nothing)
    torch.set_default_device("meta")
    try:
        with torch.autocast("cpu", torch.bfloat16):
            found = tokens()
    finally:
        torch.set_default_device(None)
    assert torch.equal(found, expected)


@pytest.mark.parametrize(("language", "title"), [("en", "Faithful"), ("zh-CN", "忠实")])
def test_the_title_names_the_quality_and_no_knobs(pack, sampled, monkeypatch, language, title):
    module = pack.module("nodes.language")
    monkeypatch.setattr(module, "PAGES", {pack.server.client_id: language})
    sampled(method={"method": "Faithful"})
    assert pack.preview()[0]["label"] == title


def test_what_was_said_on_a_node_is_cleared_when_it_runs_again(pack, sampled):
    language = pack.module("nodes.language")
    language.show_text("5", "Stopped after 9 of 24 rows.")
    pack.server.texts.clear()
    sampled()
    assert pack.server.texts[0][:2] == ("", "5")
    pack.server.texts.clear()
    sampled(seed=3)
    assert pack.server.texts == [], "nothing was said"
