"""What nodes say on a Chinese page: notes, errors, reports. Other pages get English."""

from __future__ import annotations

import re

import pytest
from support.small_bundle import SIDE

pytestmark = pytest.mark.usefixtures("small_bundle")
HAN = re.compile("[\u4e00-\u9fff]")


@pytest.fixture
def chinese(pack):
    """The page that queues the runs is Chinese."""
    language = pack.module("nodes.language")
    language.remember(pack.server.client_id, "zh-CN")
    yield pack
    language.PAGES.clear()


def all_chinese(text: str) -> bool:
    return all(HAN.search(line) for line in text.splitlines())


def test_a_report_and_the_notes_beside_the_picture(chinese, model):
    _, first = chinese.run("SSD_Sampler", model=model, cfg=1.0)
    _, again = chinese.run("SSD_Sampler", model=model, cfg=1.0, picture=first, keep_rows=3,
                           method="Balanced")
    for run in (first, again):
        assert all_chinese(run.report), run.report
    chinese.run("SSD_Sampler", model=model, cfg=1.0, picture=first)
    notes = [note for message in chinese.preview() for note in message.get("notes", [])]
    assert notes and all(map(all_chinese, notes)), notes
    with pytest.raises(chinese.error, match="keep_rows 3：没有可保留"):
        chinese.run("SSD_Sampler", model=model, keep_rows=3)
    assert "保留：顶部 3 行" in again.report and "保证：近似" in again.report


@pytest.mark.parametrize("title", ["Faithful", "Balanced", "SSD (k_h, k_v, r, b/i)",
                                   "Leviathan (strict)", "Reference (AR)"])
def test_a_plan(chinese, title):
    plan_of = chinese.module("nodes.facts").plan_of
    plan = plan_of({"method": title}, "postcard")["plan"]
    assert all_chinese(plan) and "a CPU" not in plan, plan
    wrong = plan_of({"method": title, "method.group": "x"}, "postcard")["plan"]
    assert all_chinese(wrong) and wrong != plan, wrong


def test_a_comparison_and_what_finish_says_without_a_run(chinese, model):
    table = chinese.run("SSD_Compare", model=model, cfg=1.0)[-1]
    notes = [line for line in table.splitlines() if HAN.search(line)]
    assert notes, table
    with pytest.raises(chinese.error, match="没有保留被中断的运行"):
        chinese.module("nodes.unfinished").file().unlink(missing_ok=True)
        chinese.run("SSD_Finish", model=model)


def test_errors_before_and_in_a_run_and_sentences_on_nodes(chinese, headless):
    assert chinese.server.texts[-1][0] == "草稿头：无。\n第一次使用这个模型：正在测量"
    assert "提示词为空" in chinese.nodes["SSD_Sampler"].validate_inputs(prompt="")
    assert "这里没有主干模型" in chinese.nodes["SSD_LoadModel"].validate_inputs("Mona-Lisa")
    with pytest.raises(chinese.error, match="需要草稿头"):
        chinese.run("SSD_Sampler", model=headless, method="Leviathan (strict)")
    with pytest.raises(chinese.error, match="width 384：请同时设定 height"):
        chinese.run("SSD_Sampler", model=headless, width=384)
    _, begun = chinese.run("SSD_Sampler", model=headless, batch_size=2, part=1 / SIDE, cfg=1.0)
    chinese.run("SSD_Finish", model=headless, run=begun)
    assert chinese.server.texts[-1][0].startswith("还没有挑选")


def test_programs_and_other_pages_get_english(chinese, model):
    chinese.server.client_id = "a program"
    assert not HAN.search(chinese.run("SSD_Sampler", model=model, cfg=1.0)[1].report)
    chinese.module("nodes.language").remember("a program", "en")
    assert "it is empty" in chinese.nodes["SSD_Sampler"].validate_inputs(prompt="")
