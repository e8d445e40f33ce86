"""The limits of widgets hold for values that come by a link, on every node, before anything runs.

ComfyUI checks only what is typed; here nodes are called as ComfyUI calls them, with whatever a link
brings.
"""

from __future__ import annotations

import inspect
import logging

import pytest

NUMBERS = {"INT": int, "FLOAT": float}


def numbers(pack):
    """Every number of every node, with its schema."""
    return [(node, widget) for node, schema in pack.schemas.items() for widget in schema.inputs
            if widget.widget and widget.io_type in NUMBERS]


def refusal(pack, node, **values) -> str:
    """What a node says of values; it is given nothing else that it could start with."""
    asked = dict.fromkeys(inspect.signature(pack.nodes[node].execute).parameters)
    defaults = {i.id: i.default for i in pack.schemas[node].inputs if i.widget}
    with pytest.raises(pack.error) as refused:
        pack.nodes[node].execute(**{**asked, **defaults, **values})
    said = str(refused.value)
    assert "\n" not in said and len(said) < 300
    return said


def test_no_number_of_any_node_passes_its_limits_by_a_link(pack):
    found = numbers(pack)
    assert len(found) > 30
    for node, widget in found:
        wrong = [limit + step for limit, step in ((widget.min, -1), (widget.max, 1))
                 if limit is not None]
        for value in (*wrong, float("nan"), float("inf"), "7", True):
            said = refusal(pack, node, **{widget.id: NUMBERS[widget.io_type](value)
                                          if value in wrong else value})
            assert said.startswith(f"{widget.id} "), (node, said)


def test_a_whole_number_with_a_point_arrives_without_it(pack):
    taken = pack.module("nodes.limits").complete(pack.nodes["SSD_Sampler"], {
        "batch_size": 3.0, "top_k": -1.0, "cfg": -1.0, "seed": 7.0})
    assert [type(taken[name]) for name in ("batch_size", "seed")] == [int, int]
    assert (taken["batch_size"], taken["top_k"], taken["cfg"]) == (3, -1, -1)


def test_a_linked_batch_is_refused_before_it_is_taken_apart(pack, model):
    assert refusal(pack, "SSD_Sampler", model=model, batch_size=4096, method={"method": "Fast"},
                   prompt="a house") == "batch_size 4096: must lie in 1 .. 64"
    request = pack.module("nodes.requests").request_of(
        model, pack.module("ssd_core.output.drawing").Drawing("a house", pictures=4096))
    with pytest.raises(pack.error, match="pictures 4096: must be at most 64"):
        request.parts()


@pytest.mark.parametrize(("node", "values", "sentence"), [
    ("SSD_Sampler", {"method": {"method": "Best"}}, "method 'Best': choose one of Faithful"),
    ("SSD_Sampler", {"prompt": " "}, "prompt: it is empty"),
    ("SSD_Sampler", {"prompt": 5}, "prompt: it is of type int"),
    ("SSD_Sampler", {"preview": 1}, "preview '1': must be"),
    ("SSD_SaveImage", {"filename_prefix": 5}, "filename_prefix '5': must be")])
def test_lists_and_texts_are_checked_alike(pack, node, values, sentence):
    assert refusal(pack, node, **values).startswith(sentence)


@pytest.mark.parametrize("node", ["SSD_LoadModel", "SSD_LoadHeads", "SSD_LoadLora",
                                  "SSD_LoadPicture"])
def test_a_name_of_another_type_is_refused_before_anything_runs(pack, node):
    """ComfyUI leaves the check of these lists to the node, and hands it whatever was sent."""
    for wrong in (1.5, True, ["a"], {"a": 1}):
        assert "not text" in pack.nodes[node].validate_inputs(wrong)


def test_what_is_not_a_number_is_refused_before_it_reaches_the_history(pack):
    """ComfyUI accepts NaN for a number, and its history is then no JSON."""
    handler = pack.module("nodes.limits").without_nan
    sent = {"prompt": {"1": {"class_type": "SSD_Sampler",
                             "inputs": {"temperature": float("nan"), "cfg": 2.0, "rounds": 3}},
                       "2": {"class_type": "KSampler", "inputs": {"cfg": float("inf")}}}}
    taken = handler(sent)["prompt"]
    with pytest.raises(ValueError, match="nan is not a number"):
        float(taken["1"]["inputs"]["temperature"])  # what ComfyUI tries
    assert taken["1"]["inputs"]["cfg"] == 2.0 and taken["2"]["inputs"]["cfg"] == float("inf")
    assert handler({}) == {}


def test_the_console_has_a_refusal_in_one_line_and_other_errors_whole(pack, caplog):
    import traceback

    def logged(error: Exception) -> list[str]:
        caplog.clear()
        try:
            raise error
        except Exception as raised:  # noqa: BLE001 as ComfyUI logs it
            logging.error("!!! Exception during processing !!! %s", raised)
            logging.error(traceback.format_exc())
        return [record.getMessage() for record in caplog.records]

    errors = pack.module("nodes.errors")
    assert len(logged(errors.Refusal("no"))) == 1
    assert len(logged(ValueError("a fault"))) == 2
