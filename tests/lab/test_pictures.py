"""Pictures of the templates and of the first steps obey their prompts, by the checker."""

import pytest
from support.requests import requested
from support.script_modules import script

from ssd_core import Sampling, load_backbone, load_heads, methods
from ssd_core.output.recipe import to_bytes
from ssd_lab.postcards import check
from ssd_lab.postcards.claims import claims


@pytest.fixture(scope="module")
def drawn():
    """drawn(prompt, seed, pictures, keep, keep_rows): tokens, and whether each obeys what is typed.
    """
    backbone = load_backbone("postcard", device="cpu")
    heads = load_heads("postcard", backbone)

    def draw(prompt, seed, pictures=1, keep=None, keep_rows=0):
        result = requested(backbone, heads, methods.Exact(), Sampling(seed=seed), prompt,
                         pictures=pictures, keep=keep, keep_rows=keep_rows, expand=True).run()
        return result.tokens, [all(check(to_bytes(picture.pixels), claims(prompt)))
                               for picture in result.pictures()]
    return draw


@pytest.mark.parametrize("name", ["01_quick_start", *(
    pytest.param(name, marks=pytest.mark.nightly) for name in (
        "02_ar_beside_ssd", "05_start_pick_finish", "06_keep_the_top"))])
def test_pictures_of_a_template_obey_its_prompt(drawn, name):
    graph = script("tools", "workflow_graphs").GRAPHS[name]()
    tokens = {}
    for node, (kind, _, widgets, _) in graph.nodes.items():
        if kind not in ("SSD_Sampler", "SSD_StartPictures"):
            continue
        sources = {slot: a for a, _, b, slot in graph.links if b == node}
        given = {slot: graph.nodes[a][2]["value"] for slot, a in sources.items()
                 if "value" in graph.nodes[a][2]}
        values = {"keep_rows": 0, **widgets, **given}
        tokens[node], obeyed = drawn(values["prompt"], values["seed"],
                                     6 if kind == "SSD_StartPictures" else 1,
                                     tokens.get(sources.get("picture")), values["keep_rows"])
        assert all(obeyed), f"{node}: choose another seed than {values['seed']}"
    assert tokens


def test_the_first_postcard_obeys_its_prompt(drawn):
    environment = script(".", "environment")
    assert drawn(environment.PROMPT, int(environment.SEED))[1] == [True]
