"""Error lines in Chinese: every line that the app can show has one, and its values survive."""

import re
from pathlib import Path

import pytest
from support.error_lines import templates

from ssd_core import Sampling, SSDError
from ssd_core.engine.methods import METHODS
from ssd_core.model.knobs import specs
from ssd_core.output.chinese import catalogue, report_in_chinese, says_something
from studio.errors import in_language
from studio.jobs import fault
from studio.words import CHINESE, ENGLISH

ROOT = Path(__file__).parents[3]
# Only a terminal shows what these raise.
TERMINAL = ("cli/", "train/", "measure/", "runs/batch/", "weights/convert.py", "weights/fetch.py")
LINES, PHRASES = catalogue()["lines"], catalogue()["phrases"]
SLOTS = re.compile(r"\{(\d+)\}")


def raised() -> set[str]:
    """Templates of all that the engine, the nodes and the app raise."""
    core = ROOT / "ssd_core"
    files = [path for path in core.rglob("*.py")
             if not path.relative_to(core).as_posix().startswith(TERMINAL)]
    files += [*(ROOT / "studio").rglob("*.py"), *(ROOT / "nodes").glob("*.py")]
    return {line for path in files for line in templates(path)}


def test_every_error_line_has_its_chinese_and_the_catalogue_has_no_other():
    assert sorted(raised() - set(LINES)) == [], "add these to ssd_core/assets/chinese.json"
    assert sorted(set(LINES) - raised()) == [], "nothing raises these: remove them"


def test_chinese_lines_hold_the_same_values():
    for english, chinese in [pair for kind in catalogue().values() for pair in kind.items()]:
        assert sorted(SLOTS.findall(chinese)) == sorted(SLOTS.findall(english)), english


def test_every_line_is_told_in_its_own_chinese_with_its_values():
    for english, chinese in LINES.items():
        if not says_something(english):
            continue
        values = [f"V{n}" for n in range(len(SLOTS.findall(english)))]
        assert in_language(CHINESE, english.format(*values)) == chinese.format(*values), english


def test_a_line_within_a_line_and_a_phrase_among_the_values_are_told_in_chinese_too():
    line = "x/config.json: hidden_act is 'gelu': only silu is supported"
    assert in_language(CHINESE, line) == "x/config.json：hidden_act 为 'gelu'：只支持 silu"
    line = "k_h 'a': must be a whole number"
    assert in_language(CHINESE, line) == "k_h 'a'：必须是整数"


def test_the_legal_range_of_every_knob_is_told_in_chinese():
    for kind in (Sampling, *METHODS.values()):
        for knob in specs(kind):
            if knob.allowed_text:
                told = in_language(CHINESE, f"{knob.name} 1: {knob.allowed_text}")
                assert not re.search("must|choose", told), told


@pytest.mark.parametrize("line", ["something: that nobody raises", "", "two\nlines: of it"])
def test_what_the_catalogue_does_not_know_stays_as_it_is(line):
    assert in_language(CHINESE, line) == line


def test_a_report_is_told_line_by_line():
    told = report_in_chinese("note: 'no boat' was moved to the negative prompt\n"
                             "guarantee: relaxed\n?")
    assert told == "提示：“no boat”已移到负面提示词\n保证：放宽\n?"


def test_english_pages_keep_the_line():
    for english in LINES:
        assert in_language(ENGLISH, english) == english


def test_faults_of_the_program_are_told_in_chinese():
    assert in_language(CHINESE, fault(ValueError("broken"))).startswith("程序内部错误：ValueError")


def test_what_the_engine_really_raises_is_found(library):
    from support.drawings import wished

    from studio.settings import request_of

    with pytest.raises(SSDError) as refused:
        request_of(wished(method="strict"), library.current.backbone, None)
    assert "需要草稿头" in in_language(CHINESE, str(refused.value))
