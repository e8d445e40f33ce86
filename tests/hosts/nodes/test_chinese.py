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
    first = chinese.run("SSD_Sampler", model=model, cfg=1.0)
    again = chinese.run("SSD_Sampler", model=model, cfg=1.0, picture=first[1], keep_rows=3,
                        method=chinese.run("SSD_Method", method="rolling")[0])
    for report in (first[3], again[3]):
        assert all_chinese(report), report
    chinese.run("SSD_Sampler", model=model, cfg=1.0, picture=first[1], k_h="3",
                method=chinese.run("SSD_Method", method="exact")[0])
    notes = [note for message in chinese.preview() for note in message.get("notes", [])]
    assert notes and all(map(all_chinese, notes)), notes
    with pytest.raises(chinese.error, match="keep_rows 3：没有可保留"):
        chinese.run("SSD_Sampler", model=model, keep_rows=3)
    assert "保留：顶部 3 行" in again[3] and "保证：近似" in again[3]


@pytest.mark.parametrize("method, more", [("ssd", {}), ("exact", {"group": 3})])
def test_a_plan(chinese, model, method, more):
    plan = chinese.run("SSD_Method", model=model, method=method, **more)[2]
    assert all_chinese(plan) and "a CPU" not in plan, plan
    assert ("exact 不使用 group 3" in plan) == bool(more)


def test_a_comparison_and_what_finish_pictures_says_without_a_run(chinese, model):
    table = chinese.run("SSD_Compare", model=model, cfg=1.0)[2]
    notes = [line for line in table.splitlines() if HAN.search(line)]
    assert notes, table
    with pytest.raises(chinese.error, match="没有保留被中断的运行"):
        chinese.module("nodes.unfinished").file().unlink(missing_ok=True)
        chinese.run("SSD_FinishPictures", model=model)


def test_errors_before_and_in_a_run_and_sentences_on_nodes(chinese, headless):
    assert chinese.server.texts[-1][0] == "草稿头：无。\n第一次使用这个模型：正在测量"
    assert "提示词为空" in chinese.nodes["SSD_Sampler"].validate_inputs(prompt="")
    assert "这里没有主干模型" in chinese.nodes["SSD_LoadModel"].validate_inputs("Mona-Lisa")
    with pytest.raises(chinese.error, match="需要草稿头"):
        chinese.run("SSD_Sampler", model=headless,
                    method=chinese.run("SSD_Method", method="strict")[0])
    with pytest.raises(chinese.error, match="width 384：请同时设定 height"):
        chinese.run("SSD_Sampler", model=headless, width="384")
    begun = chinese.run("SSD_StartPictures", model=headless, count=2, part=1 / SIDE, cfg=1.0)[0]
    chinese.run("SSD_PickPictures", started=begun)
    assert chinese.server.texts[-1][0].startswith("还没有挑选")


def test_programs_and_other_pages_get_english(chinese, model):
    chinese.server.client_id = "a program"
    assert not HAN.search(chinese.run("SSD_Method", model=model)[2])
    chinese.module("nodes.language").remember("a program", "en")
    assert "it is empty" in chinese.nodes["SSD_Sampler"].validate_inputs(prompt="")
