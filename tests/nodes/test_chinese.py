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


@pytest.mark.slow
def test_a_report_and_the_notes_beside_the_picture(chinese, backbone):
    first = chinese.run("SSD_Sampler", backbone=backbone, cfg=1.0)
    again = chinese.run("SSD_Sampler", backbone=backbone, cfg=1.0, keep=first[1], keep_rows=3,
                        method=chinese.run("SSD_BaselineMethod", method="rolling")[0])
    for report in (first[3], again[3]):
        assert all_chinese(report), report
    chinese.run("SSD_Sampler", backbone=backbone, cfg=1.0, keep=first[1])
    notes = [note for message in chinese.preview() for note in message.get("notes", [])]
    assert notes and all(map(all_chinese, notes)), notes
    with pytest.raises(chinese.error, match="keep_rows 3：没有可保留"):
        chinese.run("SSD_Sampler", backbone=backbone, keep_rows=3)
    assert "保留：顶部 3 行" in again[3] and "保证：近似" in again[3]


@pytest.mark.parametrize("node", ["SSD_Schedule", "SSD_BaselineMethod"])
def test_a_plan(chinese, backbone, node):
    plan = chinese.run(node, backbone=backbone)[2]
    assert all_chinese(plan) and "a CPU" not in plan, plan


@pytest.mark.slow
def test_a_race_and_what_unfinished_run_gives_back(chinese, backbone):
    report = chinese.run("SSD_Race", backbone=backbone, cfg=1.0)[3]
    assert all_chinese(report.replace("\n\n", "\n")), report
    with pytest.raises(chinese.error, match="没有保留被中断的运行"):
        chinese.module("nodes.unfinished").file().unlink(missing_ok=True)
        chinese.run("SSD_UnfinishedRun")


@pytest.mark.slow
def test_errors_before_and_in_a_run_and_sentences_on_nodes(chinese, backbone):
    assert "提示词为空" in chinese.nodes["SSD_Sampler"].validate_inputs(prompt="")
    assert "这里没有主干模型" in chinese.nodes["SSD_LoadBackbone"].validate_inputs("Mona-Lisa")
    with pytest.raises(chinese.error, match="需要草稿头"):
        chinese.run("SSD_Sampler", backbone=backbone,
                    method=chinese.run("SSD_BaselineMethod", method="strict")[0])
    begun = chinese.run("SSD_StartSeeds", backbone=backbone, count=2, part=1 / SIDE, cfg=1.0)[0]
    chinese.run("SSD_Pick", started=begun)
    assert chinese.server.texts[-1][0].startswith("还没有挑选")


def test_programs_and_other_pages_get_english(chinese, backbone):
    chinese.server.client_id = "a program"
    assert not HAN.search(chinese.run("SSD_Schedule", backbone=backbone)[2])
    chinese.module("nodes.language").remember("a program", "en")
    assert "it is empty" in chinese.nodes["SSD_Sampler"].validate_inputs(prompt="")
