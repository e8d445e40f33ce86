"""Hostile values for the arguments of every command: it works, or says why not in one line."""

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.mock_backbone import tiny_postcard

from ssd_core import SSDError
from ssd_core.backbones import postcard
from ssd_core.cli import main
from ssd_core.errors import LONGEST, shortened
from ssd_core.files import user_path

# V is the hostile value. A command that works must be quick.
COMMANDS = [line.split() for line in (
    "generate V", "generate boat --negative=V", "generate boat --out=V", "generate boat --like=V",
    "generate boat --backbone=V", "generate boat --heads=V", "generate boat --models-dir=V",
    "generate boat --device=V", "generate boat --dtype=V", "generate boat --graphs=V",
    "generate boat --size=V", "generate boat --method=V", "generate boat --seed=V",
    "generate boat --batch=V", "generate boat --cfg=V", "generate boat --temperature=V",
    "generate boat --window=V", "generate boat --source=V",
    "generate boat --keep=V --keep-rows=22", "generate boat --keep=x.png --keep-rows=V",
    "edit V house --rows=22", "edit x.png V --rows=22", "edit x.png house --mask=V",
    "edit x.png house --box=V", "edit x.png house --rows=V", "edit x.png house --rows=22 --out=V",
    "edit x.png house --from=V", "edit x.png house --rows=22 --suggest=V",
    "vary V", "vary x.png --strength=V", "vary x.png --variation=V", "vary x.png --count=V",
    "vary x.png --variation-seed=V --count=1", "vary x.png --count=1 --out=V",
    "render V", "render prompts.txt --out=V", "render prompts.txt --batch=V",
    "compare boat --methods=V", "compare boat --methods=ar --out=V",
    "plan --grid=V", "plan --backbone=V", "plan --models-dir=V", "plan boat --seed=V",
    "fit V", "fit postcard --device=V", "fit postcard --dtype=V", "fit postcard --batch=V",
    "fit postcard --cfg=V", "fit postcard --size=V", "bench --methods=V", "bench --ar-dtypes=V",
    "bench --repeats=0 --backbone=V", "frontier --methods=V", "frontier --prompts=0 --out=V",
    "convert V", "convert x.png --out=V", "convert . --shard-gb=V", "colours V",
    "download V", "backbones --models-dir=V", "selftest --dtypes=V", "selftest --device=V",
    "evaluate --prompts=V --suite=geneval --out=o", "evaluate --suite=V --out=o",
    "evaluate --suite=coco --prompts=prompts.txt --out=V --backbone=tiny.safetensors",
    "evaluate score V --with=claims",
    "evaluate score . --with=V", "evaluate score . --with=clip --weights=V", "V", "train V",
    "train heads --out=o --backbone=V", "train self-distill --out=o --prompts=V")]
LONG = ("x" * 256, "é" * 200, "a" * 2600, "9" * 2000, "x/" * 2500 + "x.png", "n" * 250 + ".png",
        "a b " * 700, "/" + "y" * 300 + "/z.png")
PLACES = ("~noone/x", "~noone/x.png", "/dev/zero", "/dev/null", "/dev/stdin", "/proc/self/mem",
          "pipe", "pipe.png", "folder", "folder.png", ".", "/", "", "nowhere/x.png", "x.png/y.png",
          "prompts.txt/x", "loop", "loop.png", "https://example.org/x.png")
