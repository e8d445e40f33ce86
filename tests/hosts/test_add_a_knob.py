"""A knob that a method declares is in every host, and nothing else had to be written for it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "support" / "toy_method.py"


@pytest.fixture(scope="module")
def told():
    ran = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True,
                         encoding="utf-8", timeout=300)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


def test_the_method_is_in_the_sampler_s_list_with_a_widget_for_its_knob(told):
    assert told["nodes"] == {
        "knobs": ["stir"], "elsewhere": [], "default": -1, "values": [4, None],
        "tooltip": "How much to stir. -1 = the toy's own."}


def test_the_command_line_has_a_flag_with_its_range(told):
    assert told["cli"]["help"] and told["cli"]["exit"][:2] == [0, 0]
    assert "stir 1: must lie in 2 .. 9" in told["cli"]["error"]


def test_the_app_has_a_control_a_label_and_a_setting(told):
    assert told["app"] == {"control": ["int", None], "sent": ["toy"], "json": [4, None],
                           "method": 4,
                           "label": "stir: How much to stir."}


def test_a_recipe_gives_it_back(told):
    assert told["recipe"] == [4, None]
