"""Every prompt that comes along is one that `postcard` can draw, by the captions' own rules."""

import ast
import json
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path

import pytest
from support.script_modules import script

from ssd_core import load_backbone
from ssd_core.backbones.postcard.words import world as w
from ssd_lab.postcards import Scene, SceneObject, is_valid
from ssd_lab.postcards.claims import claims

ROOT = Path(__file__).resolve().parents[2]
# Text for backbones with any weights and any vocabulary, to measure long prompts with.
ELSEWHERE = {"lab/benchmarks/memory.py", "lab/benchmarks/peers.py", "lab/benchmarks/true_size.py"}
QUOTED = re.compile(r'"([^"\n]+)"')
CAPTION = re.compile(r"(?:an?|one|two|three|the)(?: [^ ]+){3,}")


def shipped(*endings: str) -> list[Path]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:  # an unpacked archive
        found = (p.relative_to(ROOT).as_posix() for p in ROOT.rglob("*") if p.is_file())
        names = [name for name in found if not name.startswith((".", "outputs/", "runs/"))]
    else:
        names = listed.stdout.splitlines()
    return [ROOT / name for name in names
            if name.endswith(endings) and not name.startswith("tests/") and name not in ELSEWHERE]


def texts_of(node: ast.AST) -> list[str]:
    return [n.value for n in ast.walk(node)
            if isinstance(n, ast.Constant) and isinstance(n.value, str)]


def named_prompt(name: str) -> bool:
    return name.startswith(("PROMPT", "EXAMPLE"))


def in_python(path: Path) -> Iterator[str]:
    """Constants named PROMPT or EXAMPLES, and defaults of whatever is called prompt."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Assign) and named_prompt(getattr(node.targets[0], "id", "")):
            yield from (text for text in texts_of(node.value) if not text.endswith(".txt"))
        if isinstance(node, ast.AnnAssign) and getattr(node.target, "id", "") == "prompt":
            yield from filter(CAPTION.match, texts_of(node.value) if node.value else ())
        if isinstance(node, ast.Call) and "prompt" in [a.value for a in node.args
                                                       if isinstance(a, ast.Constant)]:
            yield from (t for k in node.keywords if k.arg == "default"
                        for t in texts_of(k.value) if t)


def in_text(path: Path) -> Iterator[str]:
    """Captions in quotation marks, but those of a command that names another backbone."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if "--backbone" not in line:
            yield from filter(CAPTION.fullmatch, QUOTED.findall(line))


def values(content: object, key: str) -> Iterator[str]:
    """Texts under this key, however deep."""
    if isinstance(content, dict):
        yield from (v for k, v in content.items() if k == key and isinstance(v, str))
    for part in content.values() if isinstance(content, dict) else content:
        if isinstance(part, (dict, list)):
            yield from values(part, key)


def in_workflow(path: Path) -> Iterator[str]:
    """Prompts and texts shared by samplers; none where another backbone draws."""
    nodes = json.loads(path.read_text(encoding="utf-8"))["nodes"]
    loaders = [node for node in nodes if node["type"] == "SSD_LoadModel"]
    if all("postcard" in node["widgets_values"] for node in loaders):
        yield from values(nodes, "prompt")
        yield from (node["widgets_values"][0] for node in nodes
                    if node["type"] == "PrimitiveStringMultiline")


def in_graphs() -> Iterator[str]:
    graphs = [build() for build in script("tools", "workflow_graphs").GRAPHS.values()]
    for graph in graphs:
        if graph.nodes["model"][2]["model"] == "postcard":
            yield from (widgets[key] for _, _, widgets, _ in graph.nodes.values()
                        for key in ("prompt", "value") if isinstance(widgets.get(key), str))


@cache
def prompts() -> list[tuple[str, str]]:
    """(where, prompt), each once. To read all sources takes seconds: not while collecting."""
    found = [("tools/workflow_graphs.py", text) for text in in_graphs()]
    for ending, read in ((".py", in_python), (".md", in_text)):
        found += [(str(p.relative_to(ROOT)), t) for p in shipped(ending) for t in read(p)]
    found += [(str(p.relative_to(ROOT)), t) for p in shipped(".json")
              if p.parent.name == "workflows" for t in in_workflow(p) if t]  # Finish has none
    return list(dict.fromkeys(found))


def scenes(caption: str) -> Iterator[Scene]:
    """Every scene for which all that the caption claims is true, valid or not."""
    said, about = {}, {}
    for claim in claims(caption):
        (about.setdefault(claim.thing, {}) if claim.thing is not None else said).setdefault(
            claim.attribute, claim.value)
    count = said.pop("count", None)
    assert count is None or count == ("one", "two", "three")[len(about) - 1]
    tables = {"time": w.TIMES, "sky": w.SKIES, "light": w.LIGHTS,
              "light_place": ("none", *w.PLACES), "ridge": w.RIDGES, "ground": w.GROUNDS,
              "path": w.PATHS}
    landscapes = product(*([said[k]] if k in said else v for k, v in tables.items()))
    ranges = {"kind": w.KINDS, "colour": w.COLOURS, "place": w.PLACES}
    kinds = [[SceneObject(*one) for one in product(*([thing[k]] if k in thing else v
                                                     for k, v in ranges.items()))]
             for thing in about.values()]
    things = [tuple(sorted(group, key=lambda t: w.PLACES.index(t.place)))
              for group in product(*kinds)]
    return (Scene(*landscape, group) for landscape in landscapes for group in things)