ODD = ("inf", "nan", "-inf", "-1", "0", "1e400", "1_000", "0x10", "٣", "privateuseone", "hpu",
       "hip", "mkldnn", "cuda:99", "cpu:-1", "meta", ":", "::=", "ssd:=", "a=b", "*", "--", "-",
       " ", "\n", "a\nb\r\nc", "\x1b[31mred", "\u2028x", "\udcff", "\ud83d", "☃", "%s{}",
       "null", "[]")


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A folder with a small model, its picture, prompts, and things that are no files."""
    folder = tmp_path_factory.mktemp("hostile")
    before = os.getcwd()
    os.chdir(folder)
    postcard.save(tiny_postcard(), folder / "tiny.safetensors")
    assert main(["generate", "a boat", "--out", "x.png", "--backbone", "tiny.safetensors"]) == 0
    (folder / "prompts.txt").write_text("a boat\n")
    for name in ("folder", "folder.png"):
        (folder / name).mkdir()
    for name in ("loop", "loop.png"):
        (folder / name).symlink_to(name)
    for name in ("pipe", "pipe.png"):
        os.mkfifo(folder / name)
    yield folder
    os.chdir(before)


def arguments(command: list[str], value: str) -> list[str]:
    """The command with the value, on the small model unless it names another one."""
    line = [value if part == "V" else part.replace("=V", f"={value}") for part in command]
    takes_model = command[0] in ("generate", "edit", "vary", "render", "compare", "bench")
    named = any(part.startswith("--backbone") for part in command)
    return [*line, *(["--backbone=tiny.safetensors"] if takes_model and not named else [])]


def check(capsys, line: list[str]) -> None:
    """The command works, or its last line, and no other, says why not."""
    capsys.readouterr()
    code = main(line)
    told = capsys.readouterr().err.splitlines()
    assert code in (0, 2), line
    assert sum(each.startswith("error:") for each in told) == (code == 2), (line, told)
    assert code == 0 or (told[-1].startswith("error:") and len(told[-1]) <= LONGEST), (line, told)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pipes among its files")
@settings(max_examples=2 * settings().max_examples,
          suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(command=st.sampled_from(COMMANDS),
       value=st.one_of(st.sampled_from(LONG), st.sampled_from(PLACES), st.sampled_from(ODD)))
def test_any_value_works_or_is_refused_in_one_line(here, capsys, command, value):
    check(capsys, arguments(command, value))


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pipes among its files")
@pytest.mark.parametrize(("command", "value"), [
    ("generate boat --models-dir=V", "x" * 256), ("generate boat --backbone=V", "x" * 256),
    ("generate boat --heads=V", "é" * 200), ("generate boat --out=V", f"{'x' * 256}.png"),
    ("render prompts.txt --out=V", "x" * 256), ("convert V", "x" * 256), ("colours V", "x" * 256),
    ("convert . --shard-gb=V", "inf"), ("convert . --shard-gb=V", "nan"),
    ("generate boat --device=V", "privateuseone"), ("generate boat --backbone=V", "~noone/x"),
    ("convert V", "~noone/x"), ("backbones --models-dir=V", "~noone"),
    ("generate boat --out=V", "~noone/x.png"), ("render V", "/dev/zero"), ("render V", "pipe"),
    ("edit V house", "pipe"), ("edit V house", "/dev/zero"), ("vary V", "pipe.png"),
    ("edit x.png house --mask=V", "pipe"), ("generate boat --keep=V --keep-rows=2", "pipe"),
    ("generate V --strict-words", "a" * 2600), ("V", "v" * 2600),
    ("generate boat --size=V", "9" * 2600), ("generate boat --backbone=V", "nul\0.png")])
def test_what_can_never_work_is_refused_in_one_line(here, capsys, command, value):
    line = arguments(command.split(), value)
    check(capsys, line)
    assert main(line) == 2


@given(st.text())
def test_a_line_is_shortened_from_its_middle_on(text):
    line = shortened(text)
    assert len(line) <= LONGEST and len(line.splitlines()) <= 1
    whole = " ".join(text.split())
    assert line == whole or len(whole) > LONGEST


def test_what_is_wrong_and_what_to_do_are_kept():
    line = shortened(f"error: out {'x' * 2000}: cannot be written; choose another place")
    assert line.startswith("error: out xxx") and line.endswith("; choose another place")
    assert str(SSDError("a\nb\u2028c")) == "a b c"


def test_a_path_begins_at_home(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert user_path("~/x") == tmp_path / "x"
