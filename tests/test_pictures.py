"""Pictures of the templates and of the first steps obey their prompts, by the checker."""

import pytest
from support.script_modules import script

from ssd_core import Sampling, load_backbone, load_heads, methods
from ssd_core.output.recipe import to_bytes
from ssd_core.postcards import check, claims
from ssd_core.runs.request import Request

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def drawn():
    """drawn(prompt, seed, pictures, keep, keep_rows): tokens, and whether each obeys what is typed.
    """
    backbone = load_backbone("postcard", device="cpu")
    heads = load_heads("postcard", backbone)

    def draw(prompt, seed, pictures=1, keep=None, keep_rows=0):
        result = Request(backbone, heads, methods.Exact(), Sampling(seed=seed), prompt,
                         pictures=pictures, keep=keep, keep_rows=keep_rows, expand=True).run()
        return result.tokens, [all(check(to_bytes(one), claims(prompt)))
                               for one in result.pictures()]
    return draw


@pytest.mark.parametrize("name", ["1_quick_start", *(
    pytest.param(name, marks=pytest.mark.nightly) for name in (
        "2_race_ar_vs_ssd", "3_keep_the_top_redo_the_rest", "4_start_seeds_and_finish"))])
def test_pictures_of_a_template_obey_its_prompt(drawn, name):
    graph = script("tools", "workflow_graphs").GRAPHS[name]()
    tokens = {}
    for node, (kind, _, widgets, _) in graph.nodes.items():
        if kind not in ("SSD_Sampler", "SSD_StartSeeds", "SSD_Race"):
            continue
        sources = {slot: a for a, _, b, slot in graph.links if b == node}
        rows = graph.nodes[sources["keep_rows"]][2]["value"] if "keep_rows" in sources else 0
        tokens[node], obeyed = drawn(widgets["prompt"], widgets["seed"],
                                     6 if kind == "SSD_StartSeeds" else 1,
                                     tokens.get(sources.get("keep")), rows)
        assert all(obeyed), f"{node}: choose another seed than {widgets['seed']}"
    assert tokens


def test_the_first_postcard_obeys_its_prompt(drawn):
    environment = script(".", "environment")
    assert drawn(environment.PROMPT, int(environment.SEED))[1] == [True]