@pytest.fixture(scope="module")
def postcard():
    return load_backbone("postcard", device="cpu")


def test_prompts_are_found_where_there_are_some():
    places = {where for where, _ in prompts()}
    assert {"README.md", "environment.py", "studio/prompts.py", "nodes/inputs.py",
            "ssd_core/cli/bench.py", "tools/workflow_graphs.py", "lab/benchmarks/script.py",
            "tools/preview_film.py", "workflows/01_quick_start.json",
            "workflows/04_rounds.json", "web/docs/SSD_Sampler.md"} <= places
    assert len({prompt for _, prompt in prompts()}) > 8


def faults(postcard, prompt: str) -> list[str]:
    """What keeps a prompt from being drawn."""
    made = postcard.expand(prompt, None, 0)
    drawn = made.prompt  # without what is denied
    found = [*made.left_out, *postcard.unknown_words(drawn), *postcard.misplaced_words(drawn)]
    if len(claims(drawn)) < 3:
        found.append("says too little to be judged, even filled in")
    if not any(map(is_valid, scenes(prompt))):
        found.append("contradicts the world of the postcards")
    return found


def test_every_prompt_can_be_drawn(postcard):
    told = {(where, prompt): faults(postcard, prompt) for where, prompt in prompts()}
    assert {place: found for place, found in told.items() if found} == {}


@pytest.mark.parametrize(("prompt", "fault"), [
    ("a unicorn , a red house on the left , at sunset", "a unicorn"),
    ("a rocky beach , a red house , at sunset",
     'rocky (known only in "rocky peaks", "rocky mountains")'),
    ("a red balloon on the left , a blue balloon on the right , at sunset",
     "contradicts the world of the postcards")])
def test_faults_of_a_prompt_are_seen(postcard, prompt, fault):
    assert fault in faults(postcard, prompt)


@pytest.mark.parametrize(("prompt", "told"), [
    ("a green sky , a red house", ['green (known only in "green house", "green houses", '
                                   '"green church", ...)']),
    ("a house , red , and a tower in blue", []), ("a house , a red one", []),
    ("红色的房子在左边，湖，日落", []), ("红色的孤独的房子", []), ("a red and white boat", []),
    ("red , a house in snow", ['red (known only in "red house", "red houses", "red church", '
                               '...)']),
    ("绿色的天空，红色的房子", ['绿色 (known only in "绿色的房子", "绿色的教堂", '
                                '"绿色的城堡", ...)']),
    ("a crimson sky", ['crimson (known only in "red house", "red houses", "red church", ...)']),
    ("a rocky beach", ['rocky (known only in "rocky peaks", "rocky mountains")']),
    ("in deep grass", ['deep (known only in "deep snow")']),
    ("snowy hills", ['snowy (known only in "snowy mountains", "snowy peaks")']),
    ("GREEN", ['GREEN (known only in "green house", "green houses", "green church", ...)']),
    ("a postcard of a hosue , two ships , a crimson home", []),
    ("rocky peaks , a golden castle , in a grassy meadow , under soft clouds", [])])
def test_what_is_known_only_beside_others_is_read_and_named_with_its_phrases(
        postcard, prompt, told):
    assert (postcard.misplaced_words(prompt), postcard.unknown_words(prompt)) == (told, [])


@pytest.mark.parametrize(("prompt", "left_out", "without"), [
    ("a red wooden house , a unicorn", ["unicorn"], "a red house , a"),
    ("红色的房子在左边，恐龙", ["恐", "龙"], "红色的房子在左边，"),
    ("a purple chair near the castle", ["chair"], "a purple near the castle")])
def test_what_is_called_unknown_is_what_is_left_out(postcard, prompt, left_out, without):
    assert postcard.unknown_words(prompt) == left_out
    assert postcard.tokenize(prompt) == postcard.tokenize(without)


@pytest.mark.parametrize(("prompt", "meant"), [
    ("a crimson hosue on the left, at sunset", "a red house on the left , at sunset"),
    ("红色的房子在左边", "red house on the left"),
    ("a ship , a ship", "a boat , a boat"),
    ("a unicorn and a red house", "a and a red house")])
def test_other_words_for_a_thing_are_the_same_tokens(postcard, prompt, meant):
    assert postcard.tokenize(prompt) == postcard.tokenize(meant)
